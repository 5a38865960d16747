"""Writes the data card of a curated set, a README for Hugging Face with facts from the tables of the run.

    ---
    configs: [{config_name: default, data_files: [{split: train, path: data/train.parquet}]}]
    dataset_info: {features: [{name: id, dtype: string}, ...], splits: [{name: train, num_examples: 1319, ...}], ...}
    ---
    # gsm8k
    ...

The YAML head has the fields of `datasets.DatasetInfo`. Sizes are in bytes. If the stage `decontaminate` has not run,
the card says so. Leaks of the run's own held-out rows are always counted, since the stage `dedup` finds them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import orjson
import polars as pl
import pyarrow as pa
import yaml

from truegold.pipeline.accounting import (
    LabelErrors,
    SourceAccount,
    count_by_source,
    count_rows_by_end,
    describe_losses,
    estimate_from_reviews,
    estimate_from_suspicion,
)
from truegold.pipeline.config.stages import ExportConfig
from truegold.pipeline.running.disk import digest_json
from truegold.pipeline.sources.provenance import provenance_of
from truegold.pipeline.tables.ledger import LEDGER_FILE
from truegold.pipeline.tables.losses import CUT
from truegold.pipeline.tables.reasons import MATCHES_FILE, SUSPICION_FILE, items_by_set
from truegold.pipeline.tables.rows import KEY, NOTES, Row, RowKey
from truegold.pipeline.tables.run_files import RunFiles
from truegold.pipeline.text.templates import templates_in
from truegold.verifiers import fingerprint

FOLDER = Path(__file__).parent
SOURCES_SHOWN = 20
_SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (10**6, "100K<n<1M"), (10**7, "1M<n<10M"))
NOT_STATED = "not stated"
"""The name under which the card counts rows without a licence."""

COUNTED = ("verifiers", "domains", "sources", "languages", "gold_types", "licenses", "origins")
"""The properties by which rows are counted."""
RowCounts = dict[str, Counter[str]]
"""For each property in COUNTED, the number of rows with each value. For `flags`, the number of rows by reason."""


@dataclass(frozen=True)
class SplitFile:
    """One split of the set as a file."""

    name: str
    path: str
    """The path relative to the set's folder."""
    rows: int
    bytes: int
    """The size of the columns in memory (Arrow)."""
    file_bytes: int
    """The size on disk."""


def count_row(counts: RowCounts, row: Row, flags: Sequence[str]) -> None:
    """Count one row and the reasons of its flags."""
    counts["flags"].update(flags)
    meta = orjson.loads(row["meta"] or "{}")
    notes: dict[str, str] = meta.get(NOTES, {})
    provenance = provenance_of(meta, row["source"])
    counts["verifiers"][row["verifier"]] += 1
    counts["domains"][row["domain"]] += 1
    counts["sources"][row["source"]] += 1
    counts["licenses"][provenance.license or NOT_STATED] += 1
    counts["origins"][provenance.origin] += 1
    counts["languages"][notes.get("language", "und")] += 1
    if "gold_type" in notes:
        counts["gold_types"][notes["gold_type"]] += 1


@dataclass(frozen=True)
class Matches:
    """The numbers of matches of one kind with one evaluation set."""

    against: str
    kind: str
    rows: int
    """The number of rows that match an item of the evaluation set."""
    in_train: int
    """The number of these rows in the training split. If matches of this kind drop rows, it is 0."""
    in_heldout: int
    """The number of these rows in the held-out split."""


@dataclass(frozen=True)
class Decontamination:
    """The result of decontamination."""

    is_run: bool
    """True if the data was compared with evaluation sets."""
    sets: Mapping[str, int]
    """The number of items of each evaluation set."""
    matches: tuple[Matches, ...]
    leaked_heldout: int
    """The number of training rows that were dropped because a held-out row has the same problem."""


