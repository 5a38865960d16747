"""The conversation before a row's question: earlier turns and system messages, for models, verifiers and comparisons.

    row["context"]   '[{"role":"system","content":"Answer in miles."},{"role":"user","content":"I drove 16 km."}, ...]'
    row["prompt"]    "How far was that?"

    problem_of(row)              "System: Answer in miles.\\n\\nUser: I drove 16 km. ... User: How far was that?"
    compared_text(row, shared)   the same text, without a system message that many rows of its source share

`context` is null for a row without a conversation. Then `problem_of` and `compared_text` return the prompt.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Set
from pathlib import Path
from typing import Any

from truegold.pipeline.tables.rows import Row, context_of, read_batches, read_rows
from truegold.verifiers.conversation import SYSTEM, write_out

SHARED_ROWS = 20
"""The number of rows of a source from which a shared system message is a template, not part of each problem."""


SystemMessage = tuple[str, str]
"""A source, and the text of one of its system messages."""


def turns_text(row: Mapping[str, Any]) -> str:
    """Return the conversation of a row without system messages."""
    return compared_text(row, None)


def compared_text(row: Mapping[str, Any], shared: Set[SystemMessage] | None) -> str:
    """Return the text by which a row is compared, without the system messages in `shared`; None leaves out all."""
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

    A template is shared by at least SHARED_ROWS rows of its source, or by more than half of the source's rows with a
    system message.
    """
    counts: Counter[SystemMessage] = Counter()
    totals: Counter[str] = Counter()
    for batch in read_batches(path, ["source", "context"]):
        # Skip batches without conversations, since most tables have millions of rows and no conversation.
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
    """Stream rows with `compared_text` as prompt, which leaves out shared system messages.

    `shared` has these messages. By default they are found in the table; a part of a table does not suffice for that.
    """
    shared = find_shared_systems(path) if shared is None else shared
    for row in read_rows(path, None if columns is None else list(dict.fromkeys((*columns, "source", "context")))):
        if row["context"]:
            row["prompt"] = compared_text(row, shared)
        yield row
