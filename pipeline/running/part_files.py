"""Names the files of tables. A table is a single file, or a folder with a file for each part.

    clean/rows.parquet                       a table in a single file
    clean/rows.parquet/part-00000.parquet    the first part of a table in several parts

Polars, pandas and PyArrow read both forms by the path `clean/rows.parquet`. They read parts in the order of their
names, so that rows always have the same order.
"""

from __future__ import annotations

import shutil
from pathlib import Path

PATTERN = "part-*.parquet"


def table_parts(table: Path) -> list[Path]:
    """Return the files of a table in order. For a single file or a missing table, return the path itself."""
    return sorted(table.glob(PATTERN)) if table.is_dir() else [table]


def part_path(table: Path, index: int, parts: int) -> Path:
    """Return the path of one part of a table."""
    return table if parts == 1 else table / f"part-{index:05d}.parquet"


def make_room(table: Path, parts: int) -> None:
    """Make the folder for a table of several parts. Delete an earlier table that had the other form."""
    if parts == 1 and table.is_dir():
        shutil.rmtree(table)
    elif parts > 1:
        if table.is_file():
            table.unlink()
        table.mkdir(exist_ok=True)
