"""What differs between two texts that have been read: counts of what only one of them has, and what is asked for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeVar

from truegold.pipeline.dedup.near.reading.terms import FAMILIES
from truegold.pipeline.dedup.near.reading.text import ReadText, Sort, Token

Item = TypeVar("Item")

EXTREMES = frozenset(["least", "greatest", "最大", "最小"])
CHARACTERS_PER_WORD = 3
"""So many Chinese characters tell about as much as a word."""
_ASKABLE = frozenset([Sort.SYMBOL, Sort.TERM, Sort.WORD, Sort.HAN])
_TERMS = frozenset([Sort.TERM, Sort.EVERYDAY])


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
    asked_words_exchanged: int
    asked_given: bool
    """Whether each text asks for something that the other one gives."""
    drawing_differs: bool
    units_differ: bool
    """Whether one of the two has more different units of length."""
    is_copy: bool
    """Whether both have the same clauses, in any order, and the same small words."""
    changed_words: int
    """How many words only one of the two has, or has more often; -1 where anything else differs, the order among it."""
    words: int
    """The words of the text with fewer of them: many in stories, few in exercises."""


def compare_texts(left: ReadText, right: ReadText) -> Differences:
    """Return what differs between two texts."""
    counts = {sort: _own(left.tokens, right.tokens, sort) for sort in Sort}
    asked = {sort: _own(left.asked, right.asked, sort) for sort in (Sort.SYMBOL, Sort.TERM, Sort.WORD, Sort.HAN)}
    formulas = (
        sum(formula not in right.mathematics for formula in left.formulas),
        sum(formula not in left.mathematics for formula in right.formulas),
    )
    words = tuple(map(sum, zip(counts[Sort.WORD], counts[Sort.HAN], strict=True)))
    asked_words = tuple(map(sum, zip(asked[Sort.WORD], asked[Sort.HAN], strict=True)))
    changed_words = _count_changed_words(left, right)
    return Differences(
        numbers_exchanged=min(counts[Sort.NUMBER]),
        numbers_added=_added(counts[Sort.NUMBER]),
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
        asked_words_exchanged=min(asked_words),
        asked_given=_gives(left, right) and _gives(right, left),
        drawing_differs=left.drawing != right.drawing,
        units_differ=_count_units(left) != _count_units(right),
        is_copy=changed_words == 0 and Counter(left.clauses) == Counter(right.clauses),
        changed_words=changed_words,
        words=min(_count_words(left), _count_words(right)),
    )


def _own(left: Iterable[Token], right: Iterable[Token], sort: Sort) -> tuple[int, int]:
    """Return how many distinct tokens of a sort only the left and only the right have."""
    here = {token.form for token in left if token.sort == sort}
    there = {token.form for token in right if token.sort == sort}
    return len(here - there), len(there - here)


def _added(counts: tuple[int, ...]) -> int:
    return max(counts) - min(counts)


def _count_changed_words(left: ReadText, right: ReadText) -> int:
    """Return how many words only one text has, or has more often; -1 where the texts differ in anything else."""
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
    only_asked = {token for token in left.asked if token.sort in _ASKABLE} - set(right.asked)
    return not only_asked.isdisjoint(right.tokens)


def _count_contrasts(left: ReadText, right: ReadText) -> int:
    here = {token.form for token in left.tokens if token.sort in _TERMS}
    there = {token.form for token in right.tokens if token.sort in _TERMS}
    return len({FAMILIES[term] for term in here - there} & {FAMILIES[term] for term in there - here})


def _extremes(text: ReadText) -> set[str]:
    return {token.form for token in text.tokens if token.sort == Sort.TERM and token.form in EXTREMES}


def _count_words(text: ReadText) -> int:
    characters = sum(token.sort == Sort.HAN for token in text.tokens)
    return sum(token.sort in (Sort.WORD, Sort.EVERYDAY) for token in text.tokens) + characters // CHARACTERS_PER_WORD


def _count_units(text: ReadText) -> int:
    return max(1, len({token.form for token in text.tokens if token.sort == Sort.UNIT}))
