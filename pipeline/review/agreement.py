"""How far two reviewers agree on the rows that both have decided about: Cohen's kappa.

             bob keep  bob drop
    ada keep       20         5      agreed 35 of 50 = .70; by chance 25/50 * 30/50 + 25/50 * 20/50 = .50
    ada drop       10        15      kappa = (.70 - .50) / (1 - .50) = .40

Cohen 1960, "A coefficient of agreement for nominal scales", eq. 1. The categories are keep, drop, fix and unsure; two
fixes with different golds are no agreement, and count as one category when chance is reckoned.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from truegold.pipeline.review.decisions import Decision, DecisionKind, Decisions


@dataclass(frozen=True)
class Agreement:
    """How far two reviewers agree."""

    reviewers: tuple[str, str]
    pairs: int
    """Rows that both have decided about as they were the same."""
    agreed: int
    kappa: float | None
    """None where both give one and the same word throughout: nothing is left that chance would not explain."""
    blind: bool
    """Whether the second of them could never see what the first had decided."""


def measure_agreement(decisions: Decisions) -> list[Agreement]:
    """Return the agreement of each two reviewers who share a row, those with most shared rows first."""
    pairs: dict[tuple[str, str], list[tuple[Decision, Decision]]] = {}
    for row_decisions in decisions.values():
        for index, first in enumerate(row_decisions):
            for second in row_decisions[index + 1 :]:
                if first.seen is None or second.seen is None or first.seen == second.seen:
                    pairs.setdefault((first.reviewer, second.reviewer), []).append((first, second))
    measured = [_measure(reviewers, shared) for reviewers, shared in pairs.items()]
    return sorted(measured, key=lambda agreement: (-agreement.pairs, agreement.reviewers))


def _measure(reviewers: tuple[str, str], pairs: Sequence[tuple[Decision, Decision]]) -> Agreement:
    agreed = sum(_agree(first, second) for first, second in pairs)
    return Agreement(
        reviewers,
        len(pairs),
        agreed,
        cohen_kappa([first.decision for first, _ in pairs], [second.decision for _, second in pairs], agreed),
        all(max(pair, key=lambda decision: decision.decided_at).blind for pair in pairs),
    )


def _agree(first: Decision, second: Decision) -> bool:
    same_gold = (first.gold or "").strip() == (second.gold or "").strip()
    return first.decision == second.decision and (first.decision is not DecisionKind.FIX or same_gold)


def cohen_kappa(
    first: Sequence[DecisionKind], second: Sequence[DecisionKind], agreed: int | None = None
) -> float | None:
    """Return Cohen's kappa of two lists of words about the same rows; None where chance explains everything.

    `agreed` is how many words agree, where equal words need not.
    """
    rows = len(first)
    if agreed is None:
        agreed = sum(one_word == other for one_word, other in zip(first, second, strict=True))
    counts_first, counts_second = Counter(first), Counter(second)
    by_chance = sum(counts_first[kind] * counts_second[kind] for kind in counts_first) / rows**2
    if by_chance >= 1:
        return None
    return (agreed / rows - by_chance) / (1 - by_chance)
