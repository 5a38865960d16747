"""Adds pairs that an encoder finds close together: more candidates for the same close reading, which decides as ever.

Two texts that share no two rare words, since names and things are both others, would not be candidates otherwise. An
encoder only proposes: it puts "even" and "odd" close together, and a problem next to its renumbered instance.

A Chinese problem and one in another language share no words; their numbers and questions say whether they are one:

    "Paul has 52 marbles. His friend gave him 28. Then he lost 1/4 of them. How many are left?"
    "保罗有52颗弹珠，朋友又给了他28颗，后来他丢了四分之一。还剩多少颗？"     a translation
    "... 他丢了多少颗？"                            undecided: what is asked for may be another amount
    "保罗有52颗弹珠，朋友又给了他38颗 ..."           none: another number

Not covered: pairs of two languages that are both written in letters.
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
"""Texts of the data that are compared with each item."""
BATCH = 1_000
"""Texts whose neighbours are searched at a time."""
Encoder = Callable[[Sequence[str]], Floats]
"""Makes a vector of length 1 of each text."""
MIN_COMMON_NUMBERS = 2
"""Fewer numbers in common are met by accident."""
MAX_ONE_SIDED = 1
"""The most numbers that may be written as words on one side: `half`, 一半."""


@dataclass(frozen=True)
class Proposals:
    """Pairs of texts that an encoder puts close together, by their numbers in the corpus."""

    left: Ints
    right: Ints
    """The compared texts, `left` and `right`: an item and a record, or of two rows the first and the second."""
    translated_left: Ints
    translated_right: Ints
    """The same for texts in different scripts."""


def propose(corpus: Corpus, encoder: Encoder, first_items: int | None = None) -> Proposals:
    """Return each text's nearest neighbours; with `first_items`, those of the first texts among the others.

    Texts in Chinese and in other scripts are searched apart, since a text in one's own language is always nearer.
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
    """Return all pairs once each; unless the sides mean something, the smaller number first."""
    left, right = (np.concatenate([part[side] for part in parts]) for side in (0, 1))
    if not keep_sides:
        left, right = np.minimum(left, right), np.maximum(left, right)
    return unpack_pairs(np.unique(pack_pairs(left, right)))


def add_proposed_links(links: Links, comparer: Comparer, proposals: Proposals, texts: int) -> Links:
    """Return the links with the pairs that an encoder proposes.

    Proposals may be the same problem unless their quantities were replaced; `confirm_links` reads them like others.
    `texts` is how many texts the pairs come from (`measures.relate`).
    """
    left, right = proposals.left, proposals.right
    measures = comparer.measure(left, right)
    relation, score = relate(measures, texts)
    numbers_agree = np.minimum(measures.only_left, measures.only_right) == 0
    # Words say little about these pairs. What they say of near copies and of programs stands.
    needs_reading = numbers_agree & ~is_near_copy(measures) & (measures.code == 0)
    relation = np.where(needs_reading, np.uint8(Relation.SAME_PROBLEM), relation)
    kept = relation > Relation.UNRELATED
    joined = join_links([Links(left[kept], right[kept], relation[kept], score[kept]), links])
    # Of a pair that comes twice the first counts.
    return joined.take(np.unique(pack_pairs(joined.left, joined.right), return_index=True)[1])


@dataclass(frozen=True)
class Translations:
    """Pairs of texts in two scripts that may be one problem, as arrays of one entry for each pair."""

    left: Ints
    right: Ints
    is_sure: Marks
    """Whether the questions agree as well as the numbers."""


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
    """Return pairs of each query with the closest of the others, which may hold the query itself."""
    if not len(queries) or not len(others):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    left, right = _nearest(vectors[queries], vectors[others])
    left, right = queries[left], others[right]
    return left[left != right], right[left != right]


def _nearest(queries: Floats, vectors: Floats) -> tuple[Ints, Ints]:
    """Return pairs of each query with its closest vectors, one more than NEIGHBOURS since a query may be its own.

    There is at least one of both. Time grows with the product of their numbers.
    """
    count = min(NEIGHBOURS + 1, len(vectors))
    parts: list[npt.NDArray[np.int64]] = []
    for start in range(0, len(queries), BATCH):
        similarity = queries[start : start + BATCH] @ vectors.T
        parts.append(np.argpartition(-similarity, count - 1, axis=1)[:, :count])
    closest = np.concatenate(parts)
    return np.repeat(np.arange(len(closest)), count), closest.ravel()


def is_translation(left: ReadText, right: ReadText, left_text: str, right_text: str) -> bool | None:
    """Tell whether one text translates the other, or None if their numbers say so and their questions do not."""
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
