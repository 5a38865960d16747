"""Measures pairs of texts, millions of them at a time: how much of their words, questions and quantities they share."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from truegold.pipeline.near.arrays import Floats, Ints, sum_runs
from truegold.pipeline.near.features import ASKED, Features
from truegold.pipeline.near.terms import CHANGEABLE, HARMLESS, STOPWORDS, UNITS
from truegold.pipeline.near.words import stem

BATCH = 20_000
"""Pairs measured at a time: some 20 MB."""


@dataclass(frozen=True)
class Measures:
    """One array per measure, all of the same length, in [0, 1] unless the field says otherwise."""

    words: Floats
    """The cosine of the word sets, each word weighted by its rarity (inverse document frequency)."""
    evidence: Floats
    """How much the shared words tell: the sum of their rarities (1 for the rarest of words), not bounded by 1."""
    surface: Floats
    """The Jaccard overlap of all distinct words, function words included: high for edits, lower for rewordings."""
    changed: Floats
    """How many distinct words only one of the two has, harmless function words left out; not bounded by 1."""
    asked: Floats
    """The cosine of the questions alone."""
    numbers: Floats
    """The weighted overlap of the quantities, shrunk: shared / (all + 1), so that one shared number is 1/2."""
    telling: Floats
    """How much the shared quantities tell: the sum of their weights times their rarity, not bounded by 1."""
    contexts: Floats
    """The cosine of the sets of quantities with the words next to them."""
    order: Floats
    """The cosine of the sets of quantities with the next one, smoothed: 1 where neither text has two quantities."""
    only_left: Floats
    """The weight of the quantities that only the left text has, 1.0 for each plain number; not bounded by 1."""
    only_right: Floats
    """The weight of the quantities that only the right text has; not bounded by 1."""
    length: Floats
    """The shorter text's number of words over the longer text's."""
    code: Floats
    """1 where one of the two is about a program, else 0."""

    def __len__(self) -> int:
        return len(self.words)

    def take(self, which: npt.NDArray[Any]) -> Measures:
        """Return the measures of some of the pairs."""
        return Measures(**{field.name: getattr(self, field.name)[which] for field in fields(self)})


def join_measures(parts: list[Measures]) -> Measures:
    """Join the measures of several batches of pairs."""
    names = [field.name for field in fields(Measures)]
    empty = np.zeros(0, dtype=np.float32)
    return Measures(**{name: np.concatenate([empty, *(getattr(part, name) for part in parts)]) for name in names})


class Comparer:
    """Measures pairs of rows of one set of features."""

    def __init__(self, features: Features) -> None:
        rows, width = len(features), len(features.stems)
        frequency = np.bincount(features.words.indices, minlength=width)
        # Smooth idf as in scikit-learn; function words and signs count a fifth of a word equally common.
        idf = np.log((1 + rows) / (1 + frequency)) + 1
        self._square = (np.where(features.is_stop, 0.2 * idf, idf) ** 2).astype(np.float32)
        word_rarity = np.where(features.is_stop, 0, np.log((1 + rows) / (1 + frequency)) / np.log(2 + rows))
        self._word_rarity = word_rarity.astype(np.float32)
        harmless = np.fromiter((stem in HARMLESS for stem in features.stems), dtype=bool, count=width)
        self._has_meaning = (~harmless).astype(np.float32)
        words = features.words
        self._words = words
        self._meaningful_words = sum_runs(words.indptr, self._has_meaning[words.indices])
        changeable = HARMLESS | STOPWORDS | {stem(word) for word in CHANGEABLE | UNITS.keys()}
        decisive = np.fromiter((name not in changeable for name in features.stems), dtype=bool, count=width)
        self._is_decisive = decisive.astype(np.float32)
        self._decisive_words = sum_runs(words.indptr, self._is_decisive[words.indices])
        self._word_count = np.diff(words.indptr).astype(np.float32)
        square = self._square[words.indices]
        self._word_norm = np.sqrt(sum_runs(words.indptr, square))
        square *= words.data == ASKED
        self._asked_norm = np.sqrt(sum_runs(words.indptr, square))
        del square
        self._numbers = features.numbers
        self._number_weight = sum_runs(features.numbers.indptr, features.numbers.data)
        texts_with_number = np.bincount(features.numbers.indices, minlength=width)
        self._number_rarity = (np.log((1 + rows) / (1 + texts_with_number)) / np.log(2 + rows)).astype(np.float32)
        self._contexts = features.contexts
        self._contexts_norm = np.sqrt(np.diff(features.contexts.indptr)).astype(np.float32)
        self._orders = features.orders
        self._orders_norm = np.sqrt(np.diff(features.orders.indptr)).astype(np.float32)
        self._tokens = features.tokens.astype(np.float32)
        self._code = features.code

    def measure(self, left: Ints, right: Ints) -> Measures:
        """Return the measures of the pairs (left[i], right[i])."""
        parts = []
        for start in range(0, len(left), BATCH):
            left_part, right_part = left[start : start + BATCH], right[start : start + BATCH]
            parts.append(self.complete(self.measure_sets(left_part, right_part), left_part, right_part))
        return join_measures(parts)

    def missing_quantities(self, left: Ints, right: Ints, weight: float) -> tuple[Ints, npt.NDArray[np.int32]]:
        """Return the quantities of more than `weight` that left[i] has and right[i] has not: indices i and features."""
        left_numbers = self._numbers[left]
        missing = (left_numbers - left_numbers.minimum(self._numbers[right])).tocoo()
        enough = missing.data > weight
        return missing.coords[0][enough].astype(np.int64), missing.coords[1][enough].astype(np.int32)

    def count_missing_words(self, left: Ints, right: Ints) -> Floats:
        """Return how many distinct words that carry meaning left[i] has and right[i] has not."""
        shared = self._words[left].multiply(self._words[right])
        missing: Floats = self._meaningful_words[left] - sum_runs(shared.indptr, self._has_meaning[shared.indices])
        return missing

    def count_decisive_words(self, left: Ints, right: Ints) -> Floats:
        """Return how many distinct words only one of left[i] and right[i] has, without those that others stand for."""
        shared = self._words[left].multiply(self._words[right])
        both = sum_runs(shared.indptr, self._is_decisive[shared.indices])
        missing: Floats = self._decisive_words[left] + self._decisive_words[right] - 2 * both
        return missing

    def share_of_contexts(self, left: Ints, right: Ints) -> Floats:
        """Return the share of the contexts of left[i] that right[i] has; 1 where left[i] has none."""
        shared = np.diff(self._contexts[left].multiply(self._contexts[right]).indptr).astype(np.float32)
        whole = self._contexts_norm[left] ** 2
        return np.where(whole > 0, _divide(shared, whole), np.float32(1))

    def measure_sets(self, left: Ints, right: Ints) -> Measures:
        """Return the measures of up to BATCH pairs, except for `contexts` and `order`, which are 0."""
        words = self._words[left].multiply(self._words[right])
        shared = np.diff(words.indptr).astype(np.float32)
        square = self._square[words.indices]
        inner = sum_runs(words.indptr, square)
        # The product of two values is ASKED * ASKED only for words that both questions have.
        square *= words.data == ASKED * ASKED
        asked = sum_runs(words.indptr, square)
        meaningful = sum_runs(words.indptr, self._has_meaning[words.indices])
        shared_numbers = self._numbers[left].minimum(self._numbers[right])
        shared_weight = sum_runs(shared_numbers.indptr, shared_numbers.data)
        weight_left, weight_right = self._number_weight[left], self._number_weight[right]
        tokens_left, tokens_right = self._tokens[left], self._tokens[right]
        return Measures(
            words=_divide(inner, self._word_norm[left] * self._word_norm[right]),
            evidence=sum_runs(words.indptr, self._word_rarity[words.indices]),
            surface=_divide(shared, self._word_count[left] + self._word_count[right] - shared),
            changed=self._meaningful_words[left] + self._meaningful_words[right] - 2 * meaningful,
            asked=_divide(asked, self._asked_norm[left] * self._asked_norm[right]),
            numbers=shared_weight / (weight_left + weight_right - shared_weight + 1),
            telling=sum_runs(shared_numbers.indptr, shared_numbers.data * self._number_rarity[shared_numbers.indices]),
            contexts=np.zeros_like(shared_weight),
            order=np.zeros_like(shared_weight),
            only_left=np.maximum(weight_left - shared_weight, 0),
            only_right=np.maximum(weight_right - shared_weight, 0),
            length=_divide(np.minimum(tokens_left, tokens_right), np.maximum(tokens_left, tokens_right)),
            code=(self._code[left] | self._code[right]).astype(np.float32),
        )

    def complete(self, measures: Measures, left: Ints, right: Ints) -> Measures:
        """Return the measures of the same pairs with `contexts` and `order`."""
        contexts = np.diff(self._contexts[left].multiply(self._contexts[right]).indptr).astype(np.float32)
        orders = np.diff(self._orders[left].multiply(self._orders[right]).indptr).astype(np.float32)
        return replace(
            measures,
            contexts=_divide(contexts, self._contexts_norm[left] * self._contexts_norm[right]),
            order=(orders + 1) / (self._orders_norm[left] * self._orders_norm[right] + 1),
        )


def _divide(top: Floats, bottom: Floats) -> Floats:
    """Return the quotients, 0 where `bottom` is 0."""
    quotient: Floats = np.divide(top, bottom, out=np.zeros_like(top), where=bottom > 0)
    return quotient
