"""Scores the detectors on planted defects, if `meta` names them, as in the demo's data.

    meta {"planted": "truncated"}, flagged truncated_text      ->  a planted truncation, detected
    meta {"planted": null},        flagged truncated_text      ->  a clean row, a false alarm
    meta {"planted": "exact_duplicate"}, kept, while its clean
    original was dropped as exact_duplicate                    ->  detected: either of a pair may be dropped

The recall of a kind is the share of its planted rows that `ingest` rejected or that have one of the kind's reasons. The
precision of a kind's reasons is the share of rows with these reasons that have any planted defect. For a row that is
held back because of its flags, only the flags count. A row that selection drops by pass rate is not detected.
"""

from __future__ import annotations

from collections.abc import Mapping

import orjson
import polars as pl

from truegold.pipeline.demo.planted_rows import DECOY
from truegold.pipeline.running.stage_table import CURATION_ROW_STAGES
from truegold.pipeline.tables.ledger import FLAGS_FILE, LEDGER_FILE
from truegold.pipeline.tables.run_files import HELD_REASONS, SOURCE_KEY, Fields, RunFiles

DUPLICATE_REASONS = ("exact_duplicate", "leaked_heldout")
REWORDING_REASONS = ("same_problem", "leaked_heldout")

KIND_REASONS: Mapping[str, tuple[str, ...]] = {
    "exact_duplicate": DUPLICATE_REASONS,
    "format_duplicate": DUPLICATE_REASONS,
    "rephrased": REWORDING_REASONS,
    "conflicting_label": ("conflicting_labels",),
    "wrong_gold": ("solution_contradicts_gold", "suspect_gold", "conflicting_labels"),
    "ambiguous": ("fractional_count",),
    "unanswerable": ("missing_quantity",),
    "truncated": ("truncated_text",),
    "multi_part": ("multi_part",),
    "missing_figure": ("missing_figure",),
    "proof": ("proof",),
    "unparsable_gold": ("gold_unparsed", "gold_fails_verifier", "gold_unverified", "gold_unmatchable", "empty_gold"),
}
"""The reasons that belong to each planted kind. Other kinds can still be detected, by any reason."""
CLEAN = ""
"""The kind of a row without a planted defect."""
HARMLESS = (CLEAN, DECOY)
"""Kinds without a defect: a flag on such a row is a false alarm."""
COPY_KINDS = ("exact_duplicate", "format_duplicate", "rephrased")


def score_planted(files: RunFiles) -> Fields | None:
    """Return the scores of a run: `kinds` of defects, false `alarms`, and labels that the trained model `disputed`.

    None if the data names no planted defects. A share is None if its denominator is 0.
    """
    if (kinds := _planted_kinds(files)) is None:
        return None
    hits = _find_hits(files, kinds)
    selected, late_flags = files.table("select", "selected.parquet"), files.table("profile_after", FLAGS_FILE)
    trained_on = None if selected is None else _count_kinds(selected, kinds)
    ingested = dict(kinds.group_by("planted").len().iter_rows())
    counts = files.path("make_data", "planted.json")
    # For rows that ingest rejected, only planted.json knows the kind.
    planted = ingested if counts is None else orjson.loads(counts.read_bytes())
    order = list(KIND_REASONS)
    defects = sorted(
        (planted.keys() | ingested.keys()) - set(HARMLESS),
        key=lambda kind: (order.index(kind) if kind in order else len(order), kind),
    )
    return {
        "kinds": [_score(kind, planted.get(kind, 0), ingested.get(kind, 0), hits, trained_on) for kind in defects],
        "alarms": [_count_alarms(kind, ingested[kind], hits, trained_on) for kind in HARMLESS if kind in ingested],
        "disputed": None if late_flags is None else _describe_disputed(_count_kinds(late_flags, kinds)),
    }


def _planted_kinds(files: RunFiles) -> pl.DataFrame | None:
    """Return SOURCE_KEY and the planted kind of every ingested row, or None if nothing was planted."""
    if (rows := files.table("ingest", "rows.parquet")) is None:
        return None
    marked = pl.col("meta").str.contains('"planted":', literal=True)
    if not rows.select(marked.any()).collect(engine="streaming").item():
        return None
    kind = pl.col("meta").str.json_path_match("$.planted").fill_null(CLEAN)
    return rows.select(*SOURCE_KEY, planted=kind).collect(engine="streaming")


