r"""Turns texts into sparse tables of features (words, quantities, questions), in bulk and in bounded memory.

    add(["Tom has 3 apples. How many?"])  ->  row 0 of four sparse tables:
    words      tom, has, apple, how, many     every distinct stem, with stopwords; stems of the question (the last
                                              sentence with a question mark, else the last one) have the value ASKED
    numbers    3 (weight 1.0)                 quantities with their summed weights; formulas count as quantities
    contexts   3-apple, 3-has                 pairs of a quantity and a content word next to it (hashes)
    orders     -                              pairs of a quantity and the next quantity (hashes)

In Chinese, pairs of neighbouring characters take the place of words.

A problem of 250 characters takes about 300 bytes on disk and 20 in memory; its text is not stored. While one batch of
texts is counted, a second thread cuts the next batch into tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import polars as pl
import xxhash

from truegold.pipeline.near import arrays
from truegold.pipeline.near.tokens import Cut, Cutter, Meaning, TokenKind, formula_form, interpret, lower_texts
from truegold.pipeline.text.quantities import ORDINAL_WEIGHT

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Traits = npt.NDArray[np.uint8]

WORDLIKE = np.uint8(1)
"""The trait of words and numbers of any kind."""
CONTENT = np.uint8(2)
"""The trait of Chinese characters, and of words other than stopwords."""
HAN = np.uint8(4)
"""The trait of Chinese characters."""
MARK = np.uint8(8)
"""The trait of marks that end a sentence."""
QUESTION = np.uint8(16)
"""The trait of question marks, which end the text's question."""
COUNTED = np.uint8(32)
"""The trait of tokens that have quantities."""
TRAITS = {
    TokenKind.WORD: WORDLIKE | CONTENT,
    TokenKind.STOP: WORDLIKE,
    TokenKind.NUMERAL: WORDLIKE,
    TokenKind.QUESTION: MARK | QUESTION,
    TokenKind.PERIOD: MARK,
    TokenKind.SIGN: np.uint8(0),
    TokenKind.HAN: WORDLIKE | CONTENT | HAN,
}
"""The traits of each kind of token."""
QUANTITY_SIGN = "#"
"""The prefix of quantities and formulas among the features: "#3"."""

WIDTH = 2**31 - 1
"""The number of columns of every table. Feature numbers and hashes are below it."""
ASKED_FLAG = 2**32
"""The value that is added for each word in the question. Other words add 1. So the sum ASKED_FLAG + 2 means once in the
question and twice elsewhere."""
CHUNK = 20_000
"""The number of texts that are counted at a time."""
CUT_BATCH = 40_000
"""The size of a batch of texts that are cut at a time. Each text counts 1, and 1 more for every TYPICAL_BYTES."""
TYPICAL_BYTES = 500
"""A text of this number of bytes counts as 2 in the size of a batch."""

ASKED = 2
"""The value of a word in the question."""
STRONG = 0.35
"""Quantities with a higher weight make candidate pairs. A rewording may drop quantities of a lower weight."""
FORMULA_WEIGHT = 1.0
"""The weight of a formula among the quantities."""
CONTEXT_REACH = 4
"""The maximum distance from a quantity to a content word next to it, in tokens: 1 for the next token."""

Listener = Callable[[arrays.Ints, arrays.Hashes, int], None]
"""A function that takes a chunk of texts: the number of each token's text (ascending), each token's hash, and the
number of texts."""


@dataclass(frozen=True)
class Features:
    """The features of texts, as sparse tables with a row for each text."""

    words: csr_array
    """[texts, features]: ASKED for each word of the question, 1 for each other word of the text."""
    numbers: csr_array
    """[texts, features]: the weight of each quantity of the text."""
    contexts: csr_array
    """[texts, hashes]: 1 for each pair of a quantity and a content word next to it."""
    orders: csr_array
    """[texts, hashes]: 1 for each pair of a quantity and the next quantity."""
    stems: list[str]
    """The text of each feature: a stem, or `#` and a quantity."""
    is_stop: arrays.Marks
    """The features that are stopwords or signs."""
    tokens: npt.NDArray[np.int32]
    """The number of word tokens of each text."""
    code: arrays.Marks
    """The texts that ask for a program or show one."""
    texts: int
    """The number of texts that were counted."""
    texts_with_word: arrays.Ints
    """The number of texts with each feature in `words`."""
    texts_with_number: arrays.Ints
    """The number of texts with each feature in `numbers`."""

    def __len__(self) -> int:
        return len(self.tokens)

    def take(self, numbers: arrays.Ints) -> Features:
        """Return the features of some texts. `texts`, `texts_with_word` and `texts_with_number` still count all
        texts."""
        tables = {name: getattr(self, name)[numbers] for name in ("words", "numbers", "contexts", "orders")}
        return replace(self, **tables, tokens=self.tokens[numbers], code=self.code[numbers])


