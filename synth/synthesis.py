"""The attempts at hard rows: choose, reflect, try, verify, look for leaks, and again while the budget lasts.

hard row, a failed sample "9+4=12 \\boxed{12}"
-> feedback    "Its final answer was read as 12, which is not right."
-> reflection  "The sum of 9 and 4 was taken for 12."              written by the model, or by a stronger one
-> attempt     "9+4=13 \\boxed{13}"                                with the reflection in its prompt
-> verdict     right; no leak; p(attempt | prompt) is .6 of p(attempt | prompt, reflection) a token: a positive
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import orjson

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
from truegold.synth.budget import PlannedAttempt, TokenBudget
from truegold.synth.config import SynthConfig
from truegold.synth.feedback import describe_verdict
from truegold.synth.hard_rows import Attempt, HardRow
from truegold.synth.leaks import LeakReason, Sources, check_output, is_near_copy
from truegold.synth.records import weigh
from truegold.synth.strategies import fill


class Synthesis:
    """Attempts at rows, within a budget."""

    def __init__(
        self,
        rows: Sequence[HardRow],
        config: SynthConfig,
        sampler: RoundSampler,
        reflector: RoundSampler,
        budget: TokenBudget,
    ) -> None:
        """`reflector` writes the reflections; it may be `sampler` itself."""
        self._rows, self._config, self._sampler, self._reflector = rows, config, sampler, reflector
        self._bare: dict[int, tuple[int, ...]] = {}
        self._impossible: dict[int, set[str]] = {}
        self.budget = budget

    def run(self, progress: Progress) -> None:
        """Make all rounds; the attempts are with their rows then."""
        progress.start("synthesis", self._config.budget_tokens)
        while round_attempts := self.budget.choose(self._rows, self._impossible):
            before = self.budget.spent
            for hard, attempt in self._round(round_attempts):
                hard.attempts.append(attempt)
                self.budget.record(hard, attempt)
            positives = sum(hard.positives for hard in self._rows)
            progress.advance(self.budget.spent - before, f"{positives} positives")

    def bare_prompt(self, hard: HardRow) -> tuple[int, ...]:
        """Return the ids of a row's prompt without any context."""
        if hard.index not in self._bare:
            self._bare[hard.index] = tuple(self._sampler.source.encoder.encode(hard.row["prompt"]))
        return self._bare[hard.index]

    def _round(self, round_attempts: Sequence[PlannedAttempt]) -> list[tuple[HardRow, Attempt]]:
        for planned in round_attempts:
            self._prepare(planned)
        self._reflect([planned for planned in round_attempts if planned.strategy.reflection])
        possible = [planned for planned in round_attempts if self._fill_context(planned)]
        made: list[tuple[PlannedAttempt, Attempt]] = []
        for hot in (False, True):
            chosen = [planned for planned in possible if planned.strategy.hot is hot]
            temperature = self._config.hot_temperature if hot else self._config.temperature
            asks: list[Ask] = [
                (planned.hard, planned.prompt, 0 if planned.context else FIRST_BARE_SAMPLE) for planned in chosen
            ]
            answers = self._sampler.sample(asks, temperature, self._config.max_tokens, judged=True) if asks else []
            for planned, answer in zip(chosen, answers, strict=True):
                made.append((planned, self._as_attempt(planned, answer, temperature)))
        right = [(planned, attempt) for planned, attempt in made if attempt.passed]
        self._score([(planned, attempt) for planned, attempt in right if attempt.context])
        for planned, attempt in right:
            self._decide(planned.hard, attempt)
        return [(planned.hard, attempt) for planned, attempt in made]

    def _prepare(self, planned: PlannedAttempt) -> None:
        """Set what an attempt's templates are filled with."""
        hard, parent = planned.hard, planned.parent
        planned.values = {"problem": hard.row["prompt"], "gold": hard.row["gold"] or "", "reflection": ""}
        if parent is not None:
            parent.uses += 1
            planned.feedback = describe_verdict(
                parent.reason,
                parent.extracted,
                parent.evidence,
                hard.language,
                is_program=hard.is_program,
                is_cut=parent.is_cut,
            )
            shown = parent.completion.strip()[-self._config.attempt_chars :]
            if hard.is_program and parent.extracted:
                shown = parent.extracted.strip()
            planned.values |= {"attempt": shown, "feedback": planned.feedback}

    def _reflect(self, attempts: Sequence[PlannedAttempt]) -> None:
        """Have reflections written for attempts that begin with one."""
        asks: list[Ask] = []
        asking = []
        for planned in attempts:
            hard = planned.hard
            text = fill(planned.strategy.reflection[hard.language], planned.values)
            prompt = tuple(self._reflector.source.encoder.encode(text))
            if self._reflector.has_room(prompt):
                asks.append((hard, prompt, 0))
                asking.append(planned)
        if not asks:
            return
        answers = self._reflector.sample(asks, self._config.temperature, self._config.reflection_tokens, judged=False)
        for planned, answer in zip(asking, answers, strict=True):
            planned.reflection = answer.text.strip()
            planned.reflection_tokens = len(answer.completion.token_ids)
            planned.values["reflection"] = planned.reflection

    def _fill_context(self, planned: PlannedAttempt) -> bool:
        """Set an attempt's prompt, and return whether it leaves the model room."""
        templates = planned.strategy.answer
        planned.context = fill(templates[planned.hard.language], planned.values) if templates else ""
        is_reflected = not planned.strategy.reflection or planned.reflection is not None
        prompt = self.bare_prompt(planned.hard)
        if planned.context:
            prompt = tuple(self._sampler.source.encoder.encode(planned.context))
        planned.prompt = prompt
        if is_reflected and self._sampler.has_room(prompt):
            return True
        self._impossible.setdefault(planned.hard.index, set()).add(planned.strategy.name)
        return False

    def _as_attempt(self, planned: PlannedAttempt, answer: SampledAnswer, temperature: float) -> Attempt:
        verdict, hard, shown = answer.verdict, planned.hard, planned.strategy.placeholders
        assert verdict is not None
        guidance = [text for text in (planned.feedback, planned.reflection) if text]
        if planned.strategy.uses_gold:
            guidance.append(hard.row["gold"] or "")
        return Attempt(
            strategy=planned.strategy.name,
            completion=answer.text,
            token_ids=answer.completion.token_ids,
            is_cut=answer.completion.finish_reason != "stop",
            score=verdict["score"],
            reason=verdict["reason"],
            extracted=verdict["extracted"],
            evidence=orjson.loads(verdict["evidence"]),
            temperature=temperature,
            parent=planned.parent,
            ordinal=len(hard.attempts),
            context=planned.context,
            guidance="\n".join(guidance),
            reflection=planned.reflection,
            feedback=planned.feedback if "feedback" in shown else None,
            logprobs=answer.completion.logprobs,
            tokens=len(answer.completion.token_ids) + planned.reflection_tokens,
        )

    def _decide(self, hard: HardRow, attempt: Attempt) -> None:
        """Decide whether a right attempt is a positive, and why it is none."""
        size = min(len(attempt.bare_logprobs), len(attempt.conditioned_logprobs))
        weights = weigh(attempt.bare_logprobs[:size], attempt.conditioned_logprobs[:size])
        parent = attempt.parent
        sources = Sources(hard.row["prompt"], attempt.guidance, parent.completion if parent is not None else "")
        report = check_output(
            attempt.completion, sources, attempt.extracted, weights, self._config.guards, is_program=hard.is_program
        )
        attempt.leaks = {**report.measures, "weights": [weights.token, weights.sequence, weights.geometric]}
        reasons = list(report.reasons)
        others = [other.completion for other in hard.attempts if other.kept]
        if is_near_copy(attempt.completion, others, self._config.guards.near_copy):
            reasons.append(LeakReason.NEAR_COPY)
        attempt.dropped = reasons[0] if reasons else None
        attempt.kept = not reasons

    def _score(self, right: Sequence[tuple[PlannedAttempt, Attempt]]) -> None:
        """Find out how probable right attempts are behind the bare prompt, and with their context, at temperature 1."""
        if not right:
            return
        outputs = [attempt.token_ids for _, attempt in right]
        bare = self._sampler.score([self.bare_prompt(planned.hard) for planned, _ in right], outputs)
        for (_, attempt), logprobs in zip(right, bare, strict=True):
            attempt.bare_logprobs, attempt.conditioned_logprobs = logprobs, attempt.logprobs
        other_scale = [(planned, attempt) for planned, attempt in right if attempt.temperature != 1.0]
        conditioned = self._sampler.score(
            [planned.prompt for planned, _ in other_scale], [attempt.token_ids for _, attempt in other_scale]
        )
        for (_, attempt), logprobs in zip(other_scale, conditioned, strict=True):
            attempt.conditioned_logprobs = logprobs