def _find_hits(files: RunFiles, kinds: pl.DataFrame) -> pl.DataFrame:
    """Return SOURCE_KEY, `reason` and `planted` of every flag and drop before training, without repetitions.

    When the clean row of a pair is dropped as a duplicate, its planted copy counts as found.
    """
    kept = pl.col("evidence").str.json_path_match("$.kept")
    is_finding = (pl.col("action") == "drop") & ~pl.col("reason").is_in(HELD_REASONS)
    nothing = pl.LazyFrame(schema={"source": pl.String, "source_row": pl.Int64, "reason": pl.String, "kept": pl.String})
    drops = [
        ledger.filter(is_finding).select(*SOURCE_KEY, "reason", kept=kept)
        for _, ledger in files.tables(LEDGER_FILE, CURATION_ROW_STAGES)
    ]
    twins = kinds.lazy().select(
        kept=pl.format("{}:{}", *SOURCE_KEY), kept_source="source", kept_row="source_row", kept_planted="planted"
    )
    pairs = (
        pl.concat([nothing, *drops]).join(kinds.lazy(), on=SOURCE_KEY, how="left").join(twins, on="kept", how="left")
    )
    is_twin = pl.col("planted").is_in(HARMLESS) & pl.col("kept_planted").is_in(COPY_KINDS)
    is_twin = (is_twin & pl.col("reason").is_in({*DUPLICATE_REASONS, *REWORDING_REASONS})).fill_null(False)
    frames = [
        pairs.select(
            pl.when(is_twin).then("kept_source").otherwise("source").alias("source"),
            pl.when(is_twin).then("kept_row").otherwise("source_row").alias("source_row"),
            "reason",
        )
    ]
    if (flags := files.flags(after_training=False)) is not None:
        frames.append(flags.select(*SOURCE_KEY, "reason"))
    return pl.concat(frames).unique().join(kinds.lazy(), on=SOURCE_KEY, how="left").collect(engine="streaming")


def _count_kinds(rows: pl.LazyFrame, kinds: pl.DataFrame) -> dict[str, int]:
    """Return the number of rows of each kind in a table."""
    keys = rows.select(SOURCE_KEY).unique().collect(engine="streaming")
    return dict(kinds.join(keys, on=SOURCE_KEY, how="semi").group_by("planted").len().iter_rows())


def _score(kind: str, planted: int, ingested: int, hits: pl.DataFrame, trained_on: Mapping[str, int] | None) -> Fields:
    reasons = KIND_REASONS.get(kind, ())
    is_kind, is_reason = pl.col("planted") == kind, pl.col("reason").is_in(reasons)

    def count(*conditions: pl.Expr) -> int:
        return hits.filter(*conditions).select(SOURCE_KEY).n_unique()

    rejected = max(0, planted - ingested)
    detected, rows_hit = count(is_kind, is_reason) + rejected, count(is_reason)
    defective = count(is_reason, ~pl.col("planted").is_in(HARMLESS))
    return {
        "kind": kind,
        "reasons": reasons,
        "planted": planted,
        "rejected": rejected,
        "found": detected,
        "recall": detected / planted if planted else None,
        "found_by_any": count(is_kind) + rejected,
        "hits": rows_hit,
        "precision": defective / rows_hit if rows_hit else None,
        "trained_on": None if trained_on is None else trained_on.get(kind, 0),
    }


def _count_alarms(kind: str, rows: int, hits: pl.DataFrame, trained_on: Mapping[str, int] | None) -> Fields:
    of_kind = hits.filter(pl.col("planted") == kind)
    return {
        "rows_of": f"decoy: {kind}" if kind else "clean rows",
        "rows": rows,
        "hit": of_kind.select(SOURCE_KEY).n_unique(),
        "by_reason": dict(of_kind.group_by("reason").len().sort("reason").iter_rows()),
        "trained_on": None if trained_on is None else trained_on.get(kind, 0),
    }


def _describe_disputed(by_kind: Mapping[str, int]) -> Fields:
    return {
        "rows": sum(by_kind.values()),
        "defective": sum(rows for kind, rows in by_kind.items() if kind not in HARMLESS),
        "by_kind": {kind or "clean": by_kind[kind] for kind in sorted(by_kind)},
    }
