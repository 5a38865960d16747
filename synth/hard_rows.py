"""Reads the hard rows: rows that need a right completion to train on (a positive), since they hardly ever pass.

Hard rows are the rows that the stage `select` left out as too hard (`hard.parquet`), and the selected rows that never
passed. Of the failed samples of a row, one is kept for each different answer, the most frequent answer first.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from truegold.pipeline.profile.drawing import SampleRow
from truegold.pipeline.rates import Mixture
from truegold.pipeline.suspicion.answer_classes import LabelledProblem, has_open_answer
from truegold.pipeline.tables.reasons import SuspicionRow
from truegold.pipeline.tables.rows import ProfileRow, Row, RowKey, read_rows, read_table, row_key
from truegold.pipeline.text.prose import language_of
from truegold.synth.config import Language, SynthConfig
from truegold.verifiers import judges_solutions, resolve

FAILURES = 4
"""The maximum number of failed samples of a row that attempts may continue."""
MOST_GUESSED = 20
"""Whole numbers up to this one are answers that can be guessed."""
CHANCE_LEVEL = 0.05
"""If chance explains the right attempts at a row with a higher probability than this, they are guesses."""
_WHOLE = re.compile(r"\$?([-+]?\d{1,3})(?:\.0+)?\$?")
"""A small whole number: `12`, `$-3$`, `5.0`."""
MAX_SUSPICION = 0.9
"""Rows with a higher probability of a fault are skipped, because their positives are wrong, too."""


@dataclass
class Attempt:
    """A sampled completion with its verdict."""

    strategy: str
    completion: str
    token_ids: tuple[int, ...]
    is_cut: bool
    """Whether the completion ended without a stop token."""
    score: float | None
    reason: str
    extracted: str | None
    evidence: Mapping[str, Any]
    temperature: float
    parent: Attempt | None = None
    """The failed attempt that this one continues, or None."""
    ordinal: int | None = None
    """The number of the attempt among those at its row, or None for a sample of the profile."""
    context: str = ""
    """The text that replaced the problem in the prompt. It is empty if the prompt was the problem alone (bare)."""
    guidance: str = ""
    """The parts of the context about the earlier attempt: feedback, reflection, gold."""
    reflection: str | None = None
    feedback: str | None = None
    logprobs: tuple[float, ...] = ()
    """The log-probabilities of the tokens with the context, at the sampling temperature."""
    bare_logprobs: tuple[float, ...] = ()
    """The log-probabilities of the tokens after the bare prompt, at temperature 1."""
    conditioned_logprobs: tuple[float, ...] = ()
    """The log-probabilities of the tokens with the context, at temperature 1."""
    tokens: int = 0
    """The number of sampled tokens, including those of the reflection."""
    leaks: dict[str, Any] = field(default_factory=dict)
    """The measurements of the guards (`leaks`), if the attempt is right."""
    kept: bool = False
    """Whether the attempt is a positive."""
    dropped: str | None = None
    """The reason why a right attempt is not a positive."""
    uses: int = 0
    """The number of attempts that continue this one."""

    @property
    def passed(self) -> bool:
        """Whether the verifier gave the full score."""
        return self.score == 1.0

    @property
    def depth(self) -> int:
        """The length of the chain of attempts that ends with this one. Samples of the profile do not count."""
        before = self.parent.depth if self.parent is not None else 0
        return before + (self.ordinal is not None)

    def chain(self) -> list[dict[str, Any]]:
        """Return the chain of attempts that ends with this one, for the records. The first attempt comes first."""
        columns = ("strategy", "completion", "extracted", "reason", "feedback", "reflection")
        link = {name: getattr(self, name) for name in columns}
        return [*(self.parent.chain() if self.parent is not None else []), link]


@dataclass
class HardRow:
    """A hard row, with all attempts at it."""

    row: Row
    index: int
    """The number of the row among the hard rows, from 0."""
    known: Mixture
    """The posterior of the pass rate, from the profile."""
    difficulty: str
    """The most probable band of the pass rate, such as `dead` or `hard` (`PassRateBand`)."""
    suspicion: float
    """The probability that the row is at fault."""
    is_program: bool
    is_guessable: bool
    """Whether the answer can be guessed: an option, yes or no, or a small whole number."""
    language: Language
    origin: str
    """`hard` if selection left the row out. `selected` if it selected the row or put it in reserve."""
    failures: list[Attempt] = field(default_factory=list)
    """The failed samples of the profile."""
    attempts: list[Attempt] = field(default_factory=list)
    """The attempts of this stage, in order."""

    @property
    def positives(self) -> int:
        """The number of positives."""
        return sum(attempt.kept for attempt in self.attempts)

    def is_beyond_chance(self, attempt: Attempt) -> bool:
        """Return False if a right attempt may be a guess.

        If the answer of the row can be guessed, two conditions must be met. At least two attempts on the bare prompt
        are right. The probability of at least this number of right attempts, at the row's pass rate, is at most
        CHANCE_LEVEL.
        """
        if not self.is_guessable:
            return True
        tries = [*(other for other in self.attempts if not other.context), attempt]
        right = sum(each.passed for each in tries)
        return right >= 2 and tail_probability(right, len(tries), self.known.mean) <= CHANCE_LEVEL


def is_guessable(row: Row) -> bool:
    """Return whether the answer of a row can be guessed: an option, yes or no, or a small whole number."""
    gold = row["gold"]
    if gold is None or judges_solutions(resolve(row["verifier"])):
        return False
    whole = _WHOLE.fullmatch(gold.strip())
    is_small = whole is not None and abs(int(whole[1])) <= MOST_GUESSED
    return is_small or not has_open_answer(LabelledProblem(row["id"], gold, verifier=row["verifier"]))


def tail_probability(right: int, tries: int, rate: float) -> float:
    """Return the probability of at least `right` successes in `tries` tries with the success rate `rate`."""
    wrong = 1 - rate
    return math.fsum(math.comb(tries, n) * rate**n * wrong ** (tries - n) for n in range(right, tries + 1))


def read_hard_rows(inputs: Mapping[str, Path], config: SynthConfig) -> list[HardRow]:
    """Return the hard rows in the order of their tables, with failed samples of the profile.

    These are all rows of `hard`, and the rows of `selected` and `reserve` that never passed.
    """
    profile = {row_key(summary): summary for summary in read_table(inputs["profile"], ProfileRow)}
    suspicion = {
        (record["row_id"], record["source"], record["source_row"]): record["suspicion"] or 0.0
        for record in read_table(inputs["suspicion"], SuspicionRow, ["row_id", "source", "source_row", "suspicion"])
    }
    rows: dict[RowKey, HardRow] = {}
    for origin, row in _candidates(inputs, profile):
        summary, key = profile[row_key(row)], row_key(row)
        known = Mixture.from_components(summary["posterior"])
        if known is None or suspicion.get(key, 0.0) > MAX_SUSPICION or key in rows:
            continue
        rows[key] = HardRow(
            row=row,
            index=len(rows),
            known=known,
            difficulty=summary["decision"] or "undecided",
            suspicion=suspicion.get(key, 0.0),
            is_program=judges_solutions(resolve(row["verifier"])),
            is_guessable=is_guessable(row),
            language=config.language or ("zh" if language_of(row["prompt"]) == "zh" else "en"),
            origin=origin,
        )
    _add_failures(rows, inputs["samples"])
    return list(rows.values())


def _candidates(inputs: Mapping[str, Path], profile: Mapping[RowKey, ProfileRow]) -> Iterator[tuple[str, Row]]:
    for row in read_rows(inputs["hard"]):
        yield "hard", row
    for name in ("selected", "reserve"):
        for row in read_rows(inputs[name]) if name in inputs else ():
            if not profile[row_key(row)]["passes"]:
                yield "selected", row


def _add_failures(rows: Mapping[RowKey, HardRow], samples: Path) -> None:
    """Add failed samples to each row: one for each answer, the most frequent answers first."""
    failed: dict[RowKey, dict[str | None, Attempt]] = {}
    counts: dict[RowKey, Counter[str | None]] = {}
    for sample in read_table(samples, SampleRow):
        key = row_key(sample)
        if key not in rows or sample["score"] is None or sample["score"] == 1.0:
            continue
        answer = sample["extracted"]
        counts.setdefault(key, Counter())[answer] += 1
        failed.setdefault(key, {}).setdefault(answer, _as_attempt(sample))
    for key, by_answer in failed.items():
        # Attempts without an answer are the least useful, so they come last.
        order = sorted(by_answer, key=lambda answer: (answer is None, -counts[key][answer], answer or ""))
        rows[key].failures = [by_answer[answer] for answer in order[:FAILURES]]


def _as_attempt(sample: SampleRow) -> Attempt:
    return Attempt(
        strategy="profile",
        completion=sample["completion"],
        token_ids=tuple(sample["token_ids"]),
        is_cut=sample["finish_reason"] != "stop",
        score=sample["score"],
        reason=sample["reason"],
        extracted=sample["extracted"],
        evidence=orjson.loads(sample["evidence"]),
        temperature=sample["temperature"],
    )
