r"""Reads one problem closely: its numbers, symbols, formulas, terms and words in order, and what is asked for.

    "If $x - y = 6$ and $x + y = 12$, what is the value of $x$?"
    tokens    x - y = 6 x + y = 12 x       formulas  x-y=6, x+y=12      asked  x

The features of a text are made for millions of pairs: they know no case, no single letters and no order. This is for
the few pairs that those features call alike. First each text is brought into one layout, without drawings and requests
for a form:

    "$\dfrac12\,x \leq 1{,}000$. Express your answer as a fraction."  ->  "$\frac{1}{2} x ≤ 1000$."
"""

from __future__ import annotations

import hashlib
import re
import tomllib
from dataclasses import dataclass
from functools import cached_property, lru_cache
from importlib.resources import files
from itertools import pairwise
from typing import NamedTuple

from truegold.pipeline.near import terms
from truegold.pipeline.near.tokens import CHINESE_NUMERALS, stem
from truegold.pipeline.text.quantities import chinese_quantities, digits_quantity, words_quantities
from truegold.verifiers.written_numbers import PYTHON_RUN

_MATHEMATICS = re.compile(r"\$\$(.+?)\$\$|\$([^$]+?)\$|\\\[(.+?)\\\]|\\\((.+?)\\\)", re.DOTALL)
_OPERAND = r"[(\[]*(?<![a-zA-Z])(?:\d+(?:\.\d+)?[a-zA-Z]?|[a-zA-Z]|π)(?![a-zA-Z])[)\]%]*"
_EXPRESSION = re.compile(rf"{_OPERAND}(?:\s?[-+*/=<>≤≥^]\s?{_OPERAND})+")
"""A formula outside of dollar signs."""
_HAS_OPERATOR = re.compile(r"[-+*/=<>≤≥^]")
_OPERATION = re.compile(r"[-+*/^<>≤≥≠=|_!]|\\[a-z]")
_PLAIN_WORDS = re.compile(r"(?<![\\a-zA-Z])[a-z]{3,}(?![a-zA-Z])")
_NUMERAL = f"[{CHINESE_NUMERALS}]+"
_PROSE = re.compile(
    r"(?P<digits>(?:\d+\s+(?=\d+/\d))?\d+(?:\.\d+)?(?:/\d+)?(?:st|nd|rd|th)?(?:\s?%|\s?per\s?cent\b)?"
    r"(?:\s(?:dozen|hundred|thousand|million|billion|trillion)\b|[十百千万亿]+)?)"
    rf"|(?P<words>{PYTHON_RUN})"
    rf"|(?P<chinese>(?:{_NUMERAL}|\d+)分之(?:{_NUMERAL}(?:点{_NUMERAL})?|\d+)|{_NUMERAL}(?:点{_NUMERAL})?)"
    r"|\\UNIT(?P<unit>[a-z]+)|\\TERM(?P<term>\d+)"
    r"|(?P<command>\\[a-zA-Z]+)|(?P<word>[^\W\d_\u4e00-\u9fff]+(?:['’][a-z]+)?)|(?P<han>[\u4e00-\u9fff])"
    r"|(?P<end>[.?!。？！．;；](?=\s|$|[\u4e00-\u9fff\"”])|[？。！])|(?P<comma>[,，、])"
    r"|(?P<operator>[+*^<>≤≥≠=√π∞])",
    re.IGNORECASE,
)
_JOINS = frozenset(["a", "an", "and", "of", "point", "per", "percent", "%", "dozen", "hundred", "thousand", "million"])
KNOWN_CHARS = 24
"""Longer pieces are not remembered."""
Part = tuple[str, str]
"""The name of a group of _PROSE and what it matched."""
_SYMBOLS = re.compile(r"\\[a-zA-Z]+|\d+(?:\.\d+)?|[A-Z]{2,}|[a-zA-Z]|[^\s\w{}\\$,.;?]")
_LAYOUT = re.compile(r"[\s{}$]|\\frac")
_ASKS = frozenset(
    "what how find determine compute calculate evaluate which where when solve simplify describe prove factor"
    " expand name identify decide state specify".split()
)
_CONDITIONS = frozenset("if given when assuming provided suppose knowing".split())
_CLAUSE_STARTS = _ASKS | _CONDITIONS
_IDLE_WORDS = terms.HARMLESS | {"who", "whom", "whose", "degree", "degrees", "dollar", "dollars"}
_IDLE_IN_COPIES = _IDLE_WORDS | terms.IDLE_IN_COPIES
_HARMLESS = _IDLE_WORDS | terms.STOPWORDS | terms.ASKING
_QUANTITIES = {"digits": digits_quantity, "words": words_quantities, "chinese": chinese_quantities}
_TERM_LIST = sorted(set(terms.CHINESE_TERMS.values()))
_TERM_NUMBERS = {term: position for position, term in enumerate(_TERM_LIST)}
_DRAWING = re.compile(r"\[asy\].*?(?:\[/asy\]|$)", re.DOTALL)
_FORM_REQUEST = re.compile(
    r"(?:^|(?<=[.?!\n]))\s*\(?(?:please )?(?:express|enter|give|write|round|leave|state|provide|simplify|put|submit)"
    r" (?:your|the final|the answers?|all (?:possible |the )?(?:values|solutions|answers)|the solutions|answers?|as )"
    r"[^?]*?(?:[.](?=\s|$)|$)",
    re.IGNORECASE,
)
_LAYOUT_TABLE = tomllib.loads(files(__package__).joinpath("latex_layout.toml").read_text("utf-8"))
_COMMANDS = [(re.compile(pattern), replacement) for pattern, replacement in _LAYOUT_TABLE["commands"]]
_GROUPED = re.compile(r"(?<=\d)(?:,|\{,\})(?=\d{3}(?!\d))")
_SIGNS = str.maketrans("×·÷−–—：∶﹕％°~", "**/---:::%  ")


