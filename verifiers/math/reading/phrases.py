r"""Rewrites English phrases that are the whole answer and stand for one value.

    3 hours and 20 minutes    3h20min     -> 3 hours 20 minutes
    a dozen    half a million             -> 12   500000
    half a litre    5 over 8   4 times    -> 0.5 litre   \frac{5}{8}   4
    2 root 3    the cube root of 5        -> 2\sqrt{3}   \sqrt[3]{5}
    between 1 and 3, inclusive            -> [1, 3]
    all real numbers except 2 and 3       -> \mathbb{R} \setminus \{2, 3\}
    either 2 or -5                        -> 2 or -5
    not 10 but 20                         -> 20
    yes, it is                            -> yes
    one hundred and ten                   -> one hundred ten

Not covered: such phrases within a sentence.
"""

from __future__ import annotations

import re

from truegold.verifiers.math.measures import MULTIPLIERS, unit_of
from truegold.verifiers.math.vocabulary import ANY_OF
from truegold.verifiers.written_numbers import BELOW_HUNDRED

MAX_PHRASE_CHARS = 120
"""Maximum length of a phrase, in characters. Longer texts are sentences."""
NUMERAL = r"-?\d[\d,]*(?:\.\d+)?"
"""Matches `12`, `-3.5`, `1,200`."""
TEXT_COMMAND = r"\\(?:text|mathrm|textrm|mbox)\s*\{([^{}]*)\}"
"""A text command, whose words are in the group."""

MAY_HOLD_PHRASE = re.compile(ANY_OF["phrase_marks"], re.IGNORECASE)
"""A quick test: `with_usual_phrases` changes only texts that match."""
_WRAPPED = re.compile(TEXT_COMMAND)
_HOURS_AND_MINUTES = re.compile(r"(\d+) ?(?:h|hrs?) ?(\d+) ?(?:m|mins?)(?: ?(\d+) ?(?:s|secs?))?", re.IGNORECASE)
"""Matches `3h20min`, `3 hrs 20 mins`, `1h 2m 3s`."""
_MINUTES_AND_SECONDS = re.compile(r"(\d+) ?(?:m|mins?) ?(\d+(?:\.\d+)?) ?(?:s|secs?)", re.IGNORECASE)
"""Matches `5 min 30 s`."""
_TWO_MEASURES = re.compile(rf"({NUMERAL}) ?([a-z]{{1,10}}) and ({NUMERAL}) ?([a-z]{{1,10}})", re.IGNORECASE)
"""Matches `3 hours and 20 minutes`."""
_ADDITIVE_DIMENSIONS = frozenset({"s", "dollar", "sterling", "month", "kg", "degree"})
"""Dimensions in which a quantity may have two units that add up: 3 hours and 20 minutes.

Of lengths, only feet and a smaller unit add up."""
_MULTIPLE = re.compile(r"(half )?(?:an?|one) (dozen|hundred|thousand|million|billion)(?: [a-z]{1,20})?", re.IGNORECASE)
"""Matches `a dozen eggs`, `half a million`."""
_HALF_OF_UNIT = re.compile(r"half an? ([a-z]{1,12})", re.IGNORECASE)
"""Matches `half a litre`."""
_BETWEEN = re.compile(r"(?:x is )?between (-?\d+) and (-?\d+),? \(?inclusive\)?", re.IGNORECASE)
"""Matches `between 1 and 3, inclusive`."""
_OVER = re.compile(rf"({NUMERAL}) over ({NUMERAL})", re.IGNORECASE)
"""Matches `5 over 8`."""
_EXCEPT = re.compile(
    r"(?:x (?:is |can be ))?(?:all|any|every|the) (?:real )?(?:numbers?|reals?|values?)(?: of x| x)?,?"
    r" (?:except|other than|but)(?: for| not)?(?: x ?=)? ([^a-zA-Z]{1,40}(?:(?:and|or) [^a-zA-Z]{1,20})?)",
    re.IGNORECASE,
)
"""Matches `all real numbers except 2 and 3`, `x can be any value other than 2`."""
_ROOT = re.compile(rf"(?:({NUMERAL}) (?:times )?)?(?:the )?(?:(square|cube) )?root (?:of )?(\d+)", re.IGNORECASE)
"""Matches `2 root 3`, `5 times the square root of 2`, `the cube root of 5`."""
_TIMES = re.compile(rf"({NUMERAL}) times")
"""Matches `4 times`."""
_AFFIRMED = re.compile(r"(yes|no)[,.;:] ?((?:[a-z']+,? ?){1,8})\.?", re.IGNORECASE)
"""Matches `yes, it is`."""
_OPPOSING = re.compile(r"\b(?:yes|no|not|but|however|unless|except|wrong|false|true|cannot|n't)\b|n't\b", re.IGNORECASE)
"""Words after yes or no that may take it back: `yes, but not always`."""
_INSTEAD = re.compile(
    r"(?:it(?:'s| is) |es ist |es )?(?:not|nicht|no|pas) (?:es )?\S{1,20},?"
    r" (?:but|it's|it is|sondern|es ist|sino|es|mais) (\S{1,30})",
    re.IGNORECASE,
)
"""Matches `not 10 but 20`, `nicht 10, sondern 20`, `pas 10 mais 20`."""
_HUNDRED_AND = re.compile(
    rf"\b(hundred|thousand) and (?=(?:{'|'.join(BELOW_HUNDRED)})\b)(?!\w+ (?:hundred|thousand)\b)", re.IGNORECASE
)
"""The `hundred and` of one hundred and ten. One thousand and two hundred does not match."""
_EITHER = re.compile(r"\beither (?=\S{1,20} or \S{1,20}$)", re.IGNORECASE)
"""The `either` of either 2 or -5."""


