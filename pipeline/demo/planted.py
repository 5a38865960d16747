"""How many planted defects were detected: only for data whose `meta` says what was planted, such as the demo's.

    meta {"planted": "truncated"}, flagged truncated_text      ->  a planted truncation, detected
    meta {"planted": null},        flagged truncated_text      ->  a clean row, a false alarm
    meta {"planted": "exact_duplicate"}, kept, while its clean
    twin was dropped as exact_duplicate                        ->  detected: of a pair either may go

The recall of a kind is the share of its planted rows that were hit by any of the reasons that belong to it, or rejected
on the way in. The precision of a kind's reasons is the share of the rows they hit that carry any planted defect. A row
held back because of its flags counts by its flags; what selection by pass rate leaves out does not count as detected.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import orjson
import polars as pl

from truegold.pipeline.demo.defects import DECOY
from truegold.pipeline.running.stage_table import CURATION_ROW_STAGES
from truegold.pipeline.tables.ledger import FLAGS_FILE, LEDGER_FILE
from truegold.pipeline.tables.run_files import HELD_REASONS, SOURCE_KEY, RunFiles

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
    "unparsable_gold": (
        "gold_unparsed",
        "gold_fails_verifier",
        "gold_unverified",
        "gold_unmatchable",
        "empty_gold",
    ),
}
"""The reasons that belong to each planted kind. A kind without any can still be detected by any means."""

DECOYS = (DECOY,)
"""Planted kinds that are no defects: a flag on them is wrong."""

CLEAN = ""
"""The kind of a row that nothing was planted in."""

HARMLESS = (CLEAN, *DECOYS)

DUPLICATE_KINDS = ("exact_duplicate", "format_duplicate", "rephrased")


@dataclass(frozen=True)
class KindScore:
    """One planted kind of defect. Shares are None where there is nothing to divide by."""

    kind: str
    reasons: tuple[str, ...]
    planted: int
    rejected: int
    detected: int
    """Rows hit by one of the kind's reasons, or rejected on the way in."""
    recall: float | None
    detected_by_any: int
    """Rows hit by any reason, or rejected on the way in."""
    hits: int
    """Rows of any kind that the kind's reasons hit."""
    precision: float | None
    trained_on: int | None


@dataclass(frozen=True)
class Alarms:
    """Rows without a defect, and how many were dropped or flagged nevertheless."""

    rows_of: str
    rows: int
    hit: int
    by_reason: Mapping[str, int]
    trained_on: int | None


@dataclass(frozen=True)
class Disputed:
    """Labels that the trained model disputes (flags of `profile_after`), by what is planted in their rows."""

    rows: int
    defective: int
    by_kind: Mapping[str, int]


@dataclass(frozen=True)
class Planted:
    """The scores of all planted kinds, the false alarms, and what the trained model disputes."""

    kinds: tuple[KindScore, ...]
    alarms: tuple[Alarms, ...]
    disputed: Disputed | None


def score_planted(files: RunFiles) -> Planted | None:
    """Score what was detected against what was planted; None where nothing says what was planted."""
    population = _population(files)
    if population is None:
        return None
    hits = _hits(files, population)
    trained_on = _selected(files, population)
    ingested = _by_kind(population)
    planted = _planted_counts(files) or ingested
    defects = sorted((planted.keys() | ingested.keys()) - set(HARMLESS), key=_order)
    kinds = tuple(_score(kind, planted.get(kind, 0), ingested.get(kind, 0), hits, trained_on) for kind in defects)
    harmless = [kind for kind in HARMLESS if kind in ingested]
    alarms = tuple(_alarms(kind, ingested[kind], hits, trained_on) for kind in harmless)
    return Planted(kinds, alarms, _disputed(files, population))


def _disputed(files: RunFiles, population: pl.DataFrame) -> Disputed | None:
    flags = files.table("profile_after", FLAGS_FILE)
    if flags is None:
        return None
    disputed = flags.select(SOURCE_KEY).unique().collect(engine="streaming")
    by_kind = _by_kind(population.join(disputed, on=SOURCE_KEY, how="semi"))
    defective = sum(rows for kind, rows in by_kind.items() if kind not in HARMLESS)
    return Disputed(disputed.height, defective, {kind or "clean": by_kind[kind] for kind in sorted(by_kind)})


def _population(files: RunFiles) -> pl.DataFrame | None:
    """Return SOURCE_KEY and planted kind of every ingested row."""
    rows = files.table("ingest", "rows.parquet")
    if rows is None:
        return None
    marked = pl.col("meta").str.contains('"planted":', literal=True)
    if not rows.select(marked.any()).collect(engine="streaming").item():
        return None
    kind = pl.col("meta").str.json_path_match("$.planted").fill_null(CLEAN).alias("planted")
    return rows.select(*SOURCE_KEY, kind).collect(engine="streaming")


