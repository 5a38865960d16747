"""Compares two runs: their rows, texts, flags and pass rates, and the settings that caused the differences.

    rows     kept -> clean: other_language   12 rows   9f0c..., 1a2b...   because clean.languages: [] -> ["en"]
    rows     settle: held_for_review -> kept 3 rows    77aa...            because decisions: none -> fix by ada
    texts    prompt: 17 rows, by edits of clean/boilerplate that only the second run made
    flags    proof: 3 rows more, multi_part: 1 row fewer
    rates    mean pass rate of 900 rows 0.41 -> 0.44

Only stages that both runs have finished are compared; the others are listed. Rows are matched by content (`id`), so
renamed or reordered files are equal. Rows with the same content are paired in the order of source and row number.
Sometimes each run has an unmatched row at the same source and row number. Then the content of this row was changed in
the data.

Texts are compared as 64-bit hashes, so that a row takes about 200 bytes of memory. The probability that two different
texts have the same hash is 1 in 10^19.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import polars as pl

from truegold.pipeline.accounting import count_rejects
from truegold.pipeline.report.render import PAGE, render_plain
from truegold.pipeline.running.stage_table import ROW_STAGES
from truegold.pipeline.tables.ledger import LEDGER_FILE, RESTORED
from truegold.pipeline.tables.run_files import SOURCE_KEY, RunFiles, open_finished
from truegold.pipeline.text.shown_text import cut, visible
from truegold.pipeline.text.templates import templates_in

COLUMNS = ["prompt", "gold", "solution", "domain", "verifier", "verifier_args", "split"]
"""The columns that are compared."""
OUTCOMES = {"rows": "kept", "selected": "selected", "heldout": "held out"}
"""Maps the last tables of a run to the outcome of their rows."""
DECISIONS = "decisions"
"""The name of a `Setting` that stands for reviewers' decisions."""
EXAMPLES = 5
"""The number of ids that are named for each kind of change."""
VALUE_CHARS = 120
"""The maximum number of characters that are shown of the value of a setting."""

_DECIDING_STAGE = "settle"
"""The stage in which reviewers' decisions take effect."""
_DECIDED = ["decided", "decided_b"]
"""The columns with the decision on a row in the first and in the second run. Null without a decision."""
_OF_CONFLICTS = ("conflict_settled", "conflict_overruled", "settled_duplicate")
"""Reasons in the ledger for rows in conflict with a decided row."""
_DECISION_REASONS = ("reviewer_keep", RESTORED, "reviewer_fix", "reviewer_drop", "reviewers_disagree", *_OF_CONFLICTS)
_GOLD_CHARS = 40
"""The maximum number of characters that are shown of a reviewer's gold."""


@dataclass(frozen=True)
class Setting:
    """A setting that differs, with its value in the first and in the second run."""

    stage: str
    name: str
    first: Any
    second: Any


@dataclass(frozen=True)
class Transition:
    """Rows with one outcome in the first run and another in the second."""

    first: str
    second: str
    rows: int
    ids: tuple[str, ...]
    because: tuple[Setting, ...]
    """The differences in decisions or settings that explain the transition (`_reasons`)."""


@dataclass(frozen=True)
class TextChange:
    """Rows that remain in both runs with different values of a column, and the edits that only one run made in them."""

    column: str
    rows: int
    ids: tuple[str, ...]
    edits_first: Mapping[str, int]
    edits_second: Mapping[str, int]


@dataclass(frozen=True)
class FlagChange:
    """Rows in both runs that have a flag in only one of them."""

    reason: str
    only_first: int
    only_second: int
    ids_first: tuple[str, ...]
    ids_second: tuple[str, ...]


@dataclass(frozen=True)
class RateChange:
    """The pass rates of the rows that were profiled in both runs."""

    rows: int
    changed: int
    first: float | None
    second: float | None
    ids: tuple[str, ...]


@dataclass(frozen=True)
class InputChange:
    """The difference between the rows that two runs read."""

    both: int
    only_first: int
    only_second: int
    changed: int
    """The number of rows whose content differs, at the same source and row number."""
    changed_columns: Mapping[str, int]
    """The number of these rows in which each column differs."""
    ids_first: tuple[str, ...]
    ids_second: tuple[str, ...]
    ids_changed: tuple[tuple[str, str], ...]
    rejects: Mapping[str, tuple[int, int]]
    """The numbers of rejected records of the first and the second run, by reason."""


@dataclass(frozen=True)
class Difference:
    """All differences between two runs."""

    first: str
    second: str
    stages: tuple[str, ...]
    """The stages that both runs have finished."""
    stages_first: tuple[str, ...]
    """The stages that only the first run has finished."""
    stages_second: tuple[str, ...]
    settings: tuple[Setting, ...]
    source: InputChange
    left: tuple[int, int]
    """The number of remaining rows in each run."""
    transitions: tuple[Transition, ...]
    texts: tuple[TextChange, ...]
    flags: tuple[FlagChange, ...]
    rates: RateChange | None


