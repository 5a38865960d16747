"""Which texts are worth comparing: those that share two of their rarest features. Near linear in time and memory.

    "Natalia sold clips to 48 of her friends ..."   rarest features: natalia, clip, #48, april ...
    keys: every pair of them, such as (natalia, clip), (clip, #48)

A rewording keeps names, things and numbers, and changes verbs and order; so it shares some pair of rare features where
it shares no run of three words. A feature that only one text has is no help and is not counted among the rarest. Texts
with a key in common form a bucket; in a large bucket (a template with thousands of instances) each text is compared only
with its neighbours in the order of their quantities, so that the work stays proportional to the number of texts.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from truegold.pipeline.near.features import STRONG, Features, stable_hashes
from truegold.pipeline.near.sparse import Ints, Sparse

RAREST = 7
"""Features of a text that keys are made of: 7 make 21 keys."""
BESIDE = 12
"""Rarest features that each make a key together with all quantities of a text."""
WINDOW = 8
"""A bucket of one text more is compared in full."""
NEIGHBOURS = 2
"""Neighbours that a text is compared with in a larger bucket."""
CHUNK = 100_000
"""Rows whose features are sorted at a time."""
SHARD_ROWS = 100_000
"""Keys are gone through in parts of as many as so many rows have: bounds memory, and the unit of work of a cluster."""

Pairs = tuple[Ints, Ints]


def rarest(features: Features, count: int = RAREST) -> npt.NDArray[np.uint32]:
    """For each text its rarest features that others have too, numbered from 1: rows x count, zeros where fewer."""
    tables = (features.words, features.numbers)
    frequency = sum(np.bincount(table.codes, minlength=len(features.stems)) for table in tables)
    hashes = stable_hashes(features.stems)
    # Ties between equally rare features are broken by their hash, so that they fall alike in every text.
    rank = np.empty(len(hashes), dtype=np.int64)
    rank[np.lexsort((hashes, frequency))] = np.arange(len(hashes))
    useful = (frequency >= 2) & ~features.stop
    result = np.zeros((len(features), count), dtype=np.uint32)
    for start in range(0, len(features), CHUNK):
        end = min(start + CHUNK, len(features))
        parts = [_chunk(table, start, end) for table in tables]
        codes = np.concatenate([codes for codes, _ in parts])
        rows = np.concatenate([rows for _, rows in parts])
        rows, codes = rows[useful[codes]], codes[useful[codes]]
        order = np.argsort((rows << 32) | rank[codes], kind="stable")
        rows, codes = rows[order], codes[order]
        place = np.arange(len(rows)) - np.searchsorted(rows, rows)
        taken = place < count
        result[start + rows[taken], place[taken]] = codes[taken] + 1
    return result


def _chunk(table: Sparse, start: int, end: int) -> tuple[npt.NDArray[np.int32], Ints]:
    codes = table.codes[table.starts[start] : table.starts[end]]
    return codes, np.repeat(np.arange(end - start), np.diff(table.starts[start : end + 1]))


def number_keys(features: Features) -> npt.NDArray[np.uint64]:
    """A hash of each text's set of quantities, weak ones left out; 0 where it has fewer than two."""
    table = features.numbers
    
    strong = table.values > STRONG
    rows = np.repeat(np.arange(len(table)), np.diff(table.starts))[strong]
    hashes = stable_hashes(features.stems)[table.codes[strong]]
    total = np.zeros(len(table), dtype=np.uint64)
    np.add.at(total, rows, hashes * np.uint64(0x9E3779B97F4A7C15))
    total[np.bincount(rows, minlength=len(table)) < 2] = 0
    return total


def shard_count(rows: int) -> int:
    """Parts that the keys of so many rows are gone through in. The pairs found do not depend on it."""
    return max(1, -(-rows // SHARD_ROWS))


def candidate_pairs(features: Features, *, split: Ints | None = None, window: int = WINDOW) -> Iterator[Pairs]:
    """Pairs of rows (left < right) to compare, shard by shard; a pair may come up in several shards.

    split: where given, only pairs whose rows have different numbers here.
    """
    table = rarest(features, max(RAREST, BESIDE))
    numbers = number_keys(features)
    # Rows in the order of their quantities: a stable sort by key then leaves equal quantities next to each other.
    by_numbers = np.argsort(numbers, kind="stable")
    table, ordered = np.ascontiguousarray(table[by_numbers].T), numbers[by_numbers]
    pairs = [(i, j) for i in range(RAREST) for j in range(i + 1, RAREST)]
    shards = shard_count(len(features))
    for shard in range(shards):
        keys, places = [], []
        for i, j in [*pairs, *((-1, j) for j in range(BESIDE))]:
            left = ordered if i < 0 else table[i].astype(np.uint64)
            right = table[j].astype(np.uint64)
            key = _mix(left, right) if i < 0 else _mix(np.minimum(left, right), np.maximum(left, right))
            mine = np.flatnonzero((left != 0) & (right != 0) & (key % np.uint64(shards) == shard))
            keys.append(key[mine])
            places.append(mine.astype(np.int32))
        key, place = np.concatenate(keys), np.concatenate(places)
        del keys, places
        order = np.lexsort((place, key))
        yield bucket_pairs(key[order], by_numbers[place[order]], numbers, window, split)


def bucket_pairs(
    keys: npt.NDArray[np.uint64],
    rows: Ints,
    order_key: npt.NDArray[np.uint64],
    window: int,
    split: Ints | None = None,
) -> Pairs:
    """Distinct pairs of rows with equal keys; both arrays are in the order of keys, then of `order_key`, then of rows.

    In a bucket of up to `window` + 1 texts every pair; in a larger one each text with its first neighbours, with the
    bucket's first text, and with the first of those texts of the bucket that have the same quantities.
    """
    places = np.arange(len(rows))
    new_bucket = np.diff(keys, prepend=~keys[:1]) != 0
    new_group = new_bucket | (np.diff(order_key[rows], prepend=~order_key[rows[:1]]) != 0)
    heads = np.flatnonzero(new_bucket)
    size = np.repeat(np.diff(heads, append=len(rows)), np.diff(heads, append=len(rows)))
    found = []

    def add(one: Ints, other: Ints) -> None:
        left, right = rows[one], rows[other]
        keep = left != right
        if split is not None:
            keep &= split[left] != split[right]
        left, right = left[keep], right[keep]
        found.append((np.minimum(left, right) << 32) | np.maximum(left, right))

    for step in range(1, window + 1):
        same = np.flatnonzero(keys[step:] == keys[:-step])
        if step > NEIGHBOURS:
            same = same[size[same] <= window + 1]
        if not len(same):
            break
        add(same, same + step)
    large = size > window + 1
    for first in (new_bucket, new_group):
        hub = np.maximum.accumulate(np.where(first, places, 0))
        far = np.flatnonzero(large & (places - hub > NEIGHBOURS))
        add(hub[far], far)
    codes = np.concatenate(found) if found else np.zeros(0, np.int64)
    codes.sort()
    codes = codes[np.flatnonzero(np.diff(codes, prepend=-1))]
    return codes >> 32, codes & 0xFFFFFFFF


def _mix(left: npt.NDArray[np.uint64], right: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """One hash of two (the finaliser of MurmurHash3 over a weighted sum)."""
    value = left * np.uint64(0x9E3779B97F4A7C15) + right
    value ^= value >> np.uint64(33)
    value *= np.uint64(0xFF51AFD7ED558CCD)
    return value ^ (value >> np.uint64(33))
