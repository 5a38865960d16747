"""The conversation around a row's question: earlier turns and system messages, for models, verifiers and comparisons.

    row["context"]   '[{"role":"system","content":"Answer in miles."},{"role":"user","content":"I drove 16 km."}, ...]'
    row["prompt"]    "How far was that?"

    problem_of(row)              "System: Answer in miles.\\n\\nUser: I drove 16 km. ... User: How far was that?"
    compared_text(row, shared)   the same without a system message that many rows of its source share

`context` is null where the prompt is all there is; then all three are the prompt alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Set
from pathlib import Path
from typing import Any

from truegold.pipeline.tables.rows import Row, context_of, read_batches, read_rows
from truegold.verifiers.conversation import SYSTEM, write_out

SHARED_ROWS = 20
"""A system message that this many rows of a source have is a template, not a part of each problem."""


SystemMessage = tuple[str, str]
"""A source, and the text of a system message in it."""


def turns_text(row: Mapping[str, Any]) -> str:
    """Return the problem without system messages: what a row is known by."""
    return compared_text(row, None)


def compared_text(row: Mapping[str, Any], shared: Set[SystemMessage] | None) -> str:
    """Return what is compared of a row; `shared` are the system messages to leave out, None leaves out all."""
    prompt: str = row["prompt"]
    if not row.get("context"):
        return prompt
    kept = [
        message
        for message in context_of(row)
        if message["role"] != SYSTEM or (shared is not None and (row["source"], message["content"]) not in shared)
    ]
    return write_out([*kept, {"role": "user", "content": prompt}]) if kept else prompt


def find_shared_systems(path: Path) -> frozenset[SystemMessage]:
    """Return the system messages that are templates: at least SHARED_ROWS rows of the source have them, or more than
    half of its rows with a system message."""
    counts: Counter[SystemMessage] = Counter()
    totals: Counter[str] = Counter()
    for batch in read_batches(path, ["source", "context"]):
        # Most tables have no conversations, and millions of rows.
        for row in batch.to_pylist() if batch["context"].null_count < batch.num_rows else ():
            for message in context_of(row):
                if message["role"] == SYSTEM:
                    counts[row["source"], message["content"]] += 1
                    totals[row["source"]] += 1
    return frozenset(
        key for key, count in counts.items() if count >= SHARED_ROWS or (count > 1 and 2 * count > totals[key[0]])
    )


def read_compared_rows(
    path: Path, columns: list[str] | None = None, shared: Set[SystemMessage] | None = None
) -> Iterator[Row]:
    """Stream rows as they are compared: the prompt is `compared_text`, system messages that rows share left out.

    shared: those messages, where `path` is a part of a table and cannot tell them.
    """
    shared = find_shared_systems(path) if shared is None else shared
    for row in read_rows(path, None if columns is None else list(dict.fromkeys((*columns, "source", "context")))):
        if row["context"]:
            row["prompt"] = compared_text(row, shared)
        yield row
