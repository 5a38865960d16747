"""inspect (UK AISI): JSON Lines of samples, whose target may be several accepted answers.

    {"input": "Natalia sold ...", "target": "72", "id": "9f0c...", "metadata": {"verifier": "math", ...}}
    {"input": "...", "target": ["1/2", "0.5"], ...}

Read it with `json_dataset("train.jsonl")` and score it with `truegold.verifiers.adapters.inspect.verified`. Source:
inspect_ai's dataset/_dataset.py and dataset/_util.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from truegold.pipeline.export.formats.base import ExportRecord, ExportRow, Format, Message


class InspectRecord(ExportRecord):
    """A record for inspect."""

    input: str | list[Message]
    target: str | list[str]
    id: str
    metadata: dict[str, Any]


def make_record(row: ExportRow, index: int) -> Mapping[str, Any]:
    """Return a row's record."""
    return {
        "input": row.messages if row.system else row.row["prompt"],
        "target": list(row.golds) if len(row.golds) > 1 else row.ground_truth,
        "id": row.row["id"],
        "metadata": {
            "verifier": row.row["verifier"],
            "verifier_args": row.row["verifier_args"],
            "license": row.provenance.license,
            "origin": row.provenance.origin,
            "truegold": row.carried,
        },
    }


def load(path: Path) -> int:
    """Read a split by inspect's own reader of samples."""
    from inspect_ai.dataset import json_dataset

    return len(json_dataset(str(path)))


INSPECT = Format("inspect", "inspect", "jsonl", make_record, InspectRecord, "inspect_ai", load)
