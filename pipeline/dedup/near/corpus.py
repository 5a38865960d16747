"""Problems as rows and as distinct texts: exact copies (`copies`) are recognised as they come, and compared only once.

    row 0  "What is 6*7?"   gold 42      text 0
    row 1  "what is  6*7?"  gold 42.0    text 0   a copy
    row 2  "How many legs?" gold 4       text 1

A row costs some 30 bytes here, a distinct text about 400 (`features`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from truegold.pipeline.dedup.near.arrays import Floats, Ints, Marks
from truegold.pipeline.dedup.near.copies import NO_GOLD, gold_keys, tidy_prompts
from truegold.pipeline.dedup.near.cutting import MAX_CHARS, lower_texts
from truegold.pipeline.dedup.near.features import FeatureBuilder, Features, Listener
from truegold.pipeline.dedup.near.numbering import HashNumbers

MAX_SOLUTION_CHARS = 10_000
"""A worked solution that is longer still is no better."""


@dataclass(frozen=True)
class Corpus:
    """What is known of all rows."""

    features: Features
    """The features of each distinct text."""
    text: Ints
    """Each row's distinct text, -1 for an empty prompt."""
    gold: Ints
    """Equal numbers for equal golds, NO_GOLD for none."""
    golds: pl.Series
    """The golds as they are written."""
    quality: Floats
    """Higher is better; of copies the best row is kept."""
    text_gold: Ints
    """The gold of each text's rows, NO_GOLD where they differ or have none."""


class CorpusBuilder:
    """Takes rows in order (`add`) and makes their corpus (`finish`, once)."""

    def __init__(self) -> None:
        self._features = FeatureBuilder()
        self._text_numbers = HashNumbers()
        self._text: list[Ints] = [np.zeros(0, np.int64)]
        self._gold: list[Ints] = [np.zeros(0, np.int64)]
        self._quality: list[Floats] = [np.zeros(0, np.float32)]
        self._golds: list[pl.Series] = [pl.Series([], dtype=pl.String)]

    def add(
        self,
        prompts: Sequence[str],
        golds: Sequence[str | None],
        solutions: Sequence[int],
        preferred: Sequence[bool] | None = None,
    ) -> None:
        """Take in more rows.

        `solutions` has the characters of each worked solution, `preferred` marks rows to keep before others.
        """
        series = pl.Series(prompts, dtype=pl.String)
        tidied = tidy_prompts(series)
        filled = np.flatnonzero(tidied.filled)
        text = np.full(len(series), -1, dtype=np.int64)
        text[filled], new = self._text_numbers.assign(tidied.keys()[filled])
        # Texts are cut as they came: a line break in a formula is not a space there.
        as_written = tidied.untidy | (tidied.texts.str.len_bytes() > MAX_CHARS).to_numpy()
        cut_as = np.where(as_written, len(series) + np.cumsum(as_written) - 1, np.arange(len(series)))
        both = pl.concat([tidied.lower, lower_texts(series.filter(pl.Series(as_written)))])
        self._features.add_lower(both.gather(cut_as[filled[new]]))
        gold = gold_keys(golds)
        self._text.append(text)
        self._gold.append(gold)
        self._golds.append(pl.Series([_writable(gold_text) for gold_text in golds], dtype=pl.String))
        complete = tidied.texts.str.contains(r"[.?!。？！$)}\]]$").to_numpy()
        self._quality.append(_quality(gold, solutions, complete, preferred))

    @property
    def texts(self) -> int:
        """The number of distinct texts so far."""
        return len(self._text_numbers)

    def listen(self, listener: Listener) -> None:
        """From the next text on, hand the tokens of each distinct text to `listener`."""
        self._features.listen(listener)

    def finish(self) -> Corpus:
        """Return the corpus of all rows added."""
        text, gold = np.concatenate(self._text), np.concatenate(self._gold)
        return Corpus(
            self._features.finish(),
            text,
            gold,
            pl.concat(self._golds),
            np.concatenate(self._quality),
            _text_golds(text, gold, len(self._text_numbers)),
        )


def _text_golds(text: Ints, gold: Ints, texts: int) -> Ints:
    has_both = (text >= 0) & (gold != NO_GOLD)
    smallest = np.full(texts, np.iinfo(np.int64).max)
    largest = np.full(texts, NO_GOLD, dtype=np.int64)
    np.minimum.at(smallest, text[has_both], gold[has_both])
    np.maximum.at(largest, text[has_both], gold[has_both])
    return np.where(smallest == largest, largest, NO_GOLD)


def _writable(text: str | None) -> str | None:
    """Return the text without lone surrogates, which no table can hold."""
    return text if text is None or text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def _quality(gold: Ints, solutions: Sequence[int], complete: Marks, preferred: Sequence[bool] | None) -> Floats:
    """Rank preferred rows first, then rows with gold, then complete texts, then longer worked solutions."""
    length = np.minimum(np.asarray(solutions, dtype=np.float32), MAX_SOLUTION_CHARS) / (MAX_SOLUTION_CHARS + 1)
    first = np.zeros(len(gold)) if preferred is None else np.asarray(preferred, dtype=np.float32)
    quality: Floats = (4 * first + 2 * (gold != NO_GOLD) + complete + length).astype(np.float32)
    return quality
