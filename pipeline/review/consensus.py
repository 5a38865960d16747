"""Weighs what all reviewers say of the rows of a run, before any of it is applied.

    ada keep, bob keep       agreed: keep
    ada fix 16, bob unsure   agreed: fix 16
    ada keep, bob drop       they disagree
    ada keep, of other text  stale: the row has changed since

A decision about one side of a conflict of labels settles the others, too:

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

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from truegold.pipeline.near.gold_keys import gold_key
from truegold.pipeline.review.decisions import Decision, DecisionKind, Decisions
from truegold.pipeline.review.gold_reading import unpayable_because
from truegold.pipeline.tables.ledger import FlagRecord
from truegold.pipeline.tables.reasons import CONFLICTING_LABELS
from truegold.pipeline.tables.rows import Row, RowKey, content_key, row_key
from truegold.verifiers.decimal_commas import fix_with_points


@dataclass(frozen=True)
class AgreedDecision:
    """The decision on which the reviewers who are sure agree."""

    kind: DecisionKind
    gold: str | None
    """The right gold, of a fix."""
    reviewers: tuple[str, ...]
    note: str | None
    is_random: bool
    """Whether the row was drawn at random by one of them."""

    @property
    def faults_row(self) -> bool:
        """Whether the row was at fault: dropped, or given another gold."""
        return self.kind is not DecisionKind.KEEP


@dataclass(frozen=True)
class Standing:
    """All decisions about a row, and the one that they agree on."""

    agreed: AgreedDecision | None
    """None if no reviewer is sure, or where those who are disagree."""
    current: tuple[Decision, ...]
    """The decisions about the row as it is."""
    stale: tuple[Decision, ...]
    """Decisions about what the row was."""

    @property
    def disagree(self) -> bool:
        """Whether reviewers contradict each other."""
        return self.agreed is None and any(decision.decision is not DecisionKind.UNSURE for decision in self.current)


UNDECIDED = Standing(None, (), ())


def weigh_decisions(row: Mapping[str, Any], decisions: Sequence[Decision]) -> Standing:
    """Return what the standing decisions of all reviewers come to for a row as it is now."""
    key = content_key(row)
    current = tuple(decision for decision in decisions if decision.seen in (None, key))
    stale = tuple(decision for decision in decisions if decision.seen not in (None, key))
    sure = [decision for decision in current if decision.decision is not DecisionKind.UNSURE]
    golds = [decision.gold and fix_with_points(decision.gold, row["verifier_args"]) for decision in sure]
    if len({(decision.decision, gold) for decision, gold in zip(sure, golds, strict=True)}) != 1:
        return Standing(None, current, stale)
    agreed = AgreedDecision(
        kind=sure[0].decision,
        gold=golds[0],
        reviewers=tuple(decision.reviewer for decision in sure),
        note=next((decision.note for decision in sure if decision.note), None),
        is_random=any(decision.is_random for decision in sure),
    )
    return Standing(agreed, current, stale)


class Effect(StrEnum):
    """The effect of a decision about another row on a row; the value is the reason in the ledger."""

    FREED = "conflict_settled"
    OVERRULED = "conflict_overruled"
    DUPLICATE = "settled_duplicate"


@dataclass(frozen=True)
class Settlement:
    """The effect of a decision about one side of a conflict on another side."""

    effect: Effect
    decided: str
    """The row that was decided about, as `source:row`; of a duplicate the row that stays."""
    reviewers: tuple[str, ...]
    gold: str | None
    """The gold of the problem, or None if it is only known which one is wrong."""

    def evidence(self) -> dict[str, Any]:
        """Return what the ledger tells of it."""
        return {"decided": self.decided, "reviewers": self.reviewers, "gold": self.gold}


@dataclass(frozen=True)
class WeighedReview:
    """The decisions about the rows of a run, weighed."""

    standings: Mapping[RowKey, Standing]
    """The decisions about each row that has any."""
    conflicts: tuple[tuple[RowKey, ...], ...]
    """The rows of each conflict of labels that holds them back."""
    settlements: Mapping[RowKey, Settlement]
    """The effects of decisions about one side of these on another one."""
    unpayable: Mapping[RowKey, FlagRecord]
    """The reasons why verifiers accept no answer for the golds that some rows were given."""

    @property
    def agreed(self) -> dict[RowKey, AgreedDecision]:
        """The rows about which the reviewers who are sure agree."""
        return {key: standing.agreed for key, standing in self.standings.items() if standing.agreed is not None}


def weigh_review(rows: Iterable[Row], flags: Iterable[FlagRecord], decisions: Decisions) -> WeighedReview:
    """Return what decisions come to for rows as they stand before they are applied.

    Rows and flags that are neither decided about nor in a conflict may be left out.
    """
    if not decisions:
        return WeighedReview({}, (), {}, {})
    conflicts = tuple(map(tuple, _conflict_groups(flags)))
    in_conflict = {key for group in conflicts for key in group}
    standings: dict[RowKey, Standing] = {}
    members: dict[RowKey, Row] = {}
    payable: dict[RowKey, AgreedDecision] = {}
    unpayable: dict[RowKey, FlagRecord] = {}
    for row in rows:
        key = row_key(row)
        if row["id"] in decisions:
            standings[key] = weigh_decisions(row, decisions[row["id"]])
            agreed = standings[key].agreed
            if agreed and agreed.gold is not None and (fault := unpayable_because(row, agreed.gold)) is not None:
                unpayable[key] = fault
            elif agreed:
                payable[key] = agreed
        if key in in_conflict:
            members[key] = row
    settlements: dict[RowKey, Settlement] = {}
    for group in conflicts:
        settlements |= _settle_conflict([members[key] for key in group if key in members], payable)
    return WeighedReview(standings, conflicts, settlements, unpayable)


def _conflict_groups(flags: Iterable[FlagRecord]) -> list[list[RowKey]]:
    """Return the rows of each conflict that holds its rows back. All flags of one conflict have the same evidence."""
    groups: dict[str, list[RowKey]] = {}
    for flag in flags:
        if flag["reason"] == CONFLICTING_LABELS and flag["blocks"]:
            groups.setdefault(flag["evidence"], []).append(row_key(flag))
    return list(groups.values())


def _settle_conflict(
    members: Sequence[Row], decisions: Mapping[RowKey, AgreedDecision]
) -> Iterator[tuple[RowKey, Settlement]]:
    """Yield what decisions about some rows of a conflict do to its others."""
    decided = [(row, decisions[row_key(row)]) for row in members if row_key(row) in decisions]
    undecided = [row for row in members if row_key(row) not in decisions]
    vouched: dict[int, tuple[Row, AgreedDecision, str | None]] = {}
    """The golds that a reviewer stands for, with the first row and decision that do."""
    stays: dict[int, Row] = {}
    """The row that stays of each gold: one with this gold from the start before one that was given it."""
    for row, agreed in decided:
        if agreed.kind is not DecisionKind.DROP:
            gold = agreed.gold if agreed.kind is DecisionKind.FIX else row["gold"]
            vouched.setdefault(gold_key(gold), (row, agreed, gold))
            if agreed.kind is not DecisionKind.FIX:
                stays.setdefault(gold_key(gold), row)
    if not vouched:
        if decided and len(undecided) == 1:
            row, agreed = decided[0]
            yield row_key(undecided[0]), Settlement(Effect.FREED, _name(row), agreed.reviewers, None)
        return
    for row in undecided:
        key = gold_key(row["gold"])
        effect = Effect.FREED if key in vouched else Effect.OVERRULED
        other, agreed, gold = vouched[key] if key in vouched else next(iter(vouched.values()))
        yield row_key(row), Settlement(effect, _name(other), agreed.reviewers, gold)
        if key in vouched:
            stays.setdefault(key, row)
    for row, agreed in decided:
        if agreed.kind is DecisionKind.FIX:
            twin = stays.setdefault(gold_key(agreed.gold), row)
            if twin is not row:
                yield row_key(row), Settlement(Effect.DUPLICATE, _name(twin), agreed.reviewers, agreed.gold)


def _name(row: Row) -> str:
    return f"{row['source']}:{row['source_row']}"
