"""Builds a corpus of problems from rows and distinct texts: exact copies share a text, which is compared only once.

    row 0  "What is 6*7?"   gold 42      text 0
    row 1  "what is  6*7?"  gold 42.0    text 0   a copy (`exact_copies`)
    row 2  "How many legs?" gold 4       text 1

A corpus lies in temporary files (`arrays.OnDisk`). It takes about 40 bytes a row, and 400 a distinct text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import polars as pl

from truegold.pipeline.near.arrays import TABLE_ROWS, Floats, Ints, Numbering, OnDisk, places_in
from truegold.pipeline.near.exact_copies import change_marked, tidy_prompts
from truegold.pipeline.near.features import FeatureBuilder, Features, Listener
from truegold.pipeline.near.gold_keys import NO_GOLD, gold_column, gold_keys
from truegold.pipeline.near.row_quality import row_quality
from truegold.pipeline.near.tokens import MAX_CHARS, lower_texts

HELD_CHARS = 6_000
"""A text of up to this length is stored in full. Of a longer text, both ends and a hash of the middle are stored."""


@dataclass(frozen=True)
class Corpus:
    """Rows, their distinct texts, and the features of the texts."""

    features: Features
    """The features of each distinct text."""
    text: Ints
    """Each row's distinct text, -1 for an empty prompt."""
    gold: Ints
    """A number for each row's gold. Equal golds have equal numbers. NO_GOLD stands for a row without gold."""
    golds: TextFile
    """The golds as they are written, empty for a row without gold."""
    quality: Floats
    """The quality of each row, higher is better. Of several copies, the best row is kept."""
    texts: TextFile
    """The distinct texts as they were written."""
    numbers: Ints | None = None
    """The number of each text of this corpus in `text`, ascending; None if the corpus has all texts."""

    def take(self, numbers: Ints) -> Corpus:
        """Return a corpus of some of the distinct texts, renumbered from 0. The arrays over rows stay unchanged."""
        return replace(
            self,
            features=self.features.take(numbers),
            texts=self.texts.take(numbers),
            numbers=numbers,
        )

    @property
    def text_gold(self) -> Ints:
        """The gold of each text's rows; NO_GOLD if its rows have different golds or no gold."""
        return self._text_golds[0]

    @property
    def gold_row(self) -> Ints:
        """For each text, the first of its rows with a gold; -1 if none of its rows has a gold."""
        return self._text_golds[1]

    @cached_property
    def _text_golds(self) -> tuple[Ints, Ints]:
        gold, row = np.full((2, len(self.features)), NO_GOLD, dtype=np.int64)
        differ = np.zeros(len(gold), dtype=bool)
        for start in range(0, len(self.text), TABLE_ROWS):
            part = slice(start, start + TABLE_ROWS)
            rows = np.flatnonzero((self.text[part] >= 0) & (self.gold[part] != NO_GOLD))
            text, golds = self.text[part][rows], self.gold[part][rows]
            if self.numbers is not None:
                positions = np.minimum(np.searchsorted(self.numbers, text), len(self.numbers) - 1)
                known = self.numbers[positions] == text
                rows, text, golds = rows[known], positions[known], golds[known]
            first = row[text] < 0
            # The last assignment to an index wins. The rows are reversed, so each text gets its first row.
            gold[text[first][::-1]], row[text[first][::-1]] = golds[first][::-1], start + rows[first][::-1]
            differ[text[golds != gold[text]]] = True
        gold[differ] = NO_GOLD
        return gold, row


class CorpusBuilder:
    """Takes rows in order (`add`) and makes their corpus (`finish`, once)."""

    def __init__(self, scratch: Path | None = None) -> None:
        """Make a builder with its temporary files in `scratch`, by default the system's temporary folder."""
        self._features = FeatureBuilder(scratch)
        self._texts = TextFile(scratch)
        self._text_listener: Callable[[pl.Series], None] | None = None
        self._text_numbers = Numbering(scratch)
        self._text, self._gold = OnDisk(np.int64, scratch), OnDisk(np.int64, scratch)
        self._quality = OnDisk(np.float32, scratch)
        self._golds = TextFile(scratch)

    def add(
        self,
        prompts: Sequence[str],
        golds: Sequence[str | None],
        solutions: Sequence[int],
        preferred: Sequence[bool] | None = None,
        ranks: Sequence[int] | None = None,
    ) -> Ints:
        """Take in more rows, and return the text of each.

        `solutions` has the length of each worked solution in characters. `preferred` marks the rows that are kept
        before other copies. `ranks` has the rank of each row's source, 0 for the best.
        """
        series = pl.Series(prompts, dtype=pl.String)
        tidied = tidy_prompts(series)
        filled = np.flatnonzero(tidied.filled)
        text = np.full(len(series), -1, dtype=np.int64)
        known = len(self._text_numbers)
        text[filled] = self._text_numbers.number_keys(tidied.keys()[filled])
        distinct, first = np.unique(text[filled], return_index=True)
        new = first[distinct >= known]
        # Features are made from the text as written, because a line break in a formula differs from a space.
        as_written = tidied.untidy | (tidied.texts.str.len_bytes() > MAX_CHARS).to_numpy()
        cut_as = np.where(as_written, len(series) + np.cumsum(as_written) - 1, np.arange(len(series)))
        both = pl.concat([tidied.lower, lower_texts(series.filter(pl.Series(as_written)))])
        self._features.add_lower(both.gather(cut_as[filled[new]]))
        new_texts = series.gather(filled[new])
        self._texts.add(change_marked(new_texts, (new_texts.str.len_chars() > HELD_CHARS).to_numpy(), _without_middle))
        if self._text_listener is not None:
            self._text_listener(new_texts)
        gold = gold_keys(golds)
        self._text.extend(text)
        self._gold.extend(gold)
        self._golds.add(gold_column(golds).fill_null(""))
        self._quality.extend(row_quality(gold, solutions, tidied.complete, preferred, ranks))
        return text

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
        return Corpus(
            features=self._features.finish(),
            text=self._text.array,
            gold=self._gold.array,
            golds=self._golds,
            quality=self._quality.array,
            texts=self._texts,
        )


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
        self._data, self._ends = OnDisk(np.uint8, folder), OnDisk(np.int64, folder)
        self._numbers: Ints | None = None
        """The positions of these texts in the file; None for all texts."""

    def add(self, texts: pl.Series) -> None:
        """Add more texts."""
        self._ends.extend(len(self._data) + np.cumsum(texts.str.len_bytes().to_numpy().astype(np.int64)))
        self._data.extend(np.frombuffer("".join(texts.to_list()).encode(), np.uint8))

    def take(self, numbers: Ints) -> TextFile:
        """Return the texts with these numbers, renumbered from 0."""
        taken = copy(self)
        taken._numbers = numbers
        return taken

    def __getitem__(self, text: int) -> str:
        return self.read([text])[0]

    def read(self, numbers: Iterable[int]) -> list[str]:
        """Return the texts with these numbers."""
        data, ends = self._data.array, self._ends.array
        if self._numbers is not None:
            numbers = self._numbers[list(numbers)].tolist()
        return [bytes(data[int(ends[text - 1]) if text else 0 : int(ends[text])]).decode() for text in numbers]
