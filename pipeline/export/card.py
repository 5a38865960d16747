"""What a data card says, gathered from the run's own tables before any of it is written down."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import orjson
import polars as pl
import pyarrow as pa

from truegold.pipeline.accounting.accounting import SourceAccount, count_by_source, count_rows_by_end
from truegold.pipeline.accounting.label_errors import LabelErrors, estimate_from_reviews, estimate_from_suspicion
from truegold.pipeline.config.stages import ExportConfig
from truegold.pipeline.decontaminate.file import items_by_set
from truegold.pipeline.running.disk import digest_json
from truegold.pipeline.sources.provenance import provenance_of
from truegold.pipeline.tables.ledger import LEDGER_FILE
from truegold.pipeline.tables.reasons import MATCHES_FILE
from truegold.pipeline.tables.rows import KEY, NOTES, Row, RowKey
from truegold.pipeline.tables.run_files import RunFiles
from truegold.verifiers import fingerprint

NOT_STATED = "not stated"
"""What the card counts rows without a licence as."""


@dataclass(frozen=True)
class SplitFile:
    """One file of the set."""

    name: str
    path: str
    """Relative to the set's folder."""
    rows: int
    bytes: int
    """The size of its columns in memory (Arrow)."""
    file_bytes: int
    """Its size on disk."""


@dataclass
class RowCounts:
    """Rows of the set by what they are."""

    verifiers: Counter[str] = field(default_factory=Counter)
    domains: Counter[str] = field(default_factory=Counter)
    sources: Counter[str] = field(default_factory=Counter)
    languages: Counter[str] = field(default_factory=Counter)
    gold_types: Counter[str] = field(default_factory=Counter)
    licenses: Counter[str] = field(default_factory=Counter)
    origins: Counter[str] = field(default_factory=Counter)

    def add(self, row: Row) -> None:
        """Count one row."""
        self.verifiers[row["verifier"]] += 1
        self.domains[row["domain"]] += 1
        self.sources[row["source"]] += 1
        meta = orjson.loads(row["meta"] or "{}")
        notes: dict[str, Any] = meta.get(NOTES, {})
        provenance = provenance_of(meta, row["source"])
        self.licenses[provenance.license or NOT_STATED] += 1
        self.origins[provenance.origin] += 1
        self.languages[notes.get("language", "und")] += 1
        if "gold_type" in notes:
            self.gold_types[notes["gold_type"]] += 1


@dataclass(frozen=True)
class Matches:
    """The matches of one kind with one evaluation set."""

    against: str
    kind: str
    rows: int
    """The matching rows of the data."""
    in_train: int
    """Those of them that are still in the set to train on, because their kind does not drop them."""
    in_heldout: int
    """Those of them that are held out."""


@dataclass(frozen=True)
class Decontamination:
    """What is known of the set's decontamination."""

    is_run: bool
    """Whether the data was compared with evaluation sets at all."""
    sets: Mapping[str, int]
    """The evaluation sets with their numbers of items."""
    matches: tuple[Matches, ...]
    leaked_heldout: int
    """The rows that were dropped because of a held-out one."""


@dataclass(frozen=True)
class DataCard:
    """Everything the card says. It counts rows, but edits in `edits`."""

    name: str
    truegold: str
    configuration: str
    """A digest over the resolved configuration and code version of every stage."""
    license: str | None
    features: Mapping[str, str]
    splits: tuple[SplitFile, ...]
    records_in: int
    removed: tuple[tuple[str, str, int], ...]
    """(stage, reason, rows) of what was rejected, dropped or left in reserve. With the splits it adds up to
    `records_in`."""
    by_source: tuple[SourceAccount, ...]
    """The same by source; none where there is a single one."""
    edits: tuple[tuple[str, str, int], ...]
    """(stage, reason, edits)."""
    flags: Mapping[str, int]
    """Rows of the set that carry a flag, by reason: advice, or kept by a reviewer."""
    verifiers: Mapping[str, int]
    """Rows by the verifier's name, version and, for imported code, digest of its file."""
    domains: Mapping[str, int]
    sources: Mapping[str, int]
    languages: Mapping[str, int]
    gold_types: Mapping[str, int]
    licenses: Mapping[str, int]
    """Rows by the licence that they or their source state."""
    origins: Mapping[str, int]
    label_errors: LabelErrors
    decontamination: Decontamination


