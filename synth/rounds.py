"""Samples of one round: attempts that were chosen together, drawn through the store and judged beside.

A round is finished before the next one is chosen, so that the choice depends on verdicts and never on what was finished
first: a killed synthesis makes the same rounds again, and finds their samples in the store.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from truegold.pipeline.config.engines import EngineConfig
from truegold.pipeline.engines.base import Completion, SamplingParams, score
from truegold.pipeline.profile.drawing import Drawing
from truegold.pipeline.profile.judging import Judging, VerdictRecord
from truegold.pipeline.profile.sample_store import (
    CompletionSource,
    RecordLog,
    SampleStore,
    prompt_key,
    sampling_identity,
)
from truegold.pipeline.profile.schedule import Draw, SampledRow
from truegold.pipeline.running.disk import digest_json
from truegold.pipeline.running.progress import Progress
from truegold.pipeline.tables.rows import Row
from truegold.synth.config import SynthConfig

FIRST_BARE_SAMPLE = 10_000
"""The numbers of further samples of bare prompts: the profile's, which may have the same settings, are below."""


@dataclass(frozen=True)
class Ask:
    """A completion that a round needs."""

    row: Row
    index: int
    """The row's number among the hard rows."""
    prompt: tuple[int, ...]
    is_bare: bool


@dataclass(frozen=True)
class Answer:
    """What came."""

    completion: Completion
    text: str
    verdict: VerdictRecord | None
    """None where the round is not judged."""


@dataclass
class _Round:
    """The plan of a round's draws (`DrawPlan`)."""

    waiting: list[Draw]
    verdicts: dict[int, VerdictRecord | None] = field(default_factory=dict)
    """By the position in the round."""
    positions: dict[tuple[str, int, int], int] = field(default_factory=dict)
    total: int = 0

    @property
    def finished(self) -> bool:
        """Whether every completion has come."""
        return len(self.verdicts) == self.total

    def draws(self, count: int) -> list[Draw]:
        """Return at most `count` samples to draw next."""
        draws, self.waiting = self.waiting[:count], self.waiting[count:]
        return draws

    def spend(self, tokens: int) -> None:
        """Do nothing: a round's tokens were planned for."""

    def record(self, draw: Draw, verdict: VerdictRecord | None) -> None:
        """Keep a verdict."""
        sampled, sample = draw
        self.verdicts[self.positions[sampled.prompt_key, sample, sampled.index]] = verdict


class Sampler:
    """Draws the completions of rounds from one model."""

    def __init__(
        self,
        source: CompletionSource,
        engine: EngineConfig,
        config: SynthConfig,
        model: Path | None,
        folders: tuple[Path, Path],
        progress: Progress,
    ) -> None:
        """`folders` are that of the samples, which stay for the run, and that of scratch files."""
        self.source, self._engine_config, self._config, self._model = source, engine, config, model
        self._samples, self._scratch = folders
        self._drawing = Drawing(source, config.seed, progress)
        self._stores: dict[str, SampleStore] = {}
        self._numbers: defaultdict[tuple[str, str], int] = defaultdict(int)
        """How many samples of a prompt were asked for, by store and prompt."""
        self._scores: dict[str, tuple[float, ...]] = {}
        self._score_log = RecordLog(self._scratch / f"scores-{digest_json([str(model), engine.model_dump()])[:8]}")
        for _, record in self._score_log.scan():
            self._scores[record["key"]] = tuple(record["logprobs"])
        self._open = ExitStack()
        self._open.callback(self._score_log.close)
        self._open.callback(self._drawing.close)

    @property
    def drawn(self) -> int:
        """The completions that this process has sampled."""
        return self._drawing.cost.drawn

    @property
    def facts(self) -> dict[str, object]:
        """What the samples of this process cost."""
        cost = self._drawing.cost
        pace = round(cost.tokens_per_second, 1) if cost.seconds else None
        counts = {"drawn": cost.drawn, "kept": cost.kept, "tokens": cost.tokens}
        return {**counts, "seconds": round(cost.seconds, 1), "tokens_per_s": pace}

    def has_room(self, prompt: Sequence[int]) -> bool:
        """Return whether a prompt leaves the model room to answer."""
        return len(prompt) < self.source.max_model_len

    def sample(self, asks: Sequence[Ask], temperature: float, max_tokens: int, *, judged: bool) -> list[Answer]:
        """Return an answer to each, in order."""
        settings = self._config.sampling_settings(temperature, max_tokens)
        store, store_name = self._store(settings)
        draws, plan = [], _Round([])
        for position, ask in enumerate(asks):
            key = prompt_key(ask.prompt)
            sample = self._numbers[store_name, key] + (FIRST_BARE_SAMPLE if ask.is_bare else 0)
            self._numbers[store_name, key] += 1
            draws.append((SampledRow(ask.row, ask.index, ask.prompt, key), sample))
            plan.positions[key, sample, ask.index] = position
        plan.waiting, plan.total = list(draws), len(draws)
        stops = self.source.encoder.stop_token_ids
        sampling = SamplingParams(temperature, 1.0, max_tokens, stops, logprobs=True, stop_loops=True)
        judging = Judging(self._config, self._config.workers) if judged else None
        try:
            self._drawing.run(plan, store, judging, sampling)
        finally:
            if judging is not None:
                judging.close()
        answers = []
        for position, (sampled, sample) in enumerate(draws):
            completion = store.read(sampled.prompt_key, sample)
            text = self._drawing.decode(completion.token_ids)
            answers.append(Answer(completion, text, plan.verdicts[position]))
        return answers

    def score(self, prompts: Sequence[tuple[int, ...]], outputs: Sequence[tuple[int, ...]]) -> list[tuple[float, ...]]:
        """Return the log-probabilities of outputs behind prompts at temperature 1, each computed once."""
        keys = [f"{prompt_key(prompt)}-{prompt_key(output)}" for prompt, output in zip(prompts, outputs, strict=True)]
        missing = [index for index, key in enumerate(keys) if key not in self._scores]
        if missing:
            scored = score(self._drawing.engine, [prompts[i] for i in missing], [outputs[i] for i in missing])
            for index, logprobs in zip(missing, scored, strict=True):
                self._scores[keys[index]] = logprobs
                self._score_log.append({"key": keys[index], "logprobs": list(logprobs)})
        return [self._scores[key] for key in keys]

    def close(self) -> None:
        """Give back the engine and close all files."""
        self._open.close()

    def _store(self, settings: dict[str, object]) -> tuple[SampleStore, str]:
        name = digest_json(settings)
        if name not in self._stores:
            identity = sampling_identity(settings, self._engine_config, self.source, self._model, self._scratch)
            self._stores[name] = SampleStore(self._samples, identity)
            self._open.callback(self._stores[name].close)
        return self._stores[name], name
