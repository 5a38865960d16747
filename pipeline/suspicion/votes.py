"""Counts how often each system (a model or a person) gives each answer to a problem.

`VoteCounter.add` takes samples in any order. `count` sorts them into classes of equal answers (`answer_classes`) and
returns `Votes`, in which each problem is an item. Samples of unknown problems are only counted.

Samples of a model at several steps of its training become up to four systems, its checkpoints:

    policy: steps 0, 1, ..., 79, 256 samples each  ->  "policy@0-19", "policy@20-39", "policy@40-59", "policy@60-79"

If the label is wrong, training makes the model's preferred answer more frequent, and the label less frequent. On a hard
problem, training makes the label more frequent (arXiv 2604.03993). So each checkpoint is a system with its own ability
(`label_posterior`). The checkpoints of a model share errors, so on one problem they weigh as much as repeated samples
of one system.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from truegold.pipeline.suspicion.answer_classes import (
    CUT_CLASS,
    LABEL_CLASS,
    UNJUDGED_CLASS,
    AnswerForm,
    LabelledProblem,
    Sample,
    classify,
    has_open_answer,
)
from truegold.verifiers import Item, verify_batch
from truegold.verifiers.running.batch import MAX_TIMEOUTS

MAX_CHECKPOINTS = 4
"""The maximum number of checkpoints of a model. The model's steps are divided into ranges with about equal numbers of
samples."""
NO_STEP = -1
"""The step of a sample without a step."""

SAME_SYSTEM = 0.5
"""The correlation between samples of one model for one item. k samples weigh k / (1 + (k - 1) * 0.5): less than samples
of k models. This is the design effect of cluster sampling (Kish 1965, section 5.4)."""
MAX_ANSWER_CHARS = 2_000
"""The maximum number of characters of an answer. Longer answers are cut to bound memory."""
BATCH = 2_000
"""The number of responses that are verified at a time."""
MAX_SPELLINGS = 5
"""The maximum number of spellings that are listed for a class of answers."""
ANSWER_KINDS = {LABEL_CLASS: "label", UNJUDGED_CLASS: "unjudged", CUT_CLASS: "cut_short"}
"""The names of the classes that are not alternatives to the label."""
ITEM, SYSTEM, TEXT, STATE, STEP = range(5)
"""The columns of the table of samples: the indices of item, system and text, then state and step."""


class _State(IntEnum):
    """The state of a sample's answer: its verdict, or TO_JUDGE."""

    TO_JUDGE = 0
    UNJUDGED = 1
    WRONG = 2
    RIGHT = 3


_AGREES: dict[int, bool] = {_State.RIGHT: True, _State.WRONG: False}


def split_by_step(
    models: Sequence[str], model: NDArray[np.int32], step: NDArray[np.int32]
) -> tuple[list[str], NDArray[np.int32], NDArray[np.int32]]:
    """Divide the samples of each model into checkpoints. `model` and `step` have a value for each sample.

    Returns the names of the systems, the index of each system's model, and the index of each sample's system. Systems
    are in the order of models and steps. A model with samples of only one step is one system.
    """
    names: list[str] = []
    family: list[int] = []
    system = np.zeros(len(model), dtype=np.int32)
    for index, name in enumerate(sorted(models)):
        rows = np.flatnonzero(model == models.index(name))
        checkpoints = _join_steps(step[rows])
        for steps in checkpoints:
            system[rows[np.isin(step[rows], steps)]] = len(names)
            span = str(steps[0]) if len(steps) == 1 else f"{steps[0]}-{steps[-1]}"
            names.append(name if len(checkpoints) == 1 else f"{name}@{span}")
            family.append(index)
    return names, np.array(family, dtype=np.int32), system


def _join_steps(step: NDArray[np.int32]) -> list[NDArray[np.int32]]:
    """Return the steps of each checkpoint of one model, in rising order. `step` has the step of each sample:

    step         0    1    2    3    4     100 samples at each step: 500 samples, so 125 for a checkpoint
    middle       50   150  250  350  450   the number of the step's middle sample
    checkpoint   0    1    2    2    3     the middle divided by 125, rounded down
    """
    steps, counts = np.unique(step, return_counts=True)
    middle = np.cumsum(counts) - counts / 2
    part = np.minimum((middle * min(MAX_CHECKPOINTS, len(steps)) / len(step)).astype(int), MAX_CHECKPOINTS - 1)
    return [steps[part == position] for position in np.unique(part)]


