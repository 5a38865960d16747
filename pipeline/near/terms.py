"""Words that decide what a problem is: exchanging one for a word of another line makes another problem.

    "the largest odd integer"  ->  greatest · odd · integer
    "the greatest odd integer" ->  greatest · odd · integer     the same
    "the smallest odd integer" ->  least · odd · integer        another problem

The words stand in `english_terms.toml`, `chinese_terms.toml` and `korean_terms.toml`. Each line of a table has the
words of one term, the term itself first; lines without an empty one between them are a family, of which a problem means
this member and not that.

Other words are not terms, and stand in four sets, for four questions about them:

             ASKING       IDLE_IN_COPIES     STOPWORDS              HARMLESS
             merely       may two copies     may any two problems   may it go without making
             asks         differ in it       have it in common      another problem
    "find"   yes          yes                yes                    no
    "total"  yes          no: it is asked    yes                    no
    "the"    no           no                 yes                    yes
    "not"    no           no                 yes                    no
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
"""The term of each English or Korean word that belongs to one."""
EVERYDAY_TERMS = _first_by_word(_ENGLISH["everyday_terms"])
"""Words of stories that decide less: a rewording may leave them out, or say them otherwise."""
SYNONYMS = _first_by_word(_ENGLISH["synonyms"])
"""The word that stands for each of a group of words that mean the same."""
UNITS = _word_to_unit(_ENGLISH["units"])
"""The short form of each unit of length: a problem of geometry is the same in other ones, as long as all change."""
ASKING = frozenset(_ENGLISH["asking"].split())
"""Words that ask, or that introduce what is given: they come and go in other words."""
IDLE_IN_COPIES = frozenset(_ENGLISH["idle_in_copies"].split())
"""Small words that only ask or introduce: a copy may say "what is the number of" for "how many"."""
STOPWORDS = frozenset(_ENGLISH["stopwords"].split())
"""Words that any two problems may share. They count little, and are never the reason to compare two problems."""
HARMLESS = frozenset(_ENGLISH["harmless"].split())
"""Function words that may come and go without making another problem; "more", "least" and "not" are not among them."""
CHANGEABLE = frozenset((*TERMS, *EVERYDAY_TERMS, *SYNONYMS, *ASKING, "dollar", "dollars"))
"""Words that another word may stand for in a copy."""
CHINESE_TERMS = _first_by_word(_CHINESE["terms"])
"""The term of each Chinese word that belongs to one."""
CHINESE_TERM = re.compile("|".join(sorted(CHINESE_TERMS, key=len, reverse=True)))
"""This matches the longest Chinese word of a term."""
CHINESE_UNIT = re.compile(r"(?:平方|立方)?(?:千米|厘米|分米|毫米|米|(?:km|cm|dm|mm|m)(?:\^?[23])?(?![a-z]))")
"""This matches units of length, area and volume in a Chinese text."""
IDLE_CHARACTERS = frozenset(_CHINESE["idle_characters"].strip())
"""Chinese characters that come and go in other words."""
_CHINESE_UNITS = _word_to_unit(_CHINESE["units"])
_TERM_TABLES = (_ENGLISH["terms"], _ENGLISH["everyday_terms"], _CHINESE["terms"], _KOREAN["terms"])
_FAMILY_LINES = [family.splitlines() for table in _TERM_TABLES for family in table.strip().split("\n\n")]
FAMILIES = {line.split()[0]: position for position, lines in enumerate(_FAMILY_LINES) for line in lines}
"""The family of each term: its members stand where another one could, as even and odd, or area and perimeter."""
_PHRASES = [(re.compile(pattern, re.IGNORECASE), replacement) for pattern, replacement in _ENGLISH["phrases"]]
_PHRASE_PARTS = _ENGLISH["phrase_parts"].split("|")


def join_phrases(text: str) -> str:
    """Return the text with each phrase that is one term ("at least") as one word."""
    lower = text.lower()
    if any(part in lower for part in _PHRASE_PARTS):
        for pattern, replacement in _PHRASES:
            text = pattern.sub(replacement, text)
    return text


def chinese_unit(unit: str) -> str:
    """Return the unit of length of a match of CHINESE_UNIT: cm of "平方厘米" and of "cm^2"."""
    # An exponent is "^2", "^3", "2" or "3".
    base = unit.lower().removeprefix("平方").removeprefix("立方").rstrip("^23")
    return _CHINESE_UNITS.get(base, base)
