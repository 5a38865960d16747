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

from truegold.pipeline.near.arrays import Codes, Hashes, Ints, repeat_over_runs, run_starts, sort_values
from truegold.pipeline.near.features import STRONG, Features
from truegold.pipeline.near.lexicon import stable_hashes
from truegold.pipeline.near.sparse import Sparse
from truegold.pipeline.near.workers import map_in_threads

RAREST = 7
"""Features of a text that keys are made of: 7 make 21 keys."""
RAREST_WITH_QUANTITIES = 12
"""Rarest features that each make a key together with all quantities of a text."""
WINDOW = 8
"""A bucket of up to WINDOW + 1 texts is compared in full."""
NEIGHBOURS = 2
"""Neighbours that a text is compared with in a larger bucket."""
CHUNK = 50_000
"""Rows whose features are sorted at a time."""
SHARD_ROWS = 50_000
"""A shard has as many keys as so many rows have: this bounds memory, and is the unit of work of a cluster."""
HEAD_BITS = 16
"""Of the 64 bits of a packed key, the highest, which choose its shard."""
MIN_POSITION_BITS = 20
"""Of the 64 bits of a packed key, at least so many of the lowest hold the position of its text.

The other 28 (for ten million texts 24) hash the key within its head: two different keys fall together with a
probability of 1e-6, and what fell together would be compared in vain.
"""


def rarest_features(features: Features, count: int = RAREST) -> npt.NDArray[np.uint32]:
    """Return for each text its rarest features that others have too, plus 1: rows x count, zeros where fewer."""
    tables = (features.words, features.numbers)
    frequency = np.zeros(len(features.stems), dtype=np.int64)
    for table in tables:
        frequency += np.bincount(table.codes, minlength=len(frequency))
    hashes = stable_hashes(features.stems)
    # Ties between equally rare features are broken by their hash, so that they fall alike in every text.
    by_rank = np.lexsort((hashes, frequency))
    rank = np.empty(len(hashes), dtype=np.int64)
    rank[by_rank] = np.arange(len(hashes))
    useful = (frequency >= 2) & ~features.is_stop
    rarest = np.zeros((len(features), count), dtype=np.uint32)

    def fill(start: int) -> None:
        parts = [_codes_and_rows(table, start, min(start + CHUNK, len(features))) for table in tables]
        codes = np.concatenate([codes for codes, _ in parts])
        rows = np.concatenate([rows for _, rows in parts])
        used = useful[codes]
        ranked = sort_values((rows[used] << 32) | rank[codes[used]])
        rows = ranked >> 32
        heads = np.flatnonzero(run_starts(rows))
        column = np.arange(len(rows)) - repeat_over_runs(heads, heads, len(rows))
        taken = np.flatnonzero(column < count)
        rarest[start + rows[taken], column[taken]] = by_rank[ranked[taken] & 0xFFFFFFFF] + 1

    deque(map_in_threads(fill, range(0, len(features), CHUNK)), maxlen=0)
    return rarest


def _codes_and_rows(table: Sparse, start: int, end: int) -> tuple[Codes, Ints]:
    codes = table.codes[table.starts[start] : table.starts[end]]
    return codes, np.repeat(np.arange(end - start), np.diff(table.starts[start : end + 1]))


def quantity_hashes(features: Features) -> Hashes:
    """Return a hash of each text's set of strong quantities; 0 where it has fewer than two."""
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
    """Every key of every text, packed, in files (shards) that can be gone through in any order.

    A packed key has the hash of the key's rarest feature in its highest bits, by which it belongs to a shard, then a
    hash of the whole key, and in its lowest `position_bits` the position of the text.
    """

    folder: Path
    shards: int
    position_bits: int
    row_at: npt.NDArray[np.int32]
    """The row at each position."""
    quantities: Hashes
    """The hash of each row's quantities, by which rows are in the order of their positions."""

    def pairs(self, shard: int, split: Ints | None = None) -> Ints:
        """Return the distinct pairs of rows to compare that share a key of this shard.

        A pair is left << 32 | right with left < right; it may come up in several shards. With `split` only pairs whose
        rows have different numbers in it are returned.
        """
        packed = sort_values(np.fromfile(self.shard_file(shard), dtype=np.uint64))
        rows = self.row_at[packed & np.uint64((1 << self.position_bits) - 1)]
        return bucket_pairs(packed >> np.uint64(self.position_bits), rows, self.quantities[rows], split)

    def shard_file(self, shard: int) -> Path:
        """Return the file that has the packed keys of a shard."""
        return self.folder / f"keys-{shard:05}"


