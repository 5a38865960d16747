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
import xxhash

from truegold.pipeline.near.cutting import Cut, Cutter, lowered
from truegold.pipeline.near.growing import Growing, GrowingSparse
from truegold.pipeline.near.quantities import ORDINAL_WEIGHT
from truegold.pipeline.near.sparse import Ints, Sparse
from truegold.pipeline.near.words import Kind, Meaning, formula, interpret

CHUNK = 20_000
"""Texts that are cut at a time."""

ASKED = 2
"""The value of a word that the question has."""
STRONG = 0.35
"""Quantities of a smaller weight are no reason to compare: a rewording may drop them."""
FORMULA_WEIGHT = 1.0
CONTEXT_REACH = 4
"""Tokens between a quantity and a content word that count as next to each other."""
WORDLIKE = (Kind.WORD, Kind.STOP, Kind.NUMBER, Kind.HAN)


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
        self._numbers: dict[str, int] = {}  # stem -> feature number
        self._stop: list[bool] = []
        self._listener: Listener | None = None
        self._cutter = Cutter()
        self._thread = ThreadPoolExecutor(1)
        self._ahead: Future[Cut] | None = None
        self._kind = Growing(np.uint8)  # of each token, by its number; likewise the next ones
        self._feature = Growing(np.int32)
        self._first = Growing(np.int32)  # of a token's quantities in the two lists after it
        self._count = Growing(np.int32)
        self._quantity = Growing(np.int32)
        self._weight = Growing(np.float32)
        self._hash = Growing(np.uint64)  # of a token's stem or first quantity
        self._formula = Growing(np.int32)  # feature number of each formula as written, or -1
        self._words = GrowingSparse(np.int8)
        self._numbers_rows = GrowingSparse(np.float32)
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
            ahead = self._thread.submit(self._cutter.cut, texts.slice(start, CHUNK))
            self._catch_up()
            self._ahead = ahead

    def listen(self, listener: Listener) -> None:
        """From the next text on, tell `listener` the tokens of each chunk: the text and a hash of each token, ascending
        by text, and the number of texts."""
        self._catch_up()
        self._listener = listener

    def _catch_up(self) -> None:
        if self._ahead is not None:
            self._count_in(self._ahead.result())
            self._ahead = None

    def _count_in(self, cut: Cut) -> None:
        lengths, token = cut.lengths, cut.tokens
        for text in cut.new_tokens:
            self._learn(interpret(text))
        row = np.repeat(np.arange(len(lengths)), lengths)
        kind = self._kind.array[token]
        if self._listener is not None:
            heard = ~_among(kind, (Kind.QUESTION, Kind.PERIOD))
            self._listener(row[heard] + len(self._code), self._hash.array[token[heard]], len(lengths))
        self._code.extend(cut.code)
        self._tokens.extend(np.bincount(row[_among(kind, WORDLIKE)], minlength=len(lengths)))
        features = self._feature.array[token]
        features = self._pair_characters(kind, row, features)
        spoken = features >= 0
        self._words.add_largest(row[spoken], features[spoken], _asked(kind, lengths)[spoken], len(lengths))
        counts = self._count.array[token]
        places = np.repeat(self._first.array[token], counts) + _within(counts)
        formula_row, formula_feature = self._formula_features(cut)
        self._numbers_rows.add_sums(
            np.concatenate([np.repeat(row, counts), formula_row]),
            np.concatenate([self._quantity.array[places], formula_feature]),
            np.concatenate([self._weight.array[places], np.full(len(formula_row), FORMULA_WEIGHT, np.float32)]),
            len(lengths),
        )
        number = np.flatnonzero((kind == Kind.NUMBER) & (counts > 0))
        first = self._weight.array[self._first.array[token[number]]]
        for table, (its_row, feature) in (
            (self._contexts, self._context_features(kind, row, token, number[first > STRONG])),
            (self._orders, self._order_features(row, token, number[first > ORDINAL_WEIGHT])),
        ):
            table.add_largest(its_row, feature, np.zeros(len(feature), dtype=bool), len(lengths))

    def _pair_characters(
        self, kind: npt.NDArray[np.uint8], row: Ints, features: npt.NDArray[np.int32]
    ) -> npt.NDArray[np.int32]:
        """Replaces each Chinese character's feature by that of it and the next one; the last of a run goes."""
        han = kind == Kind.HAN
        if not han.any():
            return features
        follows = np.zeros(len(kind), dtype=bool)
        follows[:-1] = han[:-1] & han[1:] & (row[:-1] == row[1:])
        places = np.flatnonzero(follows)
        pairs = (features[places].astype(np.int64) << 32) | features[places + 1]
        distinct, back = np.unique(pairs, return_inverse=True)
        stems = list(self._numbers)
        numbers = [self._number(stems[pair >> 32] + stems[pair & 0xFFFFFFFF], False) for pair in distinct.tolist()]
        result = np.where(han, -1, features).astype(np.int32)
        result[places] = np.array(numbers, dtype=np.int32)[back]
        return result

    def _formula_features(self, cut: Cut) -> tuple[Ints, npt.NDArray[np.int32]]:
        for form in map(formula, cut.new_formulas):
            self._formula.append(self._number("#" + form, False) if form else -1)
        features = self._formula.array[cut.formulas]
        row = np.repeat(np.arange(len(cut.formula_lengths)), cut.formula_lengths)
        return row[features >= 0], features[features >= 0]

    def _context_features(
        self, kind: npt.NDArray[np.uint8], row: Ints, token: Ints, number: Ints
    ) -> tuple[Ints, npt.NDArray[np.int32]]:
        """Each strong quantity (at the places `number`) with the content word before and after it, within the text."""
        content = np.flatnonzero((kind == Kind.WORD) | (kind == Kind.HAN))
        if not len(content) or not len(number):
            return np.zeros(0, np.int64), np.zeros(0, np.int32)
        after = np.searchsorted(content, number)
        hashes = self._hash.array[token]
        rows, codes = [], []
        for place in (after - 1, after):
            inside = (place >= 0) & (place < len(content))
            here, word = number[inside], content[place[inside]]
            near = (row[here] == row[word]) & (np.abs(here - word) <= CONTEXT_REACH)
            here, word = here[near], word[near]
            rows.append(row[here])
            codes.append(_paired(hashes[here], hashes[word]))
        return np.concatenate(rows), np.concatenate(codes)

    def _order_features(self, row: Ints, token: Ints, number: Ints) -> tuple[Ints, npt.NDArray[np.int32]]:
        """Each quantity (at the places `number`) with the next one of its text."""
        hashes = self._hash.array[token[number]]
        inside = row[number[1:]] == row[number[:-1]]
        return row[number[1:]][inside], _paired(hashes[:-1], hashes[1:])[inside]

    def _learn(self, meaning: Meaning) -> None:
        self._kind.append(meaning.kind)
        self._feature.append(self._number(meaning.stem, meaning.kind in (Kind.STOP, Kind.SIGN)) if meaning.stem else -1)
        self._first.append(len(self._quantity))
        self._count.append(len(meaning.quantities))
        text = "#" + meaning.quantities[0][0] if meaning.quantities else meaning.stem
        self._hash.append(xxhash.xxh3_64_intdigest(text.encode("utf-8", "replace")))
        for value, weight in meaning.quantities:
            self._quantity.append(self._number("#" + value, False))
            self._weight.append(weight)

    def _number(self, stem: str, stop: bool) -> int:
        number = self._numbers.get(stem)
        if number is None:
            number = self._numbers[stem] = len(self._numbers)
            self._stop.append(stop)
        return number

    def finish(self) -> Features:
        """The features of all texts added."""
        self._catch_up()
        self._thread.shutdown()
        return Features(
            self._words.finish(),
            self._numbers_rows.finish(),
            self._contexts.finish(),
            self._orders.finish(),
            list(self._numbers),
            np.array(self._stop, dtype=bool),
            self._tokens.array,
            self._code.array,
        )


