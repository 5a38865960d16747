"""Chooses the problems worth training on: those whose pass rate says a group of samples will carry signal.

    pass rate 0.375, no flag            ->  selected.parquet
    pass rate 1.0                       ->  dropped, `all_pass`
    pass rate 0.0                       ->  up to `zero_share` of the selection, the rest dropped, `no_pass`
    flagged by the profile              ->  dropped, `held_for_review`
    more rows than `max_rows`           ->  reserve.parquet in the order they would be taken, `over_max_rows`

Rows of the split `heldout` are never selected; they go to heldout.parquet. after.parquet holds the selected and the
held-out rows, to be profiled again after training. Nothing is lost: dropped rows stay in dropped.parquet with their
reason.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa

from truegold.pipeline.config.stages import SelectConfig
from truegold.pipeline.ledger import FlagRecord, Ledger
from truegold.pipeline.profile.pass_rates import ProfileRow
from truegold.pipeline.rows import ROW_SCHEMA, Row, RowKey, TableWriter, read_rows, read_table, row_key, write_rows
from truegold.pipeline.running.progress import Progress
from truegold.pipeline.running.stage import StageReport, stage_function
from truegold.pipeline.select.teaching import remedy, teaching_facts
from truegold.verifiers import InputError

OVER_MAX_ROWS = "over_max_rows"
"""The drop reason of rows that wait in the reserve: good ones, more than were asked for."""

SELECTED_SCHEMA = ROW_SCHEMA.append(pa.field("pass_rate", pa.float64()))
"""The columns of selected.parquet and reserve.parquet."""


@stage_function(version=2)
def select(inputs: Mapping[str, Path], config: SelectConfig, out_dir: Path, progress: Progress) -> StageReport:
    """Select from the profile's `rows`, by its tables `profile` and `flags`.

    Raises InputError where nothing is left, or nothing that teaches.
    """
    progress.start("selecting")
    profile = {row_key(summary): summary for summary in read_table(inputs["profile"], ProfileRow)}
    blocking_reasons: dict[RowKey, list[str]] = {}
    for flag in read_table(inputs["flags"], FlagRecord):
        if flag["blocks"]:
            blocking_reasons.setdefault(row_key(flag), []).append(flag["reason"])

    rows_in = heldout_rows = 0
    usable: list[Row] = []
    zeros: list[Row] = []
    with (
        Ledger(out_dir, "select") as ledger,
        TableWriter(out_dir / "heldout.parquet", ROW_SCHEMA) as heldout,
    ):
        for row in read_rows(inputs["rows"]):
            rows_in += 1
            if row["split"] == "heldout":
                heldout.write(row)
                heldout_rows += 1
                continue
            summary = profile[row_key(row)]
            rate, flags = summary["pass_rate"], blocking_reasons.get(row_key(row))
            reason = _refusal(rate, flags, config)
            if reason is not None and reason != "no_pass":
                ledger.drop(row, reason, passes=summary["passes"], judged=summary["judged"], flags=flags)
            elif rate is not None:
                candidates = zeros if reason else usable
                candidates.append({**row, "pass_rate": rate})

        order = random.Random(config.seed)
        usable.sort(key=row_key)
        zeros.sort(key=row_key)
        order.shuffle(zeros)
        allowed_zeros = _zeros_allowed(len(usable), len(zeros), config)
        for row in zeros[allowed_zeros:]:
            ledger.drop(row, "no_pass", zero_share=config.zero_share)
        ordered = balanced_order(usable + zeros[:allowed_zeros], config.bands, order)
        selected, reserve = ordered[: config.max_rows], ordered[config.max_rows or len(ordered) :]
        for row in reserve:
            ledger.drop(row, OVER_MAX_ROWS, max_rows=config.max_rows, pass_rate=row["pass_rate"])
        write_rows(out_dir / "selected.parquet", selected, SELECTED_SCHEMA)
        write_rows(out_dir / "reserve.parquet", reserve, SELECTED_SCHEMA)
    with TableWriter(out_dir / "after.parquet", ROW_SCHEMA) as after:
        for row in selected:
            after.write({name: value for name, value in row.items() if name != "pass_rate"})
        for row in read_rows(out_dir / "heldout.parquet"):
            after.write(row)
    training_rows = [summary for summary in profile.values() if summary["split"] != "heldout"]
    if not selected:
        never, always = ledger.counts.get("drop:no_pass", 0), ledger.counts.get("drop:all_pass", 0)
        hint = remedy(training_rows, never >= always) if never + always else "Raise profile.samples."
        raise InputError(_nothing_left(rows_in, ledger.counts), hint)
    rates = [row["pass_rate"] for row in selected]
    teaching = teaching_facts([profile[row_key(row)] for row in selected], training_rows, config)
    facts = {
        **teaching,
        "mean_pass_rate": round(sum(rates) / len(rates), 4),
        "heldout": heldout_rows,
        "reserve": len(reserve),
    }
    return StageReport(rows_in, len(selected), {**ledger.counts, "heldout": heldout_rows}, facts)


def _refusal(rate: float | None, flags: list[str] | None, config: SelectConfig) -> str | None:
    """Return the reason why a row is not selected, or None."""
    if flags:
        return "held_for_review"
    if rate is None:
        return "unjudged"
    if rate == 1.0:
        return "all_pass"
    if rate == 0.0:
        return "no_pass"
    if not config.min_pass_rate < rate < config.max_pass_rate:
        return "outside_band"
    return None


def _zeros_allowed(usable: int, zeros: int, config: SelectConfig) -> int:
    """Return how many never-passed rows make up `zero_share` of a selection with `usable` others."""
    if config.zero_share >= 1.0:
        return zeros
    return min(zeros, int(usable * config.zero_share / (1 - config.zero_share)))


def balanced_order(rows: Sequence[Row], bands: int, order: random.Random) -> list[Row]:
    """Return all rows in an order whose every prefix takes from the pass-rate bands as evenly as they last.

    Band i holds pass rates in [i/bands, (i+1)/bands); within a band the order is random.
    """
    groups: list[list[Row]] = [[] for _ in range(bands)]
    for row in rows:
        groups[min(int(row["pass_rate"] * bands), bands - 1)].append(row)
    for group in groups:
        order.shuffle(group)
    ordered: list[Row] = []
    while any(groups):
        ordered.extend(group.pop() for group in groups if group)
    return ordered


def _nothing_left(rows_in: int, counts: Mapping[str, int]) -> str:
    why = ", ".join(f"{count} {key.removeprefix('drop:')}" for key, count in sorted(counts.items()))
    return f"None of {rows_in} profiled rows is left to train on ({why or 'there were no training rows'})."