def diff_runs(first_dir: Path, second_dir: Path, examples: int = EXAMPLES) -> Difference:
    """Return the differences between two runs, with up to `examples` ids for each kind of change.

    Raises InputError if a folder is not a run or has no rows yet.
    """
    whole_first, whole_second = open_finished(first_dir), open_finished(second_dir)
    common = [stage for stage in whole_first.records if stage in whole_second]
    first, second = whole_first.only(common), whole_second.only(common)
    pairs = _pair(first, second)
    settings = _compare_settings(first, second)
    return Difference(
        first=str(first_dir),
        second=str(second_dir),
        stages=tuple(common),
        stages_first=tuple(stage for stage in whole_first.records if stage not in whole_second),
        stages_second=tuple(stage for stage in whole_second.records if stage not in whole_first),
        settings=tuple(settings),
        source=_source(first, second, pairs, examples),
        left=(_count_left(pairs, pairs.only_first, "outcome"), _count_left(pairs, pairs.only_second, "outcome_b")),
        transitions=_transitions(_with_decisions(pairs.both, first, second), settings, common, examples),
        texts=_texts(first, second, pairs.both, examples),
        flags=_flags(first, second, pairs.both, examples),
        rates=_rates(first, second, pairs.both, examples),
    )


def _compare_settings(first: RunFiles, second: RunFiles) -> list[Setting]:
    """Return the differences of settings and code, in the order of the stages. Both runs must have the same stages.

    clean.languages: [] -> ["en"]     a setting of the stage `clean` differs
    clean version: 1 -> 2             the code of the stage differs
    the data                          the settings of `ingest` are the same, but the content of the files differs
    """
    return [
        difference
        for stage in first.records
        if stage != "report"
        for difference in _compare_stage(stage, first.records[stage], second.records[stage])
    ]


def _compare_stage(stage: str, first: Mapping[str, Any], second: Mapping[str, Any]) -> list[Setting]:
    config, other_config = _flatten(first.get("config", {})), _flatten(second.get("config", {}))
    names = sorted(config.keys() | other_config.keys())
    settings = [Setting(stage, f"{stage}.{name}", config.get(name), other_config.get(name)) for name in names]
    settings += [
        Setting(stage, f"{stage} {name}", first.get(name), second.get(name)) for name in ("version", "truegold")
    ]
    differences = [setting for setting in settings if setting.first != setting.second]
    if stage == "ingest" and not differences and first["key"] != second["key"]:
        return [Setting(stage, "the data", "differs", "differs")]
    return differences


def _flatten(value: Any, prefix: str = "") -> dict[str, Any]:
    """Return `{"a": {"b": 1}}` as `{"a.b": 1}`. Lists stay as they are."""
    if not isinstance(value, Mapping):
        return {prefix: value}
    flat: dict[str, Any] = {}
    for name, inner in value.items():
        flat |= _flatten(inner, f"{prefix}.{name}" if prefix else str(name))
    return flat


@dataclass(frozen=True)
class _Pairs:
    """The paired rows of two runs. All tables have the columns of `_rows`. Columns of the second run end in `_b`."""

    both: pl.DataFrame
    """Rows that are in both runs."""
    only_first: pl.DataFrame
    """Rows that are only in the first run."""
    only_second: pl.DataFrame
    """Rows that are only in the second run. Here no name ends in `_b`."""
    changed: pl.DataFrame
    """Unmatched rows with the same source and row number in both runs."""


def _pair(first: RunFiles, second: RunFiles) -> _Pairs:
    """Return the paired rows of two runs, which must have the same stages."""
    first_rows, second_rows = _rows(first), _rows(second)
    both = first_rows.join(second_rows, on=["id", "copy"], how="inner", suffix="_b")
    first_rest = first_rows.join(second_rows, on=["id", "copy"], how="anti")
    second_rest = second_rows.join(first_rows, on=["id", "copy"], how="anti")
    changed = first_rest.join(second_rest, on=SOURCE_KEY, how="inner", suffix="_b")
    return _Pairs(
        both,
        first_rest.join(changed, on=SOURCE_KEY, how="anti"),
        second_rest.join(changed, on=SOURCE_KEY, how="anti"),
        changed,
    )


