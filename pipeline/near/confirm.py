"""Reads the texts of pairs that may be the same problem, and says which are; conflicts have a cut of their own.

    golds        a pair is the same problem from                     what becomes of it
    equal        a probability of `Cuts.drop`, with SAME_GOLD more   one row goes
    unknown      `Cuts.drop`                                         one row goes
    different    `Cuts.conflict`                                     both stay, flagged for review

Golds that differ say nothing about the texts, since a wrong label is what is looked for. They are a reason to ask more
of the texts than of pairs without gold where a corpus is full of siblings: in Chinese school books, one story is asked
about in many ways (CHINESE_CONFLICT).

Reading takes a tenth of a millisecond a text, so that it is done in processes where there is much of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from truegold.pipeline.near.arrays import Ints
from truegold.pipeline.near.compare import Comparer
from truegold.pipeline.near.corpus import Corpus, text_ranks
from truegold.pipeline.near.reading import DEFAULT_CUTS, Cuts, GroupReading, PairGroup, read_group
from truegold.pipeline.near.related_pairs import Links
from truegold.pipeline.near.relation import Relation, relate_others, same_story_score
from truegold.pipeline.running.row_workers import map_rows

GROUP_PAIRS = 2_000
"""Pairs of a group; a set of pairs that are all tied to each other may be larger."""


def confirm_links(
    links: Links, corpus: Corpus, comparer: Comparer, texts: int | None = None, cuts: Cuts = DEFAULT_CUTS
) -> Links:
    """Return the links after a close reading: those of "same problem" that do not stand it are what else they are.

    `texts` is how many texts the pairs come from (`relation.relate`); without it, all of the corpus.
    """
    return _confirm(links, _Groups(links, corpus, comparer, texts or len(corpus.features), None), cuts)


def confirm_star_links(links: Links, corpus: Corpus, comparer: Comparer, cuts: Cuts = DEFAULT_CUTS) -> Links:
    """Return the same links but for those between two texts that both go: no cluster depends on them (`clusters`)."""
    return _confirm(links, _Groups(links, corpus, comparer, len(corpus.features), text_ranks(corpus)), cuts)


def _confirm(links: Links, groups: _Groups, cuts: Cuts) -> Links:
    relation, score = links.relation.copy(), links.score.copy()
    pairs = zip(groups.indices, groups.make(), strict=True)
    readings = map_rows((group for _, group in pairs), len(groups.indices), partial(_reader, cuts), chunk=1)
    for part, (group, reading) in zip(groups.indices, readings, strict=True):
        relation[part] = np.where(reading.is_same, Relation.SAME_PROBLEM, relate_others(group.measures))
        relation[part[~reading.is_read]] = Relation.UNRELATED
        score[part] = reading.score
    return Links(links.left, links.right, relation, score).take(relation > Relation.UNRELATED)


def _reader(cuts: Cuts) -> Callable[[PairGroup], GroupReading]:
    return partial(read_group, cuts=cuts)


class _Groups:
    """The pairs that may be the same problem, in groups that share no text."""

    def __init__(self, links: Links, corpus: Corpus, comparer: Comparer, texts: int, rank: Ints | None) -> None:
        """Cut the pairs into groups; `rank` has the place of each text, where only stars are read."""
        self._links, self._corpus, self._comparer = links, corpus, comparer
        self._texts, self._rank = texts, rank
        doubtful = np.flatnonzero(links.relation == Relation.SAME_PROBLEM)
        tied = _number_components(links.left[doubtful], links.right[doubtful], len(corpus.features))
        order = np.argsort(tied, kind="stable")
        ends = np.flatnonzero(np.diff(tied[order], append=-1)) + 1
        # A group ends with the first component that goes beyond each multiple of GROUP_PAIRS.
        last = np.flatnonzero(np.diff(ends // GROUP_PAIRS, prepend=0))
        self.indices = [part for part in np.split(doubtful[order], ends[last]) if len(part)]
        """The links of each group."""

    def make(self) -> Iterator[PairGroup]:
        """Yield the groups."""
        for part in self.indices:
            left, right = self._links.left[part], self._links.right[part]
            measures = self._comparer.measure(left, right)
            numbers, positions = np.unique(np.concatenate([left, right]), return_inverse=True)
            rows = self._corpus.gold_row[numbers].tolist()
            yield PairGroup(
                self._corpus.texts.read(numbers.tolist()),
                [self._corpus.golds[row] if row >= 0 else None for row in rows],
                self._corpus.text_gold[numbers],
                None if self._rank is None else self._rank[numbers],
                positions[: len(part)],
                positions[len(part) :],
                measures,
                same_story_score(measures, self._texts),
                self._comparer.count_decisive_words(left, right),
            )


def _number_components(left: Ints, right: Ints, texts: int) -> Ints:
    """Return a number for each pair, the same for pairs that are tied by common texts."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    graph = coo_array((np.ones(len(left), dtype=np.int8), (left, right)), shape=(texts, texts))
    _, component = connected_components(graph, directed=False)
    numbers: Ints = component[left].astype(np.int64)
    return numbers
