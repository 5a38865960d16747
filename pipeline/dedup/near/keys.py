"""Which texts are worth comparing: those that share two of their rarest features. Near linear in time and memory.

    "Natalia sold clips to 48 of her friends ..."   rarest features: natalia, clip, #48, april ...
    keys: every pair of them, such as (natalia, clip), (clip, #48)

A rewording keeps names, things and numbers, and changes verbs and order; so it shares some pair of rare features where
it shares no run of three words. A feature that only one text has is no help and is not counted among the rarest. Texts
with a key in common form a bucket; in a large bucket (a template with thousands of instances) each text is compared
only with its neighbours in the order of their quantities, so that the work stays proportional to the number of texts.
"""

from __future__ import annotations

from collections import deque
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from truegold.pipeline.dedup.near.features import STRONG, Features
from truegold.pipeline.dedup.near.growing import in_order, run_starts
from truegold.pipeline.dedup.near.lexicon import stable_hashes
from truegold.pipeline.dedup.near.sparse import Ints, Sparse
from truegold.pipeline.dedup.near.workers import in_order_of

RAREST = 7
"""Features of a text that keys are made of: 7 make 21 keys."""
BESIDE = 12
"""Rarest features that each make a key together with all quantities of a text."""
WINDOW = 8
"""A bucket of one text more is compared in full."""
NEIGHBOURS = 2
"""Neighbours that a text is compared with in a larger bucket."""
CHUNK = 50_000
"""Rows whose features are sorted at a time."""
SHARD_ROWS = 50_000
"""Keys are gone through in parts of as many as so many rows have: bounds memory, and the unit of work of a cluster."""
HEAD_BITS = 16
MIN_PLACE_BITS = 20
"""Of the 64 bits of a packed key, those that choose its shard, and the fewest for the place of its text. The other 28
(for ten million texts 24) hash the key within its head: two different keys fall together with a probability of 1e-6.
What fell together would be compared in vain.
"""


def rarest(features: Features, count: int = RAREST) -> npt.NDArray[np.uint32]:
    """For each text its rarest features that others have too, numbered from 1: rows x count, zeros where fewer."""
    tables = (features.words, features.numbers)
    frequency = np.zeros(len(features.stems), dtype=np.int64)
    for table in tables:
        frequency += np.bincount(table.codes, minlength=len(frequency))
    hashes = stable_hashes(features.stems)
    # Ties between equally rare features are broken by their hash, so that they fall alike in every text.
    by_rank = np.lexsort((hashes, frequency))
    rank = np.empty(len(hashes), dtype=np.int64)
    rank[by_rank] = np.arange(len(hashes))
    useful = (frequency >= 2) & ~features.stop
    result = np.zeros((len(features), count), dtype=np.uint32)

    def fill(start: int) -> None:
        parts = [_chunk(table, start, min(start + CHUNK, len(features))) for table in tables]
        codes = np.concatenate([codes for codes, _ in parts])
        rows = np.concatenate([rows for _, rows in parts])
        used = useful[codes]
        ranked = in_order((rows[used] << 32) | rank[codes[used]])
        rows = ranked >> 32
        heads = np.flatnonzero(run_starts(rows))
        place = np.arange(len(rows)) - np.repeat(heads, np.diff(heads, append=len(rows)))
        taken = np.flatnonzero(place < count)
        result[start + rows[taken], place[taken]] = by_rank[ranked[taken] & 0xFFFFFFFF] + 1

    deque(in_order_of(range(0, len(features), CHUNK), fill), maxlen=0)
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


@dataclass(frozen=True)
class Keys:
    """Every key of every text, packed, in shards that can be gone through in any order.

    A packed key has the hash of the key's rarest feature in its highest bits, by which it belongs to a shard, then a
    hash of the whole key, and in its lowest `place_bits` the place of the text. places: the row at each place.
    quantities: for each row the hash of its quantities, the order of places.
    """

    folder: Path
    shards: int
    place_bits: int
    places: npt.NDArray[np.int32]
    quantities: npt.NDArray[np.uint64]

    def pairs(self, shard: int, split: Ints | None = None) -> npt.NDArray[np.int64]:
        """The distinct pairs of rows to compare that share a key of this shard, as left << 32 | right, left < right.

        split: where given, only pairs whose rows have different numbers here. A pair may come up in several shards.
        """
        packed = in_order(np.fromfile(self._file(shard), dtype=np.uint64))
        rows = self.places[packed & np.uint64((1 << self.place_bits) - 1)]
        return bucket_pairs(packed >> np.uint64(self.place_bits), rows, self.quantities[rows], split)

    def _file(self, shard: int) -> Path:
        return self.folder / f"keys-{shard:05}"


