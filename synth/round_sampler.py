"""Samples the completions of a round of synthesis, and judges them on request.

    sampler.sample([(row, prompt, 0), (row, prompt, 0)], temperature=1.0, max_tokens=512, judged=True)
        returns the samples 0 and 1 of the prompt, with verdicts; the next call returns sample 2

Samples and log-probabilities are stored in files. A synthesis that was killed makes the same choices again, and finds
their samples in the files.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from truegold.pipeline.config.engines import AskedEngineConfig
from truegold.pipeline.engines.base import Completion, SamplingParams, score
from truegold.pipeline.profile.drawing import Drawing, RowRequest
from truegold.pipeline.profile.judging import Judging, VerdictRecord
from truegold.pipeline.profile.sample_store import CompletionSource, SampleStore, prompt_key, sampling_identity
from truegold.pipeline.profile.schedule import Draw, SampledRow
from truegold.pipeline.running.disk import digest_json
from truegold.pipeline.running.progress import Progress
from truegold.pipeline.running.record_log import RecordLog
from truegold.synth.config import SynthConfig
from truegold.synth.hard_rows import HardRow

Ask = tuple[HardRow, tuple[int, ...], int]
"""A request for a completion: the row, the prompt, and the number of the first sample of this prompt. Later requests
for the same prompt and settings get the next numbers."""


@dataclass(frozen=True)
class SampledAnswer:
    """A completion with its verdict."""

    completion: Completion
    text: str
    verdict: VerdictRecord | None
    """The verdict, or None if completions are not judged, as for reflections."""


@dataclass
class _Round:
    """The `DrawPlan` of a round: each sample is drawn once, in order."""

    waiting: Sequence[Draw]
    """The samples that are not drawn yet."""
    total: int
    """The number of samples of the round."""
    verdicts: dict[tuple[str, int], VerdictRecord | None] = field(default_factory=dict)
    """The verdicts by prompt and sample."""

    @property
    def finished(self) -> bool:
        """Whether all samples are drawn, and judged if they are to be judged."""
        return len(self.verdicts) == self.total

    def draws(self, count: int) -> list[Draw]:
        """Return the next samples to draw, at most `count`."""
        draws, self.waiting = self.waiting[:count], self.waiting[count:]
        return list(draws)

    def spend(self, request: RowRequest, tokens: int) -> None:
        """Do nothing. `TokenBudget` counts the tokens of attempts."""

    def record(self, draw: Draw, verdict: VerdictRecord | None) -> None:
        """Record the verdict on a sample."""
        sampled, sample = draw
        self.verdicts[sampled.prompt_key, sample] = verdict


class RoundSampler:
    """Samples completions from one model. They are stored, so that a resumed run does not draw them again."""

    def __init__(
        self,
        source: CompletionSource,
        engine: AskedEngineConfig,
        config: SynthConfig,
        model: Path | None,
        folders: tuple[Path, Path],
        progress: Progress,
    ) -> None:
        """Open the files of earlier attempts. `folders`: one for samples, one for other files."""
        self.source, self._engine_config, self._config, self._model = source, engine, config, model
        self._samples, self._scratch = folders
        self._drawing = Drawing(source, config.seed, progress)
        self._stores: dict[str, SampleStore] = {}
        self._numbers: defaultdict[tuple[str, str], int] = defaultdict(int)
        """The number of samples requested so far, by store and prompt."""
        self._scores: dict[str, tuple[float, ...]] = {}
        """The log-probabilities of each scored output, by a key of prompt and output."""
        self._score_log = RecordLog(self._scratch / f"scores-{digest_json([str(model), engine.model_dump()])[:8]}")
        for _, record in self._score_log.scan():
            self._scores[record["key"]] = tuple(record["logprobs"])
        self._open = ExitStack()
        self._open.callback(self._score_log.close)
        self._open.callback(self._drawing.close)

    @property
    def facts(self) -> dict[str, object]:
        """The counts and the speed of the samples that this process has drawn."""
        cost = self._drawing.cost
        pace = round(cost.tokens_per_second, 1) if cost.seconds else None
        counts = {"drawn": cost.drawn, "kept": cost.kept, "tokens": cost.tokens}
        return {**counts, "seconds": round(cost.seconds, 1), "tokens_per_s": pace}

    @property
    def engine_facts(self) -> dict[str, Any]:
        """The facts of the engine (`Engine.facts`)."""
        return self._drawing.engine.facts()

    def has_room(self, prompt: Sequence[int]) -> bool:
        """Return whether a prompt is short enough to leave the model tokens for an answer."""
        return len(prompt) < self.source.max_model_len

    def sample(self, asks: Sequence[Ask], temperature: float, max_tokens: int, *, judged: bool) -> list[SampledAnswer]:
        """Return an answer to each request, in order. With `judged`, the answers have verdicts."""
        settings = self._config.sampling_settings(temperature, max_tokens)
        store, store_name = self._store(settings)
        draws = []
        for hard, prompt, first in asks:
            key = prompt_key(prompt)
            draws.append((SampledRow(hard.row, hard.index, prompt, key), first + self._numbers[store_name, key]))
            self._numbers[store_name, key] += 1
        plan = _Round(draws, len(draws))
        stops = self.source.encoder.stop_token_ids
        sampling = SamplingParams(temperature, 1.0, max_tokens, stops, logprobs=True, stop_loops=True)
        judging = Judging(self._config, self._config.workers) if judged else None
        try:
            self._drawing.run(plan, store, judging, sampling)
        finally:
            if judging is not None:
                judging.close()
        answers = []
        for sampled, sample in draws:
            completion = store.read(sampled.prompt_key, sample)
            text = self._drawing.decode(completion.token_ids)
            answers.append(SampledAnswer(completion, text, plan.verdicts[sampled.prompt_key, sample]))
        return answers

    def score(self, prompts: Sequence[tuple[int, ...]], outputs: Sequence[tuple[int, ...]]) -> list[tuple[float, ...]]:
        """Return the log-probabilities of each output's tokens after its prompt, at temperature 1.

        They are computed only once, even if the run is resumed.
        """
        keys = [f"{prompt_key(prompt)}-{prompt_key(output)}" for prompt, output in zip(prompts, outputs, strict=True)]
        missing = [index for index, key in enumerate(keys) if key not in self._scores]
        if missing:
            scored = score(self._drawing.engine, [prompts[i] for i in missing], [outputs[i] for i in missing])
            for index, logprobs in zip(missing, scored, strict=True):
                self._scores[keys[index]] = logprobs
                self._score_log.append({"key": keys[index], "logprobs": list(logprobs)})
        return [self._scores[key] for key in keys]

    def close(self) -> None:
        """Release the engine and close all files."""
        self._open.close()

    def _store(self, settings: dict[str, object]) -> tuple[SampleStore, str]:
        """Return the store of samples with these settings, and its name. The first call opens the store."""
        name = digest_json(settings)
        if name not in self._stores:
            identity = sampling_identity(settings, self._engine_config, self.source, self._model, self._scratch)
            self._stores[name] = SampleStore(self._samples, identity)
            self._open.callback(self._stores[name].close)
        return self._stores[name], name
