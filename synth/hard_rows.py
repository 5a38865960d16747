"""Rows that lack positives (right completions to train on), with their failed samples and pass rates.

These are the rows on selection's list (`hard.parquet`) and the selected rows that never passed. Of a row's
failed samples, one is kept for each different answer, the most frequent answer first.
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
"""Maximum number of a row's failed samples that attempts may continue."""
MOST_GUESSED = 20
"""The largest whole number that counts as an answer that can be guessed."""
CHANCE_LEVEL = 0.05
"""The largest probability by chance of right attempts that count as more than guesses."""
_WHOLE = re.compile(r"\$?([-+]?\d{1,3})(?:\.0+)?\$?")
"""A small whole number: `12`, `$-3$`, `5.0`."""
MAX_SUSPICION = 0.9
"""Rows whose label is wrong with a higher probability are skipped: a positive would be wrong as well."""


@dataclass
class Attempt:
    """A sampled completion with its verdict. An attempt that continues another one is linked to it (`parent`)."""

    strategy: str
    completion: str
    token_ids: tuple[int, ...]
    is_cut: bool
    """Whether it ended for another reason than an end token."""
    score: float | None
    reason: str
    extracted: str | None
    evidence: Mapping[str, Any]
    temperature: float
    parent: Attempt | None = None
    """The failed attempt that it continues."""
    ordinal: int | None = None
    """Its number among the row's attempts, or None for a sample of the profile."""
    context: str = ""
    """The prompt that replaced the problem, or an empty text for the bare prompt."""
    guidance: str = ""
    """Texts of the context about the attempt before: feedback, reflection, gold."""
    reflection: str | None = None
    feedback: str | None = None
    logprobs: tuple[float, ...] = ()
    """Log-probabilities of token_ids with the context, as sampled."""
    bare_logprobs: tuple[float, ...] = ()
    """Log-probabilities of token_ids after the bare prompt, at temperature 1."""
    conditioned_logprobs: tuple[float, ...] = ()
    """Log-probabilities of token_ids with the context, at temperature 1."""
    tokens: int = 0
    """Sampled tokens, including those of the reflection."""
    leaks: dict[str, Any] = field(default_factory=dict)
    """The measurements of the guards, for a right attempt."""
    kept: bool = False
    """Whether it is a positive."""
    dropped: str | None = None
    """The reason that a right attempt is not a positive."""
    uses: int = 0
    """The number of attempts that continue it."""

    @property
    def passed(self) -> bool:
        """Whether its verifier gave it the full score."""
        return self.score == 1.0

    @property
    def depth(self) -> int:
        """The number of attempts of synthesis in its chain, including itself."""
        before = self.parent.depth if self.parent is not None else 0
        return before + (self.ordinal is not None)

    def chain(self) -> list[dict[str, Any]]:
        """Return its chain of attempts for the records, the first one first."""
        columns = ("strategy", "completion", "extracted", "reason", "feedback", "reflection")
        link = {name: getattr(self, name) for name in columns}
        return [*(self.parent.chain() if self.parent is not None else []), link]


@dataclass
class HardRow:
    """A row that lacks positives, with all attempts at it."""

    row: Row
    index: int
    """Its number among the hard rows, from 0."""
    known: Mixture
    """Its pass rate on the bare prompt, as estimated by the profile."""
    difficulty: str
    """The profile's decision."""
    suspicion: float
    """The probability that its label is wrong."""
    is_program: bool
    is_guessable: bool
    """Whether its answer is one of a few: an option, yes or no, a small whole number."""
    language: Language
    origin: str
    """`hard` for a row that selection left out, `selected` for one that it took."""
    failures: list[Attempt] = field(default_factory=list)
    """Failed samples of the profile."""
    attempts: list[Attempt] = field(default_factory=list)
    """The attempts of this stage, in order."""

    @property
    def positives(self) -> int:
        """The positives that were kept."""
        return sum(attempt.kept for attempt in self.attempts)

    def is_beyond_chance(self, attempt: Attempt) -> bool:
        """Return whether an answer that can be guessed was right more often than guessing explains.

        Other answers always count. An answer that can be guessed needs two right attempts on the bare prompt. In
        addition, the probability of at least this number of right attempts, at the row's pass rate, must be at most
        CHANCE_LEVEL.
        """
        if not self.is_guessable:
            return True
        tries = [*(other for other in self.attempts if not other.context), attempt]
        right = sum(each.passed for each in tries)
        return right >= 2 and tail_probability(right, len(tries), self.known.mean) <= CHANCE_LEVEL


def is_guessable(row: Row) -> bool:
    """Return whether a row's answer is one of a few, so that it can be guessed. Programs cannot be guessed."""
    gold = row["gold"]
    if gold is None or judges_solutions(resolve(row["verifier"])):
        return False
    whole = _WHOLE.fullmatch(gold.strip())
    is_small = whole is not None and abs(int(whole[1])) <= MOST_GUESSED
    return is_small or not has_open_answer(LabelledProblem(row["id"], gold, verifier=row["verifier"]))


def tail_probability(right: int, tries: int, rate: float) -> float:
    """Return the probability of at least `right` successes in `tries` tries with this success rate."""
    wrong = 1 - rate
    return math.fsum(math.comb(tries, n) * rate**n * wrong ** (tries - n) for n in range(right, tries + 1))


def read_hard_rows(inputs: Mapping[str, Path], config: SynthConfig) -> list[HardRow]:
    """Return the rows that lack positives, in the order of their tables, with failed samples of the profile.

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
        # An attempt without an answer is the least useful one.
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
