r"""Phrases of English that are one value, as a whole answer.

    3 hours and 20 minutes    3h20min        3 hours 20 minutes
    a dozen    half a million                12   500000
    either 2 or -5                           2 or -5
    all real numbers except 2 and 3          \mathbb{R} \setminus \{2, 3\}
    2 root 3    the cube root of 5           2\sqrt{3}   \sqrt[3]{5}
    half a litre    5 over 8                 0.5 litre   \frac{5}{8}
    between 1 and 3, inclusive               [1, 3]
    yes, it is                               yes
    one hundred and ten                      one hundred ten
    not 10 but 20                            20

Not covered: such phrases inside of a sentence.
"""

from __future__ import annotations

import re

from truegold.verifiers.math.measures import MULTIPLIERS, unit_of
from truegold.verifiers.written_numbers import BELOW_HUNDRED

MAX_PHRASE_CHARS = 120
"""Longer texts are sentences."""

_MAY_HOLD = re.compile(
    r"\b(?:and|not|nicht|pas)\b|^no es |\d\s?(?:h|hrs?|min)\s?\d"
    r"|\b(?:dozen|hundred|[mb]illion|thousand|either|root|except|other than)\b|^(?:yes|no|half)\b| over ",
    re.IGNORECASE,
)
_WRAPPED = re.compile(r"\\(?:text|mathrm|textrm|mbox)\s*\{([^{}]*)\}")
_N = r"-?\d[\d,]*(?:\.\d+)?"
_TWO_MEASURES = re.compile(rf"({_N}) ?([a-z]{{1,10}}) and ({_N}) ?([a-z]{{1,10}})", re.IGNORECASE)
_HOURS_AND_MINUTES = re.compile(r"(\d+) ?(?:h|hrs?) ?(\d+) ?(?:m|mins?)(?: ?(\d+) ?(?:s|secs?))?", re.IGNORECASE)
_SMALLER_PARTS = frozenset({"s", "dollar", "sterling", "month", "kg", "degree"})
"""The dimensions in which a second, smaller unit adds to the first; lengths of feet and inches are besides."""
_MULTIPLE = re.compile(r"(half )?(?:an?|one) (dozen|hundred|thousand|million|billion)(?: [a-z]{1,20})?", re.IGNORECASE)
_HALF_OF_UNIT = re.compile(r"half an? ([a-z]{1,12})", re.IGNORECASE)
_BETWEEN = re.compile(r"(?:x is )?between (-?\d+) and (-?\d+),? \(?inclusive\)?", re.IGNORECASE)
_OVER = re.compile(rf"({_N}) over ({_N})", re.IGNORECASE)
_EITHER = re.compile(r"\beither (?=\S{1,20} or \S{1,20}$)", re.IGNORECASE)
_EXCEPT = re.compile(
    r"(?:x (?:is |can be ))?(?:all|any|every|the) (?:real )?(?:numbers?|reals?|values?)(?: of x| x)?,?"
    r" (?:except|other than|but)(?: for| not)?(?: x ?=)? ([^a-zA-Z]{1,40}(?:(?:and|or) [^a-zA-Z]{1,20})?)",
    re.IGNORECASE,
)
_ROOT = re.compile(rf"(?:({_N}) (?:times )?)?(?:the )?(?:(square|cube) )?root (?:of )?(\d+)", re.IGNORECASE)
_AFFIRMED = re.compile(r"(yes|no)[,.;:] ?((?:[a-z']+,? ?){1,8})\.?", re.IGNORECASE)
_INSTEAD = re.compile(
    r"(?:it(?:'s| is) |es ist |es )?(?:not|nicht|no|pas) (?:es )?\S{1,20},?"
    r" (?:but|it's|it is|sondern|es ist|sino|es|mais) (\S{1,30})",
    re.IGNORECASE,
)
_HUNDRED_AND = re.compile(
    rf"\b(hundred|thousand) and (?=(?:{'|'.join(BELOW_HUNDRED)})\b)(?!\w+ (?:hundred|thousand)\b)", re.IGNORECASE
)
_OPPOSING = re.compile(r"\b(?:yes|no|not|but|however|unless|except|wrong|false|true|cannot|n't)\b|n't\b", re.IGNORECASE)


def with_usual_phrases(text: str) -> str:  # noqa: PLR0911, one for each form
    """Return a whole answer in words as a formula or a quantity; any other text as it is."""
    if len(text) > MAX_PHRASE_CHARS or _MAY_HOLD.search(text) is None:
        return text
    plain = " ".join(_WRAPPED.sub(r" \1 ", text).replace("~", " ").split())
    timed = _HOURS_AND_MINUTES.fullmatch(plain)
    if timed is not None:
        return f"{timed[1]} hours {timed[2]} minutes" + (f" {timed[3]} seconds" if timed[3] else "")
    measures = _TWO_MEASURES.fullmatch(plain)
    if measures is not None and _add_up(measures[2], measures[4]):
        return f"{measures[1]} {measures[2]} {measures[3]} {measures[4]}"
    multiple = _MULTIPLE.fullmatch(plain)
    if multiple is not None:
        value = MULTIPLIERS[multiple[2].lower()]
        return str(value // 2 if multiple[1] else value)
    half = _HALF_OF_UNIT.fullmatch(plain)
    if half is not None:
        return f"0.5 {half[1]}" if unit_of(half[1]) else text
    between = _BETWEEN.fullmatch(plain)
    if between is not None:
        return f"[{between[1]}, {between[2]}]"
    over = _OVER.fullmatch(plain)
    if over is not None:
        return rf"\frac{{{over[1]}}}{{{over[2]}}}"
    excepted = _EXCEPT.fullmatch(plain)
    if excepted is not None:
        values = re.sub(r"\s*,?\s*(?:and|or)\s*", ", ", excepted[1])
        return rf"\mathbb{{R}} \setminus \{{{values}\}}"
    root = _ROOT.fullmatch(plain)
    if root is not None:
        degree = "[3]" if (root[2] or "").lower() == "cube" else ""
        return rf"{root[1] or ''}\sqrt{degree}{{{root[3]}}}"
    affirmed = _AFFIRMED.fullmatch(plain)
    if affirmed is not None:
        return text if _OPPOSING.search(affirmed[2]) else affirmed[1]
    replacement = _INSTEAD.fullmatch(plain)
    if replacement is not None:
        return replacement[1]
    text = _HUNDRED_AND.sub(r"\1 ", text)
    return _EITHER.sub("", text) if "ither" in text else text


def _add_up(larger: str, smaller: str) -> bool:
    """Tell whether a second quantity adds to the first, as inches do to feet; two lengths in metres are two lengths."""
    first, second = unit_of(larger), unit_of(smaller)
    if first is None or second is None or first.dimension != second.dimension or first.factor <= second.factor:
        return False
    dimension = first.dimension[0][0] if len(first.dimension) == 1 else ""
    return dimension in _SMALLER_PARTS or (larger.lower() in ("feet", "foot", "ft") and dimension == "m")
