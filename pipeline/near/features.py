r"""Turns texts into the arrays that they are compared by: words, quantities, the question; bounded memory, in bulk.

    add(["Tom has 3 apples. How many?"])  ->  row 0 of four sparse tables:
    words      tom, has, apple, how, many     every distinct stem, stopwords included; the value is ASKED for those of
                                              the question (the last sentence with a question mark, else the last one)
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

from truegold.pipeline.near.arrays import Codes, Growing, Hashes, Ints, Marks, count_within_runs
from truegold.pipeline.near.cutting import Cut, Cutter, lower_texts
from truegold.pipeline.near.lexicon import CONTENT, COUNTED, HAN, MARK, QUESTION, WORDLIKE, Lexicon, Traits
from truegold.pipeline.near.sparse import Sparse, SparseBuilder
from truegold.pipeline.text.quantities import ORDINAL_WEIGHT

CHUNK = 20_000
"""Texts that are counted at a time."""
CUT_BATCH = 40_000
"""Texts of up to TYPICAL_BYTES that are cut at a time; of longer texts fewer."""
TYPICAL_BYTES = 500
"""A text counts as one more for each time that it has so many bytes."""

ASKED = 2
"""The value of a word that the question has."""
STRONG = 0.35
"""Quantities of a smaller weight are no reason to compare: a rewording may drop them."""
FORMULA_WEIGHT = 1.0
CONTEXT_REACH = 4
"""A quantity and a content word are next to each other where they are at most so many tokens apart."""

Listener = Callable[[Ints, Hashes, int], None]
"""Takes the tokens of a chunk: the text and a hash of each token, ascending by text, and the number of texts."""


@dataclass(frozen=True)
class Features:
    """What is known of `len(words)` texts."""

    words: Sparse
    """Values are 1, or ASKED for words of the question."""
    numbers: Sparse
    """Values are weights."""
    contexts: Sparse
    """Values are 1."""
    orders: Sparse
    """Values are 1."""
    stems: list[str]
    """The stem (or `#` and a quantity) that each feature number of `words` and `numbers` stands for."""
    is_stop: Marks
    """Which of the stems are stopwords or signs."""
    tokens: npt.NDArray[np.int32]
    """The number of word tokens of each text."""
    code: Marks
    """Which texts ask for a program or show one."""

    def __len__(self) -> int:
        return len(self.words)


class FeatureBuilder:
    """Takes texts in order (`add`) and makes their features (`finish`, once)."""

    def __init__(self) -> None:
        self._lexicon = Lexicon()
        self._listener: Listener | None = None
        self._cutter = Cutter()
        self._thread = ThreadPoolExecutor(1)
        self._cuts_ahead: Future[list[Cut]] | None = None
        self._waiting: list[pl.Series] = []
        self._waiting_size = 0
        self._words = SparseBuilder(np.int8)
        self._numbers = SparseBuilder(np.float32)
        self._contexts = SparseBuilder(np.int8)
        self._orders = SparseBuilder(np.int8)
        self._tokens = Growing(np.int32)
        self._code = Growing(np.bool_)

    def add(self, texts: Sequence[str]) -> None:
        """Cut and count more texts."""
        self.add_lower(lower_texts(pl.Series(texts, dtype=pl.String)))

    def add_lower(self, texts: pl.Series) -> None:
        """Cut and count more texts, which are as `cutting.lower_texts` returns them."""
        for start in range(0, len(texts), CHUNK):
            chunk = texts.slice(start, CHUNK)
            self._waiting.append(chunk)
            self._waiting_size += len(chunk) + int(chunk.str.len_bytes().sum()) // TYPICAL_BYTES
            if self._waiting_size >= CUT_BATCH:
                self._cut_waiting()

    def _cut_waiting(self) -> None:
        """Have the texts that wait cut in the other thread, and count those that were cut before."""
        chunks, self._waiting, self._waiting_size = self._waiting, [], 0
        coming = self._thread.submit(lambda: list(self._cutter.cut(chunks))) if chunks else None
        if self._cuts_ahead is not None:
            for cut in self._cuts_ahead.result():
                self._count_in(cut)
        self._cuts_ahead = coming

    def listen(self, listener: Listener) -> None:
        """From the next text on, hand the tokens of each chunk to `listener`."""
        self._count_all()
        self._listener = listener

    def _count_all(self) -> None:
        # The first call counts what was cut ahead and cuts what waits, the second counts that.
        self._cut_waiting()
        self._cut_waiting()

    def _count_in(self, cut: Cut) -> None:
        lexicon = self._lexicon
        lexicon.learn(cut.new_tokens)
        token, rows = cut.tokens.astype(np.int64), len(cut.lengths)
        row = np.repeat(np.arange(rows, dtype=np.int32), cut.lengths)
        traits = lexicon.traits[token]
        starts = np.concatenate(([0], np.cumsum(cut.lengths)))
        if self._listener is not None:
            no_mark = (traits & MARK) == 0
            self._listener(row[no_mark].astype(np.int64) + len(self._code), lexicon.hash[token[no_mark]], rows)
        self._code.extend(cut.code)
        no_word = np.flatnonzero(traits & WORDLIKE == 0)
        self._tokens.extend(cut.lengths - np.bincount(row[no_word], minlength=rows))
        self._words.add_marked(row, self._word_features(traits, row, token), mark_questions(traits, row, starts), rows)
        lexicon.learn_formulas(cut.new_formulas)
        counted = np.flatnonzero(traits & COUNTED)
        self._add_quantities(cut, row, token, counted)
        weight = lexicon.weight[lexicon.first[token[counted]]]
        self._contexts.add(*self._context_features(traits, row, token, counted[weight > STRONG]), rows)
        self._orders.add(*self._order_features(row, token, counted[weight > ORDINAL_WEIGHT]), rows)

    def _word_features(self, traits: Traits, row: Codes, token: Ints) -> Codes:
        """Return the feature of each token, -1 for none.

        A Chinese character has that of the pair with the next character, the last character of a run has none.
        """
        features: Codes = self._lexicon.feature[token]
        han = traits & HAN != 0
        if han.any():
            followed = np.flatnonzero(han[:-1] & han[1:] & (row[:-1] == row[1:]))
            pairs = self._lexicon.pair_features(token[followed], token[followed + 1])
            features[han] = -1
            features[followed] = pairs
        return features

    def _add_quantities(self, cut: Cut, row: Codes, token: Ints, counted: Ints) -> None:
        """Add the quantities of the tokens at the positions `counted`, and the formulas."""
        lexicon = self._lexicon
        counts = lexicon.count[token[counted]]
        entries = np.repeat(lexicon.first[token[counted]], counts) + count_within_runs(counts)
        formulas = lexicon.formula[cut.formulas]
        formula_row = np.repeat(np.arange(len(cut.formula_lengths), dtype=np.int32), cut.formula_lengths)
        formula_row, formulas = formula_row[formulas >= 0], formulas[formulas >= 0]
        self._numbers.add_sums(
            np.concatenate([np.repeat(row[counted], counts), formula_row]),
            np.concatenate([lexicon.quantity[entries], formulas]),
            np.concatenate([lexicon.weight[entries], np.full(len(formulas), FORMULA_WEIGHT, np.float32)]),
            len(cut.lengths),
        )

    def _context_features(self, traits: Traits, row: Codes, token: Ints, strong: Ints) -> tuple[Codes, Codes]:
        """Return rows and features of each strong quantity with the content words before and after it in its text.

        `strong` has the positions of these quantities.
        """
        content = np.flatnonzero(traits & CONTENT)
        if not len(content) or not len(strong):
            return np.zeros(0, np.int32), np.zeros(0, np.int32)
        # A quantity is no content itself, so the number of content words up to it is the index of the next one.
        after = np.cumsum(traits & CONTENT != 0, dtype=np.int32)[strong]
        hashes = self._lexicon.hash
        rows, codes = [], []
        for neighbour in (after - 1, after):
            exists = (neighbour >= 0) & (neighbour < len(content))
            quantity, word = strong[exists], content[neighbour[exists]]
            near = (row[quantity] == row[word]) & (np.abs(quantity - word) <= CONTEXT_REACH)
            quantity, word = quantity[near], word[near]
            rows.append(row[quantity])
            codes.append(_hash_pair(hashes[token[quantity]], hashes[token[word]]))
        return np.concatenate(rows), np.concatenate(codes)

    def _order_features(self, row: Codes, token: Ints, counted: Ints) -> tuple[Codes, Codes]:
        """Return rows and features of each quantity (at the positions `counted`) with the next one of its text."""
        hashes = self._lexicon.hash[token[counted]]
        same_text = row[counted[1:]] == row[counted[:-1]]
        return row[counted[1:]][same_text], _hash_pair(hashes[:-1], hashes[1:])[same_text]

    def finish(self) -> Features:
        """Return the features of all texts added."""
        self._count_all()
        self._thread.shutdown()
        return Features(
            self._words.finish(),
            self._numbers.finish(),
            self._contexts.finish(),
            self._orders.finish(),
            self._lexicon.stems,
            np.array(self._lexicon.is_stop, dtype=bool),
            self._tokens.array,
            self._code.array,
        )


def mark_questions(traits: Traits, row: Codes, starts: Ints) -> Marks:
    """Mark each text's question: the tokens of its last sentence with a question mark at its end, else of its last.

    `row` is the text of each token. `starts` has the position of each text's first token, and the number of tokens.
    """
    marks = np.flatnonzero(traits & MARK)
    # A token of the sentence: the last question mark; without one, the last token that is no mark.
    first, chosen = starts[:-1], starts[1:] - 1
    questions = np.flatnonzero(traits & QUESTION)
    chosen[row[questions]] = questions
    moving = np.flatnonzero(chosen >= first)
    moving = moving[traits[chosen[moving]] & (MARK | QUESTION) == MARK]
    while len(moving):
        chosen[moving] -= 1
        moving = moving[chosen[moving] >= first[moving]]
        moving = moving[traits[chosen[moving]] & MARK != 0]
    has_sentence = chosen >= first
    chosen, first = chosen[has_sentence], first[has_sentence]
    mark_before = np.searchsorted(marks, chosen) - 1
    begin = np.where(mark_before >= 0, np.maximum(first, marks[mark_before] + 1), first) if len(marks) else first
    change = np.zeros(len(traits) + 1, dtype=np.int8)
    change[begin] += 1
    change[chosen + 1] -= 1
    return np.cumsum(change[:-1], dtype=np.int8).view(np.bool_)


def _hash_pair(left: Hashes, right: Hashes) -> Codes:
    """Return a feature number of 31 bits for each two hashes in this order."""
    mixed = (left * np.uint64(0x9E3779B97F4A7C15)) ^ right
    return (mixed >> np.uint64(33)).astype(np.int32)
