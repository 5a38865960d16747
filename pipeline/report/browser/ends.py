"""Every record of a run with where it ended, as it stood there, the most suspicious first.

    outcome "dropped", stage "dedup", reason "exact_duplicate"      in dropped.parquet of that stage
    outcome "held for review", stage "settle", reason "held_for_review"
    outcome "selected", stage "select", reason ""
    outcome "rejected", stage "ingest", reason "invalid_json"       never became a row: a line of rejects.jsonl

Tables are scanned; of more than MAX_RECORDS only the texts of those shown are read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson
import polars as pl

from truegold.pipeline.running.stage_table import ROW_STAGES
from truegold.pipeline.tables.ledger import DROPPED_FILE
from truegold.pipeline.tables.reasons import SUSPECT_GOLD, SUSPICION_FILE, DropReason
from truegold.pipeline.tables.rows import KEY, content_key
from truegold.pipeline.tables.run_files import AFTER_TRAINING, HELD_REASONS, RunFiles, fetch

MAX_RECORDS = 50_000
"""The records of one page: a browser holds so many. Of more, the most suspicious are shown, and others at random."""

TEXTS = ["prompt", "gold", "solution", "split", "domain", "verifier", "verifier_args"]
"""The columns of a row that the page shows."""

SUREST = 0.99
"""The probability of a flag that calls itself certain and that nobody has measured."""

TEXT_TYPES = dict.fromkeys([*TEXTS, "seen"], pl.String)

FLAGGING_STAGES = ("well_posed", "flag")
"""The stages whose rows `settle` gets, the last one that a run has."""

SUSPICION_STAGES = ("suspect", "profile", AFTER_TRAINING)
"""The stages that tell how likely a label is at fault; what a later one tells rests on more samples."""


@dataclass(frozen=True)
class Ends:
    """The records that are shown."""

    rows: pl.DataFrame
    """One line for each row: KEY, TEXTS, outcome, stage, reason, suspicion, tier, suggestion, fault, fault_by, seen."""
    rejects: tuple[dict[str, Any], ...]
    """The lines of rejects.jsonl."""
    records: int
    """All records of the run, shown or not."""

    @property
    def shown(self) -> int:
        """How many records are shown."""
        return self.rows.height + len(self.rejects)


def gather_ends(files: RunFiles, limit: int = MAX_RECORDS, suspected_by: RunFiles | None = None) -> Ends:
    """Return the records of a run, the most suspicious rows first.

    suspected_by: the stages that tell how suspicious rows are, where they are others than those that rows go through.
    """
    scan = scan_ends(files)
    total = scan.select(pl.len()).collect(engine="streaming").item()
    ranked = _rank(scan.select(*KEY, "outcome", "stage", "reason"), suspected_by or files, is_drawn=total > limit)
    top = ranked.head(limit).collect(engine="streaming")
    texts = scan.select(*KEY, *TEXTS).join(top.lazy().select(KEY), on=KEY, how="semi").collect(engine="streaming")
    rows = _as_reviewed(top.join(texts, on=KEY, how="left", maintain_order="left"), files)
    rejects, rejected = _rejects(files, limit - rows.height)
    return Ends(rows, rejects, total + rejected)


def before_decisions(files: RunFiles) -> tuple[RunFiles, RunFiles]:
    """Return a run as it was before `settle`, and all of it but what tells of reviewers' decisions."""
    if "settle" not in files:
        return files, files
    stages = list(files.folders)
    blind = files.only(name for name in stages if name not in ("settle", "select"))
    return files.only(stages[: stages.index("settle")]), blind


def find_end(
    files: RunFiles, suspected_by: RunFiles, row_id: str, source_key: tuple[str, int] | None
) -> pl.DataFrame | None:
    """Return the row with this id, one line as in `Ends.rows`, from this source if it is named; None without one."""
    named = scan_ends(files).filter(pl.col("id") == row_id).sort("source", "source_row").collect(engine="streaming")
    if source_key is not None:
        named = named.filter(pl.col("source") == source_key[0], pl.col("source_row") == source_key[1])
    if not named.height:
        return None
    return _as_reviewed(_rank(named.head(1).lazy(), suspected_by, is_drawn=False).collect(), files)


def table_of(row: Mapping[str, Any], files: RunFiles) -> str:
    """Return the table, under the run's folder, in which a row stands as the page shows it."""
    if row["seen"] is not None:
        return f"{next(name for name in FLAGGING_STAGES if name in files)}/rows.parquet"
    if row["outcome"] in ("dropped", "held for review", "in reserve"):
        return f"{row['stage']}/{DROPPED_FILE}"
    if row["stage"] == "select":
        return f"select/{'selected' if row['outcome'] == 'selected' else 'heldout'}.parquet"
    return f"{row['stage']}/rows.parquet"


def scan_ends(files: RunFiles) -> pl.LazyFrame:
    """Return every row once, as it was when it left or at the end."""
    frames = []
    for stage in (*ROW_STAGES, "select"):
        dropped = files.table(stage, DROPPED_FILE)
        if dropped is not None:
            reason = pl.col("drop_reason")
            outcome = (
                pl.when(reason.is_in(HELD_REASONS))
                .then(pl.lit("held for review"))
                .when((reason == str(DropReason.IN_RESERVE)) & pl.lit(stage == "select"))
                .then(pl.lit("in reserve"))
                .otherwise(pl.lit("dropped"))
            )
            frames.append(_as_end(dropped, outcome, stage, reason))
    if "select" in files:
        for name, words in (("selected", "selected"), ("heldout", "held out")):
            if (table := files.table("select", f"{name}.parquet")) is not None:
                frames.append(_as_end(table, pl.lit(words), "select", pl.lit("")))
    else:
        last = [stage for stage in ("ingest", *ROW_STAGES) if stage in files][-1]
        if (table := files.table(last, "rows.parquet")) is not None:
            is_heldout = pl.col("split") == "heldout"
            outcome = pl.when(is_heldout).then(pl.lit("held out")).otherwise(pl.lit("left"))
            frames.append(_as_end(table, outcome, last, pl.lit("")))
    return pl.concat(frames)


