"""Finds every related pair in a set of problems: candidates are measured and related, shard by shard.

`find_links` gives the pairs (left < right) that are the same problem, one template, or edits of each other. Memory
holds the features, the candidates (8 bytes each) and the links (13 bytes each). Shards are independent of each other
and are worked on in threads, or by other workers (`ShardRunner`); the links do not depend on how many there are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from truegold.pipeline.near.arrays import Floats, Ints, Marks, Pairs, map_in_threads, unpack_pairs
from truegold.pipeline.near.candidates import find_candidates
from truegold.pipeline.near.features import Features
from truegold.pipeline.near.measures import BATCH, Comparer, Relation, may_relate, relate
from truegold.pipeline.running.progress import NullProgress, Progress, track

SHARD_BATCHES = 10
"""Batches of pairs in a shard: a task of a cluster takes about a second."""
SILENT = NullProgress()


@dataclass(frozen=True)
class Links:
    """Related pairs, sorted by left and right row; arrays [pairs].

    Until they are confirmed (`confirmation`), those of "same problem" only may be.
    """

    left: Ints
    """The row of each pair that comes first."""
    right: Ints
    """The other row."""
    relation: npt.NDArray[np.uint8]
    """The `Relation` of the two."""
    score: Floats
    """The log-odds of the same problem."""

    def __len__(self) -> int:
        return len(self.left)

    def having(self, relation: Relation) -> Links:
        """Return the links of one relation."""
        return self.take(self.relation == relation)

    def take(self, which: Marks | Ints) -> Links:
        """Return the links that are marked, or that have these positions."""
        return Links(self.left[which], self.right[which], self.relation[which], self.score[which])


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
    """All that a worker needs to find the links of a shard: some 300 bytes a text."""

    candidates: Pairs
    comparer: Comparer
    texts: int
    """How many texts the pairs come from; see `relate`."""

    @property
    def shards(self) -> int:
        """The number of shards."""
        return -(-len(self.candidates) // (SHARD_BATCHES * BATCH))

    def links(self, shard: int) -> Links:
        """Return the related pairs among the candidates of a shard."""
        pairs = self.candidates[shard * SHARD_BATCHES * BATCH :][: SHARD_BATCHES * BATCH]
        return join_links(self._relate(pairs[start : start + BATCH]) for start in range(0, len(pairs), BATCH))

    def _relate(self, pairs: Pairs) -> Links:
        left, right = unpack_pairs(pairs)
        measures = self.comparer.measure_sets(left, right)
        related = np.flatnonzero(may_relate(measures, self.texts))
        left, right = left[related], right[related]
        relation, score = relate(self.comparer.complete(measures.take(related), left, right), self.texts)
        return Links(left, right, relation, score).take(relation > Relation.UNRELATED)


ShardRunner = Callable[[Searcher], Iterator[Links]]
"""Has every shard of a searcher gone through, by workers of its own, and gives their links in the order of shards."""


def run_in_threads(searcher: Searcher) -> Iterator[Links]:
    """Go through all shards in threads of this process."""
    return map_in_threads(searcher.links, range(searcher.shards))


def find_links(
    features: Features,
    comparer: Comparer,
    *,
    split: Ints | None = None,
    texts: int | None = None,
    run_shards: ShardRunner = run_in_threads,
    progress: Progress = SILENT,
) -> Links:
    """Return all related pairs.

    - `texts`: see `Searcher`; without it, it is the number of rows
    - `split`: with it only pairs whose rows have different numbers in it are compared
    """
    searcher = Searcher(find_candidates(features, split, progress), comparer, texts or len(features))
    return join_links(track(run_shards(searcher), progress, "comparing", searcher.shards))
