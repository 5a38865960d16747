"""The attempts at hard rows: choose, reflect, try, verify, look for leaks, and again while the budget lasts.

hard row, a failed sample "9+4=12 \\boxed{12}"
-> feedback    "Its final answer was read as 12, which is not right."
-> reflection  "The sum of 9 and 4 was taken for 12."              written by the model, or by a stronger one
-> attempt     "9+4=13 \\boxed{13}"                                with the reflection in its prompt
-> verdict     right; no leak; p(attempt | prompt) is .6 of p(attempt | prompt, reflection) a token: a positive
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import orjson

from truegold.pipeline.profile.judging import VerdictRecord
from truegold.pipeline.running.progress import Progress
from truegold.synth.attempt import Attempt
from truegold.synth.budget import Action, Budget
from truegold.synth.config import SynthConfig
from truegold.synth.feedback import describe_verdict
from truegold.synth.guards.check import LeakReason, Sources, check_output, is_near_copy
from truegold.synth.hard_rows import HardRow
from truegold.synth.records import Weights, weigh
from truegold.synth.rounds import Answer, Ask, Sampler
from truegold.synth.strategies.base import fill


@dataclass
class _Trial:
    """An attempt of the round that is under way."""

    action: Action
    feedback: str = ""
    reflection: str | None = None
    reflection_tokens: int = 0
    context: str = ""
    prompt: tuple[int, ...] = ()
    """What is sampled from."""
    values: dict[str, str] = field(default_factory=dict)
    """What its templates are filled with."""


class Synthesis:
    """Attempts at rows, within a budget."""

    def __init__(
        self, rows: Sequence[HardRow], config: SynthConfig, sampler: Sampler, reflector: Sampler, budget: Budget
    ) -> None:
        """`reflector` writes the reflections; it may be `sampler` itself."""
        self._rows, self._config, self._sampler, self._reflector = rows, config, sampler, reflector
        self._bare: dict[int, tuple[int, ...]] = {}
        self._impossible: dict[int, set[str]] = {}
        self.budget = budget

    def run(self, progress: Progress) -> None:
        """Make all rounds; the attempts are with their rows then."""
        progress.start("synthesis", self._config.budget_tokens)
        while actions := self.budget.choose(self._rows, self._impossible):
            before = self.budget.spent
            for hard, attempt in self._round(actions):
                hard.attempts.append(attempt)
                self.budget.record(hard, attempt)
            positives = sum(hard.positives for hard in self._rows)
            progress.advance(self.budget.spent - before, f"{positives} positives")

    def bare_prompt(self, hard: HardRow) -> tuple[int, ...]:
        """Return the ids of a row's prompt without any context."""
        if hard.index not in self._bare:
            self._bare[hard.index] = tuple(self._sampler.source.encoder.encode(hard.row["prompt"]))
        return self._bare[hard.index]

    def _round(self, actions: Sequence[Action]) -> list[tuple[HardRow, Attempt]]:
        trials = [self._prepare(action) for action in actions]
        self._reflect([trial for trial in trials if trial.action.strategy.reflection])
        possible = [trial for trial in trials if self._fill_context(trial)]
        made: list[tuple[_Trial, Attempt]] = []
        for hot in (False, True):
            chosen = [trial for trial in possible if trial.action.strategy.hot is hot]
            temperature = self._config.hot_temperature if hot else self._config.temperature
            asks = [
                Ask(trial.action.hard.row, trial.action.hard.index, trial.prompt, not trial.context) for trial in chosen
            ]
            answers = self._sampler.sample(asks, temperature, self._config.max_tokens, judged=True) if asks else []
            for trial, answer in zip(chosen, answers, strict=True):
                made.append((trial, self._as_attempt(trial, answer, temperature)))
        self._look_through([(trial, attempt) for trial, attempt in made if attempt.passed])
        return [(trial.action.hard, attempt) for trial, attempt in made]

    def _prepare(self, action: Action) -> _Trial:
        hard, parent = action.hard, action.parent
        trial = _Trial(action)
        trial.values = {"problem": hard.row["prompt"], "gold": hard.row["gold"] or "", "reflection": ""}
        if parent is not None:
            parent.uses += 1
            trial.feedback = describe_verdict(
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
            trial.values |= {"attempt": shown, "feedback": trial.feedback}
        return trial

    def _reflect(self, trials: Sequence[_Trial]) -> None:
        """Have reflections written for attempts that begin with one."""
        asks, asking = [], []
        for trial in trials:
            hard = trial.action.hard
            text = fill(trial.action.strategy.reflection[hard.language], trial.values)
            prompt = tuple(self._reflector.source.encoder.encode(text))
            if self._reflector.has_room(prompt):
                asks.append(Ask(hard.row, hard.index, prompt, is_bare=False))
                asking.append(trial)
        if not asks:
            return
        answers = self._reflector.sample(asks, self._config.temperature, self._config.reflection_tokens, judged=False)
        for trial, answer in zip(asking, answers, strict=True):
            trial.reflection = answer.text.strip()
            trial.reflection_tokens = len(answer.completion.token_ids)
            trial.values["reflection"] = trial.reflection

    def _fill_context(self, trial: _Trial) -> bool:
        """Set an attempt's prompt, and return whether it leaves the model room."""
        action = trial.action
        templates = action.strategy.answer
        trial.context = fill(templates[action.hard.language], trial.values) if templates else ""
        is_reflected = not action.strategy.reflection or trial.reflection is not None
        prompt = self.bare_prompt(action.hard)
        if trial.context:
            prompt = tuple(self._sampler.source.encoder.encode(trial.context))
        trial.prompt = prompt
        if is_reflected and self._sampler.has_room(prompt):
            return True
        self._impossible.setdefault(action.hard.index, set()).add(action.strategy.name)
        return False

    def _as_attempt(self, trial: _Trial, answer: Answer, temperature: float) -> Attempt:
        action, verdict = trial.action, answer.verdict
        assert verdict is not None
        hard, shown = action.hard, action.strategy.placeholders
        guidance = [text for text in (trial.feedback, trial.reflection) if text]
        if action.strategy.uses_gold:
            guidance.append(hard.row["gold"] or "")
        return Attempt(
            strategy=action.strategy.name,
            completion=answer.text,
            token_ids=answer.completion.token_ids,
            is_cut=answer.completion.finish_reason != "stop",
            score=verdict["score"],
            reason=verdict["reason"],
            extracted=verdict["extracted"],
            evidence=_evidence(verdict),
            temperature=temperature,
            parent=action.parent,
            ordinal=len(hard.attempts),
            context=trial.context,
            guidance="\n".join(guidance),
            reflection=trial.reflection,
            feedback=trial.feedback if "feedback" in shown else None,
            logprobs=answer.completion.logprobs,
            tokens=len(answer.completion.token_ids) + trial.reflection_tokens,
        )

    def _look_through(self, right: Sequence[tuple[_Trial, Attempt]]) -> None:
        """Decide which right attempts are positives, and why the others are none."""
        self._score([(trial, attempt) for trial, attempt in right if attempt.context])
        for trial, attempt in right:
            hard = trial.action.hard
            bare, conditioned = attempt.bare_logprobs, attempt.conditioned_logprobs
            size = min(len(bare), len(conditioned))
            weights = weigh(bare[:size], conditioned[:size])
            self._decide(hard, attempt, weights)

    def _decide(self, hard: HardRow, attempt: Attempt, weights: Weights) -> None:
        parent = attempt.parent
        sources = Sources(hard.row["prompt"], attempt.guidance, parent.completion if parent is not None else "")
        report = check_output(
            attempt.completion,
            sources,
            attempt.extracted,
            weights,
            self._config.guards,
            is_program=hard.is_program,
        )
        attempt.leaks = {**report.measures, "weights": [weights.token, weights.sequence, weights.geometric]}
        reasons = list(report.reasons)
        others = [other.completion for other in hard.attempts if other.kept]
        if is_near_copy(attempt.completion, others, self._config.guards.near_copy):
            reasons.append(LeakReason.NEAR_COPY)
        attempt.dropped = reasons[0] if reasons else None
        attempt.kept = not reasons

    def _score(self, right: Sequence[tuple[_Trial, Attempt]]) -> None:
        """Find out how probable right attempts are behind the bare prompt, and with their context, at temperature 1."""
        if not right:
            return
        outputs = [attempt.token_ids for _, attempt in right]
        bare = self._sampler.score([self.bare_prompt(trial.action.hard) for trial, _ in right], outputs)
        for (_, attempt), logprobs in zip(right, bare, strict=True):
            attempt.bare_logprobs, attempt.conditioned_logprobs = logprobs, attempt.logprobs
        other_scale = [(trial, attempt) for trial, attempt in right if attempt.temperature != 1.0]
        conditioned = self._sampler.score(
            [trial.prompt for trial, _ in other_scale], [attempt.token_ids for _, attempt in other_scale]
        )
        for (_, attempt), logprobs in zip(other_scale, conditioned, strict=True):
            attempt.conditioned_logprobs = logprobs


def _evidence(verdict: VerdictRecord) -> dict[str, object]:
    evidence: dict[str, object] = orjson.loads(verdict["evidence"])
    return evidence
