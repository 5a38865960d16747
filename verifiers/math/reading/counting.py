r"""Binomial coefficients and number bases, in the spellings that no command of LaTeX has.

    {}_{12}C_5   ^{12}C_5   {n \choose k}   5 \text{ choose } 2   C^3_{12}        \binom{12}{5} ...
    101 base 2   777 (base 8)   231_{\text{five}}   101 in binary                  101_{2} ...

`12C5` and `C(12, 5)` may be a product and a point: they are another reading (`alternatives`).
"""

from __future__ import annotations

import re

from truegold.verifiers.written_numbers import BELOW_HUNDRED

_INDEX = r"(?:\{\s*(\w{1,8})\s*\}|(\w))"
_LETTER = r"(?:\\(?:mathrm|text|rm|mathbf)\s*)?\{?\s*([CP])\s*\}?"
_PRESCRIPT = re.compile(rf"(?:\{{\s*\}}|\\,)?\s*[_^]\s*{_INDEX}\s*{_LETTER}\s*_\s*{_INDEX}")
_SWAPPED = re.compile(r"(?<![A-Za-z\\])([CAP])\s*\^\s*(?:\{\s*(\d{1,4})\s*\}|(\d))\s*_\s*(?:\{\s*(\d{1,4})\s*\}|(\d))")
_BRACED_CHOOSE = re.compile(r"\{([^{}]{1,40})\\choose([^{}]{1,40})\}")
_CHOOSE = re.compile(
    r"(?<![\w}])(\d{1,4}|[A-Za-z])\s*(?:\\text\{\s*choose\s*\}|\\choose(?![A-Za-z])|choose)\s*(\d{1,4}|[A-Za-z])(?!\w)"
)
_COUNT_CALL = re.compile(
    r"(?<![A-Za-z\\])(?:([CP])\s*\(\s*(\w{1,6})\s*,\s*(\w{1,6})\s*\)|(?<!\d)(\d{1,4})\s?([CP])\s?(\d{1,4})(?!\d))"
)

_BASE_NAMES = {"binary": 2, "octal": 8, "decimal": 10, "hexadecimal": 16}
_BASE_WORDS = "|".join(word for word, value in BELOW_HUNDRED.items() if 2 <= value <= 20)
_NUMERAL = r"\(?([0-9][0-9A-Fa-f]{0,60})\)?"
_WORDED_BASE = re.compile(
    rf"{_NUMERAL}\s*\(?(?:\\text\s*\{{\s*\(?)?\s*(?:(?:in|to)\s+)?"
    rf"(?:(?:the\s+)?base[-\s]*\}}?\s*(?:(\d{{1,2}})|({_BASE_WORDS}))|({'|'.join(_BASE_NAMES)}))\s*\)?\s*\}}?\s*\)?",
    re.IGNORECASE,
)
_WORDED_DIGITS = re.compile(r"\\(?:text|mathrm)\s*\{\s*([0-9A-F]{1,40})\s*\}(?=\s*_)")
_WORDED_SUBSCRIPT = re.compile(
    rf"_\s*\{{?\s*\\(?:text|mathrm)\s*\{{\s*(?:base\s+)?({_BASE_WORDS}|\d{{1,2}})\s*\}}\s*\}}?"
    rf"|_\s*\{{\s*({_BASE_WORDS})\s*\}}"
)


def with_counts(text: str) -> str:
    r"""Return the text with binomial coefficients as `\binom`, and bases as subscripts."""
    if "_" in text and ("C" in text or "P" in text or "A" in text):
        text = _PRESCRIPT.sub(_from_prescript, text)
        text = _SWAPPED.sub(lambda m: f"{m[1]}_{{{m[4] or m[5]}}}^{{{m[2] or m[3]}}}", text)
    if "choose" in text:
        text = _BRACED_CHOOSE.sub(r"\\binom{\1}{\2}", text)
        text = _CHOOSE.sub(r"\\binom{\1}{\2}", text)
    if "_" in text and "{" in text:
        text = _WORDED_DIGITS.sub(r"\1", text)
        text = _WORDED_SUBSCRIPT.sub(lambda m: f"_{{{_base(m[1] or m[2])}}}", text)
    if "ase" in text or "BASE" in text or "binary" in text or "decimal" in text or "octal" in text:
        worded = _WORDED_BASE.fullmatch(text)
        if worded is not None:
            base = worded[2] or BELOW_HUNDRED.get((worded[3] or "").lower()) or _BASE_NAMES[worded[4].lower()]
            return f"{worded[1]}_{{{base}}}"
    return text


def with_calls_as_counts(text: str) -> str:
    """Return `12C5` and `C(12, 5)` as binomial coefficients."""
    return _COUNT_CALL.sub(lambda m: _count(m[1] or m[5], m[2] or m[4], m[3] or m[6]), text)


def _from_prescript(match: re.Match[str]) -> str:
    return _count(match[3], match[1] or match[2], match[4] or match[5])


def _count(letter: str, total: str, chosen: str) -> str:
    return f"\\binom{{{total}}}{{{chosen}}}" if letter == "C" else f" perm({total}, {chosen})"


def _base(word: str) -> int:
    return int(word) if word.isdigit() else BELOW_HUNDRED[word.lower()]
