"""Cuts texts into tokens and formulas, and interprets each distinct token only once.

    "tom has 3 apples, ann has 5."  pieces  tom · has · 3 · apples, · ann · has · 5.
                                    tokens  tom · has · 3 · apples · ann · has · 5 · .

Texts are first split into pieces at spaces, which is ten times faster than the regular expression for tokens. Only new
pieces are cut into tokens. A text in which a token may contain a space ("two hundred", "5 %", "3 1/2") is not split. So
splitting does not change the tokens.

`TOKENS` is a regular expression for polars (Rust, without look-around), which cuts texts in bulk, in threads.
`interpret` returns the word stem of a token (the feature that texts are compared by), its quantities, and its kind.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import polars as pl

from truegold.pipeline.near.arrays import Codes, Growing, Ints, Marks, places_in
from truegold.pipeline.near.exact_copies import change_marked
from truegold.pipeline.near.terms import STOPWORDS
from truegold.pipeline.text.quantities import Quantity, chinese_quantities, digits_quantity, words_quantities
from truegold.verifiers.written_numbers import NUMBER_WORDS, RUN, RUN_WITH_SPACE

MAX_CHARS = 20_000
"""The number of characters at the beginning of a text that are compared. The rest is ignored."""
MAX_PIECES = 2**26
"""The size of the cache of pieces, in bytes. A full cache is cleared."""
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
"""Matches a token: a number, or else a word, or else a sign.

Word boundaries are ASCII boundaries, because Unicode boundaries take ten times as long as the rest of the pattern on
texts beyond ASCII.
"""
TOKEN_WITH_SPACE = (
    r"(?:\d(?:st|nd|rd|th)?|[%％]|percent)\s(?:\d|\\?[%％]|percent|dozen|hundred|thousand|million|billion|trillion)"
    rf"|{RUN_WITH_SPACE}"
)
"""A quick test: matches every text in which a token may contain whitespace."""
CLEANED = (
    (r"\\[dt]?frac\s*\{\s*(\d+)\s*\}\s*\{\s*(\d+)\s*\}", " ${1}/${2} "),
    (r"\\[dt]?frac\s*(\d)\s*(\d)", " ${1}/${2} "),
    (r"\\(?:left|right|displaystyle|quad|qquad|begin|end|text|mathrm|textbf|mathbf)(?-u:\b)|\\[,;!: ]", " "),
    (r"\\[dtc]frac", r"\frac"),
    (r"\\(?:cdot|times|ast)(?-u:\b)", " * "),
    (r"\\leq?(?-u:\b)", "≤"),
    (r"\\geq?(?-u:\b)", "≥"),
)
"""Replacements in formulas before the text is cut, so that one formula has one spelling."""
CHINESE_UNITS = (("千克", "公斤"), ("千米", "公里"), ("千瓦", "kw"))
"""Units that begin with the numeral 千 (thousand), each with its replacement: "二十千克" is 20 kg."""
FORMULA_SIGNS = r"\$[^$]+\$|\\[\[(]"
"""A quick test: matches every text that has a formula."""
FORMULA_CHARS = 300
"""The maximum number of characters of a formula in dollar signs."""
ANY_FORMULAS = r"\$\$[^$]+\$\$|\$[^$\n]+\$|\\\[.+?\\\]|\\\(.+?\\\)"
"""Matches a LaTeX formula of any length. `formula_form` rejects prose between two dollar signs."""
FORMULAS = ANY_FORMULAS.replace("+", f"{{1,{FORMULA_CHARS}}}")
"""Matches a LaTeX formula of up to FORMULA_CHARS.

