"""Reads groups of pairs, of which no text occurs in two: what each pair is, as far as a cluster depends on it.

Groups are independent of each other, so that each process takes some. Within a group each text is read once.

    links           founders   read                          not read
    a-b, a-c, b-c   a          a-b, a-c: both are the same   b-c: both go for a, whatever they are to each other
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from truegold.pipeline.near.arrays import Floats, Ints, Marks
from truegold.pipeline.near.compare import Measures
from truegold.pipeline.near.copies import NO_GOLD
from truegold.pipeline.near.golds import compare_golds
from truegold.pipeline.near.reading.differences import compare_texts, count_changed_words
from truegold.pipeline.near.reading.score import EXCUSED_WORDS, OTHER_SCORE, score_copies, score_stories
from truegold.pipeline.near.reading.text import ReadText, read_text
from truegold.pipeline.near.relation import Agreement, is_near_copy
from truegold.pipeline.text.persons import exchange_names

SAME_GOLD = np.float32(1.0)
"""What equal golds add to the log-odds: they agree by accident in about one pair of siblings of five."""
CHINESE_CONFLICT = np.float32(-1.6)
"""What different golds add to the log-odds of Chinese texts."""
BATCH = 2_000
"""Pairs whose differences are scored at a time."""


@dataclass(frozen=True)
class Cuts:
    """How likely two texts must be the same problem, as probabilities."""

    drop: float = 0.5
    """For golds that are equal or not known."""
    conflict: float = 0.71
    """For golds that differ."""

    def least_scores(self, agreement: Agreement) -> Floats:
        """Return the log-odds that each pair needs."""
        drop, conflict = (np.float32(np.log(cut / (1 - cut))) for cut in (self.drop, self.conflict))
        return np.where(agreement < 0, conflict, drop)


DEFAULT_CUTS = Cuts()


@dataclass(frozen=True)
class PairGroup:
    """Pairs that may be the same problem, as arrays of one entry for each pair, and their texts, by number."""

    texts: list[str]
    golds: list[str | None]
    """A gold of each text, as it is written."""
    gold: Ints
    """The key of each text's gold (`Corpus.text_gold`)."""
    rank: Ints | None
    """The place of each text, the best first; without it all pairs are read."""
    left: Ints
    right: Ints
    measures: Measures
    story: Floats
    """The score of each pair as a rewording (`relation.same_story_score`)."""
    decisive: Floats
    """How many words that no other may stand for differ (`Comparer.count_decisive_words`)."""


@dataclass(frozen=True)
class GroupReading:
    """What was read of the pairs of a group, in their order."""

    is_read: Marks
    is_same: Marks
    score: Floats
    """The log-odds of the same problem."""


def read_group(group: PairGroup, cuts: Cuts) -> GroupReading:
    """Read the pairs of a group."""
    reader = _GroupReader(group, cuts)
    if group.rank is None:
        reader.read(np.arange(len(group.left)))
    else:
        _read_stars(group, group.rank, reader)
    return GroupReading(reader.is_read, reader.is_same, reader.score)


def _read_stars(group: PairGroup, rank: Ints, reader: _GroupReader) -> None:
    """Read the pairs of which at least one text founds a cluster (`clusters`)."""
    forward = rank[group.left] < rank[group.right]
    better, worse = np.where(forward, group.left, group.right), np.where(forward, group.right, group.left)
    taken = np.zeros(len(rank), dtype=bool)
    is_open = np.arange(len(better))
    while len(is_open):
        # A text founds a cluster as soon as no better text can take it any more; only founders take others in.
        may_be_taken = np.zeros(len(rank), dtype=bool)
        may_be_taken[worse[is_open]] = True
        ready = is_open[~may_be_taken[better[is_open]]]
        reader.read(ready)
        taken[worse[ready[reader.is_same[ready]]]] = True
        is_open = is_open[may_be_taken[better[is_open]] & ~taken[better[is_open]]]
    reader.read(np.flatnonzero(~reader.is_read & ~taken[worse]))


class _GroupReader:
    """Reads some of the pairs of a group at a time."""

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
            self.is_same[part] = self.score[part] >= self._cuts.least_scores(agreement)

    def _exchange_names(self, pairs: Ints) -> dict[int, tuple[ReadText, ReadText]]:
        """Return the texts of the pairs that are near copies but for the names of persons, with the same names."""
        exchanged = {}
        for pair in pairs.tolist():
            right = int(self._group.right[pair])
            text = exchange_names(self._group.texts[int(self._group.left[pair])], self._group.texts[right])
            if text is not None:
                exchanged[pair] = (read_text(text), self._text(right))
        return exchanged

    def _read_copies(self, pairs: Ints) -> None:
        # Near copies in which other words differ than those that a copy may exchange need no reading.
        most_words = np.where(self.agreement[pairs] > 0, EXCUSED_WORDS, 0)
        pairs = pairs[self._group.decisive[pairs] <= most_words]
        self._score_copies(pairs, [self._pair(pair) for pair in pairs.tolist()])

    def _score_copies(self, pairs: Ints, texts: list[tuple[ReadText, ReadText]]) -> None:
        changed = np.array([count_changed_words(*both) for both in texts], dtype=np.int64)
        self.score[pairs] = score_copies(changed, self.agreement[pairs] > 0)
        self._weigh_golds(pairs)

    def _read_stories(self, pairs: Ints) -> None:
        differences = [compare_texts(*self._pair(pair)) for pair in pairs.tolist()]
        measures, story = self._group.measures.take(pairs), self._group.story[pairs]
        self.score[pairs] = score_stories(differences, measures, story, self.agreement[pairs] < 0)
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
