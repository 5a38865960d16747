r"""Reads one problem closely: its numbers, symbols, formulas, terms and words in order, and which of them are asked for.

    "If $x - y = 6$ and $x + y = 12$, what is the value of $x$?"
    tokens    x - y = 6 x + y = 12 x       formulas  x-y=6, x+y=12      asked  x

What `features` reads of a text is made for millions of pairs: it knows no case, no single letters and no order. This
is for the few pairs that those features call alike. Ways of writing the same formula are made one, drawings in
Asymptote become one token, and sentences that only ask for a form of the answer are left out.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from itertools import pairwise

from truegold.pipeline.dedup.near.number_words import PYTHON_RUN
from truegold.pipeline.dedup.near.quantities import (
    chinese_quantities,
    digits_quantity,
    words_quantities,
)
from truegold.pipeline.dedup.near.reading.terms import (
    ASKING,
    CHINESE_TERM,
    CHINESE_TERMS,
    EVERYDAY_TERMS,
    SYNONYMS,
    TERMS,
    join_phrases,
)
from truegold.pipeline.dedup.near.words import CHINESE_NUMERALS, HARMLESS, STOPWORDS, stem

MAX_CHARS = 6_000
"""Of a longer text only the beginning is read."""


class Sort(Enum):
    """What a token is."""

    NUMBER = "number"
    SYMBOL = "symbol"
    TERM = "term"
    EVERYDAY = "everyday"
    """A term of stories, which decides less."""
    WORD = "word"
    NAME = "name"
    """A word in capitals."""
    UNIT = "unit"
    HAN = "han"
    """A Chinese character that is of no term."""


@dataclass(frozen=True, slots=True)
class Token:
    """A part of a text that carries meaning."""

    sort: Sort
    form: str


@dataclass(frozen=True)
class ReadText:
    """What is read of one text."""

    tokens: tuple[Token, ...]
    asked: tuple[Token, ...]
    """The tokens of the question, from the word that asks."""
    clauses: tuple[tuple[Token, ...], ...]
    """The tokens between commas, the ends of sentences, and words such as "if"."""
    formulas: tuple[str, ...]
    """The formulas with a sign of operation, without layout."""
    mathematics: str
    """All of the text's mathematics without layout, one part after the other."""
    small_words: tuple[str, ...]
    """The words that ask, compare and connect, sorted: they tell near copies apart, and nothing about rewordings."""
    drawing: str
    """A digest of the drawings, empty where there is none."""
    is_chinese: bool