This pattern takes ten times as long as ANY_FORMULAS. So it is used only if ANY_FORMULAS found a longer match, in which
an unpaired dollar sign may have swallowed formulas.
"""
CODE = r"```|(?-u:\b)def \w+\(|(?-u:\b)class solution(?-u:\b)|#include\s*<|(?-u:\b)stdin(?-u:\b)"
"""Matches a lower-case text that asks for a program or shows one."""
_NUMBER_WORDS = frozenset(NUMBER_WORDS)
_PLAIN_WORD = re.compile(r"(?<![\\a-z])[a-z]{3,}")
"""A word of prose. Formulas have no such words, and names of LaTeX commands do not match."""
_FORMULA_NOISE = re.compile(r"\\(?:left|right|displaystyle|,|;|!|:|quad|dfrac|tfrac)|[$\s{}\[\]()]")
"""Layout within a formula."""
_FORMULA_ENDS = re.compile(r"^(?:\$+|\\[\[(])|(?:\$+|\\[\])])$")
r"""The signs around a formula: `$`, `$$`, `\[ \]` or `\( \)`."""
_OPERATOR = re.compile(r"[=+*/^<>≤≥_|-]|\\[a-z]")
"""A sign of operation, or a LaTeX command. Every formula has one of these."""
MAX_WORD = 40
"""The maximum number of characters of a word. Longer words are cut."""


@dataclass(frozen=True)
class Cut:
    """The tokens and formulas of a chunk of texts, as numbers."""

    tokens: Codes
    """The tokens of all texts, one text after the other."""
    lengths: Ints
    """The number of tokens of each text."""
    new_tokens: list[str]
    """The tokens that appear for the first time, in the order of their numbers."""
    formulas: Ints
    """The formulas of all texts, one text after the other."""
    formula_lengths: Ints
    """The number of formulas of each text."""
    new_formulas: list[str]
    """The formulas that appear for the first time, in the order of their numbers."""
    code: Marks
    """The texts that ask for a program or show one."""


def lower_texts(texts: pl.Series) -> pl.Series:
    """Return the texts as `Cutter` takes them: cut to MAX_CHARS characters, then in lower case."""
    return texts.fill_null("").str.slice(0, MAX_CHARS).str.to_lowercase()


class TextNumbers:
    """Numbers distinct texts in order of first appearance, at some 20 bytes each besides the text."""

    def __init__(self) -> None:
        # polars numbers categories in an unspecified order. A table maps its numbers to the numbers here.
        self._categories = pl.Categorical(pl.Categories.random())
        self._alive = pl.Series([], dtype=self._categories)
        self._numbers = np.full(2**16, -1, dtype=np.int32)
        self._count = 0

    def assign(self, texts: pl.Series) -> tuple[Ints, pl.Series]:
        """Return the number of each text, and the new texts in the order of their numbers."""
        categories = texts.cast(self._categories)
        # polars forgets categories that no series uses, so one series is kept.
        self._alive = categories.slice(0, 1)
        codes = categories.to_physical().to_numpy()
        while len(self._numbers) <= codes.max(initial=0):
            self._numbers = np.concatenate([self._numbers, np.full_like(self._numbers, -1)])
        numbers = self._numbers[codes].astype(np.int64)
        new = np.flatnonzero(numbers < 0)
        distinct, first, back = np.unique(codes[new], return_index=True, return_inverse=True)
        order = np.argsort(first)
        rank = self._count + places_in(order)
        self._numbers[distinct] = rank
        self._count += len(order)
        numbers[new] = rank[back]
        return numbers, texts.gather(new[first[order]])


class _AnnouncedNumbers:
    """Numbers texts, and returns each text with the first chunk that uses its number (`announce`)."""

    def __init__(self) -> None:
        self._numbers = TextNumbers()
        self._waiting: deque[str] = deque()
        self._announced = 0

    def assign(self, texts: pl.Series) -> Ints:
        numbers, new = self._numbers.assign(texts)
        self._waiting.extend(new.to_list())
        return numbers

    def announce(self, numbers: Codes | Ints) -> list[str]:
        """Return the texts that were not returned yet, up to the highest of these numbers."""
        count = max(0, int(numbers.max(initial=-1)) + 1 - self._announced)
        self._announced += count
        return [self._waiting.popleft() for _ in range(count)]


class Cutter:
    """Cuts chunk after chunk of texts. Tokens and formulas keep their numbers throughout."""

    def __init__(self) -> None:
        self._tokens = _AnnouncedNumbers()
        self._formulas = _AnnouncedNumbers()
        self._forget_pieces()

    def _forget_pieces(self) -> None:
        self._pieces = TextNumbers()
        self._size = 0
        # The tokens of all pieces, one piece after the other. The next two arrays have where each piece's tokens start,
        # and their number.
        self._piece_tokens = Growing(np.int32)
        self._first = Growing(np.int32)
        self._count = Growing(np.int32)

    def cut(self, chunks: Sequence[pl.Series]) -> Iterator[Cut]:
        """Yield the cut of each chunk of texts, which `lower_texts` has prepared.

        Each use of a pattern has a fixed cost, so passing several chunks at a time is cheaper.
        """
        texts = pl.concat(chunks)
        cleaned = change_marked(texts, texts.str.contains("\\", literal=True).to_numpy(), _unify_commands)
        with_unit = cleaned.str.contains("千", literal=True).to_numpy()
        cleaned = change_marked(cleaned, with_unit, _unify_units)
        code = cleaned.str.contains(CODE).to_numpy()
        formula_texts, formula_counts = _extract_formulas(cleaned)
        formulas = self._formulas.assign(formula_texts)
        pieces, piece_counts = self._split_into_pieces(cleaned)
        formula_ends, piece_ends = np.cumsum(formula_counts), np.cumsum(piece_counts)
        chunk_ends = np.cumsum([len(chunk) for chunk in chunks])
        for end, rows in zip(chunk_ends.tolist(), map(len, chunks), strict=True):
            chunk = slice(end - rows, end)
            chunk_formulas = formulas[_span_of_rows(formula_ends, chunk)]
            tokens, lengths = self._join_tokens(pieces[_span_of_rows(piece_ends, chunk)], piece_counts[chunk])
            yield Cut(
                tokens=tokens,
                lengths=lengths,
                new_tokens=self._tokens.announce(tokens),
                formulas=chunk_formulas,
                formula_lengths=formula_counts[chunk],
                new_formulas=self._formulas.announce(chunk_formulas),
                code=code[chunk],
            )

    def _split_into_pieces(self, texts: pl.Series) -> tuple[Ints, Ints]:
        """Return the pieces of all texts, and the number of pieces of each text. New pieces are cut into tokens."""
        if self._size > MAX_PIECES:
            self._forget_pieces()
        # In the next step, a NUL replaces each space at which a text must not be split. A NUL of the text itself
        # becomes another character.
        with_nul = texts.str.contains("\0", literal=True).to_numpy()
        texts = change_marked(texts, with_nul, lambda marked: _replace(marked, "\0", "\1"))
        whole = texts.str.contains(TOKEN_WITH_SPACE).to_numpy()
        lists = change_marked(texts, whole, lambda marked: _replace(marked, " ", "\0")).str.split(" ")
        pieces, new = self._pieces.assign(lists.explode())
        self._size += int(new.str.len_bytes().sum())
        tokens, counts = _flatten(_replace(new, "\0", " ").str.extract_all(TOKENS))
        self._first.extend(len(self._piece_tokens) + np.cumsum(counts) - counts)
        self._count.extend(counts)
        self._piece_tokens.extend(self._tokens.assign(tokens))
        return pieces, lists.list.len().to_numpy().astype(np.int64)

    def _join_tokens(self, pieces: Ints, piece_counts: Ints) -> tuple[Codes, Ints]:
        counts = self._count.array[pieces]
        ends = np.cumsum(counts, dtype=np.int64)
        positions = np.repeat(self._first.array[pieces] - (ends - counts), counts)
        positions += np.arange(len(positions))
        lengths = np.diff(np.concatenate(([0], ends))[np.cumsum(piece_counts)], prepend=0)
        return self._piece_tokens.array[positions], lengths


def _span_of_rows(ends: Ints, rows: slice) -> slice:
    """Return the positions of the parts of these rows. `ends` has the end of each row's parts."""
    return slice(int(ends[rows.start - 1]) if rows.start else 0, int(ends[rows.stop - 1]))


