"""Gathers samples into arrays: who answered what, with what weight, in a dozen bytes a sample.

`Ballot.add` takes samples in any order; `Ballot.count` sorts them into classes (`votes.classify`) and gives `Votes`.
Samples of items that are not in the data are counted and left out. Only distinct answer texts are held as texts.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from truegold.pipeline.flag.suspicion.items import Item, Sample
from truegold.pipeline.flag.suspicion.votes import Form, classify
from truegold.verifiers import Item as Judged
from truegold.verifiers import verify_batch

SAME_SYSTEM = 0.5
"""Correlation of one system's repeated samples for an item. k of them weigh k / (1 + (k - 1) * 0.5), which is at most
two independent systems (the design effect of cluster sampling, Kish 1965, section 5.4)."""
MAX_ANSWER_CHARS = 2_000
"""Longer answers are cut: they are no final answers, and would be held in memory."""
JUDGE_AT_ONCE = 2_000
"""Responses handed to the verifiers in one batch."""

_TO_JUDGE, _UNJUDGED, _WRONG, _RIGHT = 0, 1, 2, 3


@dataclass(frozen=True, slots=True)
class Votes:
    """Who voted for what. Entries are sorted by item, then class; n items, m systems, e entries.

    item, system, cls: int32 (e,); cls 0 is the label, 1 the alternative with most samples, ...
    weight: float64 (e,), what the entry counts (one sample of one system: 1). samples: int32 (e,).
    alternatives: for each item the texts of classes 1, 2, ...; unjudged: int32 (n,), samples nobody could judge.
    """

    item: NDArray[np.int32]
    system: NDArray[np.int32]
    cls: NDArray[np.int32]
    weight: NDArray[np.float64]
    samples: NDArray[np.int32]
    systems: list[str]
    alternatives: list[list[str]]
    unjudged: NDArray[np.int32]
    unknown_items: int

    @property
    def n_items(self) -> int:
        return len(self.alternatives)

    def of_systems(self, chosen: NDArray[np.bool_]) -> Votes:
        """The votes of the chosen systems alone; chosen: (m,). The items and their alternatives stay."""
        kept = chosen[self.system]
        place = np.cumsum(chosen) - 1
        return replace(
            self,
            item=self.item[kept],
            system=place[self.system[kept]].astype(np.int32),
            cls=self.cls[kept],
            weight=self.weight[kept],
            samples=self.samples[kept],
            systems=[name for name, wanted in zip(self.systems, chosen, strict=True) if wanted],
        )


class Ballot:
    """Collects the samples for a list of items."""

    def __init__(self, items: Sequence[Item], workers: int = 1) -> None:
        self._items = items
        self._place = {item.id: place for place, item in enumerate(items)}
        self._workers = workers
        self._systems: dict[str, int] = {}
        self._texts: dict[str, int] = {}
        self._rows = array("i")  # item, system, text, state
        self.unknown_items = 0

    def add(self, samples: Iterable[Sample]) -> None:
        """Take samples in; whole responses are judged in batches, which gives their answers."""
        waiting: list[Sample] = []
        for sample in samples:
            if sample.id not in self._place:
                self.unknown_items += 1
            elif sample.response is not None and not sample.judged:
                waiting.append(sample)
                if len(waiting) >= JUDGE_AT_ONCE:
                    self._judge(waiting)
            elif sample.answer is not None and sample.answer.strip():
                self._push(sample, sample.answer, _state(sample))
        self._judge(waiting)

    def _judge(self, waiting: list[Sample]) -> None:
        items = [self._items[self._place[sample.id]] for sample in waiting]
        judged = (
            Judged(sample.response or "", item.gold, item.verifier, item.verifier_args, item.prompt)
            for sample, item in zip(waiting, items, strict=True)
        )
        for sample, verdict in zip(waiting, verify_batch(judged, workers=self._workers), strict=True):
            state = _UNJUDGED if verdict.score is None else _RIGHT if verdict.score == 1.0 else _WRONG
            if verdict.extracted is not None or state == _UNJUDGED:  # no answer at all is like a missing one
                self._push(sample, verdict.extracted or "", state)
        waiting.clear()

    def _push(self, sample: Sample, text: str, state: int) -> None:
        text = text[:MAX_ANSWER_CHARS]
        self._rows.extend(
            (
                self._place[sample.id],
                self._systems.setdefault(sample.system, len(self._systems)),
                self._texts.setdefault(text, len(self._texts)),
                state,
            )
        )

    def count(self) -> Votes:
        """Classes for all items. Systems are put in the order of their names, so that the order of rows is nothing."""
        names = sorted(self._systems)
        ranks = {self._systems[name]: place for place, name in enumerate(names)}
        texts = list(self._texts)
        rows = np.frombuffer(self._rows, dtype=np.int32).reshape(-1, 4)
        rows = rows[np.argsort(rows[:, 0], kind="stable")]
        bounds = np.searchsorted(rows[:, 0], np.arange(len(self._items) + 1))
        alternatives: list[list[str]] = []
        unjudged = np.zeros(len(self._items), dtype=np.int32)
        rows_out = array("i")  # item, system, class, samples
        for place, item in enumerate(self._items):
            block = rows[bounds[place] : bounds[place + 1]]
            if not len(block):
                alternatives.append([])
                continue
            lines = block.tolist()  # a few rows: plain Python is faster than arrays here
            seen = Counter((text, state) for _, _, text, state in lines)
            keys = sorted(seen)
            found = classify(item, [_form(texts[text], state, seen[text, state]) for text, state in keys])
            alternatives.append(found.alternatives)
            cls = dict(zip(keys, found.of_form, strict=True))
            votes = Counter((cls[text, state], ranks[system]) for _, system, text, state in lines)
            unjudged[place] = sum(n for (number, _), n in votes.items() if number < 0)
            rows_out.extend(
                value
                for (number, system), n in sorted(votes.items())
                if number >= 0
                for value in (place, system, number, n)
            )
        table = np.frombuffer(rows_out, dtype=np.int32).reshape(-1, 4)
        return Votes(
            item=table[:, 0].copy(),
            system=table[:, 1].copy(),
            cls=table[:, 2].copy(),
            weight=_weights(table, len(names)),
            samples=table[:, 3].copy(),
            systems=names,
            alternatives=alternatives,
            unjudged=unjudged,
            unknown_items=self.unknown_items,
        )


def _state(sample: Sample) -> int:
    if not sample.judged:
        return _TO_JUDGE
    return _UNJUDGED if sample.score is None else _RIGHT if sample.score == 1.0 else _WRONG


def _form(text: str, state: int, count: int) -> Form:
    agrees = {_RIGHT: True, _WRONG: False}.get(state)
    return Form(text, count, agrees, unjudged=state == _UNJUDGED)


def _weights(table: NDArray[np.int32], n_systems: int) -> NDArray[np.float64]:
    """Samples of one system for one item count for less than as many systems (`SAME_SYSTEM`)."""
    if not len(table):
        return np.empty(0)
    key = table[:, 0].astype(np.int64) * max(1, n_systems) + table[:, 1]
    _, inverse = np.unique(key, return_inverse=True)
    drawn = np.bincount(inverse, weights=table[:, 3])[inverse]
    weights: NDArray[np.float64] = table[:, 3] / (1.0 + (drawn - 1.0) * SAME_SYSTEM)
    return weights
