"""Finds the related pairs in a set of problems. Candidates share two rare features, such as a name and a number.

    "Natalia sold clips to 48 of her friends ..."   rarest features: natalia, clip, #48, april ...
    keys: every pair of them, such as (natalia, clip), (clip, #48)

A rewording keeps names, things and numbers, and changes verbs and order. So rewording and original share a pair of rare
features, even if they share no run of three words. Features that only one text has are not used. Texts with a common
key form a bucket. In a large bucket, such as a template with thousands of instances, each text is compared only with
its neighbours when sorted by quantities. So the work stays proportional to the number of texts.

A simpler way, the product of the sparse table of rare features with itself, needs a bound on the number of texts with a
feature. With this bound it loses a tenth of the related pairs or more (`benchmarks/results/house2.md`).

`find_links` returns the pairs (left < right) that may be the same problem, one template, or edits of each other. The
search takes 60 bytes of memory a text and 13 bytes a link. Candidates (8 bytes each) and features lie on disk.
Candidates are divided into shards, which threads or other workers (`ShardRunner`) process independently. The links do
not depend on the number of workers.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt

from truegold.pipeline.near import arrays
from truegold.pipeline.near.features import STRONG, Features, stable_hashes
from truegold.pipeline.near.measures import BATCH, Comparer, Relation, may_relate, relate
from truegold.pipeline.running.progress import NullProgress, Progress, paced

RAREST = 7
"""The number of rarest features of a text whose pairs are keys: 7 features make 21 keys."""
RAREST_WITH_QUANTITIES = 12
"""Each of this number of rarest features of a text makes a key with the set of all quantities of the text."""
WINDOW = 8
"""All pairs of a bucket of up to WINDOW + 1 texts are compared."""
NEIGHBOURS = 2
"""The number of following neighbours that a text of a larger bucket is compared with."""
SHARD_ROWS = 50_000
"""The number of texts for each shard of keys, to bound memory: keys are sorted one shard at a time."""
MERGED_PAIRS = 2_000_000
"""The approximate number of candidate pairs that are sorted at a time, to bound memory."""
TEXTS_RANKED = 100_000
"""The number of texts whose keys `find_neighbours` makes at a time."""
NEIGHBOUR_BITS = 24
"""The prefilter of `find_neighbours` has 2**NEIGHBOUR_BITS slots. The first bits of a key give its slot."""
NEIGHBOUR_SHIFT = np.uint64(64 - NEIGHBOUR_BITS)
SHARD_BATCHES = 10
"""The number of batches of candidates in a shard, so that a task on a cluster takes about a second."""
SILENT = NullProgress()


@dataclass(frozen=True)
class Links:
    """Related pairs of texts, as arrays [pairs], sorted by left and right text.

    Pairs of the kind "same problem" are candidates until `confirmation` has checked them.
    """

    left: arrays.Ints
    """The first text of each pair."""
    right: arrays.Ints
    """The second text of each pair, with the higher number."""
    relation: npt.NDArray[np.uint8]
    """The `Relation` of the two texts."""
    score: arrays.Floats
    """The log-odds of the same problem."""

    def __len__(self) -> int:
        return len(self.left)

    def having(self, relation: Relation) -> Links:
        """Return the links of one relation."""
        return self.take(self.relation == relation)

    def take(self, chosen: arrays.Marks | arrays.Ints) -> Links:
        """Return the links at these positions, or the marked links."""
        return Links(self.left[chosen], self.right[chosen], self.relation[chosen], self.score[chosen])


def join_links(parts: Iterable[Links]) -> Links:
    """Return the links of all parts, one part after the other."""
    none = np.zeros(0, np.int64)
    parts = [Links(none, none, none.astype(np.uint8), none.astype(np.float32)), *parts]
    return Links(
        np.concatenate([part.left for part in parts]),
        np.concatenate([part.right for part in parts]),
        np.concatenate([part.relation for part in parts]),
        np.concatenate([part.score for part in parts]),
    )


@dataclass(frozen=True)
class Searcher:
    """The data that a worker needs to find the links of a shard: some 300 bytes a text, mostly on disk."""

    candidates: arrays.Pairs
    comparer: Comparer
    texts: int
    """The number of texts that the pairs come from (`relate`)."""

    @property
    def shards(self) -> int:
        """The number of shards."""
        return -(-len(self.candidates) // (SHARD_BATCHES * BATCH))

    def links(self, shard: int) -> Links:
        """Return the related pairs among the candidates of a shard."""
        pairs = self.candidates[shard * SHARD_BATCHES * BATCH :][: SHARD_BATCHES * BATCH]
        return join_links(self._relate(pairs[start : start + BATCH]) for start in range(0, len(pairs), BATCH))

    def _relate(self, pairs: arrays.Pairs) -> Links:
        left, right = arrays.unpack_pairs(pairs)
        measures = self.comparer.measure_sets(left, right)
        related = np.flatnonzero(may_relate(measures, self.texts))
        left, right = left[related], right[related]
        relation, score = relate(self.comparer.complete(measures.take(related), left, right), self.texts)
        return Links(left, right, relation, score).take(relation > Relation.UNRELATED)


ShardRunner = Callable[[Searcher], Iterator[Links]]
"""A function that processes all shards of a searcher, and yields their links in the order of shards."""


def run_in_threads(searcher: Searcher) -> Iterator[Links]:
    """Yield the links of each shard, in order, found in threads of this process."""
    return arrays.map_in_threads(searcher.links, range(searcher.shards))


def find_links(
    features: Features,
    comparer: Comparer,
    *,
    split: arrays.Ints | None = None,
    texts: int | None = None,
    run_shards: ShardRunner = run_in_threads,
    progress: Progress = SILENT,
    scratch: Path | None = None,
) -> Links:
    """Return all related pairs.

    - `texts`: the number of texts that the pairs come from (`relate`), by default that of `features`
    - `split`: a side, 0 or 1, for each text; only texts of different sides are compared
    - `run_shards`: processes the shards, by default in threads
    - `scratch`: a folder for temporary files, by default one of the system
    """
    searcher = Searcher(find_candidates(features, split, progress, scratch), comparer, texts or len(features))
    return join_links(paced(run_shards(searcher), progress, "comparing", searcher.shards))


def find_candidates(
    features: Features, split: arrays.Ints | None, progress: Progress, scratch: Path | None = None
) -> arrays.Pairs:
    """Return the distinct pairs of texts that share a key, sorted, with left < right.

    With `split`, a side of 0 or 1 for each text, only pairs of texts of different sides are returned.
    """
    rarest, quantities = rarest_features(features, RAREST_WITH_QUANTITIES), quantity_hashes(features)
    # Texts are numbered in the order of their quantities, so that equal quantities are neighbours within a bucket.
    row_at = np.argsort(quantities, kind="stable")
    for column in rarest:
        column[:] = column[row_at]
    columns, quantity_at = rarest, quantities[row_at]
    del quantities
    shards = max(1, -(-len(features) // SHARD_ROWS))

    def shard_pairs(shard: int) -> arrays.Pairs:
        keys, positions = shard_keys(columns, quantity_at, shard, shards)
        return bucket_pairs(keys, row_at[positions], quantity_at[positions], split)

    unsorted, ends = arrays.OnDisk(np.int64, scratch), [0]
    for pairs in paced(arrays.map_in_threads(shard_pairs, range(shards)), progress, "pairing", shards):
        unsorted.extend(pairs)
        ends.append(len(unsorted))
    merged, all_pairs = arrays.OnDisk(np.int64, scratch), unsorted.array
    runs = [all_pairs[start:stop] for start, stop in pairwise(ends)]
    cuts = np.linspace(0, len(features), 2 + len(all_pairs) // MERGED_PAIRS).astype(np.int64) << 32
    for low, high in pairwise(cuts):
        pieces = [run[np.searchsorted(run, low) : np.searchsorted(run, high)] for run in runs]
        merged.extend(arrays.sort_distinct(np.concatenate(pieces)))
    return merged.array


def find_neighbours(features: Features, first: int) -> arrays.Ints:
    """Return the numbers of the first `first` texts and of all texts that share a key with such a text, ascending."""

    def keys_of(numbers: arrays.Ints) -> Iterator[tuple[arrays.Ints, arrays.Hashes]]:
        some = features.take(numbers)
        return _text_keys(rarest_features(some, RAREST_WITH_QUANTITIES), quantity_hashes(some))

    known = arrays.sort_distinct(np.concatenate([keys for _, keys in keys_of(np.arange(first))]))
    passes = np.zeros(1 << NEIGHBOUR_BITS, dtype=bool)
    passes[known >> NEIGHBOUR_SHIFT] = True
    near = [np.arange(first)]
    for start in range(first, len(features) if len(known) else first, TEXTS_RANKED):
        numbers = np.arange(start, min(start + TEXTS_RANKED, len(features)))
        shares = np.zeros(len(numbers), dtype=bool)
        for texts, keys in keys_of(numbers):
            maybe = np.flatnonzero(passes[keys >> NEIGHBOUR_SHIFT])
            positions = np.minimum(np.searchsorted(known, keys[maybe]), len(known) - 1)
            shares[texts[maybe[known[positions] == keys[maybe]]]] = True
        near.append(numbers[shares])
    return np.concatenate(near)


def rarest_features(features: Features, count: int) -> npt.NDArray[np.uint32]:
    """Return the rarest features of each text that other texts have, too, as an array [count, texts].

    Feature numbers are increased by 1. A text with fewer than `count` features has 0 in the other places.
    """
    tables = (features.words, features.numbers)
    frequency = features.texts_with_word + features.texts_with_number
    hashes = stable_hashes(features.stems)
    # Equally rare features are ordered by their hash, so in the same way in every text.
    by_rank = np.lexsort((hashes, frequency))
    rank = arrays.places_in(by_rank)
    useful = (frequency >= 2) & ~features.is_stop
    rarest = np.zeros((count, len(features)), dtype=np.uint32)

    def fill(start: int) -> None:
        parts = [table[start : start + arrays.TABLE_ROWS] for table in tables]
        codes = np.concatenate([part.indices for part in parts])
        rows = np.concatenate([np.repeat(np.arange(part.shape[0]), np.diff(part.indptr)) for part in parts])
        used = useful[codes]
        rows, ranks = arrays.unpack_pairs(arrays.sort_values(arrays.pack_pairs(rows[used], rank[codes[used]])))
        heads = np.flatnonzero(arrays.run_starts(rows))
        column = np.arange(len(rows)) - arrays.repeat_over_runs(heads, heads, len(rows))
        taken = np.flatnonzero(column < count)
        rarest[column[taken], start + rows[taken]] = by_rank[ranks[taken]] + 1

    deque(arrays.map_in_threads(fill, range(0, len(features), arrays.TABLE_ROWS)), maxlen=0)
    return rarest


def quantity_hashes(features: Features) -> arrays.Hashes:
    """Return a hash of each text's set of strong quantities, 0 for a text with fewer than two of them."""
    table = features.numbers
    total = np.zeros(len(features), dtype=np.uint64)
    hash_of = stable_hashes(features.stems) * np.uint64(0x9E3779B97F4A7C15)
    for rows, entries in arrays.row_slices(table):
        strong = table.data[entries] > STRONG
        row = np.repeat(np.arange(rows.start, rows.stop), np.diff(table.indptr[rows.start : rows.stop + 1]))[strong]
        np.add.at(total, row, hash_of[table.indices[entries][strong]])
        total[rows][np.bincount(row - rows.start, minlength=rows.stop - rows.start) < 2] = 0
    return total