class Lexicon:
    """Numbers features (stems, quantities, formulas, pairs of characters), and stores the features of each token."""

    def __init__(self) -> None:
        self.stems: list[str] = []
        """The text of each feature."""
        self.is_stop: list[bool] = []
        """Whether each feature is a stopword or a sign."""
        self.traits = arrays.Growing(np.uint8)
        """The traits of each token, as bits."""
        self.feature = arrays.Growing(np.int32)
        """The feature of each token's stem, -1 for a token without a stem."""
        self.first_quantity = arrays.Growing(np.int32)
        """The position of each token's first quantity in `quantity` and `weight`."""
        self.quantity_count = arrays.Growing(np.int32)
        """The number of quantities of each token."""
        self.quantity = arrays.Growing(np.int32)
        """The features of all tokens' quantities."""
        self.weight = arrays.Growing(np.float32)
        """The weights of all tokens' quantities."""
        self.token_hash = arrays.Growing(np.uint64)
        """A hash of each token's first quantity, or of its stem if it has no quantity."""
        self.formula_feature = arrays.Growing(np.int32)
        """The feature of each formula, -1 for a formula that is not compared."""
        self._features: dict[str, int] = {}
        self._characters: list[str] = []
        """The Chinese characters so far, at most some 20,000."""
        self._character = arrays.Growing(np.int32)
        """The position in `_characters` of each token that is a Chinese character. Other tokens have no valid
        position."""

    def learn(self, tokens: Iterable[str]) -> None:
        """Store the next tokens, in the order of their numbers."""
        for meaning in map(interpret, tokens):
            self._learn_meaning(meaning)

    def learn_formulas(self, formulas: Iterable[str]) -> None:
        """Store the next formulas, in the order of their numbers."""
        for form in map(formula_form, formulas):
            self.formula_feature.append(self._feature_of(QUANTITY_SIGN + form) if form else -1)

    def pair_features(self, left: arrays.Ints, right: arrays.Ints) -> arrays.Codes:
        """Return the feature of each pair of neighbouring Chinese characters, given as two arrays of tokens."""
        characters = self._character.array
        pairs, back = np.unique(arrays.pack_pairs(characters[left], characters[right]), return_inverse=True)
        firsts, seconds = (part.tolist() for part in arrays.unpack_pairs(pairs))
        stems = [
            self._characters[first] + self._characters[second] for first, second in zip(firsts, seconds, strict=True)
        ]
        return np.fromiter(map(self._feature_of, stems), np.int32, len(stems))[back]

    def _learn_meaning(self, meaning: Meaning) -> None:
        self.traits.append(int(TRAITS[meaning.kind] | (COUNTED if meaning.quantities else np.uint8(0))))
        is_stop = meaning.kind in (TokenKind.STOP, TokenKind.SIGN)
        self.feature.append(self._feature_of(meaning.stem, is_stop) if meaning.stem else -1)
        self.first_quantity.append(len(self.quantity))
        self.quantity_count.append(len(meaning.quantities))
        text = QUANTITY_SIGN + meaning.quantities[0][0] if meaning.quantities else meaning.stem
        self.token_hash.append(_hash_text(text))
        self._character.append(len(self._characters))
        if meaning.kind == TokenKind.HAN:
            self._characters.append(meaning.stem)
        for value, weight in meaning.quantities:
            self.quantity.append(self._feature_of(QUANTITY_SIGN + value))
            self.weight.append(weight)

    def _feature_of(self, stem: str, is_stop: bool = False) -> int:
        feature = self._features.get(stem)
        if feature is None:
            feature = self._features[stem] = len(self.stems)
            self.stems.append(stem)
            self.is_stop.append(is_stop)
        return feature


def _hash_text(text: str) -> int:
    return xxhash.xxh3_64_intdigest(text.encode("utf-8", "replace"))


def stable_hashes(stems: Sequence[str]) -> arrays.Hashes:
    """Return a 64-bit hash of each stem, which is the same in every run."""
    return np.fromiter(map(_hash_text, stems), np.uint64, len(stems))