class Sort:
    """What a token is."""

    QUANTITY = "quantity"
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


class ReadToken(NamedTuple):
    """A part of a text that carries meaning."""

    sort: str
    form: str


@dataclass(frozen=True)
class ReadText:
    """What is read of one text."""

    tokens: tuple[ReadToken, ...]
    asked: tuple[ReadToken, ...]
    """The tokens of the question, from the word that asks."""
    clauses: tuple[tuple[ReadToken, ...], ...]
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
    text: str
    """The text in one layout, without drawings."""

    @cached_property
    def forms(self) -> dict[str, set[str]]:
        """The distinct forms of the tokens of each sort."""
        return _forms_by_sort(self.tokens)

    @cached_property
    def asked_forms(self) -> dict[str, set[str]]:
        """The same of the tokens that are asked for."""
        return _forms_by_sort(self.asked)


def read_text(text: str) -> ReadText:
    """Read a problem as it is written."""
    unified, drawing = unify_layout(text)
    return _Reader(holds_chinese(text)).read(unified, drawing)


def holds_chinese(text: str) -> bool:
    """Tell whether Chinese characters stand in a text."""
    return not text.isascii() and any("\u4e00" <= char <= "\u9fff" for char in text)


class _Reader:
    """Reads one text from its beginning to its end."""

    def __init__(self, is_chinese: bool) -> None:
        self._is_chinese = is_chinese
        self._tokens: list[ReadToken] = []
        self._formulas: list[str] = []
        self._mathematics: list[str] = []
        self._small_words: list[str] = []
        # Positions among the tokens: where the sentence starts, where it asks and ceases to, and where clauses end.
        self._sentence = 0
        self._ask: int | None = None
        self._ask_end: int | None = None
        self._asked: tuple[int, int] | None = None
        self._clause_ends = [0]

    def read(self, text: str, drawing: str) -> ReadText:
        last = 0
        whole = text
        text = terms.join_phrases(text)
        for match in _MATHEMATICS.finditer(text) if "$" in text or "\\" in text else ():
            inside = next(group for group in match.groups() if group is not None)
            if _is_prose(inside):
                # A pair of dollar signs that encloses prose are amounts of money.
                continue
            self._read_prose(text[last : match.start()])
            self._read_mathematics(inside)
            last = match.end()
        self._read_prose(text[last:])
        self._end_sentence(asks=False)
        tokens = tuple(self._tokens)
        first, end = self._asked or (0, len(tokens))
        ends = [*self._clause_ends, len(tokens)]
        asked = tokens[first:end] or tokens
        return ReadText(
            tokens,
            asked,
            tuple(tokens[start:stop] for start, stop in pairwise(ends) if stop > start),
            tuple(self._formulas),
            " ".join(self._mathematics),
            tuple(sorted(self._small_words)),
            drawing,
            self._is_chinese,
            whole,
        )

    def _end_sentence(self, asks: bool) -> None:
        end = len(self._tokens)
        if end > self._sentence and (asks or self._ask is not None):
            start = self._ask
            if start is None:
                start = self._clause_ends[-1] if self._is_chinese else self._sentence
            stop = end if self._ask_end is None or self._ask_end <= start else self._ask_end
            self._asked = (min(start, end - 1), stop)
        self._sentence, self._ask, self._ask_end = end, None, None
        self._end_clause()

    def _end_clause(self) -> None:
        self._clause_ends.append(len(self._tokens))

    def _read_mathematics(self, text: str) -> None:
        formula = _read_formula(text)
        if formula.compact:
            self._mathematics.append(formula.compact)
            if formula.has_operation:
                self._formulas.append(formula.compact)
        self._tokens += formula.tokens
        if formula.end:
            self._end_sentence(asks=formula.end == "?")

    def _read_prose(self, text: str) -> None:
        for expression in _EXPRESSION.findall(text) if _HAS_OPERATOR.search(text) else ():
            compact = _compact(expression)
            self._mathematics.append(compact)
            if _OPERATION.search(compact[1:]):
                self._formulas.append(compact)
        if self._is_chinese:
            text = text.replace("千克", "公斤")
            text = terms.CHINESE_UNIT.sub(lambda match: f" \\UNIT{terms.chinese_unit(match[0])} ", text)
            text = terms.CHINESE_TERM.sub(lambda match: f" \\TERM{_TERM_NUMBERS[terms.CHINESE_TERMS[match[0]]]} ", text)
        # Pieces of numbers that stand next to each other are left together ("two hundred").
        numeral: list[str] = []
        for piece in text.split():
            cut = _cut(piece)
            if cut.may_join:
                numeral.append(piece)
                continue
            if numeral:
                self._read_cut(_cut(" ".join(numeral)))
                numeral.clear()
            self._read_cut(cut)
        if numeral:
            self._read_cut(_cut(" ".join(numeral)))

    def _read_cut(self, cut: _Cut) -> None:
        if cut.marks:
            self._read_marks(cut.parts)
        else:
            self._tokens += cut.tokens
            self._small_words += cut.small_words

    def _read_marks(self, parts: tuple[Part, ...]) -> None:
        """Read the parts of a piece in which a clause or a sentence ends, or a question begins."""
        for kind, form in parts:
            if kind == "end":
                self._end_sentence(asks=form in "?？")
            elif kind == "comma":
                self._end_clause()
            elif kind == "word" and form.lower() in _CLAUSE_STARTS:
                self._end_clause()
                if form.lower() in _ASKS and self._ask is None:
                    self._ask = len(self._tokens)
                elif form.lower() in _CONDITIONS and self._ask is not None and self._ask_end is None:
                    # What comes after "if" is given, though it stands in the sentence that asks.
                    self._ask_end = len(self._tokens)
            elif form in "几多求":
                self._ask = len(self._tokens) if form == "求" else self._clause_ends[-1]
            self._tokens += _part_tokens(kind, form)
            self._small_words += _small_words(kind, form)


