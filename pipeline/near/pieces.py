r"""Reads the pieces of a problem (words and formulas) as tokens that carry meaning.

    "at"         no token: a function word           "pens,"     word pen; the comma ends a clause
    "triangle"   term triangle                       "$2x=6$"    quantity 2, symbols x and =, quantity 6
    "two hundred and five"    quantity 205: the words of one number are one piece

Most pieces occur in many texts, so the tokens of each piece are cached.
"""

from __future__ import annotations

import re
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple

from truegold.pipeline.near import terms
from truegold.pipeline.near.tokens import CHINESE_NUMERALS, stem
from truegold.pipeline.text.quantities import chinese_quantities, digits_quantity, words_quantities
from truegold.verifiers.written_numbers import PYTHON_RUN

KNOWN_CHARS = 24
"""The maximum number of characters of a piece that is cached. Longer pieces are mostly whole sentences in Chinese."""
_NUMERAL = f"[{CHINESE_NUMERALS}]+"
_PARTS = re.compile(
    "|".join(
        [
            # "3 1/2", "12.5%", "2nd", "4 hundred", "3万"
            r"(?P<digits>(?:\d+\s+(?=\d+/\d))?\d+(?:\.\d+)?(?:/\d+)?(?:st|nd|rd|th)?(?:\s?%|\s?per\s?cent\b)?"
            r"(?:\s(?:dozen|hundred|thousand|million|billion|trillion)\b|[十百千万亿]+)?)",
            # "twenty-five", "two hundred and five"
            rf"(?P<words>{PYTHON_RUN})",
            # "三分之二", "二十点五"
            rf"(?P<chinese>(?:{_NUMERAL}|\d+)分之(?:{_NUMERAL}(?:点{_NUMERAL})?|\d+)|{_NUMERAL}(?:点{_NUMERAL})?)",
            # Chinese units and terms, as `mark_chinese_terms` writes them
            r"\\UNIT(?P<unit>[a-z]+)",
            r"\\TERM(?P<term>\d+)",
            # "\triangle", outside of dollar signs
            r"(?P<command>\\[a-zA-Z]+)",
            # "pens", "Tom's", "x"
            r"(?P<word>[^\W\d_\u4e00-\u9fff]+(?:['’][a-z]+)?)",
            r"(?P<han>[\u4e00-\u9fff])",
            # The end of a sentence; not the point of "3.5"
            r"(?P<end>[.?!。？！．;；](?=\s|$|[\u4e00-\u9fff\"”])|[？。！])",
            r"(?P<comma>[,，、])",
            r"(?P<operator>[+*^<>≤≥≠=√π∞])",
        ]
    ),
    re.IGNORECASE,
)
"""The parts of a piece. The name of the group is the kind of the part."""
_NUMBER_JOINS = frozenset(
    ["a", "an", "and", "of", "point", "per", "percent", "%", "dozen", "hundred", "thousand", "million"]
)
"""Words, besides number words, that may stand within a number with spaces: "two and a half"."""
_SYMBOLS = re.compile(r"\\[a-zA-Z]+|\d+(?:\.\d+)?|[A-Z]{2,}|[a-zA-Z]|[^\s\w{}\\$,.;?]")
r"""The parts of a formula: `\pi`, `2.5`, the points `ABC`, `x`, `=`."""
_LAYOUT = re.compile(r"[\s{}$]|\\frac")
"""Parts of a formula that are removed before formulas are compared."""
_OPERATION = re.compile(r"[-+*/^<>≤≥≠=|_!]|\\[a-z]")
"""A sign of operation: matches in "x+1" and "n!", but not in "x" or "12"."""

ASKS = frozenset(
    "what how find determine compute calculate evaluate which where when solve simplify describe prove factor"
    " expand name identify decide state specify".split()
)
"""Words that begin a question."""
CONDITIONS = frozenset("if given when assuming provided suppose knowing".split())
"""Words that begin a condition, also within a sentence that asks."""
CLAUSE_STARTS = ASKS | CONDITIONS
"""Words that begin a clause."""
CHINESE_ASKS = frozenset("几多求")
"""Characters that ask: how many (几, 多少), and find (求)."""
_CHINESE_ASKS_ONLY = frozenset("几求")
"""Characters that always ask. 多 is left out, because it may also mean "more"."""

