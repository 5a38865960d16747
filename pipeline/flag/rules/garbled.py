"""Rules about numbers that were damaged or lost in the prompt.

Some prompts and their findings:

    "Tom has thrity-two marbles and buys f1ve more."           garbled_number
    "Tickets cost $ each, and 5% of them are sold."            lost_number
    "Tickets cost $5 each, and % of them are sold."            lost_number
    "Let $x$ % of the tickets be sold."                        nothing: the share is x
"""

from __future__ import annotations

import re
from functools import lru_cache

from truegold.pipeline.flag.rules.detector import Finding, detector
from truegold.pipeline.tables.rows import Row
from truegold.pipeline.text.prose import ending, without_formulas

MAX_CHARS = 10_000
"""The part of a prompt that is read."""

_NUMBER_WORDS = frozenset(
    "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen"
    " seventeen eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand"
    " million".split()
)
MIN_WORD = 5
"""Shorter number words are one letter away from too many other words."""
_REAL_WORDS = frozenset(
    "there these threw trees threes sever seven severn eighty eighth eights weight height sight fights"
    " light night right might tight freight eleventh twelfth thirteenth fourteenth fifteenth sixteenth"
    " seventeenth eighteenth nineteenth hundreds hundredth thousands thousandth millions millionth billion"
    " trillion twenties thirties forties fifties party fort forte fortify fifths fifth nifty thirsty"
    " thrifty safety sixth seventh seventy eighteens sixteens ninth teens fifteens kindred hunted thread"
    " throe thee tree threat spree heven sevens elven eleven steven evens even eleventy tow own neo wto"
    " net semen minion mullion mission lightly nightly eighths mighty weighty righty forth thirds"
    " hundredths fourty".split()
)
_SHORT_REAL_WORDS = frozenset(
    "on no one tow to two too wo tho si ix sic tn te en net teen tee fie for fro fur our fou nie nice in xis sis tem"
    " thee tree there then ore over eve ever even sever eigh seen fort sixt fity tre noe eon".split()
)
"""Words, or parts of words and formulas, that are one slip from a short number word as well."""


def _short_slips() -> dict[str, str]:
    """Return the misspellings of short number words: two letters swapped, a letter doubled, a letter of three lost."""
    slips: dict[str, str] = {}
    for word in _NUMBER_WORDS:
        for index in range(len(word)):
            swapped = word[:index] + word[index + 1 : index + 2] + word[index] + word[index + 2 :]
            doubled = word[:index] + word[index] * 2 + word[index + 1 :]
            shortened = word[:index] + word[index + 1 :]
            if len(word) < MIN_WORD:
                slips |= {swapped: word, doubled: word}
            if len(word) == MIN_WORD:
                slips[shortened] = word
    return {slip: word for slip, word in slips.items() if slip not in _REAL_WORDS | _NUMBER_WORDS | _SHORT_REAL_WORDS}


_SHORT_SLIPS = _short_slips()
"""Other slips of short number words are words themselves too often."""
_WORD = re.compile(r"\b[a-z]{3,11}\b")
_TOW = re.compile(r"\btow\s+(?!trucks|boats|ropes|bars)[a-z]+s\b")
"""The one slip of a short number word that is a word as well: nobody tows several of something."""
_MIXED = re.compile(r"\b(?=[a-z0-9]*\d)(?=[a-z0-9]*[a-z])[a-z0-9]{3,11}\b", re.IGNORECASE)
_DIGIT_LETTERS = [str.maketrans("013457", letters) for letters in ("oieast", "oleast")]
_DIGITS_WITH_LETTERS = re.compile(r"(?<![\w.\\$])(?:\d+[OIl]\d*|[OIl]\d+|\d+[SB]\d+)(?:\.\d+)?(?![\w'-])")


@detector("garbled_number", version="2")
def garbled_number(row: Row) -> list[Finding]:
    """A number in the prompt is misspelt, or has letters among its digits."""
    prose = without_formulas(row["prompt"][:MAX_CHARS])
    if row["domain"] != "math":
        return []
    for match in _WORD.finditer(prose.lower()):
        if (meant := _misspelt(match[0])) is not None and prose[match.start()].islower():
            return [Finding("garbled_number", evidence={"says": match[0], "meant": meant})]
    if swapped := _TOW.search(prose):
        return [Finding("garbled_number", evidence={"says": swapped[0], "meant": "two"})]
    for match in _MIXED.finditer(prose):
        if any(match[0].lower().translate(letters) in _NUMBER_WORDS for letters in _DIGIT_LETTERS):
            return [Finding("garbled_number", evidence={"says": match[0]})]
    letters = set(re.findall(r"(?<![A-Za-z\d])[OIlSB](?![A-Za-z])", row["prompt"]))
    for match in _DIGITS_WITH_LETTERS.finditer(prose):
        if not letters & set(match[0]):
            return [Finding("garbled_number", evidence={"says": match[0]})]
    return []


@lru_cache(maxsize=20_000)
def _misspelt(word: str) -> str | None:
    """Return the number word that is one slip away: a letter more, less or other, or two neighbours swapped."""
    if word in _NUMBER_WORDS or word in _REAL_WORDS or word.rstrip("s") in _NUMBER_WORDS:
        return None
    if word in _SHORT_SLIPS or len(word) < MIN_WORD:
        return _SHORT_SLIPS.get(word)
    return next((meant for meant in _NUMBER_WORDS if len(meant) >= MIN_WORD and _is_one_slip(word, meant)), None)


def _is_one_slip(word: str, meant: str) -> bool:
    if abs(len(word) - len(meant)) > 1 or word[0] != meant[0]:
        return False
    start = next((index for index, (a, b) in enumerate(zip(word, meant, strict=False)) if a != b), len(word))
    rest, other = word[start:], meant[start:]
    swapped = rest[1:2] + rest[:1] + rest[2:] == other
    return swapped or rest[1:] == other[1:] or rest[1:] == other or rest == other[1:]


_BARE_SIGN = re.compile(
    r"(?<![^\s])\$(?=\s+(?:each|per|for|in|on|and|to|a|an|more|less|every|while|before|after|of|from|with|at|the)\b|\s*[,.?]\s)"
    r"|\b(?:is|are|was|were|has|have|by|of|to|and|at|only|a|an|than|about|for|gives?|saves?|spends?|pays?|gets?|buys?|sells?)"
    r"\s+%(?=\s|[.,])"
)


@detector("lost_number", version="1")
def lost_number(row: Row) -> list[Finding]:
    """A sign of money or percent, stands without its number."""
    prompt = row["prompt"][:MAX_CHARS]
    # Dollar signs that are not followed by a digit open formulas, unless there is only one of them.
    if row["domain"] != "math" or "\\" in prompt or len(re.findall(r"\$(?!\d)", prompt)) > 1:
        return []
    match = _BARE_SIGN.search(prompt)
    if match is None:
        return []
    return [Finding("lost_number", evidence={"at": ending(prompt[max(0, match.start() - 20) : match.end() + 20])})]
