"""Decides whether two texts are the same problem, by a close reading of their differences.

    two texts                                                    their difference
    "the area of the triangle" / "the height of the triangle"    another term is asked for
    "Find $x$" / "Find $y$"                                      another symbol is asked for
    "distinguishable balls" / "indistinguishable balls"          two terms of one family

    golds        minimum probability of the same problem      result for such a pair
    equal        `Cuts.drop`, after SAME_GOLD is added        one row is dropped
    unknown      `Cuts.drop`                                  one row is dropped
    different    `Cuts.conflict`                              both rows stay, flagged for review

A pair with different golds needs a higher probability. Chinese school books, for example, ask many questions about one
story (CHINESE_CONFLICT). But different golds do not rule a pair out, because one of the golds may be wrong.

A pair is decided by these rules:

0. Texts that differ only in mathematical signs are different problems, such as `⌊x⌋` and `⌈x⌉` (`squashed`). Different
   questions about one passage or table are different problems, too (`asked`).
1. Near copies share most of their words. Two near copies are the same problem if they have the same sentences with the
   same clauses. Sentences may change their order, except for steps. With equal golds, one word may be replaced by
   another.
2. Other texts get a logistic score: the sum of `columns` times WEIGHTS, or times CONFLICT_WEIGHTS if golds differ.
   Terms weigh more in short exercises than in stories: the column `exercise` falls from 1 for a text without words
   to 0 for a text of STORY_WORDS words.

The weights were fitted by logistic regression (L2, signs fixed) on the development half of five sets of pairs
(`docs/explain/duplicates.md`). The weight of `directions_differ` was set by hand.

Reading a text takes a tenth of a millisecond. So only some pairs are read: those with the founder (the best text) of a
cluster.

    links           founders   read                          not read
    a-b, a-c, b-c   a          a-b, a-c: both are the same   b-c: b and c are both dropped in favour of a
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
import numpy.typing as npt

from truegold.pipeline.near.arrays import Floats, Ints, Marks, pack_pairs
from truegold.pipeline.near.asked import are_opposed, ask_otherwise
from truegold.pipeline.near.corpus import Corpus, text_ranks
from truegold.pipeline.near.differences import (
    SIBLING_WORDS,
    Differences,
    are_siblings,
    compare_texts,
    count_changed_words,
)
from truegold.pipeline.near.dimensions import dimensions_differ, read_dimensions, units_differ
from truegold.pipeline.near.gold_keys import NO_GOLD
from truegold.pipeline.near.golds import compare_golds
from truegold.pipeline.near.measures import (
    FITTED,
    Agreement,
    Comparer,
    Measures,
    Relation,
    is_near_copy,
    relate_others,
    same_story_score,
)
from truegold.pipeline.near.problem_text import ReadText, read_text
from truegold.pipeline.near.related_pairs import Links, join_links
from truegold.pipeline.near.squashed import LayoutCopies, differ_in_signs
from truegold.pipeline.running.workers import map_in_workers
from truegold.pipeline.text.person_names import exchange_names
from truegold.verifiers.sandbox.child_process import usable_cores

GROUP_PAIRS = 2_000
"""The approximate number of pairs that are read as a group. Pairs with a common text stay in one group."""
FEWEST_GROUPS = 8
"""The minimum number of groups for which worker processes are started. One process is faster for fewer groups."""
SAME_GOLD = np.float32(1.0)
"""The log-odds that equal golds add. Golds may agree by accident: one in five pairs of problems that differ only in
quantities have equal golds."""
CHINESE_CONFLICT = np.float32(-1.6)
"""The log-odds that different golds add for Chinese texts."""
BATCH = 2_000
"""The number of pairs that are scored at a time."""
STORY_WORDS = 20
"""The minimum number of words of a story."""
COPY_SCORE = np.float32(4)
"""The log-odds of near copies that are one problem."""
OTHER_SCORE = np.float32(-6)
"""The log-odds of pairs that are certainly different problems, such as near copies with different sentences."""
EXCUSED_WORDS = 2
"""The maximum number of different words between near copies with equal golds: one word and its replacement."""

MOST_COUNTED: dict[str, int] = FITTED["most_counted"]
"""The highest value of each count in `Differences`. Higher counts are reduced to it."""
WEIGHTS: dict[str, float] = FITTED["differences"]
CONFLICT_WEIGHTS = WEIGHTS | FITTED["conflict"]
"""The weights for pairs with different golds. Nearly all such pairs are different problems."""


@dataclass(frozen=True)
class Cuts:
    """Thresholds: the minimum probability at which two texts count as the same problem."""

    drop: float = 0.5
    """The threshold for golds that are equal or unknown."""
    conflict: float = 0.71
    """The threshold for golds that differ."""

    def least_scores(self, agreement: Agreement) -> Floats:
        """Return the log-odds that each pair needs."""
        drop, conflict = (np.float32(np.log(cut / (1 - cut))) for cut in (self.drop, self.conflict))
        return np.where(agreement < 0, conflict, drop)


DEFAULT_CUTS = Cuts()


def confirm_links(
    links: Links, corpus: Corpus, comparer: Comparer, texts: int | None = None, cuts: Cuts = DEFAULT_CUTS
) -> Links:
    """Return the links after a close reading. Links of "same problem" that the reading refutes get another relation.

    `texts` is the number of texts that the pairs come from (`measures.relate`), by default the whole corpus.
    """
    return _confirm(links, corpus, comparer, texts or len(corpus.features), None, cuts)


def confirm_star_links(links: Links, corpus: Corpus, comparer: Comparer, cuts: Cuts = DEFAULT_CUTS) -> Links:
    """Return the links after a close reading, as `confirm_links` does, without links between two dropped texts.

    No cluster depends on such links (`duplicates`), so they are not read.
    """
    return _confirm(links, corpus, comparer, len(corpus.features), text_ranks(corpus), cuts)


def add_copies(links: Links, copies: LayoutCopies, corpus: Corpus) -> Links:
    """Return the links, with links added between copies in another layout (`squashed`), except for programs.

    Texts that differ only in the requested form of the answer are copies, too, unless their golds are known to differ.
    """
    features, gold = corpus.features, corpus.text_gold
    left, right = copies.left, copies.right
    one_answer = (gold[left] == gold[right]) | (gold[left] == NO_GOLD) | (gold[right] == NO_GOLD)
    chosen = (copies.whole | one_answer) & ~(features.code[left] | features.code[right])
    left, right = left[chosen], right[chosen]
    same = np.full(len(left), Relation.SAME_PROBLEM, dtype=np.uint8)
    joined = join_links([Links(left, right, same, np.full(len(left), COPY_SCORE, dtype=np.float32)), links])
    # If a pair occurs twice, the first link is used.
    return joined.take(np.unique(pack_pairs(joined.left, joined.right), return_index=True)[1])


def _confirm(links: Links, corpus: Corpus, comparer: Comparer, texts: int, rank: Ints | None, cuts: Cuts) -> Links:
    """Read the pairs that may be the same problem. `rank` has the place of each text; with it, only pairs of founders
    are read."""
    relation, score = links.relation.copy(), links.score.copy()
    parts = _group_pairs(links, len(corpus.features))
    groups = (_make_group(links, part, corpus, comparer, texts, rank) for part in parts)
    read = partial(read_group, cuts=cuts)
    readings: Iterable[tuple[npt.NDArray[np.uint8], Floats]] = map(read, groups)
    if len(parts) >= FEWEST_GROUPS and (workers := usable_cores()) > 1:
        readings = (reading for _, reading in map_in_workers(read, groups, workers))
    for part, reading in zip(parts, readings, strict=True):
        relation[part], score[part] = reading
    return Links(links.left, links.right, relation, score).take(relation > Relation.UNRELATED)


def _group_pairs(links: Links, texts: int) -> list[Ints]:
    """Return the positions of the pairs that may be the same problem, in groups that share no text."""
    doubtful = np.flatnonzero(links.relation == Relation.SAME_PROBLEM)
    tied = _number_components(links.left[doubtful], links.right[doubtful], texts)
    order = np.argsort(tied, kind="stable")
    ends = np.flatnonzero(np.diff(tied[order], append=-1)) + 1
    # Components are added to a group until it has about GROUP_PAIRS pairs.
    last = np.flatnonzero(np.diff(ends // GROUP_PAIRS, prepend=0))
    return [part for part in np.split(doubtful[order], ends[last]) if len(part)]


def _make_group(
    links: Links, part: Ints, corpus: Corpus, comparer: Comparer, texts: int, rank: Ints | None
) -> PairGroup:
    left, right = links.left[part], links.right[part]
    measures = comparer.measure(left, right)
    numbers, positions = np.unique(np.concatenate([left, right]), return_inverse=True)
    rows = corpus.gold_row[numbers]
    golds = iter(corpus.golds.read(rows[rows >= 0].tolist()))
    return PairGroup(
        texts=corpus.texts.read(numbers.tolist()),
        golds=[next(golds) if row >= 0 else None for row in rows],
        gold=corpus.text_gold[numbers],
        rank=None if rank is None else rank[numbers],
        left=positions[: len(part)],
        right=positions[len(part) :],
        measures=measures,
        story=same_story_score(measures, texts),
        decisive=comparer.count_decisive_words(left, right),
    )


def _number_components(left: Ints, right: Ints, texts: int) -> Ints:
    """Return for each pair the number of its connected component: pairs with a common text are connected."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    graph = coo_array((np.ones(len(left), dtype=np.int8), (left, right)), shape=(texts, texts))
    _, component = connected_components(graph, directed=False)
    numbers: Ints = component[left].astype(np.int64)
    return numbers


