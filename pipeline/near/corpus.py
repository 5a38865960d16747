"""A corpus of problems, as rows and as distinct texts: exact copies share a text, which is compared only once.

    row 0  "What is 6*7?"   gold 42      text 0
    row 1  "what is  6*7?"  gold 42.0    text 0   a copy (`exact_copies`)
    row 2  "How many legs?" gold 4       text 1

A row takes about 50 bytes of memory, a distinct text about 60. Features and original texts lie in temporary files
(`arrays.OnDisk`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import polars as pl

from truegold.pipeline.near.arrays import Floats, Growing, Ints, Numbering, OnDisk, places_in
from truegold.pipeline.near.exact_copies import change_marked, tidy_prompts
from truegold.pipeline.near.features import FeatureBuilder, Features, Listener
from truegold.pipeline.near.gold_keys import NO_GOLD, gold_column, gold_keys
from truegold.pipeline.near.row_quality import row_quality
from truegold.pipeline.near.tokens import MAX_CHARS, lower_texts

HELD_CHARS = 6_000
"""The length up to which a text is stored in full. Of a longer text, both ends and a hash of the middle are stored."""


@dataclass(frozen=True)
class Corpus:
    """Rows, their distinct texts, and the features of the texts."""

    features: Features
    """The features of each distinct text."""
    text: Ints
    """Each row's distinct text, -1 for an empty prompt."""
    gold: Ints
    """A number for each row's gold, equal for equal golds; NO_GOLD for a row without gold."""
    golds: pl.Series
    """The golds as they are written."""
    quality: Floats
    """The quality of each row, higher is better. Of several copies, the best row is kept."""
    text_gold: Ints
    """The gold of each text's rows, NO_GOLD if they differ or have none."""
    gold_row: Ints
    """For each text, the first of its rows with a gold; -1 if no row has one."""
    texts: TextFile
    """The distinct texts as they were written."""

    def take(self, numbers: Ints) -> Corpus:
        """Return a corpus of some of the distinct texts, renumbered from 0. The arrays over rows stay unchanged."""
        return replace(
            self,
            features=self.features.take(numbers),
            text_gold=self.text_gold[numbers],
            gold_row=self.gold_row[numbers],
            texts=self.texts.take(numbers),
        )


class CorpusBuilder:
    """Takes rows in order (`add`) and makes their corpus (`finish`, once)."""

    def __init__(self, scratch: Path | None = None) -> None:
        """Make a builder with its temporary files in `scratch`, by default the system's temporary folder."""
        self._features = FeatureBuilder(scratch)
        self._texts = TextFile(scratch)
        self._text_listener: Callable[[pl.Series], None] | None = None
        self._text_numbers = Numbering()
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
        ranks: Sequence[int] | None = None,
    ) -> None:
        """Take in more rows.

        `solutions` has the length of each worked solution in characters. `preferred` marks rows to keep before other
        rows. `ranks` has the rank of each row's source, 0 for the best.
        """
        series = pl.Series(prompts, dtype=pl.String)
        tidied = tidy_prompts(series)
        filled = np.flatnonzero(tidied.filled)
        text = np.full(len(series), -1, dtype=np.int64)
        known = len(self._text_numbers)
        text[filled] = self._text_numbers.number_keys(tidied.keys()[filled])
        distinct, first = np.unique(text[filled], return_index=True)
        new = first[distinct >= known]
        # Features are made from the text as written, because a line break in a formula is not a space.
        as_written = tidied.untidy | (tidied.texts.str.len_bytes() > MAX_CHARS).to_numpy()
        cut_as = np.where(as_written, len(series) + np.cumsum(as_written) - 1, np.arange(len(series)))
        both = pl.concat([tidied.lower, lower_texts(series.filter(pl.Series(as_written)))])
        self._features.add_lower(both.gather(cut_as[filled[new]]))
        new_texts = series.gather(filled[new])
        self._texts.add(new_texts)
        if self._text_listener is not None:
            self._text_listener(new_texts)
        gold = gold_keys(golds)
        self._text.append(text)
        self._gold.append(gold)
        self._golds.append(gold_column(golds))
        self._quality.append(row_quality(gold, solutions, tidied.complete, preferred, ranks))

    @property
    def distinct_texts(self) -> int:
        """The number of distinct texts so far."""
        return len(self._text_numbers)

    def listen(self, listener: Listener) -> None:
        """Pass the tokens of each further distinct text to `listener`."""
        self._features.listen(listener)

    def listen_to_texts(self, listener: Callable[[pl.Series], None]) -> None:
        """Pass each further distinct text, as it was written, to `listener`."""
        self._text_listener = listener

    def finish(self) -> Corpus:
        """Return the corpus of all rows added."""
        text, gold = np.concatenate(self._text), np.concatenate(self._gold)
        return Corpus(
            features=self._features.finish(),
            text=text,
            gold=gold,
            golds=pl.concat(self._golds),
            quality=np.concatenate(self._quality),
            text_gold=_text_golds(text, gold, self.distinct_texts),
            gold_row=_gold_rows(text, gold, self.distinct_texts),
            texts=self._texts,
        )


