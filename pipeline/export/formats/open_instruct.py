"""open-instruct (RLVR): messages, a ground truth and the name of who verifies it, each a text or a list.

    {"messages": [{"role": "user", "content": "Natalia sold ..."}], "ground_truth": "72", "dataset": "math", ...}
    {"messages": [...], "ground_truth": ["1/2", "0.5"], "dataset": ["math", "math"], ...}
    {"messages": [...], "ground_truth": ["assert add(1, 2) == 3", ...], "dataset": "code", ...}

Rewards of several ground truths are added there, so that golds which mean the same pay twice. Rows whose verifier
open-instruct does not have are written with `dataset: truegold` and the row itself as ground truth, for
`truegold.verifiers.adapters.open_instruct`. Source: open-instruct's dataset_transformation.py,
ground_truth_utils.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from truegold.pipeline.export.formats.base import ExportRecord, ExportRow, Format, Message, load_with_datasets

KNOWN_VERIFIERS = {"math": "math", "numeric": "math", "exact": "string_matcher"}
"""What open-instruct calls a verifier that judges the same kind of answers."""
TRUEGOLD = "truegold"
"""The name of the verifier that the adapter registers."""


class OpenInstructRecord(ExportRecord):
    """A record for open-instruct."""

    messages: list[Message]
    ground_truth: str | list[str]
    dataset: str | list[str]


def make_record(row: ExportRow, index: int) -> Mapping[str, Any]:
    """Return a row's record; ground truth and dataset are lists in every row, of equal lengths."""
    known = KNOWN_VERIFIERS.get(row.row["verifier"])
    golds = list(row.golds) if known and row.golds else [row.carried]
    return {
        "messages": row.messages,
        "ground_truth": golds,
        "dataset": [known if known and row.golds else TRUEGOLD] * len(golds),
        "id": row.row["id"],
        "license": row.provenance.license,
        "origin": row.provenance.origin,
        "truegold": row.carried,
    }


OPEN_INSTRUCT = Format(
    "open-instruct",
    "open-instruct's RLVR",
    "parquet",
    make_record,
    OpenInstructRecord,
    "datasets",
    load_with_datasets,
)