@dataclass(frozen=True)
class PairGroup:
    """Pairs that may be the same problem, as arrays with an entry for each pair, and their texts by number."""

    texts: list[str]
    golds: list[str | None]
    """One gold of each text, as it is written."""
    gold: Ints
    """The key of each text's gold (`Corpus.text_gold`)."""
    rank: Ints | None
    """The place of each text, the best first. If None, all pairs are read."""
    left: Ints
    right: Ints
    measures: Measures
    story: Floats
    """The score of each pair as a rewording (`measures.same_story_score`)."""
    decisive: Floats
    """The number of words that differ and have no synonym in the other text (`Comparer.count_decisive_words`)."""


def read_group(group: PairGroup, cuts: Cuts) -> tuple[npt.NDArray[np.uint8], Floats]:
    """Return the `Relation` and the score of each pair of a group. Pairs that need no reading are UNRELATED."""
    reader = _GroupReader(group, cuts)
    if group.rank is None:
        reader.read(np.arange(len(group.left)))
    else:
        _read_stars(group, group.rank, reader)
    relation = np.where(reader.is_same, np.uint8(Relation.SAME_PROBLEM), relate_others(group.measures))
    return np.where(reader.is_read, relation, np.uint8(Relation.UNRELATED)), reader.score


def _read_stars(group: PairGroup, rank: Ints, reader: _GroupReader) -> None:
    """Read the pairs in which at least one text founds a cluster (`duplicates`)."""
    forward = rank[group.left] < rank[group.right]
    better, worse = np.where(forward, group.left, group.right), np.where(forward, group.right, group.left)
    taken = np.zeros(len(rank), dtype=bool)
    is_open = np.arange(len(better))
    while len(is_open):
        # A text may found a cluster if no better text can take the text in. Only founders take texts in.
        may_be_taken = np.zeros(len(rank), dtype=bool)
        may_be_taken[worse[is_open]] = True
        ready = is_open[~may_be_taken[better[is_open]]]
        reader.read(ready)
        taken[worse[ready[reader.is_same[ready]]]] = True
        is_open = is_open[may_be_taken[better[is_open]] & ~taken[better[is_open]]]
    reader.read(np.flatnonzero(~reader.is_read & ~taken[worse]))


