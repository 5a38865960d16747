"""Measures millions of pairs of texts in bulk, and decides by the measures how two texts may be related.

    original      "Tom has 3 red cars and buys 4 more. How many cars has he?"
    same_problem  "After Tom, who owned three red cars, bought 4 others, what is the number of his cars?"
    same_template "Tom has 5 red cars and buys 9 more. How many cars has he?"
    edited        "Tom has some red cars and buys 4 more. How many cars has he?"

1. If each text has quantities that the other lacks, the texts are never the same problem. 2. Near copies may be the
same problem if no quantity and few words differ. 3. Other texts may be the same problem if a logistic score is high
enough: they share many rare words, the question and
   the quantities. Programming tasks have no such score: they have no quantities, and differ by a few words in long
   boilerplate.
4. Otherwise texts with most words in common are `same_template` if quantities were replaced, else `edited_variant`.

Measures ignore order, case and single letters. So pairs that may be the same problem are then read closely
(`confirmation`).

The weights were fitted by logistic regression (L2, standardised columns) on the development half. The positive pairs
are rewordings by language models. The negative pairs are the other candidate pairs in these sets:

- the rewordings, alone and together with edited and renumbered variants
- 22,000 problems with known answers of grade-school, competition and Chinese sets
- 1,600 short stories of the demo, which combine a few names, things and small numbers

The number of texts is one of the columns: among more texts, two problems more often share words and quantities by
chance. `benchmarks/curation_dedup.py` measures the result.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from enum import IntEnum
from importlib.resources import files
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from truegold.pipeline.near.arrays import Floats, Ints, Marks, sum_rows, sum_runs
from truegold.pipeline.near.features import ASKED, Features
from truegold.pipeline.near.terms import CHANGEABLE, HARMLESS, STOPWORDS, UNITS
from truegold.pipeline.near.tokens import stem
from truegold.pipeline.text.person_names import NEAR_COPY
from truegold.pipeline.text.quantities import SPELLING_MARGIN

BATCH = 20_000
"""The number of pairs that are measured at a time, in some 20 MB."""
FITTED: Mapping[str, dict[str, Any]] = tomllib.loads(files(__package__).joinpath("weights.toml").read_text("utf-8"))
"""The weights and biases of the score of measures, and of the score of a close reading (`confirmation`)."""
WEIGHTS: dict[str, float] = FITTED["measures"]
"""The weights of the score of measures (`same_story_score`)."""
FEW_WORDS = 0.35
"""The cosine of words below which the score falls more steeply (column `few_words`)."""
MUCH_SURFACE = 0.55
"""The overlap of all words above which the score falls (column `much_surface`): texts this close are edits."""
FITTED_TEXTS = (1_000, 100_000)
"""The range of numbers of texts that the weights were fitted for. Other numbers of texts are clipped to this range."""
LEAST_SCORE = -0.5
"""A pair with log-odds below this cannot be a rewording. A close reading would not confirm it."""
REPLACED = 0.6
"""Quantities count as replaced if each text has quantities that the other text lacks, and their total weight is above
this. The weight of a single number in words is higher."""
FEW_CHANGED = 6
"""The maximum number of meaningful words that may differ between near copies."""
SAME_NUMBERS = 0.3
"""The maximum weight of the quantities that only one of two near copies has, such as "one" and "first"."""
RELATED = 0.5
"""The minimum overlap of all words of two different problems that are related."""
RELATED_WORDS = 0.6
"""The minimum cosine of the words of two different problems that are related."""
ROUNDING = 0.01
"""A bound on the rounding error of a score. `may_relate` allows for it."""
Agreement = npt.NDArray[np.int8]
"""For each pair 1 if both golds are known and equal, -1 if they are known and differ, else 0."""
MAX_SHOWN = 8
"""The maximum number of quantities that the evidence lists for each text."""
MAX_CHARS = 40
"""The maximum number of characters shown of a quantity. A formula may have thousands."""


@dataclass(frozen=True)
class Measures:
    """One array per measure, all of the same length, in [0, 1] unless the field says otherwise."""

    words: Floats
    """The cosine of the word sets, each word weighted by its rarity (inverse document frequency)."""
    evidence: Floats
    """The weight of the shared words: the sum of their rarities (1 for the rarest words). It may exceed 1."""
    surface: Floats
    """The Jaccard overlap of all distinct words, function words included: high for edits, lower for rewordings."""
    changed: Floats
    """The number of distinct words that only one of the two texts has, without function words."""
    asked: Floats
    """The cosine of the questions alone."""
    numbers: Floats
    """The weighted overlap of the quantities, shared / (all + 1). A single shared number gives 1/2."""
    telling: Floats
    """The weight of the shared quantities: the sum of their weights times their rarities. It may exceed 1."""
    contexts: Floats
    """The cosine of the sets of contexts: pairs of a quantity and a word next to it."""
    order: Floats
    """The smoothed cosine of the sets of pairs of neighbouring quantities; 1 if neither text has two quantities."""
    only_left: Floats
    """The weight of the quantities that only the left text has, 1.0 for each plain number; not bounded by 1."""
    only_right: Floats
    """The weight of the quantities that only the right text has; not bounded by 1."""
    length: Floats
    """The ratio of the numbers of words, shorter text to longer text."""
    code: Floats
    """1 if either text is about a program, else 0."""

    def __len__(self) -> int:
        return len(self.words)

    def take(self, chosen: npt.NDArray[Any]) -> Measures:
        """Return the measures of some of the pairs."""
        return Measures(**{field.name: getattr(self, field.name)[chosen] for field in fields(self)})


def join_measures(parts: list[Measures]) -> Measures:
    """Join the measures of several batches of pairs."""
    names = [field.name for field in fields(Measures)]
    empty = np.zeros(0, dtype=np.float32)
    return Measures(**{name: np.concatenate([empty, *(getattr(part, name) for part in parts)]) for name in names})


class Comparer:
    """Measures pairs of rows of one set of features."""

    def __init__(self, features: Features) -> None:
        rows, width, frequency = features.texts, len(features.stems), features.texts_with_word
        # Smooth idf as in scikit-learn. Function words and signs count a fifth of other words with the same frequency.
        idf = np.log((1 + rows) / (1 + frequency)) + 1
        self._square = (np.where(features.is_stop, 0.2 * idf, idf) ** 2).astype(np.float32)
        word_rarity = np.where(features.is_stop, 0, np.log((1 + rows) / (1 + frequency)) / np.log(2 + rows))
        self._word_rarity = word_rarity.astype(np.float32)
        harmless = np.fromiter((stem in HARMLESS for stem in features.stems), dtype=bool, count=width)
        self._has_meaning = (~harmless).astype(np.float32)
        self._words = words = features.words
        self._meaningful_words = sum_rows(words, lambda entries: self._has_meaning[words.indices[entries]])
        changeable = HARMLESS | STOPWORDS | {stem(word) for word in CHANGEABLE | UNITS.keys()}
        decisive = np.fromiter((name not in changeable for name in features.stems), dtype=bool, count=width)
        self._is_decisive = decisive.astype(np.float32)
        self._decisive_words = sum_rows(words, lambda entries: self._is_decisive[words.indices[entries]])
        self._word_count = np.diff(words.indptr).astype(np.float32)
        self._word_norm = np.sqrt(sum_rows(words, lambda entries: self._square[words.indices[entries]]))
        self._asked_norm = np.sqrt(
            sum_rows(words, lambda entries: self._square[words.indices[entries]] * (words.data[entries] == ASKED))
        )
        self._numbers = features.numbers
        self._number_weight = sum_rows(features.numbers, lambda entries: features.numbers.data[entries])
        self._number_rarity = (np.log((1 + rows) / (1 + features.texts_with_number)) / np.log(2 + rows)).astype(
            np.float32
        )
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
        """Return the quantities above `weight` that left[i] has and right[i] lacks, as indices i and features."""
        left_numbers = self._numbers[left]
        missing = (left_numbers - left_numbers.minimum(self._numbers[right])).tocoo()
        enough = missing.data > weight
        return missing.coords[0][enough].astype(np.int64), missing.coords[1][enough].astype(np.int32)

    def count_missing_words(self, left: Ints, right: Ints) -> Floats:
        """Return the number of distinct meaningful words that left[i] has and right[i] lacks."""
        shared = self._words[left].multiply(self._words[right])
        return self._meaningful_words[left] - sum_runs(shared.indptr, self._has_meaning[shared.indices])

    def count_decisive_words(self, left: Ints, right: Ints) -> Floats:
        """Return the number of distinct words that only one of left[i] and right[i] has.

        Words that a copy may replace (`CHANGEABLE`), stopwords and units do not count.
        """
        shared = self._words[left].multiply(self._words[right])
        both = sum_runs(shared.indptr, self._is_decisive[shared.indices])
        return self._decisive_words[left] + self._decisive_words[right] - 2 * both

    def share_of_contexts(self, left: Ints, right: Ints) -> Floats:
        """Return the share of the contexts of left[i] that right[i] has, too; 1 if left[i] has no contexts."""
        shared = np.diff(self._contexts[left].multiply(self._contexts[right]).indptr).astype(np.float32)
        whole = self._contexts_norm[left] ** 2
        return np.where(whole > 0, _divide(shared, whole), np.float32(1))

    def measure_sets(self, left: Ints, right: Ints) -> Measures:
        """Return the measures of up to BATCH pairs, except for `contexts` and `order`, which are 0."""
        words = self._words[left].multiply(self._words[right])
        shared = np.diff(words.indptr).astype(np.float32)
        square = self._square[words.indices]
        inner = sum_runs(words.indptr, square)
        # Only a word of both questions has the product ASKED * ASKED.
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
        """Return measures from `measure_sets` with `contexts` and `order` filled in."""
        contexts = np.diff(self._contexts[left].multiply(self._contexts[right]).indptr).astype(np.float32)
        orders = np.diff(self._orders[left].multiply(self._orders[right]).indptr).astype(np.float32)
        return replace(
            measures,
            contexts=_divide(contexts, self._contexts_norm[left] * self._contexts_norm[right]),
            order=(orders + 1) / (self._orders_norm[left] * self._orders_norm[right] + 1),
        )


def _divide(top: Floats, bottom: Floats) -> Floats:
    """Return the quotients, 0 where `bottom` is 0."""
    return np.divide(top, bottom, out=np.zeros_like(top), where=bottom > 0)


class Relation(IntEnum):
    """The relation of a pair of problems, from the loosest to the closest."""

    UNRELATED = 0
    EDITED_VARIANT = 1
    SAME_TEMPLATE = 2
    SAME_PROBLEM = 3
    EXACT = 4

    @property
    def label(self) -> str:
        """The relation's name in tables."""
        return self.name.lower()


