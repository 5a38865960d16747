"""Readings that are remembered: golds repeat, once for each completion of a group, and so do answers.

Where gold is a worked solution, its box is what is read. A text that cannot be read is remembered as Refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Literal, NamedTuple

from truegold.verifiers.extract import committed_answer
from truegold.verifiers.math.reading.answers import read
from truegold.verifiers.math.reading.normal import normal
from truegold.verifiers.math.reading.notation import Notation
from truegold.verifiers.math.refusals import TooLarge, Unreadable
from truegold.verifiers.math.tree import BareList, Group, Node

_PREDICATE = re.compile(r"\bis ([A-Za-z]{2,20}(?: [A-Za-z]{2,20}){0,2})$")
"""What a sentence with a formula in it says in words: `odd` of `The function $f(x+1)-1$ is odd`."""

CACHED_READINGS = 8_192


class Refused(NamedTuple):
    """Why a text has no tree: it is beyond a budget, or no answer that the reader knows."""

    too_large: bool
    why: str


Mixed = Literal["sum", "product"]
_NOTATIONS: dict[Mixed, Notation] = {"sum": Notation(), "product": Notation(mixed=False)}


@lru_cache(maxsize=CACHED_READINGS)
def normal_gold(gold: str) -> str:
    return normal(gold)


@lru_cache(maxsize=CACHED_READINGS)
def read_text(text: str, mixed: Mixed) -> Node | Refused:
    """The tree of normal `text`."""
    try:
        return read(text, _NOTATIONS[mixed])
    except TooLarge as error:
        return Refused(True, str(error))
    except Unreadable as error:
        return Refused(False, str(error))


@lru_cache(maxsize=CACHED_READINGS)
def read_gold(text: str, mixed: Mixed) -> Node | Refused:
    """The tree of normal `text`, or else of the box in it."""
    refused: Refused | None = None
    for candidate in _candidates(text):
        reading = read_text(candidate, mixed)
        if not isinstance(reading, Refused):
            return reading
        refused = refused or reading
    assert refused is not None
    return refused


def _candidates(text: str) -> Iterator[str]:
    yield text
    if "\\boxed" in text:
        found = committed_answer(text, several=True)
        if found is not None:
            yield normal(found.text)
    predicate = _PREDICATE.search(text)
    if predicate is not None:
        yield predicate.group(1)


def is_several(tree: Node) -> bool:
    """A list or a set, so that several boxes may be one answer."""
    return isinstance(tree, BareList) or (isinstance(tree, Group) and tree.opening == "{")
