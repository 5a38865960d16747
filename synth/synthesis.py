"""Makes attempts at problems that the model hardly ever solves, in rounds, until the budget of tokens is spent.

failed sample  "9+4=12 \\boxed{12}"
-> feedback    "Its final answer was read as 12, which is not right."
-> reflection  "The sum of 9 and 4 was taken for 12."              written by the model, or by a stronger one
-> attempt     "9+4=13 \\boxed{13}"                                with the reflection in its prompt
-> verdict     right
-> guards      the attempt does not repeat the reflection (`leaks`), and is probable enough without it
-> positive    the attempt is trained on

Feedback describes the verdict on a failed attempt, in English or Chinese, without revealing the gold:

    verdict                                                    feedback
    the answer "\\boxed{12}" is read as 12, the gold is 15      "Its final answer was read as 12, which is not right."
    the answer is (1, 2], the gold is a number                 "... It is an interval, where a number is asked for."
    2 of 5 tests of a program pass                             "It passes 2 of 5 tests. This one fails: ..."

The kind of the gold is mentioned only if the answer is of another kind. Feedback on a failing test shows its input, the
expected output and the actual output, because tests are part of the task.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from typing import Any

import orjson

from truegold.pipeline.engines.chat import encode_row
from truegold.pipeline.running.progress import Progress
from truegold.pipeline.tables.rows import problem_of
from truegold.synth.budget import PlannedAttempt, TokenBudget
from truegold.synth.config import Language, SynthConfig
from truegold.synth.hard_rows import Attempt, HardRow
from truegold.synth.leaks import (
    FEWEST_SAMPLES,
    BareSample,
    LeakReason,
    Sources,
    check_output,
    find_in_bare,
    is_near_copy,
    learn_habits,
)
from truegold.synth.records import weigh
from truegold.synth.round_sampler import Ask, RoundSampler, SampledAnswer
from truegold.synth.strategies import fill
from truegold.verifiers import Reason

SHOWN_CHARS = 300
"""The maximum number of characters of an answer, an input or an output in feedback."""

Phrases = Mapping[str, Mapping[str, str]]
"""The phrases of one language, by section and name."""
PHRASES: Mapping[str, Phrases] = tomllib.loads(files("truegold.synth").joinpath("feedback.toml").read_text("utf-8"))
"""The phrases by language: the `sentences`, the `details` of a failing test, and the `kinds` of answers."""

# Examples, in order: 1,200; 1/2 or 1e-5; (C); (1, 2]; \{1, 2\}; x + \pi. The first pattern that matches gives the kind.
_KINDS = (
    ("whole", re.compile(r"[-+]?\d[\d,]*")),
    ("number", re.compile(r"[-+]?[\d.,]*\d(?:\s*/\s*\d+)?\s*%?|\\d?frac\{\d+\}\{\d+\}|[-+]?\d+(?:\.\d+)?e[-+]?\d+")),
    ("choice", re.compile(r"\(?[A-H]\)?")),
    ("tuple", re.compile(r"[(\[].*,.*[)\]]", re.DOTALL)),
    ("set", re.compile(r"\\?\{.*\}", re.DOTALL)),
    # An expression may have LaTeX commands, names of functions and single letters, but no other words.
    (
        "expression",
        re.compile(r"(?:\\[a-zA-Z]+|\b(?:sin|cos|tan|log|ln|exp|sqrt|pi|max|min)\b|\b[a-zA-Z]{1,2}\b|[^a-zA-Z一-鿿])+"),
    ),
)


def describe_verdict(
    reason: str,
    extracted: str | None,
    evidence: Mapping[str, Any],
    language: Language,
    *,
    is_program: bool,
    is_cut: bool,
) -> str:
    """Return the feedback on an attempt. `is_cut` is true if the attempt ended at a length limit."""
    phrases = PHRASES[language]
    sentences = phrases["sentences"]
    shown = _cut(extracted or "")
    if is_cut and extracted is None:
        return sentences["cut"]
    if is_program and "total" in evidence:
        return _describe_tests(evidence, phrases)
    if reason in (Reason.MISMATCH, Reason.PARTIAL):
        return _describe_mismatch(shown, evidence, phrases)
    is_named = reason in (Reason.NO_ANSWER, Reason.HEDGED, Reason.UNREAD)
    return sentences[reason if is_named else "unjudged"].format(extracted=shown, reason=reason.replace("_", " "))


def kind_of(answer: str) -> str:
    """Return the kind of an answer by its form: a whole number, a number, a set, ..."""
    return next((kind for kind, pattern in _KINDS if pattern.fullmatch(answer.strip())), "text")


def _describe_mismatch(shown: str, evidence: Mapping[str, Any], phrases: Phrases) -> str:
    answer = _cut(str(evidence.get("answer") or "")) or shown
    if not answer:
        return phrases["sentences"]["wrong_unread"]
    text = phrases["sentences"]["wrong"].format(answer=answer)
    gold = evidence.get("gold")
    if isinstance(gold, str) and gold:
        answer_kind, gold_kind = kind_of(answer), kind_of(gold)
        # A difference between whole number and number is not mentioned, because it reveals something about the gold.
        if answer_kind != gold_kind and {answer_kind, gold_kind} != {"whole", "number"}:
            kinds = {"answer_kind": phrases["kinds"][answer_kind], "gold_kind": phrases["kinds"][gold_kind]}
            text += " " + phrases["sentences"]["other_kind"].format(**kinds)
    return text


def _describe_tests(evidence: Mapping[str, Any], phrases: Phrases) -> str:
    lines = [phrases["sentences"]["tests"].format(passed=evidence.get("passed", 0), total=evidence["total"])]
    failed = evidence.get("failed")
    if isinstance(failed, Mapping):
        lines.append(phrases["sentences"]["fails"])
        for name, label in phrases["details"].items():
            if failed.get(name) not in (None, ""):
                lines.append(f"{label}: {_cut(str(failed[name]))}")
    return "\n".join(lines)


def _cut(text: str) -> str:
    text = text.strip()
    return text if len(text) <= SHOWN_CHARS else text[:SHOWN_CHARS] + " ..."


FIRST_BARE_SAMPLE = 10_000
"""The number of the first sample of a bare prompt (the problem alone). Lower numbers belong to the profile, which may
have samples of the same prompt and settings."""
LEAST_LOGPROB = math.log(0.1)
"""The value of `least_logprob` if there are too few samples to measure it."""
RAREST = math.log(0.001)
"""Problems are hard, so a right output may be less probable than usual by this factor (its logarithm)."""
SCORED_SAMPLES, LOW_SHARE = 200, 0.01
"""`least_logprob` is the value that 99 % of at most 200 bare samples reach."""


@dataclass
class NoRoom:
    """Prompts of a strategy that leave the model no tokens for an answer."""

    rows: int
    """The number of rows with such a prompt."""
    tokens: int
    """The length of the shortest such prompt."""
    max_model_len: int
    """The context length of the model, for prompt and answer together."""


class Synthesis:
    """Makes attempts at rows within a budget."""

    def __init__(
        self,
        rows: Sequence[HardRow],
        config: SynthConfig,
        sampler: RoundSampler,
        reflector: RoundSampler,
        budget: TokenBudget,
        bare: Sequence[BareSample],
    ) -> None:
        """Learn the policy's habits from `bare`, samples of the profile.

        `reflector` writes the reflections. It may be `sampler` itself.
        """
        self._bare = bare
        self.habits = learn_habits([find_in_bare(sample, config.guards) for sample in bare])
        self.no_room: dict[str, NoRoom] = {}
        """Strategy -> the prompts that leave the model no tokens for an answer."""
        self._rows, self._config, self._sampler, self._reflector = rows, config, sampler, reflector
        self._bare_prompts: dict[int, tuple[int, ...]] = {}
        """Row index -> the tokens of the problem alone."""
        self._impossible: dict[int, set[str]] = {}
        """Row index -> the strategies whose prompt leaves the model no tokens for an answer."""
        self.budget = budget

    def run(self, progress: Progress) -> None:
        """Make rounds of attempts until the budget is spent. Attempts are stored in their rows."""
        progress.start("synthesis", self._config.budget_tokens)
        while round_attempts := self.budget.choose(self._rows, self._impossible):
            before = self.budget.spent
            for hard, attempt in self._round(round_attempts):
                hard.attempts.append(attempt)
                self.budget.record(hard, attempt)
            positives = sum(hard.positives for hard in self._rows)
            progress.advance(self.budget.spent - before, f"{positives} positives")

    def bare_prompt(self, hard: HardRow) -> tuple[int, ...]:
        """Return the tokens of a row's bare prompt: the problem alone."""
        if hard.index not in self._bare_prompts:
            self._bare_prompts[hard.index] = tuple(encode_row(self._sampler.source.encoder, hard.row))
        return self._bare_prompts[hard.index]

    def _round(self, round_attempts: Sequence[PlannedAttempt]) -> list[tuple[HardRow, Attempt]]:
        """Make the attempts of a round, and return them with their rows. Attempts with a prompt that is too long are
        skipped."""
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
        self._score(right)
        for planned, attempt in right:
            self._decide(planned.hard, attempt)
        return [(planned.hard, attempt) for planned, attempt in made]

    def _prepare(self, planned: PlannedAttempt) -> None:
        """Set the values for the placeholders in the prompts of an attempt."""
        hard, parent = planned.hard, planned.parent
        planned.values = {"problem": problem_of(hard.row), "gold": hard.row["gold"] or "", "reflection": ""}
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
        """Sample the reflections for attempts. An attempt whose prompt for a reflection is too long gets none."""
        asks: list[Ask] = []
        asking = []
        for planned in attempts:
            hard = planned.hard
            text = fill(planned.strategy.reflection[hard.language], planned.values)
            prompt = tuple(self._reflector.source.encoder.encode(text))
            if self._reflector.has_room(prompt):
                asks.append((hard, prompt, 0))
                asking.append(planned)
            else:
                self._note_no_room(planned, len(prompt), self._reflector)
        if not asks:
            return
        answers = self._reflector.sample(asks, self._config.temperature, self._config.reflection_tokens, judged=False)
        for planned, answer in zip(asking, answers, strict=True):
            planned.reflection = answer.text.strip()
            planned.reflection_tokens = answer.completion.tokens
            planned.values["reflection"] = planned.reflection

    def _fill_context(self, planned: PlannedAttempt) -> bool:
        """Set the prompt of an attempt, and return whether the attempt can be made.

        It cannot be made if its prompt, or the prompt for its reflection, leaves the model no tokens for an answer.
        """
        templates = planned.strategy.answer
        planned.context = fill(templates[planned.hard.language], planned.values) if templates else ""
        is_reflected = not planned.strategy.reflection or planned.reflection is not None
        prompt = self.bare_prompt(planned.hard)
        if planned.context:
            prompt = tuple(self._sampler.source.encoder.encode(planned.context))
        planned.prompt = prompt
        if not is_reflected:
            return False
        if not self._sampler.has_room(prompt):
            self._note_no_room(planned, len(prompt), self._sampler)
            return False
        return True

    def _note_no_room(self, planned: PlannedAttempt, tokens: int, model: RoundSampler) -> None:
        """Exclude the strategy for this row, because its prompt leaves the model no tokens for an answer."""
        name = planned.strategy.name
        self._impossible.setdefault(planned.hard.index, set()).add(name)
        known = self.no_room.get(name)
        if known is None:
            self.no_room[name] = NoRoom(1, tokens, model.source.max_model_len)
        else:
            known.rows, known.tokens = known.rows + 1, min(known.tokens, tokens)

    def describe_no_room(self) -> list[str]:
        """Return a line for each strategy whose prompt was too long for some rows:

        "reflect: the prompt is too long in 458 of 458 rows: it has at least 210 tokens, and the model takes 128."
        """
        made: dict[str, set[int]] = {name: set() for name in self.no_room}
        for hard in self._rows:
            made_here = {attempt.strategy for attempt in hard.attempts} | self._impossible.get(hard.index, set())
            for name in made_here & made.keys():
                made[name].add(hard.index)
        return [
            f"{name}: the prompt is too long in {no_room.rows:,} of {len(made[name]):,} rows: it has "
            f"{'at least ' if no_room.rows > 1 else ''}{no_room.tokens:,} tokens, "
            f"and the model takes {no_room.max_model_len:,}."
            for name, no_room in sorted(self.no_room.items())
        ]

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
        """Decide whether a right attempt becomes a positive, and record the reason if it does not."""
        size = min(len(attempt.bare_logprobs), len(attempt.conditioned_logprobs))
        weights = weigh(attempt.bare_logprobs[:size], attempt.conditioned_logprobs[:size])
        parent = attempt.parent
        failed, failed_answer = ("", None) if parent is None else (parent.completion, parent.extracted)
        report = check_output(
            attempt.completion,
            Sources(hard.row["prompt"], attempt.guidance, failed, failed_answer),
            attempt.extracted,
            weights,
            self._config.guards,
            self.habits,
            is_program=hard.is_program,
        )
        attempt.leaks = {**report.measures, "weights": [weights.token, weights.sequence, weights.geometric]}
        attempt.leaks["bare_probability"] = round(math.exp(mean(attempt.bare_logprobs)), 4)
        reasons = list(report.reasons)
        if not attempt.context:
            # Weights compare the prompt with and without a context. An attempt without a context needs other checks.
            if is_improbable(attempt.bare_logprobs, self.least_logprob):
                reasons.append(LeakReason.IMPLAUSIBLE)
            if not hard.is_beyond_chance(attempt):
                reasons.append(LeakReason.UNCONFIRMED)
        others = [other.completion for other in hard.attempts if other.kept]
        if is_near_copy(attempt.completion, others, self._config.guards.near_copy):
            reasons.append(LeakReason.NEAR_COPY)
        attempt.dropped = reasons[0] if reasons else None
        attempt.kept = not reasons

    def _score(self, right: Sequence[tuple[PlannedAttempt, Attempt]]) -> None:
        """Set the log-probabilities of right attempts at temperature 1, without and with their context."""
        if not right:
            return
        outputs = [attempt.token_ids for _, attempt in right]
        bare = self._sampler.score([self.bare_prompt(planned.hard) for planned, _ in right], outputs)
        for (_, attempt), logprobs in zip(right, bare, strict=True):
            attempt.bare_logprobs = logprobs
            attempt.conditioned_logprobs = attempt.logprobs if attempt.context else logprobs
        other_scale = [pair for pair in right if pair[1].context and pair[1].temperature != 1.0]
        conditioned = self._sampler.score(
            [planned.prompt for planned, _ in other_scale], [attempt.token_ids for _, attempt in other_scale]
        )
        for (_, attempt), logprobs in zip(other_scale, conditioned, strict=True):
            attempt.conditioned_logprobs = logprobs

    @cached_property
    def least_logprob(self) -> float:
        """The mean log-probability per token, at temperature 1, that 99 % of the policy's bare samples reach."""
        samples = [sample for sample in self._bare if sample.token_ids][:SCORED_SAMPLES]
        if len(samples) < FEWEST_SAMPLES:
            return LEAST_LOGPROB
        prompts = [sample.prompt_ids for sample in samples]
        scored = self._sampler.score(prompts, [sample.token_ids for sample in samples])
        return sorted(map(mean, scored))[int(LOW_SHARE * len(samples))]


def is_improbable(logprobs: Sequence[float], least: float) -> bool:
    """Return whether an output is too improbable.

    `least` is a mean log-probability per token (`Synthesis.least_logprob`). The sum over all tokens may be up to
    -RAREST below n * `least` for n tokens: 10 tokens may be .69 below `least` each, 1,000 tokens .007.
    """
    return math.fsum(logprobs) < least * len(logprobs) + RAREST


def mean(logprobs: Sequence[float]) -> float:
    """Return the mean log-probability of an output's tokens, or 0 if there are no tokens."""
    return math.fsum(logprobs) / len(logprobs) if logprobs else 0.0
