"""What two problems are to each other, from the measures of the pair: a few rules and a logistic score, all here.

    original      "Tom has 3 red cars and buys 4 more. How many cars has he?"
    same_problem  "After Tom, who owned three red cars, bought 4 others, what is the number of his cars?"
    same_template "Tom has 5 red cars and buys 9 more. How many cars has he?"
    edited        "Tom has some red cars and buys 4 more. How many cars has he?"

1. Quantities that only the left text has *and* others that only the right one has: never the same problem.
2. Texts that are nearly copies are the same problem when no quantity, no word that carries meaning and no neighbour of
   a quantity differs; or when both have the same gold answer, the same quantities in the same order, and at most one
   word was exchanged.
3. Other texts are the same problem when the logistic score says so: many rare words, the question and the quantities in
   common. Equal golds add to it, different golds take away from it (in nats: log-likelihood ratios at about one wrong
   label in twenty and one coincidence in five). Programming tasks are told apart by a few words among long boilerplate,
   and have no quantities: for them there is no such score.
4. Otherwise texts with most words in common are `same_template` where quantities were replaced, else `edited_variant`.

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

from truegold.pipeline.dedup.near.arrays import Floats, Marks
from truegold.pipeline.dedup.near.compare import Measures

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

SAME_GOLD = 1.5
"""What equal golds add to the score; see rule 3."""
OTHER_GOLD = -3.0
"""What different golds add to the score."""
REPLACED = 0.6
"""Weight of quantities missing on either side from which they count as replaced: less than one number in words."""
FEW_CHANGED = 2
"""Meaningful words that only one of two near copies has, which equal golds can excuse: one exchanged for another."""
COPY_SCORE = np.float32(4)
"""The least log-odds of texts that rule 2 calls the same problem."""
NEAR_COPY = 0.7
"""Overlap of all words from which two texts count as near copies of each other."""
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


def _gold_score(agreement: Agreement) -> Floats:
    return np.select([agreement > 0, agreement < 0], [SAME_GOLD, OTHER_GOLD], 0).astype(np.float32)


def relate(measures: Measures, agreement: Agreement, texts: int) -> tuple[npt.NDArray[np.uint8], Floats]:
    """Return the `Relation` of each pair and its score (log-odds of the same problem).

    `texts` is how many texts the pairs come from; where a texts were compared with b others only, it is sqrt(2ab), for
    among so many there are as many pairs.
    """
    larger_only = np.maximum(measures.only_left, measures.only_right)
    replaced = np.minimum(measures.only_left, measures.only_right) > REPLACED
    numbers_agree = larger_only <= SAME_NUMBERS
    near = measures.surface >= NEAR_COPY
    contexts_agree = (measures.contexts > 0.99) | (measures.telling == 0)
    untouched = numbers_agree & (measures.changed == 0) & contexts_agree
    excused = (agreement > 0) & numbers_agree & (measures.changed <= FEW_CHANGED) & (measures.order == 1)
    copy = near & ~replaced & (untouched | excused)
    score = same_story_score(measures, texts) + _gold_score(agreement)
    score = np.where(copy, np.maximum(score, COPY_SCORE), score)
    same = ~replaced & np.where(near, copy, (score > 0) & (measures.code == 0))
    related = (measures.surface >= RELATED) & (measures.words >= RELATED_WORDS)
    relation = np.select(
        [same, related & replaced, related],
        [Relation.SAME_PROBLEM, Relation.SAME_TEMPLATE, Relation.EDITED_VARIANT],
        Relation.UNRELATED,
    )
    return relation.astype(np.uint8), score


def may_relate(measures: Measures, agreement: Agreement, texts: int) -> Marks:
    """Mark the pairs that `relate` may call related, whatever their `contexts` and `order`."""
    replaced = np.minimum(measures.only_left, measures.only_right) > REPLACED
    best = sum(max(WEIGHTS[name], 0.0) for name in ("contexts", "order"))
    unknown = np.zeros_like(measures.contexts)
    known = replace(measures, contexts=unknown, order=unknown)
    score = same_story_score(known, texts) + best + _gold_score(agreement)
    marks: Marks = (measures.surface >= RELATED) | (~replaced & (measures.code == 0) & (score > -ROUNDING))
    return marks
