"""Words that decide what a problem is: exchanging one for a word of another line makes another problem.

    "the largest odd integer"  ->  greatest · odd · integer
    "the greatest odd integer" ->  greatest · odd · integer     the same
    "the smallest odd integer" ->  least · odd · integer        another problem

Each line of a table (`english_terms`, `chinese_terms`) has the words of one term, the term itself first; lines without
an empty one between them are a family, of which a problem means this member and not that. Words that merely ask for an
answer, or that any problem may use, are no terms (`ASKING`).
"""

from __future__ import annotations

import re

from truegold.pipeline.near.chinese_terms import CHINESE_TERM_LINES
from truegold.pipeline.near.english_terms import (
    ASKING,
    ENGLISH_EVERYDAY_TERMS,
    ENGLISH_SYNONYMS,
    ENGLISH_TERMS,
    PHRASES,
)


def _table(text: str) -> dict[str, str]:
    return {word: line.split()[0] for line in text.split("\n") for word in line.split()}


def _families(*tables: str) -> dict[str, int]:
    families = [family for text in tables for family in text.strip().split("\n\n")]
    return {line.split()[0]: position for position, family in enumerate(families) for line in family.splitlines()}


TERMS = _table(ENGLISH_TERMS)
"""The term of each English word that is of one."""
EVERYDAY_TERMS = _table(ENGLISH_EVERYDAY_TERMS)
"""Words of stories that decide less: a rewording may leave them out, or say them otherwise."""
SYNONYMS = _table(ENGLISH_SYNONYMS)
"""The word that stands for each of a group of words that mean the same."""
CHANGEABLE = frozenset((*TERMS, *EVERYDAY_TERMS, *SYNONYMS, *ASKING, "dollar", "dollars"))
"""Words that another word may stand for in a copy."""
CHINESE_TERMS = _table(CHINESE_TERM_LINES)
"""The term of each Chinese word that is of one."""
FAMILIES = _families(ENGLISH_TERMS, ENGLISH_EVERYDAY_TERMS, CHINESE_TERM_LINES)
"""The family of each term: its members stand where another one could, as even and odd, or area and perimeter."""
CHINESE_TERM = re.compile("|".join(sorted(CHINESE_TERMS, key=len, reverse=True)))
"""This matches the longest Chinese word of a term."""
_PHRASE_PATTERNS = [(re.compile(pattern, re.IGNORECASE), replacement) for pattern, replacement in PHRASES]
_PHRASE_PARTS = tuple(
    "least|less|fewer|more|greater|larger|bigger|most|exceed|equal|same as|surface|cross|non|clock|semi|standard|whole"
    "|natural|as well|square|sq|cubic".split("|")
)
"""Each match of a phrase has one of these in it; to look for them takes a tenth of the time."""


def join_phrases(text: str) -> str:
    """Return the text with each phrase of PHRASES as one word."""
    lower = text.lower()
    if any(part in lower for part in _PHRASE_PARTS):
        for pattern, replacement in _PHRASE_PATTERNS:
            text = pattern.sub(replacement, text)
    return text
