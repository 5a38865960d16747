"""Combines the decisions of all reviewers about each row, before they are applied.

    decisions                          combined
    ada keep, bob keep                 keep
    ada fix 16, bob unsure             fix 16
    ada keep, bob drop                 disagreement
    ada keep, before the row changed   stale

Copies of one problem with different golds are in conflict, and are held back. A decision about one copy also settles
the others:

    row                       decision    effect
    "What is 6*7?"  gold 42   keep        kept
    "What is 6*7?"  gold 48   none        dropped as `conflict_overruled`, since the right gold is 42

    "What is 6*7?"  gold 48   drop        dropped
    "What is 6*7?"  gold 42   none        no longer held back by the conflict (`conflict_settled`)

    "What is 6*7?"  gold 48   fix 42      dropped as `settled_duplicate`, since it now equals the other row
    "What is 6*7?"  gold 42   none        no longer held back by the conflict (`conflict_settled`)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from truegold.pipeline.near.gold_keys import gold_key
from truegold.pipeline.review.decisions import Decision, DecisionKind, Decisions
from truegold.pipeline.review.gold_reading import faults_of_fix
from truegold.pipeline.tables.ledger import FlagRecord
from truegold.pipeline.tables.reasons import CONFLICTING_LABELS
from truegold.pipeline.tables.rows import Row, RowKey, content_key, row_key, row_place
from truegold.verifiers.decimal_commas import fix_with_points


@dataclass(frozen=True)
class AgreedDecision:
    """A decision about a row on which all reviewers agree, except those who are unsure."""

    kind: DecisionKind
    gold: str | None
    """The new gold of a fix."""
    reviewers: tuple[str, ...]
    note: str | None
    is_random: bool
    """True if the row was drawn at random for one of these reviewers."""

    @property
    def faults_row(self) -> bool:
        """True if the row was faulty: it is dropped or gets another gold."""
        return self.kind is not DecisionKind.KEEP


@dataclass(frozen=True)
class Standing:
    """All reviewers' decisions about a row, and the decision on which they agree."""

    agreed: AgreedDecision | None
    """The agreed decision, or None if all reviewers are unsure or if they contradict each other."""
    current: tuple[Decision, ...]
    """The decisions about the row's current content."""
    stale: tuple[Decision, ...]
    """The decisions about earlier content of the row."""

    @property
    def disagree(self) -> bool:
        """True if reviewers contradict each other."""
        return self.agreed is None and any(decision.decision is not DecisionKind.UNSURE for decision in self.current)


UNDECIDED = Standing(None, (), ())


def weigh_decisions(row: Mapping[str, Any], decisions: Sequence[Decision]) -> Standing:
    """Return the combined decisions of all reviewers about a row's current content."""
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
    """The effect of a decision on another row of its conflict. The value is the reason in the ledger."""

    FREED = "conflict_settled"
    OVERRULED = "conflict_overruled"
    DUPLICATE = "settled_duplicate"


@dataclass(frozen=True)
class Settlement:
    """An effect on a row, with the decision that caused it."""

    effect: Effect
    decided: str
    """The decided row, as `source:row`. For a duplicate, the kept row."""
    reviewers: tuple[str, ...]
    gold: str | None
    """The right gold of the problem, or None if only a wrong gold is known."""

    def evidence(self) -> dict[str, Any]:
        """Return the evidence for the ledger."""
        return {"decided": self.decided, "reviewers": self.reviewers, "gold": self.gold}


@dataclass(frozen=True)
class WeighedReview:
    """The combined decisions about the rows of a run."""

    standings: Mapping[RowKey, Standing]
    """The combined decisions of each row that has decisions."""
    conflicts: tuple[tuple[RowKey, ...], ...]
    """The rows of each conflict that holds rows back."""
    settlements: Mapping[RowKey, Settlement]
    """The effects of decisions on other rows of these conflicts."""
    unpayable: Mapping[RowKey, FlagRecord]
    """The flag of each row whose new gold no answer can match."""
    contradicted: Mapping[RowKey, str]
    """The places and reviewers of fixes that the row's worked solution contradicts."""

    @property
    def agreed(self) -> dict[RowKey, AgreedDecision]:
        """The agreed decisions by row."""
        return {key: standing.agreed for key, standing in self.standings.items() if standing.agreed is not None}


def weigh_review(rows: Iterable[Row], flags: Iterable[FlagRecord], decisions: Decisions) -> WeighedReview:
    """Return the combined decisions about rows. `rows` have the content before decisions are applied.

    Rows without a decision or a conflict, and other flags than conflicts, may be left out.
    """
    if not decisions:
        return WeighedReview({}, (), {}, {}, {})
    conflicts = tuple(map(tuple, _conflict_groups(flags)))
    in_conflict = {key for group in conflicts for key in group}
    standings: dict[RowKey, Standing] = {}
    members: dict[RowKey, Row] = {}
    payable: dict[RowKey, AgreedDecision] = {}
    unpayable: dict[RowKey, FlagRecord] = {}
    contradicted: dict[RowKey, str] = {}
    for row in rows:
        key = row_key(row)
        if row["id"] in decisions:
            standings[key] = weigh_decisions(row, decisions[row["id"]])
            agreed = standings[key].agreed
            if agreed is None:
                pass
            elif agreed.gold is None:
                payable[key] = agreed
            elif (fault := faults_of_fix(row, agreed.gold)).unpayable is not None:
                unpayable[key] = fault.unpayable
            else:
                payable[key] = agreed
                if fault.solution_fails:
                    contradicted[key] = f"{row_place(row)}, by {', '.join(agreed.reviewers)}"
        if key in in_conflict:
            members[key] = row
    settlements: dict[RowKey, Settlement] = {}
    for group in conflicts:
        settlements |= _settle_conflict([members[key] for key in group if key in members], payable)
    return WeighedReview(standings, conflicts, settlements, unpayable, contradicted)


def _conflict_groups(flags: Iterable[FlagRecord]) -> list[list[RowKey]]:
    """Return the rows of each conflict that holds rows back. All flags of a conflict have the same evidence."""
    groups: dict[str, list[RowKey]] = {}
    for flag in flags:
        if flag["reason"] == CONFLICTING_LABELS and flag["blocks"]:
            groups.setdefault(flag["evidence"], []).append(row_key(flag))
    return list(groups.values())


def _settle_conflict(
    members: Sequence[Row], decisions: Mapping[RowKey, AgreedDecision]
) -> Iterator[tuple[RowKey, Settlement]]:
    decided = [(row, decisions[row_key(row)]) for row in members if row_key(row) in decisions]
    undecided = [row for row in members if row_key(row) not in decisions]
    vouched: dict[int, tuple[Row, AgreedDecision, str | None]] = {}
    """The confirmed golds by gold key, each with the first row, decision and gold that confirm it."""
    stays: dict[int, Row] = {}
    """The row to keep for each gold. A row that had the gold from the start comes before a row that was fixed."""
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
