r"""Cuts a problem into tokens and says what each distinct token means, once, however often it occurs.

    "Tom buys twenty-five apples at $1.50 each. How many ...?"
    tom · buys · twenty-five · apples · at · 1.50 · each · . · how · many · ... · ?

`TOKENS` is one regular expression for polars (Rust, no look-around): texts are cut in bulk, in threads. `interpret`
gives a token its word stem (the feature that texts are compared by), its quantities, and its kind.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import IntEnum

from truegold.pipeline.near.terms import STOPWORDS
from truegold.pipeline.text.quantities import (
    Quantity,
    chinese_quantities,
    digits_quantity,
    words_quantities,
)
from truegold.verifiers.written_numbers import NUMBER_WORDS, RUN, RUN_WITH_SPACE

CHINESE_NUMERALS = "零〇一二两三四五六七八九十百千万亿"
_HAN_NUMERAL = f"[{CHINESE_NUMERALS}]"

TOKENS = (
    r"(?:\d+\s)?(?:\d+(?:,\d{3})+|\d+)(?:\.\d+)?(?:/\d+)(?:\s?(?:\\?%|％|percent(?-u:\b)))?"
    r"|(?:\d+(?:,\d{3})+|\d+)(?:\.\d+)?(?:(?:st|nd|rd|th)(?-u:\b)|\s?(?:\\?%|％|percent(?-u:\b)))?"
    r"(?:\s(?:dozen|hundred|thousand|million|billion|trillion)(?-u:\b)|[十百千万亿]+)?"
    rf"|{RUN}"
    rf"|(?:{_HAN_NUMERAL}+|\d+)分之(?:{_HAN_NUMERAL}+(?:点{_HAN_NUMERAL}+)?|\d+)|{_HAN_NUMERAL}+(?:点{_HAN_NUMERAL}+)?"
    r"|\\?\p{Latin}+(?:['’]\p{Latin}+)?|\p{Han}|\p{L}+|[?？]|[.!。！]|[=+*/^<>≤≥≠√π∞-]"
)
"""Numbers before words before signs: at each place the first alternative that fits is taken.

Word boundaries are those of ASCII: for any other text the Unicode ones cost ten times as much as all the rest.
"""

TOKEN_WITH_SPACE = (
    r"(?:\d(?:st|nd|rd|th)?|[%％]|percent)\s(?:\d|\\?[%％]|percent|dozen|hundred|thousand|million|billion|trillion)"
    rf"|{RUN_WITH_SPACE}"
)
"""This matches in every text in which one of `TOKENS` has whitespace in it, and in few others."""

CLEANED = (
    (r"\\[dt]?frac\s*\{\s*(\d+)\s*\}\s*\{\s*(\d+)\s*\}", " ${1}/${2} "),
    (r"\\[dt]?frac\s*(\d)\s*(\d)", " ${1}/${2} "),
    (r"\\(?:left|right|displaystyle|quad|qquad|begin|end|text|mathrm|textbf|mathbf)(?-u:\b)|\\[,;!: ]", " "),
    (r"\\leq?(?-u:\b)", "≤"),
    (r"\\geq?(?-u:\b)", "≥"),
)
"""Ways of writing the same formula; they are rewritten before the text is cut."""

CHINESE_UNITS = (("千克", "公斤"), ("千米", "公里"), ("千瓦", "kw"))
"""Units that begin with a numeral, and what is cut in their place: "二十千克" is 20, not 20,000."""

FORMULA_SIGNS = r"\$[^$]+\$|\\[\[(]"
"""This matches in every text that has a formula."""
FORMULA_CHARS = 300
ANY_FORMULAS = r"\$\$[^$]+\$\$|\$[^$\n]+\$|\\\[.+?\\\]|\\\(.+?\\\)"
"""Formulas set in LaTeX; `formula_form` sorts out what a pair of dollar signs encloses by accident."""
FORMULAS = ANY_FORMULAS.replace("+", f"{{1,{FORMULA_CHARS}}}")
"""Formulas of up to FORMULA_CHARS. It takes ten times as long as ANY_FORMULAS and is used only where ANY_FORMULAS has
matched a longer stretch, in which an unpaired dollar sign may have swallowed others."""

CODE = r"```|(?-u:\b)def \w+\(|(?-u:\b)class solution(?-u:\b)|#include\s*<|(?-u:\b)stdin(?-u:\b)"
"""This matches in a text in lower case that asks for a program or shows one."""

_NUMBER_WORDS = frozenset(NUMBER_WORDS)
_PLAIN_WORD = re.compile(r"(?<![\\a-z])[a-z]{3,}")
_FORMULA_NOISE = re.compile(r"\\(?:left|right|displaystyle|,|;|!|:|quad|dfrac|tfrac)|[$\s{}\[\]()]")
_FORMULA_ENDS = re.compile(r"^(?:\$+|\\[\[(])|(?:\$+|\\[\])])$")
_OPERATOR = re.compile(r"[=+*/^<>≤≥_|-]|\\[a-z]")

MAX_WORD = 40
"""Longer words are cut to this many characters."""


class TokenKind(IntEnum):
    """What a token is to the comparison."""

    WORD = 0
    STOP = 1
    NUMERAL = 2
    QUESTION = 3
    PERIOD = 4
    SIGN = 5
    HAN = 6


MARKS = {**dict.fromkeys("?？", TokenKind.QUESTION), **dict.fromkeys(".!。！", TokenKind.PERIOD)}


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a token means to the comparison."""

    kind: TokenKind
    stem: str = ""
    """The feature that texts are compared by; empty for a numeral or a mark."""
    quantities: tuple[Quantity, ...] = ()
    """The quantities of a numeral: several for a run of number words that is no single number."""


