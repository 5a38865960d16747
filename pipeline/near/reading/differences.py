"""What differs between two texts that have been read: counts of what only one of them has, and what is asked for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeVar

from truegold.pipeline.near.reading.directions import differ
from truegold.pipeline.near.reading.text import ReadText, Sort
from truegold.pipeline.near.terms import FAMILIES

Item = TypeVar("Item")

EXTREMES = frozenset(["least", "greatest", "最大", "最小"])
CHARACTERS_PER_WORD = 3
"""So many Chinese characters tell about as much as a word."""
_ASKABLE = (Sort.SYMBOL, Sort.TERM, Sort.WORD, Sort.HAN)
_NONE: set[str] = set()
_TERMS = (Sort.TERM, Sort.EVERYDAY)
_COUNTED = (Sort.QUANTITY, Sort.SYMBOL, Sort.TERM, Sort.EVERYDAY, Sort.WORD, Sort.HAN, Sort.NAME)


@dataclass(frozen=True, slots=True)
class Differences:
    """Counts of the pair; `exchanged` counts what both sides have of their own, `added` what one side has more."""

    numbers_exchanged: int
    numbers_added: int
    symbols_exchanged: int
    formulas_exchanged: int
    terms_exchanged: int
    terms_added: int
    terms_contrasted: int
    """Families of terms of which each text has a member that the other lacks, as even and odd."""
    everyday_exchanged: int
    everyday_added: int
    extremes_differ: bool
    """Whether only one of the two speaks of the least, or of the greatest."""
    words_exchanged: int
    words_added: int
    names_exchanged: int
    asked_symbols_exchanged: int
    asked_terms_exchanged: int
    asked_given: bool
    """Whether each text asks for something that the other one gives."""
    drawing_differs: bool
    units_differ: bool
    """Whether one of the two has more different units of length."""
    directions_differ: bool
    """Whether an amount comes in according to one text and goes out according to the other."""
    words: int
    """The words of the text with fewer of them: many in stories, few in exercises."""


def compare_texts(left: ReadText, right: ReadText) -> Differences:
    """Return what differs between two texts."""
    counts = {sort: _count_missing(left.forms, right.forms, sort) for sort in _COUNTED}
    asked = {sort: _count_missing(left.asked_forms, right.asked_forms, sort) for sort in (Sort.SYMBOL, Sort.TERM)}
    formulas = (
        sum(formula not in right.mathematics for formula in left.formulas),
        sum(formula not in left.mathematics for formula in right.formulas),
    )
    words = tuple(map(sum, zip(counts[Sort.WORD], counts[Sort.HAN], strict=True)))
    return Differences(
        numbers_exchanged=min(counts[Sort.QUANTITY]),
        numbers_added=_added(counts[Sort.QUANTITY]),
        symbols_exchanged=min(counts[Sort.SYMBOL]),
        formulas_exchanged=min(formulas),
        terms_exchanged=min(counts[Sort.TERM]),
        terms_added=_added(counts[Sort.TERM]),
        terms_contrasted=_count_contrasts(left, right),
        everyday_exchanged=min(counts[Sort.EVERYDAY]),
        everyday_added=_added(counts[Sort.EVERYDAY]),
        extremes_differ=_extremes(left) != _extremes(right),
        words_exchanged=min(words),
        words_added=_added(words),
        names_exchanged=min(counts[Sort.NAME]),
        asked_symbols_exchanged=min(asked[Sort.SYMBOL]),
        asked_terms_exchanged=min(asked[Sort.TERM]),
        asked_given=_gives(left, right) and _gives(right, left),
        drawing_differs=left.drawing != right.drawing,
        units_differ=_count_units(left) != _count_units(right),
        directions_differ=differ(left.directions, right.directions),
        words=min(_count_words(left), _count_words(right)),
    )


def _count_missing(left: dict[str, set[str]], right: dict[str, set[str]], sort: str) -> tuple[int, int]:
    """Return how many distinct forms of a sort only the left and only the right text has."""
    here, there = left.get(sort, _NONE), right.get(sort, _NONE)
    return len(here - there), len(there - here)


def _added(counts: tuple[int, ...]) -> int:
    return max(counts) - min(counts)


def count_changed_words(left: ReadText, right: ReadText) -> int:
    """Return how many words only one text has, or has more often; -1 where the texts differ in anything else.

    It is 0 for copies: both have the same tokens in the same order, but for the order of clauses, and the same small
    words.
    """
    changed = _changes(left.tokens, right.tokens)
    if (
        any(token.sort not in (Sort.WORD, Sort.HAN) for token in changed)
        or sorted(left.formulas) != sorted(right.formulas)
        or left.drawing != right.drawing
    ):
        return -1
    small_changes = sum(_changes(left.small_words, right.small_words).values())
    if not changed and Counter(left.clauses) == Counter(right.clauses):
        return small_changes
    kept_left = [token for token in left.tokens if token not in changed]
    kept_right = [token for token in right.tokens if token not in changed]
    return sum(changed.values()) + small_changes if kept_left == kept_right else -1


def _changes(left: Iterable[Item], right: Iterable[Item]) -> Counter[Item]:
    """Return what only one of the two has, or has more often, and how often."""
    left_bag, right_bag = Counter(left), Counter(right)
    return (left_bag - right_bag) + (right_bag - left_bag)


def _gives(left: ReadText, right: ReadText) -> bool:
    """Whether the right text has among what is given something that only the left one asks for."""
    for sort in _ASKABLE:
        only_asked = left.asked_forms.get(sort, _NONE) - right.asked_forms.get(sort, _NONE)
        if not only_asked.isdisjoint(right.forms.get(sort, _NONE)):
            return True
    return False


def _count_contrasts(left: ReadText, right: ReadText) -> int:
    families: tuple[set[int], set[int]] = (set(), set())
    for sort in _TERMS:
        here, there = left.forms.get(sort, _NONE), right.forms.get(sort, _NONE)
        families[0].update([FAMILIES[term] for term in here - there])
        families[1].update([FAMILIES[term] for term in there - here])
    return len(families[0] & families[1])


def _extremes(text: ReadText) -> set[str]:
    return text.forms.get(Sort.TERM, _NONE) & EXTREMES


def _count_words(text: ReadText) -> int:
    sorts = Counter(token.sort for token in text.tokens)
    return sorts[Sort.WORD] + sorts[Sort.EVERYDAY] + sorts[Sort.HAN] // CHARACTERS_PER_WORD


def _count_units(text: ReadText) -> int:
    return max(1, len(text.forms.get(Sort.UNIT, _NONE)))
