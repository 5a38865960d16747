"""From related pairs to clusters: every text that goes is linked to the text that stays for it, without chains.

    best     links of "same problem"    cluster   kept
    a (1st)  a-b, b-c                   a: a, b   a      c is linked to b, not to a: it stays, in a cluster of its own
    c

Texts are gone through from the best to the worst; each that is in no cluster yet founds one and takes in the texts
that it is directly linked to. Merging along chains instead would join problems that nobody said are the same. Templates
are built likewise from clusters and links of "same template", from the cluster with the most links down, because a
large template is compared through a few of its instances (`keys`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from truegold.pipeline.dedup.near.links import Links
from truegold.pipeline.dedup.near.relation import Relation
from truegold.pipeline.dedup.near.sparse import Floats, Ints


@dataclass(frozen=True)
class Clusters:
    """For each text: the founder of its cluster (itself where it is one), and the text that it is closest to.

    relation: to the founder, for the other texts of a cluster; for a founder its closest relation to any text.
    other: the text of that relation, -1 for none. score: of that link. template: the founder at the centre of its
    cluster's template, its own founder for a template of one.
    """

    founder: Ints
    relation: npt.NDArray[np.uint8]
    other: Ints
    score: Floats
    template: Ints


def cluster(links: Links, rank: Ints) -> Clusters:
    """Cluster texts 0 .. len(rank) - 1. rank: the place of each text among all, the best first; distinct numbers."""
    texts = len(rank)
    same = links.of(Relation.SAME_PROBLEM)
    founder, by = _stars(same.left, same.right, rank)
    relation = np.zeros(texts, dtype=np.uint8)
    other = np.full(texts, -1, dtype=np.int64)
    score = np.zeros(texts, dtype=np.float32)
    closeness = _closeness(links)
    for one, another in ((links.left, links.right), (links.right, links.left)):
        mine = np.flatnonzero((founder[one] == one) & (links.relation > relation[one]))
        closest = np.full(texts, np.iinfo(np.int64).min)
        np.maximum.at(closest, one[mine], closeness[mine])
        mine = mine[closeness[mine] == closest[one[mine]]][::-1]  # of equal ones the first is assigned last
        relation[one[mine]], other[one[mine]], score[one[mine]] = (
            links.relation[mine],
            another[mine],
            links.score[mine],
        )
    taken = np.flatnonzero(by >= 0)
    relation[taken], other[taken], score[taken] = Relation.SAME_PROBLEM, founder[taken], same.score[by[taken]]
    return Clusters(founder, relation, other, score, _templates(links, founder, rank))


def _closeness(links: Links) -> Ints:
    """A number for each link, higher for a closer one: by relation, then by score."""
    bits = links.score.view(np.int32).astype(np.int64)  # of positive scores they sort as these do
    closeness: Ints = (links.relation.astype(np.int64) << 32) + np.where(bits >= 0, bits, -(bits & 0x7FFFFFFF))
    return closeness


def _stars(left: Ints, right: Ints, rank: Ints) -> tuple[Ints, Ints]:
    """For each text its founder, and the link by which it came into the cluster (-1 for founders)."""
    # Each link from its better to its worse text.
    forward = rank[left] < rank[right]
    better, worse = np.where(forward, left, right), np.where(forward, right, left)
    taken = np.zeros(len(rank), dtype=bool)
    # Texts without a better one found clusters whatever comes; what they do not settle is gone through one by one.
    taken[worse] = True
    first = ~taken
    taken[:] = False
    taken[worse[first[better]]] = True
    unsettled = np.flatnonzero(~(first[better] | taken[better] | taken[worse]))
    unsettled = unsettled[np.lexsort((rank[worse[unsettled]], rank[better[unsettled]]))]
    marks = bytearray(taken)
    for start in range(0, len(unsettled), 100_000):  # as Python numbers only so many at a time
        part = unsettled[start : start + 100_000]
        for one, another in zip(better[part].tolist(), worse[part].tolist(), strict=True):
            if not marks[one]:
                marks[another] = 1
    taken = np.frombuffer(marks, dtype=bool)
    # A text that is taken belongs to the best of the founders that it is linked to.
    links = np.flatnonzero(~taken[better])[::-1]
    best = np.full(len(rank), np.iinfo(np.int64).max)
    np.minimum.at(best, worse[links], rank[better[links]])
    links = links[rank[better[links]] == best[worse[links]]]
    founder = np.arange(len(rank))
    by = np.full(len(rank), -1, dtype=np.int64)
    founder[worse[links]], by[worse[links]] = better[links], links
    return founder, by


def _templates(links: Links, founder: Ints, rank: Ints) -> Ints:
    template = links.of(Relation.SAME_TEMPLATE)
    left, right = founder[template.left], founder[template.right]
    apart = left != right
    left, right = left[apart], right[apart]
    if not len(left):
        return founder
    degree = np.bincount(left, minlength=len(rank)) + np.bincount(right, minlength=len(rank))
    by_degree = np.empty(len(rank), dtype=np.int64)
    by_degree[np.lexsort((rank, -degree))] = np.arange(len(rank))
    centre, _ = _stars(left, right, by_degree)
    templates: Ints = centre[founder]
    return templates