class _GroupReader:
    """Reads the pairs of a group, some at a time."""

    def __init__(self, group: PairGroup, cuts: Cuts) -> None:
        self._group, self._cuts = group, cuts
        pairs = len(group.left)
        self.is_read, self.is_same = np.zeros(pairs, dtype=bool), np.zeros(pairs, dtype=bool)
        self.score = np.full(pairs, OTHER_SCORE, dtype=np.float32)
        self.agreement = np.zeros(pairs, dtype=np.int8)
        self._texts: list[ReadText | None] = [None] * len(group.texts)

    @cached_property
    def _is_near(self) -> Marks:
        return is_near_copy(self._group.measures)

    def read(self, pairs: Ints) -> None:
        """Read these pairs."""
        for start in range(0, len(pairs), BATCH):
            part = pairs[start : start + BATCH]
            agreement = self._compare_golds(part)
            self.agreement[part] = agreement
            exchanged = self._exchange_names(part)
            others = np.array([pair for pair in part.tolist() if pair not in exchanged], dtype=np.int64)
            self._score_copies(np.array(list(exchanged), dtype=np.int64), list(exchanged.values()))
            self._read_copies(others[self._is_near[others]])
            self._read_stories(others[~self._is_near[others]])
            self.is_read[part] = True
            self._tell_apart(part[self.score[part] >= self._cuts.least_scores(agreement)])
            self.is_same[part] = self.score[part] >= self._cuts.least_scores(agreement)

    def _tell_apart(self, pairs: Ints) -> None:
        """Give OTHER_SCORE to pairs that differ only in signs, or ask different questions about one context."""
        left, right = (
            [self._group.texts[text] for text in texts[pairs].tolist()]
            for texts in (self._group.left, self._group.right)
        )
        self.score[pairs[differ_in_signs(left, right)]] = OTHER_SCORE
        otherwise = np.array([ask_otherwise(*texts) for texts in zip(left, right, strict=True)], dtype=bool)
        self.score[pairs[otherwise]] = OTHER_SCORE

    def _exchange_names(self, pairs: Ints) -> dict[int, tuple[ReadText, ReadText]]:
        """Return the pairs that are near copies except for persons' names, with the names made equal."""
        exchanged = {}
        for pair in pairs.tolist():
            right = int(self._group.right[pair])
            text = exchange_names(self._group.texts[int(self._group.left[pair])], self._group.texts[right])
            if text is not None:
                exchanged[pair] = (read_text(text), self._text(right))
        return exchanged

    def _read_copies(self, pairs: Ints) -> None:
        # Near copies with more different words than this need no reading.
        most_words = np.where(self.agreement[pairs] > 0, EXCUSED_WORDS, 0)
        pairs = pairs[self._group.decisive[pairs] <= most_words]
        self._score_copies(pairs, [self._pair(pair) for pair in pairs.tolist()])

    def _score_copies(self, pairs: Ints, texts: list[tuple[ReadText, ReadText]]) -> None:
        changed = np.array([count_changed_words(*both) for both in texts], dtype=np.int64)
        self.score[pairs] = score_copies(changed, self.agreement[pairs] > 0)
        self._weigh_golds(pairs)

    def _read_stories(self, pairs: Ints) -> None:
        texts = [self._pair(pair) for pair in pairs.tolist()]
        differences = [compare_texts(*both) for both in texts]
        measures, story = self._group.measures.take(pairs), self._group.story[pairs]
        score = score_stories(differences, measures, story, self.agreement[pairs] < 0)
        for index in np.flatnonzero(score > -SAME_GOLD).tolist():
            left, right = texts[index]
            if (
                are_siblings(left, right, differences[index])
                or are_opposed(left.text, right.text)
                or dimensions_differ(read_dimensions(left.text), read_dimensions(right.text))
                or (differences[index]["words_exchanged"] >= SIBLING_WORDS and units_differ(left.text, right.text))
            ):
                score[index] = OTHER_SCORE
        self.score[pairs] = score
        self._weigh_golds(pairs)

    def _weigh_golds(self, pairs: Ints) -> None:
        agreement = self.agreement[pairs]
        self.score[pairs[agreement > 0]] += SAME_GOLD
        differing = pairs[agreement < 0]
        in_chinese = [self._text(text).is_chinese for text in self._group.left[differing].tolist()]
        self.score[differing[np.array(in_chinese, dtype=bool)]] += CHINESE_CONFLICT

    def _pair(self, pair: int) -> tuple[ReadText, ReadText]:
        return self._text(int(self._group.left[pair])), self._text(int(self._group.right[pair]))

    def _text(self, text: int) -> ReadText:
        reading = self._texts[text]
        if reading is None:
            reading = self._texts[text] = read_text(self._group.texts[text])
        return reading

    def _compare_golds(self, pairs: Ints) -> Agreement:
        left, right = self._group.left[pairs], self._group.right[pairs]
        left_gold, right_gold = self._group.gold[left], self._group.gold[right]
        has_both = (left_gold != NO_GOLD) & (right_gold != NO_GOLD)
        agreement: Agreement = (has_both & (left_gold == right_gold)).astype(np.int8)
        for index in np.flatnonzero(has_both & (left_gold != right_gold)).tolist():
            golds = (self._group.golds[int(texts[index])] or "" for texts in (left, right))
            agreement[index] = compare_golds(*golds)
        return agreement