@dataclass(frozen=True, slots=True)
class Votes:
    """The votes of m systems on n items, as e entries sorted by item and answer class.

    An entry counts the samples of one system for one item that have answers of one class.
    """

    item: NDArray[np.int32]
    """(e,), the index of the entry's item."""
    system: NDArray[np.int32]
    """(e,), the index of the entry's system."""
    answer_class: NDArray[np.int32]
    """(e,), the class of the answer: 0 for the label, 1 for the most frequent alternative, ..."""
    weight: NDArray[np.float64]
    """(e,), the weight of the entry. A single sample of a system has the weight 1."""
    samples: NDArray[np.int32]
    """(e,), the number of samples in the entry."""
    systems: list[str]
    """The names of the m systems, which are models or checkpoints of models."""
    family: NDArray[np.int32]
    """(m,), the index of each system's model. The checkpoints of a model are in rising order."""
    alternatives: list[list[str]]
    """The texts of the classes 1, 2, ... of each of the n items."""
    closed: NDArray[np.bool_]
    """(n,), whether the question is closed: it lists its possible answers."""
    unjudged: NDArray[np.int32]
    """(n,), the number of samples that could not be judged."""
    cut_short: NDArray[np.int32]
    """(n,), the number of samples that were set aside because their answer is a part of gold (`is_cut_short`)."""
    unknown_items: int
    """The number of samples whose item is not in the data."""

    @property
    def n_items(self) -> int:
        """The number of items, with votes or without."""
        return len(self.alternatives)

    def has_votes(self) -> NDArray[np.bool_]:
        """Return whether each item has votes (n,)."""
        return np.bincount(self.item, minlength=self.n_items) > 0

    def starts(self) -> NDArray[np.intp]:
        """Return where each item's entries start (n + 1,): item i has the entries `starts[i]` to `starts[i + 1]`."""
        return np.searchsorted(self.item, np.arange(self.n_items + 1))

    def table(self, chosen: NDArray[np.bool_] | None = None) -> NDArray[np.float64]:
        """Return the summed weights by item and system (n, m), of all entries or of the `chosen` entries (e,)."""
        m = len(self.systems)
        weight = self.weight if chosen is None else self.weight * chosen
        flat = np.bincount(self.item.astype(np.int64) * m + self.system, weights=weight, minlength=self.n_items * m)
        return flat.astype(np.float64, copy=False).reshape(self.n_items, m)

    def plurality(self) -> NDArray[np.int32]:
        """Return the most frequent class of each system for each item (n, m), or -1 without samples.

        In a tie, the lower class wins.
        """
        answers = np.full((self.n_items, len(self.systems)), -1, dtype=np.int32)
        order = np.lexsort((-self.answer_class, self.samples))
        answers[self.item[order], self.system[order]] = self.answer_class[order]  # The last assignment stays.
        return answers

    def reweight(self, system_weight: NDArray[np.float64]) -> Votes:
        """Return the votes with weights multiplied by each system's weight (m,)."""
        return replace(self, weight=self.weight * system_weight[self.system])

    def of_items(self, chosen: NDArray[np.intp]) -> Votes:
        """Return the votes on the chosen items, which are renumbered from 0. `chosen` has rising indices."""
        first, after = (int(chosen[0]), int(chosen[-1]) + 1) if len(chosen) else (0, 0)
        row = np.full(after - first, -1, dtype=np.int32)
        row[chosen - first] = np.arange(len(chosen), dtype=np.int32)
        start, stop = np.searchsorted(self.item, np.array([first, after], dtype=np.int32))
        item = row[self.item[start:stop] - first]
        return replace(
            self._of_entries(start + np.flatnonzero(item >= 0)),
            item=item[item >= 0],
            alternatives=[self.alternatives[index] for index in chosen],
            closed=self.closed[chosen],
            unjudged=self.unjudged[chosen],
            cut_short=self.cut_short[chosen],
        )

    def of_systems(self, chosen: NDArray[np.bool_]) -> Votes:
        """Return the votes of the chosen systems (m,). Items and their alternatives are unchanged."""
        votes = self._of_entries(chosen[self.system])
        return replace(
            votes,
            system=(np.cumsum(chosen) - 1)[votes.system].astype(np.int32),
            systems=[name for name, is_chosen in zip(self.systems, chosen, strict=True) if is_chosen],
            family=self.family[chosen],
        )

    def _of_entries(self, kept: NDArray[np.bool_] | NDArray[np.intp]) -> Votes:
        names = ("item", "system", "answer_class", "weight", "samples")
        return replace(self, **{name: getattr(self, name)[kept] for name in names})