def shard_keys(
    columns: npt.NDArray[np.uint32], quantities: arrays.Hashes, shard: int, shards: int
) -> tuple[arrays.Hashes, arrays.Ints]:
    """Return the sorted keys of a shard, and the position of the text of each key. Positions ascend within a key.

    `columns` [features, texts] has the rarest features of each text, the rarest first. A key belongs to the shard of
    its rarer feature. A key and its position share 64 bits. With a million texts, the key has 44 bits. Two pairs of
    features then give the same key with a probability of 1e-6, and their texts are compared without need.
    """
    position_bits = np.uint64(columns.shape[1].bit_length())
    packed = [
        ((hashes >> position_bits) << position_bits) | texts.astype(np.uint64)
        for texts, hashes in _text_keys(columns, quantities, shard, shards)
    ]
    ordered = arrays.sort_values(np.concatenate(packed))
    keys = ordered >> position_bits
    return keys, (ordered ^ (keys << position_bits)).astype(np.int64)


def _text_keys(
    columns: npt.NDArray[np.uint32], quantities: arrays.Hashes, shard: int = 0, shards: int = 1
) -> Iterator[tuple[arrays.Ints, arrays.Hashes]]:
    """Yield arrays of texts and of their keys in a shard: pairs of two features, and of quantities with a feature."""
    for rarer, column in enumerate(columns):
        texts = np.flatnonzero(column % shards == shard)
        # The rarer feature comes first in every text. So the hash may depend on the order of the two.
        for left, right in (*((column, other) for other in columns[rarer + 1 : RAREST]), (quantities, column)):
            both = texts[(left[texts] != 0) & (right[texts] != 0)]
            yield both, _mix(left[both].astype(np.uint64), right[both].astype(np.uint64))