def stable_hashes(stems: Sequence[str]) -> npt.NDArray[np.uint64]:
    """A 64-bit hash of each stem that does not depend on what else was read."""
    return np.fromiter(
        (xxhash.xxh3_64_intdigest(stem.encode("utf-8", "replace")) for stem in stems), np.uint64, len(stems)
    )


def _asked(kind: npt.NDArray[np.uint8], lengths: Ints) -> npt.NDArray[np.bool_]:
    """Marks each text's question: the tokens of its last sentence with a question mark at its end, else of its last."""
    mark = (kind == Kind.QUESTION) | (kind == Kind.PERIOD)
    sentence = np.concatenate(([0], np.cumsum(mark)[:-1])) if len(mark) else np.zeros(0, np.int64)
    row = np.repeat(np.arange(len(lengths)), lengths)
    if not len(row):
        return np.zeros(0, bool)
    # The sentence with the last question mark of each text; without one, that of its last token that is no mark.
    wanted = np.full(len(lengths), -1, dtype=np.int64)
    plain = np.flatnonzero(~mark)
    wanted[row[plain]] = sentence[plain]
    questions = np.flatnonzero(kind == Kind.QUESTION)
    wanted[row[questions]] = sentence[questions]
    result: npt.NDArray[np.bool_] = sentence == wanted[row]
    return result


def _paired(one: npt.NDArray[np.uint64], other: npt.NDArray[np.uint64]) -> npt.NDArray[np.int32]:
    """A feature number of 31 bits for two hashes in this order."""
    mixed = (one * np.uint64(0x9E3779B97F4A7C15)) ^ other
    return (mixed >> np.uint64(33)).astype(np.int32)


def _among(kind: npt.NDArray[np.uint8], kinds: Sequence[Kind]) -> npt.NDArray[np.bool_]:
    table = np.zeros(len(Kind), dtype=bool)
    table[list(kinds)] = True
    marks: npt.NDArray[np.bool_] = table[kind]
    return marks


def _within(counts: npt.NDArray[np.int32]) -> Ints:
    """0, 1, .. for each run: [2, 0, 3] -> 0 1 0 1 2."""
    total = int(counts.sum())
    starts = np.repeat(np.cumsum(counts) - counts, counts)
    return np.arange(total) - starts
