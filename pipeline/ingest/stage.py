"""Stage `ingest`: reads a source of any supported layout into canonical rows, and writes rejects with their reasons.

    line 1: {"question": "Natalia sold ...", "answer": "... #### 72"}   ->  a row in rows.parquet, gold "72"
    line 2: {"question": "Weng earns ...", "answer": null}              ->  a line in rejects.jsonl:
    {"source": "train.jsonl", "source_row": 2, "reason": "missing_gold", "detail": "column 'answer' is null", ...}

Inputs: `data`, the path of a source that is a file, and optionally `heldout`, a file whose rows are all held out.
Several sources have `data 0`, `heldout 0`, `data 1` and so on, and are read into one table in the order of
`sources.json`, the most trusted first. `limit` is the maximum number of records that are read from each file.

Rejects never became rows, so they are not in the ledger. `rows_in` is `rows_out` plus all `reject:*` counts. Memory
does not grow with the source, except for four bytes a row if several sources have held-out shares.

The setting `heldout` is the share of a source's rows to hold out. A hash of a row's content, from 0 to 1, decides:

    sources   held-out rows of each source                   number of these rows with the share .1
    one       the rows with a hash below .1 (`is_heldout`)   about a tenth
    several   the rows with the smallest hashes              exactly a tenth, at least one row
"""

from __future__ import annotations

import hashlib
import itertools
from array import array
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import orjson

from truegold.pipeline.config.sources import FileSource, HubSource, ListedFile, ListedHub, SeveralSources, heldout_label
from truegold.pipeline.config.stages import PartsConfig
from truegold.pipeline.ingest.source_facts import as_json, find_source_facts
from truegold.pipeline.near.arrays import OnDisk
from truegold.pipeline.running.disk import table_parts, written_aside
from truegold.pipeline.running.progress import Progress, paced
from truegold.pipeline.running.stage import StageReport, stage_function
from truegold.pipeline.sources.columns import Layout
from truegold.pipeline.sources.data_files import open_file
from truegold.pipeline.sources.hub import open_hub
from truegold.pipeline.sources.likely_causes import cause_of_rejects
from truegold.pipeline.sources.presets import check_columns, check_spelling, choose_layout, source_named
from truegold.pipeline.sources.proposal import doubt_on_comma, gold_with_comma
from truegold.pipeline.sources.records import (
    DETAIL_CHARS,
    LOOK_AHEAD,
    REJECT,
    REJECTS_FILE,
    REMEDIES,
    Record,
    Reject,
    Source,
    look_ahead,
    nothing_usable,
)
from truegold.pipeline.sources.row_builder import RowBuilder, RowWarnings, heldout_hash
from truegold.pipeline.sources.unused_columns import describe_unused, unused_columns
from truegold.pipeline.tables.ledger import Ledger
from truegold.pipeline.tables.losses import LOSSES, REJECTED, Cause, LossCount
from truegold.pipeline.tables.rows import ROW_SCHEMA, PartsWriter, Row, TableWriter, read_rows
from truegold.verifiers import InputError
from truegold.verifiers.code.suite.row_tests import Unusable
from truegold.verifiers.columns import Values

ROWS_FILE = "rows.parquet"
SOURCES_FILE = "sources.json"
SORTED_IDS = 2_000_000
"""The approximate number of identifiers that are sorted at a time."""
SOURCE_FACTS = "source_facts"
"""The name of the facts about sources in the stage's record."""


