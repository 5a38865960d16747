"""Reads the lists of terms: words that decide what a problem is. Replacing a term makes another problem.

    "the largest odd integer"  ->  greatest · odd · integer
    "the greatest odd integer" ->  greatest · odd · integer     the same
    "the smallest odd integer" ->  least · odd · integer        another problem

The words stand in `english_terms.toml`, `chinese_terms.toml` and `korean_terms.toml`. Each line of a table has the
words of one term, the term itself first. Neighbouring lines are a family of contrasting terms; an empty line ends a
family.

Other words may be in one or more of four sets:

             ASKING       IDLE_IN_COPIES          STOPWORDS            HARMLESS
             only asks    two copies may          any two problems     leaving it out does not
                          differ in it            may share it         make another problem
    "find"   yes          yes                     yes                  no
    "total"  yes          no: it is asked for     yes                  no
    "the"    no           no                      yes                  yes
    "not"    no           no                      yes                  no
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from importlib.resources import files


def _first_by_word(lines: str) -> dict[str, str]:
    return {word: line.split()[0] for line in lines.split("\n") for word in line.split()}


def _word_to_unit(units: Mapping[str, str]) -> dict[str, str]:
    return {word: unit for unit, words in units.items() for word in words.split()}


_FOLDER = files("truegold.pipeline.near")
_ENGLISH, _CHINESE, _KOREAN = (
    tomllib.loads((_FOLDER / f"{language}_terms.toml").read_text(encoding="utf-8"))
    for language in ("english", "chinese", "korean")
)
TERMS = _first_by_word(_ENGLISH["terms"]) | _first_by_word(_KOREAN["terms"])
"""The term of each English or Korean word of a term: `largest` -> `greatest`."""
EVERYDAY_TERMS = _first_by_word(_ENGLISH["everyday_terms"])
"""The term of each word of stories. Such a term decides less, because a rewording may leave the word out or replace
it."""
SYNONYMS = _first_by_word(_ENGLISH["synonyms"])
"""The word that replaces each synonym before texts are compared."""
UNITS = _word_to_unit(_ENGLISH["units"])
"""The short form of each unit of length. If all units of a geometry problem are replaced, it stays the same problem."""
ASKING = frozenset(_ENGLISH["asking"].split())
"""Words that ask, or that introduce what is given. A rewording may add them or leave them out."""
IDLE_IN_COPIES = frozenset(_ENGLISH["idle_in_copies"].split())
"""Small words that only ask or introduce. A copy may say "what is the number of" for "how many"."""
STOPWORDS = frozenset(_ENGLISH["stopwords"].split())
"""Words that any two problems may share. They count little, and are never the reason to compare two problems."""
HARMLESS = frozenset(_ENGLISH["harmless"].split())
"""Function words. Adding them or leaving them out does not make another problem. "more", "least" and "not" are not
among them."""
CHANGEABLE = frozenset((*TERMS, *EVERYDAY_TERMS, *SYNONYMS, *ASKING, "dollar", "dollars"))
"""Words that a copy may replace by another word."""
CHINESE_TERMS = _first_by_word(_CHINESE["terms"])
"""The term of each Chinese word of a term."""
CHINESE_TERM = re.compile("|".join(sorted(CHINESE_TERMS, key=len, reverse=True)))
"""Matches a Chinese word of a term, the longest word that fits."""
CHINESE_UNIT = re.compile(r"(?:平方|立方)?(?:千米|厘米|分米|毫米|米|(?:km|cm|dm|mm|m)(?:\^?[23])?(?![a-z]))")
"""Matches a unit of length, area or volume in a Chinese text."""
IDLE_CHARACTERS = frozenset(_CHINESE["idle_characters"].strip())
"""Chinese characters that a rewording may add or leave out."""
_CHINESE_UNITS = _word_to_unit(_CHINESE["units"])
_TERM_TABLES = (_ENGLISH["terms"], _ENGLISH["everyday_terms"], _CHINESE["terms"], _KOREAN["terms"])
_FAMILY_LINES = [family.splitlines() for table in _TERM_TABLES for family in table.strip().split("\n\n")]
FAMILIES = {line.split()[0]: position for position, lines in enumerate(_FAMILY_LINES) for line in lines}
"""The number of each term's family of contrasting terms: even and odd form a family, area and perimeter another."""
_PHRASES = [(re.compile(pattern, re.IGNORECASE), replacement) for pattern, replacement in _ENGLISH["phrases"]]
_PHRASE_PARTS = _ENGLISH["phrase_parts"].split("|")


def join_phrases(text: str) -> str:
    """Return the text with one word for each phrase that is a term, such as "at least"."""
    lower = text.lower()
    if any(part in lower for part in _PHRASE_PARTS):
        for pattern, replacement in _PHRASES:
            text = pattern.sub(replacement, text)
    return text


def chinese_unit(unit: str) -> str:
    """Return the unit of length for a match of CHINESE_UNIT: "cm" for "平方厘米" and for "cm^2"."""
    # An exponent is "^2", "^3", "2" or "3".
    base = unit.lower().removeprefix("平方").removeprefix("立方").rstrip("^23")
    return _CHINESE_UNITS.get(base, base)