def gather_card(
    files: RunFiles,
    config: ExportConfig,
    splits: Sequence[SplitFile],
    schema: pa.Schema,
    tally: RowCounts,
    tables: list[Path],
    inputs: Mapping[str, Path],
) -> DataCard:
    """Gather the card of the exported `tables`. RuntimeError where rows went missing (`report.accounting`)."""
    account = count_rows_by_end(files)
    removed = [(end.stage, end.reason, end.rows) for end in account.ends if end.kind in ("reject", "drop", "reserve")]
    return DataCard(
        name=files.folders["ingest"].parent.name,
        truegold=version("truegold"),
        configuration=_configuration(files),
        license=config.license,
        features={field.name: _dtype(field.type) for field in schema},
        splits=tuple(splits),
        records_in=account.records_in,
        removed=tuple(removed),
        by_source=count_by_source(files),
        edits=_edits(files),
        flags=_flags(files, tables),
        verifiers=_ordered(Counter({fingerprint(name): rows for name, rows in tally.verifiers.items()})),
        domains=_ordered(tally.domains),
        sources=_ordered(tally.sources),
        languages=_ordered(tally.languages),
        gold_types=_ordered(tally.gold_types),
        licenses=_ordered(tally.licenses),
        origins=_ordered(tally.origins),
        label_errors=_label_errors(files, inputs, tables),
        decontamination=read_decontamination(files.path("decontaminate", MATCHES_FILE), tables, _leaked_heldout(files)),
    )


def _configuration(files: RunFiles) -> str:
    return digest_json(
        {name: {key: record[key] for key in ("fn", "version", "config")} for name, record in files.records.items()}
    )


def _dtype(kind: pa.DataType) -> str:
    """Return a column's type as Hugging Face's `dataset_info` names it."""
    names: dict[Any, str] = {pa.string(): "string", pa.int64(): "int64", pa.float64(): "float64"}
    return f"list[{names[kind.value_type]}]" if pa.types.is_list(kind) else names[kind]


def _ordered(counts: Counter[str]) -> dict[str, int]:
    return dict(sorted(counts.items(), key=lambda entry: (-entry[1], entry[0])))


def _edits(files: RunFiles) -> tuple[tuple[str, str, int], ...]:
    edits: list[tuple[str, str, int]] = []
    for stage, ledger in files.tables(LEDGER_FILE):
        counted = ledger.filter(pl.col("action") == "edit").group_by("reason").agg(pl.len())
        ordered = counted.sort(["len", "reason"], descending=[True, False]).collect(engine="streaming")
        edits += [(stage, reason, count) for reason, count in ordered.iter_rows()]
    return tuple(edits)


def _flags(files: RunFiles, tables: list[Path]) -> dict[str, int]:
    flags = files.flags(after_training=False)
    if flags is None:
        return {}
    keys = pl.concat([pl.scan_parquet(path).select(KEY) for path in tables])
    exported = flags.select(*KEY, "reason").unique().join(keys, on=KEY, how="semi")
    counted = exported.group_by("reason").agg(pl.len()).collect(engine="streaming")
    return _ordered(Counter(dict(counted.iter_rows())))


def reasons_by_row(files: RunFiles) -> dict[RowKey, list[str]]:
    """Return the reasons of each flagged row's flags, each once, in alphabetical order."""
    flags = files.flags(after_training=False)
    if flags is None:
        return {}
    grouped = flags.group_by(KEY).agg(pl.col("reason").unique().sort()).collect(engine="streaming")
    return {(id, source, source_row): reasons for id, source, source_row, reasons in grouped.iter_rows()}


def _label_errors(files: RunFiles, inputs: Mapping[str, Path], tables: list[Path]) -> LabelErrors:
    suspicion = inputs.get("suspicion") or files.path("profile", "suspicion.parquet")
    if suspicion is not None:
        estimate = estimate_from_suspicion(suspicion, tables)
        if estimate.rate is not None:
            return estimate
    return estimate_from_reviews(files.table("settle", LEDGER_FILE))


def _leaked_heldout(files: RunFiles) -> int:
    counts = files.records["dedup"]["report"]["counts"] if "dedup" in files else {}
    return int(counts.get("drop:leaked_heldout", 0))


def read_decontamination(table: Path | None, rows: list[Path], leaked_heldout: int) -> Decontamination:
    """Read the run's table of matches, where it has one, against the exported `rows`."""
    if table is None:
        return Decontamination(False, {}, (), leaked_heldout)
    matched = pl.scan_parquet(table).select("id", "row", "against", "kind")
    exported = pl.concat([pl.scan_parquet(path).select("id", "split") for path in rows]).unique()
    by = ["against", "kind"]
    counted = matched.group_by(by).agg(rows=pl.col("row").n_unique())
    kept = (
        matched.join(exported, on="id")
        .group_by(by)
        .agg(
            in_train=pl.col("id").filter(pl.col("split") != "heldout").n_unique(),
            in_heldout=pl.col("id").filter(pl.col("split") == "heldout").n_unique(),
        )
    )
    ordered = counted.join(kept, on=by, how="left").fill_null(0).sort(by).collect(engine="streaming")
    counts = tuple(Matches(**row) for row in ordered.iter_rows(named=True))
    return Decontamination(True, items_by_set(table), counts, leaked_heldout)