def _as_reviewed(rows: pl.DataFrame, files: RunFiles) -> pl.DataFrame:
    """Return the rows with `seen`, what tells the state of those that a reviewer may decide about (`content_key`).

    These are the rows that `settle` gets. They are shown as it gets them, before any reviewer has fixed their gold.
    """
    stage = next((name for name in FLAGGING_STAGES if name in files), None)
    table = None if stage is None else files.table(stage, "rows.parquet")
    if table is None:
        return rows.with_columns(seen=pl.lit(None, pl.String))
    flagged = fetch(table, rows, TEXTS)
    if not flagged:
        return rows.with_columns(seen=pl.lit(None, pl.String))
    seen = pl.DataFrame([{**row, "seen": content_key(row)} for row in flagged], schema_overrides=TEXT_TYPES)
    joined = rows.join(seen, on=KEY, how="left", suffix="_seen", maintain_order="left")
    has_seen = pl.col("seen").is_not_null()
    texts = [pl.when(has_seen).then(pl.col(f"{name}_seen")).otherwise(pl.col(name)).alias(name) for name in TEXTS]
    return joined.with_columns(texts).drop(f"{name}_seen" for name in TEXTS)


def _as_end(table: pl.LazyFrame, outcome: pl.Expr, stage: str, reason: pl.Expr) -> pl.LazyFrame:
    return table.select(*KEY, *TEXTS, outcome=outcome, stage=pl.lit(stage), reason=reason.fill_null("").cast(pl.String))


def _rank(ends: pl.LazyFrame, files: RunFiles, *, is_drawn: bool) -> pl.LazyFrame:
    """Return the rows with how likely each is at fault, the likeliest first, then flagged ones, then the others: in
    the order of the data, or where not all can be shown in that of their ids, which are hashes and draw at random.

    `fault` is the larger of what samples tell and of how often a flag is right that holds the row back.
    """
    ranked = ends.join(_suspicion(files), on=KEY, how="left").join(_blocking(files), on=KEY, how="left")
    samples, rule = pl.col("suspicion"), pl.col("rule")
    fault = pl.max_horizontal(samples, rule)
    by_rule = rule.is_not_null() & (rule > samples.fill_null(-1.0))
    fault_by = pl.when(by_rule).then(pl.col("rule_name")).when(samples.is_not_null()).then(pl.lit("samples"))
    ranked = ranked.with_columns(fault=fault, fault_by=fault_by).drop("rule", "rule_name")
    return ranked.sort(
        ["fault", "flagged", *(KEY if is_drawn else ["source", "source_row", "id"])],
        descending=[True, True, False, False, False],
        nulls_last=[True, True, False, False, False],
    )


def _suspicion(files: RunFiles) -> pl.LazyFrame:
    """Return what samples tell of each row: the last stage that tells it counts."""
    frames = []
    for index, (_, table) in enumerate(files.tables(SUSPICION_FILE, SUSPICION_STAGES)):
        keyed = table.drop_nulls("suspicion").select(
            pl.col("row_id").alias("id"), "source", "source_row", "suspicion", "tier", "suggestion"
        )
        frames.append(keyed.with_columns(order=pl.lit(index)))
    if not frames:
        empty = {"id": pl.String, "source": pl.String, "source_row": pl.Int64, "suspicion": pl.Float64}
        return pl.LazyFrame(schema={**empty, "tier": pl.String, "suggestion": pl.String})
    latest = pl.concat(frames).sort("order", maintain_order=True).unique(KEY, keep="last", maintain_order=True)
    return latest.drop("order")


def _blocking(files: RunFiles) -> pl.LazyFrame:
    """Return for each flagged row the surest of the rules that hold it back, and the confidence of any."""
    flags = files.flags(after_training=True)
    if flags is None:
        empty = {"id": pl.String, "source": pl.String, "source_row": pl.Int64}
        return pl.LazyFrame(schema={**empty, "rule": pl.Float64, "rule_name": pl.String, "flagged": pl.Float64})
    measured = [
        pl.col("evidence").str.json_path_match(f"$.measured.{name}").cast(pl.Float64, strict=False)
        for name in ("precision", "rows")
    ]
    # The mean of the posterior of a uniform prior: 26 of 26 do not make it certain.
    known = (measured[0] * measured[1] + 1) / (measured[1] + 2)
    flags = flags.with_columns(precision=pl.coalesce(known, pl.col("confidence").clip(0.0, SUREST)))
    # The confidence of `suspect_gold` is the agreement of samples, and no probability.
    holding = pl.col("blocks") & (pl.col("reason") != str(SUSPECT_GOLD))
    surest = pl.col("precision").filter(holding)
    return flags.group_by(KEY).agg(
        rule=surest.max(),
        rule_name=pl.col("reason").filter(holding).sort_by(surest, descending=True).first(),
        flagged=pl.col("confidence").max(),
    )


def _rejects(files: RunFiles, room: int) -> tuple[tuple[dict[str, Any], ...], int]:
    """Return the first rejected records, as many as there is room for, and how many there are."""
    path = files.path("ingest", "rejects.jsonl")
    if path is None:
        return (), 0
    shown: list[dict[str, Any]] = []
    count = 0
    with path.open("rb") as lines:
        for line in lines:
            count += 1
            if len(shown) < room:
                shown.append(orjson.loads(line))
    return tuple(shown), count
