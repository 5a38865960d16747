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

import numpy as np
import numpy.typing as npt
import polars as pl

from truegold.pipeline.dedup_table import canonical_gold
from truegold.pipeline.near.features import FeatureBuilder, Features
from truegold.pipeline.near.sparse import Ints
from truegold.pipeline.rules.numbers import read_number

NO_GOLD = -1


@dataclass(frozen=True)
class Corpus:
    """What is known of all rows. text: each row's distinct text, -1 for an empty prompt. gold: equal numbers for equal
    golds, NO_GOLD for none. quality: higher is better; of copies the best is kept. text_gold: of each text's first row.
    """

    features: Features
    text: Ints
    gold: Ints
    quality: npt.NDArray[np.float32]
    text_gold: Ints


class CorpusBuilder:
    """`add` rows in order, then `finish` once."""

    def __init__(self, case_sensitive: bool = False) -> None:
        self._case_sensitive = case_sensitive
        self._features = FeatureBuilder()
        self._known = np.zeros(0, dtype=np.uint64)  # hashes of distinct texts, sorted
        self._number = np.zeros(0, dtype=np.int64)  # and their numbers
        self._texts = 0
        self._text: list[Ints] = []
        self._gold: list[Ints] = []
        self._quality: list[npt.NDArray[np.float32]] = []
        self._text_gold: list[Ints] = []

    def add(
        self,
        prompts: Sequence[str],
        golds: Sequence[str | None],
        solutions: Sequence[int],
        preferred: Sequence[bool] | None = None,
    ) -> None:
        """Take in more rows. solutions: characters of each worked solution. preferred: rows to keep before others."""
        series = pl.Series(prompts, dtype=pl.String)
        plain = series.str.normalize("NFC").str.replace_all(r"\s+", " ").str.strip_chars()
        hashes = (plain if self._case_sensitive else plain.str.to_lowercase()).hash(seed=7).to_numpy()
        filled = (plain.str.len_bytes() > 0).to_numpy()
        distinct, first, back = np.unique(hashes, return_index=True, return_inverse=True)
        place = np.searchsorted(self._known, distinct)
        known = np.zeros(len(distinct), dtype=bool)
        inside = place < len(self._known)
        known[inside] = self._known[place[inside]] == distinct[inside]
        known |= ~filled[first]
        fresh = np.flatnonzero(~known)
        fresh = fresh[np.argsort(first[fresh])]  # numbered in the order in which they come
        number = np.full(len(distinct), -1, dtype=np.int64)
        old = np.flatnonzero(known & filled[first])
        number[old] = self._number[place[old]]
        number[fresh] = self._texts + np.arange(len(fresh))
        self._texts += len(fresh)
        self._remember(distinct[fresh], number[fresh])
        gold = np.fromiter((_gold_number(value) for value in golds), dtype=np.int64, count=len(golds))
        self._features.add(series.gather(first[fresh]))
        self._text_gold.append(gold[first[fresh]])
        self._text.append(number[back])
        self._gold.append(gold)
        complete = plain.str.contains(r"[.?!。？！$)}\]]$").to_numpy()
        self._quality.append(_quality(gold, solutions, complete, preferred))

    def _remember(self, hashes: npt.NDArray[np.uint64], numbers: Ints) -> None:
        both = np.concatenate([self._known, hashes])
        order = np.argsort(both, kind="stable")
        self._known = both[order]
        self._number = np.concatenate([self._number, numbers])[order]

    def finish(self) -> Corpus:
        """Everything added."""
        empty = np.zeros(0, dtype=np.int64)
        return Corpus(
            self._features.finish(),
            np.concatenate([empty, *self._text]),
            np.concatenate([empty, *self._gold]),
            np.concatenate([empty.astype(np.float32), *self._quality]),
            np.concatenate([empty, *self._text_gold]),
        )


def same_gold_form(gold: str | None) -> str | None:
    """A gold's form for comparison: plain numbers by value however they are written (LaTeX, units, %), else the text."""
    form = canonical_gold(gold)
    if form is None or not form or form.lstrip("-").replace(".", "", 1).isdigit():
        return form or None
    number = read_number(gold)
    return str(number.value) if number is not None else form.replace(" ", "")


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
