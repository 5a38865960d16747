"""Counts where every record of a run ended, and estimates the share of wrong labels among the remaining rows.

    records read  =  rejects by reason  +  drops by stage and reason  +  selected  +  held out  +  reserve

The counts come from the tables of rows. Every stage must pass on or drop each of its rows. If a stage does not,
truegold has a bug, and RuntimeError is raised. The same sum is made for each source:

    maths    1,000 records = 12 rejected + 188 dropped + 700 selected + 100 held out
    scraped    400 records = 400 dropped (390 exact_duplicate by dedup): no row remains

The share of wrong labels is estimated from `suspicion.parquet`, which has the probability s that a row is wrong. The
estimate is the mean of s over n rows. These rows have samples of a model's answers, or were judged by a model of
measured accuracy. Rows that only a rule has judged are left out. If s is calibrated and faults are independent, the
number of faults is Poisson-binomial with the variance sum s (1 - s) (Wang 1993, "On the number of successes in
independent trials"). The 95 % interval is mean +- 1.96 sqrt(sum s (1 - s)) / n, cut at 0 and 1.

Without `suspicion.parquet`, the estimate comes from reviews. It is the share of the reviewed rows without a flag that
reviewers corrected or dropped, with Wilson's interval.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import orjson
import polars as pl

from truegold.pipeline.running.stage_table import ROW_STAGES
from truegold.pipeline.tables.ledger import DROPPED_FILE, LEDGER_FILE
from truegold.pipeline.tables.reasons import DropReason
from truegold.pipeline.tables.run_files import RunFiles
from truegold.verifiers import InputError
from truegold.verifiers.rates import Z_95, wilson_interval


@dataclass(frozen=True)
class Passage:
    """The numbers of rows that entered, left and were lost in one stage."""

    stage: str
    rows_in: int
    rows_out: int
    lost: Mapping[str, int]
    """The numbers of rows that were rejected or dropped, by reason."""


@dataclass(frozen=True)
class RowEnd:
    """A number of rows that ended in the same way."""

    kind: str
    """`reject`, `drop`, `reserve`, `heldout`, `selected`, or `left` for the last rows of a run without selection."""
    stage: str
    reason: str
    rows: int


@dataclass(frozen=True)
class Account:
    """The account of a run. `records_in` is the sum of the rows in `ends`."""

    records_in: int
    passages: tuple[Passage, ...]
    ends: tuple[RowEnd, ...]

    def total(self, kind: str) -> int:
        """Return the number of rows with ends of this kind."""
        return sum(end.rows for end in self.ends if end.kind == kind)


@dataclass(frozen=True)
class SourceAccount:
    """The records of one source; `records` is the sum of the other counts."""

    source: str
    records: int
    rejected: int
    dropped: int
    """The rows that a stage dropped, including those that selection put in reserve."""
    left: int
    """The remaining training rows: the selected ones, or all that remain in a run without selection."""
    heldout: int
    losses: tuple[tuple[str, str, int], ...]
    """(stage, reason, rows) of each loss, the largest first."""


def count_rows_by_end(files: RunFiles) -> Account:
    """Return the account of the run. Raises RuntimeError with the first stage whose rows do not add up."""
    rejects = count_rejects(files.path("ingest", "rejects.jsonl"))
    records_in = int(files.records["ingest"]["report"]["rows_in"])
    passages = [_checked(Passage("ingest", records_in, files.count("ingest", "rows.parquet"), rejects))]
    dropped = {stage: _counts(table, "drop_reason") for stage, table in files.drops((*ROW_STAGES, "select"))}
    for stage in ROW_STAGES:
        if stage in files:
            back = sum(_restored(passage, dropped) for passage in passages[1:]) if stage == "settle" else 0
            passages.append(_passage(files, stage, passages[-1].rows_out + back, files.count(stage, "rows.parquet")))
    if "select" in files:
        selected, heldout = files.count("select", "selected.parquet"), files.count("select", "heldout.parquet")
        passages.append(_passage(files, "select", passages[-1].rows_out, selected + heldout))
        reserve = passages[-1].lost.get(DropReason.IN_RESERVE, 0)
        if (waiting := files.count("select", "reserve.parquet")) != reserve:
            raise _does_not_add_up(
                "select", f"{reserve:,} rows dropped as {DropReason.IN_RESERVE}, {waiting:,} in the reserve"
            )
        left = [RowEnd("heldout", "select", "held out", heldout), RowEnd("selected", "select", "selected", selected)]
    else:
        left = [RowEnd("left", passages[-1].stage, "left", passages[-1].rows_out)]
    if "profile_after" in files:
        after = files.count("select", "after.parquet"), files.count("profile_after", "rows.parquet")
        _passage(files, "profile_after", *after)
    losses = [
        RowEnd(_kind(passage.stage, reason), passage.stage, reason, rows)
        for passage in passages
        for reason, rows in dropped.get(passage.stage, passage.lost).items()
    ]
    account = Account(records_in, tuple(passages), (*losses, *left))
    if (total := sum(end.rows for end in account.ends)) != records_in:
        raise _does_not_add_up("the run", f"{records_in:,} records came in, {total:,} ended somewhere")
    return account


def _restored(passage: Passage, dropped: Mapping[str, Mapping[str, int]]) -> int:
    """Return the number of rows that the stage dropped and a reviewer restored."""
    return sum(passage.lost.values()) - sum(dropped.get(passage.stage, {}).values())


def count_rejects(path: Path | None) -> dict[str, int]:
    """Return the number of rejected records by reason; empty if the file does not exist."""
    return dict(sorted(Counter(reject["reason"] for reject in _read_rejects(path)).items()))


def _read_rejects(path: Path | None) -> Iterator[Mapping[str, str]]:
    """Yield the rejected records one by one. A list would hold all their text in memory."""
    if path is not None:
        with path.open("rb") as lines:
            yield from map(orjson.loads, lines)


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


def _kind(stage: str, reason: str) -> str:
    if stage == "ingest":
        return "reject"
    return "reserve" if (stage, reason) == ("select", DropReason.IN_RESERVE) else "drop"


def count_by_source(files: RunFiles) -> tuple[SourceAccount, ...]:
    """Return the account of every source; empty if there is only one source."""
    names = list(files.records["ingest"]["report"]["facts"].get("sources", ()))
    if len(names) < 2:
        return ()
    losses: dict[str, Counter[tuple[str, str]]] = {name: Counter() for name in names}
    for reject in _read_rejects(files.path("ingest", "rejects.jsonl")):
        losses[reject["source"]]["ingest", reject["reason"]] += 1
    stages = [stage for stage in (*ROW_STAGES, "select") if stage in files]
    for stage, dropped in files.drops(stages):
        counted = dropped.group_by("source", "drop_reason").agg(pl.len()).collect(engine="streaming")
        for source, reason, rows in counted.iter_rows():
            losses[source][stage, str(reason)] += rows
    ends: Counter[tuple[str, bool]] = Counter()
    for table in files.end_tables().values():
        counted = table.group_by("source", pl.col("split") == "heldout").agg(pl.len()).collect(engine="streaming")
        for source, is_heldout, rows in counted.iter_rows():
            ends[source, is_heldout] += rows
    return tuple(_account(name, losses[name], ends[name, False], ends[name, True]) for name in names)


def _account(name: str, losses: Counter[tuple[str, str]], left: int, heldout: int) -> SourceAccount:
    rejected = sum(rows for (stage, _), rows in losses.items() if stage == "ingest")
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


def describe_losses(account: SourceAccount, shown: int = 3) -> str:
    """Describe the largest losses of a source: `390 exact_duplicate (dedup), 12 empty_prompt (ingest)`."""
    return ", ".join(f"{rows:,} {reason} ({stage})" for stage, reason, rows in account.losses[:shown])


@dataclass(frozen=True)
class LabelErrors:
    """The estimated share of wrong labels, with its interval."""

    method: str
    known: int
    """The number of rows that the estimate is based on."""
    rate: float | None = None
    """The share of wrong labels. `rate`, `low` and `high` are None if there is no estimate."""
    low: float | None = None
    high: float | None = None


NOT_ESTIMATED = LabelErrors("not estimated", 0)


def estimate_from_suspicion(suspicion: Path, rows: list[Path]) -> LabelErrors:
    """Return the mean of s over the exported rows `rows`, as the module describes.

    Raises InputError if a column is missing.
    """
    table = pl.scan_parquet(suspicion)
    columns = set(table.collect_schema().names())
    if missing := {"suspicion", "label_wrong", "evidence", "source", "source_row"} - columns:
        raise InputError(
            f"{suspicion} has no column {', '.join(sorted(missing))}.", "Give a suspicion.parquet of `truegold flag`."
        )
    # A hash of 64 bits takes a tenth of the memory of the text.
    key = pl.struct(pl.col("source").cast(pl.String), pl.col("source_row").cast(pl.Int64)).hash(seed=0).alias("key")
    keys = pl.concat([pl.scan_parquet(path).select(key) for path in rows])
    by_model = pl.col("evidence").str.json_path_match("$.asked.ratio").is_not_null()
    measured = table.filter(pl.col("label_wrong").is_not_null() | by_model)
    known = measured.select("suspicion", key).join(keys, on="key", how="semi")
    share = pl.col("suspicion")
    moments = known.select(pl.len(), share.mean().alias("mean"), (share * (1 - share)).sum().alias("variance"))
    n, mean, variance = moments.collect(engine="streaming").row(0)
    if not n:
        return NOT_ESTIMATED
    margin = Z_95 * math.sqrt(variance) / n
    return LabelErrors("suspicions", n, mean, max(0.0, mean - margin), min(1.0, mean + margin))


def estimate_from_reviews(ledger: pl.LazyFrame | None) -> LabelErrors:
    """Return the share of unflagged rows that reviewers corrected or dropped, from the ledger of `settle`.

    Only rows that were drawn at random count. Rows that a reviewer chose do not represent the others.
    """
    if ledger is None:
        return NOT_ESTIMATED
    decisions = ledger.filter(pl.col("reason").is_in(["reviewer_keep", "reviewer_fix", "reviewer_drop"]))
    evidence = pl.col("evidence")
    is_random = evidence.str.json_path_match("$.random").eq_missing("true")
    unflagged = decisions.filter(is_random, evidence.str.json_path_match("$.flags[0]").is_null())
    wrong = pl.col("reason") != "reviewer_keep"
    count, faulty = unflagged.select(pl.len(), wrong.sum().alias("wrong")).collect(engine="streaming").row(0)
    if not count:
        return NOT_ESTIMATED
    low, high = wilson_interval(faulty, count)
    return LabelErrors("reviewers' decisions on rows drawn at random, without a flag", count, faulty / count, low, high)
