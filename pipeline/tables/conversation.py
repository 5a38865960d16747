"""Writes the conversation before a row's question as text, to compare rows.

    row["context"]   '[{"role":"system","content":"Answer in miles."},{"role":"user","content":"I drove 16 km."}, ...]'
    row["prompt"]    "How far was that?"

    compared_text(row, shared)   "System: Answer in miles.\\n\\nUser: I drove 16 km. ... User: How far was that?"

A system message that many rows of a source share is a template, and is left out (`shared`). For a row without a
conversation, `context` is null, and `compared_text` returns the prompt.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Set
from pathlib import Path
from typing import Any

from truegold.pipeline.tables.rows import Row, context_of, read_batches, read_rows
from truegold.verifiers.conversation import SYSTEM, write_out

SHARED_ROWS = 20
"""A system message that at least this number of rows of a source share is a template."""

SystemMessage = tuple[str, str]
"""A source, and the text of one of its system messages."""


def turns_text(row: Mapping[str, Any]) -> str:
    """Return the conversation of a row without system messages."""
    return compared_text(row, None)


def compared_text(row: Mapping[str, Any], shared: Set[SystemMessage] | None) -> str:
    """Return the text by which a row is compared.

    System messages in `shared` are left out. If `shared` is None, all system messages are left out.
    """
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
    """Return the system messages that are templates.

    At least SHARED_ROWS rows of a source have the template, or more than half of the source's rows with a system
    message.
    """
    counts: Counter[SystemMessage] = Counter()
    totals: Counter[str] = Counter()
    for batch in read_batches(path, ["source", "context"]):
        # Most tables have no conversations, so batches without any are skipped.
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
    """Yield rows with `compared_text` as prompt.

    `shared` has the system messages to leave out. By default, `find_shared_systems` finds them in the file `path`. Then
    `path` must be the whole table.
    """
    shared = find_shared_systems(path) if shared is None else shared
    for row in read_rows(path, None if columns is None else list(dict.fromkeys((*columns, "source", "context")))):
        if row["context"]:
            row["prompt"] = compared_text(row, shared)
        yield row
