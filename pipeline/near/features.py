r"""Turns texts into sparse tables of features (words, quantities, the question), in bulk and in bounded memory.

    add(["Tom has 3 apples. How many?"])  ->  row 0 of four sparse tables:
    words      tom, has, apple, how, many     every distinct stem, with stopwords; words of the question have a higher
                                              value (the last sentence with a question mark, else the last one)
    numbers    3 (weight 1.0)                 quantities with their weights, added up; formulas count as quantities
    contexts   3-apple, 3-has                 each quantity with the content words next to it (hashes)
    orders     -                              each quantity with the next one (hashes)

Chinese has pairs of neighbouring characters instead of words.

A problem of 250 characters takes about 300 bytes on the disk and 20 in memory; texts are not kept. While the texts of
one chunk are counted, a second thread cuts those of the next.
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
"""The trait of question marks."""
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
QUANTITY_SIGN = "#"
"""The prefix of quantities and formulas among the features: "#3"."""

WIDTH = 2**31 - 1
"""Columns of every table: features are numbered, or hashed, below."""
ASKED_FLAG = 2**32
"""The count of a word in the question; elsewhere it is 1. The sum shows where a word is: 3 means three times elsewhere,
ASKED_FLAG + 2 once in the question and twice elsewhere."""
CHUNK = 20_000
"""Texts that are counted at a time."""
CUT_BATCH = 40_000
"""Texts of up to TYPICAL_BYTES that are cut at a time; of longer texts fewer."""
TYPICAL_BYTES = 500
"""A longer text counts as several texts, one for every this many bytes."""

ASKED = 2
"""The value of a word that the question has."""
STRONG = 0.35
"""Quantities of a smaller weight do not make texts be compared: a rewording may drop them."""
FORMULA_WEIGHT = 1.0
CONTEXT_REACH = 4
"""A quantity and a content word are neighbours if they are at most this many tokens apart."""

Listener = Callable[[arrays.Ints, arrays.Hashes, int], None]
"""Takes the tokens of a chunk: the text and a hash of each token, ascending by text, and the number of texts."""


@dataclass(frozen=True)
class Features:
    """The features of `len(words)` texts."""

    words: csr_array
    """[texts, features] of 1, or ASKED for words of the question."""
    numbers: csr_array
    """[texts, features] of weights."""
    contexts: csr_array
    """[texts, hashes] of 1."""
    orders: csr_array
    """[texts, hashes] of 1."""
    stems: list[str]
    """The stem, or `#` and a quantity, of each feature number."""
    is_stop: arrays.Marks
    """The stems that are stopwords or signs."""
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
        """Return the features of some of the texts. Counts of features stay those of all texts."""
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
        """The feature of each token's stem, -1 where it has none."""
        self.first_quantity = arrays.Growing(np.int32)
        """The position of each token's first quantity in `quantity` and `weight`."""
        self.quantity_count = arrays.Growing(np.int32)
        """How many quantities each token has."""
        self.quantity = arrays.Growing(np.int32)
        """The features of all tokens' quantities."""
        self.weight = arrays.Growing(np.float32)
        """The weights of all tokens' quantities."""
        self.token_hash = arrays.Growing(np.uint64)
        """A hash of each token's stem, or of its first quantity where it has some."""
        self.formula_feature = arrays.Growing(np.int32)
        """The feature of each formula, -1 if there is nothing to compare."""
        self._features: dict[str, int] = {}
        # Chinese characters, at most some 20,000, and the position of each token's character among them.
        self._characters: list[str] = []
        self._character = arrays.Growing(np.int32)

    def learn(self, tokens: Iterable[str]) -> None:
        """Learn the next tokens, in the order of their numbers."""
        for meaning in map(interpret, tokens):
            self._learn_meaning(meaning)

    def learn_formulas(self, formulas: Iterable[str]) -> None:
        """Learn the next formulas, in the order of their numbers."""
        for form in map(formula_form, formulas):
            self.formula_feature.append(self._feature_of(QUANTITY_SIGN + form) if form else -1)

    def pair_features(self, left: arrays.Ints, right: arrays.Ints) -> arrays.Codes:
        """Return the features of pairs of neighbouring Chinese characters, which come as tokens."""
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
    """Return a 64-bit hash of each stem. It does not depend on other texts."""
    return np.fromiter(map(_hash_text, stems), np.uint64, len(stems))


