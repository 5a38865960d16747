"""Lines about the rejects of a file: their count, and the first of each reason.

30 of 31 records rejected: 30 gold_not_text
  train.jsonl:2: gold_not_text: column 'answer' holds an object, not an answer; name a part of it: answer.value
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import orjson

from truegold.pipeline.sources.records import REMEDIES

REJECTS_FILE = "rejects.jsonl"
"""What was not made a row, with its reason."""
REJECT = "reject:"
"""What the counts of `ingest` call a reject, before its reason."""
DETAIL_CHARS = 300
"""A detail is shown so far."""


def first_rejects(paths: Iterable[Path]) -> list[dict[str, Any]]:
    """Return the first reject of each reason in the files `rejects.jsonl` of `paths`."""
    first: dict[str, dict[str, Any]] = {}
    for path in paths:
        with path.open("rb") as lines:
            for line in lines:
                reject = orjson.loads(line)
                first.setdefault(reject["reason"], reject)
    return list(first.values())


def describe_rejects(rejected: Mapping[str, int], records: int, first: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the lines; none where nothing was rejected. `rejected` has the rejects by reason, the records are all."""
    total = sum(rejected.values())
    if not total:
        return []
    return [f"{total:,} of {records:,} records rejected: {describe_reasons(rejected)}", *map(_line, first)]


def describe_reasons(rejected: Mapping[str, int]) -> str:
    """Return the counts by reason, the most frequent first: `30 gold_not_text, 6 system_message`."""
    return ", ".join(f"{count:,} {reason}" for reason, count in sorted(rejected.items(), key=lambda entry: -entry[1]))


def _line(reject: Mapping[str, Any]) -> str:
    remedy = REMEDIES.get(reject["reason"])
    text = f"{reject['detail']}"[:DETAIL_CHARS] + (f". {remedy}" if remedy else "")
    return f"  {reject['source']}:{reject['source_row']}: {reject['reason']}: {text}"
