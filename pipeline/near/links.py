"""Finds every related pair in a set of problems: candidates by shared keys, measured, related; shard by shard.

`find_links` gives the pairs (left < right) that are the same problem, one template, or edits of each other. What is
held is the arrays of features and the links, 13 bytes each; candidates lie in temporary files. Shards are independent
of each other and are worked on in threads: numpy, scipy and polars let go of Python's lock. The result does not depend
on how many there are.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from truegold.pipeline.near.arrays import Floats, Ints, run_starts
from truegold.pipeline.near.candidates import Candidates, write_candidates
from truegold.pipeline.near.compare import BATCH, Comparer
from truegold.pipeline.near.features import Features
from truegold.pipeline.near.relation import Agreement, Relation, may_relate, relate
from truegold.pipeline.near.workers import map_in_threads
from truegold.pipeline.running.progress import NullProgress, Progress, track

SILENT = NullProgress()


@dataclass(frozen=True)
class Links:
    """Related pairs, sorted by left and right row; arrays of one entry for each pair.

    Until they are confirmed (`confirm`), those of "same problem" only may be.
    """

    left: Ints
    """The row of each pair that comes first."""
    right: Ints
    """The other row."""
    relation: npt.NDArray[np.uint8]
    """What the two are to each other, as a `Relation`."""
    score: Floats
    """The log-odds of the same problem."""
    agreement: Agreement
    """Whether their golds agree (above 0), differ (below 0) or say nothing (0, as before they are confirmed)."""

    def __len__(self) -> int:
        return len(self.left)

    def having(self, relation: Relation) -> Links:
        """Return the links of one relation."""
        return self.take(self.relation == relation)

    def take(self, mask: npt.NDArray[np.bool_]) -> Links:
        """Return the links that are marked."""
        return Links(self.left[mask], self.right[mask], self.relation[mask], self.score[mask], self.agreement[mask])


@dataclass(frozen=True)
class ShardLinks:
    """Related pairs of one shard, as arrays of one entry for each pair."""

    codes: Ints
    """The pairs, sorted, as left << 32 | right."""
    relation: npt.NDArray[np.uint8]
    """What the two are to each other, as a `Relation`."""
    score: Floats
    """The log-odds of the same problem."""


@dataclass(frozen=True)
class Searcher:
    """What a worker needs to find the links of a shard: some 300 bytes a text, and the files of the candidates."""

    candidates: Candidates
    comparer: Comparer
    texts: int
    """How many texts the pairs come from; see `relate`."""

    def links(self, shard: int) -> ShardLinks:
        """Return the related pairs among the candidates of a shard."""
        codes = self.candidates.pairs(shard)
        return join_shards(self._relate(codes[start : start + BATCH]) for start in range(0, len(codes), BATCH))

    def _relate(self, codes: Ints) -> ShardLinks:
        left, right = codes >> 32, codes & 0xFFFFFFFF
        measures = self.comparer.measure_sets(left, right)
        related = np.flatnonzero(may_relate(measures, self.texts))
        measures = self.comparer.complete(measures.take(related), left[related], right[related])
        relation, score = relate(measures, self.texts)
        kept = relation > Relation.UNRELATED
        return ShardLinks(codes[related[kept]], relation[kept], score[kept])


def join_shards(parts: Iterable[ShardLinks]) -> ShardLinks:
    """Join the links of several shards, sorted, each pair once."""
    shards = list(parts)
    codes = np.concatenate([np.zeros(0, np.int64), *(shard.codes for shard in shards)])
    relation = np.concatenate([np.zeros(0, np.uint8), *(shard.relation for shard in shards)])
    score = np.concatenate([np.zeros(0, np.float32), *(shard.score for shard in shards)])
    order = np.argsort(codes, kind="stable")
    order = order[run_starts(codes[order])]
    return ShardLinks(codes[order], relation[order], score[order])


ShardRunner = Callable[[Searcher], Iterator[ShardLinks]]
"""Has every shard of a searcher gone through, by whatever workers and in any order."""


def run_in_threads(searcher: Searcher) -> Iterator[ShardLinks]:
    """Go through all shards in threads of this process."""
    return map_in_threads(searcher.links, range(searcher.candidates.shards))


def find_links(
    features: Features,
    comparer: Comparer,
    *,
    split: Ints | None = None,
    texts: int | None = None,
    scratch: Path | None = None,
    run_shards: ShardRunner = run_in_threads,
    progress: Progress = SILENT,
) -> Links:
    """Return all related pairs.

    - `texts`: see `Searcher`; without it, it is the number of rows
    - `split`: with it only pairs whose rows have different numbers in it are compared
    - `scratch`: a folder for temporary files, some 400 bytes a row, which the workers of `run_shards` have to see
    """
    with tempfile.TemporaryDirectory(dir=scratch) as folder:
        candidates = write_candidates(features, Path(folder), split, progress)
        searcher = Searcher(candidates, comparer, texts or len(features))
        links = join_shards(track(run_shards(searcher), progress, "comparing", candidates.shards))
    agreement = np.zeros(len(links.codes), dtype=np.int8)
    return Links(links.codes >> 32, links.codes & 0xFFFFFFFF, links.relation, links.score, agreement)
