"""Reads a set in whatever shape it lies on the disk, as tables of canonical rows.

runs/gsm8k                      the tables that its stage `export` has written
out, with data/train.parquet    such tables
out, with train.jsonl           a set in a trainer's format (`convert`), read back
train.jsonl                     any file that `ingest` reads
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from truegold.pipeline.config.sources import FileSource
from truegold.pipeline.export.formats.base import SPLIT_NAMES
from truegold.pipeline.export.stage import DATA_DIR
from truegold.pipeline.ingest import ingest
from truegold.pipeline.running.progress import Progress
from truegold.pipeline.sources.records import REJECT, REJECTS_FILE
from truegold.pipeline.tables.rows import Row, read_rows
from truegold.verifiers import InputError


def tables_of(data: Path, source: FileSource, scratch: Path, progress: Progress) -> tuple[list[Path], Counter[str]]:
    """Return the tables of a set, and how many records could not become rows, by reason.

    Files that are no tables of truegold's are read as `source` says, into the folder `scratch`. Raises InputError where
    there is no set.
    """
    if data.is_dir():
        folder = data / "export" if (data / "export").is_dir() else data
        tables = sorted((folder / DATA_DIR).glob("*.parquet"))
        if tables:
            return tables, Counter()
        files = _split_files(data)
    else:
        files = [data]
    rejected: Counter[str] = Counter()
    tables = []
    for position, file in enumerate(files):
        out = scratch / f"read-{position}"
        out.mkdir()
        report = ingest({"data": file}, source.model_copy(update={"path": str(file)}), out, progress)
        for reason, count in report.counts.items():
            if reason.startswith(REJECT):
                rejected[reason.removeprefix(REJECT)] += count
        tables.append(out / "rows.parquet")
    return tables, rejected


def rejects_of(scratch: Path) -> list[Path]:
    """Return the files with the rejects of the files that `tables_of` has read into `scratch`."""
    return sorted(scratch.glob(f"read-*/{REJECTS_FILE}"))


def read_tables(tables: list[Path]) -> Iterator[Row]:
    """Yield the rows of several tables."""
    for table in tables:
        yield from read_rows(table)


def _split_files(folder: Path) -> list[Path]:
    """Return the splits of a set in a trainer's format, which lie in the folder or in the package within it."""
    names = [f"{split}.{suffix}" for split in SPLIT_NAMES.values() for suffix in ("parquet", "jsonl")]
    files = [file for name in names for file in (folder / name, *sorted(folder.glob(f"*/{name}"))) if file.is_file()]
    if not files:
        raise InputError(
            f"{folder} holds no set ({DATA_DIR}/*.parquet, {', '.join(names)}).",
            "Name a run with its stage `export`, an exported set, or a file: JSON Lines, Parquet, CSV.",
        )
    return files
