r"""Cuts texts into tokens and formulas. What stands between two spaces is cut once, however often it occurs.

    "tom has 3 apples, ann has 5."  pieces  tom · has · 3 · apples, · ann · has · 5.
                                    tokens  tom · has · 3 · apples · ann · has · 5 · .

Pieces are found by splitting at spaces, which costs a tenth of what the regular expression for tokens costs, and only
pieces that have not come before go through that. A text in which a token may go over a space ("two hundred", "5 %",
"3 1/2") is one piece. Tokens are therefore those that cutting the whole text gives.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from truegold.pipeline.near.growing import Growing
from truegold.pipeline.near.sparse import Ints
from truegold.pipeline.near.tidy import changed
from truegold.pipeline.near.vocabulary import Vocabulary
from truegold.pipeline.near.words import CLEANED, CODE, FORMULA_SIGNS, FORMULAS, OVER_SPACE, TOKENS

MAX_CHARS = 20_000
"""Of a longer text only so much is compared."""
MAX_PIECES = 2**26
"""Characters of pieces that are remembered; then all are forgotten and learnt anew."""


@dataclass(frozen=True)
class Cut:
    """A chunk of texts as tokens and as formulas, one after the other as numbers, with how many each text has.

    new_tokens, new_formulas: those that had not come before, in the order of their numbers. code: which texts ask for a
    program or show one.
    """

    tokens: Ints
    lengths: Ints
    new_tokens: list[str]
    formulas: Ints
    formula_lengths: Ints
    new_formulas: list[str]
    code: npt.NDArray[np.bool_]


def lowered(texts: pl.Series) -> pl.Series:
    """The texts as they are cut: in lower case, and no longer than MAX_CHARS before."""
    return texts.fill_null("").str.slice(0, MAX_CHARS).str.to_lowercase()


class Cutter:
    """Cuts chunk after chunk; the numbers of tokens and formulas stay the same all along."""

    def __init__(self) -> None:
        self._tokens = Vocabulary()
        self._formulas = Vocabulary()
        self._forget()

    def _forget(self) -> None:
        self._pieces = Vocabulary()
        self._size = 0
        self._first = Growing(np.int32)  # of each piece's tokens in `_cut`
        self._count = Growing(np.int32)
        self._cut = Growing(np.int32)

    def cut(self, texts: pl.Series) -> Cut:
        """texts: as `lowered` gives them."""
        cleaned = changed(texts, texts.str.contains("\\", literal=True).to_numpy(), _clean)
        tokens, lengths, new_tokens = self._token_numbers(cleaned)
        signs = cleaned.str.contains(FORMULA_SIGNS).to_numpy()
        formula_lengths = np.zeros(len(texts), dtype=np.int64)
        found, formula_lengths[signs] = _matches(cleaned.filter(pl.Series(signs)), FORMULAS)
        formulas, new_formulas = self._formulas.number(found)
        code = cleaned.str.contains(CODE).to_numpy()
        return Cut(tokens, lengths, new_tokens, formulas, formula_lengths, new_formulas.to_list(), code)

    def _token_numbers(self, texts: pl.Series) -> tuple[Ints, Ints, list[str]]:
        """The tokens of all texts, how many each has, and the new ones."""
        if self._size > MAX_PIECES:
            self._forget()
        whole = texts.str.contains(OVER_SPACE).to_numpy()
        lists = changed(texts, whole, lambda some: some.str.split("\0"), lambda some: some.str.split(" "))
        pieces, new = self._pieces.number(lists.explode())
        self._size += new.str.len_chars().sum()
        found, counts = _matches(new, TOKENS)
        numbers, new_tokens = self._tokens.number(found)
        self._first.extend(len(self._cut) + np.cumsum(counts) - counts)
        self._count.extend(counts)
        self._cut.extend(numbers)
        counts = self._count.array[pieces]
        ends = np.cumsum(counts, dtype=np.int64)
        places = np.repeat(self._first.array[pieces] - (ends - counts), counts)
        places += np.arange(len(places))
        last = np.cumsum(lists.list.len().to_numpy(), dtype=np.int64)
        lengths = np.diff(np.concatenate(([0], ends))[last], prepend=0)
        return self._cut.array[places], lengths, new_tokens.to_list()


def _clean(texts: pl.Series) -> pl.Series:
    for pattern, replacement in CLEANED:
        texts = texts.str.replace_all(pattern, replacement)
    return texts


def _matches(texts: pl.Series, pattern: str) -> tuple[pl.Series, Ints]:
    """All matches in all texts, and how many each text has."""
    lists = texts.str.extract_all(pattern)
    lengths = lists.list.len().to_numpy().astype(np.int64)
    return lists.filter(pl.Series(lengths > 0)).explode().cast(pl.String), lengths