def bucket_pairs(
    keys: arrays.Hashes, rows: arrays.Ints, quantities: arrays.Hashes, split: arrays.Ints | None = None
) -> arrays.Pairs:
    """Return distinct pairs of rows with equal keys. All arrays are sorted by keys, then quantities, then rows.

    A bucket of up to WINDOW + 1 texts gives all its pairs. In a larger bucket, each text is paired with its next
    neighbours, with the first text of the bucket, and with the first text that has the same quantities.
    """
    new_bucket = arrays.run_starts(keys)
    # Keys of a single text make no pair. They are dropped, which are most keys.
    shared = ~new_bucket
    shared[:-1] |= ~new_bucket[1:]
    keys, quantities, new_bucket, rows = keys[shared], quantities[shared], new_bucket[shared], rows[shared]
    if not len(keys):
        return np.zeros(0, np.int64)
    heads = np.flatnonzero(new_bucket)
    lengths = np.diff(heads, append=len(keys))
    large = np.repeat(lengths > WINDOW + 1, lengths)
    pairs = []

    def add(first: arrays.Ints, second: arrays.Ints) -> None:
        left, right = rows[first], rows[second]
        if split is not None:
            differ = split[left] != split[right]
            left, right = left[differ], right[differ]
        pairs.append(arrays.pack_pairs(np.minimum(left, right), np.maximum(left, right)))

    for step in range(1, WINDOW + 1):
        same = np.flatnonzero(keys[step:] == keys[:-step])
        if step > NEIGHBOURS:
            same = same[~large[same]]
        if not len(same):
            break
        add(same, same + step)
    positions = np.arange(len(rows))
    new_group = new_bucket | arrays.run_starts(quantities)
    for is_first in (new_bucket, new_group):
        hub = np.maximum.accumulate(np.where(is_first, positions, 0))
        far = np.flatnonzero(large & (positions - hub > NEIGHBOURS))
        add(hub[far], far)
    return arrays.sort_distinct(np.concatenate(pairs))


def _mix(left: arrays.Hashes, right: arrays.Hashes) -> arrays.Hashes:
    """Return a combined hash of two hashes: the finaliser of MurmurHash3 applied to a weighted sum."""
    mixed = left * np.uint64(0x9E3779B97F4A7C15) + right
    mixed ^= mixed >> np.uint64(33)
    mixed *= np.uint64(0xFF51AFD7ED558CCD)
    return mixed ^ (mixed >> np.uint64(33))
