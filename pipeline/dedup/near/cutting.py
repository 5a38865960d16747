r"""Cuts texts into tokens and formulas. What stands between two spaces is cut once, however often it occurs.

    "tom has 3 apples, ann has 5."  pieces  tom · has · 3 · apples, · ann · has · 5.
                                    tokens  tom · has · 3 · apples · ann · has · 5 · .

Pieces are found by splitting at spaces, which costs a tenth of what the regular expression for tokens costs, and only
pieces that have not come before go through that. A text in which a token may go over a space ("two hundred", "5 %",
"3 1/2") is one piece. Tokens are therefore those that cutting the whole text gives.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from truegold.pipeline.dedup.near.growing import Growing
from truegold.pipeline.dedup.near.sparse import Codes, Ints
from truegold.pipeline.dedup.near.tidy import changed
from truegold.pipeline.dedup.near.vocabulary import Vocabulary
from truegold.pipeline.dedup.near.words import (
    ANY_FORMULAS,
    CLEANED,
    CODE,
    FORMULA_CHARS,
    FORMULA_SIGNS,
    FORMULAS,
    OVER_SPACE,
    TOKENS,
)

MAX_CHARS = 20_000
"""Of a longer text only so much is compared."""
MAX_PIECES = 2**26
"""Bytes of pieces that are remembered; then all are forgotten and learnt anew."""


@dataclass(frozen=True)
class Cut:
    """A chunk of texts as tokens and as formulas, one after the other as numbers, with how many each text has.

    new_tokens, new_formulas: those that had not come before, in the order of their numbers. code: which texts ask for a
    program or show one.
    """

    tokens: Codes
    lengths: Ints
    new_tokens: list[str]
    formulas: Ints
    formula_lengths: Ints
    new_formulas: list[str]
    code: npt.NDArray[np.bool_]


def lowered(texts: pl.Series) -> pl.Series:
    """The texts as they are cut: in lower case, and no longer than MAX_CHARS before."""
    return texts.fill_null("").str.slice(0, MAX_CHARS).str.to_lowercase()


class _Numbered:
    """Texts numbered in the order in which they first come, and told when a number of theirs is first used."""

    def __init__(self) -> None:
        self._vocabulary = Vocabulary()
        self._waiting: deque[str] = deque()
        self._told = 0

    def number(self, texts: pl.Series) -> Ints:
        numbers, new = self._vocabulary.number(texts)
        self._waiting.extend(new.to_list())
        return numbers

    def new(self, numbers: Codes | Ints) -> list[str]:
        """The texts of the numbers up to the highest of these that have not been told."""
        count = max(0, int(numbers.max(initial=-1)) + 1 - self._told)
        self._told += count
        return [self._waiting.popleft() for _ in range(count)]


class Cutter:
    """Cuts chunk after chunk; the numbers of tokens and formulas stay the same all along."""

    def __init__(self) -> None:
        self._tokens = _Numbered()
        self._formulas = _Numbered()
        self._forget()

    def _forget(self) -> None:
        self._pieces = Vocabulary()
        self._size = 0
        self._first = Growing(np.int32)  # of each piece's tokens in `_cut`
        self._count = Growing(np.int32)
        self._cut = Growing(np.int32)

    def cut(self, chunks: Sequence[pl.Series]) -> Iterator[Cut]:
        """Each chunk cut. Patterns warm up whenever they are used, so that many chunks at a time are cheaper.

        chunks: texts as `lowered` gives them.
        """
        texts = pl.concat(chunks)
        cleaned = changed(texts, texts.str.contains("\\", literal=True).to_numpy(), _clean)
        code = cleaned.str.contains(CODE).to_numpy()
        formulas, formula_counts = _found_formulas(cleaned)
        formula = self._formulas.number(formulas)
        piece, piece_counts = self._pieces_of(cleaned)
        formula_ends, piece_ends = np.cumsum(formula_counts), np.cumsum(piece_counts)
        last = np.cumsum([len(chunk) for chunk in chunks])
        for end, rows in zip(last.tolist(), map(len, chunks), strict=True):
            here = slice(end - rows, end)
            own = formula[_part(formula_ends, here)]
            tokens, lengths = self._tokens_of(piece[_part(piece_ends, here)], piece_counts[here])
            yield Cut(
                tokens,
                lengths,
                self._tokens.new(tokens),
                own,
                formula_counts[here],
                self._formulas.new(own),
                code[here],
            )

    def _pieces_of(self, texts: pl.Series) -> tuple[Ints, Ints]:
        """The pieces of all texts, and how many each has; those that are new are cut into tokens."""
        if self._size > MAX_PIECES:
            self._forget()
        # A NUL stands for a space at which a text is not split.
        texts = changed(
            texts, texts.str.contains("\0", literal=True).to_numpy(), lambda some: _exchanged(some, "\0", "\1")
        )
        whole = texts.str.contains(OVER_SPACE).to_numpy()
        lists = changed(texts, whole, lambda some: _exchanged(some, " ", "\0")).str.split(" ")
        pieces, new = self._pieces.number(lists.explode())
        self._size += int(new.str.len_bytes().sum())
        found, counts = _flat(_exchanged(new, "\0", " ").str.extract_all(TOKENS))
        self._first.extend(len(self._cut) + np.cumsum(counts) - counts)
        self._count.extend(counts)
        self._cut.extend(self._tokens.number(found))
        return pieces, lists.list.len().to_numpy().astype(np.int64)

    def _tokens_of(self, pieces: Ints, piece_counts: Ints) -> tuple[Codes, Ints]:
        """The tokens of texts with so many pieces each, and how many each has."""
        counts = self._count.array[pieces]
        ends = np.cumsum(counts, dtype=np.int64)
        places = np.repeat(self._first.array[pieces] - (ends - counts), counts)
        places += np.arange(len(places))
        lengths = np.diff(np.concatenate(([0], ends))[np.cumsum(piece_counts)], prepend=0)
        return self._cut.array[places], lengths


def _part(ends: Ints, rows: slice) -> slice:
    """Where the parts of these rows stand, by the end of each row's parts."""
    return slice(int(ends[rows.start - 1]) if rows.start else 0, int(ends[rows.stop - 1]))


def _clean(texts: pl.Series) -> pl.Series:
    for pattern, replacement in CLEANED:
        texts = texts.str.replace_all(pattern, replacement)
    return texts


def _exchanged(texts: pl.Series, one: str, other: str) -> pl.Series:
    return texts.str.replace_all(one, other, literal=True)


def _flat(lists: pl.Series) -> tuple[pl.Series, Ints]:
    """What all lists hold, and how much each holds."""
    lengths = lists.list.len().to_numpy().astype(np.int64)
    return lists.filter(pl.Series(lengths > 0)).explode().cast(pl.String), lengths


def _found_formulas(texts: pl.Series) -> tuple[pl.Series, Ints]:
    """The formulas of all texts, and how many each has."""
    counts = np.zeros(len(texts), dtype=np.int64)
    signs = texts.str.contains(FORMULA_SIGNS).to_numpy()
    some = texts.filter(pl.Series(signs))
    found, lengths = _flat(some.str.extract_all(ANY_FORMULAS))
    long = np.repeat(np.arange(len(some)), lengths)[(found.str.len_chars() > FORMULA_CHARS).to_numpy()]
    if len(long):
        which = np.bincount(long, minlength=len(some)) > 0
        found, lengths = _flat(
            changed(
                some,
                which,
                lambda them: them.str.extract_all(FORMULAS),
                lambda them: them.str.extract_all(ANY_FORMULAS),
            )
        )
    counts[signs] = lengths
    return found, counts
