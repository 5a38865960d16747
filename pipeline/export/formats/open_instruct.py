"""open-instruct (RLVR): messages, a ground truth and the name of who verifies it, each a text or a list.

    {"messages": [{"role": "user", "content": "Natalia sold ..."}], "ground_truth": "72", "dataset": "math", ...}
    {"messages": [...], "ground_truth": ["{\\"gold\\": \\"1/2\\", ...}"], "dataset": ["truegold"], ...}
    {"messages": [...], "ground_truth": ["assert add(1, 2) == 3", ...], "dataset": "code", ...}

Rewards of several ground truths are added there, so that golds which mean the same would pay twice, and its verifiers
know no options. Rows with several accepted golds, with options, or with a verifier that open-instruct does not have are
written with `dataset: truegold` and the row itself as ground truth, for
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
    """Return a row's record; ground truth and dataset are lists of one in every row."""
    known = KNOWN_VERIFIERS.get(row.row["verifier"]) if len(row.golds) == 1 and not row.arguments else None
    return {
        "messages": row.messages,
        "ground_truth": [row.carried if known is None else row.golds[0]],
        "dataset": [known or TRUEGOLD],
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
