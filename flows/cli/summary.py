"""The summary with which a command that works on one file ends: shown in the terminal, and kept as a Markdown file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from truegold.flows.console import print_line
from truegold.pipeline.running.disk import write_whole

Table = tuple[Sequence[str], Sequence[Sequence[object]]]
"""The heads of columns, and the rows."""


def write_summary(target: Path, title: str, lines: Sequence[str], tables: Mapping[str, Table]) -> Path:
    """Print a summary and write it as Markdown; return the file: `report.md` in a folder, else beside the file.

    Columns of numbers are set flush right.
    """
    page = [f"# {title}", "", *lines]
    for line in lines:
        print_line(line)
    for name, (heads, rows) in tables.items():
        if not rows:
            continue
        cells = [[_cell(value) for value in row] for row in rows]
        right = [all(not isinstance(row[column], str) for row in rows) for column in range(len(heads))]
        widths = [max(map(len, column)) for column in zip(heads, *cells, strict=True)]
        for row in [list(heads), *cells]:
            parts = [
                f"{text:>{width}}" if is_right else f"{text:<{width}}"
                for text, width, is_right in zip(row, widths, right, strict=True)
            ]
            print_line(f"  {'  '.join(parts)}".rstrip())
        page += ["", f"## {name}", "", _markdown_row(heads)]
        page += [_markdown_row(["--:" if is_right else "---" for is_right in right]), *map(_markdown_row, cells)]
    report = target / "report.md" if target.is_dir() else target.with_name(f"{target.name}.report.md")
    write_whole(report, ("\n".join(page) + "\n").encode())
    return report


def _cell(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)


def _markdown_row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(text.replace('|', chr(92) + '|') for text in cells)} |"
