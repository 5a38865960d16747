"""Measures a review: the numbers of decided and waiting rows, the precision of flags, and the agreement of reviewers.

    waiting    12 rows: proof 7, conflicting_labels 5
    decided    45 rows: 30 keep, 10 drop, 5 fix

    flag       right of all decided [95 %]      right of those drawn at random      now       should be
    proof      3 of 9, .33 [.12, .65]           2 of 8, .25 [.07, .59]              blocks    advises

A flag is right if its row was dropped or fixed, and wrong if its row was kept. Unsure decisions are not counted.
Reviewers begin with the most suspicious rows. These are more often faulty than other rows with the same flag. So only
rows that were drawn at random decide whether a flag should hold rows back (`settle.tiers`).

The agreement of two reviewers is Cohen's kappa (1960, "A coefficient of agreement for nominal scales", eq. 1):

             bob keep  bob drop
    ada keep       20         5      agreed: 35/50 = .70      by chance: 25/50 * 30/50 + 25/50 * 20/50 = .50
    ada drop       10        15      kappa = (.70 - .50) / (1 - .50) = .40

The categories are keep, drop, fix and unsure. Two fixes with different golds do not agree. For the agreement by chance,
all fixes are one category.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from operator import eq
from pathlib import Path

import polars as pl

from truegold.pipeline.config.stages import SettleConfig
from truegold.pipeline.review.consensus import AgreedDecision
from truegold.pipeline.review.decisions import Decision, DecisionKind, Decisions
from truegold.pipeline.review.reviewed_run import ReviewedRun
from truegold.pipeline.tables.ledger import DROPPED_FILE, FlagRecord
from truegold.pipeline.tables.measured_flags import BLOCKING_PRECISION
from truegold.pipeline.tables.reasons import CONFLICTING_LABELS, LabelCheck
from truegold.pipeline.tables.rows import KEY, RowKey, row_key
from truegold.pipeline.tables.run_files import HELD_REASONS
from truegold.pipeline.text.templates import templates_in
from truegold.verifiers.rates import wilson_interval


@dataclass(frozen=True)
class Agreement:
    """The agreement of two reviewers."""

    reviewers: tuple[str, str]
    pairs: int
    """The number of rows that both reviewers decided about, with the same content for both."""
    agreed: int
    kappa: float | None
    """Cohen's kappa. None if all decisions of both are of one kind, because chance then explains everything."""
    blind: bool
    """True if, for every row, the reviewer who decided later could not see the earlier decision."""


def measure_agreement(decisions: Decisions) -> list[Agreement]:
    """Return the agreement of each pair of reviewers. The pair with the most common rows comes first."""
    pairs: dict[tuple[str, str], list[tuple[Decision, Decision]]] = {}
    for row_decisions in decisions.values():
        for first, second in combinations(row_decisions, 2):
            if first.seen is None or second.seen is None or first.seen == second.seen:
                pairs.setdefault((first.reviewer, second.reviewer), []).append((first, second))
    measured = [
        Agreement(
            reviewers,
            len(shared),
            agreed := sum(_agree(first, second) for first, second in shared),
            cohen_kappa([first.decision for first, _ in shared], [second.decision for _, second in shared], agreed),
            all(max(pair, key=lambda decision: decision.decided_at).blind for pair in shared),
        )
        for reviewers, shared in pairs.items()
    ]
    return sorted(measured, key=lambda agreement: (-agreement.pairs, agreement.reviewers))


def _agree(first: Decision, second: Decision) -> bool:
    same_gold = (first.gold or "").strip() == (second.gold or "").strip()
    return first.decision == second.decision and (first.decision is not DecisionKind.FIX or same_gold)


def cohen_kappa(
    first: Sequence[DecisionKind], second: Sequence[DecisionKind], agreed: int | None = None
) -> float | None:
    """Return Cohen's kappa of two lists of decisions about the same rows, or None if chance explains everything.

    `agreed` is the number of rows on which both agree. By default, it is the number of equal decisions.
    """
    rows = len(first)
    if agreed is None:
        agreed = sum(map(eq, first, second))
    counts_first, counts_second = Counter(first), Counter(second)
    by_chance = sum(counts_first[kind] * counts_second[kind] for kind in counts_first) / rows**2
    if by_chance >= 1:
        return None
    return (agreed / rows - by_chance) / (1 - by_chance)


@dataclass(frozen=True)
class FlagPrecision:
    """The precision of the flags of one reason, with Wilson's 95 % intervals."""

    reason: str
    detector: str
    blocks: bool
    """True if these flags hold rows back."""
    right: int
    decided: int
    low: float
    high: float
    random_right: int
    """The number of right flags among the rows drawn at random."""
    random_decided: int
    random_low: float | None
    """The lower end of the interval for rows drawn at random, or None if there are no such rows."""
    random_high: float | None

    def tier(self, min_decisions: int) -> bool | None:
        """Return whether such flags should hold rows back, or None if too few rows were drawn at random."""
        if self.random_decided < min_decisions:
            return None
        return self.random_right / self.random_decided > BLOCKING_PRECISION