class FeatureBuilder:
    """Takes texts in order (`add`) and makes their features (`finish`, once)."""

    def __init__(self, scratch: Path | None = None) -> None:
        """Make a builder with its temporary files in `scratch`, by default the system's temporary folder."""
        self._lexicon = Lexicon()
        self._listener: Listener | None = None
        self._cutter = Cutter()
        self._thread = ThreadPoolExecutor(1)
        self._cuts_ahead: Future[list[Cut]] | None = None
        self._waiting: list[pl.Series] = []
        self._waiting_size = 0
        self._tables = [_GrowingTable(dtype, scratch) for dtype in (np.int8, np.float32, np.int8, np.int8)]
        """The tables of words, numbers, contexts and orders."""
        self._texts_with = [np.zeros(0, np.int64)] * 2
        """The number of texts with each feature in the table of words, and in the table of numbers."""
        self._tokens = arrays.OnDisk(np.int32, scratch)
        self._code = arrays.OnDisk(np.bool_, scratch)

    def add(self, texts: Sequence[str]) -> None:
        """Cut and count more texts."""
        self.add_lower(lower_texts(pl.Series(texts, dtype=pl.String)))

    def add_lower(self, texts: pl.Series) -> None:
        """Cut and count more texts, prepared by `tokens.lower_texts`."""
        for start in range(0, len(texts), CHUNK):
            chunk = texts.slice(start, CHUNK)
            self._waiting.append(chunk)
            self._waiting_size += len(chunk) + int(chunk.str.len_bytes().sum()) // TYPICAL_BYTES
            if self._waiting_size >= CUT_BATCH:
                earlier, self._cuts_ahead = self._cuts_ahead, self._cut_waiting()
                self._count_cuts(earlier)

    def _cut_waiting(self) -> Future[list[Cut]]:
        """Start to cut the waiting texts in the other thread. The thread takes one batch at a time."""
        chunks, self._waiting, self._waiting_size = self._waiting, [], 0
        return self._thread.submit(lambda: list(self._cutter.cut(chunks)) if chunks else [])

    def _count_cuts(self, cuts: Future[list[Cut]] | None) -> None:
        for cut in cuts.result() if cuts is not None else ():
            self._count_in(cut)

    def listen(self, listener: Listener) -> None:
        """Pass the tokens of all further texts to `listener`, chunk by chunk."""
        self._count_all()
        self._listener = listener

    def _count_all(self) -> None:
        for cuts in (self._cuts_ahead, self._cut_waiting()):
            self._count_cuts(cuts)
        self._cuts_ahead = None

    def _count_in(self, cut: Cut) -> None:
        """Add a row to each table for each text that was cut."""
        lexicon = self._lexicon
        lexicon.learn(cut.new_tokens)
        token, rows = cut.tokens.astype(np.int64), len(cut.lengths)
        row = np.repeat(np.arange(rows, dtype=np.int32), cut.lengths)
        traits = lexicon.traits.array[token]
        if self._listener is not None:
            no_mark = (traits & MARK) == 0
            text = row[no_mark].astype(np.int64) + len(self._code)
            self._listener(text, lexicon.token_hash.array[token[no_mark]], rows)
        self._code.extend(cut.code)
        no_word = np.flatnonzero(traits & WORDLIKE == 0)
        self._tokens.extend(cut.lengths - np.bincount(row[no_word], minlength=rows))
        counted = np.flatnonzero(traits & COUNTED)
        weight = lexicon.weight.array[lexicon.first_quantity.array[token[counted]]]
        strong, no_ordinal = counted[weight > STRONG], counted[weight > ORDINAL_WEIGHT]
        words = self._count_words(traits, row, token, cut.lengths)
        numbers = _to_table(*self._quantities(cut, row, token, counted), rows)
        contexts = _to_set(*self._context_features(traits, row, token, strong), rows)
        orders = _to_set(*self._order_features(row, token, no_ordinal), rows)
        for table, part in zip(self._tables, (words, numbers, contexts, orders), strict=True):
            table.extend(part)
        self._texts_with = [
            _add_counts(counts, part.indices) for counts, part in zip(self._texts_with, (words, numbers), strict=True)
        ]

    def _count_words(self, traits: Traits, row: arrays.Codes, token: arrays.Ints, lengths: arrays.Ints) -> csr_array:
        starts = np.concatenate(([0], np.cumsum(lengths)))
        asked = mark_questions(traits, row, starts)
        return count_words(row, self._word_features(traits, row, token), asked, len(lengths))

    def _word_features(self, traits: Traits, row: arrays.Codes, token: arrays.Ints) -> arrays.Codes:
        """Return the feature of each token, -1 for a token without a feature.

        A Chinese character has the feature of the pair that it makes with the next character. The last character of a
        run has no feature.
        """
        features: arrays.Codes = self._lexicon.feature.array[token]
        han = traits & HAN != 0
        if han.any():
            followed = np.flatnonzero(han[:-1] & han[1:] & (row[:-1] == row[1:]))
            pairs = self._lexicon.pair_features(token[followed], token[followed + 1])
            features[han] = -1
            features[followed] = pairs
        return features

    def _quantities(
        self, cut: Cut, row: arrays.Codes, token: arrays.Ints, counted: arrays.Ints
    ) -> tuple[arrays.Codes, arrays.Codes, arrays.Floats]:
        """Return rows, features and weights of quantities: those of the tokens at `counted`, and those of formulas."""
        lexicon = self._lexicon
        lexicon.learn_formulas(cut.new_formulas)
        counts = lexicon.quantity_count.array[token[counted]]
        entries = np.repeat(lexicon.first_quantity.array[token[counted]], counts) + arrays.count_within_runs(counts)
        formulas = lexicon.formula_feature.array[cut.formulas]
        formula_row = np.repeat(np.arange(len(cut.formula_lengths), dtype=np.int32), cut.formula_lengths)
        formula_row, formulas = formula_row[formulas >= 0], formulas[formulas >= 0]
        rows = np.concatenate([np.repeat(row[counted], counts), formula_row])
        features = np.concatenate([lexicon.quantity.array[entries], formulas])
        weights = np.concatenate([lexicon.weight.array[entries], np.full(len(formulas), FORMULA_WEIGHT, np.float32)])
        # Weights are added in the order of the text. Rounding depends on the order, and sums are compared with limits.
        pairs = arrays.pack_pairs(rows, features)
        order = np.argsort(pairs, kind="stable")
        first = np.flatnonzero(arrays.run_starts(pairs[order]))
        sums = np.add.reduceat(weights[order], first) if len(first) else weights
        return rows[order][first], features[order][first], sums

    def _context_features(
        self, traits: Traits, row: arrays.Codes, token: arrays.Ints, strong: arrays.Ints
    ) -> tuple[arrays.Codes, arrays.Codes]:
        """Return rows and features of each strong quantity with the content words before and after it in its text.

        `strong` has the positions of these quantities.
        """
        content = np.flatnonzero(traits & CONTENT)
        if not len(content) or not len(strong):
            return np.zeros(0, np.int32), np.zeros(0, np.int32)
        # A quantity is not a content word. So the number of content words before it is the index of the next content
        # word.
        after = np.cumsum(traits & CONTENT != 0, dtype=np.int32)[strong]
        hashes = self._lexicon.token_hash.array
        rows, codes = [], []
        for neighbour in (after - 1, after):
            exists = (neighbour >= 0) & (neighbour < len(content))
            quantity, word = strong[exists], content[neighbour[exists]]
            near = (row[quantity] == row[word]) & (np.abs(quantity - word) <= CONTEXT_REACH)
            quantity, word = quantity[near], word[near]
            rows.append(row[quantity])
            codes.append(_hash_pair(hashes[token[quantity]], hashes[token[word]]))
        return np.concatenate(rows), np.concatenate(codes)

    def _order_features(
        self, row: arrays.Codes, token: arrays.Ints, quantities: arrays.Ints
    ) -> tuple[arrays.Codes, arrays.Codes]:
        """Return rows and features of each quantity paired with the next quantity of its text.

        `quantities` has the positions of the quantities among the tokens.
        """
        hashes = self._lexicon.token_hash.array[token[quantities]]
        same_text = row[quantities[1:]] == row[quantities[:-1]]
        return row[quantities[1:]][same_text], _hash_pair(hashes[:-1], hashes[1:])[same_text]

    def finish(self) -> Features:
        """Return the features of all texts added."""
        self._count_all()
        self._thread.shutdown()
        words, numbers, contexts, orders = (table.table() for table in self._tables)
        texts_with_word, texts_with_number = (
            np.pad(counts, (0, len(self._lexicon.stems) - len(counts))) for counts in self._texts_with
        )
        return Features(
            words=words,
            numbers=numbers,
            contexts=contexts,
            orders=orders,
            stems=self._lexicon.stems,
            is_stop=np.array(self._lexicon.is_stop, dtype=bool),
            tokens=self._tokens.array,
            code=self._code.array,
            texts=len(self._code),
            texts_with_word=texts_with_word,
            texts_with_number=texts_with_number,
        )


