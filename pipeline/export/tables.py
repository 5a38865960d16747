"""Writes the splits of the curated set and counts what its card tells of them.

export/data/train.parquet  export/data/heldout.parquet      the columns of `rows`, with pass_rate after a selection
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from truegold.pipeline.clean.stage import NOTES
from truegold.pipeline.rows import Row, TableWriter, read_rows

DATA_DIR = "data"
SPLITS = ("train", "heldout")


@dataclass(frozen=True)
class Split:
    """One file of the set. `bytes`: of its columns in memory (Arrow); `file_bytes`: on disk."""

    name: str
    path: str
    rows: int
    bytes: int
    file_bytes: int


@dataclass
class Tally:
    """Rows of the set by what they are."""

    verifiers: Counter[str] = field(default_factory=Counter)
    domains: Counter[str] = field(default_factory=Counter)
    sources: Counter[str] = field(default_factory=Counter)
    languages: Counter[str] = field(default_factory=Counter)
    gold_types: Counter[str] = field(default_factory=Counter)

    def add(self, row: Row) -> None:
        self.verifiers[row["verifier"]] += 1
        self.domains[row["domain"]] += 1
        self.sources[row["source"]] += 1
        notes: dict[str, Any] = orjson.loads(row["meta"] or "{}").get(NOTES, {})
        self.languages[notes.get("language", "und")] += 1
        if "gold_type" in notes:
            self.gold_types[notes["gold_type"]] += 1


def write_splits(tables: Iterable[Path], out_dir: Path) -> tuple[list[Split], pa.Schema, Tally]:
    """Write every row of `tables`, which share a schema, to the file of its split; no held-out rows, no file."""
    paths = list(tables)
    schema = pq.read_schema(paths[0]).remove_metadata()
    for path in paths[1:]:
        schema = max(schema, pq.read_schema(path).remove_metadata(), key=len)
    (out_dir / DATA_DIR).mkdir(exist_ok=True)
    tally = Tally()
    writers = {name: TableWriter(out_dir / DATA_DIR / f"{name}.parquet", schema) for name in SPLITS}
    try:
        for row in _rows(paths):
            tally.add(row)
            writers["heldout" if row["split"] == "heldout" else "train"].write(row)
    except BaseException as error:
        for writer in writers.values():
            writer.__exit__(type(error), error, None)
        raise
    for writer in writers.values():
        writer.__exit__(None, None, None)
    splits = []
    for name, writer in writers.items():
        path = out_dir / DATA_DIR / f"{name}.parquet"
        if writer.rows or name == "train":
            splits.append(Split(name, f"{DATA_DIR}/{path.name}", writer.rows, _arrow_bytes(path), path.stat().st_size))
        else:
            path.unlink()
    return splits, schema, tally


def _rows(paths: Iterable[Path]) -> Iterator[Row]:
    for path in paths:
        yield from read_rows(path)


def _arrow_bytes(path: Path) -> int:
    with pq.ParquetFile(path, pre_buffer=False) as file:
        return sum(int(batch.nbytes) for batch in file.iter_batches())
