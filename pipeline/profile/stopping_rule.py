"""Decides which problems of a profile get more samples: those for which more samples may change the selection.

    after 4 samples, if half of the rows will be selected:   1 to 3 passes -> stop, since the row will be selected
                                                             0 passes      -> draw two more, since one may pass

Selection takes a given share of all rows, the cut. It prefers rows with a large teaching share: the probability that a
training group of the row has both right and wrong samples (`Mixture.teaching_share`). Quotas limit the share of a
source or domain in the cut.

The state s of a problem is its number of judged samples and its number of passes. The rule gives each state a chance of
further samples. The chances minimise the number of samples under a condition: the selected rows teach nearly as much as
if all problems had all samples. The variables are shares of all problems. In state s, `ended[s]` stop, `going_on[s]` go
on, and `selected[s]` are selected:

    minimise    sum over s of  going_on[s] * (samples of a step)
    such that   ended[s] + going_on[s] = reached[s]
                selected[s] <= ended[s]
                teaching >= teaching_by_all - max(MISSED * (teaching_by_all - teaching_by_first), LEAST)

`reached[s]` follows from the states that go on to s. `teaching` is the teaching share of the selected rows. With all
samples it is `teaching_by_all`, with only the first samples `teaching_by_first`. The selected rows also respect the cut
and the quotas, and at most the share `zero_share` of them has no pass.

This is a linear program (a constrained Markov decision process: Altman 1999, "Constrained Markov Decision Processes",
chapter 3), solved by HiGHS in scipy. If a chance lies between 0 and 1, a hash of the row's id and counts decides for
each row. The order in which samples arrive has no effect.

The rule is learned from a pilot of random rows, and saved as JSON. `[0.0, 0.81, ...]` are the chances after 4 samples
with 0, 1, ... passes:

    {"training_rows": 5200, "levels": [4, 6, 8, 10, 12, 14, 16], "planned": {"17": 8, ...},
     "strata": [{"source": null, "domain": null, "quotas": [], "pilot": {"4": [0.0, 0.81, ...]}, "others": {...}}], ...}
"""

from __future__ import annotations

import random
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from truegold.pipeline.rates import Array, Counts, Group, Mixture, posterior_weights, teaching_shares
from truegold.pipeline.running.disk import write_whole

BOUNDS = (1 / 32, 1 / 4, 3 / 4, 31 / 32)
"""The bounds between the bands of pass rates. At a pass rate of 1/32 or 31/32, a fifth of the groups of eight teach."""

FURTHER_SAMPLES = 2
"""The minimum number of samples that a problem gets in a step."""
MOST_STEPS = 6
"""The maximum number of steps. If FURTHER_SAMPLES is too few to reach all samples in these steps, steps are larger."""
MISSED = 0.07
"""The loss of teaching share that is allowed, as a fraction of `teaching_by_all - teaching_by_first`."""
LEAST = 0.005
"""A loss of teaching share up to this value is always allowed."""
NEARBY = 1.25
"""The rule suits the expected size of the selection, this size times NEARBY, and this size divided by NEARBY."""
ANY_CUTS = ((0.2, 0.25, 0.3125), (0.5,))
"""The cuts that the rule suits if the size of the selection is unknown."""
MOST_STRATA = 12
"""The maximum number of strata (groups of problems with one prior and the same quotas). The smallest are joined."""
TOLERANCE = 1e-9


class PassRateBand(StrEnum):
    """A band of pass rates, named by its use for training. The bands are divided by BOUNDS."""

    DEAD = "dead"
    HARD = "hard"
    USEFUL = "useful"
    EASY = "easy"
    SATURATED = "saturated"


def decide(known: Mixture) -> tuple[PassRateBand, float]:
    """Return the most probable band of a pass rate with this posterior, and its probability."""
    probabilities = np.diff(known.below(np.array([0.0, *BOUNDS, 1.0])))
    best = int(probabilities.argmax())
    return tuple(PassRateBand)[best], float(probabilities[best])


@dataclass(frozen=True)
class Stratum:
    """Problems with the same prior and the same quotas. Each stratum has its own chances."""

    prior: Mixture
    counts: Counts
    """The number of problems by (judged samples, passes)."""
    quotas: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Allocation:
    """The stopping rule for a data set, with its expected results."""

    levels: tuple[int, ...]
    """The numbers of samples at which a problem may stop, such as 4, 6, 8."""
    chances: Mapping[Any, Mapping[int, Array]]
    """Stratum -> level -> the chance of more samples for each number of passes. Shape [level + 1]."""
    expected_samples: float
    """The expected number of samples per problem."""
    expected_teaching: float
    """The expected teaching share of the selected rows, averaged over the cuts."""
    teaching_by_all: float
    """The expected teaching share if all problems had all samples."""

    def next_level(self, planned: int) -> int:
        """Return the next level of a problem that has `planned` samples and goes on."""
        return next((level for level in self.levels if level > planned), planned)

    def is_enough(self, stratum: Hashable, judged: int, passes: int, draw: random.Random) -> bool:
        """Return True if a problem needs no more samples.

        An unknown stratum is treated as the last one. If `judged` is not a level, the level below is used, with the
        same share of passes.
        """
        chances = self.chances.get(stratum) or list(self.chances.values())[-1]
        level = max((each for each in self.levels if each <= judged), default=self.levels[0])
        known_passes = passes if level == judged else round(passes * level / judged)
        return draw.random() >= float(chances[level][known_passes])


