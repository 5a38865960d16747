"""What becomes of each row: its cluster, whether it stays, which row stays for it, and what ties it to another row.

    row  prompt                          gold   cluster  relation       keep   kept_for
    0    Tom has 3 cars and buys 4 ...   7      0        exact          yes
    1    tom has 3 cars and buys 4 ...   7.0    0        exact          no     0
    2    After Tom bought 4 cars ...     7      0        same_problem   no     0
    3    Tom, who owned three cars ...   8      0        same_problem   yes            conflict: golds 7 and 8
    4    Tom has 5 cars and buys 9 ...   14     4        same_template  yes

Of a cluster the best row stays (`Corpus.quality`), and where golds differ the best row of each gold: which of them is
right is a question to a reviewer. A row without gold goes in favour of one with gold. Golds written differently are
compared by the math verifier before they count as different.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from truegold.pipeline.dedup.near.clusters import Clusters, cluster
from truegold.pipeline.dedup.near.corpus import NO_GOLD, Corpus
from truegold.pipeline.dedup.near.growing import run_starts
from truegold.pipeline.dedup.near.links import Links
from truegold.pipeline.dedup.near.relation import Relation
from truegold.pipeline.dedup.near.sparse import Floats, Ints
from truegold.verifiers import equivalent

MAX_GOLDS = 8
"""Different golds of one cluster that the verifier compares; a cluster with more is a conflict in any case."""


@dataclass(frozen=True)
class Duplicates:
    """Arrays over rows. All rows that they name are row numbers from 0.

    cluster: the best row of the row's cluster. kept_for: the row that stays for this one (itself where it stays).
    relation: `Relation`, to row `other` (-1 for none). score: log-odds of the same problem, NaN for exact copies and
    for rows that are tied to none. template: the row at the centre of its template, -1 where it has no other instance.
    capped: rows that went because their template has enough instances. conflict: in a cluster with several golds.
    """

    cluster: Ints
    kept_for: Ints
    relation: npt.NDArray[np.uint8]
    other: Ints
    score: Floats
    template: Ints
    capped: npt.NDArray[np.bool_]
    conflict: npt.NDArray[np.bool_]

    @property
    def keep(self) -> npt.NDArray[np.bool_]:
        """Which rows stay."""
        stay: npt.NDArray[np.bool_] = self.kept_for == np.arange(len(self.kept_for))
        return stay


def find_duplicates(corpus: Corpus, links: Links, template_cap: int | None = None) -> Duplicates:
    """Cluster the rows of a corpus by the links of its texts. template_cap: clusters of one template that stay."""
    rows = len(corpus.text)
    order = np.lexsort((np.arange(rows), -corpus.quality))  # rows from the best to the worst
    place = np.empty(rows, dtype=np.int64)
    place[order] = np.arange(rows)
    # An empty prompt is like nothing else: each gets a number of its own.
    empty = corpus.text < 0
    text = np.where(empty, len(corpus.features) + np.cumsum(empty) - 1, corpus.text)
    best = np.zeros(len(corpus.features) + int(empty.sum()), dtype=np.int64)  # each text's best row
    best[text[order[::-1]]] = order[::-1]
    clusters = cluster(links, place[best])
    cluster_row = best[clusters.founder[text]]
    gold = _main_golds(_unified_golds(corpus, cluster_row), cluster_row, order)
    kept_for, conflict = _kept(cluster_row, gold, place)
    relation, other, score = _relations(clusters, text, best, kept_for, cluster_row)
    template = best[clusters.template[text]]
    capped = _beyond_cap(template, cluster_row, place, template_cap)
    kept_for = np.where(capped, _best_of(template, place)[template], kept_for)
    founders = np.flatnonzero(cluster_row == np.arange(rows))
    alone = np.bincount(template[founders], minlength=rows) < 2
    return Duplicates(
        cluster_row, kept_for, relation, other, score, np.where(alone[template], -1, template), capped, conflict
    )


def _unified_golds(corpus: Corpus, cluster_row: Ints) -> Ints:
    """The golds' numbers, with one number for those of a cluster that the verifier finds to be the same."""
    gold = corpus.gold
    given = np.flatnonzero(gold != NO_GOLD)
    order = given[np.lexsort((given, gold[given], cluster_row[given]))]
    new = run_starts(cluster_row[order]) | run_starts(gold[order])
    first = order[new]  # a row for each gold of each cluster
    starts = np.flatnonzero(run_starts(cluster_row[first]))
    counts = np.diff(starts, append=len(first))
    alias: dict[tuple[int, int], int] = {}
    for start, count in zip(starts[counts > 1].tolist(), counts[counts > 1].tolist(), strict=True):
        if count <= MAX_GOLDS:
            _unify(corpus, np.sort(first[start : start + count]).tolist(), alias, int(cluster_row[first[start]]))
    if not alias:
        return gold
    gold = gold.copy()
    for row in given[np.isin(cluster_row[given], [key[0] for key in alias])].tolist():
        gold[row] = alias.get((int(cluster_row[row]), int(gold[row])), gold[row])
    return gold