@dataclass(frozen=True, slots=True)
class AnswerVotes:
    """A class of equal answers to an item."""

    item: int
    """The index of the item."""
    kind: str
    """`label`, `alternative`, `unjudged`, or `cut_short` (`is_cut_short`)."""
    spellings: list[str]
    """The spellings of the answer, the most frequent first."""
    votes: int
    """The number of samples with the answer."""
    systems: list[str]
    """The systems that gave the answer, empty for answers that were set aside."""


class NumberedNames(Protocol):
    """A mapping from the names of items in samples to the items' numbers."""

    def get(self, name: str, /) -> int | None:
        """Return the number of the item with this name, or None for an unknown name."""


class VoteCounter:
    """Collects the samples for a list of items."""

    def __init__(
        self, problems: Sequence[LabelledProblem], workers: int = 1, names: NumberedNames | None = None
    ) -> None:
        """Make a counter that finds items by `names`, or by their ids if `names` is not given."""
        self._problems = problems
        self._names = names or {problem.id: index for index, problem in enumerate(problems)}
        self._workers = workers
        self._systems: dict[str, int] = {}
        self._texts: dict[str, int] = {}
        self._rows = array("i")  # Each row is five integers, in the order of the columns above.
        self._forms = array("i")  # A spelling of an answer in four integers: item, answer class, text, samples.
        self.unknown_items = 0

    def add(self, samples: Iterable[Sample]) -> None:
        """Add samples. Whole responses are judged in batches; the votes are for the extracted answers."""
        waiting: list[tuple[int, Sample]] = []
        for sample in samples:
            if (item := self._names.get(sample.id)) is None:
                self.unknown_items += 1
            elif sample.response is not None and not sample.judged:
                waiting.append((item, sample))
                if len(waiting) >= BATCH:
                    self._judge(waiting)
            elif sample.answer is not None and sample.answer.strip():
                self._push(item, sample, sample.answer, _state(sample.score) if sample.judged else _State.TO_JUDGE)
        self._judge(waiting)

    def _judge(self, waiting: list[tuple[int, Sample]]) -> None:
        problems = (self._problems[item] for item, _ in waiting)
        batch = (
            Item(sample.response or "", problem.gold, problem.verifier, problem.verifier_args, problem.prompt)
            for (_, sample), problem in zip(waiting, problems, strict=True)
        )
        verdicts = verify_batch(batch, self._workers, max_timeouts=MAX_TIMEOUTS)
        for (item, sample), verdict in zip(waiting, verdicts, strict=True):
            state = _state(verdict.score)
            # A response without an answer is not a vote.
            if verdict.extracted is not None or state is _State.UNJUDGED:
                self._push(item, sample, verdict.extracted or "", state)
        waiting.clear()

    def _push(self, item: int, sample: Sample, text: str, state: _State) -> None:
        text = text[:MAX_ANSWER_CHARS]
        system_index = self._systems.setdefault(sample.system, len(self._systems))
        text_index = self._texts.setdefault(text, len(self._texts))
        step = NO_STEP if sample.step is None else sample.step
        self._rows.extend((item, system_index, text_index, state, step))

    def count(self) -> Votes:
        """Return the votes. Systems are sorted by name."""
        texts = list(self._texts)
        del self._forms[:]
        rows = np.frombuffer(self._rows, dtype=np.int32).reshape(-1, 5)
        rows = rows[np.argsort(rows[:, ITEM], kind="stable")]
        systems, family, system_of_row = split_by_step(list(self._systems), rows[:, SYSTEM], rows[:, STEP])
        votes_of_rows = np.column_stack([system_of_row, rows[:, TEXT], rows[:, STATE]])
        bounds = np.searchsorted(rows[:, ITEM], np.arange(len(self._problems) + 1))
        alternatives: list[list[str]] = []
        set_aside = {kind: np.zeros(len(self._problems), dtype=np.int32) for kind in (UNJUDGED_CLASS, CUT_CLASS)}
        entries = array("i")  # Each entry is four integers: item, system, answer class, samples.
        closed = np.zeros(len(self._problems), dtype=bool)
        for item_index, problem in enumerate(self._problems):
            closed[item_index] = not has_open_answer(problem)
            # For the few rows of an item, lists are faster than arrays.
            votes_on_item = votes_of_rows[bounds[item_index] : bounds[item_index + 1]].tolist()
            if not votes_on_item:
                alternatives.append([])
                continue
            texts_of_alternatives, votes = self._classify_item(item_index, problem, votes_on_item, texts)
            alternatives.append(texts_of_alternatives)
            for (answer_class, system), count in sorted(votes.items()):
                if answer_class in set_aside:
                    set_aside[answer_class][item_index] += count
                else:
                    entries.extend((item_index, system, answer_class, count))
        table = np.frombuffer(entries, dtype=np.int32).reshape(-1, 4)
        return Votes(
            item=table[:, 0].copy(),
            system=table[:, 1].copy(),
            answer_class=table[:, 2].copy(),
            weight=_weights(table, family),
            samples=table[:, 3].copy(),
            systems=systems,
            family=family,
            alternatives=alternatives,
            closed=closed,
            unjudged=set_aside[UNJUDGED_CLASS],
            cut_short=set_aside[CUT_CLASS],
            unknown_items=self.unknown_items,
        )

    def _classify_item(
        self, item_index: int, problem: LabelledProblem, votes: Sequence[Sequence[int]], texts: Sequence[str]
    ) -> tuple[list[str], Counter[tuple[int, int]]]:
        """Return the texts of an item's alternatives, and the numbers of samples by (answer class, system). Each vote
        has a system, a text and a state."""
        counts = Counter((text, state) for _, text, state in votes)
        forms = sorted(counts)
        answer_forms = [
            AnswerForm(texts[text], counts[text, state], _AGREES.get(state), unjudged=state == _State.UNJUDGED)
            for text, state in forms
        ]
        classes, texts_of_alternatives = classify(problem, answer_forms)
        class_of = dict(zip(forms, classes, strict=True))
        for (text, state), count in counts.items():
            self._forms.extend((item_index, class_of[text, state], text, count))
        return texts_of_alternatives, Counter((class_of[text, state], system) for system, text, state in votes)

    def answers(self, votes: Votes) -> Iterator[AnswerVotes]:
        """Yield the classes of answers of every item, in order, the most frequent first. Call `count` before."""
        texts = list(self._texts)
        forms = np.frombuffer(self._forms, dtype=np.int32).reshape(-1, 4)
        bounds, starts = (
            np.searchsorted(column, np.arange(votes.n_items + 1)).tolist() for column in (forms[:, 0], votes.item)
        )
        for item in np.unique(forms[:, 0]).tolist():
            grouped: dict[int, Counter[int]] = {}
            for _, answer_class, text, count in forms[bounds[item] : bounds[item + 1]].tolist():
                grouped.setdefault(answer_class, Counter())[text] += count
            part = slice(starts[item], starts[item + 1])
            systems: dict[int, list[str]] = {}
            for answer_class, system in zip(
                votes.answer_class[part].tolist(), votes.system[part].tolist(), strict=True
            ):
                systems.setdefault(answer_class, []).append(votes.systems[system])
            for answer_class, samples in sorted(grouped.items(), key=lambda entry: (-entry[1].total(), entry[0])):
                spellings = sorted(samples, key=lambda text: (-samples[text], texts[text]))
                yield AnswerVotes(
                    item=item,
                    kind=ANSWER_KINDS.get(answer_class, "alternative"),
                    spellings=[texts[text] for text in spellings[:MAX_SPELLINGS]],
                    votes=samples.total(),
                    systems=systems.get(answer_class, []),
                )


def _state(score: float | None) -> _State:
    if score is None:
        return _State.UNJUDGED
    return _State.RIGHT if score == 1.0 else _State.WRONG


def _weights(entries: NDArray[np.int32], family: NDArray[np.int32]) -> NDArray[np.float64]:
    """Return the weight of each entry. k samples of one model for an item weigh less than one sample of k models each.
    An entry has an item, a system, an answer class and a number of samples."""
    if not len(entries):
        return np.empty(0)
    key = entries[:, 0].astype(np.int64) * len(family) + family[entries[:, 1]]
    _, inverse = np.unique(key, return_inverse=True)
    drawn = np.bincount(inverse, weights=entries[:, 3])[inverse]
    return entries[:, 3] / (1.0 + (drawn - 1.0) * SAME_SYSTEM)