@stage_function(version=13)
def ingest(
    inputs: Mapping[str, Path],
    config: FileSource | HubSource | SeveralSources,
    out_dir: Path,
    progress: Progress,
    part_rows: int = PartsConfig().rows,
) -> StageReport:
    """Read the sources and their held-out files into `rows.parquet` and `rejects.jsonl`.

    The table has parts of `part_rows` rows, which later stages keep.
    """
    opened = _open_all(inputs, config)
    names = [source.name for _, sources in opened for source in sources]
    with (
        Ledger(out_dir, "ingest"),
        PartsWriter(out_dir / ROWS_FILE, ROW_SCHEMA, part_rows) as rows,
        _Rejects(out_dir / REJECTS_FILE) as rejects,
    ):
        ids, warnings = _SourceIds(out_dir), RowWarnings()
        for part, sources in opened:
            reader = _Reader(part, rows, rejects, ids, warnings, progress)
            layout: Layout | None = None
            with source_named(part):
                for index, source in enumerate(sources):
                    layout = reader.read(source, layout, all_heldout=index > 0)
    if isinstance(config, SeveralSources):
        _set_apart(out_dir / ROWS_FILE, {part.label: part.heldout for part in config.sources})
        (out_dir / SOURCES_FILE).write_bytes(orjson.dumps(names))
    for line in warnings.lines():
        progress.note(line)
    counts = {f"{REJECT}{reason}": count for reason, count in rejects.counts.items()}
    counts |= ids.warn(progress) | warnings.counts()
    rows_in = rows.rows + sum(rejects.counts.values())
    facts: dict[str, Any] = {"sources": names}
    if heavy := rejects.heavy_losses(rows_in):
        facts[LOSSES] = heavy
    if source_facts := find_source_facts(out_dir / ROWS_FILE):
        facts[SOURCE_FACTS] = as_json(source_facts)
        for fact in source_facts:
            progress.note(fact.line())
    return StageReport(rows_in, rows.rows, counts, facts)


def _open_all(
    inputs: Mapping[str, Path], config: FileSource | HubSource | SeveralSources
) -> list[tuple[FileSource | HubSource, list[Source]]]:
    """Open every source. Misspelt settings raise ConfigError before any file is opened."""
    parts = config.sources if isinstance(config, SeveralSources) else (config,)
    opened: list[tuple[FileSource | HubSource, list[Source]]] = []
    for part in parts:
        with source_named(part):
            check_spelling(part)
    for index, part in enumerate(parts):
        with source_named(part):
            if not isinstance(part, ListedFile | ListedHub):
                opened.append((part, _open_sources(inputs, part)))
                continue
            files = {name: inputs[f"{name} {index}"] for name in ("data", "heldout") if f"{name} {index}" in inputs}
            labels = (part.label, heldout_label(part.label))
            sources = [
                replace(source, name=name) for source, name in zip(_open_sources(files, part), labels, strict=False)
            ]
            # Shares of several sources are exact. They are known only when a source has been read completely.
            opened.append((part.model_copy(update={"heldout": 0.0}), sources))
    return opened


def _open_sources(inputs: Mapping[str, Path], config: FileSource | HubSource) -> list[Source]:
    if isinstance(config, HubSource):
        return [open_hub(config)]
    sources = [open_file(inputs["data"], config.format, config.max_row_bytes)]
    if "heldout" in inputs:
        heldout = open_file(inputs["heldout"], config.format, config.max_row_bytes)
        # The files a/part.jsonl and b/part.jsonl have one name. (source, row number) must still identify a row.
        if heldout.name == sources[0].name:
            heldout = replace(heldout, name=f"{inputs['heldout'].resolve().parent.name}/{heldout.name}")
        sources.append(heldout)
    return sources


def _set_apart(path: Path, shares: Mapping[str, float]) -> None:
    """Hold out each source's share of the rows in a table. Rows with equal content count once, and are held out
    together. A source whose rows all have the same content holds out none. Takes four bytes of memory for each row."""
    if not any(shares.values()):
        return
    hashes: dict[str, array[int]] = {source: array("I") for source, share in shares.items() if share > 0}
    for row in read_rows(path, ["id", "source"]):
        if row["source"] in hashes:
            hashes[row["source"]].append(heldout_hash(row["id"]))
    bounds = {source: _bound(np.asarray(values), shares[source]) for source, values in hashes.items()}
    for part in table_parts(path):
        with written_aside(part) as aside, TableWriter(aside, ROW_SCHEMA) as rows:
            for row in read_rows(part):
                is_apart = row["source"] in bounds and heldout_hash(row["id"]) <= bounds[row["source"]]
                rows.write({**row, "split": "heldout"} if is_apart else row)


