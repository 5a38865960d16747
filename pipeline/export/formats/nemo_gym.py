"""NeMo-Gym: JSON Lines of requests to the Responses API, with what the resources server verifies by.

    {"responses_create_params": {"input": [{"role": "user", "content": "Natalia sold ..."}]},
     "question": "Natalia sold ...", "expected_answer": "72", "id": "9f0c...", "verifier_metadata": {...}, ...}

`question` and `expected_answer` are those of its `math_with_judge` server. Source: NeMo-Gym's
resources_servers/math_with_judge/app.py and its example data.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict

from truegold.pipeline.export.formats.base import ExportRecord, ExportRow, Format, Message


class CreateParams(BaseModel):
    """The request that a rollout begins with."""

    model_config = ConfigDict(strict=True, extra="allow")

    input: str | list[Message]


class NemoGymRecord(ExportRecord):
    """A record for NeMo-Gym."""

    responses_create_params: CreateParams
    question: str
    expected_answer: str


def make_record(row: ExportRow, index: int) -> Mapping[str, Any]:
    """Return a row's record."""
    return {
        "responses_create_params": {"input": row.messages},
        "question": row.row["prompt"],
        "expected_answer": row.ground_truth,
        "id": row.row["id"],
        "verifier_metadata": {"verifier": row.row["verifier"], "verifier_args": row.row["verifier_args"]},
        "license": row.provenance.license,
        "origin": row.provenance.origin,
        "truegold": row.carried,
    }


NEMO_GYM = Format("nemo-gym", "NeMo-Gym", "jsonl", make_record, NemoGymRecord)