def interpret(token: str) -> Meaning:
    """Return what a token of `TOKENS` means."""
    if token[0] in MARKS:
        return Meaning(MARKS[token[0]])
    quantities = _quantities(token)
    if quantities is not None:
        return Meaning(TokenKind.NUMERAL, quantities=tuple(quantities))
    if not token[0].isalpha() and token[0] != "\\":
        return Meaning(TokenKind.SIGN, token)
    if "一" <= token <= "鿿":
        return Meaning(TokenKind.HAN, token)
    return Meaning(TokenKind.STOP, token) if token in STOPWORDS else Meaning(TokenKind.WORD, stem(token[:MAX_WORD]))


def _quantities(token: str) -> list[Quantity] | None:
    """Return the quantities of a token that is a number, however it is written; None for other tokens."""
    first = token[0]
    if first in CHINESE_NUMERALS or "分之" in token:
        return chinese_quantities(token)
    if first.isdecimal() and first.isascii():
        return digits_quantity(token)
    if any(word in _NUMBER_WORDS for word in re.split(r"[\s-]", token, maxsplit=2)[:2]):
        return words_quantities(token) or None
    return None


def formula_form(text: str) -> str:
    """Return a formula without its layout, to be compared; empty for a single variable or number, and for prose."""
    if _PLAIN_WORD.search(text) or not _OPERATOR.search(text):
        return ""
    return _FORMULA_NOISE.sub("", _FORMULA_ENDS.sub("", text)).rstrip(".,;:?!~")


def stem(word: str) -> str:
    """Return a light stem: possessive, plural, -ing, -ed and a final e go, and a doubled consonant before them.

    "baking", "bakes", "baked" -> "bak"; "cookies" -> "cooki"; "stopped" -> "stop"; "\\sqrt" stays.
    """
    if word[0] == "\\" or not word[-1].isascii():
        return word
    for mark in ("'s", "’s"):
        word = word.removesuffix(mark)
    for suffix in ("ing", "ed", "es", "s", "ly"):
        if word.endswith(suffix) and len(word) - len(suffix) >= 3 and not word.endswith("ss"):
            word = word[: -len(suffix)]
            if suffix in ("ing", "ed") and word[-1] == word[-2] and word[-1] not in "ls":
                word = word[:-1]
            break
    word = word[:-1] if len(word) > 3 and word.endswith("e") else word
    return word[:-1] + "i" if len(word) > 2 and word.endswith("y") else word