_FUNCTION_WORDS = terms.HARMLESS | {"who", "whom", "whose", "degree", "degrees", "dollar", "dollars"}
"""Words that do not change a problem."""
_WITHOUT_TOKEN = _FUNCTION_WORDS | terms.STOPWORDS | terms.ASKING
"""Words without a meaningful token, since a rewording may replace or drop them: "of", "find", "not"."""
_IDLE_IN_COPIES = _FUNCTION_WORDS | terms.IDLE_IN_COPIES
"""Words that near copies may replace or drop: "of" and "find". "not" is not one of them."""
_QUANTITIES = {"digits": digits_quantity, "words": words_quantities, "chinese": chinese_quantities}
"""Functions that read the quantities of a part, by the kind of the part."""
_TERM_LIST = sorted(set(terms.CHINESE_TERMS.values()))
_TERM_NUMBERS = {term: position for position, term in enumerate(_TERM_LIST)}
"""The number of each Chinese term, which `mark_chinese_terms` writes into the text."""


class ReadKind(StrEnum):
    """The kind of a token."""

    QUANTITY = "quantity"
    SYMBOL = "symbol"
    TERM = "term"
    EVERYDAY = "everyday"
    """A term of stories (`terms.EVERYDAY_TERMS`), which weighs less than other terms."""
    WORD = "word"
    NAME = "name"
    """A word in capitals."""
    UNIT = "unit"
    HAN = "han"
    """A Chinese character that is not part of a term."""
    SMALL = "small"
    """A word that asks, compares or connects, such as "each". It matters only between near copies."""
    IDLE = "idle"
    """The number 1, "A" or "I". These are articles, or data whose order matters."""


class ReadToken(NamedTuple):
    """A part of a text that carries meaning."""

    kind: ReadKind
    form: str


Clause = tuple[ReadToken, ...]


def is_datum(token: ReadToken) -> bool:
    """Return whether a token is a number or a letter."""
    return token.kind in (ReadKind.QUANTITY, ReadKind.IDLE) or (token.kind is ReadKind.SYMBOL and token.form.isalpha())


class ReadFormula(NamedTuple):
    """A formula between two dollar signs."""

    compact: str
    """The formula without layout."""
    has_operation: bool
    tokens: tuple[ReadToken, ...]
    end: str
    """The mark inside the formula that ends a sentence: "?" in "$x = ?$"; empty without such a mark."""


class ProsePart(NamedTuple):
    """A part of a piece of prose: a match of _PARTS."""

    group: str
    """The name of the group that matched, such as "word" or "comma"."""
    form: str
    tokens: tuple[ReadToken, ...]


class ProsePiece(NamedTuple):
    """A word of prose with the marks around it, or several words that are one number."""

    parts: tuple[ProsePart, ...]
    tokens: tuple[ReadToken, ...]
    has_marks: bool
    """Whether the piece ends a clause or a sentence, or begins a question."""
    may_join: bool
    """Whether the piece may be one word of a number with spaces."""


def mark_chinese_terms(text: str) -> str:
    r"""Return a Chinese text with terms and units as commands: "3厘米" becomes "3 \UNITcm "."""
    # 千克 (kilogram) begins with the numeral 千 (thousand). The synonym 公斤 does not.
    text = text.replace("千克", "公斤")
    text = terms.CHINESE_UNIT.sub(lambda match: f" \\UNIT{terms.chinese_unit(match[0])} ", text)
    return terms.CHINESE_TERM.sub(lambda match: f" \\TERM{_TERM_NUMBERS[terms.CHINESE_TERMS[match[0]]]} ", text)


def read_prose(text: str) -> list[ProsePiece]:
    """Return the pieces of a text without formulas."""
    pieces: list[ProsePiece] = []
    number_words: list[str] = []
    for word in text.split():
        piece = _read_piece(word)
        if piece.may_join:
            number_words.append(word)
            continue
        if number_words:
            pieces.append(_read_piece(" ".join(number_words)))
            number_words.clear()
        pieces.append(piece)
    if number_words:
        pieces.append(_read_piece(" ".join(number_words)))
    return pieces


def _read_piece(text: str) -> ProsePiece:
    return _read_short_piece(text) if len(text) <= KNOWN_CHARS else _read_short_piece.__wrapped__(text)