@dataclass(frozen=True)
class DataCard:
    """The facts on the card."""

    name: str
    truegold: str
    configuration: str
    """A digest of the configuration and the code version of every stage."""
    license: str | None
    features: Mapping[str, str]
    splits: tuple[SplitFile, ...]
    records_in: int
    removed: tuple[tuple[str, str, int], ...]
    """(stage, reason, rows) of rows that were rejected, dropped or put in reserve. These rows and those of the splits
    add up to `records_in`."""
    by_source: tuple[SourceAccount, ...]
    """The account of each source. Empty if there is only one source."""
    edits: tuple[tuple[str, str, int], ...]
    """(stage, reason, number of edits)."""
    cut: tuple[str, ...]
    """A sentence for each phrase that was cut off many prompts."""
    flags: Mapping[str, int]
    """The number of flagged rows in the set, by reason. Of a flag that holds rows back, only those that reviewers
    kept."""
    counts: Mapping[str, Mapping[str, int]]
    """For each property in COUNTED, the number of rows with each value. Verifiers are named with their version."""
    label_errors: LabelErrors
    decontamination: Decontamination


def cut_phrases(cleaned: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the sentences about phrases that were cut off many prompts, from the record of the stage `clean`."""
    return tuple(cleaned.get("report", {}).get("facts", {}).get(CUT, ()))


def gather_card(
    files: RunFiles,
    config: ExportConfig,
    splits: Sequence[SplitFile],
    schema: pa.Schema,
    tally: RowCounts,
    tables: list[Path],
    inputs: Mapping[str, Path],
) -> DataCard:
    """Collect the facts of the card. Raises RuntimeError if the rows of the run do not add up (`accounting`)."""
    account = count_rows_by_end(files)
    configuration = {
        name: {key: record[key] for key in ("fn", "version", "config")} for name, record in files.records.items()
    }
    removed = [(end.stage, end.reason, end.rows) for end in account.ends if end.kind in ("reject", "drop", "reserve")]
    return DataCard(
        name=files.folders["ingest"].parent.name,
        truegold=version("truegold"),
        configuration=digest_json(configuration),
        license=config.license,
        features={field.name: _dtype(field.type) for field in schema},
        splits=tuple(splits),
        records_in=account.records_in,
        removed=tuple(removed),
        by_source=count_by_source(files),
        edits=_edits(files),
        cut=cut_phrases(files.records.get("clean", {})),
        flags=_ordered(tally["flags"]),
        counts={
            **{name: _ordered(tally[name]) for name in COUNTED},
            "verifiers": _ordered(Counter({fingerprint(name): rows for name, rows in tally["verifiers"].items()})),
        },
        label_errors=_estimate_label_errors(files, inputs, tables),
        decontamination=read_decontamination(files.path("decontaminate", MATCHES_FILE), tables, _leaked_heldout(files)),
    )


def _dtype(kind: pa.DataType) -> str:
    """Return a column's type in the notation of Hugging Face's `dataset_info`."""
    names: dict[Any, str] = {pa.string(): "string", pa.int64(): "int64", pa.float64(): "float64"}
    if pa.types.is_struct(kind):
        return "{" + ", ".join(f"{part.name}: {_dtype(part.type)}" for part in kind) + "}"
    return f"list[{_dtype(kind.value_type)}]" if pa.types.is_list(kind) else names[kind]


def _ordered(counts: Counter[str]) -> dict[str, int]:
    return dict(sorted(counts.items(), key=lambda entry: (-entry[1], entry[0])))


def _edits(files: RunFiles) -> tuple[tuple[str, str, int], ...]:
    edits: list[tuple[str, str, int]] = []
    for stage, ledger in files.tables(LEDGER_FILE):
        counted = ledger.filter(pl.col("action") == "edit").group_by("reason").agg(pl.len())
        ordered = counted.sort(["len", "reason"], descending=[True, False]).collect(engine="streaming")
        edits += [(stage, reason, count) for reason, count in ordered.iter_rows()]
    return tuple(edits)


def reasons_by_row(files: RunFiles) -> dict[RowKey, list[str]]:
    """Return the reasons of each flagged row, without repetition and in alphabetical order."""
    if (flags := files.flags(after_training=False)) is None:
        return {}
    grouped = flags.group_by(KEY).agg(pl.col("reason").unique().sort()).collect(engine="streaming")
    return {(id, source, source_row): reasons for id, source, source_row, reasons in grouped.iter_rows()}


def _estimate_label_errors(files: RunFiles, inputs: Mapping[str, Path], tables: list[Path]) -> LabelErrors:
    of_run = (files.path(stage, SUSPICION_FILE) for stage in ("profile", "suspect"))
    suspicion = inputs.get("suspicion") or next(filter(None, of_run), None)
    if suspicion is not None:
        estimate = estimate_from_suspicion(suspicion, tables)
        if estimate.rate is not None:
            return estimate
    return estimate_from_reviews(files.table("settle", LEDGER_FILE))


def _leaked_heldout(files: RunFiles) -> int:
    counts = files.records["dedup"]["report"]["counts"] if "dedup" in files else {}
    return int(counts.get("drop:leaked_heldout", 0))


def read_decontamination(table: Path | None, rows: list[Path], leaked_heldout: int) -> Decontamination:
    """Return the result of decontamination. `table` is the table of matches, and `rows` are the exported tables."""
    if table is None:
        return Decontamination(False, {}, (), leaked_heldout)
    matched = pl.scan_parquet(table).select("id", "row", "against", "kind")
    exported = pl.concat([pl.scan_parquet(path).select("id", "split") for path in rows])
    exported = exported.join(matched, on="id", how="semi").unique()
    by = ["against", "kind"]
    counted = matched.group_by(by).agg(rows=pl.col("row").n_unique())
    ids, is_heldout = pl.col("id"), pl.col("split") == "heldout"
    in_set = {"in_train": ids.filter(~is_heldout).n_unique(), "in_heldout": ids.filter(is_heldout).n_unique()}
    kept = matched.join(exported, on="id").group_by(by).agg(**in_set)
    ordered = counted.join(kept, on=by, how="left").fill_null(0).sort(by).collect(engine="streaming")
    counts = tuple(Matches(**row) for row in ordered.iter_rows(named=True))
    return Decontamination(True, items_by_set(table), counts, leaked_heldout)


def render(card: DataCard) -> str:
    """Return the card as Markdown with a YAML head."""
    body = templates_in(FOLDER).get_template("card.md.jinja")
    rows = sum(split.rows for split in card.splits)
    text = body.render(card=card, rows=rows, describe_losses=describe_losses, list_counts=_list_counts)
    return write_head(_front_matter(card)) + text


def write_head(head: Mapping[str, Any]) -> str:
    """Return the YAML head of a README.md."""
    return f"---\n{yaml.safe_dump(head, sort_keys=True, allow_unicode=True, width=120)}---\n"


def _front_matter(card: DataCard) -> dict[str, Any]:
    rows = sum(split.rows for split in card.splits)
    head: dict[str, Any] = {
        "configs": [
            {
                "config_name": "default",
                "data_files": [{"split": split.name, "path": split.path} for split in card.splits],
            }
        ],
        "dataset_info": {
            "config_name": "default",
            "features": [_feature(name, dtype) for name, dtype in card.features.items()],
            "splits": [
                {"name": split.name, "num_bytes": split.bytes, "num_examples": split.rows} for split in card.splits
            ],
            "download_size": sum(split.file_bytes for split in card.splits),
            "dataset_size": sum(split.bytes for split in card.splits),
        },
        "size_categories": [next((name for limit, name in _SIZES if rows < limit), "n>10M")],
        "tags": ["truegold", "reinforcement-learning", "verifiable-rewards"],
    }
    if languages := [code for code in card.counts["languages"] if code != "und"]:
        head["language"] = languages
    stated = [name for name in card.counts["licenses"] if name != NOT_STATED]
    if card.license:
        head["license"] = card.license
    elif stated:
        # The hub has no name for a mixture of licences.
        head["license"] = stated[0] if len(card.counts["licenses"]) == 1 else "other"
    return head


def _feature(name: str, dtype: str) -> dict[str, Any]:
    """Return a column in the form of `dataset_info`."""
    entries = dtype.removeprefix("list[")
    if entries == dtype:
        return {"name": name, "dtype": dtype}
    entry = entries.removesuffix("]")
    if not entry.startswith("{"):
        return {"name": name, "list": entry}
    parts = [part.split(": ") for part in entry.strip("{}").split(", ")]
    return {"name": name, "list": [{"name": part, "dtype": kind} for part, kind in parts]}


def _list_counts(counts: Mapping[str, int]) -> str:
    shown = [f"{name} {count:,}" for name, count in list(counts.items())[:SOURCES_SHOWN]]
    more = len(counts) - len(shown)
    return ", ".join(shown) + (f", {more} more" if more > 0 else "")