FIRST_BARE_SAMPLE = 10_000
"""The numbers of further samples of bare prompts: the profile's, which may have the same settings, are below."""


Ask = tuple[HardRow, tuple[int, ...], int]
"""A completion that a round needs: the row that it answers, its prompt, and the number from which the samples of that
prompt count."""


@dataclass(frozen=True)
class SampledAnswer:
    """What came."""

    completion: Completion
    text: str
    verdict: VerdictRecord | None
    """None where the round is not judged."""


@dataclass
class _Round:
    """The plan of a round's draws (`DrawPlan`)."""

    waiting: Sequence[Draw]
    total: int
    verdicts: dict[tuple[str, int], VerdictRecord | None] = field(default_factory=dict)
    """By prompt and sample."""

    @property
    def finished(self) -> bool:
        """Whether every completion has come."""
        return len(self.verdicts) == self.total

    def draws(self, count: int) -> list[Draw]:
        """Return at most `count` samples to draw next."""
        draws, self.waiting = self.waiting[:count], self.waiting[count:]
        return list(draws)

    def spend(self, tokens: int) -> None:
        """Do nothing: a round's tokens were planned for."""

    def record(self, draw: Draw, verdict: VerdictRecord | None) -> None:
        """Keep a verdict."""
        sampled, sample = draw
        self.verdicts[sampled.prompt_key, sample] = verdict


class RoundSampler:
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
    def facts(self) -> dict[str, object]:
        """What the samples of this process cost."""
        cost = self._drawing.cost
        pace = round(cost.tokens_per_second, 1) if cost.seconds else None
        counts = {"drawn": cost.drawn, "kept": cost.kept, "tokens": cost.tokens}
        return {**counts, "seconds": round(cost.seconds, 1), "tokens_per_s": pace}

    def has_room(self, prompt: Sequence[int]) -> bool:
        """Return whether a prompt leaves the model room to answer."""
        return len(prompt) < self.source.max_model_len

    def sample(self, asks: Sequence[Ask], temperature: float, max_tokens: int, *, judged: bool) -> list[SampledAnswer]:
        """Return an answer to each, in order."""
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
