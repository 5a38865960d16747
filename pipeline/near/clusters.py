"""From related pairs to clusters: every text that goes is linked to the text that stays for it, without chains.

    best     links of "same problem"    cluster   kept
    a (1st)  a-b, b-c                   a: a, b   a      c is linked to b, not to a: it stays, in a cluster of its own
    c

Texts are gone through from the best to the worst; each that is in no cluster yet founds one and takes in the texts
that it is directly linked to. Merging along chains instead would join problems of which nothing says that they are the
same. Templates are built likewise from clusters and links of "same template", from the cluster with the most links
down, because a large template is compared through a few of its instances (`keys`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from truegold.pipeline.near.arrays import Floats, Ints
from truegold.pipeline.near.related_pairs import Links
from truegold.pipeline.near.relation import Relation

BATCH = 100_000
"""Links turned into Python's numbers at a time."""


@dataclass(frozen=True)
class Clusters:
    """The cluster of each text, and the text that it is closest to."""

    founder: Ints
    """The founder of the text's cluster, itself where it is one."""
    relation: npt.NDArray[np.uint8]
    """The relation to the founder; of a founder its closest relation to any text."""
    other: Ints
    """The text that the relation is to, -1 for none."""
    score: Floats
    """The score of the link to that text."""
    template: Ints
    """The founder at the centre of its cluster's template, its own founder for a template of one."""


def cluster_texts(links: Links, rank: Ints) -> Clusters:
    """Cluster texts 0 .. len(rank) - 1. `rank` has distinct numbers, the lowest for the best text."""
    texts = len(rank)
    same = links.having(Relation.SAME_PROBLEM)
    founder, joined_by = _build_stars(same.left, same.right, rank)
    relation = np.zeros(texts, dtype=np.uint8)
    other = np.full(texts, -1, dtype=np.int64)
    score = np.zeros(texts, dtype=np.float32)
    closeness = _closeness(links)
    for near, far in ((links.left, links.right), (links.right, links.left)):
        closer = np.flatnonzero((founder[near] == near) & (links.relation > relation[near]))
        closest = np.full(texts, np.iinfo(np.int64).min)
        np.maximum.at(closest, near[closer], closeness[closer])
        # Of several links to a text the last assignment counts, so equally close links are reversed: the first wins.
        closer = closer[closeness[closer] == closest[near[closer]]][::-1]
        relation[near[closer]] = links.relation[closer]
        other[near[closer]] = far[closer]
        score[near[closer]] = links.score[closer]
    joined = np.flatnonzero(joined_by >= 0)
    relation[joined], other[joined], score[joined] = (
        Relation.SAME_PROBLEM,
        founder[joined],
        same.score[joined_by[joined]],
    )
    return Clusters(founder, relation, other, score, _find_templates(links, founder, rank))


def _closeness(links: Links) -> Ints:
    """Return a number for each link, higher for a closer one: by relation, then by score."""
    # The bits of positive floats, read as integers, sort as the floats do.
    bits = links.score.view(np.int32).astype(np.int64)
    closeness: Ints = (links.relation.astype(np.int64) << 32) + np.where(bits >= 0, bits, -(bits & 0x7FFFFFFF))
    return closeness


def _build_stars(left: Ints, right: Ints, rank: Ints) -> tuple[Ints, Ints]:
    """Return for each text its founder, and the link by which it came into the cluster (-1 for founders)."""
    # Each link is from its better to its worse text.
    forward = rank[left] < rank[right]
    better, worse = np.where(forward, left, right), np.where(forward, right, left)
    taken = np.zeros(len(rank), dtype=bool)
    # Texts without a better one found clusters whatever comes; what they do not settle is gone through link by link.
    taken[worse] = True
    first = ~taken
    taken[:] = False
    taken[worse[first[better]]] = True
    unsettled = np.flatnonzero(~(first[better] | taken[better] | taken[worse]))
    unsettled = unsettled[np.lexsort((rank[worse[unsettled]], rank[better[unsettled]]))]
    marks = bytearray(taken)
    for start in range(0, len(unsettled), BATCH):
        part = unsettled[start : start + BATCH]
        for better_text, worse_text in zip(better[part].tolist(), worse[part].tolist(), strict=True):
            if not marks[better_text]:
                marks[worse_text] = 1
    taken = np.frombuffer(marks, dtype=bool)
    # A text that is taken belongs to the best of the founders that it is linked to.
    links = np.flatnonzero(~taken[better])[::-1]
    best = np.full(len(rank), np.iinfo(np.int64).max)
    np.minimum.at(best, worse[links], rank[better[links]])
    links = links[rank[better[links]] == best[worse[links]]]
    founder = np.arange(len(rank))
    joined_by = np.full(len(rank), -1, dtype=np.int64)
    founder[worse[links]], joined_by[worse[links]] = better[links], links
    return founder, joined_by


def _find_templates(links: Links, founder: Ints, rank: Ints) -> Ints:
    same_template = links.having(Relation.SAME_TEMPLATE)
    left, right = founder[same_template.left], founder[same_template.right]
    differ = left != right
    left, right = left[differ], right[differ]
    if not len(left):
        return founder
    degree = np.bincount(left, minlength=len(rank)) + np.bincount(right, minlength=len(rank))
    by_degree = np.empty(len(rank), dtype=np.int64)
    by_degree[np.lexsort((rank, -degree))] = np.arange(len(rank))
    centre, _ = _build_stars(left, right, by_degree)
    templates: Ints = centre[founder]
    return templates