def mark_questions(traits: Traits, row: arrays.Codes, starts: arrays.Ints) -> arrays.Marks:
    """Mark the tokens of each text's question: the last sentence with a question mark, or else the last sentence.

        token        3   .   x   ?       "3. x?" asks for x
        asked        no  no  yes yes

    `row` has the text of each token. `starts` has the position of each text's first token, and then the number of all
    tokens.
    """
    first, last = starts[:-1], _question_ends(traits, row, starts)
    has_sentence = last >= first
    first, last = first[has_sentence], last[has_sentence]
    # 1 at the start of a question and -1 after its end: 0 0 1 0 -1. The cumulative sum marks the question: 0 0 1 1 0.
    change = np.zeros(len(traits) + 1, dtype=np.int8)
    change[_sentence_starts(traits, first, last)] += 1
    change[last + 1] -= 1
    return np.cumsum(change[:-1], dtype=np.int8).view(np.bool_)


def _question_ends(traits: Traits, row: arrays.Codes, starts: arrays.Ints) -> arrays.Ints:
    """Return the position of each text's last question mark: 3 in "3. x?".

    A text without a question mark gives the position of its last token that is not a mark. If it has only marks, the
    position is the one before its first token.
    """
    first, last = starts[:-1], starts[1:] - 1
    questions = np.flatnonzero(traits & QUESTION)
    last[row[questions]] = questions
    moving = np.flatnonzero(last >= first)
    while len(moving := moving[traits[last[moving]] & (MARK | QUESTION) == MARK]):
        last[moving] -= 1
        moving = moving[last[moving] >= first[moving]]
    return last


