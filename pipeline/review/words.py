"""What all reviewers together say of one row, as it stands now.

ada keep, bob keep       a word: keep
ada fix 16, bob unsure   a word: fix 16
ada keep, bob drop       they disagree
ada keep, of other text  stale: the row has changed since
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from truegold.pipeline.review.decisions import Decision, DecisionKind
from truegold.pipeline.tables.rows import content_key


@dataclass(frozen=True)
class Word:
    """What the reviewers who are sure agree on."""

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
    """What has been decided about a row."""

    word: Word | None
    """None where nobody is sure, or those who are disagree."""
    current: tuple[Decision, ...]
    """The decisions about the row as it is."""
    stale: tuple[Decision, ...]
    """Decisions about what the row was."""

    @property
    def disagree(self) -> bool:
        """Whether reviewers contradict each other."""
        return self.word is None and any(decision.decision is not DecisionKind.UNSURE for decision in self.current)


UNDECIDED = Standing(None, (), ())


def weigh_decisions(row: Mapping[str, Any], decisions: Sequence[Decision]) -> Standing:
    """Return what the standing decisions of all reviewers come to for a row as it is now."""
    if not decisions:
        return UNDECIDED
    key = content_key(row)
    current = tuple(decision for decision in decisions if decision.seen in (None, key))
    stale = tuple(decision for decision in decisions if decision.seen not in (None, key))
    sure = [decision for decision in current if decision.decision is not DecisionKind.UNSURE]
    if len({(decision.decision, decision.gold) for decision in sure}) != 1:
        return Standing(None, current, stale)
    first = sure[0]
    word = Word(
        first.decision,
        first.gold,
        tuple(decision.reviewer for decision in sure),
        next((decision.note for decision in sure if decision.note), None),
        any(decision.is_random for decision in sure),
    )
    return Standing(word, current, stale)
