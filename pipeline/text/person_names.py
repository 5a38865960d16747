"""Exchanges the names of persons: two texts that differ only in these names are the same problem.

    "Tom has 3 red cars and buys 4 more. How many cars has Tom?"
    "Ann has 3 red cars and buys 4 more. How many cars has Ann?"             the same, Tom for Ann
    "The first term of the Lucas sequence" / "... of the Fibonacci sequence"  not persons: nothing is exchanged

A word is a name if it is always capitalised in its text, and at least once does or owns something. Names are matched in
order of appearance. So two texts in which two persons change places stay different problems.
"""

from __future__ import annotations

import re

_CAPITALISED = re.compile(r"(?<![\w\\$])[A-Z][a-z]+(?![\w$])")
_WORD = re.compile(r"\w+")
_ACTS = (
    r"(?:'s|’s|s'|\s+and\s+[A-Z]|,?\s+(?:also\s+|then\s+|first\s+|already\s+|only\s+)?"
    r"(?:\w+s|\w+ed|had|did|can|will|would|could|should|may|must|were|are|went|gave|got|bought|sold|made|ran|ate|took|spent"
    r"|paid|read|drove|have|do|want|need|put|cut|began|brought|built|drew|found|left|lost|met|rode|saw|sent|won|wrote)\b)"
)
"""Text after the name of a person who does or owns something: "Tom's", "Tom and Ann", "Tom then buys"."""
NO_PERSONS = frozenset(
    "The There This That These Those They Then If In On At For When While What How Each Every All Some Many Most Half"
    " After Before During Both One Two Three Four Five Six Seven Eight Nine Ten January February March April May June"
    " July August September October November December Monday Tuesday Wednesday Thursday Friday Saturday Sunday Celsius"
    " Fahrenheit Kelvin Earth Mars Venus Jupiter Saturn Roman Arabic Find Let Suppose Given Compute".split()
)
"""Capitalised words that do not name a person."""
NEAR_COPY = 0.7
"""The minimum overlap of all words of near copies."""
MOST_NAMES = 8
"""The maximum number of names that may differ between two texts."""


def exchange_names(left: str, right: str) -> str | None:
    """Return the left text with the names of the right text, or None if this does not give a near copy of the right."""
    here, there = _CAPITALISED.findall(left), _CAPITALISED.findall(right)
    left_only = [name for name in dict.fromkeys(here) if name not in there]
    right_only = [name for name in dict.fromkeys(there) if name not in here]
    if not left_only or len(left_only) != len(right_only) or len(left_only) > MOST_NAMES:
        return None
    if not all(_is_person(name, text) for names, text in ((left_only, left), (right_only, right)) for name in names):
        return None
    exchanged = dict(zip(left_only, right_only, strict=True))
    changed = _CAPITALISED.sub(lambda match: exchanged.get(match[0], match[0]), left)
    words, other_words = (set(_WORD.findall(text.lower())) for text in (changed, right))
    return changed if len(words & other_words) >= NEAR_COPY * len(words | other_words) else None


def find_persons(text: str) -> list[str]:
    """Return the distinct names of persons in a text."""
    return [name for name in dict.fromkeys(_CAPITALISED.findall(text)) if _is_person(name, text)]


def _is_person(name: str, text: str) -> bool:
    if name in NO_PERSONS or re.search(rf"\b{name.lower()}\b", text):
        return False
    return re.search(rf"\b{name}{_ACTS}", text) is not None
