"""Adds candidate pairs that an encoder (a model that turns a text into a vector) finds similar.

Without an encoder, two texts are candidates only if they share two rare words. A rewording with new names and things
may share none. An encoder also finds "even" and "odd" similar, and problems that differ only in numbers. So it only
proposes pairs, and the close reading (`confirmation`) decides.

A Chinese problem and its translation share no words. Their numbers and questions decide whether they are one problem:

    "Paul has 52 marbles. His friend gave him 28. Then he lost 1/4 of them. How many are left?"
    "保罗有52颗弹珠，朋友又给了他28颗，后来他丢了四分之一。还剩多少颗？"     a translation
    "... 他丢了多少颗？"                            undecided: it may ask for another amount
    "保罗有52颗弹珠，朋友又给了他38颗 ..."           not a translation: one number differs

Translations between two languages that are written in letters are not found.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from truegold.pipeline.near.arrays import Floats, Ints, Marks, pack_pairs, unpack_pairs
from truegold.pipeline.near.asked import asked_quantities
from truegold.pipeline.near.corpus import Corpus
from truegold.pipeline.near.measures import Comparer, Relation, is_near_copy, relate
from truegold.pipeline.near.pieces import ReadKind
from truegold.pipeline.near.problem_text import ReadText, holds_chinese, read_text
from truegold.pipeline.near.related_pairs import Links, join_links

NEIGHBOURS = 3
"""The number of nearest texts that each text is compared with."""
BATCH = 1_000
"""The number of texts whose neighbours are searched at a time."""
Encoder = Callable[[Sequence[str]], Floats]
"""A function that returns a vector of norm 1 for each text."""
MIN_COMMON_NUMBERS = 2
"""The minimum number of numbers that a problem and its translation share. One number may agree by accident."""
MAX_ONE_SIDED = 1
"""The maximum number of numbers that only the problem, or only its translation, has. The other text may write such a
number as a word: `half`, 一半."""


@dataclass(frozen=True)
class Proposals:
    """Pairs of texts that an encoder finds similar. Each text is given by its number in the corpus."""

    left: Ints
    right: Ints
    """The texts of each pair in one script: an evaluation item and a record, or two records in order."""
    translated_left: Ints
    translated_right: Ints
    """The texts of each pair in two scripts, one of them Chinese."""


def propose(corpus: Corpus, encoder: Encoder, first_items: int | None = None) -> Proposals:
    """Return each text with its nearest neighbours.

    With `first_items`, the first texts are items, and their neighbours are searched among the remaining texts.
    Neighbours in Chinese and in other scripts are searched separately, because texts in the same language are nearer.
    """
    texts = corpus.texts.read(range(len(corpus.features)))
    vectors = encoder(texts)
    numbers = np.arange(len(texts))
    queries = numbers if first_items is None else numbers[:first_items]
    others = numbers if first_items is None else numbers[first_items:]
    chinese = np.array([holds_chinese(text) for text in texts], dtype=bool)
    same, translated = [], []
    for script in (False, True):
        asking = queries[chinese[queries] == script]
        same.append(_neighbours(vectors, asking, others[chinese[others] == script]))
        translated.append(_neighbours(vectors, asking, others[chinese[others] != script]))
    left, right = _ordered(same, keep_sides=first_items is not None)
    translated_left, translated_right = _ordered(translated, keep_sides=first_items is not None)
    return Proposals(left, right, translated_left, translated_right)


def _ordered(parts: list[tuple[Ints, Ints]], *, keep_sides: bool) -> tuple[Ints, Ints]:
    """Return the distinct pairs of all parts. The smaller number comes first, unless `keep_sides` is true."""
    left, right = (np.concatenate([part[side] for part in parts]) for side in (0, 1))
    if not keep_sides:
        left, right = np.minimum(left, right), np.maximum(left, right)
    return unpack_pairs(np.unique(pack_pairs(left, right)))


def add_proposed_links(links: Links, comparer: Comparer, proposals: Proposals, texts: int) -> Links:
    """Return the links, with the pairs added that an encoder proposes.

    A proposed pair may be the same problem unless its quantities were replaced; `confirm_links` decides. `texts` is the
    number of texts that the pairs come from (`measures.relate`).
    """
    left, right = proposals.left, proposals.right
    measures = comparer.measure(left, right)
    relation, score = relate(measures, texts)
    numbers_agree = np.minimum(measures.only_left, measures.only_right) == 0
    # Shared words say little about proposed pairs. Near copies and programs are exceptions.
    needs_reading = numbers_agree & ~is_near_copy(measures) & (measures.code == 0)
    relation = np.where(needs_reading, np.uint8(Relation.SAME_PROBLEM), relation)
    kept = relation > Relation.UNRELATED
    joined = join_links([Links(left[kept], right[kept], relation[kept], score[kept]), links])
    # Of a pair that occurs twice, the first link is used.
    return joined.take(np.unique(pack_pairs(joined.left, joined.right), return_index=True)[1])


@dataclass(frozen=True)
class Translations:
    """Pairs of texts in two scripts that may be one problem, as arrays with an entry for each pair."""

    left: Ints
    right: Ints
    is_sure: Marks
    """Whether all numbers agree, and the questions ask for the same quantities."""


def find_translations(corpus: Corpus, proposals: Proposals) -> Translations:
    """Return the proposed pairs in two scripts that may be one problem."""
    kept: list[tuple[int, int, bool]] = []
    for left, right in zip(proposals.translated_left.tolist(), proposals.translated_right.tolist(), strict=True):
        here, there = corpus.texts.read([left, right])
        same = is_translation(read_text(here), read_text(there), here, there)
        if same is not False:
            kept.append((left, right, same is True))
    columns = np.array(kept, dtype=np.int64).reshape(-1, 3)
    return Translations(columns[:, 0], columns[:, 1], columns[:, 2].astype(bool))


def _neighbours(vectors: Floats, queries: Ints, others: Ints) -> tuple[Ints, Ints]:
    """Return pairs of each query and its nearest texts in `others`. A text is not paired with itself."""
    if not len(queries) or not len(others):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    left, right = _nearest(vectors[queries], vectors[others])
    left, right = queries[left], others[right]
    return left[left != right], right[left != right]


def _nearest(queries: Floats, vectors: Floats) -> tuple[Ints, Ints]:
    """Return pairs of each query and its NEIGHBOURS + 1 nearest vectors. One of them may be the query itself.

    Both arrays have at least one row. Time grows with the product of their numbers of rows.
    """
    count = min(NEIGHBOURS + 1, len(vectors))
    parts: list[npt.NDArray[np.int64]] = []
    for start in range(0, len(queries), BATCH):
        similarity = queries[start : start + BATCH] @ vectors.T
        parts.append(np.argpartition(-similarity, count - 1, axis=1)[:, :count])
    closest = np.concatenate(parts)
    return np.repeat(np.arange(len(closest)), count), closest.ravel()


def is_translation(left: ReadText, right: ReadText, left_text: str, right_text: str) -> bool | None:
    """Return whether one text translates the other, or None if this is undecided.

    The pair is undecided if only one text has a certain number, or if the questions may ask for different quantities.
    """
    if left.is_chinese == right.is_chinese:
        return False
    here, there = left.forms.get(ReadKind.QUANTITY, set()), right.forms.get(ReadKind.QUANTITY, set())
    one_sided = len(here - there), len(there - here)
    if len(here & there) < MIN_COMMON_NUMBERS or min(one_sided) > 0 or max(one_sided) > MAX_ONE_SIDED:
        return False
    if asked_quantities(left_text, "decisive") != asked_quantities(right_text, "decisive"):
        return False
    agree = asked_quantities(left_text, "soft") == asked_quantities(right_text, "soft")
    return True if agree and max(one_sided) == 0 else None