def _hits(files: RunFiles, population: pl.DataFrame) -> pl.DataFrame:
    """Return one row for each (row, reason) of every flag and drop before training, with the row's planted kind."""
    frames = [_drops(files, population)]
    flags = files.flags(after_training=False)
    if flags is not None:
        frames.append(flags.select(*SOURCE_KEY, "reason").collect(engine="streaming"))
    return pl.concat(frames).unique().join(population, on=SOURCE_KEY, how="left")


def _drops(files: RunFiles, population: pl.DataFrame) -> pl.DataFrame:
    """Return drops as hits. That of a duplicate hits the planted one of the pair, whichever of the two was dropped."""
    ledgers = [table for _, table in files.tables(LEDGER_FILE, CURATION_ROW_STAGES)]
    empty = pl.DataFrame(schema={"source": pl.String, "source_row": pl.Int64, "reason": pl.String})
    if not ledgers:
        return empty
    kept = pl.col("evidence").str.json_path_match("$.kept")
    finding = (pl.col("action") == "drop") & ~pl.col("reason").is_in(HELD_REASONS)
    drops = pl.concat(ledgers).filter(finding).select(*SOURCE_KEY, "reason", kept=kept).collect(engine="streaming")
    twins = population.select(
        kept=pl.format("{}:{}", *SOURCE_KEY), kept_source="source", kept_row="source_row", kept_planted="planted"
    )
    pairs = drops.join(population, on=SOURCE_KEY, how="left").join(twins, on="kept", how="left")
    twin = pl.col("planted").is_in(HARMLESS) & pl.col("kept_planted").is_in(DUPLICATE_KINDS)
    twin = (twin & pl.col("reason").is_in({*DUPLICATE_REASONS, *REWORDING_REASONS})).fill_null(False)
    return pairs.select(
        pl.when(twin).then("kept_source").otherwise("source").alias("source"),
        pl.when(twin).then("kept_row").otherwise("source_row").alias("source_row"),
        "reason",
    )


def _selected(files: RunFiles, population: pl.DataFrame) -> dict[str, int] | None:
    """Return how many rows of each kind are trained on, None before selection."""
    selected = files.table("select", "selected.parquet")
    if selected is None:
        return None
    return _by_kind(population.join(selected.select(SOURCE_KEY).collect(engine="streaming"), on=SOURCE_KEY, how="semi"))


def _by_kind(rows: pl.DataFrame) -> dict[str, int]:
    return dict(rows.group_by("planted").agg(pl.len()).iter_rows())


def _planted_counts(files: RunFiles) -> dict[str, int] | None:
    """Return what the maker of the data says it planted: rows rejected by ingest are known from here alone."""
    path = files.path("make_data", "planted.json")
    return None if path is None else dict(orjson.loads(path.read_bytes()))


def _order(kind: str) -> tuple[int, str]:
    known = list(KIND_REASONS)
    return known.index(kind) if kind in known else len(known), kind


def _score(
    kind: str, planted: int, ingested: int, hits: pl.DataFrame, trained_on: Mapping[str, int] | None
) -> KindScore:
    reasons = KIND_REASONS.get(kind, ())
    rejected = max(0, planted - ingested)
    of_kind = hits.filter(pl.col("planted") == kind)
    by_reasons = hits.filter(pl.col("reason").is_in(reasons))
    detected = _count_rows(of_kind.filter(pl.col("reason").is_in(reasons))) + rejected
    rows_hit = _count_rows(by_reasons)
    defective_rows = _count_rows(by_reasons.filter(~pl.col("planted").is_in(HARMLESS)))
    return KindScore(
        kind=kind,
        reasons=reasons,
        planted=planted,
        rejected=rejected,
        detected=detected,
        recall=detected / planted if planted else None,
        detected_by_any=_count_rows(of_kind) + rejected,
        hits=rows_hit,
        precision=defective_rows / rows_hit if rows_hit else None,
        trained_on=None if trained_on is None else trained_on.get(kind, 0),
    )


def _count_rows(hits: pl.DataFrame) -> int:
    return hits.select(SOURCE_KEY).unique().height


def _alarms(kind: str, rows: int, hits: pl.DataFrame, trained_on: Mapping[str, int] | None) -> Alarms:
    of_kind = hits.filter(pl.col("planted") == kind)
    by_reason = of_kind.group_by("reason").agg(pl.len()).sort("reason")
    return Alarms(
        rows_of=f"decoy: {kind}" if kind else "clean rows",
        rows=rows,
        hit=_count_rows(of_kind),
        by_reason=dict(by_reason.iter_rows()),
        trained_on=None if trained_on is None else trained_on.get(kind, 0),
    )
