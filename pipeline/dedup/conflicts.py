"""What the flag `conflicting_labels` says: the golds of one problem that has several, and the texts of its rows."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any

from truegold.pipeline.tables.ledger import FlagRecord, flag_record
from truegold.pipeline.tables.reasons import CONFLICTING_LABELS
from truegold.pipeline.tables.rows import RowReference

CONFIDENCE = 0.9
"""How sure it is that one of the labels of copies is wrong; now and then both are right, in other words."""
REWORDED_CONFIDENCE = 0.1
"""The same of rewordings: of 17 read, 2 were right, and the others siblings that read alike."""
MAX_SHOWN = 10
"""Golds and rows named in a conflict's evidence: ten thousand copies of one prompt must not each list ten thousand."""
GOLD_CHARS = 200
"""Characters shown of each gold."""
PROMPT_CHARS = 1_000
"""Characters shown of each prompt."""


@dataclass(slots=True)
class GoldCounts:
    """How often each gold of one problem occurs; golds that are the same go by the way that is written first."""

    _counts: dict[Hashable, tuple[str, int]] = field(default_factory=dict)
    others: int = 0
    """Rows whose gold is none of the first MAX_SHOWN."""

    def add(self, gold: str | None, key: Hashable) -> None:
        """Count the gold of one more row; `key` is equal for golds that are the same."""
        if key in self._counts:
            text, count = self._counts[key]
            self._counts[key] = (text, count + 1)
        elif len(self._counts) < MAX_SHOWN:
            self._counts[key] = ((gold or "")[:GOLD_CHARS], 1)
        else:
            self.others += 1

    def by_text(self) -> dict[str, int]:
        """Return the counts by the text of the gold."""
        counts: dict[str, int] = {}
        for text, count in self._counts.values():
            counts[text] = counts.get(text, 0) + count
        return counts


def shown_text(prompt: str, gold: str | None) -> dict[str, str]:
    """Return a row as the evidence of a flag shows it."""
    return {"prompt": prompt[:PROMPT_CHARS], "gold": (gold or "")[:GOLD_CHARS]}


@dataclass(slots=True)
class Conflict:
    """The rows of one problem and their golds, duplicates included."""

    golds: GoldCounts = field(default_factory=GoldCounts)
    rows: list[str | int] = field(default_factory=list)
    texts: list[dict[str, str]] = field(default_factory=list)
    """Prompt and gold of each of `rows`, so that a reader of one row's flag sees what it contradicts."""

    def add(self, name: str | int, prompt: str, gold: str | None, key: int) -> None:
        """Take in one more row, which is called `name`; `key` is equal for golds that are the same."""
        if len(self.rows) < MAX_SHOWN:
            self.rows.append(name)
            self.texts.append(shown_text(prompt, gold))
        self.golds.add(gold, key)

    def evidence(self) -> dict[str, Any]:
        """Return what the flags of its rows say."""
        evidence: dict[str, Any] = {"golds": self.golds.by_text(), "rows": self.rows, "texts": self.texts}
        return {**evidence, "rows_with_other_golds": self.golds.others} if self.golds.others else evidence


def conflict_flag(
    row: RowReference, evidence: Mapping[str, Any], are_copies: bool, is_settled: bool = False
) -> FlagRecord:
    """Return the flag of a row in a conflict; only one between copies that no better source settles holds rows back."""
    confidence = CONFIDENCE if are_copies else REWORDED_CONFIDENCE
    blocks = are_copies and not is_settled
    return flag_record(
        row, CONFLICTING_LABELS, detector="dedup", evidence=evidence, confidence=confidence, blocks=blocks
    )