def write_keys(features: Features, folder: Path) -> Keys:
    """Make the keys of all texts, in files of `folder`: about 270 bytes a text, a bounded number of them in memory."""
    rarest = rarest_features(features, RAREST_WITH_QUANTITIES)
    quantities = quantity_hashes(features)
    # Positions are in the order of quantities, so that in a bucket equal quantities are next to each other.
    row_at = np.argsort(quantities, kind="stable").astype(np.int32)
    position_bits = max(MIN_POSITION_BITS, len(features).bit_length())
    keys = Keys(folder, max(1, -(-len(features) // SHARD_ROWS)), position_bits, row_at, quantities)

    def pack_chunk(start: int) -> list[Hashes]:
        rows = row_at[start : start + CHUNK]
        packed = _pack_keys(rarest[rows], quantities[rows], start, position_bits)
        shard = (((packed >> np.uint64(32)) * np.uint64(keys.shards)) >> np.uint64(32)).astype(np.uint16)
        order = np.argsort(shard, kind="stable")
        ends = np.searchsorted(shard[order], np.arange(1, keys.shards), side="left")
        return np.split(packed[order], ends)

    with ExitStack() as opened:
        files = [opened.enter_context(keys.shard_file(shard).open("wb")) for shard in range(keys.shards)]
        for parts in map_in_threads(pack_chunk, range(0, len(features), CHUNK)):
            for file, part in zip(files, parts, strict=True):
                part.tofile(file)
    return keys


def _pack_keys(rarest: npt.NDArray[np.uint32], quantities: Hashes, first_position: int, position_bits: int) -> Hashes:
    """Return the packed keys of the texts at consecutive positions."""
    position = np.arange(first_position, first_position + len(rarest), dtype=np.uint64)
    columns = [rarest[:, column].astype(np.uint64) for column in range(rarest.shape[1])]
    heads = [_mix(column, np.uint64(0)) >> np.uint64(64 - HEAD_BITS) for column in columns]
    quantity_head = quantities >> np.uint64(64 - HEAD_BITS)
    tail_bits = np.uint64(64 - HEAD_BITS - position_bits)
    packed = []

    def pack(head: Hashes, left: Hashes, right: Hashes) -> None:
        both = (left != 0) & (right != 0)
        tail = _mix(left[both], right[both]) >> np.uint64(64 - int(tail_bits))
        packed.append((((head[both] << tail_bits) | tail) << np.uint64(position_bits)) | position[both])

    for i in range(RAREST):
        for j in range(i + 1, RAREST):
            # The rarer of two features comes first in every text, so that the order needs no care.
            pack(heads[i], columns[i], columns[j])
    for column in columns:
        pack(quantity_head, quantities, column)
    return np.concatenate(packed)


def bucket_pairs(keys: Hashes, rows: npt.NDArray[np.int32], quantities: Hashes, split: Ints | None = None) -> Ints:
    """Return distinct pairs of rows with equal keys; all arrays are in the order of keys, then quantities, then rows.

    In a bucket of up to WINDOW + 1 texts that is every pair; in a larger one each text with its first neighbours, with
    the bucket's first text, and with the first of those texts of the bucket that have the same quantities.
    """
    new_bucket = run_starts(keys)
    # Most keys are of one text alone and make no pair.
    shared = ~new_bucket
    shared[:-1] |= ~new_bucket[1:]
    keys, quantities, new_bucket = keys[shared], quantities[shared], new_bucket[shared]
    shared_rows = rows[shared].astype(np.int64)
    if not len(keys):
        return np.zeros(0, np.int64)
    heads = np.flatnonzero(new_bucket)
    lengths = np.diff(heads, append=len(keys))
    large = np.repeat(lengths > WINDOW + 1, lengths)
    pairs = []

    def add(first: Ints, second: Ints) -> None:
        left, right = shared_rows[first], shared_rows[second]
        if split is not None:
            differ = split[left] != split[right]
            left, right = left[differ], right[differ]
        pairs.append((np.minimum(left, right) << 32) | np.maximum(left, right))

    for step in range(1, WINDOW + 1):
        same = np.flatnonzero(keys[step:] == keys[:-step])
        if step > NEIGHBOURS:
            same = same[~large[same]]
        if not len(same):
            break
        add(same, same + step)
    positions = np.arange(len(shared_rows))
    new_group = new_bucket | run_starts(quantities)
    for is_first in (new_bucket, new_group):
        hub = np.maximum.accumulate(np.where(is_first, positions, 0))
        far = np.flatnonzero(large & (positions - hub > NEIGHBOURS))
        add(hub[far], far)
    codes = sort_values(np.concatenate(pairs))
    distinct: Ints = codes[run_starts(codes)]
    return distinct


def _mix(left: Hashes, right: Hashes | np.uint64) -> Hashes:
    """Return one hash of two: the finaliser of MurmurHash3 over a weighted sum."""
    mixed = left * np.uint64(0x9E3779B97F4A7C15) + right
    mixed ^= mixed >> np.uint64(33)
    mixed *= np.uint64(0xFF51AFD7ED558CCD)
    return mixed ^ (mixed >> np.uint64(33))
