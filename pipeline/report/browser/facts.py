"""Evidence in words: what a stage or a verifier keeps as JSON becomes names and short texts that a person reads.

{"measured": {"precision": 0.98, "rows": 41, "corpora": 11}, "mentions": "shown in the diagram"}
    [["measured", "98 % of 41 rows read by hand, from 11 corpora"], ["mentions", "shown in the diagram"]]
{"rung": "exact", "gold": "1/2", "answer": "0.5", "form": "boxed"}
    {"gold": "1/2", "answer": "0.5", "how": "compared as exact numbers, taken from a box"}
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from truegold.pipeline.text.shown import cut, visible

FACT_CHARS = 600
"""The characters that are shown of one fact."""
MOST_PARTS = 12
"""The entries that are shown of a list, or of a table within the evidence."""

COMPARISONS = {
    "text": "the same text",
    "exact": "compared as exact numbers or expressions",
    "numeric": "compared by their values",
    "symbolic": "compared by computer algebra",
    "structure": "compared part by part",
    "words": "compared word by word",
    "units": "compared with their units",
    "open": "left open by the notation",
    "read": "could not be read",
    "budget": "too much work to compare",
}
"""What the rungs of the ladder of `verifiers/math` do, in words."""

FORMS = {
    "boxed": "taken from a box",
    "phrase": "taken from a closing phrase",
    "whole_response": "the whole response",
    "last_line": "taken from the last line",
    "answer_tag": "taken from an answer tag",
    "hashes": "taken from behind ####",
    "a_line": "taken from a line of its own",
    "json": "taken from JSON",
    "conclusion": "taken from the conclusion",
}
"""Where an answer stood in its response, in words."""


def list_facts(evidence: Mapping[str, Any], without: Sequence[str] = ()) -> list[list[str]]:
    """Return the names and texts of what the evidence holds; keys in `without` are shown elsewhere."""
    return [
        [visible(name).replace("_", " "), describe(name, value)]
        for name, value in evidence.items()
        if name not in without and value not in (None, [], {}, "")
    ]


def describe(name: str, value: Any) -> str:
    """Return one value in words."""
    if name == "measured" and isinstance(value, dict) and {"precision", "rows", "corpora"} <= value.keys():
        return f"{100 * value['precision']:.0f} % of {value['rows']} rows read by hand, from {value['corpora']} corpora"
    return cut(visible(_words(value)), FACT_CHARS)


def say_value(value: Any) -> str:
    """Return any value in words; an empty one is nothing."""
    return "nothing" if value in (None, "", [], {}) else describe("", value)


def _words(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, dict):
        parts = [f"{str(name).replace('_', ' ')} {_entry(entry)}" for name, entry in list(value.items())[:MOST_PARTS]]
        return "; ".join(parts) + (f"; {len(value) - MOST_PARTS} more" if len(value) > MOST_PARTS else "")
    if isinstance(value, list):
        parts = [_words(entry) for entry in value[:MOST_PARTS]]
        return ", ".join(parts) + (f", {len(value) - MOST_PARTS} more" if len(value) > MOST_PARTS else "")
    return "none" if value is None else str(value)


def _entry(value: Any) -> str:
    """Return a table's entry; two counts are hits of all, two shares a change."""
    if isinstance(value, list) and len(value) == 2 and all(isinstance(part, int | float) for part in value):
        first, second = value
        if isinstance(first, int) and isinstance(second, int) and first <= second:
            return f"{first} of {second}"
        return f"{first:.4g} → {second:.4g}"
    return _words(value)


def read_evidence(text: str | None) -> dict[str, Any]:
    """Return the evidence of a table's row, which is a JSON object; anything else under the name `evidence`."""
    if not text:
        return {}
    value = orjson.loads(text)
    return value if isinstance(value, dict) else {"evidence": value}


def describe_reading(evidence: Mapping[str, Any], limit: int = 200) -> dict[str, str] | None:
    """Return how a verifier read gold and answer, and how it compared them; None where the evidence does not say."""
    sides = {side: cut(visible(str(evidence[side])), limit) for side in ("gold", "answer") if evidence.get(side)}
    hows = [
        COMPARISONS.get(str(evidence.get("rung")), ""),
        FORMS.get(str(evidence.get("form")), ""),
        visible(str(evidence["unread"])) if evidence.get("unread") else "",
        visible(str(evidence["error"])) if evidence.get("error") else "",
    ]
    how = cut(", ".join(part for part in hows if part), limit)
    return {**sides, "how": how} if sides or how else None
