"""What was decided about a run, and what still waits, as lines of text.

waiting for a decision    12 rows are held back: proof 7, conflicting_labels 5
decided                   45 rows: 30 keep, 10 drop, 5 fix
flag       right of decided [95 %]          of these at random          now       by random draws
proof      3 of 9, .33 [.12, .65]           2 of 8, .25 [.07, .59]      blocks    advises
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import polars as pl

from truegold.pipeline.config.stages import SettleConfig
from truegold.pipeline.review.agreement import Agreement, measure_agreement
from truegold.pipeline.review.decisions import load_decisions
from truegold.pipeline.review.precision import FlagPrecision
from truegold.pipeline.review.run import ReviewedRun
from truegold.pipeline.tables.run_files import HELD_REASONS
from truegold.pipeline.text.shown import visible


def count_waiting(run: ReviewedRun) -> Counter[str]:
    """Return how many rows the last curation held back that nobody has settled since, by the flags that hold them."""
    waiting: Counter[str] = Counter()
    review = run.weigh()
    settled = {key for key, standing in review.standings.items() if standing.word and key not in review.unpayable}
    settled |= review.settlements.keys()
    for stage in ("settle", "select"):
        dropped = run.files.table(stage, "dropped.parquet")
        if dropped is None:
            continue
        held = dropped.filter(pl.col("drop_reason").is_in(HELD_REASONS))
        columns = ["id", "source", "source_row", "drop_reason"]
        for row_id, source, source_row, reason in held.select(columns).collect().iter_rows():
            if (row_id, source, source_row) not in settled:
                waiting[reason] += 1
    return waiting


def status_lines(run: ReviewedRun) -> Iterator[str]:
    """Yield what was decided, what waits, how often flags were right, and how far reviewers agree."""
    decisions = load_decisions(run.folder)
    review = run.weigh()
    waiting = count_waiting(run)
    reasons = ", ".join(f"{visible(reason)} {count:,}" for reason, count in waiting.most_common())
    yield f"waiting   {waiting.total():,} rows{f': {reasons}' if reasons else ''}"
    words = Counter(str(standing.word.kind) for standing in review.standings.values() if standing.word)
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in words.most_common())
    yield f"decided   {words.total():,} rows{f': {kinds}' if kinds else ''}"
    disagree = sum(standing.disagree for standing in review.standings.values())
    stale = sum(bool(standing.stale) for standing in review.standings.values())
    gone = len(decisions.keys() - {key[0] for key in review.standings})
    if disagree:
        yield f"disputed  {disagree:,} rows, about which reviewers disagree"
    if stale or gone:
        yield f"stale     {stale:,} rows that have changed since, {gone:,} that are not in the data any more"
    yield from map(_agreement_line, measure_agreement(decisions))
    measured = review.measure_flags(run.decided_flags(decisions))
    if measured:
        yield ""
        yield f"{'flag':<28} {'right of decided':<28} {'of these, at random':<28} {'now':<8} by random draws"
    yield from map(_precision_line, measured)


def _agreement_line(agreement: Agreement) -> str:
    kappa = "no kappa: one and the same word" if agreement.kappa is None else f"kappa {agreement.kappa:.2f}"
    names = " and ".join(map(visible, agreement.reviewers))
    blind = "blind" if agreement.blind else "not blind"
    return f"agreement {names}: {agreement.agreed} of {agreement.pairs} rows, {kappa} ({blind})"


def _precision_line(entry: FlagPrecision) -> str:
    tier = entry.tier(SettleConfig().min_decisions)
    tiers = {None: f"needs {SettleConfig().min_decisions} rows", True: "blocks", False: "advises"}
    seen = _share(entry.right, entry.decided, entry.low, entry.high)
    drawn = _share(entry.random_right, entry.random_decided, entry.random_low, entry.random_high)
    return f"{visible(entry.reason):<28} {seen:<28} {drawn:<28} {tiers[entry.blocks]:<8} {tiers[tier]}"


def _share(right: int, decided: int, low: float | None, high: float | None) -> str:
    if low is None or high is None:
        return "none"
    return f"{right} of {decided}, {right / decided:.2f} [{low:.2f}, {high:.2f}]"