class _Formula(NamedTuple):
    """What stands between two dollar signs."""

    compact: str
    """The formula without layout."""
    has_operation: bool
    tokens: tuple[ReadToken, ...]
    end: str
    """The mark of the end of a sentence that stands inside."""


@lru_cache(2**14)
def _read_formula(text: str) -> _Formula:
    compact = _compact(text)
    tokens: list[ReadToken] = []
    for form in _SYMBOLS.findall(text):
        if form[0] == "\\":
            tokens += _part_tokens("command", form)
        elif form[0].isdigit():
            tokens.append(ReadToken(Sort.QUANTITY, digits_quantity(form)[0][0]))
        else:
            tokens.append(ReadToken(Sort.SYMBOL, form))
    last = text.rstrip()[-1:]
    return _Formula(compact, bool(_OPERATION.search(compact)), tuple(tokens), last if last in (".", "?", "!") else "")


class _Cut(NamedTuple):
    """What stands between two spaces."""

    parts: tuple[Part, ...]
    tokens: tuple[ReadToken, ...]
    small_words: tuple[str, ...]
    marks: bool
    """Whether a clause or a sentence ends here, or a question begins."""
    may_join: bool
    """Whether it may be a part of a number that goes over a space."""


def _cut(piece: str) -> _Cut:
    """Cut a piece. Most pieces occur in many texts, but for whole sentences without spaces."""
    return _cut_known(piece) if len(piece) <= KNOWN_CHARS else _cut_known.__wrapped__(piece)


