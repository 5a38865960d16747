"""Turns texts into the arrays that they are compared by: words, quantities, the question; bounded memory, in bulk.

    add(["Tom has 3 apples. How many?"])  ->  row 0 of three sparse tables:
    words      tom, has, apple, how, many     every distinct stem, stopwords included; of value ASKED those of the
                                              question (the last sentence with a question mark, else the last one)
    numbers    3 (weight 1.0)                 quantities with their weights, added up; formulas count as quantities
    contexts   3-apple, 3-has                 each quantity with the content words next to it (hashes)
    orders     -                              each quantity with the next one (hashes)

Chinese is compared by pairs of neighbouring characters in place of words.

A row takes about 250 bytes for a problem of 250 characters; the texts themselves are not held. While the texts of one
chunk are counted, those of the next are cut in a second thread.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from truegold.pipeline.dedup.near.cutting import Cut, Cutter, lowered
from truegold.pipeline.dedup.near.growing import Growing, GrowingSparse
from truegold.pipeline.dedup.near.lexicon import CONTENT, COUNTED, HAN, MARK, QUESTION, WORDLIKE, Lexicon
from truegold.pipeline.dedup.near.quantities import ORDINAL_WEIGHT
from truegold.pipeline.dedup.near.sparse import Codes, Ints, Sparse

CHUNK = 20_000
"""Texts that are counted at a time."""
CUT = 40_000
"""Texts that are cut at a time; of longer ones fewer."""
TYPICAL = 500
"""Bytes of a text that counts as one; another one for as many more."""

ASKED = 2
"""The value of a word that the question has."""
STRONG = 0.35
"""Quantities of a smaller weight are no reason to compare: a rewording may drop them."""
FORMULA_WEIGHT = 1.0
CONTEXT_REACH = 4
"""Tokens between a quantity and a content word that count as next to each other."""

Listener = Callable[[Ints, npt.NDArray[np.uint64], int], None]


@dataclass(frozen=True)
class Features:
    """What is known of `len(words)` texts.

    words: value 1 or ASKED. numbers: the values are weights. contexts, orders: all values are 1.
    stems: the stem (or `#` and a quantity) that each feature number stands for. stop: which are stopwords or signs.
    tokens: the number of word tokens of each text. code: which texts ask for a program or show one.
    """

    words: Sparse
    numbers: Sparse
    contexts: Sparse
    orders: Sparse
    stems: list[str]
    stop: npt.NDArray[np.bool_]
    tokens: npt.NDArray[np.int32]
    code: npt.NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.words)


class FeatureBuilder:
    """`add` texts in order, then `finish` once."""

    def __init__(self) -> None:
        self._lexicon = Lexicon()
        self._listener: Listener | None = None
        self._cutter = Cutter()
        self._thread = ThreadPoolExecutor(1)
        self._ahead: Future[list[Cut]] | None = None
        self._waiting: list[pl.Series] = []
        self._size = 0
        self._words = GrowingSparse(np.int8)
        self._numbers = GrowingSparse(np.float32)
        self._contexts = GrowingSparse(np.int8)
        self._orders = GrowingSparse(np.int8)
        self._tokens = Growing(np.int32)
        self._code = Growing(np.bool_)

    def add(self, texts: Sequence[str]) -> None:
        """Cut and count more texts."""
        self.add_lowered(lowered(pl.Series(texts, dtype=pl.String)))

    def add_lowered(self, texts: pl.Series) -> None:
        """The same for texts as `cutting.lowered` gives them."""
        for start in range(0, len(texts), CHUNK):
            chunk = texts.slice(start, CHUNK)
            self._waiting.append(chunk)
            self._size += len(chunk) + int(chunk.str.len_bytes().sum()) // TYPICAL
            if self._size >= CUT:
                self._cut()

    def _cut(self) -> None:
        """Have what is waiting cut, and count what was cut before."""
        chunks, self._waiting, self._size = self._waiting, [], 0
        ahead = self._thread.submit(lambda: list(self._cutter.cut(chunks))) if chunks else None
        if self._ahead is not None:
            for cut in self._ahead.result():
                self._count_in(cut)
        self._ahead = ahead

    def listen(self, listener: Listener) -> None:
        """From the next text on, tell `listener` the tokens of each chunk: the text and a hash of each token, ascending
        by text, and the number of texts."""
        self._catch_up()
        self._listener = listener

    def _catch_up(self) -> None:
        self._cut()
        self._cut()

    def _count_in(self, cut: Cut) -> None:
        words = self._lexicon
        words.learn(cut.new_tokens)
        token, rows = cut.tokens.astype(np.int64), len(cut.lengths)
        row = np.repeat(np.arange(rows, dtype=np.int32), cut.lengths)
        traits = words.traits[token]
        starts = np.concatenate(([0], np.cumsum(cut.lengths)))
        if self._listener is not None:
            heard = (traits & MARK) == 0
            self._listener(row[heard].astype(np.int64) + len(self._code), words.hash[token[heard]], rows)
        self._code.extend(cut.code)
        marks = np.flatnonzero(traits & WORDLIKE == 0)
        self._tokens.extend(cut.lengths - np.bincount(row[marks], minlength=rows))
        self._words.add_marked(row, self._paired_characters(traits, row, token), asked(traits, row, starts), rows)
        words.learn_formulas(cut.new_formulas)
        self._add_quantities(cut, row, token, np.flatnonzero(traits & COUNTED))
        number = np.flatnonzero(traits & COUNTED)
        weight = words.weight[words.first[token[number]]]
        self._contexts.add(*self._context_features(traits, row, token, number[weight > STRONG]), rows)
        self._orders.add(*self._order_features(row, token, number[weight > ORDINAL_WEIGHT]), rows)

    def _paired_characters(self, traits: npt.NDArray[np.uint8], row: Codes, token: Ints) -> Codes:
        """The feature of each token; that of a Chinese character is of it and the next one, that of a run's last none.

        -1 for none.
        """
        features: Codes = self._lexicon.feature[token]
        han = traits & HAN != 0
        if han.any():
            follows = np.flatnonzero(han[:-1] & han[1:] & (row[:-1] == row[1:]))
            pairs = self._lexicon.pair(token[follows], token[follows + 1])
            features[han] = -1
            features[follows] = pairs
        return features

    def _add_quantities(self, cut: Cut, row: Codes, token: Ints, counted: Ints) -> None:
        """The quantities of the tokens at the places `counted`, and the formulas."""
        words = self._lexicon
        counts = words.count[token[counted]]
        places = np.repeat(words.first[token[counted]], counts) + _within(counts)
        formulas = words.formula[cut.formulas]
        formula_row = np.repeat(np.arange(len(cut.formula_lengths), dtype=np.int32), cut.formula_lengths)
        formula_row, formulas = formula_row[formulas >= 0], formulas[formulas >= 0]
        self._numbers.add_sums(
            np.concatenate([np.repeat(row[counted], counts), formula_row]),
            np.concatenate([words.quantity[places], formulas]),
            np.concatenate([words.weight[places], np.full(len(formulas), FORMULA_WEIGHT, np.float32)]),
            len(cut.lengths),
        )

    def _context_features(
        self, traits: npt.NDArray[np.uint8], row: Codes, token: Ints, number: Ints
    ) -> tuple[Codes, Codes]:
        """Each strong quantity (at the places `number`) with the content word before and after it, within the text."""
        content = np.flatnonzero(traits & CONTENT)
        if not len(content) or not len(number):
            return np.zeros(0, np.int32), np.zeros(0, np.int32)
        after = np.cumsum(traits & CONTENT != 0, dtype=np.int32)[number]  # none of them is content itself
        hashes = self._lexicon.hash
        rows, codes = [], []
        for place in (after - 1, after):
            inside = (place >= 0) & (place < len(content))
            here, word = number[inside], content[place[inside]]
            near = (row[here] == row[word]) & (np.abs(here - word) <= CONTEXT_REACH)
            here, word = here[near], word[near]
            rows.append(row[here])
            codes.append(_paired(hashes[token[here]], hashes[token[word]]))
        return np.concatenate(rows), np.concatenate(codes)

    def _order_features(self, row: Codes, token: Ints, number: Ints) -> tuple[Codes, Codes]:
        """Each quantity (at the places `number`) with the next one of its text."""
        hashes = self._lexicon.hash[token[number]]
        inside = row[number[1:]] == row[number[:-1]]
        return row[number[1:]][inside], _paired(hashes[:-1], hashes[1:])[inside]

    def finish(self) -> Features:
        """The features of all texts added."""
        self._catch_up()
        self._thread.shutdown()
        return Features(
            self._words.finish(),
            self._numbers.finish(),
            self._contexts.finish(),
            self._orders.finish(),
            self._lexicon.stems,
            np.array(self._lexicon.stop, dtype=bool),
            self._tokens.array,
            self._code.array,
        )


def asked(traits: npt.NDArray[np.uint8], row: Codes, starts: Ints) -> npt.NDArray[np.bool_]:
    """Marks each text's question: the tokens of its last sentence with a question mark at its end, else of its last.

    row: the text of each token. starts: the place of each text's first token, and the number of tokens.
    """
    marks = np.flatnonzero(traits & MARK)
    # A token of the sentence: the last question mark; without one, the last token that is no mark.
    first, chosen = starts[:-1], starts[1:] - 1
    questions = np.flatnonzero(traits & QUESTION)
    chosen[row[questions]] = questions
    going = np.flatnonzero(chosen >= first)
    going = going[traits[chosen[going]] & (MARK | QUESTION) == MARK]
    while len(going):
        chosen[going] -= 1
        going = going[chosen[going] >= first[going]]
        going = going[traits[chosen[going]] & MARK != 0]
    some = chosen >= first
    chosen, first = chosen[some], first[some]
    before = np.searchsorted(marks, chosen) - 1
    begin = np.where(before >= 0, np.maximum(first, marks[before] + 1), first) if len(marks) else first
    change = np.zeros(len(traits) + 1, dtype=np.int8)
    change[begin] += 1
    change[chosen + 1] -= 1
    return np.cumsum(change[:-1], dtype=np.int8).view(np.bool_)


def _paired(one: npt.NDArray[np.uint64], other: npt.NDArray[np.uint64]) -> Codes:
    """A feature number of 31 bits for two hashes in this order."""
    mixed = (one * np.uint64(0x9E3779B97F4A7C15)) ^ other
    return (mixed >> np.uint64(33)).astype(np.int32)


def _within(counts: Codes) -> Ints:
    """0, 1, .. for each run: [2, 0, 3] -> 0 1 0 1 2."""
    total = int(counts.sum())
    starts = np.repeat(np.cumsum(counts) - counts, counts)
    return np.arange(total) - starts