def measure_flags(
    flags: Iterable[FlagRecord], decisions: Mapping[RowKey, AgreedDecision], conflicts: Iterable[Sequence[RowKey]] = ()
) -> list[FlagPrecision]:
    """Return the precision of each reason on decided rows, in the order of the reasons.

    `conflicts` are the rows of each label conflict. The flags of a conflict are right unless all of its rows were kept.
    So the flag of a kept row may be right.
    """
    kept = {key for key, agreed in decisions.items() if not agreed.faults_row}
    all_kept = {key for group in conflicts if kept.issuperset(group) for key in group}
    counts: Counter[tuple[str, bool, bool]] = Counter()
    """The number of flags by (reason, is right, was drawn at random)."""
    detectors: dict[str, tuple[str, bool]] = {}
    counted: set[tuple[RowKey, str]] = set()
    for flag in flags:
        key, reason = row_key(flag), flag["reason"]
        agreed = decisions.get(key)
        if agreed is None or (key, reason) in counted:
            continue
        counted.add((key, reason))
        detector, blocks = detectors.get(reason, (flag["detector"], False))
        detectors[reason] = detector, blocks or flag["blocks"]
        is_right = key not in all_kept if reason == CONFLICTING_LABELS and flag["blocks"] else agreed.faults_row
        counts[reason, is_right, agreed.is_random] += 1
    return [_precision(reason, *detectors[reason], counts) for reason in sorted(detectors)]


def _precision(reason: str, detector: str, blocks: bool, counts: Mapping[tuple[str, bool, bool], int]) -> FlagPrecision:
    random_right, random_wrong = counts[reason, True, True], counts[reason, False, True]
    right = random_right + counts[reason, True, False]
    decided = right + random_wrong + counts[reason, False, False]
    low, high = wilson_interval(right, decided)
    drawn = random_right + random_wrong
    random_low, random_high = wilson_interval(random_right, drawn) if drawn else (None, None)
    return FlagPrecision(
        reason=reason,
        detector=detector,
        blocks=blocks,
        right=right,
        decided=decided,
        low=low,
        high=high,
        random_right=random_right,
        random_decided=drawn,
        random_low=random_low,
        random_high=random_high,
    )


def label_checks(
    decisions: Decisions, agreed: Mapping[RowKey, AgreedDecision], flagged: Collection[RowKey]
) -> Iterator[LabelCheck]:
    """Yield a check for each unflagged row that was drawn at random, if its decision has `passes` and `suspicion`."""
    checked: set[str] = set()
    for key, decided in agreed.items():
        known = next(
            (each for each in decisions[key[0]] if each.is_random and None not in (each.passes, each.suspicion)), None
        )
        if known is None or key in flagged or key[0] in checked:
            continue
        assert known.passes is not None and known.suspicion is not None
        checked.add(key[0])
        yield {"id": key[0], "passes": known.passes, "suspicion": known.suspicion, "at_fault": decided.faults_row}


def count_waiting(run: ReviewedRun) -> Counter[str]:
    """Return the number of rows, by reason, that the last curation held back and that wait for a decision."""
    waiting: Counter[str] = Counter()
    review = run.weigh()
    kept = {key for key, agreed in review.agreed.items() if agreed.kind is DecisionKind.KEEP}
    settled = (review.agreed.keys() - review.unpayable.keys()) | review.settlements.keys()
    for _, dropped in run.files.tables(DROPPED_FILE, ("settle", "select")):
        held = dropped.filter(pl.col("drop_reason").is_in(HELD_REASONS)).select(*KEY, "drop_reason").collect()
        for *key, reason in held.iter_rows():
            if tuple(key) not in (settled - kept if reason == "keep_unpayable" else settled):
                waiting[reason] += 1
    return waiting


def status_lines(run: ReviewedRun) -> Iterator[str]:
    """Yield the lines of the status: decisions, waiting rows, precision of flags, agreement."""
    decisions, review = run.decisions(), run.weigh()
    min_decisions = SettleConfig().min_decisions
    text = templates_in(Path(__file__).parent).get_template("status.txt.jinja")
    lines = text.render(
        waiting=count_waiting(run),
        decided=Counter(str(agreed.kind) for agreed in review.agreed.values()),
        disagree=sum(standing.disagree for standing in review.standings.values()),
        stale=sum(bool(standing.stale) for standing in review.standings.values()),
        gone=len(decisions.keys() - {key[0] for key in review.standings}),
        agreements=measure_agreement(decisions),
        measured=measure_flags(run.decided_flags(decisions), review.agreed, review.conflicts),
        tiers={None: f"needs {min_decisions} rows", True: "blocks", False: "advises"},
        min_decisions=min_decisions,
    )
    yield from lines.rstrip("\n").split("\n")