_DRAWING = re.compile(r"\[asy\].*?(?:\[/asy\]|$)", re.DOTALL)
_FORM_REQUEST = re.compile(
    r"(?:^|(?<=[.?!\n]))\s*\(?(?:please )?(?:express|enter|give|write|round|leave|state|provide|simplify|put|submit)"
    r" (?:your|the final|the answers?|all (?:possible |the )?(?:values|solutions|answers)|the solutions|answers?|as )"
    r"[^?]*?(?:[.](?=\s|$)|$)",
    re.IGNORECASE,
)
_LAYOUT = (
    (re.compile(r"\\\$"), " "),
    (re.compile(r"\\(?:begin|end)\s*\{\w+\*?\}(?:\s*\{[|clr ]+\})?|\\hline|(?<!\\)&"), " "),
    (re.compile(r"\\\\"), " "),
    (re.compile(r"\\%|％"), "%"),
    (re.compile(r"\^\s*\{?\s*\\circ\s*\}?|°|\\degree"), " "),
    (re.compile(r"\\[dtc]frac"), r"\\frac"),
    (re.compile(r"\\frac\s*(\d)\s*(\d)"), r"\\frac{\1}{\2}"),
    (re.compile(r"\\(?:left|right|big|Big|bigg|Bigg|displaystyle|limits|quad|qquad|ldots|cdots|dots[bmc]?)(?![a-zA-Z])"), " "),
    (re.compile(r"\\[,;!: ]|~"), " "),
    (
        re.compile(
            r"\\(?:text|mathrm|mathbf|mathbb|mathcal|textbf|textit|operatorname|bold|bm|boldsymbol|vec|overline|mbox|rm|bf|it|cal)"
            r"(?![a-zA-Z])"
        ),
        " ",
    ),
    (re.compile(r"\\(?:le|leq|leqslant)(?![a-zA-Z])"), "≤"),
    (re.compile(r"\\(?:ge|geq|geqslant)(?![a-zA-Z])"), "≥"),
    (re.compile(r"\\(?:ne|neq)(?![a-zA-Z])"), "≠"),
    (re.compile(r"\\(?:times|cdot|ast)(?![a-zA-Z])|×|·"), "*"),
    (re.compile(r"\\div(?![a-zA-Z])|÷"), "/"),
    (re.compile(r"\\pi(?![a-zA-Z])"), "π"),
    (re.compile(r"\*\*"), "^"),
    (re.compile(r"(?<=\d),(?=\d{3}(?!\d))|(?<=\d)\{,\}(?=\d{3})"), ""),
    (re.compile(r"−|–|—"), "-"),
    (re.compile(r"：|∶|﹕"), ":"),
)
_MATHEMATICS = re.compile(
    r"\$\$(.+?)\$\$|\$([^$]+?)\$|\\\[(.+?)\\\]|\\\((.+?)\\\)",
    re.DOTALL,
)
_EXPRESSION = re.compile(r"[(\[]*[\da-z][\d.a-z%()\[\]^√π]*(?:\s?[-+*/=<>≤≥^]\s?[\d.a-z%()\[\]^√π]+)+", re.IGNORECASE)
"""A formula outside of dollar signs."""
_OPERATION = re.compile(r"[-+*/^<>≤≥≠=|_!]|\\[a-z]")
_PLAIN_WORDS = re.compile(r"(?<![\\a-zA-Z])[a-z]{3,}(?![a-zA-Z])")
_PROSE = re.compile(
    r"(?P<digits>(?:\d+\s+(?=\d+/\d))?\d+(?:\.\d+)?(?:/\d+)?(?:st|nd|rd|th)?(?:\s?%|\s?percent\b)?"
    r"(?:\s(?:dozen|hundred|thousand|million|billion|trillion)\b|[十百千万亿]+)?)"
    rf"|(?P<words>{PYTHON_RUN})"
    rf"|(?P<chinese>(?:[{CHINESE_NUMERALS}]+|\d+)分之(?:[{CHINESE_NUMERALS}]+(?:点[{CHINESE_NUMERALS}]+)?|\d+)"
    rf"|[{CHINESE_NUMERALS}]+(?:点[{CHINESE_NUMERALS}]+)?)"
    r"|(?P<command>\\[a-zA-Z]+)|(?P<word>[^\W\d_\u4e00-\u9fff]+(?:['’][a-z]+)?)|(?P<han>[\u4e00-\u9fff])"
    r"|(?P<end>[.?!。？！．;；](?=\s|$|[\u4e00-\u9fff\"”])|[？。！])|(?P<comma>[,，、])"
    r"|(?P<operator>[-+*/^<>≤≥≠=√π∞|:_()\[\]&!])",
    re.IGNORECASE,
)
_SYMBOLS = re.compile(r"\\[a-zA-Z]+|\d+(?:\.\d+)?|[A-Z]{2,}|[a-zA-Z]|[^\s\w{}\\$,.;?]|,")
_ASKS = frozenset(
    "what how find determine compute calculate evaluate which where when who solve simplify describe prove factor expand"
    " name identify decide state specify".split()
)
_CLAUSE_STARTS = _ASKS | {"if", "given", "suppose", "when"}
_UNITS = {
    **dict.fromkeys("cm centimeter centimeters centimetre centimetres".split(), "cm"),
    **dict.fromkeys("m meter meters metre metres".split(), "m"),
    **dict.fromkeys("km kilometer kilometers kilometre kilometres".split(), "km"),
    **dict.fromkeys("mm dm ft foot feet inch inches yard yards mile miles unit units".split(), "length"),
    **{"foot": "ft", "feet": "ft", "ft": "ft", "inch": "in", "inches": "in", "yard": "yd", "yards": "yd"},
    **{"mile": "mi", "miles": "mi", "unit": "unit", "units": "unit", "mm": "mm", "dm": "dm"},
}
_CHINESE_UNITS = re.compile(
    r"(?:平方|立方)?(?:千米|厘米|分米|毫米|米|(?:km|cm|dm|mm|m)(?:\^?[23])?(?![a-z]))"
)
_IDLE_HAN = frozenset("的了是在有个和把这那它其中每共一为要着地得所以到已知求问请用将成就需后如果那么与及各该现又只再从被给比按照样块条张只支本种些元角分")
_SMALL_WORDS = {
    **dict.fromkeys("find determine compute calculate evaluate solve what how many much give given".split(), "find"),
    **dict.fromkeys("let suppose assume consider if".split(), "let"),
}
"""Small words that say the same."""
_HARMLESS = HARMLESS | STOPWORDS | ASKING | {"degree", "degrees", "degre"}


