"""From related pairs to clusters: every row that goes is linked to the row that stays for it, without chains.

    best     links of "same problem"    cluster   kept
    a (1st)  a-b, b-c                   a: a, b   a      c is linked to b and not to a: it stays, as a cluster of its own
    c

Rows are gone through from the best to the worst; each that is in no cluster yet founds one and takes in the rows it is
directly linked to. Merging along chains instead would join problems that nobody said are the same.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from truegold.pipeline.near.sparse import Floats, Ints
from truegold.pipeline.near.links import Links
from truegold.pipeline.near.relation import Relation


@dataclass(frozen=True)
class Clusters:
    """For each row: the founder of its cluster (itself where it is one), and the closest row of another cluster.

    relation: to the founder for the other rows of a cluster; for a founder the closest to any row outside of its cluster
    (SAME_TEMPLATE, EDITED_VARIANT or UNRELATED). sibling: the row of that relation, -1 for none. score: of that link.
    family: the smallest row that is tied to this one by any chain of links.
    """

    founder: Ints
    relation: npt.NDArray[np.uint8]
    sibling: Ints
    score: Floats
    family: Ints


def cluster(links: Links, rank: Ints) -> Clusters:
    """Cluster rows 0 .. len(rank) - 1. rank: the place of each row among all, the best first; distinct numbers."""
    rows = len(rank)
    founder, score = _stars(links.of(Relation.SAME_PROBLEM), rank)
    relation = np.where(founder == np.arange(rows), Relation.UNRELATED, Relation.SAME_PROBLEM).astype(np.uint8)
    sibling = np.full(rows, -1, dtype=np.int64)
    apart = links.relation < Relation.SAME_PROBLEM
    # Ascending by closeness, so that the last assignment to a row is its closest sibling; ties by row.
    order = np.lexsort((-links.right, -links.left, links.score, links.relation))
    order = order[apart[order]]
    for one, other in ((links.left, links.right), (links.right, links.left)):
        picked = order[founder[one[order]] == one[order]]
        better = links.relation[picked] > relation[one[picked]]
        picked = picked[better]
        relation[one[picked]] = links.relation[picked]
        sibling[one[picked]] = other[picked]
        score[one[picked]] = links.score[picked]
    return Clusters(founder, relation, sibling, score, _families(links, rows))


def _stars(same: Links, rank: Ints) -> tuple[Ints, Floats]:
    rows = len(rank)
    # Each link from its better to its worse row, in the order in which rows are gone through.
    forward = rank[same.left] < rank[same.right]
    better = np.where(forward, same.left, same.right)
    worse = np.where(forward, same.right, same.left)
    order = np.lexsort((rank[worse], rank[better]))
    founder = list(range(rows))
    taken = bytearray(rows)
    by = np.full(rows, -1, dtype=np.int64)
    for one, other, place in zip(better[order].tolist(), worse[order].tolist(), order.tolist(), strict=True):
        if not taken[one] and not taken[other]:
            founder[other] = one
            by[other] = place
            taken[other] = 1
    score = np.zeros(rows, dtype=np.float32)
    score[by >= 0] = same.score[by[by >= 0]]
    return np.array(founder, dtype=np.int64), score


def _families(links: Links, rows: int) -> Ints:
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    graph = coo_array((np.ones(len(links), dtype=bool), (links.left, links.right)), shape=(rows, rows))
    _, label = connected_components(graph, directed=False)
    first = np.full(label.max(initial=-1) + 1, rows, dtype=np.int64)
    np.minimum.at(first, label, np.arange(rows))
    family: Ints = first[label]
    return family
