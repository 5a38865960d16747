r"""Ratios, fractions and bounds in words, as a whole answer.

    3 to 2    five to four    2 is to 1       3:2   5:4   2:1
    7 out of 12    1 in 6                     \frac{7}{12}   \frac{1}{6}
    three fourths    two and a half           \frac{3}{4}   2\frac{1}{2}
    x is at least 3    大于3                   t \ge 3   t > 3, whatever the letter
    all nonnegative real numbers              t \ge 0

Not covered: such words inside of a sentence.
"""

from __future__ import annotations

import re

from truegold.verifiers.written_numbers import BELOW_HUNDRED, ORDINALS, PARTS, TENS, read_run

MAX_SPOKEN_CHARS = 120
"""Longer texts are sentences."""

_WORD = "|".join(sorted(BELOW_HUNDRED, key=len, reverse=True))
_N = rf"(?:-?\d[\d,]*(?:\.\d+)?|(?:{'|'.join(TENS)})[- ](?:{_WORD})|{_WORD})"
_PART_NAMES = PARTS | ORDINALS
_PART = "|".join(sorted(_PART_NAMES, key=len, reverse=True))

_RATIO = re.compile(
    rf"(?:(?:the |a )?ratio (?:of |is )?)?({_N}) (?:is )?to ({_N})(?: (?:is )?to ({_N}))?", re.IGNORECASE
)
_SHARE = re.compile(rf"({_N}) (?:out of|in|of) (?:every )?({_N})(?: [a-z]{{1,20}})?", re.IGNORECASE)
_FRACTION = re.compile(rf"(?:(?:({_N}) and )?(an?|{_N})[- ])({_PART})(?: of [a-z ]{{1,30}})?", re.IGNORECASE)
_SPOKEN = re.compile(
    rf"\b(?:to|out of|in|of|half|halves|(?:non-?)?(?:negative|positive)|minus|quarters?|{_PART}|than|least|most)\b"
    r"|[大小多少]于|[至最][少多]|不[大小超]",
    re.IGNORECASE,
)
_NEGATIVE = re.compile(rf"(?:negative|minus) ({_N})", re.IGNORECASE)
_WRAPPING = re.compile(r"\\(?:text|mathrm|textrm|mbox)\s*\{([^{}]*)\}|\\[ ,;:!](?![A-Za-z])|~")

_BOUNDS = {
    "greater than or equal to": r"\ge", "more than or equal to": r"\ge", "at least": r"\ge", "no less than": r"\ge",
    "not less than": r"\ge", "greater than": ">", "more than": ">", "larger than": ">", "bigger than": ">",
    "less than or equal to": r"\le", "at most": r"\le", "no more than": r"\le", "not more than": r"\le",
    "no greater than": r"\le", "less than": "<", "fewer than": "<", "smaller than": "<",
    "大于或等于": r"\ge", "大于等于": r"\ge", "不小于": r"\ge", "不少于": r"\ge", "至少": r"\ge", "大于": ">",
    "多于": ">", "小于或等于": r"\le", "小于等于": r"\le", "不大于": r"\le", "不超过": r"\le", "至多": r"\le",
    "最多": r"\le", "小于": "<", "少于": "<",
}  # fmt: skip
_SIGNED_REALS = re.compile(
    r"(?:the set of )?(?:all |any )?(?:the )?(non-?negative|non-?positive|positive|negative) "
    r"(?:real numbers?|reals|real values?)(?: of [a-z])?",
    re.IGNORECASE,
)
_SIDES = {"nonnegative": r"\ge", "nonpositive": r"\le", "positive": ">", "negative": "<"}
_OF_THE_NUMBERS = re.compile(r"(?<=\d)的(?:所有|一切)?(?:实数|数)$")
_BOUND = re.compile(
    r"(?:(?:all|any) (?:real )?(?:numbers?|values?|reals|x)(?: of ([a-z]))?(?: that are| which are)?"
    r"|([a-z])(?: is| must be)?)? ?"
    rf"({'|'.join(_BOUNDS)}) ?(\S.*)",
    re.IGNORECASE,
)


def with_spoken_numbers(text: str) -> str:  # noqa: PLR0911, one for each form
    """Return a whole answer in words as a formula; any other text as it is."""
    is_formula = "\\" in text and not text[0].isalpha() and "\\text" not in text and "\\mathrm" not in text
    if is_formula or len(text) > MAX_SPOKEN_CHARS or _SPOKEN.search(text) is None:
        return text
    plain = " ".join(_WRAPPING.sub(r" \1 ", text).split())
    ratio = _RATIO.fullmatch(plain)
    if ratio is not None:
        return ":".join(_digits(part) for part in ratio.groups() if part)
    share = _SHARE.fullmatch(plain)
    if share is not None and not (re.search(r"\d of \d", plain) or (" of " in plain and "out of" not in plain)):
        return rf"\frac{{{_digits(share[1])}}}{{{_digits(share[2])}}}"
    fraction = _FRACTION.fullmatch(plain)
    if fraction is not None:
        return _fraction(fraction)
    negative = _NEGATIVE.fullmatch(plain)
    if negative is not None:
        return f"-{_digits(negative[1])}"
    signed = _SIGNED_REALS.fullmatch(plain)
    if signed is not None:
        return f"t {_SIDES[signed[1].lower().replace('-', '')]} 0"
    bound = _BOUND.fullmatch(_OF_THE_NUMBERS.sub("", plain))
    if bound is not None:
        return f"{bound[1] or bound[2] or 't'} {_BOUNDS[bound[3].lower()]} {bound[4]}"
    return text


def _fraction(match: re.Match[str]) -> str:
    below = _PART_NAMES[match[3].lower()]
    above = "1" if match[2].lower() in ("a", "an") else _digits(match[2])
    whole = _digits(match[1]) if match[1] else ""
    return rf"{whole}\frac{{{above}}}{{{below}}}"


def _digits(text: str) -> str:
    return str(sum(value for value, _ in read_run(text.lower()))) if text[0].isalpha() else text