def same_story_score(measures: Measures, texts: int) -> Floats:
    """Return the log-odds that each pair is the same problem, for pairs that are not near copies.

    `texts` is the number of texts that the pairs come from.
    """
    smaller_only = np.minimum(measures.only_left, measures.only_right)
    larger_only = np.maximum(measures.only_left, measures.only_right)
    telling = np.minimum(measures.telling, 3)
    columns = {
        "words": measures.words,
        "few_words": np.maximum(FEW_WORDS - measures.words, 0),
        "evidence": np.minimum(measures.evidence, 12),
        "asked": measures.asked,
        "numbers": measures.numbers,
        "telling": telling,
        "words*numbers": measures.words * measures.numbers,
        "words*telling": measures.words * telling,
        "only_both": np.minimum(smaller_only, 2),
        "only_one": np.minimum(larger_only, 3),
        "length": measures.length,
        "contexts": measures.contexts,
        "surface*only_one": measures.surface * np.minimum(larger_only, 1),
        "no_numbers": measures.telling == 0,
        "order": measures.order,
        "much_surface": np.maximum(measures.surface - MUCH_SURFACE, 0),
    }
    base = WEIGHTS["bias"] + WEIGHTS["log10_texts"] * np.log10(np.clip(texts, *FITTED_TEXTS))
    score = np.full(len(measures), base, dtype=np.float32)
    for name, column in columns.items():
        score += np.float32(WEIGHTS[name]) * column
    return score


