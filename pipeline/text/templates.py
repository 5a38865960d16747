"""Fills templates: pages in HTML, tables in Markdown, and lines for a terminal.

    {{ card.name|cell }}                                          a name from the data, on one line of Markdown
    {{ markdown_table(("reason", "rows"), card.flags.items()) }}  | reason | rows | ...

Values from the data go through the filters `visible`, `shown` or `cell`. Templates named `*.html.jinja` also escape
them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape

from truegold.pipeline.text.shown_text import cut, visible


@cache
def templates_in(folder: Path) -> Environment:
    """Return an environment for the templates of a folder, with the common filters and functions."""
    environment = Environment(
        loader=FileSystemLoader(folder),
        autoescape=select_autoescape(["html.jinja"]),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(visible=visible, shown=show, cell=markdown_cell, count="{:,}".format)
    environment.globals.update(markdown_table=markdown_table)
    return environment


def show(value: object) -> str:
    """Return a value from the data as text, with visible control characters and bounded length."""
    return cut(visible(str(value)))


def markdown_table(head: Sequence[str], rows: Iterable[Iterable[object]]) -> str:
    """Return a Markdown table of values from the data."""
    return join_table(
        head, ((f"{cell:,}" if isinstance(cell, int) else markdown_cell(str(cell)) for cell in row) for row in rows)
    )


def join_table(head: Sequence[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a Markdown table of cells that are Markdown already."""
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    lines += [f"| {' | '.join(cells)} |" for cells in rows]
    return "\n".join(lines)


def markdown_cell(text: str) -> str:
    """Return a name from the data as a cell of a Markdown table: on one line, with escaped `|`."""
    return " ".join(visible(text).split()).replace("|", "\\|")
