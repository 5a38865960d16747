"""Clusters the rows of a corpus, and decides which rows stay and which row is kept in place of each dropped row.

    row  prompt                          gold   cluster  relation       keep   kept_for
    0    Tom has 3 cars and buys 4 ...   7      0        exact          yes
    1    tom has 3 cars and buys 4 ...   7.0    0        exact          no     0
    2    After Tom bought 4 cars ...     7      0        same_problem   no     0
    3    Tom, who owned three cars ...   8      0        same_problem   yes            conflict: golds 7 and 8
    4    Tom has 5 cars and buys 9 ...   14     4        same_template  yes

In each cluster, the best row stays (`Corpus.quality`). If golds differ (`golds`), the best row of each gold stays, and
a reviewer decides which gold is right. A row without gold is dropped in favour of a row with gold.

Clusters have no chains: every dropped text is directly linked to the text that stays for it.

    texts, best first   links of "same problem"   clusters      kept
    a, b, c             a-b, b-c                  a+b, c        a, c     c is linked to b, but not to a

Texts are processed from best to worst. Each text without a cluster founds one, and takes in the texts that it is
directly linked to. So problems are joined only on direct evidence.

Clusters whose problems differ only in their quantities form a template. Templates are built in the same way, from links
of "same template". The cluster with the most links comes first, because a large template is compared through a few of
its instances (`related_pairs`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from truegold.pipeline.near.arrays import Floats, Ints, Marks, places_in, repeat_over_runs, run_starts
from truegold.pipeline.near.corpus import Corpus, rank_rows
from truegold.pipeline.near.differences import count_changed_words
from truegold.pipeline.near.golds import best_of_each_gold, fill_missing_golds, unify_golds
from truegold.pipeline.near.measures import Relation
from truegold.pipeline.near.problem_text import read_text
from truegold.pipeline.near.related_pairs import Links
from truegold.pipeline.near.squashed import squash

BATCH = 100_000
"""The number of links that are converted to Python integers at a time."""


@dataclass(frozen=True)
class Duplicates:
    """The result of a deduplication: arrays over rows, which refer to rows by number, from 0."""

    cluster: Ints
    """The best row of the row's cluster."""
    kept_for: Ints
    """The row that is kept in place of this row. A kept row has its own number."""
    relation: npt.NDArray[np.uint8]
    """The `Relation` to the row `other`."""
    other: Ints
    """The most closely related row, -1 for none."""
    score: Floats
    """The log-odds that `other` is the same problem. NaN for exact copies, and for rows without a related row."""
    template: Ints
    """The row at the centre of the row's template, -1 if the template has no other instance."""
    capped: Marks
    """The rows that were dropped because their template has enough instances."""
    conflict: Marks
    """The rows in a cluster with different golds."""
    copies_conflict: Marks
    """The rows with a copy that has the same text and a different gold."""

    @property
    def keep(self) -> Marks:
        """The rows that stay."""
        stay: Marks = self.kept_for == np.arange(len(self.kept_for))
        return stay


def find_duplicates(corpus: Corpus, links: Links, template_cap: int | None = None) -> Duplicates:
    """Cluster the rows of a corpus by the links of its texts, and keep at most `template_cap` clusters a template."""
    rows = len(corpus.text)
    best_first, rank = rank_rows(corpus)
    # Empty prompts are never duplicates. Each counts as a distinct text.
    empty = corpus.text < 0
    text = np.where(empty, len(corpus.features) + np.cumsum(empty) - 1, corpus.text)
    best_row = np.zeros(len(corpus.features) + int(empty.sum()), dtype=np.int64)
    best_row[text[best_first[::-1]]] = best_first[::-1]
    clusters = cluster_texts(links, rank[best_row])
    cluster_row = best_row[clusters.founder[text]]
    unified = unify_golds(corpus.gold, corpus.golds, cluster_row)
    gold = fill_missing_golds(unified.gold, cluster_row, best_first)
    kept_for = best_of_each_gold(cluster_row, gold, rank)
    conflict = np.isin(cluster_row, unified.contradicted)
    copies_conflict = _mark_copies_in_conflict(corpus, text, cluster_row, conflict)
    relation, other, score = _tie_rows(clusters, text, best_row, kept_for, cluster_row)
    template = best_row[clusters.template[text]]
    capped = _mark_beyond_cap(template, cluster_row, rank, template_cap)
    kept_for = np.where(capped, _best_of_each_template(template, best_first)[template], kept_for)
    founders = np.flatnonzero(cluster_row == np.arange(rows))
    is_single = np.bincount(template[founders], minlength=rows) < 2
    template = np.where(is_single[template], -1, template)
    return Duplicates(
        cluster=cluster_row,
        kept_for=kept_for,
        relation=relation,
        other=other,
        score=score,
        template=template,
        capped=capped,
        conflict=conflict,
        copies_conflict=copies_conflict,
    )