def _sentence_starts(traits: Traits, first: arrays.Ints, last: arrays.Ints) -> arrays.Ints:
    """Return the start of each sentence that ends at `last`: after the previous mark (2 in "3. x?"), or at `first`."""
    marks = np.flatnonzero(traits & MARK)
    if not len(marks):
        return first
    mark_before = np.searchsorted(marks, last) - 1
    return np.where(mark_before >= 0, np.maximum(first, marks[mark_before] + 1), first)


def _hash_pair(left: arrays.Hashes, right: arrays.Hashes) -> arrays.Codes:
    """Return a 31-bit feature number for each ordered pair of hashes."""
    mixed = (left * np.uint64(0x9E3779B97F4A7C15)) ^ right
    return (mixed >> np.uint64(33)).astype(np.int32)


def _to_table(row: arrays.Codes, feature: arrays.Codes, values: npt.NDArray[Any], rows: int) -> csr_array:
    """Return the values as a sparse table. The values of a repeated feature of a row are added up."""
    from scipy.sparse import csr_array

    return csr_array((values, (row, feature)), shape=(rows, WIDTH))


def _to_set(row: arrays.Codes, feature: arrays.Codes, rows: int) -> csr_array:
    table = _to_table(row, feature, np.ones(len(row), dtype=np.int32), rows)
    table.data = np.ones(table.nnz, dtype=np.int8)
    return table


def count_words(row: arrays.Codes, feature: arrays.Codes, asked: arrays.Marks, rows: int) -> csr_array:
    """Return a table with ASKED for each feature in its row's question, and 1 for other features of the row.

    Negative numbers in `feature` are skipped.
    """
    used = feature >= 0
    table = _to_table(row[used], feature[used], np.where(asked[used], ASKED_FLAG, 1), rows)
    table.data = np.where(table.data >= ASKED_FLAG, ASKED, 1).astype(np.int8)
    return table


def _add_counts(counts: arrays.Ints, features: arrays.Codes) -> arrays.Ints:
    more = np.bincount(features, minlength=len(counts))
    more[: len(counts)] += counts
    return more


class _GrowingTable:
    """A sparse table on disk that rows are appended to."""

    def __init__(self, dtype: npt.DTypeLike, scratch: Path | None) -> None:
        self._values, self._columns = arrays.OnDisk(dtype, scratch), arrays.OnDisk(np.int32, scratch)
        self._starts = arrays.OnDisk(np.int64, scratch)
        self._starts.extend(np.zeros(1))
        self._scratch = scratch

    def extend(self, rows: csr_array) -> None:
        self._starts.extend(len(self._columns) + rows.indptr[1:].astype(np.int64))
        self._values.extend(rows.data)
        self._columns.extend(rows.indices)

    def table(self) -> csr_array:
        from scipy.sparse import csr_array

        starts = self._starts
        if len(self._columns) < 2**31:
            # The starts get the columns' type if they fit into it. With another type, scipy would copy the columns.
            starts = arrays.OnDisk(np.int32, self._scratch)
            for first in range(0, len(self._starts), arrays.TABLE_ROWS):
                starts.extend(self._starts.array[first : first + arrays.TABLE_ROWS])
        return csr_array((self._values.array, self._columns.array, starts.array), shape=(len(starts) - 1, WIDTH))