def _rows(files: RunFiles) -> pl.DataFrame:
    """Return the ingested rows: id, copy (the number among equal rows), SOURCE_KEY, outcome, and hashes of COLUMNS.
    `raw_prompt` is a hash of the ingested text. `prompt` is a hash of the last text, or null if the row was dropped."""
    ingested = files.table("ingest", "rows.parquet")
    assert ingested is not None
    raw = [_hashed(name).alias(f"raw_{name}") for name in COLUMNS]
    rows = ingested.select("id", *SOURCE_KEY, *raw).collect(engine="streaming").sort(SOURCE_KEY)
    rows = rows.with_columns(copy=pl.int_range(pl.len(), dtype=pl.UInt32).over("id"))
    nothing = [pl.lit(None, dtype=pl.UInt64).alias(name) for name in COLUMNS]
    ends = [
        table.select(*SOURCE_KEY, (pl.lit(f"{stage}: ") + pl.col("drop_reason")).alias("outcome"), *nothing)
        for stage, table in files.drops((*ROW_STAGES, "select"))
    ]
    hashes = list(map(_hashed, COLUMNS))
    ends += [
        table.select(*SOURCE_KEY, pl.lit(OUTCOMES[name]).alias("outcome"), *hashes)
        for name, table in files.end_tables().items()
    ]
    ended = pl.concat(ends).collect(engine="streaming")
    return rows.join(ended, on=SOURCE_KEY, how="left").with_columns(pl.col("outcome").fill_null(OUTCOMES["rows"]))


def _hashed(name: str) -> pl.Expr:
    return pl.col(name).fill_null("\0null").hash(seed=0)


def _with_decisions(both: pl.DataFrame, first: RunFiles, second: RunFiles) -> pl.DataFrame:
    """Add columns that describe the decisions on each row in the two runs, from their ledgers.

    in the ledger                         description
    reviewer_fix by ada, to "16"          fix to 16 by ada
    reviewers_disagree, ada and bob       disagreement of ada, bob
    conflict_settled, decided by ada      another row of its conflict decided by ada
    """
    for files, suffix, column in ((first, "", _DECIDED[0]), (second, "_b", _DECIDED[1])):
        keys = [f"{name}{suffix}" for name in SOURCE_KEY]
        both = both.join(_decided(files, column), left_on=keys, right_on=SOURCE_KEY, how="left")
    return both


def _decided(files: RunFiles, column: str) -> pl.DataFrame:
    schema = {"source": pl.String, "source_row": pl.Int64, column: pl.String}
    if (ledger := files.table(_DECIDING_STAGE, LEDGER_FILE)) is None:
        return pl.DataFrame(schema=schema)
    columns = [*SOURCE_KEY, "reason", "evidence", "after"]
    records = ledger.filter(pl.col("reason").is_in(_DECISION_REASONS)).select(columns).collect(engine="streaming")
    words = {(row["source"], row["source_row"]): _describe(row) for row in records.iter_rows(named=True)}
    return pl.DataFrame([(*key, word) for key, word in words.items()], schema=schema, orient="row")


def _describe(record: dict[str, Any]) -> str:
    evidence = orjson.loads(record["evidence"])
    reason = record["reason"]
    if reason == "reviewers_disagree":
        return f"disagreement of {', '.join(evidence['words'])}"
    reviewers = ", ".join(evidence["reviewers"])
    if reason in _OF_CONFLICTS:
        return f"another row of its conflict decided by {reviewers}"
    word = reason.removeprefix("reviewer_")
    if word == "fix":
        word = "fix of tests" if evidence["column"] == "verifier_args" else f"fix to {record['after'][:_GOLD_CHARS]}"
    return f"{word} by {reviewers}"


def _ids(rows: pl.DataFrame, examples: int) -> tuple[str, ...]:
    return tuple(rows["id"].unique().sort().head(examples))


def _count_left(pairs: _Pairs, only: pl.DataFrame, column: str) -> int:
    """Return the number of rows that remain in a run at the end."""
    parts = (pairs.both[column], pairs.changed[column], only["outcome"])
    return sum(int(part.is_in(list(OUTCOMES.values())).sum()) for part in parts)


