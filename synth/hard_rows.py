"""The rows that lack positives, with what the profile knows of them and what it saw fail.

They are those that selection has put on its list (`hard.parquet`) and the selected ones that never passed. A problem
that failed its sixteen samples in two ways brings both: answers that differ first, the most frequent one in front.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypedDict

import orjson

from truegold.pipeline.profile.drawing import SampleRow
from truegold.pipeline.rates.posterior import Beta
from truegold.pipeline.tables.profile import ProfileRow
from truegold.pipeline.tables.rows import Row, RowKey, read_rows, read_table, row_key
from truegold.pipeline.text.language import language_of
from truegold.synth.attempt import Attempt
from truegold.synth.config import Language, SynthConfig
from truegold.verifiers import judges_solutions, resolve

FAILURES = 4
"""Failed samples of a row that attempts go on from, at most."""
MAX_SUSPICION = 0.9
"""A row whose label is more probably at fault than this is left alone: a positive for it would be wrong."""


@dataclass
class HardRow:
    """A row that lacks positives, and all that has been tried."""

    row: Row
    index: int
    """Its number among the hard rows, from 0."""
    known: Beta
    """Its pass rate on the bare prompt, as far as the profile knows it."""
    difficulty: str
    """The profile's decision."""
    suspicion: float
    """How probable it is that its label is at fault."""
    is_program: bool
    language: Language
    origin: str
    """`hard` for a row that selection left out, `selected` for one that it took."""
    failures: list[Attempt] = field(default_factory=list)
    """Failed samples of the profile."""
    attempts: list[Attempt] = field(default_factory=list)
    """What was tried here, in order."""

    @property
    def positives(self) -> int:
        """The positives that were kept."""
        return sum(attempt.kept for attempt in self.attempts)


class _Suspicion(TypedDict):
    row_id: str
    source: str
    source_row: int
    suspicion: float | None


def read_hard_rows(inputs: Mapping[str, Path], config: SynthConfig) -> list[HardRow]:
    """Return the rows that lack positives, in the order of their tables: those of `hard`, and those of `selected` and
    `reserve` that never passed, with failed samples of the profile's `samples`."""
    profile = {row_key(summary): summary for summary in read_table(inputs["profile"], ProfileRow)}
    suspicion = {
        (record["row_id"], record["source"], record["source_row"]): record["suspicion"] or 0.0
        for record in read_table(inputs["suspicion"], _Suspicion, list(_Suspicion.__annotations__))
    }
    rows: dict[RowKey, HardRow] = {}
    for origin, row in _candidates(inputs, profile):
        summary, key = profile[row_key(row)], row_key(row)
        a, b = summary["posterior_a"], summary["posterior_b"]
        if a is None or b is None or suspicion.get(key, 0.0) > MAX_SUSPICION or key in rows:
            continue
        rows[key] = HardRow(
            row=row,
            index=len(rows),
            known=Beta(a, b),
            difficulty=summary["decision"] or "undecided",
            suspicion=suspicion.get(key, 0.0),
            is_program=judges_solutions(resolve(row["verifier"])),
            language=config.language or _language(row),
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


def _language(row: Row) -> Language:
    return "zh" if language_of(row["prompt"]) == "zh" else "en"


def _add_failures(rows: Mapping[RowKey, HardRow], samples: Path) -> None:
    """Give each row its failed samples: one of each answer, the most frequent answers first."""
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
        # An attempt without an answer tells least.
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