@lru_cache(2**17)
def _cut_known(piece: str) -> _Cut:
    parts = tuple((match.lastgroup or "", match[match.lastgroup or 0]) for match in _PROSE.finditer(piece))
    has_number = any(kind in ("digits", "words") for kind, _ in parts)
    return _Cut(
        parts,
        tuple(token for part in parts for token in _part_tokens(*part)),
        tuple(word for part in parts for word in _small_words(*part)),
        any(kind in ("end", "comma") or form in "几多求" or form.lower() in _CLAUSE_STARTS for kind, form in parts),
        has_number or piece.lower().rstrip(".,;?!)") in _JOINS,
    )


@lru_cache(2**16)
def _part_tokens(kind: str, form: str) -> tuple[ReadToken, ...]:
    """Return the tokens of a part; none for a word that carries no meaning of its own."""
    token: ReadToken | None = None
    if kind in _QUANTITIES:
        return _number_tokens(kind, form)
    if kind == "word":
        token = _word_token(form)
    elif kind == "command":
        token = _command_token(form)
    elif kind == "term":
        token = ReadToken(Sort.TERM, _TERM_LIST[int(form)])
    elif kind == "han" and form not in terms.IDLE_CHARACTERS and form not in "几求":
        token = ReadToken(Sort.HAN, form)
    elif kind in ("unit", "operator"):
        token = ReadToken(Sort.UNIT if kind == "unit" else Sort.SYMBOL, form)
    return () if token is None else (token,)


def _number_tokens(kind: str, form: str) -> tuple[ReadToken, ...]:
    # One is mostly an article. Half and quarter are written as percentages, too; other percentages stay what they are.
    is_share = form.endswith(("%", "cent")) or form.startswith("百分之")
    values = [value for value, _ in _QUANTITIES[kind](form.lower()) if value != "1"]
    return tuple(ReadToken(Sort.QUANTITY, f"{value}%" if is_share and "/" not in value else value) for value in values)


def _command_token(form: str) -> ReadToken | None:
    name = form[1:].lower()
    if name in terms.TERMS:
        return ReadToken(Sort.TERM, terms.TERMS[name])
    return None if name in ("frac", "over") else ReadToken(Sort.SYMBOL, form)


def _word_token(form: str) -> ReadToken | None:
    lower = form.lower()
    if len(form) == 1:
        return None if form in "aAI" else ReadToken(Sort.SYMBOL, form)
    if form.isupper() and form.isascii():
        return ReadToken(Sort.NAME, form)
    for sort, forms in ((Sort.TERM, terms.TERMS), (Sort.EVERYDAY, terms.EVERYDAY_TERMS), (Sort.UNIT, terms.UNITS)):
        if lower in forms:
            return ReadToken(sort, forms[lower])
    return None if lower in _HARMLESS else ReadToken(Sort.WORD, stem(terms.SYNONYMS.get(lower, lower)))


def _small_words(kind: str, form: str) -> tuple[str, ...]:
    lower = form.lower()
    if kind != "word" or len(form) == 1 or lower in _IDLE_IN_COPIES or _part_tokens(kind, form):
        return ()
    return (lower,)


def _is_prose(text: str) -> bool:
    words = 0 if "\\" in text else len(_PLAIN_WORDS.findall(text))
    return words > 2 or (words > 0 and text[:1].isdigit())


def _forms_by_sort(tokens: tuple[ReadToken, ...]) -> dict[str, set[str]]:
    forms: dict[str, set[str]] = {}
    for sort, form in tokens:
        if sort in forms:
            forms[sort].add(form)
        else:
            forms[sort] = {form}
    return forms


def _compact(text: str) -> str:
    """Return mathematics without spaces, braces and the marks that end a sentence."""
    return _LAYOUT.sub("", text.replace("\\over", "/")).strip(".,;?:")


def unify_layout(text: str) -> tuple[str, str]:
    """Return the text in one layout, and a digest of its drawings, empty where there are none."""
    drawing = ""
    if "[asy]" in text:
        drawings = re.sub(r"\s", "", "".join(_DRAWING.findall(text)))
        drawing = hashlib.blake2b(drawings.encode("utf-8", "replace")).hexdigest()
        text = _DRAWING.sub(" ", text)
    text = _FORM_REQUEST.sub(" ", text)
    if "\\" in text:
        for pattern, replacement in _COMMANDS:
            text = pattern.sub(replacement, text)
    if not text.isascii() or "~" in text:
        text = text.translate(_SIGNS)
    if "**" in text:
        text = text.replace("**", "^")
    return _GROUPED.sub("", text), drawing
