"""Finds every related pair in a set of problems: candidates by shared keys, measured, related; shard by shard.

`find_links(features, gold)` gives the pairs (left < right) that are the same problem, one template, or edits of each
other. What is held is the arrays of features and the links found, about 13 bytes each.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from truegold.pipeline.near.compare import Comparer
from truegold.pipeline.near.features import Features
from truegold.pipeline.near.sparse import Floats, Ints
from truegold.pipeline.near.keys import WINDOW, candidate_pairs, shard_count
from truegold.pipeline.near.relation import Relation, relate


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


def gold_agreement(gold: Ints, left: Ints, right: Ints) -> npt.NDArray[np.int8]:
    """1 for equal golds, -1 for different ones, 0 where one is missing (a negative number)."""
    one, other = gold[left], gold[right]
    return np.where((one < 0) | (other < 0), 0, np.where(one == other, 1, -1)).astype(np.int8)


def find_links(
    features: Features,
    gold: Ints,
    *,
    split: Ints | None = None,
    window: int = WINDOW,
    tell: Callable[[int, int], None] = lambda done, total: None,
) -> Links:
    """All related pairs. gold: a number for each row's gold answer, equal for equal golds, -1 for none.

    split: where given, only pairs whose rows have different numbers here are compared.
    """
    comparer = Comparer(features)
    codes = np.zeros(0, dtype=np.int64)
    relations = np.zeros(0, dtype=np.uint8)
    scores = np.zeros(0, dtype=np.float32)
    shards = shard_count(len(features))
    for shard, (left, right) in enumerate(candidate_pairs(features, split=split, window=window)):
        code = (left << 32) | right
        if len(codes):  # known already
            place = np.minimum(np.searchsorted(codes, code), len(codes) - 1)
            new = codes[place] != code
            left, right, code = left[new], right[new], code[new]
        found = [_related(comparer, gold, part) for part in _parts(code)]
        more, relation, score = (np.concatenate(column) for column in zip(*found, strict=True)) if found else ([], [], [])
        codes = np.concatenate([codes, np.asarray(more, np.int64)])
        order = np.argsort(codes, kind="stable")
        codes = codes[order]
        relations = np.concatenate([relations, np.asarray(relation, np.uint8)])[order]
        scores = np.concatenate([scores, np.asarray(score, np.float32)])[order]
        tell(shard + 1, shards)
    return Links(codes >> 32, codes & 0xFFFFFFFF, relations, scores)


PART = 250_000


def _parts(code: Ints) -> list[Ints]:
    return [code[start : start + PART] for start in range(0, len(code), PART)]


def _related(
    comparer: Comparer, gold: Ints, code: Ints
) -> tuple[Ints, npt.NDArray[np.uint8], Floats]:
    left, right = code >> 32, code & 0xFFFFFFFF
    relation, score = relate(comparer.measure(left, right), gold_agreement(gold, left, right))
    kept = relation > Relation.UNRELATED
    return code[kept], relation[kept], score[kept]
