"""Which texts hold another text word for word, wholly or for the most part? Runs of five tokens, weighted by rarity.

    an item    "Tom has 3 red cars and buys 4 more. How many cars has he?"
    a text     "Solve step by step. Tom has 3 red cars and buys 4 more. How many cars has he? Give a number."   1.00
    another    "Tom has 5 red cars and buys 9 more. How many cars has he?"                                      0.35

The runs of all items are learnt first; then texts go by, and only what they share with an item is remembered, 8 bytes a
run. What counts is the share of an item's runs, each weighted by log((N + 1) / f) for a run that f of all N texts and
items have: "how many does he have" tells nothing, "3 red cars and buys" does. Tokens are compared by their stems and
quantities (`words`), so that case, plurals, "three" and layout make no difference.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from truegold.pipeline.dedup.near.growing import Growing, run_starts
from truegold.pipeline.dedup.near.sparse import Floats, Ints

SIZE = 5
"""Tokens of a run."""
MAX_PAIRS = 200_000
"""A run that ties more pairs of a text and an item is boilerplate, whatever its weight: it counts as not shared."""
TEXTS = 100_000
"""Texts whose shared runs are added up at a time."""
FILTER_BITS = 4
"""Places of the first filter for each learnt run, as a power of two: one run in sixteen passes it by chance."""

Hashes = npt.NDArray[np.uint64]


@dataclass(frozen=True)
class Containment:
    """Pairs of a text and an item: which share of the item's runs the text has, by weight, and the shared weight."""

    text: Ints
    item: Ints
    share: Floats
    weight: Floats


class GramIndex:
    """`learn` all items, then `look_up` texts in order, then `contained` once. Rows are numbers of items and texts."""

    def __init__(self) -> None:
        self._learnt: list[tuple[Hashes, Ints]] = []
        self._runs: Hashes | None = None
        self._text = Growing(np.int32)
        self._run = Growing(np.int32)
        self._items: Ints = np.zeros(0, np.int64)  # of each run, from starts
        self._starts: Ints = np.zeros(1, np.int64)
        self._total = 0

    def learn(self, row: Ints, token: Hashes, rows: int) -> None:
        """The tokens of more items: `row` is the item of each, ascending; `rows` of them are new."""
        runs, owner = _runs(row, token)
        self._learnt.append((runs, owner))
        self._total += rows

    def _freeze(self) -> Hashes:
        runs = np.concatenate([np.zeros(0, np.uint64), *(runs for runs, _ in self._learnt)])
        owner = np.concatenate([np.zeros(0, np.int64), *(owner for _, owner in self._learnt)])
        self._learnt.clear()
        order = np.lexsort((owner, runs))
        runs, owner = runs[order], owner[order]
        distinct = run_starts(runs) | run_starts(owner)
        runs, self._items = runs[distinct], owner[distinct]
        heads = np.flatnonzero(run_starts(runs))
        self._starts = np.append(heads, len(runs))
        self._runs = runs[heads]
        self._shift = np.uint64(64 - max(16, len(heads).bit_length() + FILTER_BITS))
        self._passes = np.zeros(1 << (64 - int(self._shift)), dtype=bool)
        self._passes[self._runs >> self._shift] = True
        return self._runs

    def look_up(self, row: Ints, token: Hashes, rows: int) -> None:
        """The tokens of more texts, likewise."""
        known = self._freeze() if self._runs is None else self._runs
        self._total += rows
        if not len(known):
            return
        runs, owner = _runs(row, token)
        maybe = self._passes[runs >> self._shift]
        runs, owner = runs[maybe], owner[maybe]
        place = np.minimum(np.searchsorted(known, runs), len(known) - 1)
        found = known[place] == runs
        pair = np.unique((owner[found] << 32) | place[found])
        self._text.extend(pair >> 32)
        self._run.extend(pair & 0xFFFFFFFF)

    def contained(self, share: float, weight: float) -> Containment:
        """The pairs in which a text has at least this share and this weight of an item's runs."""
        text, run = self._text.array, self._run.array
        frequency = np.bincount(run, minlength=len(self._starts) - 1)
        items = np.diff(self._starts)
        told = np.log((self._total + 1) / np.maximum(frequency + items, 1)) / np.log(self._total + 2)
        of_item = np.zeros(int(self._items.max(initial=-1)) + 1)
        np.add.at(of_item, self._items, np.repeat(told, items))
        useful = frequency * items <= MAX_PAIRS
        parts = []
        for start in range(0, int(text.max(initial=-1)) + 1, TEXTS):
            first, last = np.searchsorted(text, (start, start + TEXTS))
            here = first + np.flatnonzero(useful[run[first:last]])
            parts.append(self._add_up(text[here], run[here], told))
        whole = Containment(
            *(
                np.concatenate([np.zeros(0, dtype), *(getattr(part, name) for part in parts)])
                for name, dtype in (
                    ("text", np.int64),
                    ("item", np.int64),
                    ("share", np.float32),
                    ("weight", np.float32),
                )
            )
        )
        ratio = whole.weight / np.maximum(of_item[whole.item], 1e-9)
        kept = (ratio >= share) & (whole.weight >= weight)
        return Containment(whole.text[kept], whole.item[kept], ratio[kept].astype(np.float32), whole.weight[kept])

    def _add_up(
        self, text: npt.NDArray[np.int32], run: npt.NDArray[np.int32], told: npt.NDArray[np.float64]
    ) -> Containment:
        counts = np.diff(self._starts)[run]
        within = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
        item = self._items[np.repeat(self._starts[run], counts) + within]
        pair = (np.repeat(text, counts).astype(np.int64) << 32) | item
        order = np.argsort(pair, kind="stable")
        pair = pair[order]
        heads = np.flatnonzero(run_starts(pair))
        weight = np.add.reduceat(np.repeat(told[run], counts)[order], heads) if len(heads) else np.zeros(0)
        pair = pair[heads]
        return Containment(pair >> 32, pair & 0xFFFFFFFF, np.zeros(len(pair), np.float32), weight.astype(np.float32))


def _runs(row: Ints, token: Hashes) -> tuple[Hashes, Ints]:
    """A hash of every run of SIZE tokens within a row, and its row."""
    if len(row) < SIZE:
        return np.zeros(0, np.uint64), np.zeros(0, np.int64)
    last = len(row) - SIZE + 1
    value = np.zeros(last, dtype=np.uint64)
    for place in range(SIZE):
        value = value * np.uint64(0x9E3779B97F4A7C15) + token[place : place + last]
        value ^= value >> np.uint64(29)
    value *= np.uint64(0xFF51AFD7ED558CCD)
    value ^= value >> np.uint64(32)
    whole = row[:last] == row[SIZE - 1 :]
    return value[whole], row[:last][whole].astype(np.int64)