def with_usual_phrases(text: str) -> str:  # noqa: PLR0911, PLR0912, one for each form
    """Return an answer in words as a formula or a quantity. Other texts are returned unchanged."""
    if len(text) > MAX_PHRASE_CHARS:
        return text
    phrase = " ".join(_WRAPPED.sub(r" \1 ", text).replace("~", " ").split())
    if (timed := _HOURS_AND_MINUTES.fullmatch(phrase)) is not None:
        return f"{timed[1]} hours {timed[2]} minutes" + (f" {timed[3]} seconds" if timed[3] else "")
    if (timed := _MINUTES_AND_SECONDS.fullmatch(phrase)) is not None:
        return f"{timed[1]} minutes {timed[2]} seconds"
    if (measures := _TWO_MEASURES.fullmatch(phrase)) is not None and _add_up(measures[2], measures[4]):
        return f"{measures[1]} {measures[2]} {measures[3]} {measures[4]}"
    if (multiple := _MULTIPLE.fullmatch(phrase)) is not None:
        value = MULTIPLIERS[multiple[2].lower()]
        return str(value // 2 if multiple[1] else value)
    if (half := _HALF_OF_UNIT.fullmatch(phrase)) is not None:
        return f"0.5 {half[1]}" if unit_of(half[1]) else text
    if (between := _BETWEEN.fullmatch(phrase)) is not None:
        return f"[{between[1]}, {between[2]}]"
    if (over := _OVER.fullmatch(phrase)) is not None:
        return rf"\frac{{{over[1]}}}{{{over[2]}}}"
    if (excepted := _EXCEPT.fullmatch(phrase)) is not None:
        values = re.sub(r"\s*,?\s*(?:and|or)\s*", ", ", excepted[1])
        return rf"\mathbb{{R}} \setminus \{{{values}\}}"
    if (times := _TIMES.fullmatch(phrase)) is not None:
        return times[1]
    if (root := _ROOT.fullmatch(phrase)) is not None:
        degree = "[3]" if (root[2] or "").lower() == "cube" else ""
        return rf"{root[1] or ''}\sqrt{degree}{{{root[3]}}}"
    if (affirmed := _AFFIRMED.fullmatch(phrase)) is not None:
        return text if _OPPOSING.search(affirmed[2]) else affirmed[1]
    if (replacement := _INSTEAD.fullmatch(phrase)) is not None:
        return replacement[1]
    text = _HUNDRED_AND.sub(r"\1 ", text)
    return _EITHER.sub("", text) if "ither" in text else text


def _add_up(larger: str, smaller: str) -> bool:
    """Tell whether quantities in these two units add up: feet and inches, but not metres and metres."""
    first, second = unit_of(larger), unit_of(smaller)
    if first is None or second is None or first.dimension != second.dimension or first.factor <= second.factor:
        return False
    dimension = first.dimension[0][0] if len(first.dimension) == 1 else ""
    return dimension in _ADDITIVE_DIMENSIONS or (larger.lower() in ("feet", "foot", "ft") and dimension == "m")
