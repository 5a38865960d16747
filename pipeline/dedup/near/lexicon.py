"""What every token and formula means, learnt once, as tables that whole arrays of tokens are looked up in."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt
import xxhash

from truegold.pipeline.dedup.near.growing import Growing
from truegold.pipeline.dedup.near.pairs import PairTable
from truegold.pipeline.dedup.near.sparse import Codes, Ints
from truegold.pipeline.dedup.near.words import Kind, Meaning, formula, interpret

WORDLIKE, CONTENT, HAN, MARK, QUESTION, COUNTED = (np.uint8(1 << bit) for bit in range(6))
"""Traits of a token: a word or number of any kind; a word that is no stopword, or a Chinese character; a character; an
end of a sentence; a question mark; has quantities."""
TRAITS = {
    Kind.WORD: WORDLIKE | CONTENT,
    Kind.STOP: WORDLIKE,
    Kind.NUMBER: WORDLIKE,
    Kind.QUESTION: MARK | QUESTION,
    Kind.PERIOD: MARK,
    Kind.SIGN: np.uint8(0),
    Kind.HAN: WORDLIKE | CONTENT | HAN,
}


class Lexicon:
    """Features are numbered as they come: stems, quantities and formulas (after a `#`), pairs of characters.

    Tables by token: traits; feature, the number of its stem or -1; the place of its quantities in `quantity` and
    `weight` and how many they are; hash, of its stem or first quantity. By formula: its feature, or -1.
    """

    def __init__(self) -> None:
        self.stems: list[str] = []
        self.stop: list[bool] = []
        self._numbers: dict[str, int] = {}  # stem -> feature number
        self._pairs = PairTable()
        self._traits = Growing(np.uint8)
        self._feature = Growing(np.int32)
        self._first = Growing(np.int32)
        self._count = Growing(np.int32)
        self._quantity = Growing(np.int32)
        self._weight = Growing(np.float32)
        self._hash = Growing(np.uint64)
        self._formula = Growing(np.int32)
        self._characters: list[str] = []
        self._character = Growing(np.uint64)  # of each token the place in that list; there are some 20,000 at most

    @property
    def traits(self) -> npt.NDArray[np.uint8]:
        return self._traits.array

    @property
    def feature(self) -> Codes:
        return self._feature.array

    @property
    def first(self) -> Codes:
        return self._first.array

    @property
    def count(self) -> Codes:
        return self._count.array

    @property
    def quantity(self) -> Codes:
        return self._quantity.array

    @property
    def weight(self) -> npt.NDArray[np.float32]:
        return self._weight.array

    @property
    def hash(self) -> npt.NDArray[np.uint64]:
        return self._hash.array

    @property
    def formula(self) -> Codes:
        return self._formula.array

    def learn(self, tokens: Iterable[str]) -> None:
        """The next tokens, in the order of their numbers."""
        for token in tokens:
            self._learn(interpret(token))

    def learn_formulas(self, formulas: Iterable[str]) -> None:
        """The next formulas, in the order of their numbers."""
        for form in map(formula, formulas):
            self._formula.append(self._number("#" + form, False) if form else -1)

    def pair(self, one: Ints, other: Ints) -> Codes:
        """The features of pairs of Chinese characters, which are given as tokens."""
        characters = self._character.array
        pairs = (characters[one] << np.uint64(16)) | characters[other]
        numbers = self._pairs.look_up(pairs)
        unknown = numbers < 0
        if unknown.any():
            new, back = np.unique(pairs[unknown], return_inverse=True)
            stems = [self._characters[pair >> 16] + self._characters[pair & 0xFFFF] for pair in new.tolist()]
            known = np.array([self._number(stem, False) for stem in stems], dtype=np.int32)
            self._pairs.add(new, known)
            numbers[unknown] = known[back]
        return numbers

    def _learn(self, meaning: Meaning) -> None:
        self._traits.append(int(TRAITS[meaning.kind] | (COUNTED if meaning.quantities else np.uint8(0))))
        self._feature.append(self._number(meaning.stem, meaning.kind in (Kind.STOP, Kind.SIGN)) if meaning.stem else -1)
        self._first.append(len(self._quantity))
        self._count.append(len(meaning.quantities))
        text = "#" + meaning.quantities[0][0] if meaning.quantities else meaning.stem
        self._hash.append(xxhash.xxh3_64_intdigest(text.encode("utf-8", "replace")))
        self._character.append(len(self._characters))
        if meaning.kind == Kind.HAN:
            self._characters.append(meaning.stem)
        for value, weight in meaning.quantities:
            self._quantity.append(self._number("#" + value, False))
            self._weight.append(weight)

    def _number(self, stem: str, stop: bool) -> int:
        number = self._numbers.get(stem)
        if number is None:
            number = self._numbers[stem] = len(self.stems)
            self.stems.append(stem)
            self.stop.append(stop)
        return number


def stable_hashes(stems: Sequence[str]) -> npt.NDArray[np.uint64]:
    """A 64-bit hash of each stem that does not depend on what else was read."""
    return np.fromiter(
        (xxhash.xxh3_64_intdigest(stem.encode("utf-8", "replace")) for stem in stems), np.uint64, len(stems)
    )
