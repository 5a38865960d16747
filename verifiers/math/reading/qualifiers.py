r"""Splits a quantity from its direction or its substance.

    Text                        Quantity      Direction or substance
    10 N to the left            10 N          left
    5 m/s, 30° north of east    5 m/s         30: degrees counterclockwise from east
    60° east of north           none          30
    146 g HCl                   146 g         HCl; `hydrochloric acid` is the same substance (`chemistry`)

Not covered: unit vectors, which are values, and directions within a sentence.
"""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

from truegold.verifiers.math.measures import unit_of
from truegold.verifiers.math.reading.chemistry import Key, substances
from truegold.verifiers.math.reading.typesetting import with_balanced_braces
from truegold.verifiers.math.vocabulary import ANY_OF, BEARINGS, DIRECTIONS

MAX_CHARS = 120
"""Maximum length of a text that is split, in characters. Longer texts are sentences."""
REMEMBERED_TEXTS = 2_048
_QUARTER, _TURN = 90, 360

MAY_BE_DIRECTED = re.compile(ANY_OF["direction_marks"], re.IGNORECASE)
"""A quick test: every text with a direction matches."""
_SIDE = "|".join(sorted((*DIRECTIONS, *BEARINGS), key=len, reverse=True))
"""Any word for a direction."""
_BEARING = "|".join(BEARINGS)
"""Any direction of the compass."""
_LINK = r"(?:(?:to(?:wards?)?|in|directed|pointing|vertically|horizontally|due|at|and|an?|angle|of|the)\s+)*"
"""Words before a direction: `directed to the`."""
_DEGREES = r"(\d{1,3}(?:\.\d{1,6})?)\s*(?:\^\s*\{?\s*\\circ\s*\}?|degrees?|deg)\s*"
"""An angle before a direction."""
_DIRECTION = re.compile(
    rf"(?:^|(?<=[\s{{,;(~]))[,;(]?\s*{_LINK}(?:{_DEGREES})?(?:({_BEARING}) of (?:due )?({_BEARING})"
    rf"|(above|below) the (?:horizontal|(?:positive )?x-axis)|({_SIDE}))(?: direction)?\)?$",
    re.IGNORECASE,
)
"""A direction at the end: `to the left`, `30° north of east`, `20 degrees below the horizontal`."""
_FIRST = re.compile(rf"({_SIDE})(?:\s*[,:]\s*|\s+(?=[\d\\]))", re.IGNORECASE)
"""A direction at the start: `left, 10 N`."""
_OPENED = re.compile(r"(?:[\s,;~(]|\\[a-z]{1,7}\s*\{\s*$|\\[,;: ]|\band$)+$")
"""Punctuation between a quantity and the direction after it."""
_SUBSTANCE = re.compile(r"(-?\d\S*(?:\s[^,;=&]*?[A-Za-z}]|\s*\\\w+\{\s*[A-Za-z/]+|\s?[A-Za-z]+))\s+(of\s+)?(\S{2,20})")
"""A quantity and its substance: `146 g HCl`, `5 kg of iron`."""


_LAST_WORD = re.compile(r"([a-z]{4,})\s*$")
"""The last word of a quantity, which must be a unit."""


class Qualified(NamedTuple):
    """A quantity with its direction or its substance."""

    quantity: str
    """The quantity as a normalised text. Empty if the text is only a direction."""
    direction: Fraction | str | None
    """Degrees counterclockwise from east, or a word such as `left`. None if there is no direction."""
    substance: frozenset[Key]
    """The readings of the substance. Empty if there is no substance."""


@lru_cache(maxsize=REMEMBERED_TEXTS)
def qualified(text: str) -> Qualified | None:
    """Split a normalised text. Return None if it has neither a direction nor a substance."""
    if len(text) > MAX_CHARS:
        return None
    bare = text.rstrip(" }.")
    if (match := _DIRECTION.search(bare)) is not None and (direction := _direction(match)) is not None:
        quantity = _OPENED.sub("", bare[: match.start()])
        return _directed(quantity, direction)
    if (first := _FIRST.match(text)) is not None:
        return _directed(text[first.end() :], _word(first[1]))
    if (match := _SUBSTANCE.fullmatch(bare)) is None or unit_of(match[3]) is not None or " and " in bare:
        return None
    named = frozenset(key for key in substances(match[3]) if key[0] == "formula")
    if match[2] is not None and not named:
        named = frozenset({("name", match[3].lower().rstrip("s"))})
    return Qualified(with_balanced_braces(match[1]), None, named) if named else None


def _directed(quantity: str, direction: Fraction | str) -> Qualified | None:
    """Return a quantity with its direction, or None if it is not a quantity, as in `opposite to the left`."""
    is_value = any(map(str.isdigit, quantity)) and MAY_BE_DIRECTED.search(quantity) is None
    is_value &= (word := _LAST_WORD.search(quantity)) is None or unit_of(word[1]) is not None
    return Qualified(with_balanced_braces(quantity), direction, frozenset()) if is_value or not quantity else None


def _direction(match: re.Match[str]) -> Fraction | str | None:
    """Return the direction of a match, or None for an angle without a reference: `30° left`."""
    degrees, side, base, slope, word = match.groups()
    if slope is not None:
        return f"{degrees or 0} {slope.lower()}"
    if side is None:
        return _word(word) if degrees is None else None
    start, towards = BEARINGS[base.lower()], BEARINGS[side.lower()]
    turn = (towards - start) % _TURN
    if degrees is None or turn not in (_QUARTER, _TURN - _QUARTER):
        return None
    return (start + (Fraction(degrees) if turn == _QUARTER else -Fraction(degrees))) % _TURN


def _word(word: str) -> Fraction | str:
    plain = " ".join(word.lower().split())
    return Fraction(BEARINGS[plain]) if plain in BEARINGS else DIRECTIONS[plain]