def _text_golds(text: Ints, gold: Ints, texts: int) -> Ints:
    has_both = (text >= 0) & (gold != NO_GOLD)
    smallest = np.full(texts, np.iinfo(np.int64).max)
    largest = np.full(texts, NO_GOLD, dtype=np.int64)
    np.minimum.at(smallest, text[has_both], gold[has_both])
    np.maximum.at(largest, text[has_both], gold[has_both])
    return np.where(smallest == largest, largest, NO_GOLD)


def _gold_rows(text: Ints, gold: Ints, texts: int) -> Ints:
    rows = np.full(texts, -1, dtype=np.int64)
    # The last assignment to an index wins, so the rows are reversed: each text gets its first row.
    with_gold = np.flatnonzero((text >= 0) & (gold != NO_GOLD))[::-1]
    rows[text[with_gold]] = with_gold
    return rows


def rank_rows(corpus: Corpus) -> tuple[Ints, Ints]:
    """Return the rows in order from best to worst, and the place of each row in that order."""
    best_first = np.argsort(-corpus.quality, kind="stable")
    return best_first, places_in(best_first)


def text_ranks(corpus: Corpus) -> Ints:
    """Return for each text the place of its best row."""
    _, rank = rank_rows(corpus)
    filled = np.flatnonzero(corpus.text >= 0)
    ranks = np.full(len(corpus.features), len(rank), dtype=np.int64)
    np.minimum.at(ranks, corpus.text[filled], rank[filled])
    return ranks


def _without_middle(texts: pl.Series) -> pl.Series:
    half = HELD_CHARS // 2
    middle = texts.str.slice(half).str.head(-half).str.to_lowercase().str.replace_all(r"[^\p{L}\p{N}]", "")
    return texts.str.head(half) + "\n" + middle.hash(seed=7).cast(pl.String) + "\n" + texts.str.tail(half)


class TextFile:
    """Texts in a temporary file: stored in order (`add`), read by number (`read`), deleted with the object."""

    def __init__(self, folder: Path | None = None) -> None:
        self._data, self._ends = OnDisk(np.uint8, folder), Growing(np.int64)
        self._numbers: Ints | None = None
        """The positions of these texts in the file; None for all texts."""

    def add(self, texts: pl.Series) -> None:
        """Add more texts."""
        cut = change_marked(texts, (texts.str.len_chars() > HELD_CHARS).to_numpy(), _without_middle)
        self._ends.extend(len(self._data) + np.cumsum(cut.str.len_bytes().to_numpy().astype(np.int64)))
        self._data.extend(np.frombuffer("".join(cut.to_list()).encode(), np.uint8))

    def take(self, numbers: Ints) -> TextFile:
        """Return the texts with these numbers, renumbered from 0."""
        taken = copy(self)
        taken._numbers = numbers
        return taken

    def read(self, numbers: Iterable[int]) -> list[str]:
        """Return the texts with these numbers."""
        data, ends = self._data.array, self._ends.array
        if self._numbers is not None:
            numbers = self._numbers[list(numbers)].tolist()
        return [bytes(data[int(ends[text - 1]) if text else 0 : int(ends[text])]).decode() for text in numbers]
