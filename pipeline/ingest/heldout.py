"""Which rows are set aside for evaluation: by a hash of their content, so that a reordered file has the same ones.

Of a single source a row is set aside where its hash falls below the share (`is_heldout`), whatever the other rows are.
Of several sources each has its share to the row (`set_apart`): the rows with the smallest hashes of each, one at least.
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from truegold.pipeline.running.disk import written_aside
from truegold.pipeline.tables.rows import ROW_SCHEMA, TableWriter, read_rows

HASHES = 2**32
"""The hash by which rows are set aside has this many values."""


def is_heldout(identity: str, share: float) -> bool:
    """Say whether a row of this id is set aside."""
    return share > 0 and _hash(identity) < share * HASHES


def set_apart(path: Path, shares: Mapping[str, float]) -> None:
    """Set rows of a table aside, of each source its share; sources without one stay as they are.

    Copies of one content count once and go together. A source of a single content keeps it for training. Four bytes a
    row are held.
    """
    if not any(shares.values()):
        return
    hashes: dict[str, array[int]] = {source: array("I") for source, share in shares.items() if share > 0}
    for row in read_rows(path, ["id", "source"]):
        if row["source"] in hashes:
            hashes[row["source"]].append(_hash(row["id"]))
    bounds = {source: _bound(np.asarray(values), shares[source]) for source, values in hashes.items()}
    with written_aside(path) as aside, TableWriter(aside, ROW_SCHEMA) as rows:
        for row in read_rows(path):
            is_apart = row["source"] in bounds and _hash(row["id"]) <= bounds[row["source"]]
            rows.write({**row, "split": "heldout"} if is_apart else row)


def _bound(hashes: np.ndarray, share: float) -> int:
    """Return the largest hash of the rows to set aside, -1 for none."""
    distinct = np.unique(hashes)
    count = min(max(1, round(share * len(distinct))), len(distinct) - 1)
    return int(distinct[count - 1]) if count > 0 else -1


def _hash(identity: str) -> int:
    """Return 32 bits of a hash of its own, so that nothing else sorts rows by the same bits."""
    return int.from_bytes(hashlib.sha256(b"heldout:" + identity.encode()).digest()[:4], "big")
