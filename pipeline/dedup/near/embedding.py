"""Pairs that an encoder finds close together: more candidates for the same close reading, which decides as ever.

What shares no two rare words (other names and other things at once) is no candidate otherwise. An encoder is asked for
nothing else: it puts "even" and "odd" close together, and a problem beside its renumbered instance.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from truegold.pipeline.dedup.near.arrays import Floats, Ints
from truegold.pipeline.dedup.near.compare import Comparer
from truegold.pipeline.dedup.near.corpus import Corpus
from truegold.pipeline.dedup.near.links import Links, ShardLinks, join_shards
from truegold.pipeline.dedup.near.relation import Relation, is_near_copy, relate

NEIGHBOURS = 3
"""Texts of the data that are compared with each item."""
Encoder = Callable[[Sequence[str]], Floats]
"""Makes a vector of length 1 of each text."""


def add_proposed_links(
    links: Links, corpus: Corpus, comparer: Comparer, encoder: Encoder, first_items: int, texts: int
) -> Links:
    """Return the links with those between each of the first texts and its nearest neighbours among the others.

    Proposals may be the same problem unless their quantities were replaced; `confirm_links` reads them like others.
    `texts` is as for `relate`.
    """
    vectors = encoder(corpus.texts.read(range(len(corpus.features))))
    left, right = _nearest(vectors[:first_items], vectors[first_items:])
    right = right + first_items
    measures = comparer.measure(left, right)
    relation, score = relate(measures, texts)
    numbers_agree = np.minimum(measures.only_left, measures.only_right) == 0
    readable = numbers_agree & ~is_near_copy(measures) & (measures.code == 0)
    relation = np.where(readable, np.uint8(Relation.SAME_PROBLEM), relation)
    kept = relation > Relation.UNRELATED
    proposed = ShardLinks((left[kept] << 32) | right[kept], relation[kept], score[kept])
    known = ShardLinks((links.left << 32) | links.right, links.relation, links.score)
    joined = join_shards([proposed, known])
    agreement = np.zeros(len(joined.codes), dtype=np.int8)
    return Links(joined.codes >> 32, joined.codes & 0xFFFFFFFF, joined.relation, joined.score, agreement)


def _nearest(queries: Floats, vectors: Floats) -> tuple[Ints, Ints]:
    """Return pairs of each query with its NEIGHBOURS closest vectors; time grows with the product of both numbers."""
    count = min(NEIGHBOURS, len(vectors))
    parts: list[npt.NDArray[np.int64]] = [np.zeros((0, count), np.int64)]
    for start in range(0, len(queries), 1000):
        similarity = queries[start : start + 1000] @ vectors.T
        parts.append(np.argpartition(-similarity, count - 1, axis=1)[:, :count] if count else parts[0])
    closest = np.concatenate(parts)
    return np.repeat(np.arange(len(closest)), count), closest.ravel()