def _mark_copies_in_conflict(corpus: Corpus, text: Ints, cluster_row: Ints, conflict: Marks) -> Marks:
    """Mark the rows with a copy that has another gold. A copy has the same text, or its text in another layout or
    order.

    Nearly all rewordings with different golds are different problems that read alike, so rewordings do not count.
    """
    rows = np.flatnonzero(conflict & (corpus.text >= 0))
    numbers = np.unique(np.concatenate([text[rows], text[cluster_row[rows]]])).tolist()
    texts = corpus.texts.read(numbers)
    read = dict(zip(numbers, map(read_text, texts), strict=True))
    bare = dict(zip(numbers, squash(pl.Series(texts, dtype=pl.String)).split(b"\0"), strict=False))
    copied = text.copy()
    for row, founder in zip(rows.tolist(), text[cluster_row[rows]].tolist(), strict=True):
        here = int(text[row])
        if bare[here] == bare[founder] or count_changed_words(read[here], read[founder]) == 0:
            copied[row] = founder
    contradicted = unify_golds(corpus.gold[rows], corpus.golds.read(rows.tolist()), copied[rows]).contradicted
    marks = np.zeros(len(text), dtype=bool)
    marks[rows] = np.isin(copied[rows], contradicted)
    return marks


def _tie_rows(
    clusters: Clusters, text: Ints, best_row: Ints, kept_for: Ints, cluster_row: Ints
) -> tuple[npt.NDArray[np.uint8], Ints, Floats]:
    """Return for each row its relation, the row that it is related to, and the score of the pair. The related row of a
    dropped row is the row that is kept in its place. A kept row has the most closely related row."""
    rows = np.arange(len(text))
    relation = clusters.relation[text]
    other = np.where(clusters.other[text] >= 0, best_row[clusters.other[text]], -1)
    score = np.where(relation == Relation.UNRELATED, np.nan, clusters.score[text]).astype(np.float32)
    # For a dropped row, the row that is kept. For a row that stays because its gold differs, the best row of the
    # cluster.
    target = np.where(kept_for != rows, kept_for, cluster_row)
    inside = target != rows
    copy = inside & (text[target] == text)
    # A founder with copies is related to one of them.
    copies = np.flatnonzero(copy)[::-1]
    copied = target[copies]
    other[inside] = target[inside]
    relation[copy], relation[copied], other[copied] = Relation.EXACT, Relation.EXACT, copies
    relation[inside & ~copy] = Relation.SAME_PROBLEM
    score[relation == Relation.EXACT] = np.nan
    return relation, other, score


def _best_of_each_template(template: Ints, best_first: Ints) -> Ints:
    """Return an array with the best row of template t at index t, and -1 at indices that are not templates."""
    best = np.full(len(best_first), -1, dtype=np.int64)
    best[template[best_first[::-1]]] = best_first[::-1]
    return best


def _mark_beyond_cap(template: Ints, cluster_row: Ints, rank: Ints, cap: int | None) -> Marks:
    """Mark the rows of the clusters that come after the first `cap` clusters of their template."""
    beyond = np.zeros(len(rank), dtype=bool)
    if cap is None or not len(rank):
        return beyond
    founders = np.flatnonzero(cluster_row == np.arange(len(rank)))
    founders = founders[np.lexsort((rank[founders], template[founders]))]
    heads = np.flatnonzero(run_starts(template[founders]))
    within = np.arange(len(founders)) - repeat_over_runs(heads, heads, len(founders))
    beyond[founders[within >= cap]] = True
    return beyond[cluster_row]


@dataclass(frozen=True)
class Clusters:
    """The cluster of each text, and the most closely related text."""

    founder: Ints
    """The founder of the text's cluster; a founder has its own number."""
    relation: npt.NDArray[np.uint8]
    """The relation to the text `other`."""
    other: Ints
    """The founder of the cluster. For a founder, its most closely related text, -1 for none."""
    score: Floats
    """The score of the link to `other`."""
    template: Ints
    """The founder at the centre of the template. A cluster without a template has its own founder."""


def cluster_texts(links: Links, rank: Ints) -> Clusters:
    """Cluster the texts 0 .. len(rank) - 1. `rank` has the place of each text, 0 for the best."""
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
        # The last assignment to an index wins. The links are reversed, so the first of equally close links is used.
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
    """Return a sort key for each link: by relation, then by score. A closer link has a higher key."""
    # The bits of positive floats, read as integers, have the order of the floats.
    bits = links.score.view(np.int32).astype(np.int64)
    closeness: Ints = (links.relation.astype(np.int64) << 32) + np.where(bits >= 0, bits, -(bits & 0x7FFFFFFF))
    return closeness


def _build_stars(left: Ints, right: Ints, rank: Ints) -> tuple[Ints, Ints]:
    """Return for each text its founder, and the index of the link to the founder (-1 for founders)."""
    # Direct each link from its better to its worse text.
    forward = rank[left] < rank[right]
    better, worse = np.where(forward, left, right), np.where(forward, right, left)
    taken = np.zeros(len(rank), dtype=bool)
    # A text without a link to a better text founds a cluster. The other links are processed one by one.
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
    # A text that was taken in belongs to the best of the founders that it is linked to.
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
    centre, _ = _build_stars(left, right, places_in(np.lexsort((rank, -degree))))
    return centre[founder]