def _source(first: RunFiles, second: RunFiles, pairs: _Pairs, examples: int) -> InputChange:
    rejects = [count_rejects(files.path("ingest", "rejects.jsonl")) for files in (first, second)]
    reasons = sorted(rejects[0].keys() | rejects[1].keys())
    changed = pairs.changed
    columns = {name: int((changed[f"raw_{name}"] != changed[f"raw_{name}_b"]).sum()) for name in COLUMNS}
    shown = changed.sort(SOURCE_KEY).head(examples)
    return InputChange(
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
    by = ["outcome", "outcome_b", *_DECIDED]
    counted = moved.group_by(by).agg(pl.len(), pl.col("id").unique().sort().head(examples))
    ordered = counted.sort(["len", *by], descending=[True, *(False for _ in by)], nulls_last=True)
    return tuple(
        Transition(first, second, rows, tuple(ids), _reasons((first, second), decided, settings, stages))
        for first, second, *decided, rows, ids in ordered.iter_rows()
    )


def _reasons(
    outcomes: tuple[str, str], decided: Sequence[str | None], settings: Sequence[Setting], stages: Sequence[str]
) -> tuple[Setting, ...]:
    """Return the causes of a change of outcome: the difference of decisions, or else differences of settings. Settings
    of the stages in which the rows ended come first: `clean` for the outcome "clean: other_language". If these settings
    are the same, those of the nearest earlier stage with a difference are returned."""
    left_in = [outcome.partition(":")[0] for outcome in outcomes]
    left_before = _DECIDING_STAGE in stages and set(left_in) & set(stages[: stages.index(_DECIDING_STAGE)])
    if decided[0] != decided[1] and not left_before:
        return (Setting(_DECIDING_STAGE, DECISIONS, decided[0], decided[1]),)
    deciding = [stage for stage in stages if stage in left_in] or list(stages)
    earlier = [[stage] for stage in reversed(stages[: stages.index(deciding[0])])]
    for candidates in (deciding, *earlier):
        if differences := tuple(setting for setting in settings if setting.stage in candidates):
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
    """Return the edits of a column in these rows, with id, copy and edit (`stage/reason`)."""
    keys = _row_keys(rows, suffix)
    made = [
        ledger.filter(
            (pl.col("action") == "edit") & (pl.col("evidence").str.json_path_match("$.column") == column)
        ).select(*SOURCE_KEY, pl.format("{}/{}", pl.lit(stage), pl.col("reason")).alias("edit"))
        for stage, ledger in files.tables(LEDGER_FILE)
    ]
    return pl.concat(made).join(keys, on=SOURCE_KEY).select("id", "copy", "edit").unique().collect(engine="streaming")


def _row_keys(rows: pl.DataFrame, suffix: str) -> pl.LazyFrame:
    return rows.lazy().select("id", "copy", *(pl.col(f"{name}{suffix}").alias(name) for name in SOURCE_KEY))


def _count_edits(edits: pl.DataFrame) -> dict[str, int]:
    return dict(edits.group_by("edit").len().sort(["len", "edit"], descending=[True, False]).iter_rows())


def _flags(first: RunFiles, second: RunFiles, both: pl.DataFrame, examples: int) -> tuple[FlagChange, ...]:
    flags_first, flags_second = _flagged(first, both, ""), _flagged(second, both, "_b")
    key = ["id", "copy", "reason"]
    gone, new = flags_first.join(flags_second, on=key, how="anti"), flags_second.join(flags_first, on=key, how="anti")
    changes = []
    for reason in sorted({*gone["reason"], *new["reason"]}):
        lost, gained = gone.filter(pl.col("reason") == reason), new.filter(pl.col("reason") == reason)
        changes.append(FlagChange(reason, lost.height, gained.height, _ids(lost, examples), _ids(gained, examples)))
    return tuple(changes)


def _flagged(files: RunFiles, both: pl.DataFrame, suffix: str) -> pl.DataFrame:
    keys = _row_keys(both, suffix)
    if (flags := files.flags(after_training=False)) is None:
        return keys.select("id", "copy", pl.lit("").alias("reason")).head(0).collect()
    flagged = flags.select(*SOURCE_KEY, "reason").unique().join(keys, on=SOURCE_KEY).select("id", "copy", "reason")
    return flagged.collect(engine="streaming")


def _rates(first: RunFiles, second: RunFiles, both: pl.DataFrame, examples: int) -> RateChange | None:
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
    first_mean, second_mean = (
        float(sum(column) / len(column)) if len(column) else None for column in (rows["pass_rate"], rows["rate_b"])
    )
    return RateChange(rows.height, moved.height, first_mean, second_mean, tuple(most["id"]))


def diff_page(first_dir: Path, second_dir: Path) -> str:
    """Return the differences between two runs as an HTML page. Raises the errors of `diff_runs`."""
    first, second = first_dir.resolve().name, second_dir.resolve().name
    names = (first, second) if first != second else (str(first_dir), str(second_dir))
    title = " and ".join(names)
    return render_plain("diff.html.jinja", title, names=names, difference=diff_runs(first_dir, second_dir))


def diff_lines(difference: Difference) -> list[str]:
    """Return the differences as lines of text."""
    text = templates_in(PAGE).get_template("diff.txt.jinja")
    return text.render(d=difference, decisions=DECISIONS, as_json=_as_json).rstrip("\n").split("\n")


def _as_json(value: object) -> str:
    return cut(visible(orjson.dumps(value).decode()), VALUE_CHARS)