def is_near_copy(measures: Measures) -> Marks:
    """Mark the pairs that share most of their words."""
    return measures.surface >= NEAR_COPY


def _is_replaced(measures: Measures) -> Marks:
    return np.minimum(measures.only_left, measures.only_right) > REPLACED


def relate(measures: Measures, texts: int) -> tuple[npt.NDArray[np.uint8], Floats]:
    """Return the closest `Relation` that each pair may have, and its score (log-odds of the same problem).

    `texts` is the number of texts that the pairs come from. For `a` texts that were compared only with `b` other texts,
    pass `sqrt(2ab)`: this number of texts have `ab` pairs.
    """
    numbers_agree = np.maximum(measures.only_left, measures.only_right) <= SAME_NUMBERS
    may_be_copy = numbers_agree & (measures.changed <= np.where(measures.code > 0, 0, FEW_CHANGED))
    score = same_story_score(measures, texts)
    may_be_reworded = (score > LEAST_SCORE) & (measures.code == 0)
    same = ~_is_replaced(measures) & np.where(is_near_copy(measures), may_be_copy, may_be_reworded)
    return np.where(same, np.uint8(Relation.SAME_PROBLEM), relate_others(measures)), score


def relate_others(measures: Measures) -> npt.NDArray[np.uint8]:
    """Return the `Relation` of pairs that are not the same problem."""
    related = (measures.surface >= RELATED) & (measures.words >= RELATED_WORDS)
    relation = np.select(
        [related & _is_replaced(measures), related],
        [Relation.SAME_TEMPLATE, Relation.EDITED_VARIANT],
        Relation.UNRELATED,
    )
    return relation.astype(np.uint8)


