"""Where every row went, counted from the tables themselves and not from what the stages say about it.

    records read  =  rejects by reason  +  drops by stage and reason  +  selected  +  held out  +  reserve

Every stage must have let pass or dropped each row that came in. One that has not is a bug of truegold, and raises.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import orjson
import polars as pl

from truegold.pipeline.running.stage_table import ROW_STAGES
from truegold.pipeline.tables.ledger import DROPPED_FILE, LEDGER_FILE
from truegold.pipeline.tables.reasons import DropReason
from truegold.pipeline.tables.run_files import RunFiles


@dataclass(frozen=True)
class Passage:
    """How many rows went through one stage."""

    stage: str
    rows_in: int
    rows_out: int
    lost: Mapping[str, int]
    """The rows that did not go on, by reason."""


@dataclass(frozen=True)
class End:
    """Where rows ended, and how many."""

    kind: str
    """`reject`, `drop`, `reserve`, `heldout`, `selected` or `left`."""
    stage: str
    reason: str
    rows: int


@dataclass(frozen=True)
class Account:
    """The whole sum: `records_in` equals the sum over `ends`."""

    records_in: int
    passages: tuple[Passage, ...]
    ends: tuple[End, ...] = field(default=())

    def total(self, kind: str) -> int:
        """Return the rows that ended in this way."""
        return sum(end.rows for end in self.ends if end.kind == kind)


def count_rows_by_end(files: RunFiles) -> Account:
    """Count where every record of the run ended. Raises RuntimeError naming the first stage that does not add up."""
    passages = [_ingest(files)]
    for stage in ROW_STAGES:
        if stage in files:
            passages.append(_passage(files, stage, passages[-1].rows_out, files.count(stage, "rows.parquet")))
    ends = _losses(passages)
    if "select" in files:
        selected, heldout = files.count("select", "selected.parquet"), files.count("select", "heldout.parquet")
        passages.append(_passage(files, "select", passages[-1].rows_out, selected + heldout))
        ends = _losses(passages)
        reserve = sum(end.rows for end in ends if end.kind == "reserve")
        if (waiting := files.count("select", "reserve.parquet")) != reserve:
            raise _does_not_add_up(
                "select", f"{reserve:,} rows dropped as {DropReason.IN_RESERVE}, {waiting:,} in the reserve"
            )
        ends += [End("heldout", "select", "held out", heldout), End("selected", "select", "selected", selected)]
    else:
        ends.append(End("left", passages[-1].stage, "left", passages[-1].rows_out))
    if "profile_after" in files:
        _passage(
            files, "profile_after", files.count("select", "after.parquet"), files.count("profile_after", "rows.parquet")
        )
    account = Account(passages[0].rows_in, tuple(passages), tuple(ends))
    if (total := sum(end.rows for end in ends)) != account.records_in:
        raise _does_not_add_up("the run", f"{account.records_in:,} records came in, {total:,} ended somewhere")
    return account


def count_rejects(path: Path | None) -> dict[str, int]:
    """Return the number of rejected records by reason; none where there is no such file."""
    counts: Counter[str] = Counter()
    if path is not None:
        with path.open("rb") as lines:
            counts.update(orjson.loads(line)["reason"] for line in lines)
    return dict(sorted(counts.items()))


def _ingest(files: RunFiles) -> Passage:
    """Hold what ingest says it read against what it wrote: its input is the only one that is no table of the run."""
    rejects = count_rejects(files.path("ingest", "rejects.jsonl"))
    records_in = int(files.records["ingest"]["report"]["rows_in"])
    rows = files.count("ingest", "rows.parquet")
    return _checked(Passage("ingest", records_in, rows, rejects))


def _passage(files: RunFiles, stage: str, rows_in: int, rows_out: int) -> Passage:
    dropped = _counts(files.table(stage, DROPPED_FILE), "drop_reason")
    ledger = files.table(stage, LEDGER_FILE)
    recorded = _counts(None if ledger is None else ledger.filter(pl.col("action") == "drop"), "reason")
    if dropped != recorded:
        raise _does_not_add_up(stage, f"its ledger records the drops {recorded}, its dropped rows are {dropped}")
    return _checked(Passage(stage, rows_in, rows_out, dropped))


def _checked(passage: Passage) -> Passage:
    lost = sum(passage.lost.values())
    if passage.rows_in != passage.rows_out + lost:
        sums = f"{passage.rows_in:,} rows came in, {passage.rows_out:,} went on and {lost:,} were dropped"
        raise _does_not_add_up(passage.stage, sums)
    return passage


def _does_not_add_up(stage: str, sums: str) -> RuntimeError:
    return RuntimeError(f"The rows of stage {stage!r} do not add up: {sums}. This is a bug in truegold.")


def _counts(table: pl.LazyFrame | None, column: str) -> dict[str, int]:
    if table is None:
        return {}
    counted = table.group_by(column).agg(pl.len()).sort(column).collect(engine="streaming")
    return {str(reason): int(count) for reason, count in counted.iter_rows()}


def _losses(passages: list[Passage]) -> list[End]:
    return [
        End(_kind(passage.stage, reason), passage.stage, reason, rows)
        for passage in passages
        for reason, rows in passage.lost.items()
    ]


def _kind(stage: str, reason: str) -> str:
    if stage == "ingest":
        return "reject"
    return "reserve" if (stage, reason) == ("select", DropReason.IN_RESERVE) else "drop"
