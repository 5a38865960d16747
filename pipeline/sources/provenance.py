"""Where a row comes from and under which licence: noted when it is read, and carried into every export.

    data: {path: train.jsonl, license: mit, origin: "https://example.org/sets/1"}    for all rows of the source
    {"question": ..., "license": "cc-by-4.0", "data_source": "openai/gsm8k"}          for one row, by its own columns

A row's own column counts before what the configuration says of its source; without either, the licence is unknown and
the origin is the source's name. They stand in `meta`, which every stage hands on, so that the row that stays of several
copies keeps its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import orjson

from truegold.pipeline.config.sources import SourceConfig
from truegold.pipeline.sources.columns import text_of
from truegold.pipeline.tables.rows import NOTES

LICENSE_COLUMNS = ("license", "licence", "license_name")
"""Columns that hold a row's licence, the surest first."""
ORIGIN_COLUMNS = ("origin", "data_source", "source_dataset", "source_url", "url")
"""Columns that hold what a row was taken from."""
PROVENANCE_NOTES = ("license", "origin")
"""The notes in `meta` that say it."""


class Provenance(NamedTuple):
    """What may be done with a row, and whom to name."""

    license: str | None
    """As its source states it; None where nothing is stated."""
    origin: str
    """A data set, a file or an address."""


def with_provenance(meta: Mapping[str, Any], config: SourceConfig) -> dict[str, Any]:
    """Return a row's `meta` with what the configuration says of its source, where it says anything."""
    stated = {name: value for name in PROVENANCE_NOTES if (value := getattr(config, name)) is not None}
    if not stated:
        return dict(meta)
    notes = meta.get(NOTES)
    return {**meta, NOTES: {**stated, **(notes if isinstance(notes, Mapping) else {})}}


def provenance_of(meta: Mapping[str, Any], source: str) -> Provenance:
    """Return the licence and origin of a row by its `meta` and the name of its source."""
    notes = meta.get(NOTES)
    noted: Mapping[str, Any] = notes if isinstance(notes, Mapping) else {}
    license_ = _first_text(meta, LICENSE_COLUMNS) or text_of(noted.get("license"))
    return Provenance(license_, _first_text(meta, ORIGIN_COLUMNS) or text_of(noted.get("origin")) or source)


def provenance_of_row(row: Mapping[str, Any]) -> Provenance:
    """Return the licence and origin of a canonical row."""
    return provenance_of(orjson.loads(row["meta"] or "{}"), row["source"])


def _first_text(meta: Mapping[str, Any], columns: tuple[str, ...]) -> str | None:
    texts = (meta.get(column) for column in columns)
    return next((text for text in texts if isinstance(text, str) and text.strip()), None)
