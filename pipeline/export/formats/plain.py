"""Hugging Face datasets: the canonical rows as they are, with licence, origin and flags in columns.

{"prompt": "Natalia sold ...", "gold": "72", "golds": ["72"], "verifier": "math", ..., "truegold": "{...}"}
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from truegold.pipeline.export.formats.base import ExportRecord, ExportRow, Format, load_with_datasets


class PlainRecord(ExportRecord):
    """A canonical row."""

    id: str
    prompt: str
    gold: str | None
    golds: list[str]
    verifier: str
    verifier_args: str
    license: str | None
    origin: str


def make_record(row: ExportRow, index: int) -> Mapping[str, Any]:
    """Return a row's record."""
    return {
        **row.row,
        "golds": list(row.golds),
        "license": row.provenance.license,
        "origin": row.provenance.origin,
        "flags": list(row.flags),
        "truegold": row.carried,
    }


HF = Format("hf", "Hugging Face datasets", "parquet", make_record, PlainRecord, "datasets", load_with_datasets)
