"""Writes the splits of the curated set and counts what its card tells of them.

export/data/train.parquet  export/data/heldout.parquet      the columns of `rows`, with pass_rate after a selection,
                                                            `flags`: ["yes_no_answer"], [] for most, and
                                                            `license`, `origin`
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from truegold.pipeline.sources.provenance import provenance_of, provenance_of_row
from truegold.pipeline.tables.rows import NOTES, Row, RowKey, TableWriter, read_rows, row_key

DATA_DIR = "data"
SPLITS = ("train", "heldout")
FLAGS_FIELD = pa.field("flags", pa.list_(pa.string()))
"""The reasons of the flags that a row carries: it was only advised against, or a reviewer kept it."""

PROVENANCE_FIELDS = (pa.field("license", pa.string()), pa.field("origin", pa.string()))
"""Whose a row is; the licence is null where nothing is stated."""
NOT_STATED = "not stated"
"""What the card counts rows without a licence as."""


@dataclass(frozen=True)
class Split:
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
class Tally:
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


def write_splits(
    tables: Sequence[Path], flags: Mapping[RowKey, list[str]], out_dir: Path
) -> tuple[list[Split], pa.Schema, Tally]:
    """Write every row of `tables` to the file of its split, with the reasons of its `flags`.

    Without held-out rows there is no file of them. The tables share the columns of ROW_SCHEMA; columns that only some
    have are null in the others' rows.
    """
    schema = max((pq.read_schema(path).remove_metadata() for path in tables), key=len)
    for column in (FLAGS_FIELD, *PROVENANCE_FIELDS):
        schema = schema.append(column)
    (out_dir / DATA_DIR).mkdir(exist_ok=True)
    tally = Tally()
    with ExitStack() as stack:
        writers = {
            name: stack.enter_context(TableWriter(out_dir / DATA_DIR / f"{name}.parquet", schema)) for name in SPLITS
        }
        for path in tables:
            for row in read_rows(path):
                tally.add(row)
                split = "heldout" if row["split"] == "heldout" else "train"
                provenance = provenance_of_row(row)._asdict()
                writers[split].write({**row, FLAGS_FIELD.name: flags.get(row_key(row), []), **provenance})
    splits = []
    for name, writer in writers.items():
        path = out_dir / DATA_DIR / f"{name}.parquet"
        if writer.rows or name == "train":
            splits.append(Split(name, f"{DATA_DIR}/{path.name}", writer.rows, _arrow_bytes(path), path.stat().st_size))
        else:
            path.unlink()
    return splits, schema, tally


def _arrow_bytes(path: Path) -> int:
    with pq.ParquetFile(path, pre_buffer=False) as file:
        return sum(int(batch.nbytes) for batch in file.iter_batches())
