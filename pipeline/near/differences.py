"""Counts what differs between two texts that have been read: what only one has, asks for, or moves the other way.

The directions of amounts are part of it: what is bought or found comes in, what is sold, lost or given away goes out.

    "A shop has 16 coins. It sells 10 and loses 4."            10 out, 4 out
    "A shop has 16 eggs. It gets 10 more and buys 4 more."     10 in, 4 in       another problem
    "Zoe has 9 pens. She buys 11 more."                         9 held, 11 in

An amount has a direction where it follows the verb, but for a few words. Verbs that say neither, such as "takes", are
not read; nor is "gives", which a rewording exchanges for "receives", or money, which goes the other way. The two texts
of a rewording exchange "buys" for "gets", and hardly ever "buys" for "sells".
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import TypeVar

from truegold.pipeline.near.problem_text import ReadText, Sort
from truegold.pipeline.near.terms import FAMILIES

Item = TypeVar("Item")

EXTREMES = frozenset(["least", "greatest", "最大", "最小"])
CHARACTERS_PER_WORD = 3
"""So many Chinese characters tell about as much as a word."""
_ASKABLE = (Sort.SYMBOL, Sort.TERM, Sort.WORD, Sort.HAN)
_NONE: set[str] = set()
_TERMS = (Sort.TERM, Sort.EVERYDAY)
_COUNTED = (Sort.QUANTITY, Sort.SYMBOL, Sort.TERM, Sort.EVERYDAY, Sort.WORD, Sort.HAN, Sort.NAME)


Differences = Mapping[str, int]
"""Counts of a pair by name, those of `compare_texts`.

- `exchanged`: how much both sides have of their own; `added`: how much one side has more
- `terms_contrasted`: families of terms of which each text has a member that the other lacks, as even and odd
- `extremes_differ`: whether only one of the two speaks of the least, or of the greatest
- `asked_given`: whether each text asks for something that the other one gives
- `units_differ`: whether one of the two has more different units of length
- `directions_differ`: whether an amount comes in according to one text and goes out according to the other
- `words`: the words of the text with fewer of them: many in stories, few in exercises
"""
_IN = (
    r"gets?|got|gotten|buys?|buying|bought|finds?|finding|found|receives?|receiving|received|earns?|earning|earned|wins?"
    r"|winning|won|gains?|gaining|gained|collects?|collecting|collected|acquires?|acquired|purchases?|purchased"
)
_OUT = (
    r"sells?|selling|sold|loses?|losing|lost|(?:gives?|giving|gave|given) away|donates?|donating|donated|eats?|eating"
    r"|ate|eaten|throws?|threw|discards?|discarded|removes?|removed|(?:gets?|got) rid of|(?:takes?|took) (?:out|away)"
)
_HELD = r"has|have|had|(?:starts?|started|begins?|began) with|there (?:are|were|is|was)"
_CHINESE_IN = r"买来|买进|又买|买了|得到|收到|捡到|获得|运来|运进"
_CHINESE_OUT = r"卖出|卖掉|卖了|丢了|丢掉|送给|送走|用去|用了|吃了|吃掉|运走|运出|借出"
_EVENT = re.compile(
    rf"\b(?P<out>{_OUT})\b|\b(?P<in>{_IN})\b(?!\s+(?:on|off|up|out|to)\b)|\b(?P<held>{_HELD})\b"
    rf"|(?P<han_in>{_CHINESE_IN})|(?P<han_out>{_CHINESE_OUT})|(?P<end>[.?!;,。！？；，](?!\d))",
    re.IGNORECASE,
)
_AMOUNT = re.compile(r"(?<![A-Za-z\d.$¥])\d[\d,]*(?:\.\d+)?(?![A-Za-z\d/])")
_DIRECTION = {"in": 1, "han_in": 1, "out": -1, "han_out": -1, "held": 0}
MAX_DISTANCE = 30
"""How many characters may stand between a verb and its amount: "sells each of them 4"."""
LONGEST_VERB = 20
"""No verb has more characters."""


def compare_texts(left: ReadText, right: ReadText) -> Differences:
    """Return the differences between two texts."""
    counts = {sort: _count_missing(left.forms, right.forms, sort) for sort in _COUNTED}
    asked = {sort: _count_missing(left.asked_forms, right.asked_forms, sort) for sort in (Sort.SYMBOL, Sort.TERM)}
    formulas = (
        sum(formula not in right.mathematics for formula in left.formulas),
        sum(formula not in left.mathematics for formula in right.formulas),
    )
    both_sides = {
        "numbers": counts[Sort.QUANTITY],
        "symbols": counts[Sort.SYMBOL],
        "formulas": formulas,
        "terms": counts[Sort.TERM],
        "everyday": counts[Sort.EVERYDAY],
        "words": tuple(map(sum, zip(counts[Sort.WORD], counts[Sort.HAN], strict=True))),
        "names": counts[Sort.NAME],
        "asked_symbols": asked[Sort.SYMBOL],
        "asked_terms": asked[Sort.TERM],
    }
    return {
        **{f"{name}_exchanged": min(sides) for name, sides in both_sides.items()},
        **{f"{name}_added": max(sides) - min(sides) for name, sides in both_sides.items()},
        "terms_contrasted": _count_contrasts(left, right),
        "extremes_differ": _extremes(left) != _extremes(right),
        "asked_given": _gives(left, right) and _gives(right, left),
        "drawing_differs": left.drawing != right.drawing,
        "units_differ": _count_units(left) != _count_units(right),
        "directions_differ": differ(directions(left.text), directions(right.text)),
        "words": min(_count_words(left), _count_words(right)),
    }


def _count_missing(left: dict[str, set[str]], right: dict[str, set[str]], sort: str) -> tuple[int, int]:
    """Return how many distinct forms of a sort only the left and only the right text has."""
    here, there = left.get(sort, _NONE), right.get(sort, _NONE)
    return len(here - there), len(there - here)


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


@lru_cache(2**14)
def directions(text: str) -> dict[str, int]:
    """Return the amounts of which each mention goes the same way: 1 for in, -1 for out, 0 for held from the start."""
    seen: dict[str, set[int]] = {}
    last = 0
    for amount in _AMOUNT.finditer(text):
        start = amount.start()
        events = list(_EVENT.finditer(text, max(last, start - MAX_DISTANCE - LONGEST_VERB), start))
        event = events[-1] if events else None
        last = amount.end()
        if event is not None and event.lastgroup != "end" and start - event.end() <= MAX_DISTANCE:
            seen.setdefault(amount[0].replace(",", ""), set()).add(_DIRECTION[str(event.lastgroup)])
    return {amount: min(ways) for amount, ways in seen.items() if len(ways) == 1}


def differ(left: dict[str, int], right: dict[str, int]) -> bool:
    """Return whether an amount comes in according to one text and goes out according to the other, or two amounts have
    exchanged places: what one text starts with moves in the other, and the other way round."""
    pairs = {(direction, right[amount]) for amount, direction in left.items() if amount in right}
    starts_here = any(here == 0 != there for here, there in pairs)
    starts_there = any(there == 0 != here for here, there in pairs)
    return any(here * there < 0 for here, there in pairs) or (starts_here and starts_there)