@lru_cache(4096)
def read_text(text: str) -> ReadText:
    """Read a problem as it is written."""
    text = text[:MAX_CHARS]
    drawings = "".join(_DRAWING.findall(text))
    drawing = hashlib.blake2b(re.sub(r"\s", "", drawings).encode("utf-8", "replace")).hexdigest() if drawings else ""
    text = _DRAWING.sub(" ", text)
    text = _FORM_REQUEST.sub(" ", text)
    for pattern, replacement in _LAYOUT:
        text = pattern.sub(replacement, text)
    is_chinese = any("\u4e00" <= char <= "\u9fff" for char in text)
    return _Reader(is_chinese).read(text, drawing)


class _Reader:
    def __init__(self, is_chinese: bool) -> None:
        self._is_chinese = is_chinese
        self._tokens: list[Token] = []
        self._formulas: list[str] = []
        self._mathematics: list[str] = []
        self._small_words: list[str] = []
        self._sentence = 0
        """Where the sentence starts that is being read, among the tokens."""
        self._ask: int | None = None
        """Where the sentence asks."""
        self._asked: tuple[int, int] | None = None
        self._clause = 0
        self._clause_ends: list[int] = []

    def read(self, text: str, drawing: str) -> ReadText:
        last = 0
        for match in _MATHEMATICS.finditer(text):
            inside = next(group for group in match.groups() if group is not None)
            if len(_PLAIN_WORDS.findall(inside)) > 2 and "\\" not in inside:
                # A pair of dollar signs that encloses prose are amounts of money.
                continue
            self._read_prose(text[last : match.start()])
            self._read_mathematics(inside)
            last = match.end()
        self._read_prose(text[last:])
        self._end_sentence(asks=False)
        tokens = tuple(self._tokens)
        first, end = self._asked or (0, len(tokens))
        return ReadText(
            tokens,
            tokens[first:end] or tokens,
            tuple(tokens[start:stop] for start, stop in pairwise([0, *self._clause_ends, len(tokens)]) if stop > start),
            tuple(self._formulas),
            " ".join(self._mathematics),
            tuple(sorted(self._small_words)),
            drawing,
            self._is_chinese,
        )

    def _end_sentence(self, asks: bool) -> None:
        end = len(self._tokens)
        if end > self._sentence and (asks or self._ask is not None):
            start = self._ask
            if start is None:
                start = self._clause if self._is_chinese else self._sentence
            self._asked = (min(start, end - 1), end)
        if end > self._sentence or self._ask is not None:
            self._sentence, self._ask = end, None
        self._end_clause()

    def _end_clause(self) -> None:
        self._clause = len(self._tokens)
        self._clause_ends.append(self._clause)

    def _read_mathematics(self, text: str) -> None:
        ends_sentence = bool(re.search(r"[.?!]\s*$", text))
        compact = _compact(text)
        if compact:
            self._mathematics.append(compact)
            if _OPERATION.search(compact):
                self._formulas.append(compact)
        for form in _SYMBOLS.findall(text):
            if form == "," or form in "{}":
                continue
            if form[0].isdigit():
                self._tokens.append(Token(Sort.NUMBER, _plain_number(form)))
            elif form[:1] == "\\":
                self._add_command(form)
            else:
                self._tokens.append(Token(Sort.SYMBOL, form))
        if ends_sentence:
            self._end_sentence(asks=text.rstrip().endswith("?"))

    def _add_command(self, form: str) -> None:
        name = form[1:].lower()
        if name in TERMS:
            self._tokens.append(Token(Sort.TERM, TERMS[name]))
        elif name not in ("frac", "over"):
            self._tokens.append(Token(Sort.SYMBOL, form))

    def _read_prose(self, text: str) -> None:
        for expression in _EXPRESSION.findall(text):
            compact = _compact(expression)
            self._mathematics.append(compact)
            if _OPERATION.search(compact[1:]):
                self._formulas.append(compact)
        if self._is_chinese:
            text = self._mark_chinese(text)
        text = join_phrases(text)
        for match in _PROSE.finditer(text):
            kind = match.lastgroup or ""
            self._read_part(kind, match[0])

    def _mark_chinese(self, text: str) -> str:
        """Return the text with units and terms as words between signs that occur nowhere else."""
        text = _CHINESE_UNITS.sub(lambda match: f" \\UNIT{_unit_letters(match[0])} ", text)
        return CHINESE_TERM.sub(lambda match: f" \\TERM{_letters(CHINESE_TERMS[match[0]])} ", text)

    def _read_part(self, kind: str, form: str) -> None:
        tokens = self._tokens
        if kind == "digits":
            is_share = form.endswith(("%", "percent"))
            for value, _ in digits_quantity(form.lower()):
                # Half and quarter are written as percentages, too; other percentages are no plain numbers.
                tokens.append(Token(Sort.NUMBER, f"{value}%" if is_share and "/" not in value else value))
        elif kind == "words":
            is_share = form.lower().endswith(("%", "percent", "per cent"))
            values = [value for value, _ in words_quantities(form.lower()) if value != "1"]
            tokens.extend(Token(Sort.NUMBER, f"{value}%" if is_share and "/" not in value else value) for value in values)
        elif kind == "chinese":
            values = [value for value, _ in chinese_quantities(form) if value != "1"]
            tokens.extend(Token(Sort.NUMBER, f"{value}%" if form.startswith("百分之") else value) for value in values)
        elif kind == "command":
            if form.startswith("\\UNIT"):
                tokens.append(Token(Sort.UNIT, form[5:]))
            elif form.startswith("\\TERM"):
                tokens.append(Token(Sort.TERM, _TERM_OF_LETTERS[form[5:]]))
            else:
                self._add_command(form)
        elif kind == "operator":
            if form not in "()[]|:!&_":
                tokens.append(Token(Sort.SYMBOL, form))
        elif kind == "end":
            self._end_sentence(asks=form in "?？")
        elif kind == "comma":
            self._end_clause()
        elif kind == "han":
            if form in "几求":
                self._ask = self._clause if form == "几" else len(tokens)
            elif form not in _IDLE_HAN:
                if form == "多":
                    self._ask = self._clause
                tokens.append(Token(Sort.HAN, form))
        else:
            self._read_word(form)

    def _read_word(self, form: str) -> None:
        lower = form.lower()
        if lower in _CLAUSE_STARTS:
            self._end_clause()
        if lower in _ASKS and self._ask is None:
            self._ask = len(self._tokens)
        if len(form) == 1:
            if form not in "aAI":
                self._tokens.append(Token(Sort.SYMBOL, form))
            return
        if form.isupper() and form.isascii():
            self._tokens.append(Token(Sort.NAME, form))
        elif lower in TERMS:
            self._tokens.append(Token(Sort.TERM, TERMS[lower]))
        elif lower in EVERYDAY_TERMS:
            self._tokens.append(Token(Sort.EVERYDAY, EVERYDAY_TERMS[lower]))
        elif lower in _UNITS:
            self._tokens.append(Token(Sort.UNIT, _UNITS[lower]))
        elif lower not in _HARMLESS:
            self._tokens.append(Token(Sort.WORD, stem(SYNONYMS.get(lower, lower))))
        elif lower not in HARMLESS:
            self._small_words.append(_SMALL_WORDS.get(lower, lower))


def _unit_letters(unit: str) -> str:
    """Return letters for a Chinese unit or its sign, the same for both."""
    base = unit.lower().replace("平方", "").replace("立方", "").rstrip("^23")
    names = {"千米": "km", "厘米": "cm", "分米": "dm", "毫米": "mm", "米": "m"}
    return names.get(base, base)


def _letters(term: str) -> str:
    """Return a term in letters, for it stands as a command while its text is cut."""
    return "".join(f"{chr(97 + (ord(char) >> 10) % 26)}{chr(97 + (ord(char) >> 5) % 26)}{chr(97 + ord(char) % 26)}{chr(97 + (ord(char) * 7) % 25)}" for char in term)


_TERM_OF_LETTERS = {_letters(term): term for term in CHINESE_TERMS.values()}


def _compact(text: str) -> str:
    """Return mathematics without spaces, braces and the marks that end a sentence."""
    return re.sub(r"[\s{}$]|\\frac", "", text.replace("\\over", "/")).strip(".,;?:")


def _plain_number(form: str) -> str:
    values: Iterator[tuple[str, float]] = iter(digits_quantity(form))
    return next(values)[0]
