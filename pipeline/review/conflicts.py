"""What a word about one side of a conflict of labels means for the others.

    "What is 6*7?"  gold 42  ->  keep                 stays
    "What is 6*7?"  gold 48      nobody has decided   goes as `conflict_overruled`: the problem has another gold

    "What is 6*7?"  gold 48  ->  drop                 goes
    "What is 6*7?"  gold 42      nobody has decided   is held back by the conflict no longer: `conflict_settled`

    "What is 6*7?"  gold 48  ->  fix 42               goes as `settled_duplicate`: the other row says the same now
    "What is 6*7?"  gold 42      nobody has decided   is held back by the conflict no longer: `conflict_settled`

Only conflicts between copies of one problem count, which hold their rows back; rewordings with other golds are mostly
siblings that read alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from truegold.pipeline.near.copies import gold_key
from truegold.pipeline.review.decisions import DecisionKind
from truegold.pipeline.review.words import Word
from truegold.pipeline.tables.ledger import FlagRecord
from truegold.pipeline.tables.reasons import CONFLICTING_LABELS
from truegold.pipeline.tables.rows import Row, RowKey, row_key


class Effect(StrEnum):
    """What becomes of a row by a word about another one; the value is the reason in the ledger."""

    FREED = "conflict_settled"
    OVERRULED = "conflict_overruled"
    DUPLICATE = "settled_duplicate"


@dataclass(frozen=True)
class Settlement:
    """What a word about one side of a conflict does to another side."""

    effect: Effect
    decided: str
    """The row that was decided about, as `source:row`; of a duplicate the row that stays."""
    reviewers: tuple[str, ...]
    gold: str | None
    """The gold of the problem; None where it is only known which one is wrong."""

    def evidence(self) -> dict[str, Any]:
        """Return what the ledger tells of it."""
        return {"decided": self.decided, "reviewers": self.reviewers, "gold": self.gold}


def conflict_groups(flags: Iterable[FlagRecord]) -> list[list[RowKey]]:
    """Return the rows of each conflict that holds its rows back. All flags of one conflict have the same evidence."""
    groups: dict[str, list[RowKey]] = {}
    for flag in flags:
        if flag["reason"] == CONFLICTING_LABELS and flag["blocks"]:
            groups.setdefault(flag["evidence"], []).append(row_key(flag))
    return list(groups.values())


def settle_conflicts(
    groups: Iterable[Sequence[RowKey]], rows: Mapping[RowKey, Row], words: Mapping[RowKey, Word]
) -> dict[RowKey, Settlement]:
    """Return what words about some rows of each conflict do to its others; `rows` are those that are in the data."""
    settlements: dict[RowKey, Settlement] = {}
    for group in groups:
        members = [rows[key] for key in group if key in rows]
        if any(row_key(row) in words for row in members):
            settlements |= _settle_conflict(members, words)
    return settlements


def _settle_conflict(members: Sequence[Row], words: Mapping[RowKey, Word]) -> dict[RowKey, Settlement]:
    settlements: dict[RowKey, Settlement] = {}
    undecided = [row for row in members if row_key(row) not in words]
    vouched: dict[int, tuple[Row, Word, str | None]] = {}
    """The golds that a reviewer stands for, with the first row and word that do."""
    stays: dict[int, Row] = {}
    """The row that stays of each gold: one with this gold from the start before one that was given it."""
    fixed: list[tuple[Row, Word]] = []
    for row in members:
        word = words.get(row_key(row))
        if word is None or word.kind is DecisionKind.DROP:
            continue
        gold = word.gold if word.kind is DecisionKind.FIX else row["gold"]
        vouched.setdefault(gold_key(gold), (row, word, gold))
        if word.kind is DecisionKind.FIX:
            fixed.append((row, word))
        else:
            stays.setdefault(gold_key(gold), row)
    if not vouched:
        dropped = [row for row in members if row_key(row) in words]
        if len(undecided) == 1:
            word = words[row_key(dropped[0])]
            settlements[row_key(undecided[0])] = Settlement(Effect.FREED, _name(dropped[0]), word.reviewers, None)
        return settlements
    for row in undecided:
        decided = vouched.get(gold_key(row["gold"]))
        if decided is None:
            other, word, gold = next(iter(vouched.values()))
            settlements[row_key(row)] = Settlement(Effect.OVERRULED, _name(other), word.reviewers, gold)
        else:
            other, word, gold = decided
            settlements[row_key(row)] = Settlement(Effect.FREED, _name(other), word.reviewers, gold)
            stays.setdefault(gold_key(row["gold"]), row)
    for row, word in fixed:
        twin = stays.setdefault(gold_key(word.gold), row)
        if twin is not row:
            settlements[row_key(row)] = Settlement(Effect.DUPLICATE, _name(twin), word.reviewers, word.gold)
    return settlements


def _name(row: Row) -> str:
    return f"{row['source']}:{row['source_row']}"
