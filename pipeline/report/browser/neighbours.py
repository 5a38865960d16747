"""The rows that belong together: copies, rewordings, contradicting labels; each as a position in the page.

ledger of dedup: drop same_problem {"kept_id": "4104...", "kept": "raw.jsonl:48"}     linked both ways
flag conflicting_labels {"rows": ["raw.jsonl:14", "raw.jsonl:325"], ...}              all with each other
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import polars as pl

from truegold.pipeline.tables.rows import KEY, RowKey, row_key
from truegold.pipeline.tables.run_files import Fields
from truegold.pipeline.text.shown import visible

NEIGHBOURS_SHOWN = 6
"""The neighbours that a card shows side by side with its row."""


def link_neighbours(
    rows: pl.DataFrame, flags: Mapping[RowKey, list[Fields]], linked: Iterable[Mapping[str, Any]]
) -> dict[RowKey, list[Fields]]:
    """Return the neighbours of each row, `{"row": position in the page, "relation": "same problem"}`.

    rows: those of the page in its order; linked: ledger records whose evidence names the row that was kept instead.
    """
    keys = [row_key(row) for row in rows.select(KEY).iter_rows(named=True)]
    by_source = {(source, source_row): index for index, (_, source, source_row) in enumerate(keys)}
    position = {key: index for index, key in enumerate(keys)}
    links: dict[int, dict[int, str]] = {}

    def link(first: int, second: int, relation: str) -> None:
        if first != second:
            links.setdefault(first, {}).setdefault(second, relation)

    for record in linked:
        kept = by_source.get(_source_and_row(str(record["evidence"].get("kept", ""))))
        here = position[row_key(record)]
        if kept is not None:
            relation = visible(str(record["reason"])).replace("_", " ")
            link(here, kept, f"{relation}; this one stayed")
            link(kept, here, f"{relation}; left for this row")
    for key, row_flags in flags.items():
        for flag in row_flags:
            for name in _row_names(flag["evidence"]):
                other = by_source.get(_source_and_row(name))
                if other is not None:
                    relation = visible(flag["reason"]).replace("_", " ")
                    link(position[key], other, relation)
    return {
        keys[here]: [
            {"row": other, "relation": relation} for other, relation in list(others.items())[:NEIGHBOURS_SHOWN]
        ]
        for here, others in links.items()
    }


def _row_names(evidence: Mapping[str, Any]) -> list[str]:
    names = evidence.get("rows")
    return [name for name in names if isinstance(name, str)] if isinstance(names, list) else []


def _source_and_row(name: str) -> tuple[str, int]:
    source, _, source_row = name.rpartition(":")
    return source, int(source_row) if source_row.isdecimal() and len(source_row) < 19 else -1
