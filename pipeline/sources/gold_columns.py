r"""Reads gold columns: one answer, or a list of accepted ones, any of which is right.

    "answer": 72                              golds_of  ->  ["72"]
    "answer": ["1/2", 0.5, null, "1/2"]       golds_of  ->  ["1/2", "0.5"]
    "answer": [["1/2"]]                       golds_of  ->  ["1/2"]
    "answer": "[1, 2]"                        golds_of  ->  ["[1, 2]"]: a text is one answer, here an interval
    "answer": "['72', '73']"                  ["72", "73"] for a verifier of values: texts in quotes are no value
    "answer": {"value": "72"}                 a reject, gold_not_text: answer.value names the answer

Of `choice` with `multiple` a list is one answer: all of its options are needed.

The first is a row's gold, the others are the argument `other_golds` of its verifier.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from truegold.pipeline.sources.columns import Column, text_of
from truegold.pipeline.sources.jsonl import parse_structure
from truegold.pipeline.sources.records import Unusable
from truegold.verifiers.several_golds import MAX_GOLDS, quoted_list


def golds_of(value: Any, column: str) -> list[str]:
    """Return the accepted golds that a value stands for, each once; none where it holds nothing.

    Raises Unusable for objects, lists within lists, and more golds than a row may have; `column` names it in errors.
    """
    value = _only_entry(value)
    entries = [_only_entry(entry) for entry in value] if isinstance(value, list | tuple) else [value]
    for entry in entries:
        if entry and isinstance(entry, Mapping | list | tuple):
            raise Unusable("gold_not_text", _describe(entry, column, alone=entry is value))
    return distinct(text for entry in entries if (text := text_of(entry)) is not None)


def gold_texts(value: Any) -> list[str]:
    """Return the texts of a value, of a list all of them, whether or not they can be golds: for a look at samples."""
    value = _only_entry(value)
    return [text for part in (value if isinstance(value, list) else [value]) if (text := text_of(part)) is not None]


def extracted_golds(
    column: Column, values: Mapping[str, Any], together: bool = False, of_values: bool = False
) -> list[str]:
    """Return the golds of a record's column after its extract, without those in which that finds nothing.

    together: whether a list is one answer, all of whose entries are needed. of_values: whether golds are numbers,
    formulas or letters, so that a text which lists texts in quotes is a list that a writer of CSV turned into text.
    """
    if together:
        return [text for text in (column.text(values),) if text is not None]
    value = column(values)
    golds = golds_of(quoted_list(value) or value if of_values else value, column.name)
    if column.extract is None:
        return golds
    return distinct(part for gold in golds if (part := column.extract(gold)) is not None)


def listed_golds(value: Any, column: str) -> list[str]:
    """Return the same of a column that is known for lists: there a text may be the JSON of one."""
    structure = parse_structure(value)
    return golds_of(structure if isinstance(structure, list) else value, column)


def distinct(golds: Iterable[str]) -> list[str]:
    """Return every gold once; raise Unusable where there are more than a row may have."""
    once = list(dict.fromkeys(golds))
    if len(once) > MAX_GOLDS:
        raise Unusable("too_many_golds", f"{len(once)} accepted golds; a row may have {MAX_GOLDS}")
    return once


def _only_entry(value: Any) -> Any:
    while isinstance(value, list | tuple) and len(value) == 1:
        value = value[0]
    return value


def _describe(entry: Any, column: str, alone: bool) -> str:
    if isinstance(entry, Mapping) and alone:
        parts = ", ".join(f"{column}.{name}" for name in list(entry)[:8])
        return f"column {column!r} holds an object, not an answer; name a part of it: {parts}"
    kind = "objects" if isinstance(entry, Mapping) else "lists within a list"
    return f"column {column!r} holds {kind}, not answers"
