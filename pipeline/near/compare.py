"""Measures pairs of texts: how much of their words, questions and quantities they share. Vectorised, for millions of pairs.

For a pair the columns of `Measures`, all in [0, 1] unless said otherwise:

    words      cosine of the word sets, each word weighted by its rarity (inverse document frequency)
    evidence   how much the shared words tell: the sum of their rarities (1 for the rarest of words), not bounded by 1
    surface    Jaccard overlap of all distinct words, function words included: high for edits, lower for rewordings
    changed    how many distinct words only one of the two has, harmless function words left out; not bounded by 1
    asked      cosine of the questions alone
    numbers    weighted overlap of the quantities, shrunk: shared / (all + 1), so that one shared number is 1/2
    telling    how much the shared quantities tell: the sum of their weights times their rarity, not bounded by 1
    contexts   cosine of the sets of quantities with the words next to them
    only_left  weight of the quantities that only the left text has (a plain number of 1.0 each), only_right likewise
    length     the shorter text's number of words over the longer one's
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from truegold.pipeline.near.features import Features, Floats, Ints, Sparse
from truegold.pipeline.near.words import HARMLESS

if TYPE_CHECKING:
    from scipy.sparse import csr_array

BATCH = 50_000
"""Pairs measured at a time: some 50 MB."""


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
    only_left: Floats
    only_right: Floats
    length: Floats

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
        rows = len(features)
        frequency = np.bincount(features.words.codes, minlength=len(features.stems))
        # Smooth idf as in scikit-learn; function words and signs count a fifth of a word equally common.
        idf = np.log((1 + rows) / (1 + frequency)) + 1
        idf = np.where(features.stop, 0.2 * idf, idf).astype(np.float32)
        width = len(features.stems)
        self._words = _matrix(features.words, idf, width)
        self._spread = np.where(features.stop, 0, np.log((1 + rows) / (1 + frequency)) / np.log(2 + rows) / idf**2)
        harmless = np.fromiter((stem in HARMLESS for stem in features.stems), dtype=bool, count=width)
        self._meaning = np.where(harmless, 0, 1 / idf**2).astype(np.float32)
        self._meant = _row_sums(features.words.starts, ~harmless[features.words.codes])
        self._asked = _matrix(features.asked, idf, width)
        self._numbers = _matrix(features.numbers, None, width)
        owners = np.bincount(features.numbers.codes, minlength=width)
        self._rarity = (np.log((1 + rows) / (1 + owners)) / np.log(2 + rows)).astype(np.float32)
        self._contexts = _matrix(features.contexts, None, 2**31 - 1)
        self._contexts_norm = np.sqrt(np.diff(features.contexts.starts)).astype(np.float32)
        self._count = np.diff(features.words.starts).astype(np.float32)
        self._tokens = features.tokens.astype(np.float32)
        self._word_norm = _norm(self._words)
        self._asked_norm = _norm(self._asked)
        self._weight = np.asarray(self._numbers.sum(axis=1)).astype(np.float32)

    def measure(self, left: Ints, right: Ints) -> Measures:
        """The measures of the pairs (left[i], right[i])."""
        parts = [
            self._measure(left[start : start + BATCH], right[start : start + BATCH])
            for start in range(0, len(left), BATCH)
        ]
        return join_measures(parts)

    def _measure(self, left: Ints, right: Ints) -> Measures:
        words = self._words[left].multiply(self._words[right])
        shared = np.diff(words.indptr).astype(np.float32)
        both = self._numbers[left].minimum(self._numbers[right])
        telling = np.asarray(both @ self._rarity, dtype=np.float32)
        common = np.asarray(both.sum(axis=1), dtype=np.float32)
        weight_left, weight_right = self._weight[left], self._weight[right]
        union = weight_left + weight_right - common
        asked = np.asarray(self._asked[left].multiply(self._asked[right]).sum(axis=1), dtype=np.float32)
        one, other = self._tokens[left], self._tokens[right]
        return Measures(
            words=_over(np.asarray(words.sum(axis=1), np.float32), self._word_norm[left] * self._word_norm[right]),
            evidence=np.asarray(words @ self._spread, np.float32),
            surface=_over(shared, self._count[left] + self._count[right] - shared),
            changed=np.rint(self._meant[left] + self._meant[right] - 2 * (words @ self._meaning)).astype(np.float32),
            asked=_over(asked, self._asked_norm[left] * self._asked_norm[right]),
            numbers=common / (union + 1),
            telling=telling,
            contexts=_over(
                np.diff(self._contexts[left].multiply(self._contexts[right]).indptr).astype(np.float32),
                self._contexts_norm[left] * self._contexts_norm[right],
            ),
            only_left=np.maximum(weight_left - common, 0),
            only_right=np.maximum(weight_right - common, 0),
            length=_over(np.minimum(one, other), np.maximum(one, other)),
        )


def _matrix(table: Sparse, idf: Floats | None, width: int) -> csr_array:
    from scipy.sparse import csr_array

    weights = table.weights if idf is None else idf[table.codes]
    if weights is None:
        weights = np.ones(len(table.codes), dtype=np.float32)
    # 32-bit row starts where they fit: scipy would else widen the codes too, to twice the memory.
    starts = table.starts.astype(np.int32) if len(table.codes) < 2**31 else table.starts
    matrix = csr_array((weights, table.codes, starts), shape=(len(table), width))
    matrix.has_canonical_format = True
    return matrix


def _norm(matrix: csr_array) -> Floats:
    return np.sqrt(_row_sums(matrix.indptr, matrix.data * matrix.data))


def _row_sums(starts: npt.NDArray[Any], values: npt.NDArray[Any]) -> Floats:
    """Sums of `values[starts[i]:starts[i + 1]]`; 0 for an empty run."""
    sums = np.zeros(len(starts) - 1, dtype=np.float32)
    filled = np.flatnonzero(np.diff(starts))
    if len(filled):
        sums[filled] = np.add.reduceat(values, starts[filled], dtype=np.float32)
    return sums


def _over(top: Floats, bottom: Floats) -> Floats:
    result: Floats = np.divide(top, bottom, out=np.zeros_like(top), where=bottom > 0)
    return result
