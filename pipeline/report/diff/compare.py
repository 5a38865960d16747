"""Compares two runs over the stages that both have finished.

    rows     kept -> clean: other_language   12 rows   9f0c..., 1a2b...   because clean.languages: [] -> ["en"]
    rows     settle: held_for_review -> kept 3 rows    77aa...            because decisions: none -> fix by ada
    texts    prompt: 17 rows, by edits of clean/boilerplate that only the second run made
    flags    proof: 3 rows more, multi_part: 1 row fewer
    rates    mean pass rate of 900 rows 0.41 -> 0.44

Stages that only one of the runs has finished are named and left out, so that a half-finished run can be compared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from truegold.pipeline.accounting.accounting import count_rejects
from truegold.pipeline.report.diff.decided import DECIDED, DECIDING_STAGE, DECISIONS, with_decisions
from truegold.pipeline.report.diff.rows import COLUMNS, HELDOUT, KEPT, SELECTED, Pairs, pair
from truegold.pipeline.report.diff.settings import Setting, setting_differences
from truegold.pipeline.tables.ledger import LEDGER_FILE
from truegold.pipeline.tables.run_files import SOURCE_KEY, RunFiles, open_finished

EXAMPLES = 5


@dataclass(frozen=True)
class Transition:
    """Rows that ended in one way in the first run and in another in the second."""

    first: str
    second: str
    rows: int
    ids: tuple[str, ...]
    because: tuple[Setting, ...]
    """The reviewers' decisions, where these differ; else the differences in settings of the stage that decided it, or
    of one before it."""


@dataclass(frozen=True)
class TextChange:
    """Rows left in both runs with another value of a column, and the edits that only one of the runs made in them."""

    column: str
    rows: int
    ids: tuple[str, ...]
    edits_first: Mapping[str, int]
    edits_second: Mapping[str, int]


@dataclass(frozen=True)
class FlagChange:
    """Rows in both runs that carry a flag in one of them only."""

    reason: str
    only_first: int
    only_second: int
    ids_first: tuple[str, ...]
    ids_second: tuple[str, ...]


@dataclass(frozen=True)
class Rates:
    """Pass rates of the rows profiled in both runs."""

    rows: int
    changed: int
    first: float | None
    second: float | None
    ids: tuple[str, ...]


@dataclass(frozen=True)
class Source:
    """What came in: rows in the data of both runs, of one alone, and rows that were changed in the data."""

    both: int
    only_first: int
    only_second: int
    changed: int
    changed_columns: Mapping[str, int]
    ids_first: tuple[str, ...]
    ids_second: tuple[str, ...]
    ids_changed: tuple[tuple[str, str], ...]
    rejects: Mapping[str, tuple[int, int]]
    """Rejected records of the first and the second run by reason."""


@dataclass(frozen=True)
class Difference:
    """Everything that differs between two runs."""

    first: str
    second: str
    stages: tuple[str, ...]
    """The stages that both have finished."""
    stages_first: tuple[str, ...]
    stages_second: tuple[str, ...]
    """The stages that only one has finished."""
    settings: tuple[Setting, ...]
    source: Source
    left: tuple[int, int]
    """How many rows each run has left."""
    transitions: tuple[Transition, ...]
    texts: tuple[TextChange, ...]
    flags: tuple[FlagChange, ...]
    rates: Rates | None


def diff_runs(first_dir: Path, second_dir: Path, examples: int = EXAMPLES) -> Difference:
    """Compare two runs, naming so many `examples` of ids for each kind of change.

    Raises InputError where a folder is no run, or has no rows yet.
    """
    whole_first, whole_second = open_finished(first_dir), open_finished(second_dir)
    common = [stage for stage in whole_first.records if stage in whole_second]
    first, second = whole_first.only(common), whole_second.only(common)
    pairs = pair(first, second)
    settings = setting_differences(first, second)
    return Difference(
        first=str(first_dir),
        second=str(second_dir),
        stages=tuple(common),
        stages_first=tuple(stage for stage in whole_first.records if stage not in whole_second),
        stages_second=tuple(stage for stage in whole_second.records if stage not in whole_first),
        settings=tuple(settings),
        source=_source(first, second, pairs, examples),
        left=(_count_left(pairs, pairs.only_first, "outcome"), _count_left(pairs, pairs.only_second, "outcome_b")),
        transitions=_transitions(with_decisions(pairs.both, first, second), settings, common, examples),
        texts=_texts(first, second, pairs.both, examples),
        flags=_flags(first, second, pairs.both, examples),
        rates=_rates(first, second, pairs.both, examples),
    )


def _ids(rows: pl.DataFrame, examples: int, column: str = "id") -> tuple[str, ...]:
    return tuple(rows[column].unique().sort().head(examples))


def _count_left(pairs: Pairs, only: pl.DataFrame, column: str) -> int:
    """Return how many rows a run has left."""
    ends = [KEPT, SELECTED, HELDOUT]
    parts = (pairs.both[column], pairs.changed[column], only["outcome"])
    return sum(int(part.is_in(ends).sum()) for part in parts)


def _source(first: RunFiles, second: RunFiles, pairs: Pairs, examples: int) -> Source:
    rejects = [count_rejects(files.path("ingest", "rejects.jsonl")) for files in (first, second)]
    reasons = sorted(rejects[0].keys() | rejects[1].keys())
    changed = pairs.changed
    columns = {name: int((changed[f"raw_{name}"] != changed[f"raw_{name}_b"]).sum()) for name in COLUMNS}
    shown = changed.sort(SOURCE_KEY).head(examples)
    return Source(
        both=pairs.both.height,
        only_first=pairs.only_first.height,
        only_second=pairs.only_second.height,
        changed=changed.height,
        changed_columns={name: count for name, count in columns.items() if count},
        ids_first=_ids(pairs.only_first, examples),
        ids_second=_ids(pairs.only_second, examples),
        ids_changed=tuple(zip(shown["id"], shown["id_b"], strict=True)),
        rejects={reason: (rejects[0].get(reason, 0), rejects[1].get(reason, 0)) for reason in reasons},
    )


def _transitions(
    both: pl.DataFrame, settings: Sequence[Setting], stages: Sequence[str], examples: int
) -> tuple[Transition, ...]:
    moved = both.filter(pl.col("outcome") != pl.col("outcome_b"))
    by = ["outcome", "outcome_b", *DECIDED]
    counted = moved.group_by(by).agg(pl.len(), pl.col("id").unique().sort().head(examples))
    ordered = counted.sort(["len", *by], descending=[True, *(False for _ in by)], nulls_last=True)
    return tuple(
        Transition(first, second, rows, tuple(ids), _reasons((first, second), decided, settings, stages))
        for first, second, *decided, rows, ids in ordered.iter_rows()
    )


def _reasons(
    outcomes: tuple[str, str], decided: Sequence[str | None], settings: Sequence[Setting], stages: Sequence[str]
) -> tuple[Setting, ...]:
    """Return the decisions where these differ, else the differences of the stages where the row left; where those have
    none, the nearest before them."""
    left_at = [outcome.partition(":")[0] for outcome in outcomes]
    left_before = DECIDING_STAGE in stages and set(left_at) & set(stages[: stages.index(DECIDING_STAGE)])
    if decided[0] != decided[1] and not left_before:
        return (Setting(DECIDING_STAGE, DECISIONS, decided[0], decided[1]),)
    deciding = [stage for stage in stages if stage in left_at] or list(stages)
    if differences := tuple(setting for setting in settings if setting.stage in deciding):
        return differences
    for stage in reversed(stages[: stages.index(deciding[0])]):
        if differences := tuple(setting for setting in settings if setting.stage == stage):
            return differences
    return ()


def _texts(first: RunFiles, second: RunFiles, both: pl.DataFrame, examples: int) -> tuple[TextChange, ...]:
    changes = []
    for column in COLUMNS:
        other = pl.col(f"{column}_b")
        rows = both.filter(pl.col(column).is_not_null() & other.is_not_null() & (pl.col(column) != other))
        if not rows.height:
            continue
        edits_first = _edits(first, rows, column, "")
        edits_second = _edits(second, rows, column, "_b")
        key = ["id", "copy", "edit"]
        changes.append(
            TextChange(
                column,
                rows.height,
                _ids(rows, examples),
                _count_edits(edits_first.join(edits_second, on=key, how="anti")),
                _count_edits(edits_second.join(edits_first, on=key, how="anti")),
            )
        )
    return tuple(changes)


def _edits(files: RunFiles, rows: pl.DataFrame, column: str, suffix: str) -> pl.DataFrame:
    """Return id, copy and `stage/reason` of the edits of a column in these rows."""
    keys = _row_keys(rows, suffix)
    made = [
        ledger.filter(
            (pl.col("action") == "edit") & (pl.col("evidence").str.json_path_match("$.column") == column)
        ).select(*SOURCE_KEY, pl.format("{}/{}", pl.lit(stage), pl.col("reason")).alias("edit"))
        for stage, ledger in files.tables(LEDGER_FILE)
    ]
    return pl.concat(made).join(keys, on=SOURCE_KEY).select("id", "copy", "edit").unique().collect(engine="streaming")


def _row_keys(rows: pl.DataFrame, suffix: str) -> pl.LazyFrame:
    """Return id, copy and the SOURCE_KEY that rows have in one of the runs."""
    return rows.lazy().select("id", "copy", *(pl.col(f"{name}{suffix}").alias(name) for name in SOURCE_KEY))


def _count_edits(edits: pl.DataFrame) -> dict[str, int]:
    return dict(edits.group_by("edit").len().sort(["len", "edit"], descending=[True, False]).iter_rows())


def _flags(first: RunFiles, second: RunFiles, both: pl.DataFrame, examples: int) -> tuple[FlagChange, ...]:
    flags_first, flags_second = _flagged(first, both, ""), _flagged(second, both, "_b")
    key = ["id", "copy", "reason"]
    gone, new = flags_first.join(flags_second, on=key, how="anti"), flags_second.join(flags_first, on=key, how="anti")
    reasons = sorted({*gone["reason"], *new["reason"]})
    changes = []
    for reason in reasons:
        lost, gained = gone.filter(pl.col("reason") == reason), new.filter(pl.col("reason") == reason)
        changes.append(FlagChange(reason, lost.height, gained.height, _ids(lost, examples), _ids(gained, examples)))
    return tuple(changes)


def _flagged(files: RunFiles, both: pl.DataFrame, suffix: str) -> pl.DataFrame:
    keys = _row_keys(both, suffix)
    flags = files.flags(after_training=False)
    if flags is None:
        return keys.select("id", "copy", pl.lit("").alias("reason")).head(0).collect()
    flagged = flags.select(*SOURCE_KEY, "reason").unique().join(keys, on=SOURCE_KEY).select("id", "copy", "reason")
    return flagged.collect(engine="streaming")


def _rates(first: RunFiles, second: RunFiles, both: pl.DataFrame, examples: int) -> Rates | None:
    profile_first, profile_second = (files.table("profile", "profile.parquet") for files in (first, second))
    if profile_first is None or profile_second is None:
        return None
    second_key = [f"{name}_b" for name in SOURCE_KEY]
    rates_first = profile_first.select(*SOURCE_KEY, "pass_rate")
    rates_second = profile_second.select(pl.col(*SOURCE_KEY).name.suffix("_b"), pl.col("pass_rate").alias("rate_b"))
    rows = (
        both.lazy()
        .select("id", *SOURCE_KEY, *second_key)
        .join(rates_first, on=SOURCE_KEY)
        .join(rates_second, on=second_key)
        .drop_nulls(["pass_rate", "rate_b"])
        .collect(engine="streaming")
    )
    moved = rows.with_columns(by=(pl.col("pass_rate") - pl.col("rate_b")).abs()).filter(pl.col("by") > 0)
    most = moved.sort(["by", "id"], descending=[True, False]).head(examples)
    means = [
        float(sum(column) / len(column)) if len(column) else None for column in (rows["pass_rate"], rows["rate_b"])
    ]
    return Rates(rows.height, moved.height, means[0], means[1], tuple(most["id"]))
