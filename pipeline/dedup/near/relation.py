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

from truegold.pipeline.dedup.near.compare import Measures
from truegold.pipeline.dedup.near.sparse import Floats

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
TEXTS = (1_000, 100_000)
"""Outside of this range of numbers of texts, which the weights were not fitted for, the nearest end is taken."""

SAME_GOLD = 1.5
OTHER_GOLD = -3.0
"""What the golds add to the score; see rule 3."""
REPLACED = 0.6
"""Weight of quantities missing on either side from which they count as replaced: less than one number in words."""
FEW_CHANGED = 2
"""Meaningful words that only one of two near copies has, which equal golds can excuse: one exchanged for another."""
COPY_SCORE = np.float32(4)
"""Log-odds, at least, of texts that rule 2 calls the same problem."""
NEAR_COPY = 0.7
"""Overlap of all words from which two texts count as near copies of each other."""
SAME_NUMBERS = 0.3
"""Weight of quantities that may be on one side only where numbers have to agree: "one", "first"."""
RELATED = 0.5
"""Overlap of all words from which texts that are not the same problem are still of one family."""
RELATED_WORDS = 0.6


ROUNDING = 0.01
"""More than what is lost or won by rounding in a score."""


class Relation(IntEnum):
    """Of a pair of problems, the closest last."""

    UNRELATED = 0
    EDITED_VARIANT = 1
    SAME_TEMPLATE = 2
    SAME_PROBLEM = 3
    EXACT = 4

    @property
    def label(self) -> str:
        """The name in tables."""
        return self.name.lower()


def same_story_score(m: Measures, texts: int) -> Floats:
    """The logistic score (log-odds) that two texts that are no near copies tell the same problem.

    texts: how many the pair was found among.
    """
    both, one = np.minimum(m.only_left, m.only_right), np.maximum(m.only_left, m.only_right)
    telling = np.minimum(m.telling, 3)
    columns = {
        "words": m.words,
        "few_words": np.maximum(FEW_WORDS - m.words, 0),
        "evidence": np.minimum(m.evidence, 12),
        "asked": m.asked,
        "numbers": m.numbers,
        "telling": telling,
        "words*numbers": m.words * m.numbers,
        "words*telling": m.words * telling,
        "only_both": np.minimum(both, 2),
        "only_one": np.minimum(one, 3),
        "length": m.length,
        "contexts": m.contexts,
        "surface*only_one": m.surface * np.minimum(one, 1),
        "no_numbers": m.telling == 0,
        "order": m.order,
        "much_surface": np.maximum(m.surface - MUCH_SURFACE, 0),
    }
    score = np.full(len(m), BIAS + WEIGHTS["log10_texts"] * np.log10(np.clip(texts, *TEXTS)), dtype=np.float32)
    for name, column in columns.items():
        score += np.float32(WEIGHTS[name]) * column
    return score


def _gold_score(gold: npt.NDArray[np.int8]) -> Floats:
    return np.select([gold > 0, gold < 0], [SAME_GOLD, OTHER_GOLD], 0).astype(np.float32)


def relate(m: Measures, gold: npt.NDArray[np.int8], texts: int) -> tuple[npt.NDArray[np.uint8], Floats]:
    """The `Relation` of each pair and its score (log-odds of the same problem).

    gold: for each pair 1 where both golds are known and equal, -1 where they differ, 0 otherwise. texts: how many texts
    the pairs were found among; where a texts were compared with b others only, as many pairs are among sqrt(2ab) texts.
    """
    both, one = np.minimum(m.only_left, m.only_right), np.maximum(m.only_left, m.only_right)
    replaced = both > REPLACED
    numbers_agree = one <= SAME_NUMBERS
    near = m.surface >= NEAR_COPY
    untouched = numbers_agree & (m.changed == 0) & ((m.contexts > 0.99) | (m.telling == 0))
    score = same_story_score(m, texts) + _gold_score(gold)
    copy = near & ~replaced & (untouched | ((gold > 0) & numbers_agree & (m.changed <= FEW_CHANGED) & (m.order == 1)))
    score = np.where(copy, np.maximum(score, COPY_SCORE), score)
    same = ~replaced & np.where(near, copy, (score > 0) & (m.code == 0))
    related = (m.surface >= RELATED) & (m.words >= RELATED_WORDS)
    relation = np.select(
        [same, related & replaced, related],
        [Relation.SAME_PROBLEM, Relation.SAME_TEMPLATE, Relation.EDITED_VARIANT],
        Relation.UNRELATED,
    )
    return relation.astype(np.uint8), score


def may_relate(m: Measures, gold: npt.NDArray[np.int8], texts: int) -> npt.NDArray[np.bool_]:
    """Marks the pairs that `relate` may find related, whatever their `contexts` and `order`."""
    replaced = np.minimum(m.only_left, m.only_right) > REPLACED
    best = sum(max(WEIGHTS[name], 0.0) for name in ("contexts", "order"))
    known = replace(m, contexts=np.zeros_like(m.contexts), order=np.zeros_like(m.order))
    score = same_story_score(known, texts) + best + _gold_score(gold)
    marks: npt.NDArray[np.bool_] = (m.surface >= RELATED) | (~replaced & (m.code == 0) & (score > -ROUNDING))
    return marks