def _unify_commands(texts: pl.Series) -> pl.Series:
    for pattern, replacement in CLEANED:
        texts = texts.str.replace_all(pattern, replacement)
    return texts


def _unify_units(texts: pl.Series) -> pl.Series:
    for unit, replacement in CHINESE_UNITS:
        texts = texts.str.replace_all(unit, replacement, literal=True)
    return texts


def _replace(texts: pl.Series, old: str, new: str) -> pl.Series:
    return texts.str.replace_all(old, new, literal=True)


def _flatten(lists: pl.Series) -> tuple[pl.Series, Ints]:
    """Return the elements of all lists, and the length of each list."""
    lengths = lists.list.len().to_numpy().astype(np.int64)
    return lists.filter(pl.Series(lengths > 0)).explode().cast(pl.String), lengths


def _extract_formulas(texts: pl.Series) -> tuple[pl.Series, Ints]:
    counts = np.zeros(len(texts), dtype=np.int64)
    has_signs = texts.str.contains(FORMULA_SIGNS).to_numpy()
    signed = texts.filter(pl.Series(has_signs))
    formulas, lengths = _flatten(signed.str.extract_all(ANY_FORMULAS))
    long = np.repeat(np.arange(len(signed)), lengths)[(formulas.str.len_chars() > FORMULA_CHARS).to_numpy()]
    if len(long):
        has_long = np.bincount(long, minlength=len(signed)) > 0
        formulas, lengths = _flatten(
            change_marked(
                signed,
                has_long,
                lambda marked: marked.str.extract_all(FORMULAS),
                lambda others: others.str.extract_all(ANY_FORMULAS),
            )
        )
    counts[has_signs] = lengths
    return formulas, counts