def _unify(corpus: Corpus, rows: list[int], alias: dict[tuple[int, int], int], cluster_row: int) -> None:
    different: list[int] = []
    for row in rows:
        text = corpus.golds[row]
        for known in different:
            known_text = corpus.golds[known]
            if equivalent(text, gold=known_text).score == 1.0 or equivalent(known_text, gold=text).score == 1.0:
                alias[cluster_row, int(corpus.gold[row])] = int(corpus.gold[known])
                break
        else:
            different.append(row)


def _main_golds(gold: Ints, cluster_row: Ints, order: Ints) -> Ints:
    """The golds, with that of the cluster's best row that has one for rows that have none."""
    main = np.full(len(gold), NO_GOLD, dtype=np.int64)
    given = order[gold[order] != NO_GOLD][::-1]
    main[cluster_row[given]] = gold[given]
    return np.where(gold == NO_GOLD, main[cluster_row], gold)


def _kept(cluster_row: Ints, gold: Ints, place: Ints) -> tuple[Ints, npt.NDArray[np.bool_]]:
    """For each row the best one of its cluster and gold, and whether its cluster has several golds."""
    order = np.lexsort((place, gold, cluster_row))
    new_cluster = run_starts(cluster_row[order])
    new_gold = new_cluster | run_starts(gold[order])
    heads = np.flatnonzero(new_gold)
    kept_for = np.empty(len(gold), dtype=np.int64)
    kept_for[order] = np.repeat(order[heads], np.diff(heads, append=len(order)))
    conflict = np.zeros(len(gold), dtype=bool)
    conflict[order] = (np.bincount(np.cumsum(new_cluster)[heads])[np.cumsum(new_cluster)]) > 1 if len(order) else False
    return kept_for, conflict


def _relations(
    clusters: Clusters, text: Ints, best: Ints, kept_for: Ints, cluster_row: Ints
) -> tuple[npt.NDArray[np.uint8], Ints, Floats]:
    """Of each row its relation, to which row, and the score: to the row kept for it, or else the closest there is."""
    rows = np.arange(len(text))
    relation = clusters.relation[text]
    other = np.where(clusters.other[text] >= 0, best[clusters.other[text]], -1)
    score = np.where(relation == Relation.UNRELATED, np.nan, clusters.score[text]).astype(np.float32)
    # What a row goes for, or the cluster's best one for a row that stays because its gold differs.
    target = np.where(kept_for != rows, kept_for, cluster_row)
    inside = target != rows
    copy = inside & (text[target] == text)
    # A founder that has copies is tied to one of them.
    copies = np.flatnonzero(copy)[::-1]
    copied = target[copies]
    other[inside] = target[inside]
    relation[copy], relation[copied], other[copied] = Relation.EXACT, Relation.EXACT, copies
    relation[inside & ~copy] = Relation.SAME_PROBLEM
    score[relation == Relation.EXACT] = np.nan
    return relation, other, score


def _best_of(group: Ints, place: Ints) -> Ints:
    """At each group's number its best row."""
    result = np.full(len(place), -1, dtype=np.int64)
    order = np.argsort(-place, kind="stable")
    result[group[order]] = order
    return result


def _beyond_cap(template: Ints, cluster_row: Ints, place: Ints, cap: int | None) -> npt.NDArray[np.bool_]:
    """Rows of the clusters that come after the first `cap` of their template."""
    beyond = np.zeros(len(place), dtype=bool)
    if cap is None or not len(place):
        return beyond
    founders = np.flatnonzero(cluster_row == np.arange(len(place)))
    founders = founders[np.lexsort((place[founders], template[founders]))]
    heads = np.flatnonzero(run_starts(template[founders]))
    within = np.arange(len(founders)) - np.repeat(heads, np.diff(heads, append=len(founders)))
    beyond[founders[within >= cap]] = True
    marks: npt.NDArray[np.bool_] = beyond[cluster_row]
    return marks
