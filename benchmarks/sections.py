"""Sections of a Markdown file that a benchmark writes, and writes anew."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def write_section(path: Path, name: str, title: str, text: str) -> None:
    """Put the text between the markers of `name`; where there are none, at the end under a title."""
    begin, end = f"<!-- {name}:begin -->", f"<!-- {name}:end -->"
    old = path.read_text() if path.exists() else ""
    before, found, rest = old.partition(begin)
    if found:
        _, _, after = rest.partition(end)
    else:
        before, after = f"{old.rstrip()}\n\n## {title}\n\n".lstrip(), "\n"
    path.write_text(f"{before}{begin}\n\n{text.strip()}\n\n{end}{after}")


def publish(results: Any, text: str, numbers: Path | None, page: Path | None, section: tuple[str, str]) -> None:
    """Print the text; write the results as JSON and the text into a page's section (name, title), where asked for."""
    if numbers:
        numbers.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n")
    if page:
        write_section(page, *section, text)
    print(text)
