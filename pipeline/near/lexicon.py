"""What every token and formula means, learnt once, as tables that whole arrays of tokens are looked up in."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt
import xxhash

from truegold.pipeline.near.arrays import Codes, Floats, Growing, Hashes, Ints
from truegold.pipeline.near.numbering import PairNumbers
from truegold.pipeline.near.words import Meaning, TokenKind, formula_form, interpret

Traits = npt.NDArray[np.uint8]

WORDLIKE = np.uint8(1)
"""The trait of words and numbers of any kind."""
CONTENT = np.uint8(2)
"""The trait of words that are no stopwords, and of Chinese characters."""
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
"""Quantities and formulas are features too; this sign tells "#3" from a word."""


class Lexicon:
    """Numbers features as they come (stems, quantities, formulas, pairs of characters) and knows those of each token.

    The tables `traits`, `feature`, `first`, `count` and `hash` are by token, `quantity` and `weight` by position,
    `formula` is by formula.
    """

    def __init__(self) -> None:
        self.stems: list[str] = []
        """The text of each feature."""
        self.is_stop: list[bool] = []
        """Whether each feature is a stopword or a sign."""
        self._features: dict[str, int] = {}
        self._pairs = PairNumbers()
        self._traits = Growing(np.uint8)
        self._feature = Growing(np.int32)
        self._first = Growing(np.int32)
        self._count = Growing(np.int32)
        self._quantity = Growing(np.int32)
        self._weight = Growing(np.float32)
        self._hash = Growing(np.uint64)
        self._formula = Growing(np.int32)
        # Chinese characters, some 20,000 at most, and of each token the position of its character among them.
        self._characters: list[str] = []
        self._character = Growing(np.uint64)

    @property
    def traits(self) -> Traits:
        """The traits of each token, as bits."""
        return self._traits.array

    @property
    def feature(self) -> Codes:
        """The feature of each token's stem, -1 where it has none."""
        return self._feature.array

    @property
    def first(self) -> Codes:
        """The position of each token's first quantity in `quantity` and `weight`."""
        return self._first.array

    @property
    def count(self) -> Codes:
        """How many quantities each token has."""
        return self._count.array

    @property
    def quantity(self) -> Codes:
        """The features of all tokens' quantities."""
        return self._quantity.array

    @property
    def weight(self) -> Floats:
        """The weights of all tokens' quantities."""
        return self._weight.array

    @property
    def hash(self) -> Hashes:
        """A hash of each token's stem, or of its first quantity where it has some."""
        return self._hash.array

    @property
    def formula(self) -> Codes:
        """The feature of each formula, -1 where there is nothing to compare."""
        return self._formula.array

    def learn(self, tokens: Iterable[str]) -> None:
        """Learn the next tokens, in the order of their numbers."""
        for token in tokens:
            self._learn_meaning(interpret(token))

    def learn_formulas(self, formulas: Iterable[str]) -> None:
        """Learn the next formulas, in the order of their numbers."""
        for form in map(formula_form, formulas):
            self._formula.append(self._feature_of(QUANTITY_SIGN + form) if form else -1)

    def pair_features(self, left: Ints, right: Ints) -> Codes:
        """Return the features of pairs of neighbouring Chinese characters, which come as tokens."""
        characters = self._character.array
        pairs = (characters[left] << np.uint64(16)) | characters[right]
        features = self._pairs.look_up(pairs)
        unknown = features < 0
        if unknown.any():
            new, back = np.unique(pairs[unknown], return_inverse=True)
            stems = [self._characters[pair >> 16] + self._characters[pair & 0xFFFF] for pair in new.tolist()]
            new_features = np.array([self._feature_of(stem) for stem in stems], dtype=np.int32)
            self._pairs.add(new, new_features)
            features[unknown] = new_features[back]
        return features

    def _learn_meaning(self, meaning: Meaning) -> None:
        self._traits.append(int(TRAITS[meaning.kind] | (COUNTED if meaning.quantities else np.uint8(0))))
        is_stop = meaning.kind in (TokenKind.STOP, TokenKind.SIGN)
        self._feature.append(self._feature_of(meaning.stem, is_stop) if meaning.stem else -1)
        self._first.append(len(self._quantity))
        self._count.append(len(meaning.quantities))
        text = QUANTITY_SIGN + meaning.quantities[0][0] if meaning.quantities else meaning.stem
        self._hash.append(_hash_text(text))
        self._character.append(len(self._characters))
        if meaning.kind == TokenKind.HAN:
            self._characters.append(meaning.stem)
        for value, weight in meaning.quantities:
            self._quantity.append(self._feature_of(QUANTITY_SIGN + value))
            self._weight.append(weight)

    def _feature_of(self, stem: str, is_stop: bool = False) -> int:
        feature = self._features.get(stem)
        if feature is None:
            feature = self._features[stem] = len(self.stems)
            self.stems.append(stem)
            self.is_stop.append(is_stop)
        return feature


def _hash_text(text: str) -> int:
    return xxhash.xxh3_64_intdigest(text.encode("utf-8", "replace"))


def stable_hashes(stems: Sequence[str]) -> Hashes:
    """Return a 64-bit hash of each stem that does not depend on what else was read."""
    return np.fromiter(map(_hash_text, stems), np.uint64, len(stems))
