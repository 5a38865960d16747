"""Finds every related pair in a set of problems: candidates by shared keys, measured, related; shard by shard.

`find_links` gives the pairs (left < right) that are the same problem, one template, or edits of each other. What is
held is the arrays of features and the links found, 13 bytes each; candidates lie in temporary files. Shards are
independent of each other and are worked on in threads: numpy, scipy and polars let go of Python's lock. The result does
not depend on how many there are.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from truegold.pipeline.dedup.near.candidates import Candidates, write_candidates
from truegold.pipeline.dedup.near.compare import BATCH, Comparer
from truegold.pipeline.dedup.near.features import Features
from truegold.pipeline.dedup.near.growing import run_starts
from truegold.pipeline.dedup.near.relation import Relation, may_relate, relate
from truegold.pipeline.dedup.near.sparse import Floats, Ints
from truegold.pipeline.dedup.near.workers import in_order_of
from truegold.pipeline.running.progress import NullProgress, Progress, track

SILENT = NullProgress()


@dataclass(frozen=True)
class Links:
    """Related pairs, sorted by left and right row; `score` is the log-odds of the same problem."""

    left: Ints
    right: Ints
    relation: npt.NDArray[np.uint8]
    score: Floats

    def __len__(self) -> int:
        return len(self.left)

    def of(self, *relations: Relation) -> Links:
        """The links of some relations only."""
        which = np.isin(self.relation, relations)
        return Links(self.left[which], self.right[which], self.relation[which], self.score[which])

    def confident(self, probability: float) -> Links:
        """Without the links of "same problem" that are less likely than this."""
        sure = self.score >= np.log(probability / (1 - probability))
        which = (self.relation != Relation.SAME_PROBLEM) | sure
        return Links(self.left[which], self.right[which], self.relation[which], self.score[which])


@dataclass(frozen=True)
class Found:
    """Related pairs of one shard: sorted codes (left << 32 | right), relations and scores alongside."""

    codes: Ints
    relation: npt.NDArray[np.uint8]
    score: Floats


def gold_agreement(gold: Ints, left: Ints, right: Ints) -> npt.NDArray[np.int8]:
    """1 for equal golds, -1 for different ones, 0 where one is missing (a negative number)."""
    one, other = gold[left], gold[right]
    return np.where((one < 0) | (other < 0), 0, np.where(one == other, 1, -1)).astype(np.int8)


@dataclass(frozen=True)
class Searcher:
    """What a worker needs to find the links of a shard: some 300 bytes a text, and the files of the candidates.

    gold: a number for each row's gold answer, equal for equal golds, -1 for none. texts: see `relate`.
    """

    candidates: Candidates
    comparer: Comparer
    gold: Ints
    texts: int

    def links(self, shard: int) -> Found:
        """The related pairs among the candidates of a shard."""
        codes = self.candidates.pairs(shard)
        found = [self._related(codes[start : start + BATCH]) for start in range(0, len(codes), BATCH)]
        return join_found(found)

    def _related(self, codes: Ints) -> Found:
        left, right = codes >> 32, codes & 0xFFFFFFFF
        agreement = gold_agreement(self.gold, left, right)
        measures = self.comparer.measure_sets(left, right)
        which = np.flatnonzero(may_relate(measures, agreement, self.texts))
        measures = self.comparer.complete(measures.take(which), left[which], right[which])
        relation, score = relate(measures, agreement[which], self.texts)
        kept = relation > Relation.UNRELATED
        return Found(codes[which[kept]], relation[kept], score[kept])


def join_found(parts: Iterable[Found]) -> Found:
    """Several as one, sorted, each pair once."""
    kept = list(parts)
    codes = np.concatenate([np.zeros(0, np.int64), *(part.codes for part in kept)])
    relation = np.concatenate([np.zeros(0, np.uint8), *(part.relation for part in kept)])
    score = np.concatenate([np.zeros(0, np.float32), *(part.score for part in kept)])
    order = np.argsort(codes, kind="stable")
    order = order[run_starts(codes[order])]
    return Found(codes[order], relation[order], score[order])


Spread = Callable[[Searcher], Iterator[Found]]
"""Has every shard of a searcher gone through, by whatever workers and in any order."""


def in_threads(searcher: Searcher) -> Iterator[Found]:
    """All shards, in threads of this process."""
    return in_order_of(range(searcher.candidates.shards), searcher.links)


def find_links(
    features: Features,
    comparer: Comparer,
    gold: Ints,
    *,
    split: Ints | None = None,
    texts: int | None = None,
    scratch: Path | None = None,
    spread: Spread = in_threads,
    progress: Progress = SILENT,
) -> Links:
    """All related pairs. split: where given, only pairs whose rows have different numbers here are compared.

    gold, texts: see `Searcher`; texts: their number where not given. scratch: a folder for temporary files, some 400
    bytes a row; the workers of `spread` have to see it.
    """
    with tempfile.TemporaryDirectory(dir=scratch) as folder:
        candidates = write_candidates(features, Path(folder), split, progress)
        searcher = Searcher(candidates, comparer, gold, texts or len(features))
        found = join_found(track(spread(searcher), progress, "comparing", candidates.shards))
    return Links(found.codes >> 32, found.codes & 0xFFFFFFFF, found.relation, found.score)
