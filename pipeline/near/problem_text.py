r"""Reads one problem closely: its numbers, symbols, formulas, terms and words in order, and its question.

    "If $x - y = 6$ and $x + y = 12$, what is the value of $x$?"
    tokens    x - y = 6 x + y = 12 x       formulas  x-y=6, x+y=12      asked  x

`features` describes texts for millions of pairs. It ignores case, single letters and order. The close reading is for
the few pairs with similar features. A text gets one layout (`text_layout`), its words and formulas are read one by one
(`pieces`), and this module combines them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from truegold.pipeline.near import pieces, terms
from truegold.pipeline.near.text_layout import unify_layout

_MATHEMATICS = re.compile(r"\$\$(.+?)\$\$|\$([^$]+?)\$|\\\[(.+?)\\\]|\\\((.+?)\\\)", re.DOTALL)
r"""Mathematics between "$$ $$", "$ $", "\[ \]" or "\( \)"."""
_PLAIN_WORDS = re.compile(r"(?<![\\a-zA-Z])[a-z]{3,}(?![a-zA-Z])")
"""A word of prose. Names of LaTeX commands do not match."""
_OPERAND = r"[(\[]*(?<![a-zA-Z])(?:\d+(?:\.\d+)?[a-zA-Z]?|[a-zA-Z]|π)(?![a-zA-Z])[)\]%]*"
"""A number or a letter, with brackets: "(3x", "π"."""
_EXPRESSION = re.compile(rf"{_OPERAND}(?:\s?[-+*/=<>≤≥^]\s?{_OPERAND})+")
"""A formula outside of dollar signs: "3x + 2 = 8"."""
_HAS_OPERATOR = re.compile(r"[-+*/=<>≤≥^]")
"""A quick test: matches every text with an _EXPRESSION."""


@dataclass(frozen=True)
class ReadText:
    """A problem as its close reading sees it."""

    tokens: tuple[pieces.ReadToken, ...]
    asked: tuple[pieces.ReadToken, ...]
    """The tokens of the question, from the word that asks."""
    sentences: tuple[tuple[pieces.Clause, ...], ...]
    """The sentences. Each is a tuple of clauses, which end at commas and before words such as "if"."""
    formulas: tuple[str, ...]
    """The formulas with a sign of operation, without layout."""
    mathematics: str
    """All mathematics of the text without layout, joined by spaces."""
    drawing: str
    """A digest of the drawings, empty for a text without drawings."""
    is_chinese: bool
    text: str
    """The text in one layout, without drawings."""

    @cached_property
    def forms(self) -> dict[str, set[str]]:
        """The distinct forms of the tokens of each kind."""
        return _forms_by_kind(self.tokens)

    @cached_property
    def asked_forms(self) -> dict[str, set[str]]:
        """The distinct forms of the tokens of the question, by kind."""
        return _forms_by_kind(self.asked)


def read_text(text: str) -> ReadText:
    """Return the close reading of a problem, given as it is written."""
    unified = unify_layout(text)
    reader = _Reader(holds_chinese(text))
    reader.read(terms.join_phrases(unified.text))
    tokens = tuple(reader.tokens)
    return ReadText(
        tokens=tokens,
        asked=tokens[reader.asked] or tokens,
        sentences=tuple(reader.clauses(*ends) for ends in pairwise(sorted(reader.sentence_ends))),
        formulas=tuple(reader.formulas),
        mathematics=" ".join(reader.mathematics),
        drawing=unified.drawing,
        is_chinese=reader.is_chinese,
        text=unified.text,
    )


def holds_chinese(text: str) -> bool:
    """Return whether a text contains Chinese characters."""
    return not text.isascii() and any("\u4e00" <= char <= "\u9fff" for char in text)


def _forms_by_kind(tokens: tuple[pieces.ReadToken, ...]) -> dict[str, set[str]]:
    forms: dict[str, set[str]] = {}
    for kind, form in tokens:
        if kind in forms:
            forms[kind].add(form)
        else:
            forms[kind] = {form}
    return forms


def _is_prose(text: str) -> bool:
    """Return whether the text between two dollar signs is prose: "5 and Ann has " in "$5 and Ann has $3"."""
    words = 0 if "\\" in text else len(_PLAIN_WORDS.findall(text))
    return words > 2 or (words > 0 and text[:1].isdigit())


@dataclass(slots=True)
class _Sentence:
    """The sentence that is being read, as positions among the tokens of the text.

        "Tom has 3 pens.  How many pens does Ann buy  if she has 4 more?"
        tokens  0  1 2             3         4   5              6 7

    The second sentence starts at token 3, asks from token 3 on, and has a condition from token 6 on. So its question
    has tokens 3 to 5.
    """

    start: int
    question: int | None = None
    """The first token of the question."""
    condition: int | None = None
    """The first token of a condition after the question. Text after "if" is given and not asked for."""


class _Reader:
    """Reads one text from its beginning to its end."""

    def __init__(self, is_chinese: bool) -> None:
        self.is_chinese = is_chinese
        self.tokens: list[pieces.ReadToken] = []
        self.formulas: list[str] = []
        self.mathematics: list[str] = []
        self.clause_ends = [0]
        """The positions among the tokens at which clauses end."""
        self.sentence_ends = {0}
        self._clause_starts: set[int] = set()
        """The positions among the tokens at which a word such as "if" begins a clause."""
        self.asked = slice(None)
        """The tokens of the last question; all tokens if the text has no question."""
        self._sentence = _Sentence(0)

    def read(self, text: str) -> None:
        last = 0
        if "$" in text or "\\" in text:
            for match in _MATHEMATICS.finditer(text):
                inside = next(group for group in match.groups() if group is not None)
                if not _is_prose(inside):
                    self._read_prose(text[last : match.start()])
                    self._read_mathematics(inside)
                    last = match.end()
        self._read_prose(text[last:])
        self._end_sentence(asks=False)

    def _read_mathematics(self, text: str) -> None:
        formula = pieces.read_formula(text)
        if formula.compact:
            self.mathematics.append(formula.compact)
            if formula.has_operation:
                self.formulas.append(formula.compact)
        self.tokens += formula.tokens
        if formula.end:
            self._end_sentence(asks=formula.end == "?")

    def _read_prose(self, text: str) -> None:
        if _HAS_OPERATOR.search(text):
            expressions = [pieces.without_layout(expression) for expression in _EXPRESSION.findall(text)]
            self.mathematics += expressions
            self.formulas += expressions
        for piece in pieces.read_prose(pieces.mark_chinese_terms(text) if self.is_chinese else text):
            if piece.has_marks:
                for part in piece.parts:
                    self._read_mark(part)
                    self.tokens += part.tokens
            else:
                self.tokens += piece.tokens

    def _read_mark(self, part: pieces.ProsePart) -> None:
        """End a clause or a sentence, or begin a question, if this part of the text does so."""
        word = part.form.lower() if part.group == "word" else ""
        if part.group == "end":
            self._end_sentence(asks=part.form in "?？")
        elif part.group == "comma":
            self._end_clause()
        elif word in pieces.CLAUSE_STARTS:
            self._end_clause()
            self._clause_starts.add(len(self.tokens))
            sentence = self._sentence
            if word in pieces.ASKS and sentence.question is None:
                sentence.question = len(self.tokens)
            elif word in pieces.CONDITIONS and sentence.question is not None and sentence.condition is None:
                sentence.condition = len(self.tokens)
        elif part.form in pieces.CHINESE_ASKS:
            # 求 (find) comes before the question (求高). 几 and 多 (how many) are inside of it (小红有几个苹果).
            self._sentence.question = len(self.tokens) if part.form == "求" else self.clause_ends[-1]

    def clauses(self, start: int, stop: int) -> tuple[pieces.Clause, ...]:
        """Return the clauses of a sentence. Numbers and letters after a comma continue the list before the comma."""
        clauses: list[pieces.Clause] = []
        for first, end in pairwise([start, *sorted({end for end in self.clause_ends if start < end < stop}), stop]):
            clause = tuple(self.tokens[first:end])
            if clauses and first not in self._clause_starts and all(map(pieces.is_datum, clause)):
                clauses[-1] += clause
            else:
                clauses.append(clause)
        return tuple(clauses)

    def _end_clause(self) -> None:
        self.clause_ends.append(len(self.tokens))

    def _end_sentence(self, *, asks: bool) -> None:
        """End the sentence. `asks` is true if it ends in a question mark."""
        sentence, end = self._sentence, len(self.tokens)
        if end > sentence.start and (asks or sentence.question is not None):
            start = sentence.question
            if start is None:
                start = self.clause_ends[-1] if self.is_chinese else sentence.start
            has_condition = sentence.condition is not None and sentence.condition > start
            self.asked = slice(min(start, end - 1), sentence.condition if has_condition else end)
        self._sentence = _Sentence(end)
        self.sentence_ends.add(end)
        self._end_clause()
