"""Where the records of each source went: the same sum as `accounting`, source by source, in the order of the data.

maths    1,000 records = 12 rejected + 188 dropped + 700 selected + 100 held out
scraped    400 records = 400 dropped (390 exact_duplicate by dedup): nothing of it is left
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import orjson
import polars as pl

from truegold.pipeline.running.stage_table import ROW_STAGES
from truegold.pipeline.tables.ledger import DROPPED_FILE
from truegold.pipeline.tables.run_files import RunFiles


@dataclass(frozen=True)
class SourceAccount:
    """The records of one source; `records` is the sum of the other counts."""

    source: str
    records: int
    rejected: int
    dropped: int
    """The rows that a stage dropped, or that selection left in reserve."""
    left: int
    """The training rows at the end: those selected, or what a shorter run has left."""
    heldout: int
    losses: tuple[tuple[str, str, int], ...]
    """(stage, reason, rows) of what did not reach the end, the largest first."""


def count_by_source(files: RunFiles) -> tuple[SourceAccount, ...]:
    """Return the account of every source; none where all rows are of one, of which the whole sum tells."""
    names = list(files.records["ingest"]["report"]["facts"].get("sources", ()))
    if len(names) < 2:
        return ()
    losses: dict[str, Counter[tuple[str, str]]] = {name: Counter() for name in names}
    for (source, reason), rows in _count_rejects(files).items():
        losses[source]["ingest", reason] += rows
    stages = [stage for stage in (*ROW_STAGES, "select") if stage in files]
    for stage, dropped in files.tables(DROPPED_FILE, stages):
        counted = dropped.group_by("source", "drop_reason").agg(pl.len()).collect(engine="streaming")
        for source, reason, rows in counted.iter_rows():
            losses[source][stage, str(reason)] += rows
    ends = _ends(files)
    return tuple(_account(name, losses[name], ends) for name in names)


def _account(name: str, losses: Counter[tuple[str, str]], ends: Mapping[tuple[str, bool], int]) -> SourceAccount:
    rejected = sum(rows for (stage, _), rows in losses.items() if stage == "ingest")
    left, heldout = ends.get((name, False), 0), ends.get((name, True), 0)
    ordered = sorted(losses.items(), key=lambda entry: (-entry[1], entry[0]))
    return SourceAccount(
        name,
        records=losses.total() + left + heldout,
        rejected=rejected,
        dropped=losses.total() - rejected,
        left=left,
        heldout=heldout,
        losses=tuple((stage, reason, rows) for (stage, reason), rows in ordered),
    )


def _count_rejects(files: RunFiles) -> Counter[tuple[str, str]]:
    """Return the rejected records by source and reason; they are read one by one, since each has its whole line."""
    path = files.path("ingest", "rejects.jsonl")
    if path is None:
        return Counter()
    with path.open("rb") as lines:
        return Counter((reject["source"], reject["reason"]) for reject in map(orjson.loads, lines))


def _ends(files: RunFiles) -> dict[tuple[str, bool], int]:
    """Return the rows at the end by source and whether they are held out."""
    if "select" in files:
        last, names = "select", ["selected.parquet", "heldout.parquet"]
    else:
        last = [stage for stage in ("ingest", *ROW_STAGES) if stage in files][-1]
        names = ["rows.parquet"]
    ends: Counter[tuple[str, bool]] = Counter()
    for table in (files.table(last, name) for name in names):
        if table is None:
            continue
        is_heldout = (pl.col("split") == "heldout").alias("is_heldout")
        counted = table.group_by("source", is_heldout).agg(pl.len()).collect(engine="streaming")
        for source, held, rows in counted.iter_rows():
            ends[source, held] += rows
    return ends


def describe_losses(account: SourceAccount, shown: int = 3) -> str:
    """Say in a few words why records of a source did not reach the end."""
    return ", ".join(f"{rows:,} {reason} ({stage})" for stage, reason, rows in account.losses[:shown])
