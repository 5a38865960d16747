"""Problems as rows and as distinct texts: exact copies are recognised as they come in and compared only once.

    row 0  "What is 6*7?"   gold 42      text 0
    row 1  "what is  6*7?"  gold 42.0    text 0   the same text but for case and spaces, the same gold
    row 2  "How many legs?" gold 4       text 1

A row costs some 30 bytes here, a distinct text about 400 (`features`). Texts are told apart by 64 bits of hash: among
a million different ones two fall together with a probability of 3e-8.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import polars as pl

from truegold.pipeline.dedup.exact_copies import canonical_gold
from truegold.pipeline.dedup.near.cutting import MAX_CHARS, lowered
from truegold.pipeline.dedup.near.features import FeatureBuilder, Features, Listener
from truegold.pipeline.dedup.near.seen import Seen
from truegold.pipeline.dedup.near.sparse import Ints
from truegold.pipeline.dedup.near.tidy import tidy
from truegold.pipeline.flag.rules.numbers import read_number

NO_GOLD = -1


@dataclass(frozen=True)
class Corpus:
    """What is known of all rows. text: each row's distinct text, -1 for an empty prompt. gold: equal numbers for equal
    golds, NO_GOLD for none; golds: as written. quality: higher is better; of copies the best is kept. text_gold: of
    each text the gold of its rows, NO_GOLD where they differ or have none.
    """

    features: Features
    text: Ints
    gold: Ints
    golds: pl.Series
    quality: npt.NDArray[np.float32]
    text_gold: Ints


class CorpusBuilder:
    """`add` rows in order, then `finish` once."""

    def __init__(self) -> None:
        self._features = FeatureBuilder()
        self._seen = Seen()
        self._text: list[Ints] = []
        self._gold: list[Ints] = []
        self._quality: list[npt.NDArray[np.float32]] = []
        self._golds: list[pl.Series] = []

    def add(
        self,
        prompts: Sequence[str],
        golds: Sequence[str | None],
        solutions: Sequence[int],
        preferred: Sequence[bool] | None = None,
    ) -> None:
        """Take in more rows. solutions: characters of each worked solution. preferred: rows to keep before others."""
        series = pl.Series(prompts, dtype=pl.String)
        plain, untidy = tidy(series)
        lower = plain.str.to_lowercase()
        hashes = lower.hash(seed=7).to_numpy()
        filled = (plain.str.len_bytes() > 0).to_numpy()
        text = np.full(len(series), -1, dtype=np.int64)
        text[filled], fresh = self._seen.number(hashes[filled])
        fresh = np.flatnonzero(filled)[fresh]
        gold = np.fromiter((_gold_number(value) for value in golds), dtype=np.int64, count=len(golds))
        # Texts are cut as they came: a line break in a formula is not a space there.
        untidy |= (plain.str.len_bytes() > MAX_CHARS).to_numpy()
        cut_as = np.where(untidy, len(series) + np.cumsum(untidy) - 1, np.arange(len(series)))
        both = pl.concat([lower, lowered(series.filter(pl.Series(untidy)))])
        self._features.add_lowered(both.gather(cut_as[fresh]))
        self._text.append(text)
        self._gold.append(gold)
        self._golds.append(pl.Series([_writable(value) for value in golds], dtype=pl.String))
        complete = plain.str.contains(r"[.?!。？！$)}\]]$").to_numpy()
        self._quality.append(_quality(gold, solutions, complete, preferred))

    @property
    def texts(self) -> int:
        """The number of distinct texts so far."""
        return len(self._seen)

    def listen(self, listener: Listener) -> None:
        """See `FeatureBuilder.listen`; each distinct text is told once."""
        self._features.listen(listener)

    def finish(self) -> Corpus:
        """Everything added."""
        empty = np.zeros(0, dtype=np.int64)
        text, gold = np.concatenate([empty, *self._text]), np.concatenate([empty, *self._gold])
        return Corpus(
            self._features.finish(),
            text,
            gold,
            pl.concat([pl.Series([], dtype=pl.String), *self._golds]),
            np.concatenate([empty.astype(np.float32), *self._quality]),
            _text_golds(text, gold, len(self._seen)),
        )


def _text_golds(text: Ints, gold: Ints, texts: int) -> Ints:
    given = (text >= 0) & (gold != NO_GOLD)
    smallest = np.full(texts, np.iinfo(np.int64).max)
    largest = np.full(texts, NO_GOLD, dtype=np.int64)
    np.minimum.at(smallest, text[given], gold[given])
    np.maximum.at(largest, text[given], gold[given])
    return np.where(smallest == largest, largest, NO_GOLD)


def same_gold_form(gold: str | None) -> str | None:
    """A gold's form for comparison: a plain number by value however it is written (LaTeX, units, %), else the text."""
    form = canonical_gold(gold)
    if form is None or not form or form.lstrip("-").isdigit():
        return form or None
    number = read_number(gold)
    return str(number.value) if number is not None else form.replace(" ", "")


def _writable(text: str | None) -> str | None:
    """The text without lone surrogates, which no table can hold."""
    return text if text is None or text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


@lru_cache(2**16)
def _gold_number(gold: str | None) -> int:
    form = same_gold_form(gold)
    if form is None:
        return NO_GOLD
    digest = hashlib.blake2b(form.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1


def _quality(
    gold: Ints, solutions: Sequence[int], complete: npt.NDArray[np.bool_], preferred: Sequence[bool] | None
) -> npt.NDArray[np.float32]:
    """Preferred before not; then with gold before without; a complete text; the longer worked solution (to 10,000)."""
    length = np.minimum(np.asarray(solutions, dtype=np.float32), 10_000) / 10_001
    first = np.zeros(len(gold)) if preferred is None else np.asarray(preferred, dtype=np.float32)
    result: npt.NDArray[np.float32] = (4 * first + 2 * (gold != NO_GOLD) + complete + length).astype(np.float32)
    return result
