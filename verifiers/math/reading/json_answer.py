r"""Answers that are written as JSON: what an object says the answer is, as text that the reader knows.

    {"answer": "1/2"}    {"reasoning": "...", "final_answer": 5}    {"value": 10, "unit": "cm"}    {"x": 3, "y": 4}

Two keys that announce different answers come out as `5 or 6`, so that the comparison sees a hedge. Not covered: lists
of objects.
"""

from __future__ import annotations

import json
import re
from typing import Any

MAX_JSON_CHARS = 4_000
"""Longer objects are not read."""

MAX_NESTING = 3
"""An answer inside of so many objects is still read."""

_FENCE = re.compile(r"^```(?:json)?\s*(\{.*\})\s*```$", re.DOTALL)
_OBJECT = re.compile(r"\{\s*([\"'])\w[\w \-]{0,40}\1\s*:")
_SINGLE_BACKSLASH = re.compile(r"(?<!\\)\\(?![\\\"/])")
_ANSWER_KEYS = frozenset({"answer", "finalanswer", "final", "result", "ans", "output", "solution", "答案", "最终答案"})
_NAME = re.compile(r"[A-Za-z一-鿿][\w\- ]{0,30}")


def answer_in_json(text: str) -> str | None:
    """Return the answer that a JSON object states; None for a text that is no such object."""
    if len(text) > MAX_JSON_CHARS:
        return None
    if fence := _FENCE.match(text):
        text = fence.group(1)
    if not text.endswith("}") or _OBJECT.match(text) is None:
        return None
    record = _load(text)
    return _answer_of(record, 0) if isinstance(record, dict) and record else None


def _load(text: str) -> Any:
    """Return the object; LaTeX in it often has single backslashes, and Python writes single quotes."""
    doubled = _SINGLE_BACKSLASH.sub(r"\\\\", text)
    for candidate in (doubled, text, doubled.replace("'", '"')):
        try:
            return json.loads(candidate)
        except (ValueError, RecursionError):
            continue
    return None


def _answer_of(record: dict[str, Any], depth: int) -> str | None:
    if depth >= MAX_NESTING:
        return None
    announced = [value for key, value in record.items() if _plain_key(key) in _ANSWER_KEYS]
    if not announced and "value" in record:
        unit = record.get("unit") or record.get("units")
        announced = [f"{record['value']}\\text{{ {unit}}}" if isinstance(unit, str) else record["value"]]
    if announced:
        texts = dict.fromkeys(_text_of(value, depth) for value in announced)
        return " or ".join(text for text in texts if text)
    if not all(isinstance(value, (int, float, str)) and _NAME.fullmatch(key) for key, value in record.items()):
        return None
    return ", ".join(f"{_label(key)}={_text_of(value, depth)}" for key, value in record.items())


def _text_of(value: Any, depth: int) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return _answer_of(value, depth + 1) or ""
    if isinstance(value, list):
        return ", ".join(
            f"({_text_of(part, depth)})" if isinstance(part, list) else _text_of(part, depth) for part in value
        )
    return "" if value is None else str(value)


def _plain_key(key: str) -> str:
    return "".join(c for c in key.casefold() if c.isalnum())


def _label(key: str) -> str:
    return key if len(key) <= 2 else f"\\text{{{key}}}"
