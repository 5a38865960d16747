"""Stage `ingest`: a source of any supported shape becomes canonical rows; what cannot is written down with its reason.

    line 1: {"question": "Natalia sold ...", "answer": "... #### 72"}   ->  a row in rows.parquet, gold "72"
    line 2: {"question": "Weng earns ...", "answer": null}              ->  a line in rejects.jsonl:
    {"source": "train.jsonl", "source_row": 2, "reason": "missing_gold", "detail": "column 'answer' is null", ...}

Inputs: `data` (a file source's path; none for a hub source) and optionally `heldout`, a file whose rows are all set
aside. Memory does not grow with the source, save 24 bytes a row where it has a column of ids. `limit` bounds the
records read of each file. Rejects are not in the ledger: they never were rows. `rows_in` counts records read, so that
`rows_in == rows_out +` the sum of all `reject:*` counts.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType

import orjson

from truegold.pipeline.config.sources import FileSource, HubSource
from truegold.pipeline.ingest.columns import compile_column
from truegold.pipeline.ingest.hub import open_hub
from truegold.pipeline.ingest.layout import Layout
from truegold.pipeline.ingest.layouts import check_columns, check_preset, choose_layout
from truegold.pipeline.ingest.readers import open_file
from truegold.pipeline.ingest.records import Record, Reject, Source, Unusable
from truegold.pipeline.ingest.row_builder import RowBuilder, make_builder
from truegold.pipeline.ingest.source_ids import SourceIds
from truegold.pipeline.ledger import Ledger
from truegold.pipeline.rows import ROW_SCHEMA, TableWriter
from truegold.pipeline.running.progress import Progress, paced
from truegold.pipeline.running.stage import StageReport, stage_function
from truegold.verifiers import InputError

ROWS_FILE = "rows.parquet"
REJECTS_FILE = "rejects.jsonl"

PEEK_RECORDS = 100
PEEK_BYTES = 2**20
"""How far a source is looked into for its columns: enough for columns that some rows lack."""


@stage_function(version=1)
def ingest(
    inputs: Mapping[str, Path], config: FileSource | HubSource, out_dir: Path, progress: Progress
) -> StageReport:
    """Read the source (and the held-out file) into `rows.parquet` and `rejects.jsonl`."""
    check_preset(config.preset)
    for field, spec in config.columns:
        if spec is not None:
            compile_column(spec, field)  # a bad extract is an error of the configuration: say so before opening files
    sources = _open(inputs, config)
    layout: Layout | None = None
    with (
        Ledger(out_dir, "ingest"),
        TableWriter(out_dir / ROWS_FILE, ROW_SCHEMA) as rows,
        _Rejects(out_dir / REJECTS_FILE) as rejects,
    ):
        ids = SourceIds()
        run = _Run(config, rows, rejects, ids, progress)
        for position, source in enumerate(sources):
            layout = run.read(source, layout, all_heldout=position > 0)
    counts = {f"reject:{reason}": count for reason, count in rejects.counts.items()} | ids.warn(progress)
    rows_in = rows.rows + sum(rejects.counts.values())
    return StageReport(rows_in, rows.rows, counts, {"sources": [source.name for source in sources]})


def _open(inputs: Mapping[str, Path], config: FileSource | HubSource) -> list[Source]:
    if isinstance(config, HubSource):
        return [open_hub(config)]
    sources = [open_file(inputs["data"], config.format, config.max_row_bytes)]
    if "heldout" in inputs:
        heldout = open_file(inputs["heldout"], config.format, config.max_row_bytes)
        if heldout.name == sources[0].name:  # a/part.jsonl and b/part.jsonl: source and row must tell rows apart
            heldout = replace(heldout, name=f"{inputs['heldout'].resolve().parent.name}/{heldout.name}")
        sources.append(heldout)
    return sources


@dataclass(frozen=True, slots=True)
class _Run:
    config: FileSource | HubSource
    rows: TableWriter
    rejects: _Rejects
    ids: SourceIds
    progress: Progress

    def read(self, source: Source, layout: Layout | None, all_heldout: bool) -> Layout:
        """Take in one source; returns the layout that its columns led to."""
        self.rejects.begin()
        before = self.rows.rows
        limited = itertools.islice(source.records, self.config.limit)
        total = source.total if self.config.limit is None else min(source.total or self.config.limit, self.config.limit)
        records = paced(limited, self.progress, f"reading {source.name}", total)
        peeked = self._peek(records, source)
        samples = [record.values for record in peeked]
        if not samples:
            raise self._nothing_usable(source)
        if layout is None:
            layout = choose_layout(self.config, source.location, samples)
        else:
            check_columns(self.config, layout, source.location, samples)
        builder = make_builder(self.config, layout, source.name, all_heldout)
        for record in itertools.chain(peeked, records):
            self._take(record, builder, source)
        if self.rows.rows == before:
            raise self._nothing_usable(source)
        return layout

    def _peek(self, records: Iterator[Record | Reject], source: Source) -> list[Record]:
        """The first records; rejects met on the way are written at once, so that any number of them is held nowhere."""
        peeked: list[Record] = []
        size = 0
        for record in records:
            if isinstance(record, Reject):
                self.rejects.write(source, record)
                continue
            peeked.append(record)
            size += record.size
            if len(peeked) >= PEEK_RECORDS or size >= PEEK_BYTES:
                break
        return peeked

    def _take(self, record: Record | Reject, builder: RowBuilder, source: Source) -> None:
        if isinstance(record, Reject):
            self.rejects.write(source, record)
            return
        try:
            row = builder.build(record)
        except Unusable as error:
            self.rejects.write(source, Reject(record.number, error.reason, error.detail, record.excerpt()))
            return
        self.rows.write(row)
        if (source_id := builder.source_id(record)) is not None:
            self.ids.add(source.name, source_id, record.number, row["id"])

    def _nothing_usable(self, source: Source) -> InputError:
        first = self.rejects.first
        if first is None:
            return InputError(f"{source.location} holds no rows.")
        return InputError(
            f"{source.location}: none of its {self.rejects.seen} rows can be used; the first is {source.unit} "
            f"{first.number}: {first.reason}: {first.detail}.",
            f"It begins: {first.excerpt[:80]}" if first.excerpt else None,
        )


class _Rejects:
    """Writes `rejects.jsonl` and counts by reason."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("wb")
        self.counts: dict[str, int] = {}
        self.begin()

    def begin(self) -> None:
        """Another source starts: forget what the last one's first reject was."""
        self.first: Reject | None = None
        self.seen = 0

    def write(self, source: Source, reject: Reject) -> None:
        self.first = self.first or reject
        self.seen += 1
        self.counts[reject.reason] = self.counts.get(reject.reason, 0) + 1
        entry = {
            "source": source.name,
            "source_row": reject.number,
            "reason": reject.reason,
            "detail": reject.detail,
            "excerpt": reject.excerpt,
        }
        self._file.write(orjson.dumps(entry, option=orjson.OPT_APPEND_NEWLINE))

    def __enter__(self) -> _Rejects:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._file.close()
