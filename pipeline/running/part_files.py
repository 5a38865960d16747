"""Tables in parts: one path, which is a file, or a folder of files of that name if there are several.

    clean/rows.parquet                       a table of one part
    clean/rows.parquet/part-00000.parquet    one of many, which Polars, pandas and PyArrow read by the same path

Names sort as the parts do, so that a table's rows have one order however they are cut.
"""

from __future__ import annotations

import shutil
from pathlib import Path

PATTERN = "part-*.parquet"


def table_parts(table: Path) -> list[Path]:
    """Return the files of a table in their order; of one that is a file, or is not there, the path itself."""
    return sorted(table.glob(PATTERN)) if table.is_dir() else [table]


def part_path(table: Path, index: int, parts: int) -> Path:
    """Return the path of one part of a table."""
    return table if parts == 1 else table / f"part-{index:05d}.parquet"


def make_room(table: Path, parts: int) -> None:
    """Make the folder of a table of several parts; a table that was cut in another way before is removed."""
    if parts == 1 and table.is_dir():
        shutil.rmtree(table)
    elif parts > 1:
        if table.is_file():
            table.unlink()
        table.mkdir(exist_ok=True)
