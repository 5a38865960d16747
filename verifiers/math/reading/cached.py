"""Readings that are remembered: golds repeat, once for each completion of a group, and so do answers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

from truegold.verifiers.extract import committed_answer
from truegold.verifiers.math.budget import charge, remembered
from truegold.verifiers.math.reading.answers import read
from truegold.verifiers.math.reading.normal import normal
from truegold.verifiers.math.reading.notation import Notation
from truegold.verifiers.math.refusals import TooLarge, Unreadable
from truegold.verifiers.math.tree import BareList, Group, Node

_PREDICATE = re.compile(r"\bis ([A-Za-z]{2,20}(?: [A-Za-z]{2,20}){0,2})$")
"""What a sentence with a formula in it says in words: `odd` of `The function $f(x+1)-1$ is odd`."""

CACHED_READINGS = 8_192
MAX_CACHED_CHARS = 300
"""Longer texts are read anew each time. Stops memory from filling with the trees of long answers."""


_CHARS_A_STEP = 10
"""How many characters are brought into normal form in one step."""


class Refused(NamedTuple):
    """Why a text has no tree."""

    too_large: bool
    """The text is beyond a budget; else it is no answer that the reader knows."""
    why: str


MixedNumbers = Literal["sum", "product"]
_NOTATIONS: dict[MixedNumbers, Notation] = {"sum": Notation(), "product": Notation(mixed_numbers=False)}


def normal_gold(gold: str) -> str:
    """Return the normal text of a gold."""
    return _cached_normal(gold) if len(gold) <= MAX_CACHED_CHARS else normal_text(gold)


def normal_text(text: str) -> str:
    """Return the normal text of an answer, whose price is charged."""
    charge(len(text) // _CHARS_A_STEP)
    return normal(text)


def read_text(text: str, mixed: MixedNumbers) -> Node | Refused:
    """Return the tree of a normal text."""
    return _cached_text(text, mixed) if len(text) <= MAX_CACHED_CHARS else _read_text(text, mixed)


def _read_text(text: str, mixed: MixedNumbers) -> Node | Refused:
    try:
        return read(text, _NOTATIONS[mixed])
    except TooLarge as error:
        return Refused(True, str(error))
    except Unreadable as error:
        return Refused(False, str(error))


def read_gold(text: str, mixed: MixedNumbers) -> Node | Refused:
    """Return the tree of a normal gold; of a worked solution, that of its box."""
    return _cached_gold(text, mixed) if len(text) <= MAX_CACHED_CHARS else _read_gold(text, mixed)


def _read_gold(text: str, mixed: MixedNumbers) -> Node | Refused:
    first_reading = read_text(text, mixed)
    if not isinstance(first_reading, Refused):
        return first_reading
    for candidate in _parts_of_gold(text):
        reading = read_text(candidate, mixed)
        if not isinstance(reading, Refused):
            return reading
    return first_reading


def _parts_of_gold(text: str) -> Iterator[str]:
    """Yield what may be the answer in a gold that is none as a whole."""
    if "\\boxed" in text:
        committed = committed_answer(text, several=True)
        if committed is not None:
            yield normal_text(committed.text)
    predicate = _PREDICATE.search(text)
    if predicate is not None:
        yield predicate.group(1)


_cached_normal = remembered(CACHED_READINGS)(normal_text)
_cached_text = remembered(CACHED_READINGS)(_read_text)
_cached_gold = remembered(CACHED_READINGS)(_read_gold)


def holds_several(tree: Node) -> bool:
    """Tell whether gold is a list or a set, so that several boxes may be one answer."""
    return isinstance(tree, BareList) or (isinstance(tree, Group) and tree.opening == "{")