class FeatureBuilder:
    """Takes texts in order (`add`) and makes their features (`finish`, once)."""

    def __init__(self, scratch: Path | None = None) -> None:
        """scratch: a folder for temporary files; by default one of the system."""
        self._lexicon = Lexicon()
        self._listener: Listener | None = None
        self._cutter = Cutter()
        self._thread = ThreadPoolExecutor(1)
        self._cuts_ahead: Future[list[Cut]] | None = None
        self._waiting: list[pl.Series] = []
        self._waiting_size = 0
        self._tables = [_GrowingTable(dtype, scratch) for dtype in (np.int8, np.float32, np.int8, np.int8)]
        """Words, numbers, contexts and orders."""
        self._texts_with = [np.zeros(0, np.int64)] * 2
        """How many texts have each feature among their words, and among their numbers."""
        self._tokens = arrays.Growing(np.int32)
        self._code = arrays.Growing(np.bool_)

    def add(self, texts: Sequence[str]) -> None:
        """Cut and count more texts."""
        self.add_lower(lower_texts(pl.Series(texts, dtype=pl.String)))

    def add_lower(self, texts: pl.Series) -> None:
        """Cut and count more texts, which are as `tokens.lower_texts` returns them."""
        for start in range(0, len(texts), CHUNK):
            chunk = texts.slice(start, CHUNK)
            self._waiting.append(chunk)
            self._waiting_size += len(chunk) + int(chunk.str.len_bytes().sum()) // TYPICAL_BYTES
            if self._waiting_size >= CUT_BATCH:
                earlier, self._cuts_ahead = self._cuts_ahead, self._cut_waiting()
                self._count_cuts(earlier)

    def _cut_waiting(self) -> Future[list[Cut]]:
        """Have the texts that wait cut in the other thread, which takes one batch after the other."""
        chunks, self._waiting, self._waiting_size = self._waiting, [], 0
        return self._thread.submit(lambda: list(self._cutter.cut(chunks)) if chunks else [])

    def _count_cuts(self, cuts: Future[list[Cut]] | None) -> None:
        for cut in cuts.result() if cuts is not None else ():
            self._count_in(cut)

    def listen(self, listener: Listener) -> None:
        """Hand the tokens of each chunk to `listener`, from the next text on."""
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
        """Return the feature of each token, -1 for none.

        A Chinese character has that of the pair with the next character, the last character of a run has none.
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
        """Return rows, features and weights of the quantities of the tokens at `counted`, and of the formulas."""
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
        # Sums are rounded and then compared with limits, so that weights are added in the order of the text.
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
        # A quantity is not content itself, so the number of content words up to it is the index of the next one.
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
        """Return rows and features of each quantity with the next quantity of its text. quantities: the positions of
        quantities."""
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
    """Mark each text's question: the tokens of its last sentence with a question mark at its end, else of its last.

        token        3   .   x   ?       "3. x?" asks for x; the question mark belongs to its sentence
        asked        no  no  yes yes

    `row` is the text of each token. `starts` has the position of each text's first token, and the number of tokens.
    """
    first, last = starts[:-1], _question_ends(traits, row, starts)
    has_sentence = last >= first
    first, last = first[has_sentence], last[has_sentence]
    # Cumulative sums of 1 at the start of a question and -1 after its end: 0 0 1 0 -1 becomes 0 0 1 1 0.
    change = np.zeros(len(traits) + 1, dtype=np.int8)
    change[_sentence_starts(traits, first, last)] += 1
    change[last + 1] -= 1
    return np.cumsum(change[:-1], dtype=np.int8).view(np.bool_)


def _question_ends(traits: Traits, row: arrays.Codes, starts: arrays.Ints) -> arrays.Ints:
    """Return the last question mark of each text (3 in "3. x?"), else its last token that is not a mark.

    A text of nothing but other marks has none: what is returned for it lies before its first token.
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
    """Return where sentences begin that end at `last`: after the mark before it (2 in "3. x?"), else at `first`."""
    marks = np.flatnonzero(traits & MARK)
    if not len(marks):
        return first
    mark_before = np.searchsorted(marks, last) - 1
    return np.where(mark_before >= 0, np.maximum(first, marks[mark_before] + 1), first)


def _hash_pair(left: arrays.Hashes, right: arrays.Hashes) -> arrays.Codes:
    """Return a feature number of 31 bits for each two hashes in this order."""
    mixed = (left * np.uint64(0x9E3779B97F4A7C15)) ^ right
    return (mixed >> np.uint64(33)).astype(np.int32)


def _to_table(row: arrays.Codes, feature: arrays.Codes, values: npt.NDArray[Any], rows: int) -> csr_array:
    """Return the values as a table. Repeated features of a row are added up."""
    from scipy.sparse import csr_array

    return csr_array((values, (row, feature)), shape=(rows, WIDTH))


def _to_set(row: arrays.Codes, feature: arrays.Codes, rows: int) -> csr_array:
    table = _to_table(row, feature, np.ones(len(row), dtype=np.int32), rows)
    table.data = np.ones(table.nnz, dtype=np.int8)
    return table


def count_words(row: arrays.Codes, feature: arrays.Codes, asked: arrays.Marks, rows: int) -> csr_array:
    """Return a table of ASKED where a feature is asked for anywhere in its row, else 1. Negative numbers are not
    features."""
    used = feature >= 0
    table = _to_table(row[used], feature[used], np.where(asked[used], ASKED_FLAG, 1), rows)
    table.data = np.where(table.data >= ASKED_FLAG, ASKED, 1).astype(np.int8)
    return table


def _add_counts(counts: arrays.Ints, features: arrays.Codes) -> arrays.Ints:
    """Return the counts after adding more features."""
    more = np.bincount(features, minlength=len(counts))
    more[: len(counts)] += counts
    return more


class _GrowingTable:
    """A table on the disk that rows are appended to."""

    def __init__(self, dtype: npt.DTypeLike, scratch: Path | None) -> None:
        self._values, self._columns = arrays.OnDisk(dtype, scratch), arrays.OnDisk(np.int32, scratch)
        self._lengths = arrays.Growing(np.int32)

    def extend(self, rows: csr_array) -> None:
        self._values.extend(rows.data)
        self._columns.extend(rows.indices)
        self._lengths.extend(np.diff(rows.indptr))

    def table(self) -> csr_array:
        from scipy.sparse import csr_array

        lengths = self._lengths.array
        # The starts are of the columns' type as long as they fit: with another one scipy would copy the columns.
        starts = np.zeros(len(lengths) + 1, dtype=np.int32 if len(self._columns) < 2**31 else np.int64)
        np.cumsum(lengths, out=starts[1:])
        return csr_array((self._values.array, self._columns.array, starts), shape=(len(lengths), WIDTH))