def write_keys(features: Features, folder: Path) -> Keys:
    """Make the keys of all texts, in files of `folder`: about 270 bytes a text, a bounded number of them in memory."""
    table = rarest(features, BESIDE)
    quantities = number_keys(features)
    # Places are rows in the order of their quantities: in a bucket, equal quantities are then next to each other.
    places = np.argsort(quantities, kind="stable").astype(np.int32)
    place_bits = max(MIN_PLACE_BITS, len(features).bit_length())
    keys = Keys(folder, max(1, -(-len(features) // SHARD_ROWS)), place_bits, places, quantities)

    def sharded(start: int) -> list[npt.NDArray[np.uint64]]:
        rows = places[start : start + CHUNK]
        packed = _packed(table[rows], quantities[rows], start, place_bits)
        shard = (((packed >> np.uint64(32)) * np.uint64(keys.shards)) >> np.uint64(32)).astype(np.uint16)
        order = np.argsort(shard, kind="stable")
        ends = np.searchsorted(shard[order], np.arange(1, keys.shards), side="left")
        return np.split(packed[order], ends)

    with ExitStack() as opened:
        files = [opened.enter_context(keys._file(shard).open("wb")) for shard in range(keys.shards)]
        for parts in in_order_of(range(0, len(features), CHUNK), sharded):
            for file, part in zip(files, parts, strict=True):
                part.tofile(file)
    return keys


def _packed(
    table: npt.NDArray[np.uint32], quantities: npt.NDArray[np.uint64], first_place: int, place_bits: int
) -> npt.NDArray[np.uint64]:
    place = np.arange(first_place, first_place + len(table), dtype=np.uint64)
    columns = [table[:, column].astype(np.uint64) for column in range(table.shape[1])]
    heads = [_mix(column, np.uint64(0)) >> np.uint64(64 - HEAD_BITS) for column in columns]
    number_head = quantities >> np.uint64(64 - HEAD_BITS)
    tail_bits = np.uint64(64 - HEAD_BITS - place_bits)
    found = []

    def add(head: npt.NDArray[np.uint64], left: npt.NDArray[np.uint64], right: npt.NDArray[np.uint64]) -> None:
        both = (left != 0) & (right != 0)
        tail = _mix(left[both], right[both]) >> np.uint64(64 - int(tail_bits))
        found.append((((head[both] << tail_bits) | tail) << np.uint64(place_bits)) | place[both])

    for i in range(RAREST):
        for j in range(i + 1, RAREST):
            # The rarer of two features comes first in every text, so that the order needs no care.
            add(heads[i], columns[i], columns[j])
    for column in columns:
        add(number_head, quantities, column)
    return np.concatenate(found)


def bucket_pairs(
    keys: npt.NDArray[np.uint64],
    rows: npt.NDArray[np.int32],
    quantities: npt.NDArray[np.uint64],
    split: Ints | None = None,
) -> npt.NDArray[np.int64]:
    """Distinct pairs of rows with equal keys; all arrays are in the order of keys, then of quantities, then of rows.

    In a bucket of up to WINDOW + 1 texts every pair; in a larger one each text with its first neighbours, with the
    bucket's first text, and with the first of those texts of the bucket that have the same quantities.
    """
    new_bucket = run_starts(keys)
    shared = ~new_bucket
    shared[:-1] |= ~new_bucket[1:]  # most keys are of one text alone
    keys, rows, quantities, new_bucket = (
        keys[shared],
        rows[shared].astype(np.int64),
        quantities[shared],
        new_bucket[shared],
    )
    if not len(keys):
        return np.zeros(0, np.int64)
    heads = np.flatnonzero(new_bucket)
    lengths = np.diff(heads, append=len(keys))
    large = np.repeat(lengths > WINDOW + 1, lengths)
    found = []

    def add(one: Ints, other: Ints) -> None:
        left, right = rows[one], rows[other]
        if split is not None:
            apart = split[left] != split[right]
            left, right = left[apart], right[apart]
        found.append((np.minimum(left, right) << 32) | np.maximum(left, right))

    for step in range(1, WINDOW + 1):
        same = np.flatnonzero(keys[step:] == keys[:-step])
        if step > NEIGHBOURS:
            same = same[~large[same]]
        if not len(same):
            break
        add(same, same + step)
    places = np.arange(len(rows))
    new_group = new_bucket | run_starts(quantities)
    for first in (new_bucket, new_group):
        hub = np.maximum.accumulate(np.where(first, places, 0))
        far = np.flatnonzero(large & (places - hub > NEIGHBOURS))
        add(hub[far], far)
    codes = in_order(np.concatenate(found))
    distinct: Ints = codes[run_starts(codes)]
    return distinct


def _mix(left: npt.NDArray[np.uint64], right: npt.NDArray[np.uint64] | np.uint64) -> npt.NDArray[np.uint64]:
    """One hash of two (the finaliser of MurmurHash3 over a weighted sum)."""
    value = left * np.uint64(0x9E3779B97F4A7C15) + right
    value ^= value >> np.uint64(33)
    value *= np.uint64(0xFF51AFD7ED558CCD)
    return value ^ (value >> np.uint64(33))