def may_relate(measures: Measures, texts: int) -> Marks:
    """Mark the pairs that `relate` may find related, before their `contexts` and `order` are known."""
    best = sum(max(WEIGHTS[name], 0.0) for name in ("contexts", "order"))
    unknown = np.zeros_like(measures.contexts)
    known = replace(measures, contexts=unknown, order=unknown)
    score = same_story_score(known, texts) + best
    may_be_reworded = ~_is_replaced(measures) & (measures.code == 0) & (score > LEAST_SCORE - ROUNDING)
    marks: Marks = (measures.surface >= RELATED) | may_be_reworded
    return marks


def describe_pairs(features: Features, comparer: Comparer, here: Ints, there: Ints, score: Floats) -> pl.Series:
    """Return the evidence of each pair (here[i], there[i]) as a JSON text for tables.

        {"score":4.2,"words":0.81,"question":0.93,"quantities":0.75,"only_here":["5"],"only_there":["9"]}

    - `score` is the log-odds of the same problem.
    - `words`, `question` and `quantities` are overlaps in [0, 1]; `quantities` is 1/2 for one shared quantity alone.
    - `only_here` has the quantities and formulas that only the first text has, `only_there` those of the second text.
    """
    measures = comparer.measure(here, there)
    frame = pl.DataFrame(
        {
            "score": score.astype(np.float64),
            "words": measures.words.astype(np.float64),
            "question": measures.asked.astype(np.float64),
            "quantities": measures.numbers.astype(np.float64),
        }
    ).with_columns(pl.all().round(2))
    frame = frame.with_columns(
        _missing_quantities(features, comparer, here, there, "only_here"),
        _missing_quantities(features, comparer, there, here, "only_there"),
    )
    return frame.select(pl.struct(pl.all()).struct.json_encode().alias("evidence"))["evidence"]


def _missing_quantities(features: Features, comparer: Comparer, left: Ints, right: Ints, name: str) -> pl.Series:
    """Return for each pair a list of the quantities that only the left text has, shortened for display."""
    pair, codes = comparer.missing_quantities(left, right, SPELLING_MARGIN)
    distinct, back = np.unique(codes, return_inverse=True)
    # The text of a quantity feature begins with QUANTITY_SIGN.
    shown = pl.Series([features.stems[code][1 : MAX_CHARS + 1] for code in distinct.tolist()], dtype=pl.String)
    shown_by_pair = (
        pl.DataFrame({"pair": pair, name: shown.gather(back)}).group_by("pair").agg(pl.col(name).head(MAX_SHOWN))
    )
    pairs = pl.DataFrame({"pair": np.arange(len(left))})
    return pairs.join(shown_by_pair, on="pair", how="left", maintain_order="left")[name].fill_null([])
