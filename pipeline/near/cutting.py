r"""Cuts texts into tokens and formulas. What stands between two spaces is cut once, however often it occurs.

    "tom has 3 apples, ann has 5."  pieces  tom · has · 3 · apples, · ann · has · 5.
                                    tokens  tom · has · 3 · apples · ann · has · 5 · .

Pieces come from splitting at spaces, which costs a tenth of what the regular expression for tokens costs, and only
pieces that have not come before go through that. A text in which a token may go over a space ("two hundred", "5 %",
"3 1/2") is one piece. Tokens are therefore those that cutting the whole text gives.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from truegold.pipeline.near.arrays import Codes, Growing, Ints, Marks
from truegold.pipeline.near.tidy import change_marked
from truegold.pipeline.near.words import (
    ANY_FORMULAS,
    CHINESE_UNITS,
    CLEANED,
    CODE,
    FORMULA_CHARS,
    FORMULA_SIGNS,
    FORMULAS,
    TOKEN_WITH_SPACE,
    TOKENS,
)

MAX_CHARS = 20_000
"""Of a longer text only so much is compared."""
MAX_PIECES = 2**26
"""Bytes of pieces that are remembered; then all are forgotten and learnt anew."""


@dataclass(frozen=True)
class Cut:
    """A chunk of texts as tokens and as formulas. Both stand one after the other, as numbers."""

    tokens: Codes
    lengths: Ints
    """How many tokens each text has."""
    new_tokens: list[str]
    """The tokens that had not come before, in the order of their numbers."""
    formulas: Ints
    formula_lengths: Ints
    """How many formulas each text has."""
    new_formulas: list[str]
    """The formulas that had not come before, in the order of their numbers."""
    code: Marks
    """Which texts ask for a program or show one."""


def lower_texts(texts: pl.Series) -> pl.Series:
    """Return the texts as `Cutter` takes them: in lower case, and no longer than MAX_CHARS before."""
    return texts.fill_null("").str.slice(0, MAX_CHARS).str.to_lowercase()


class TextNumbers:
    """Numbers of texts, which polars holds and finds: some 20 bytes each besides the text itself."""

    def __init__(self) -> None:
        # The order in which polars numbers categories is its own, so that its numbers are looked up in a table.
        self._categories = pl.Categorical(pl.Categories.random())
        self._alive = pl.Series([], dtype=self._categories)
        self._numbers = np.full(2**16, -1, dtype=np.int32)
        self._count = 0

    def assign(self, texts: pl.Series) -> tuple[Ints, pl.Series]:
        """Return the number of each text, and the texts that had not come before, in the order of their numbers."""
        categories = texts.cast(self._categories)
        # A series has to stay alive: polars forgets categories that no series uses.
        self._alive = categories.slice(0, 1)
        codes = categories.to_physical().to_numpy()
        while len(self._numbers) <= codes.max(initial=0):
            self._numbers = np.concatenate([self._numbers, np.full_like(self._numbers, -1)])
        numbers = self._numbers[codes].astype(np.int64)
        new = np.flatnonzero(numbers < 0)
        distinct, first, back = np.unique(codes[new], return_index=True, return_inverse=True)
        order = np.argsort(first)
        rank = np.empty(len(order), dtype=np.int64)
        rank[order] = self._count + np.arange(len(order))
        self._numbers[distinct] = rank
        self._count += len(order)
        numbers[new] = rank[back]
        return numbers, texts.gather(new[first[order]])


class _AnnouncedNumbers:
    """Numbers of texts; each text is announced with the first chunk that uses its number."""

    def __init__(self) -> None:
        self._numbers = TextNumbers()
        self._waiting: deque[str] = deque()
        self._announced = 0

    def assign(self, texts: pl.Series) -> Ints:
        numbers, new = self._numbers.assign(texts)
        self._waiting.extend(new.to_list())
        return numbers

    def announce(self, numbers: Codes | Ints) -> list[str]:
        """Return the texts not announced yet, up to the highest of these numbers."""
        count = max(0, int(numbers.max(initial=-1)) + 1 - self._announced)
        self._announced += count
        return [self._waiting.popleft() for _ in range(count)]


class Cutter:
    """Cuts chunk after chunk; the numbers of tokens and formulas stay the same all along."""

    def __init__(self) -> None:
        self._tokens = _AnnouncedNumbers()
        self._formulas = _AnnouncedNumbers()
        self._forget_pieces()

    def _forget_pieces(self) -> None:
        self._pieces = TextNumbers()
        self._size = 0
        # The tokens of all pieces, one piece after the other, and where those of each piece start and how many it has.
        self._piece_tokens = Growing(np.int32)
        self._first = Growing(np.int32)
        self._count = Growing(np.int32)

    def cut(self, chunks: Sequence[pl.Series]) -> Iterator[Cut]:
        """Cut chunks of texts, which are as `lower_texts` returns them.

        Patterns warm up whenever they are used, so many chunks at a time are cheaper.
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
                tokens,
                lengths,
                self._tokens.announce(tokens),
                chunk_formulas,
                formula_counts[chunk],
                self._formulas.announce(chunk_formulas),
                code[chunk],
            )

    def _split_into_pieces(self, texts: pl.Series) -> tuple[Ints, Ints]:
        """Return the pieces of all texts, and how many each has; those that are new are cut into tokens."""
        if self._size > MAX_PIECES:
            self._forget_pieces()
        # A NUL stands for a space at which a text is not split, so a NUL of the text itself becomes another character.
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
        """Return the tokens of texts that have so many pieces each, and how many tokens each has."""
        counts = self._count.array[pieces]
        ends = np.cumsum(counts, dtype=np.int64)
        positions = np.repeat(self._first.array[pieces] - (ends - counts), counts)
        positions += np.arange(len(positions))
        lengths = np.diff(np.concatenate(([0], ends))[np.cumsum(piece_counts)], prepend=0)
        return self._piece_tokens.array[positions], lengths


def _span_of_rows(ends: Ints, rows: slice) -> slice:
    """Return where the parts of these rows stand, by the end of each row's parts."""
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
    """Return what all lists hold, and how much each holds."""
    lengths = lists.list.len().to_numpy().astype(np.int64)
    return lists.filter(pl.Series(lengths > 0)).explode().cast(pl.String), lengths


def _extract_formulas(texts: pl.Series) -> tuple[pl.Series, Ints]:
    """Return the formulas of all texts, and how many each has."""
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