def _bound(hashes: np.ndarray, share: float) -> int:
    """Return the largest hash of the rows to hold out, or -1 to hold out none."""
    distinct = np.unique(hashes)
    count = min(max(1, round(share * len(distinct))), len(distinct) - 1)
    return int(distinct[count - 1]) if count > 0 else -1


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads sources into the stage's tables."""

    config: FileSource | HubSource
    rows: PartsWriter
    rejects: _Rejects
    ids: _SourceIds
    warnings: RowWarnings
    progress: Progress

    def read(self, source: Source, layout: Layout | None, all_heldout: bool) -> Layout:
        """Read one source and return its layout, which is chosen by the columns if `layout` is None."""
        self.rejects.begin()
        rows_before = self.rows.rows
        limited = itertools.islice(source.records, self.config.limit)
        total = source.total if self.config.limit is None else min(source.total or self.config.limit, self.config.limit)
        records = paced(limited, self.progress, f"reading {source.name}", total)
        # Rejects are written at once. Any number of them may come before the first record.
        ahead = look_ahead(records, partial(self.rejects.write, source))
        if not (samples := [record.values for record in ahead]):
            raise self._nothing_usable(source)
        if layout is None:
            layout = choose_layout(self.config, source.location, samples)
        else:
            check_columns(self.config, layout, source.location, samples)
        self.rejects.gold_column = layout.columns.gold.column if layout.columns.gold is not None else None
        if deciding := [column for column in unused_columns(self.config, layout, ahead) if column.decides]:
            self.progress.note(f"{source.name}: columns that are not used: {describe_unused(deciding)}")
        builder = RowBuilder(self.config, layout, source.name, self.warnings, all_heldout=all_heldout)
        first: list[Row] = []
        for record in itertools.chain(ahead, records):
            row = self._write_row(record, builder, source)
            if row is not None and len(first) < LOOK_AHEAD:
                first.append(row)
        if (sign := gold_with_comma(first)) is not None:
            self.progress.note(f"{source.name}: {doubt_on_comma(sign[1])}")
        if self.rows.rows == rows_before:
            raise self._nothing_usable(source)
        return layout

    def _write_row(self, record: Record | Reject, builder: RowBuilder, source: Source) -> Row | None:
        if isinstance(record, Reject):
            self.rejects.write(source, record)
            return None
        try:
            row = builder.build(record)
        except Unusable as error:
            reject = record.reject(error.reason, error.detail)
            self.rejects.write(source, reject, record.values, builder.source_id(record))
            return None
        self.rows.write(row)
        if (source_id := builder.source_id(record)) is not None:
            self.ids.add(source.name, source_id, record.row_number, row["id"])
        return row

    def _nothing_usable(self, source: Source) -> InputError:
        reasons = Counter({reason: count for reason, (count, _) in self.rejects.here.items()})
        first = self.rejects.here[reasons.most_common(1)[0][0]][1] if reasons else None
        cause = self.rejects.cause_of(first.reason) if first is not None else Cause()
        read = f"{reasons.total()} rows"
        if len(reasons) > 1:
            read += f" ({', '.join(f'{count:,} {reason}' for reason, count in reasons.most_common())})"
        return nothing_usable(source, read, first, f"{cause.cause} {cause.remedy}".strip())