def columns(differences: Sequence[Differences], measures: Measures, story: Floats) -> dict[str, Floats]:
    """Return the columns [pairs] of the score, one for each weight. `story` is `measures.same_story_score`."""
    counts: dict[str, Floats] = {}
    for name, most in MOST_COUNTED.items():
        count = np.fromiter((each[name] for each in differences), np.float32, len(differences))
        counts[name] = np.minimum(count, np.float32(most))
    in_story: Floats = counts["words"] / np.float32(STORY_WORDS)
    exercise: Floats = np.float32(1) - in_story
    counts |= {"story": np.clip(story, -4, 8), "wordy": in_story, "order": measures.order}
    counts["telling"] = np.minimum(measures.telling, 3)
    in_exercise = {f"{name}*exercise": column * exercise for name, column in counts.items()}
    return {name: (counts | in_exercise)[name] for name in WEIGHTS if name != "bias"}


def score_stories(differences: Sequence[Differences], measures: Measures, story: Floats, golds_differ: Marks) -> Floats:
    """Return the log-odds of pairs that are not near copies. `golds_differ` marks pairs that use CONFLICT_WEIGHTS."""
    score = np.where(golds_differ, np.float32(CONFLICT_WEIGHTS["bias"]), np.float32(WEIGHTS["bias"]))
    for name, column in columns(differences, measures, story).items():
        score += np.where(golds_differ, np.float32(CONFLICT_WEIGHTS[name]), np.float32(WEIGHTS[name])) * column
    return score


def score_copies(changed_words: Ints, equal_golds: Marks) -> Floats:
    """Return the log-odds of near copies, by their numbers of changed words (`count_changed_words`) and golds."""
    excused = equal_golds & (changed_words >= 0) & (changed_words <= EXCUSED_WORDS)
    return np.where((changed_words == 0) | excused, COPY_SCORE, OTHER_SCORE)
