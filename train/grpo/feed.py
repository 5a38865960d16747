"""Which problems come next: an endless stream over the selected rows, the same for every number of ranks.

    order: uniform       a fresh permutation of all rows each epoch
    order: curriculum    the same over the easiest third, then two thirds, then all
    order: signal        the same, and a row is skipped with a probability that grows as its group would teach less

Whether a group would teach is foretold from posteriors that every rollout updates (`posteriors`). A skipped row comes
up again in the next epoch, when the policy has moved. Refills, for groups that teach nothing, come from the reserve in
the order that selection gave it, and from the stream once the reserve is used up. A checkpoint keeps the whole state.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from truegold.pipeline.tables.rows import Row
from truegold.train.config.feed import FeedConfig, Order
from truegold.train.grpo.group_choice import GroupScore
from truegold.train.grpo.posteriors import Floats, Posteriors

SHARPNESS = 2.0
"""A row is taken with the share of its groups that will teach, relative to the best rows, to this power."""
BEST_ROWS = 0.9
"""The quantile of all rows that counts as the best: those above it are always taken."""
UNJUDGED = 0.5
"""How much rarer a row is taken for each of its latest groups in a row of which nothing could be judged."""


@dataclass(frozen=True)
class Draw:
    """A row of which a group was sampled."""

    index: int
    """Its number among rows and reserve."""
    chance: float
    """How probable it was that the row is taken when it comes up."""
    teaching: float
    """How probable it was that its group teaches."""


class Feed:
    """The stream of rows, and where it is."""

    def __init__(
        self,
        rows: Sequence[Row],
        reserve: Sequence[Row],
        config: FeedConfig,
        *,
        group_size: int,
        steps: int,
        seed: int,
    ) -> None:
        """Begin at the first step. rows: not empty; steps: those of the whole training."""
        self._pool = [*rows, *reserve]
        self._rows, self._config, self._seed = len(rows), config, seed
        self._steps = steps
        self._label_right = np.array([1 - (row.get("suspicion") or 0.0) for row in self._pool])
        self._easy_first = sorted(range(len(rows)), key=lambda index: -_expected_pass_rate(rows[index]))
        counts = [_profile_counts(row) for row in self._pool]
        self._posteriors = Posteriors([a for a, _ in counts], [b for _, b in counts], group_size)
        self._step = 0
        self._position = 0
        """Rows that came up in the stream, in a curriculum in its stage."""
        self.refilled = 0
        """Rows that came from the reserve."""
        self._skipped = 0
        """Rows that came up in the step and were not taken."""
        self._draws: list[Draw] = []
        """The step's, by the number of the group."""
        self._unjudged: dict[int, int] = {}
        """For rows whose latest groups could not be judged, how many."""

    def take(self, count: int) -> list[Row]:
        """Return the next `count` rows of the stream."""
        self._draws += self.draw(count)
        return [self._pool[draw.index] for draw in self._draws[len(self._draws) - count :]]

    def refill(self, count: int) -> list[Row]:
        """Return the next `count` rows in place of groups that taught nothing."""
        first = self._rows + self.refilled
        reserved = range(first, min(first + count, len(self._pool)))
        self.refilled += len(reserved)
        teaching = self._posteriors.teaching_shares()
        self._draws += [Draw(index, 1.0, float(teaching[index])) for index in reserved]
        return [self._pool[index] for index in reserved] + self.take(count - len(reserved))

    def pass_rates(self, groups: Iterable[int]) -> dict[int, float]:
        """Return the expected pass rates of the rows of the step's groups, as all groups before it have it."""
        a, b = self._posteriors.parameters()
        expected = a / (a + b)
        return {group: float(expected[self._draws[group].index]) for group in groups}

    def finish_step(self, scores: Mapping[int, GroupScore]) -> dict[str, float]:
        """Learn from the step's groups, by their numbers, and return what the feed foretold and did."""
        drawn = [(self._draws[group], score) for group, score in scores.items()]
        self.learn(drawn)
        a, b = self._posteriors.parameters()
        metrics = {
            "feed_expected_teaching": sum(draw.teaching for draw, _ in drawn) / max(len(drawn), 1),
            "feed_pass_rate": float((a / (a + b))[: self._rows].mean()),
            "feed_drift": self._posteriors.drift,
            "feed_skipped": self._skipped / max(self._skipped + len(self._draws), 1),
        }
        stage = self._stage
        self._step += 1
        if self._config.order is Order.CURRICULUM and self._stage != stage:
            self._position = 0
        self._draws, self._skipped = [], 0
        return metrics

    def first_rows(self, count: int) -> list[Row]:
        """Return the first rows, as they stand in the data."""
        return self._pool[: min(count, self._rows)]

    def row(self, draw: Draw) -> Row:
        """Return the row of a draw."""
        return self._pool[draw.index]

    def adopt(self, draws: Sequence[Draw]) -> None:
        """Take draws that were made earlier for those of the step, by the number of the group."""
        self._draws = list(draws)

    def learn(self, drawn: Sequence[tuple[Draw, GroupScore]]) -> None:
        """Learn from groups of what their rows' pass rates are."""
        self._posteriors.observe(
            [draw.index for draw, _ in drawn],
            [score.right for _, score in drawn],
            [score.judged for _, score in drawn],
            [draw.chance for draw, _ in drawn],
        )
        for draw, score in drawn:
            if score.judged:
                self._unjudged.pop(draw.index, None)
            else:
                self._unjudged[draw.index] = self._unjudged.get(draw.index, 0) + 1

    @property
    def _stage(self) -> int:
        """The stage of a curriculum."""
        return min(self._step * self._config.stages // self._steps, self._config.stages - 1)

    def draw(self, count: int) -> list[Draw]:
        """Return the next draws of the stream, without keeping account of them."""
        teaching = self._posteriors.teaching_shares()
        if self._config.order is Order.SIGNAL:
            return self._next_by_signal(count, teaching)
        key, rows = str(self._seed), self._rows
        if self._config.order is Order.CURRICULUM:
            rows = -(-self._rows * (self._stage + 1) // self._config.stages)
            key = f"{self._seed}-stage-{self._stage}"
        indices = []
        for position in range(self._position, self._position + count):
            epoch, offset = divmod(position, rows)
            index = _permutation(rows, key, epoch)[offset]
            indices.append(self._easy_first[index] if self._config.order is Order.CURRICULUM else index)
        self._position += count
        return [Draw(index, 1.0, float(teaching[index])) for index in indices]

    def _next_by_signal(self, count: int, teaching: Floats) -> list[Draw]:
        worth = (teaching * self._label_right)[: self._rows]
        for index, groups in self._unjudged.items():
            if index < self._rows:
                worth[index] *= UNJUDGED**groups
        best = float(np.quantile(worth, BEST_ROWS))
        chances = np.clip(worth / max(best, 1e-9), 0.0, 1.0) ** SHARPNESS
        draws: list[Draw] = []
        last = self._position + self._rows + count
        while len(draws) < count and self._position < last:
            epoch, offset = divmod(self._position, self._rows)
            index = _permutation(self._rows, str(self._seed), epoch)[offset]
            if random.Random(f"{self._seed}-{self._position}").random() < chances[index]:
                draws.append(Draw(index, float(chances[index]), float(teaching[index])))
            else:
                self._skipped += 1
            self._position += 1
        # Hardly any row would teach: those that come nearest fill the step.
        nearest = np.argsort(-worth, kind="stable")
        draws += [
            Draw(int(index), 1.0, float(teaching[index]))
            for index in nearest[np.arange(count - len(draws)) % len(nearest)]
        ]
        return draws

    def state(self) -> dict[str, Any]:
        """Return what a checkpoint keeps, between two steps."""
        return {
            "feed": {
                "step": self._step,
                "position": self._position,
                "refilled": self.refilled,
                "unjudged": dict(self._unjudged),
                "posteriors": self._posteriors.state(),
            }
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on where the feed was at that state."""
        saved = state["feed"]
        self._step, self._position, self.refilled = saved["step"], saved["position"], saved["refilled"]
        self.unlearn(state)

    def unlearn(self, state: Mapping[str, Any]) -> None:
        """Forget what the groups since that state have taught; the stream goes on where it is."""
        saved = state["feed"]
        self._unjudged = dict(saved["unjudged"])
        self._posteriors.restore(saved["posteriors"])


def _profile_counts(row: Row) -> tuple[float, float]:
    """Return a and b of what the profile knows of a row's pass rate; nothing is known of a row without a profile."""
    return row.get("posterior_a") or 1.0, row.get("posterior_b") or 1.0


def _expected_pass_rate(row: Row) -> float:
    a, b = _profile_counts(row)
    return a / (a + b)


@lru_cache(maxsize=2)
def _permutation(rows: int, key: str, epoch: int) -> list[int]:
    order = list(range(rows))
    random.Random(f"{key}-{epoch}").shuffle(order)
    return order