@lru_cache(2**17)
def _read_short_piece(text: str) -> ProsePiece:
    parts = tuple(_read_part(match.lastgroup or "", match[match.lastgroup or 0]) for match in _PARTS.finditer(text))
    has_number = any(part.group in ("digits", "words") for part in parts)
    return ProsePiece(
        parts=parts,
        tokens=tuple(token for part in parts for token in part.tokens),
        has_marks=any(
            part.group in ("end", "comma") or part.form in CHINESE_ASKS or part.form.lower() in CLAUSE_STARTS
            for part in parts
        ),
        may_join=has_number or text.lower().rstrip(".,;?!)") in _NUMBER_JOINS,
    )


@lru_cache(2**16)
def _read_part(group: str, form: str) -> ProsePart:
    tokens = _part_tokens(group, form)
    if not tokens and form in ("1", "A", "I"):
        tokens = (ReadToken(ReadKind.IDLE, form),)
    elif not tokens and group == "word" and len(form) > 1 and form.lower() not in _IDLE_IN_COPIES:
        tokens = (ReadToken(ReadKind.SMALL, form.lower()),)
    return ProsePart(group, form, tokens)


def _part_tokens(group: str, form: str) -> tuple[ReadToken, ...]:
    """Return the tokens of a part, empty for a function word."""
    if group in _QUANTITIES:
        return _number_tokens(group, form)
    token: ReadToken | None = None
    if group == "word":
        token = _word_token(form)
    elif group == "command":
        token = _command_token(form)
    elif group == "term":
        token = ReadToken(ReadKind.TERM, _TERM_LIST[int(form)])
    elif group == "han" and form not in terms.IDLE_CHARACTERS and form not in _CHINESE_ASKS_ONLY:
        token = ReadToken(ReadKind.HAN, form)
    elif group == "unit":
        token = ReadToken(ReadKind.UNIT, form)
    elif group == "operator":
        token = ReadToken(ReadKind.SYMBOL, form)
    return () if token is None else (token,)


def _number_tokens(group: str, form: str) -> tuple[ReadToken, ...]:
    # The number 1 is mostly an article. 50% and 25% become fractions, because they may be written "half" and "quarter".
    # Other percentages keep their sign.
    is_share = form.endswith(("%", "cent")) or form.startswith("百分之")
    values = [value for value, _ in _QUANTITIES[group](form.lower()) if value != "1"]
    return tuple(
        ReadToken(ReadKind.QUANTITY, f"{value}%" if is_share and "/" not in value else value) for value in values
    )


def _command_token(form: str) -> ReadToken | None:
    name = form[1:].lower()
    if name in terms.TERMS:
        return ReadToken(ReadKind.TERM, terms.TERMS[name])
    return None if name in ("frac", "over") else ReadToken(ReadKind.SYMBOL, form)


def _word_token(form: str) -> ReadToken | None:
    lower = form.lower()
    if len(form) == 1:
        return None if form in "aAI" else ReadToken(ReadKind.SYMBOL, form)
    if form.isupper() and form.isascii():
        return ReadToken(ReadKind.NAME, form)
    for kind, forms in (
        (ReadKind.TERM, terms.TERMS),
        (ReadKind.EVERYDAY, terms.EVERYDAY_TERMS),
        (ReadKind.UNIT, terms.UNITS),
    ):
        if lower in forms:
            return ReadToken(kind, forms[lower])
    return None if lower in _WITHOUT_TOKEN else ReadToken(ReadKind.WORD, stem(terms.SYNONYMS.get(lower, lower)))


@lru_cache(2**14)
def read_formula(text: str) -> ReadFormula:
    """Read the text between two dollar signs."""
    tokens: list[ReadToken] = []
    for form in _SYMBOLS.findall(text):
        if form[0] == "\\":
            tokens += _part_tokens("command", form)
        elif form[0].isdigit():
            tokens.append(ReadToken(ReadKind.QUANTITY, digits_quantity(form)[0][0]))
        else:
            tokens.append(ReadToken(ReadKind.SYMBOL, form))
    compact = without_layout(text)
    last = text.rstrip()[-1:]
    return ReadFormula(
        compact=compact,
        has_operation=_OPERATION.search(compact) is not None,
        tokens=tuple(tokens),
        end=last if last in (".", "?", "!") else "",
    )


def without_layout(mathematics: str) -> str:
    r"""Return mathematics without layout and the marks that end a sentence: "\frac{1}{2} x." becomes "12x"."""
    return _LAYOUT.sub("", mathematics.replace("\\over", "/")).strip(".,;?:")
