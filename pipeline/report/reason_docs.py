"""Explains the reasons of rejects, drops, edits and flags.

The explanations come from the tables in the documentation, of which the package has a copy (`page/*.md`):

explain_reasons()["gold_wrapped"]
    {"example": 'gold "Answer: 72"', "means": '"#### 72", "Answer: 72", ...: more around gold than the answer, ...'}
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

PAGES = ("reasons.md", "flagging.md", "test-findings.md", "cleaning.md")
_HEADS = {
    "example": "example",
    "what to do": "remedy",
    "what it sees": "means",
    "what is changed": "means",
    "meaning and repair": "means",
}
"""The headings of table columns -> the keys of an explanation. Other columns are ignored."""
_LINK = re.compile(r"\[([^\]]+)\]\([^)]+\)")
_BAR = re.compile(r"(?<!\\)\|")
_NAME = re.compile(r"`(\w+)`")


@cache
def explain_reasons() -> dict[str, dict[str, str]]:
    """Return, for each documented reason, its meaning (`means`), an `example` and a `remedy`, as far as known."""
    explained: dict[str, dict[str, str]] = {}
    for page in PAGES:
        heads: list[str] = []
        for line in (Path(__file__).parent / "page" / page).read_text(encoding="utf-8").splitlines():
            cells = [cell.strip() for cell in _BAR.split(line)[1:-1]] if line.startswith("|") else []
            if not cells or cells[0] in ("reason", "finding"):
                heads = cells
                continue
            texts = {_HEADS[head]: _plain(cell) for head, cell in zip(heads, cells, strict=False) if head in _HEADS}
            for name in _names(cells[0]):
                explained[name] = {**texts, **explained.get(name, {})}
    return {name: texts for name, texts in explained.items() if texts}


def explain_reason(reason: str) -> str:
    """Return the explanation of a reason as text for a tooltip, or "" if the reason is not documented."""
    texts = explain_reasons().get(reason, {})
    parts = [texts.get("means"), f"Such as: {texts['example']}" if "example" in texts else None, texts.get("remedy")]
    return ". ".join(part.rstrip(".") for part in parts if part)


def exemplify_reason(reason: str) -> str:
    """Return an example of a reason, or its meaning if it has no example."""
    texts = explain_reasons().get(reason, {})
    return f"Such as: {texts['example']}" if "example" in texts else texts.get("means", "")


def _names(cell: str) -> Iterator[str]:
    """Yield the reasons that a table's first cell names.

    The cell "`evaluation_copy`, `_overlap`" names two reasons: `evaluation_copy` and `evaluation_overlap`.
    """
    stem = ""
    for name in _NAME.findall(cell):
        stem = stem if name.startswith("_") else name.partition("_")[0]
        yield stem + name if name.startswith("_") else name


def _plain(cell: str) -> str:
    return _LINK.sub(r"\1", cell).removeprefix("stage `verify_gold`: ").replace("`", "").replace("\\|", "|").strip()
