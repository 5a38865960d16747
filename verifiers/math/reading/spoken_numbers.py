r"""Rewrites answers in words as formulas: ratios, fractions, numbers and bounds.

    3 to 2    five to four    2 is to 1                3:2   5:4   2:1
    7 out of 12    1 in 6                              \frac{7}{12}   \frac{1}{6}
    three fourths    two and a half                    \frac{3}{4}   2\frac{1}{2}
    negative five    minus one half                    -5   -\frac{1}{2}
    two point five                                     2.5
    all nonnegative real numbers                       t \ge 0
    x is at least 3    greater than 3    大于3         x \ge 3   t > 3   t > 3

A bound without a letter gets the letter t. Not covered: such words within a sentence.
"""

from __future__ import annotations

import re

from truegold.verifiers.math.measures import unit_of
from truegold.verifiers.math.reading.phrases import MAX_PHRASE_CHARS, NUMERAL, TEXT_COMMAND
from truegold.verifiers.math.vocabulary import BOUNDS
from truegold.verifiers.written_numbers import BELOW_HUNDRED, ORDINALS, PARTS, TENS, number_in_words

_WRAPPING = re.compile(rf"{TEXT_COMMAND}|\\[ ,;:!](?![A-Za-z])|~")
"""Typesetting around words."""
_NUMBER_WORD = "|".join(sorted(BELOW_HUNDRED, key=len, reverse=True))
_COUNT = rf"(?:{NUMERAL}|(?:{'|'.join(TENS)})[- ](?:{_NUMBER_WORD})|{_NUMBER_WORD})"
"""12, -3.5, twelve, twenty-five."""
_DIVISORS = PARTS | ORDINALS
"""Maps the word of a part to its divisor: half and halves to 2, fourth and fourths to 4."""
_PART = "|".join(sorted(_DIVISORS, key=len, reverse=True))
_MAY_HOLD = re.compile(
    rf"\b(?:to|out of|in|of|half|halves|(?:non-?)?(?:negative|positive)|minus|point|quarters?|{_PART})\b"
    r"|\b(?:than|least|most)\b|[大小多少]于|[至最][少多]|不[大小超]",
    re.IGNORECASE,
)
"""A quick test: only texts that match are rewritten."""
_RATIO = re.compile(
    rf"(?:(?:the |a )?ratio (?:of |is )?)?({_COUNT}) (?:is )?to ({_COUNT})(?: (?:is )?to ({_COUNT}))?", re.IGNORECASE
)
"""3 to 2, the ratio is 3 to 2, 1 to 2 to 3."""
_SHARE = re.compile(rf"({_COUNT}) (?:out of|in|of) (?:every )?({_COUNT})(?: [a-z]{{1,20}})?", re.IGNORECASE)
"""7 out of 12, 1 in every 6 people. (`5 of 8` also matches, but is not rewritten.)"""
_FRACTION = re.compile(
    rf"(?:(?:({_COUNT}) and )?(an?|{_COUNT})[- ])({_PART})(?: of [a-z ]{{1,30}}| ([a-z]{{1,12}}))?", re.IGNORECASE
)
"""three fourths, one-half of the cake, two and a half, two and a half hours."""
_DIGIT_WORD = "|".join(word for word, value in BELOW_HUNDRED.items() if value < 10)
_DECIMAL = re.compile(rf"({_COUNT}) point ((?:(?:{_DIGIT_WORD})\s?){{1,9}})", re.IGNORECASE)
"""two point five, zero point zero three."""
_NEGATIVE = re.compile(rf"(?:negative|minus) ({_COUNT})", re.IGNORECASE)
"""negative five."""
_SIGNED_REALS = re.compile(
    r"(?:the set of )?(?:all |any )?(?:the )?(non-?negative|non-?positive|positive|negative) "
    r"(?:real numbers?|reals|real values?)(?: of [a-z])?",
    re.IGNORECASE,
)
"""all nonnegative real numbers, positive reals, negative real values of x."""
_SIDES_OF_ZERO = {"nonnegative": r"\ge", "nonpositive": r"\le", "positive": ">", "negative": "<"}
"""Maps a word for a sign to the relation to 0."""
_OF_THE_NUMBERS = re.compile(r"(?<=\d)的(?:所有|一切)?(?:实数|数)$")
"""The 的所有实数 (`all real numbers`) of 大于3的所有实数."""
_BOUND = re.compile(
    r"(?:(?:all|any) (?:real )?(?:numbers?|values?|reals|x)(?: of ([a-z]))?(?: that are| which are)?"
    r"|([a-z])(?: is| must be)?)? ?"
    rf"({'|'.join(BOUNDS)}) ?(\S.*)",
    re.IGNORECASE,
)
"""at least 3, x is at least 3, all values of x greater than 3, 大于3."""


def with_spoken_numbers(text: str) -> str:  # noqa: PLR0911, one for each form
    """Return an answer in words as a formula. Other texts are returned unchanged."""
    is_formula = "\\" in text and not text[0].isalpha() and "\\text" not in text and "\\mathrm" not in text
    if is_formula or len(text) > MAX_PHRASE_CHARS or _MAY_HOLD.search(text) is None:
        return text
    phrase = " ".join(_WRAPPING.sub(r" \1 ", text).split())
    if (ratio := _RATIO.fullmatch(phrase)) is not None:
        return ":".join(_in_digits(part) for part in ratio.groups() if part)
    share = _SHARE.fullmatch(phrase)
    if share is not None and not (re.search(r"\d of \d", phrase) or (" of " in phrase and "out of" not in phrase)):
        return rf"\frac{{{_in_digits(share[1])}}}{{{_in_digits(share[2])}}}"
    if (fraction := _FRACTION.fullmatch(phrase)) is not None:
        return _fraction(fraction) if fraction[4] is None or unit_of(fraction[4]) is not None else text
    if (negative := _NEGATIVE.fullmatch(phrase)) is not None:
        return f"-{_in_digits(negative[1])}"
    if (signed := _SIGNED_REALS.fullmatch(phrase)) is not None:
        return f"t {_SIDES_OF_ZERO[signed[1].lower().replace('-', '')]} 0"
    if (decimal := _DECIMAL.fullmatch(phrase)) is not None:
        return f"{_in_digits(decimal[1])}.{''.join(str(BELOW_HUNDRED[digit.lower()]) for digit in decimal[2].split())}"
    sign, _, rest = phrase.partition(" ")
    if sign.lower() in ("minus", "negative") and (fraction := _FRACTION.fullmatch(rest)) is not None:
        return f"-{_fraction(fraction)}"
    if (bound := _BOUND.fullmatch(_OF_THE_NUMBERS.sub("", phrase))) is not None:
        return f"{bound[1] or bound[2] or 't'} {BOUNDS[bound[3].lower()]} {bound[4]}"
    return text


def _fraction(match: re.Match[str]) -> str:
    below = _DIVISORS[match[3].lower()]
    above = "1" if match[2].lower() in ("a", "an") else _in_digits(match[2])
    whole = _in_digits(match[1]) if match[1] else ""
    unit = rf"\text{{ {match[4]}}}" if match[4] else ""
    return rf"{whole}\frac{{{above}}}{{{below}}}{unit}"


def _in_digits(count: str) -> str:
    """Return 25 for twenty-five. Words for several numbers are returned unchanged."""
    value = number_in_words(count.lower()) if count[0].isalpha() else None
    return count if value is None else str(value)
