"""Fills templates: pages in HTML, tables in Markdown, and lines for a terminal.

    {{ card.name|cell }}                                          a name from the data, on one line of Markdown
    {{ markdown_table(("reason", "rows"), card.flags.items()) }}  | reason | rows | ...

What comes from the data goes through `visible`, `shown` or `cell`. Templates named `*.html.jinja` escape it as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape

from truegold.pipeline.text.shown_text import cut, visible


@cache
def templates_in(folder: Path) -> Environment:
    """Return the templates of a folder, with the filters and functions that all have."""
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
    """Return a text from the data, visible and of bounded length."""
    return cut(visible(str(value)))


def markdown_table(head: Sequence[str], rows: Iterable[Iterable[object]]) -> str:
    """Return a table in Markdown."""
    return join_table(
        head, ((f"{cell:,}" if isinstance(cell, int) else markdown_cell(str(cell)) for cell in row) for row in rows)
    )


def join_table(head: Sequence[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a table in Markdown whose cells are as they are to stand there."""
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    lines += [f"| {' | '.join(cells)} |" for cells in rows]
    return "\n".join(lines)


def markdown_cell(text: str) -> str:
    """Return a name from the data, on one line and without the marks of a table."""
    return " ".join(visible(text).split()).replace("|", "\\|")
