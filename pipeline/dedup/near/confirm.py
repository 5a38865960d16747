"""Reads the texts of pairs that may be the same problem, and says which are; conflicts have a cut of their own.

    golds        a pair is the same problem from             what becomes of it
    equal        log-odds of DROP_CUT, with SAME_GOLD more   one row goes
    unknown      DROP_CUT                                    one row goes
    different    CONFLICT_CUT                                both stay, flagged for review

Golds that differ say nothing about the texts, since a wrong label is what is looked for. They are a reason to ask more
of the texts than of pairs without gold where a corpus is full of siblings: in Chinese school books, one story is asked
about in many ways (CHINESE_CONFLICT).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from truegold.pipeline.dedup.near.arrays import Floats, Ints
from truegold.pipeline.dedup.near.compare import Comparer, Measures
from truegold.pipeline.dedup.near.copies import NO_GOLD
from truegold.pipeline.dedup.near.corpus import Corpus
from truegold.pipeline.dedup.near.golds import compare_golds
from truegold.pipeline.dedup.near.links import Links
from truegold.pipeline.dedup.near.reading import ReadText, compare_texts, read_text, score_pairs
from truegold.pipeline.dedup.near.reading.score import EXCUSED_WORDS, OTHER_SCORE
from truegold.pipeline.dedup.near.relation import Agreement, Relation, is_near_copy, relate_others, same_story_score

DROP_CUT = 0.0
CONFLICT_CUT = 0.85
SAME_GOLD = 1.0
"""What equal golds add to the log-odds: they agree by accident in about one pair of siblings of five."""
CHINESE_CONFLICT = -1.6
"""What different golds add to the log-odds of Chinese texts."""
BATCH = 10_000
"""Pairs that are read at a time."""


def confirm_links(links: Links, corpus: Corpus, comparer: Comparer, texts: int | None = None) -> Links:
    """Return the links after a close reading: those of "same problem" that do not stand it are what else they are.

    `texts` is how many texts the pairs come from (`relation.relate`); without it, all of the corpus.
    """
    relation, score = links.relation.copy(), links.score.copy()
    agreement = np.zeros(len(links), dtype=np.int8)
    doubtful = np.flatnonzero(links.relation == Relation.SAME_PROBLEM)
    for start in range(0, len(doubtful), BATCH):
        part = doubtful[start : start + BATCH]
        left, right = links.left[part], links.right[part]
        measures = comparer.measure(left, right)
        agreement[part] = _compare_text_golds(corpus, left, right)
        several = texts or len(corpus.features)
        score[part] = _score(corpus, comparer, (left, right), measures, agreement[part], several)
        cut = np.where(agreement[part] < 0, CONFLICT_CUT, DROP_CUT)
        relation[part] = np.where(score[part] >= cut, Relation.SAME_PROBLEM, relate_others(measures))
    kept = relation > Relation.UNRELATED
    return replace(links, relation=relation, score=score, agreement=agreement).take(kept)


def _score(
    corpus: Corpus, comparer: Comparer, pairs: tuple[Ints, Ints], measures: Measures, agreement: Agreement, texts: int
) -> Floats:
    left, right = pairs
    score = np.full(len(left), OTHER_SCORE, dtype=np.float32)
    near = is_near_copy(measures)
    # Near copies in which other words differ than those that a copy may exchange need no reading.
    most_words = np.where(agreement > 0, EXCUSED_WORDS, 0)
    read = np.flatnonzero(~near | (comparer.count_decisive_words(left, right) <= most_words))
    texts_read = _read_texts(corpus, left[read], right[read])
    read_pairs = [(texts_read[here], texts_read[there]) for here, there in zip(left[read], right[read], strict=True)]
    differences = [compare_texts(*pair) for pair in read_pairs]
    read_measures, agree = measures.take(read), agreement[read]
    story = same_story_score(read_measures, texts)
    score[read] = score_pairs(differences, read_measures, story, near[read], agree > 0)
    in_chinese = np.fromiter((text.is_chinese for text, _ in read_pairs), np.bool_, len(read_pairs))
    score[read[agree > 0]] += np.float32(SAME_GOLD)
    score[read[in_chinese & (agree < 0)]] += np.float32(CHINESE_CONFLICT)
    return score


def _read_texts(corpus: Corpus, left: Ints, right: Ints) -> dict[int, ReadText]:
    """Read the texts of pairs, each once and in the order of the file."""
    numbers = np.unique(np.concatenate([left, right])).tolist()
    return dict(zip(numbers, map(read_text, corpus.texts.read(numbers)), strict=True))


def _compare_text_golds(corpus: Corpus, left: Ints, right: Ints) -> Agreement:
    left_gold, right_gold = corpus.text_gold[left], corpus.text_gold[right]
    agreement = np.where(left_gold == right_gold, 1, 0).astype(np.int8)
    agreement[(left_gold == NO_GOLD) | (right_gold == NO_GOLD)] = 0
    for index in np.flatnonzero((agreement == 0) & (left_gold != NO_GOLD) & (right_gold != NO_GOLD)).tolist():
        golds = (corpus.golds[int(corpus.gold_row[text[index]])] for text in (left, right))
        agreement[index] = compare_golds(*golds)
    return agreement
