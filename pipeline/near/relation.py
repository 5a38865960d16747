"""What two problems may be to each other, from the measures of the pair: a few rules and a logistic score, all here.

    original      "Tom has 3 red cars and buys 4 more. How many cars has he?"
    same_problem  "After Tom, who owned three red cars, bought 4 others, what is the number of his cars?"
    same_template "Tom has 5 red cars and buys 9 more. How many cars has he?"
    edited        "Tom has some red cars and buys 4 more. How many cars has he?"

1. Quantities that only the left text has *and* others that only the right one has: never the same problem.
2. Texts that are nearly copies may be the same problem when no quantity and few words differ.
3. Other texts may be when the logistic score does not say that they are not: many rare words, the question and the
   quantities in common. Programming tasks are told apart by a few words among long boilerplate, and have no quantities:
   for them there is no such score.
4. Otherwise texts with most words in common are `same_template` where quantities were replaced, else `edited_variant`.

Measures are taken of millions of pairs and know no order, no case and no single letters. Whether a pair that may be the
same problem is, both texts decide (`confirm`).

The weights were fitted by logistic regression (L2, standardised columns) on pairs of the development half: rewordings
by language models against all other candidate pairs, alone, together with edited and renumbered variants, and among
22,000 problems with known answers of grade-school, competition and Chinese sets; and against pairs of 1,600 short
stories of a closed world (the demo's), where a few names, things and small numbers come in all combinations. The number
of texts is one of the columns, because the more there are, the more often two problems have words and quantities in
common by chance. `benchmarks/curation_dedup.py` measures the result.
"""

from __future__ import annotations

from dataclasses import replace
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from truegold.pipeline.near.arrays import Floats, Marks
from truegold.pipeline.near.compare import Measures
from truegold.pipeline.text.persons import NEAR_COPY

WEIGHTS = {
    "words": 4.65,
    "few_words": -14.56,
    "evidence": 0.47,
    "asked": 2.21,
    "numbers": 2.51,
    "telling": 5.69,
    "words*numbers": 8.90,
    "words*telling": -7.84,
    "only_both": -2.11,
    "only_one": -1.29,
    "length": 7.14,
    "contexts": -1.77,
    "surface*only_one": -1.57,
    "no_numbers": 0.58,
    "log10_texts": -0.80,
    "much_surface": -41.83,
    "order": 2.62,
}
BIAS = -12.10
FEW_WORDS = 0.35
"""Below this cosine each missing word counts again."""
MUCH_SURFACE = 0.55
"""Above this overlap of all words what differs is rather an edit than a rewording, which changes words all over."""
FITTED_TEXTS = (1_000, 100_000)
"""The weights were fitted in this range of numbers of texts; outside of it the nearest end is taken."""

LEAST_SCORE = -0.5
"""Pairs with lower log-odds are not the same problem, whatever a close reading would say."""
REPLACED = 0.6
"""Weight of quantities missing on either side from which they count as replaced: less than one number in words."""
FEW_CHANGED = 6
"""Words that carry meaning and that only one of two near copies has: with more they are no copies."""
SAME_NUMBERS = 0.3
"""Weight of quantities that may be on one side only where numbers have to agree: "one", "first"."""
RELATED = 0.5
"""Overlap of all words from which texts that are not the same problem are still of one family."""
RELATED_WORDS = 0.6
"""Cosine of the words from which they are."""
ROUNDING = 0.01
"""Rounding changes a score by less."""

Agreement = npt.NDArray[np.int8]
"""For each pair 1 where both golds are known and equal, -1 where they differ, 0 otherwise."""


class Relation(IntEnum):
    """What a pair of problems is to each other, the closest last."""

    UNRELATED = 0
    EDITED_VARIANT = 1
    SAME_TEMPLATE = 2
    SAME_PROBLEM = 3
    EXACT = 4

    @property
    def label(self) -> str:
        """The relation's name in tables."""
        return self.name.lower()


def same_story_score(measures: Measures, texts: int) -> Floats:
    """Return the logistic score (log-odds) that two texts that are no near copies tell the same problem.

    `texts` is how many texts the pair comes from.
    """
    smaller_only = np.minimum(measures.only_left, measures.only_right)
    larger_only = np.maximum(measures.only_left, measures.only_right)
    telling = np.minimum(measures.telling, 3)
    columns = {
        "words": measures.words,
        "few_words": np.maximum(FEW_WORDS - measures.words, 0),
        "evidence": np.minimum(measures.evidence, 12),
        "asked": measures.asked,
        "numbers": measures.numbers,
        "telling": telling,
        "words*numbers": measures.words * measures.numbers,
        "words*telling": measures.words * telling,
        "only_both": np.minimum(smaller_only, 2),
        "only_one": np.minimum(larger_only, 3),
        "length": measures.length,
        "contexts": measures.contexts,
        "surface*only_one": measures.surface * np.minimum(larger_only, 1),
        "no_numbers": measures.telling == 0,
        "order": measures.order,
        "much_surface": np.maximum(measures.surface - MUCH_SURFACE, 0),
    }
    base = BIAS + WEIGHTS["log10_texts"] * np.log10(np.clip(texts, *FITTED_TEXTS))
    score = np.full(len(measures), base, dtype=np.float32)
    for name, column in columns.items():
        score += np.float32(WEIGHTS[name]) * column
    return score


def is_near_copy(measures: Measures) -> Marks:
    """Mark the pairs that have most of their words in common."""
    marks: Marks = measures.surface >= NEAR_COPY
    return marks


def _is_replaced(measures: Measures) -> Marks:
    marks: Marks = np.minimum(measures.only_left, measures.only_right) > REPLACED
    return marks


def relate(measures: Measures, texts: int) -> tuple[npt.NDArray[np.uint8], Floats]:
    """Return the `Relation` that each pair may have at most, and its score (log-odds of the same problem).

    `texts` is how many texts the pairs come from; where a texts were compared with b others only, it is sqrt(2ab), for
    among so many there are as many pairs.
    """
    numbers_agree = np.maximum(measures.only_left, measures.only_right) <= SAME_NUMBERS
    may_be_copy = numbers_agree & (measures.changed <= np.where(measures.code > 0, 0, FEW_CHANGED))
    score = same_story_score(measures, texts)
    may_be_reworded = (score > LEAST_SCORE) & (measures.code == 0)
    same = ~_is_replaced(measures) & np.where(is_near_copy(measures), may_be_copy, may_be_reworded)
    return np.where(same, np.uint8(Relation.SAME_PROBLEM), relate_others(measures)), score


def relate_others(measures: Measures) -> npt.NDArray[np.uint8]:
    """Return the `Relation` of pairs that are not the same problem."""
    related = (measures.surface >= RELATED) & (measures.words >= RELATED_WORDS)
    relation = np.select(
        [related & _is_replaced(measures), related],
        [Relation.SAME_TEMPLATE, Relation.EDITED_VARIANT],
        Relation.UNRELATED,
    )
    return relation.astype(np.uint8)


def may_relate(measures: Measures, texts: int) -> Marks:
    """Mark the pairs that `relate` may call related, whatever their `contexts` and `order`."""
    best = sum(max(WEIGHTS[name], 0.0) for name in ("contexts", "order"))
    unknown = np.zeros_like(measures.contexts)
    known = replace(measures, contexts=unknown, order=unknown)
    score = same_story_score(known, texts) + best
    may_be_reworded = ~_is_replaced(measures) & (measures.code == 0) & (score > LEAST_SCORE - ROUNDING)
    marks: Marks = (measures.surface >= RELATED) | may_be_reworded
    return marks