class TokenKind(IntEnum):
    """The kind of a token of the features. The close reading has other kinds (`pieces.ReadKind`)."""

    WORD = 0
    STOP = 1
    NUMERAL = 2
    QUESTION = 3
    PERIOD = 4
    SIGN = 5
    HAN = 6


MARKS = {**dict.fromkeys("?？", TokenKind.QUESTION), **dict.fromkeys(".!。！", TokenKind.PERIOD)}
"""The kind of each mark that ends a sentence."""


@dataclass(frozen=True, slots=True)
class Meaning:
    """The meaning of a token: its kind, stem and quantities."""

    kind: TokenKind
    stem: str = ""
    """The feature that texts are compared by, empty for a numeral or a mark."""
    quantities: tuple[Quantity, ...] = ()
    """The quantities of a numeral. Number words in a row that are not a single number have several."""


def interpret(token: str) -> Meaning:
    """Return the meaning of a token, which is a match of `TOKENS`."""
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
    """Return the quantities of a number in digits, in words or in Chinese; None for other tokens."""
    first = token[0]
    if first in CHINESE_NUMERALS or "分之" in token:
        return chinese_quantities(token)
    if first.isdecimal() and first.isascii():
        return digits_quantity(token)
    if any(word in _NUMBER_WORDS for word in re.split(r"[\s-]", token, maxsplit=2)[:2]):
        return words_quantities(token) or None
    return None


def formula_form(text: str) -> str:
    """Return a formula without its layout; empty for prose, and for a single variable or number."""
    if _PLAIN_WORD.search(text) or not _OPERATOR.search(text):
        return ""
    return _FORMULA_NOISE.sub("", _FORMULA_ENDS.sub("", text)).rstrip(".,;:?!~")


def stem(word: str) -> str:
    """Return a light stem of a word, without possessive, plural, -ing, -ed, -ly, a final e or a doubled consonant.

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
