"""Stage `select`: chooses the rows whose groups are expected to teach, in the demanded proportions.

A group is the samples of one row in a training step. It teaches only if it has right and wrong samples.

    the row                                            its table, or the reason of its drop
    68 % of the row's groups are expected to teach ->  selected.parquet
    9 %, because most would be all right           ->  dropped, `too_easy`
    flagged by the profile                         ->  dropped, `held_for_review`
    above `max_rows`, the target or the quotas     ->  reserve.parquet in order of worth, `in_reserve`
    never passed, above `zero_share`               ->  at the end of the reserve, `in_reserve`
    the same, and a rule advises against the row   ->  dropped, `over_zero_share`

Held-out rows are never selected; they go to heldout.parquet. The selected and the held-out rows are also in
after.parquet, to be profiled again after training. Rows that are too hard, and rows above `zero_share`, need right
completions from synthesis, and are also in hard.parquet. Dropped rows are in dropped.parquet with their reason
(`DropReason`).

The stage `take_rows` takes every row. It replaces `select` if the rows have no profile: with `profile: null`, and in
training on dialogues (`train.turns`), because single answers do not show a dialogue's worth.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa

from truegold.pipeline.config.base import StageConfig
from truegold.pipeline.config.stages import SelectConfig
from truegold.pipeline.running.progress import Progress
from truegold.pipeline.running.stage import SCRATCH, StageReport, stage_function
from truegold.pipeline.select.candidates import OUTCOMES, Judgement, remedy_for_none, teaching_facts
from truegold.pipeline.select.choice import Choice, choose
from truegold.pipeline.select.columns import Array
from truegold.pipeline.select.ordered import OrderedRows
from truegold.pipeline.tables.ledger import Ledger
from truegold.pipeline.tables.reasons import DropReason
from truegold.pipeline.tables.rows import (
    PROFILE_SCHEMA,
    ROW_SCHEMA,
    Row,
    TableWriter,
    read_batches,
    read_rows,
    write_rows,
)
from truegold.verifiers import InputError

SELECTED_SCHEMA = pa.schema(
    [
        *ROW_SCHEMA,
        pa.field("pass_rate", pa.float64()),
        PROFILE_SCHEMA.field("posterior"),
        pa.field("suspicion", pa.float64()),
    ]
)
"""The columns of selected.parquet and reserve.parquet; `pass_rate` is the mean of the posterior."""


BLOCK_ROWS = 2**14
"""A block ends at this number of rows, or at BLOCK_BYTES."""
BLOCK_BYTES = 64 * 2**20
OVER_ZERO_SHARE = len(OUTCOMES)
"""The outcome of rows that go into the reserve because of `zero_share`."""
SELECTED = OVER_ZERO_SHARE + 1


@stage_function(version=9)
def select(inputs: Mapping[str, Path], config: SelectConfig, out_dir: Path, progress: Progress) -> StageReport:
    """Select from the profile's `rows` by its tables `profile`, `flags` and `suspicion`.

    If `settle` ran, its tables `open_flags`, `decided` and `checks` are used, too. Raises InputError if no row remains,
    or too few groups teach, unless `config.may_be_empty`.
    """
    progress.start("selecting")
    judgement = Judgement(inputs, config)
    outcomes = judgement.outcomes()
    candidates = judgement.candidates(outcomes)
    choice = choose(candidates, config)
    # Rows that never passed and have an advising flag nearly always have a wrong gold.
    over = choice.over_zero_share
    is_flagged = judgement.is_flagged[over]
    reserve = np.concatenate([choice.reserve, over[~is_flagged]])
    outcomes[choice.selected] = SELECTED
    outcomes[choice.reserve] = OUTCOMES.index(DropReason.IN_RESERVE)
    outcomes[over[~is_flagged]] = OVER_ZERO_SHARE
    outcomes[over[is_flagged]] = OUTCOMES.index(DropReason.OVER_ZERO_SHARE)
    counts = _write_tables(inputs["rows"], judgement, outcomes, choice.selected, reserve, out_dir)
    selected, rows_in, heldout = choice.selected, len(judgement.rows), int(judgement.rows.is_heldout.sum())
    cut = pl.scan_parquet(inputs["profile"]).select("truncated", "split")
    if not len(selected) and not config.may_be_empty:
        training = cut.filter(pl.col("split") != "heldout").collect()["truncated"].to_list()
        raise _nothing_left(training, rows_in, counts)
    facts = {
        **(teaching_facts(judgement, selected, cut, config) if len(selected) else {}),
        "mean_pass_rate": round(float(judgement.mean[judgement.rows.known[selected]].mean()), 4)
        if len(selected)
        else None,
        "heldout": heldout,
        "reserve": len(reserve),
        "demands": [asdict(fulfilment) for fulfilment in choice.fulfilments],
        "label_checks": {**asdict(judgement.record), "is_trusted": judgement.record.is_trusted},
    }
    for line in _misses(choice, int(is_flagged.sum()), config):
        progress.note(line)
    return StageReport(rows_in, len(selected), {**counts, "heldout": heldout}, facts)


def _write_tables(
    rows: Path, judgement: Judgement, outcomes: Array, selected: Array, reserve: Array, out_dir: Path
) -> dict[str, int]:
    scratch = out_dir / SCRATCH
    with (
        Ledger(out_dir, "select") as ledger,
        TableWriter(out_dir / "heldout.parquet", ROW_SCHEMA) as heldout,
        TableWriter(out_dir / "hard.parquet", ROW_SCHEMA) as hard,
        TableWriter(out_dir / "after.parquet", ROW_SCHEMA) as after,
        OrderedRows(scratch / "selected", selected, len(outcomes)) as in_selection,
        OrderedRows(scratch / "reserve", reserve, len(outcomes)) as in_reserve,
    ):
        for first, block in _read_blocks(rows):
            in_selection.add(first, block)
            in_reserve.add(first, block)
            others = np.flatnonzero(outcomes[first : first + len(block)] != SELECTED)
            for row_index, row in zip((first + others).tolist(), block.take(pa.array(others)).to_pylist(), strict=True):
                outcome = outcomes[row_index]
                if judgement.rows.is_heldout[row_index]:
                    heldout.write(row)
                    continue
                _drop(ledger, row, row_index, outcome, judgement)
                if outcome in HARD:
                    hard.write(row)
        with TableWriter(out_dir / "selected.parquet", SELECTED_SCHEMA) as writer:
            for row_index, row in in_selection:
                writer.write(_record(row, row_index, judgement))
                after.write(row)
        write_rows(
            out_dir / "reserve.parquet",
            (_record(row, row_index, judgement) for row_index, row in in_reserve),
            SELECTED_SCHEMA,
        )
        heldout.close()
        for row in read_rows(out_dir / "heldout.parquet"):
            after.write(row)
    return ledger.counts


HARD = {OUTCOMES.index(DropReason.TOO_HARD), OUTCOMES.index(DropReason.OVER_ZERO_SHARE), OVER_ZERO_SHARE}
"""The outcomes of rows that need right completions from synthesis."""


def _read_blocks(path: Path) -> Iterator[tuple[int, pa.Table]]:
    """Yield the rows of a table in larger blocks, each with the index of its first row."""
    first, size = 0, 0
    batches: list[pa.RecordBatch] = []
    for batch in read_batches(path):
        batches.append(batch)
        size += batch.nbytes
        if sum(map(len, batches)) >= BLOCK_ROWS or size >= BLOCK_BYTES:
            block = pa.Table.from_batches(batches)
            yield first, block
            first, size, batches = first + len(block), 0, []
    if batches:
        yield first, pa.Table.from_batches(batches)


def _drop(ledger: Ledger, row: Row, row_index: int, outcome: int, judgement: Judgement) -> None:
    is_over = outcome in (OVER_ZERO_SHARE, OUTCOMES.index(DropReason.OVER_ZERO_SHARE))
    rows = judgement.rows
    known = int(rows.known[row_index])
    ledger.drop(
        row,
        DropReason.IN_RESERVE if outcome == OVER_ZERO_SHARE else OUTCOMES[outcome],
        passes=int(rows.passes[row_index]),
        judged=int(rows.judged[row_index]),
        expected_pass_rate=round(float(judgement.mean[known]), 4) if known else None,
        teaching_share=round(float(judgement.teaching[known]), 4) if known else None,
        flags=judgement.blocked_by.get(row_index),
        **({"over_zero_share": True} if is_over else {}),
    )


def _record(row: Row, row_index: int, judgement: Judgement) -> Row:
    known = judgement.rows.known[row_index]
    return {
        **row,
        "pass_rate": float(judgement.mean[known]),
        "posterior": judgement.components[known],
        "suspicion": float(judgement.suspicion[row_index]),
    }


def _misses(choice: Choice, flagged: int, config: SelectConfig) -> list[str]:
    """Return a sentence for each demand that is not met, and one if the demands keep the selection small. `flagged` is
    the number of rows above `zero_share` that rules advise against."""
    selected = len(choice.selected)
    lines = [
        f"{fulfilment.name}: {fulfilment.rows:,} of {selected:,} selected rows, not {fulfilment.share:.1%}; there are "
        f"{fulfilment.available:,} such rows"
        for fulfilment in choice.fulfilments
        if not fulfilment.is_met
    ]
    if config.max_rows is None and len(choice.reserve) > selected:
        used_up = [each.name for each in choice.fulfilments if 0 < each.available == each.rows]
        reason = f": all rows of {' and '.join(used_up)} are selected" if used_up else ""
        lines.append(
            f"the shares leave {len(choice.reserve):,} of {selected + len(choice.reserve):,} rows in reserve{reason}; "
            "with select.max_rows shares are met as far as rows allow"
        )
    if over := len(choice.over_zero_share):
        lines.append(
            f"{over:,} rows that never passed are above the limit select.zero_share ({config.zero_share:g}): "
            f"{over - flagged:,} are at the end of the reserve, {flagged:,} that rules advise against are dropped"
        )
    return lines


def _nothing_left(cut: list[float], rows_in: int, counts: Mapping[str, int]) -> InputError:
    why = ", ".join(f"{count} {key.removeprefix('drop:')}" for key, count in sorted(counts.items()))
    return InputError(
        f"None of {rows_in} profiled rows is left to train on ({why or 'there were no training rows'}).",
        remedy_for_none(cut, {key.removeprefix("drop:"): count for key, count in counts.items()}, rows_in),
    )


class TakeRowsConfig(StageConfig):
    """The settings of `take_rows`: none."""


@stage_function(version=1)
def take_rows(inputs: Mapping[str, Path], config: TakeRowsConfig, out_dir: Path, progress: Progress) -> StageReport:
    """Write training rows as selected.parquet, held-out rows as heldout.parquet, and an empty reserve.parquet."""
    progress.start("taking rows")
    unknown = dict.fromkeys(SELECTED_SCHEMA.names)
    counts = {"selected": 0, "heldout": 0}
    with (
        TableWriter(out_dir / "selected.parquet", SELECTED_SCHEMA) as selected,
        TableWriter(out_dir / "heldout.parquet", ROW_SCHEMA) as heldout,
    ):
        for row in read_rows(inputs["rows"]):
            if row["split"] == "heldout":
                heldout.write(row)
                counts["heldout"] += 1
            else:
                selected.write({**unknown, **row})
                counts["selected"] += 1
    write_rows(out_dir / "reserve.parquet", [], SELECTED_SCHEMA)
    return StageReport(sum(counts.values()), counts["selected"], {"heldout": counts["heldout"]})