def find_levels(first: int, most: int) -> tuple[int, ...]:
    """Return the numbers of samples at which a problem may stop: (4, 16) -> (4, 6, 8, ..., 16)."""
    step = max(FURTHER_SAMPLES, -(-(most - first) // MOST_STEPS))
    return (*range(first, most, step), most)


def find_cuts(selected: float | None) -> tuple[tuple[float, ...], ...]:
    """Return the cuts that the rule must suit: 0.4 -> ((0.32, 0.4, 0.5),).

    Teaching shares are averaged over the cuts in an inner tuple. `selected` is the share of rows that will be selected,
    or None if it is unknown.
    """
    if selected is None:
        return ANY_CUTS
    return (tuple(min(selected * factor, 1.0) for factor in (1 / NEARBY, 1.0, NEARBY)),)


def allocate(
    strata: Mapping[Any, Stratum],
    first: int,
    most: int,
    *,
    group_size: int,
    cuts: Sequence[Sequence[float]] = ANY_CUTS,
    quotas: Mapping[str, float] | None = None,
    zero_share: float = 1.0,
    is_fresh: bool = False,
) -> Allocation:
    """Return the stopping rule for problems that have at least `first` samples and get at most `most` (first < most).

    `quotas` are the maximum shares of the selection by name. `zero_share` is the maximum share without a pass. By
    default, the rule continues from the samples that the problems in `strata` have. With `is_fresh`, it is a rule for
    new problems of the same kind. These have only their first samples.
    """
    levels = find_levels(first, most)
    states = {key: _States(stratum, levels, group_size, is_fresh=is_fresh) for key, stratum in strata.items()}
    return _Program(states, levels, cuts, quotas or {}, zero_share).solve()


class _States:
    """The states of a stratum's problems, and the transitions between them."""

    def __init__(self, stratum: Stratum, levels: Sequence[int], group_size: int, *, is_fresh: bool) -> None:
        prior, self.quotas = stratum.prior, stratum.quotas
        self.teaching: dict[int, Array] = {}
        """Level -> the teaching share for each number of passes. Shape [level + 1]."""
        self._pass_rates: list[Array] = []
        for judged in range(levels[-1] + 1):
            passes = np.arange(judged + 1, dtype=float)[:, None]
            weights = posterior_weights(prior.weights, prior.a, prior.b, float(judged), passes)
            a, b = prior.a + passes, prior.b + judged - passes
            self._pass_rates.append((weights * a / (a + b)).sum(axis=1))
            if judged in levels:
                self.teaching[judged] = teaching_shares(weights, a, b, float(group_size))
        self.starts = {level: np.zeros(level + 1) for level in levels}
        """Level -> the number of problems that start with each number of passes. Shape [level + 1]."""
        if is_fresh:
            self.starts[levels[0]] += sum(stratum.counts.values()) * self.lead(0, levels[0])[0]
            return
        for (judged, passes_now), rows in sorted(stratum.counts.items()):
            level = max((each for each in levels if each <= judged), default=levels[0])
            known_passes = passes_now if level == judged else round(passes_now * level / max(judged, 1))
            self.starts[level][known_passes] += rows

    def lead(self, judged: int, later: int) -> Array:
        """Return the probability of j passes after `later` samples, given i passes after `judged` samples.

        Shape [judged + 1, later + 1].
        """
        chances = np.eye(judged + 1)
        for drawn in range(judged, later):
            step = np.zeros((judged + 1, drawn + 2))
            step[:, 1:] += chances * self._pass_rates[drawn]
            step[:, :-1] += chances * (1 - self._pass_rates[drawn])
            chances = step
        return chances


class _Program:
    """The linear program. Its vector of variables has `ended`, then `going_on`, then one `selected` for each cut.

    Numbers of problems are divided by the total.
    """

    def __init__(
        self,
        states: Mapping[Any, _States],
        levels: tuple[int, ...],
        cuts: Sequence[Sequence[float]],
        quotas: Mapping[str, float],
        zero_share: float,
    ) -> None:
        self._states, self._levels, self._quotas, self._zero_share = states, levels, quotas, zero_share
        self._cuts = [share for together in cuts for share in together]
        self._goals, start = [], 0
        for together in cuts:
            self._goals.append(range(start, start + len(together)))
            start += len(together)
        self._index: dict[tuple[Any, int], slice] = {}
        """Stratum and level -> the position of the level's states in each part of the vector of variables."""
        size = 0
        for key in states:
            for level in levels:
                self._index[key, level] = slice(size, size + level + 1)
                size += level + 1
        self._size = size
        starts = np.concatenate([states[key].starts[level] for key in states for level in levels])
        self._starts = starts / starts.sum()
        self._teaching = np.concatenate([states[key].teaching[level] for key in states for level in levels])

    def solve(self) -> Allocation:
        """Return the rule with the fewest samples."""
        by_all, by_first = self._best(self._at_last()), self._best(self._starts)
        least = []
        for goal in self._goals:
            value, value_of_first = (float(best[list(goal)].mean()) for best in (by_all, by_first))
            least.append(value - max(MISSED * (value - value_of_first), LEAST))
        size, cuts = self._size, len(self._cuts)
        costs, flow = self._flow()
        rows, bounds = self._selection()
        for goal, value in zip(self._goals, least, strict=True):
            worth = np.zeros((1, (2 + cuts) * size))
            for cut in goal:
                worth[0, (2 + cut) * size : (3 + cut) * size] = self._teaching / self._cuts[cut] / len(goal)
            rows.append(-worth)
            bounds.append(np.array([TOLERANCE - value]))
        solution = _minimise(
            np.concatenate([np.zeros(size), costs, np.zeros(cuts * size)]), rows, bounds, flow, self._starts
        )
        ended, going_on = solution[:size], solution[size : 2 * size]
        reached = ended + going_on
        chances = np.where(reached > TOLERANCE, going_on / np.maximum(reached, TOLERANCE), 0.0).clip(0.0, 1.0)
        selected = solution[2 * size :].reshape(cuts, size) @ self._teaching / self._cuts
        by_stratum = {key: {level: chances[self._index[key, level]] for level in self._levels} for key in self._states}
        drawn = sum(
            float(self._starts[self._index[key, level]].sum()) * level for key in self._states for level in self._levels
        )
        expected = drawn + float(costs @ going_on)
        return Allocation(self._levels, by_stratum, expected, float(selected.mean()), float(np.mean(by_all)))

    def _flow(self) -> tuple[Array, Any]:
        """Return the samples that a step takes from each state, and the matrix of ended + going_on - (problems that
        arrive)."""
        from scipy.sparse import coo_array, eye_array, hstack

        # No problem goes on from the last level.
        costs = np.ones(self._size)
        sources, targets, chances = [], [], []
        for key in self._states:
            for level, later in zip(self._levels, self._levels[1:], strict=False):
                here, there = self._index[key, level], self._index[key, later]
                costs[here] = later - level
                lead = self._states[key].lead(level, later)
                passes, passes_later = np.nonzero(lead)
                sources.append(here.start + passes)
                targets.append(there.start + passes_later)
                chances.append(lead[passes, passes_later])
        arrive = coo_array(
            (np.concatenate(chances), (np.concatenate(targets), np.concatenate(sources))), (self._size, self._size)
        )
        ends = eye_array(self._size)
        nothing = coo_array((self._size, len(self._cuts) * self._size))
        return costs, hstack([ends, ends - arrive, nothing], format="csr")

    def _selection(self) -> tuple[list[Any], list[Array]]:
        """Return the constraints on `selected`, as rows of a matrix and upper bounds. The constraints are selected <=
        ended and, for each cut, the size, the quotas and the maximum share without a pass."""
        from scipy.sparse import coo_array, eye_array, hstack

        rows: list[Any] = []
        bounds: list[Array] = []
        size, cuts = self._size, len(self._cuts)
        members = [(np.ones(size), 1.0)]
        for name, share in self._quotas.items():
            belongs = np.zeros(size)
            for key, states in self._states.items():
                for level in self._levels:
                    belongs[self._index[key, level]] = name in states.quotas
            members.append((belongs, share))
        beyond = np.full(size, -self._zero_share)
        beyond[[states.start for states in self._index.values()]] += 1
        members.append((beyond, 0.0))
        for cut, share_of_all in enumerate(self._cuts):
            before, after = coo_array((size, cut * size)), coo_array((size, (cuts - cut - 1) * size))
            rows.append(hstack([-eye_array(size), coo_array((size, size)), before, eye_array(size), after]))
            bounds.append(np.zeros(size))
            for belongs, share in members:
                row = np.zeros((1, (2 + cuts) * size))
                row[0, (2 + cut) * size : (3 + cut) * size] = belongs
                rows.append(row)
                bounds.append(np.array([share_of_all * share]))
        return rows, bounds

    def _at_last(self) -> Array:
        """Return the share of problems in each state if all problems have all samples."""
        ended = np.zeros(self._size)
        for key in self._states:
            there = ended[self._index[key, self._levels[-1]]]
            for level in self._levels:
                there += self._starts[self._index[key, level]] @ self._states[key].lead(level, self._levels[-1])
        return ended

    def _best(self, ended: Array) -> Array:
        """Return the teaching share of the best selection for each cut, shape [cuts], from the share in each state."""
        rows, bounds = self._selection()
        size, cuts = self._size, len(self._cuts)
        from scipy.sparse import coo_array, eye_array, hstack

        flow = hstack([eye_array(size), coo_array((size, (1 + cuts) * size))], format="csr")
        worth = np.concatenate([np.zeros(2 * size), *(self._teaching / share for share in self._cuts)])
        solution = _minimise(-worth, rows, bounds, flow, ended)
        best: Array = solution[2 * size :].reshape(cuts, size) @ self._teaching / self._cuts
        return best


def _minimise(costs: Array, rows: Sequence[Any], bounds: Sequence[Array], flow: Any, starts: Array) -> Array:
    """Return the variables >= 0 of least cost, with rows * variables <= bounds and flow * variables = starts."""
    from scipy.optimize import linprog
    from scipy.sparse import vstack

    solution = linprog(
        costs, A_ub=vstack(rows, format="csr"), b_ub=np.concatenate(bounds), A_eq=flow, b_eq=starts, method="highs"
    )
    if solution.x is None:
        raise RuntimeError(f"The stopping rule could not be computed: {solution.message}")
    return np.asarray(solution.x, dtype=float)


Cell = tuple[str, str]
"""The source and the domain of a row."""
StratumKey = tuple[Group, frozenset[str]]
"""The key of a stratum: a group of rows with one prior, and the quotas that the rows count towards."""

NAMES = {True: "pilot", False: "others"}
"""The names, in the file, of the two rules: one for rows of the pilot, one for other rows."""
EXPECTED = ("expected_samples", "expected_teaching", "teaching_by_all")
"""The fields of an allocation that are stored under `expected`."""


@dataclass(frozen=True)
class SavedRule:
    """The final stopping rule, as it is stored in a file."""

    allocations: Mapping[bool, Allocation]
    """The rules for rows of the pilot (True) and for other rows (False). Empty if no sample could be judged."""
    strata: Mapping[Cell, StratumKey]
    """The stratum of each source and domain."""
    planned: Mapping[int, int]
    """The number of samples of each row of the pilot, by the row's index."""
    training_rows: int

    def write(self, path: Path) -> None:
        """Write the rule to a JSON file."""
        keys = list(self.allocations[False].chances) if self.allocations else []
        strata = [
            {
                "source": source,
                "domain": domain,
                "quotas": sorted(quotas),
                **{
                    NAMES[is_pilot]: {str(level): chances.tolist() for level, chances in rule.chances[key].items()}
                    for is_pilot, rule in self.allocations.items()
                },
            }
            for key in keys
            for (source, domain), quotas in (key,)
        ]
        record = {
            "training_rows": self.training_rows,
            "levels": self.allocations[False].levels if self.allocations else [],
            "expected": {
                NAMES[is_pilot]: {name: getattr(rule, name) for name in EXPECTED}
                for is_pilot, rule in self.allocations.items()
            },
            "strata": strata,
            "cells": [[*cell, keys.index(key)] for cell, key in self.strata.items()],
            "planned": {str(index): planned for index, planned in self.planned.items()},
        }
        write_whole(path, orjson.dumps(record))

    @classmethod
    def read(cls, path: Path) -> SavedRule | None:
        """Return the rule in a file, or None if the file does not exist."""
        if not path.exists():
            return None
        record: dict[str, Any] = orjson.loads(path.read_bytes())
        keys = [((each["source"], each["domain"]), frozenset(each["quotas"])) for each in record["strata"]]
        allocations = {}
        for is_pilot, name in NAMES.items():
            if name not in record["expected"]:
                continue
            chances = {
                key: {int(level): np.array(values) for level, values in stratum[name].items()}
                for key, stratum in zip(keys, record["strata"], strict=True)
            }
            allocations[is_pilot] = Allocation(tuple(record["levels"]), chances, **record["expected"][name])
        strata = {(source, domain): keys[stratum_index] for source, domain, stratum_index in record["cells"]}
        planned = {int(index): samples for index, samples in record["planned"].items()}
        return cls(allocations, strata, planned, record["training_rows"])