class _Rejects:
    """Writes `rejects.jsonl`, and counts rejects by reason."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("wb")
        self.lost: LossCount[tuple[str, Reject, Values]] = LossCount()
        """Rejects by reason. The first rejects have their values. A record that could not be read has no values."""
        self.gold_column: str | None = None
        """The gold column of the current source."""
        self.begin()

    @property
    def counts(self) -> Mapping[str, int]:
        """Rejects by reason."""
        return self.lost.counts

    def begin(self) -> None:
        """Begin another source, with new counts (`here`)."""
        self.here: dict[str, tuple[int, Reject]] = {}

    def write(self, source: Source, reject: Reject, values: Values | None = None, source_id: str | None = None) -> None:
        """Write and count one reject. `values` and `source_id` are given if the record could be read."""
        count, first = self.here.get(reject.reason, (0, reject))
        self.here[reject.reason] = (count + 1, first)
        self.lost.add(reject.reason, (source.name, reject, values or {}))
        entry = {
            "source": source.name,
            "source_row": reject.row_number,
            "reason": reject.reason,
            "detail": reject.detail,
            "excerpt": reject.excerpt,
            **({} if source_id is None else {"source_id": source_id}),
        }
        self._file.write(orjson.dumps(entry, option=orjson.OPT_APPEND_NEWLINE))

    def cause_of(self, reason: str) -> Cause:
        """Return the likely cause of the rejects for a reason."""
        samples = [values for _, _, values in self.lost.samples[reason]]
        cause = cause_of_rejects(reason, samples, self.gold_column)
        return cause if cause.remedy else replace(cause, remedy=REMEDIES.get(reason, ""))

    def heavy_losses(self, records: int) -> list[dict[str, Any]]:
        """Return the reasons of many rejects, with their causes, as facts of the stage."""
        return self.lost.heavy(REJECTED, records, _describe, lambda reason, _: self.cause_of(reason))

    def __enter__(self) -> _Rejects:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._file.close()


def _describe(lost: tuple[str, Reject, Values]) -> str:
    source, reject, _ = lost
    return f"{source}:{reject.row_number}: {reject.detail:.{DETAIL_CHARS}}"


class _SourceIds:
    """The identifiers that a source gives its records. Identifiers with several contents are reported.

    Line 3 `{"id": "q7", "question": "1+1?", ...}` and line 9 `{"id": "q7", "question": "2+2?", ...}` give the note "1
    source id(s) stand for different rows; the first: rows 3 and 9". Nothing is dropped, because truegold has its own
    ids. Identifiers are kept as 64-bit hashes. About one in 400,000 runs over ten million rows has a false alarm.
    """

    def __init__(self, folder: Path) -> None:
        """Create an empty table; `folder` holds 24 bytes a row temporarily."""
        self._table, self._recent = OnDisk(np.uint64, folder), array("Q")

    def add(self, source: str, source_id: str, row_number: int, row_id: str) -> None:
        """Add a row. `row_id` is 20 hex digits, a hash of its content."""
        key = hashlib.blake2b(f"{source}\0{source_id}".encode("utf-8", "surrogatepass"), digest_size=8).digest()
        self._recent.extend((int.from_bytes(key, "big"), int(row_id[:16], 16), row_number))
        if len(self._recent) >= SORTED_IDS:
            self._write_recent()

    def _write_recent(self) -> None:
        self._table.extend(np.frombuffer(self._recent, np.uint64))
        self._recent = array("Q")

    def warn(self, progress: Progress) -> dict[str, int]:
        """Return the number of identifiers that stand for different rows, and note the rows of the first one."""
        self._write_recent()
        table = self._table.array.reshape(-1, 3)
        parts = 1 + len(table) // SORTED_IDS
        count, firsts = 0, []
        for part in range(parts):
            # All equal keys are in the same part.
            chosen = [chunk[chunk[:, 0] % parts == part] for chunk in np.array_split(table, parts)]
            some = np.concatenate(chosen)
            keys, contents, row_numbers = some[np.argsort(some[:, 0], kind="stable")].T
            clashes = np.flatnonzero((keys[1:] == keys[:-1]) & (contents[1:] != contents[:-1]))
            if len(clashes):
                count += len(np.unique(keys[1:][clashes]))
                first = clashes[np.argmin(row_numbers[1:][clashes])]
                firsts.append((int(row_numbers[first + 1]), int(row_numbers[first])))
        if not firsts:
            return {}
        later, earlier = min(firsts)
        progress.note(
            f"{count} source id(s) stand for different rows; the first: rows {earlier} and {later}. "
            "Samples cannot name such rows by it."
        )
        return {"warn:duplicate_source_id": count}
