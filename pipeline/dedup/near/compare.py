"""Measures pairs of texts, millions of them at a time: how much of their words, questions and quantities they share.

For a pair the columns of `Measures`, all in [0, 1] unless said otherwise:

    words      cosine of the word sets, each word weighted by its rarity (inverse document frequency)
    evidence   how much the shared words tell: the sum of their rarities (1 for the rarest of words), not bounded by 1
    surface    Jaccard overlap of all distinct words, function words included: high for edits, lower for rewordings
    changed    how many distinct words only one of the two has, harmless function words left out; not bounded by 1
    asked      cosine of the questions alone
    numbers    weighted overlap of the quantities, shrunk: shared / (all + 1), so that one shared number is 1/2
    telling    how much the shared quantities tell: the sum of their weights times their rarity, not bounded by 1
    contexts   cosine of the sets of quantities with the words next to them
    order      cosine of the sets of quantities with the next one, smoothed: 1 where neither text has two quantities
    only_left  weight of the quantities that only the left text has (a plain number of 1.0 each), only_right likewise
    length     the shorter text's number of words over the longer one's
    code       1 where one of the two is about a program
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from truegold.pipeline.dedup.near.features import ASKED, Features
from truegold.pipeline.dedup.near.sparse import Floats, Ints, Sparse, run_sums
from truegold.pipeline.dedup.near.words import HARMLESS

if TYPE_CHECKING:
    from scipy.sparse import csr_array

BATCH = 20_000
"""Pairs measured at a time: some 20 MB."""


@dataclass(frozen=True)
class Measures:
    """One array per measure, all of the same length."""

    words: Floats
    evidence: Floats
    surface: Floats
    changed: Floats
    asked: Floats
    numbers: Floats
    telling: Floats
    contexts: Floats
    order: Floats
    only_left: Floats
    only_right: Floats
    length: Floats
    code: Floats

    def __len__(self) -> int:
        return len(self.words)

    def take(self, which: npt.NDArray[Any]) -> Measures:
        """The measures of some of the pairs."""
        return Measures(**{field.name: getattr(self, field.name)[which] for field in fields(self)})


def join_measures(parts: list[Measures]) -> Measures:
    """Several as one."""
    names = [field.name for field in fields(Measures)]
    empty = np.zeros(0, dtype=np.float32)
    return Measures(**{name: np.concatenate([empty, *(getattr(part, name) for part in parts)]) for name in names})


class Comparer:
    """Measures pairs of rows of one set of features."""

    def __init__(self, features: Features) -> None:
        rows, width = len(features), len(features.stems)
        frequency = np.bincount(features.words.codes, minlength=width)
        # Smooth idf as in scikit-learn; function words and signs count a fifth of a word equally common.
        idf = np.log((1 + rows) / (1 + frequency)) + 1
        self._square = (np.where(features.stop, 0.2 * idf, idf) ** 2).astype(np.float32)
        tell = np.where(features.stop, 0, np.log((1 + rows) / (1 + frequency)) / np.log(2 + rows))
        self._tell = tell.astype(np.float32)
        harmless = np.fromiter((stem in HARMLESS for stem in features.stems), dtype=bool, count=width)
        self._meaning = (~harmless).astype(np.float32)
        words = features.words
        self._words = _matrix(words, width)
        self._meant = words.row_sums(self._meaning[words.codes])
        self._count = np.diff(words.starts).astype(np.float32)
        square = self._square[words.codes]
        self._word_norm = np.sqrt(words.row_sums(square))
        square *= words.values == ASKED
        self._asked_norm = np.sqrt(words.row_sums(square))
        del square
        self._numbers = _matrix(features.numbers, width)
        self._weight = features.numbers.row_sums(features.numbers.values)
        owners = np.bincount(features.numbers.codes, minlength=width)
        self._rarity = (np.log((1 + rows) / (1 + owners)) / np.log(2 + rows)).astype(np.float32)
        self._contexts = _matrix(features.contexts, 2**31 - 1)
        self._contexts_norm = np.sqrt(np.diff(features.contexts.starts)).astype(np.float32)
        self._orders = _matrix(features.orders, 2**31 - 1)
        self._orders_norm = np.sqrt(np.diff(features.orders.starts)).astype(np.float32)
        self._tokens = features.tokens.astype(np.float32)
        self._code = features.code

    def measure(self, left: Ints, right: Ints) -> Measures:
        """The measures of the pairs (left[i], right[i])."""
        parts = []
        for start in range(0, len(left), BATCH):
            one, other = left[start : start + BATCH], right[start : start + BATCH]
            parts.append(self.complete(self.measure_sets(one, other), one, other))
        return join_measures(parts)

    def only(self, one: Ints, other: Ints, weight: float) -> tuple[Ints, npt.NDArray[np.int32]]:
        """The quantities that one[i] has and other[i] has not, of more than `weight`: the places i and the features."""
        mine = self._numbers[one]
        rest = (mine - mine.minimum(self._numbers[other])).tocoo()
        shown = rest.data > weight
        return rest.coords[0][shown].astype(np.int64), rest.coords[1][shown].astype(np.int32)

    def words_missing(self, item: Ints, text: Ints) -> Floats:
        """How many distinct words that carry meaning item[i] has and text[i] has not."""
        shared = self._words[item].multiply(self._words[text])
        missing: Floats = self._meant[item] - run_sums(shared.indptr, self._meaning[shared.indices])
        return missing

    def contexts_held(self, item: Ints, text: Ints) -> Floats:
        """The share of the contexts of item[i] that text[i] has; 1 where the item has none."""
        shared = np.diff(self._contexts[item].multiply(self._contexts[text]).indptr).astype(np.float32)
        whole = self._contexts_norm[item] ** 2
        return np.where(whole > 0, _over(shared, whole), np.float32(1))

    def measure_sets(self, left: Ints, right: Ints) -> Measures:
        """The measures of some BATCH of pairs, but for `contexts` and `order`, which are 0."""
        # The product of two values is ASKED * ASKED only for words that both questions have.
        words = self._words[left].multiply(self._words[right])
        shared = np.diff(words.indptr).astype(np.float32)
        square = self._square[words.indices]
        inner = run_sums(words.indptr, square)
        square *= words.data == ASKED * ASKED
        asked = run_sums(words.indptr, square)
        meant = run_sums(words.indptr, self._meaning[words.indices])
        both = self._numbers[left].minimum(self._numbers[right])
        common = run_sums(both.indptr, both.data)
        weight_left, weight_right = self._weight[left], self._weight[right]
        one, other = self._tokens[left], self._tokens[right]
        return Measures(
            words=_over(inner, self._word_norm[left] * self._word_norm[right]),
            evidence=run_sums(words.indptr, self._tell[words.indices]),
            surface=_over(shared, self._count[left] + self._count[right] - shared),
            changed=self._meant[left] + self._meant[right] - 2 * meant,
            asked=_over(asked, self._asked_norm[left] * self._asked_norm[right]),
            numbers=common / (weight_left + weight_right - common + 1),
            telling=run_sums(both.indptr, both.data * self._rarity[both.indices]),
            contexts=np.zeros_like(common),
            order=np.zeros_like(common),
            only_left=np.maximum(weight_left - common, 0),
            only_right=np.maximum(weight_right - common, 0),
            length=_over(np.minimum(one, other), np.maximum(one, other)),
            code=(self._code[left] | self._code[right]).astype(np.float32),
        )

    def complete(self, measures: Measures, left: Ints, right: Ints) -> Measures:
        """The measures of the same pairs with `contexts` and `order`."""
        contexts = np.diff(self._contexts[left].multiply(self._contexts[right]).indptr).astype(np.float32)
        orders = np.diff(self._orders[left].multiply(self._orders[right]).indptr).astype(np.float32)
        ordered = self._orders_norm[left] * self._orders_norm[right]
        return replace(
            measures,
            contexts=_over(contexts, self._contexts_norm[left] * self._contexts_norm[right]),
            order=(orders + 1) / (ordered + 1),
        )


def _matrix(table: Sparse, width: int) -> csr_array:
    from scipy.sparse import csr_array

    # 32-bit row starts where they fit: scipy would else widen the codes too, to twice the memory.
    starts = table.starts.astype(np.int32) if len(table.codes) < 2**31 else table.starts
    matrix = csr_array((table.values, table.codes, starts), shape=(len(table), width))
    matrix.has_canonical_format = True
    return matrix


def _over(top: Floats, bottom: Floats) -> Floats:
    result: Floats = np.divide(top, bottom, out=np.zeros_like(top), where=bottom > 0)
    return result
