"""The feed: an endless stream of problems from the selected rows. It does not depend on the number of ranks.

A group of completions teaches if they have advantages, for example if some are right and some are wrong.

    order: uniform       a fresh permutation of all rows each epoch
    order: curriculum    permutations of the easiest third of the rows, then of two thirds, then of all
    order: signal        a fresh permutation of all rows each epoch; a row that is unlikely to teach is often skipped

The probability that a group teaches follows from posteriors of pass rates (`Posteriors`). Every rollout updates them. A
skipped row comes up again in the next epoch. A group that does not teach can be replaced by a group of a further row, a
refill. Refills come from the reserve (good rows beyond the selection), and from the stream once the reserve is used up.
A checkpoint has the whole state of the feed.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import betaln, expit, logit, logsumexp

from truegold.pipeline.rates import (
    SPIKE,
    Component,
    Mixture,
    moments,
    posterior_weights,
    stack_mixtures,
    teaching_shares,
)
from truegold.pipeline.tables.rows import Posterior, Row, RowReference, row_reference
from truegold.train.config.grpo import FeedConfig, Order
from truegold.train.grpo.forecast import Forecast

SHARPNESS = 2.0
"""With order `signal`, a row is taken with probability (p / p_best) ** SHARPNESS. Here p is the probability that a
group of the row teaches, and p_best is a high quantile of p (BEST_ROWS)."""
BEST_ROWS = 0.9
"""p_best is this quantile of p over all rows. Rows with p >= p_best are always taken."""
UNJUDGED = 0.5
"""A row's p is multiplied by this factor for each consecutive group that has no judged completion."""


@dataclass(frozen=True, slots=True)
class GroupScore:
    """The numbers of a group that decide whether it enters a batch."""

    right: int
    judged: int
    teaches: bool
    """Whether the group's completions have advantages."""

    @property
    def right_share(self) -> float:
        """The share of right completions among the judged completions."""
        return self.right / self.judged


@dataclass(frozen=True)
class Draw:
    """A drawn row."""

    index: int
    """The index of the row in the list that has all rows, then the reserve."""
    chance: float
    """The probability that the row was taken when it came up."""
    teaching: float
    """The probability, at the time of the draw, that a group of the row teaches."""


class KnownRate(RowReference):
    """A row of `pass_rates.parquet`, the pass rates at the end of a training, with columns as in the profile."""

    posterior: Posterior
    expected_rate: float


class Feed:
    """The stream of rows, its position, and the posteriors of pass rates."""

    def __init__(
        self, rows: Sequence[Row], reserve: Sequence[Row], config: FeedConfig, *, group_size: int, steps: int, seed: int
    ) -> None:
        """Start at the first step. rows: not empty. steps: the number of steps of the training."""
        self._pool = [*rows, *reserve]
        self._rows, self._config, self._seed = len(rows), config, seed
        self._steps = steps
        self._label_right = np.array([1 - (row.get("suspicion") or 0.0) for row in self._pool])
        known = read_known([row.get("posterior") for row in self._pool])
        self._posteriors = Posteriors(known, group_size)
        expected = self._posteriors.means()
        self._easy_first = sorted(range(len(rows)), key=lambda index: -expected[index])
        self._forecast = Forecast(known)
        self._step = 0
        self._position = 0
        """The number of rows that came up in the stream; with a curriculum, in its current stage."""
        self.refilled = 0
        """The number of rows taken from the reserve."""
        self._skipped = 0
        """The number of rows skipped in the current step."""
        self._draws: list[Draw] = []
        """The draws of the current step, in the order of its groups."""
        self._unjudged: dict[int, int] = {}
        """Row index -> number of latest groups in sequence without a judged completion. A judged group removes the
        entry."""

    def take(self, count: int) -> list[Row]:
        """Return the next `count` rows of the stream."""
        self._draws += self.draw(count)
        return [self._pool[draw.index] for draw in self._draws[len(self._draws) - count :]]

    def refill(self, count: int) -> list[Row]:
        """Return the next `count` rows for refills: from the reserve, then from the stream."""
        first = self._rows + self.refilled
        reserved = range(first, min(first + count, len(self._pool)))
        self.refilled += len(reserved)
        teaching = self._posteriors.teaching_shares()
        self._draws += [Draw(index, 1.0, float(teaching[index])) for index in reserved]
        return [self._pool[index] for index in reserved] + self.take(count - len(reserved))

    def pass_rates(self, groups: Iterable[int]) -> dict[int, float]:
        """Return the expected pass rate of each group's row, estimated from all earlier steps, by group number."""
        expected = self._posteriors.means()
        return {group: float(expected[self._draws[group].index]) for group in groups}

    def finish_step(self, scores: Mapping[int, GroupScore]) -> dict[str, float]:
        """Update the pass rates from the groups of a step, and return metrics of the feed."""
        drawn = [(self._draws[group], score) for group, score in scores.items()]
        self.learn(drawn)
        metrics = {
            "feed_expected_teaching": sum(draw.teaching for draw, _ in drawn) / max(len(drawn), 1),
            "feed_pass_rate": float(self._posteriors.means()[: self._rows].mean()),
            "feed_drift": self._posteriors.drift,
            "feed_skipped": self._skipped / max(self._skipped + len(self._draws), 1),
        }
        metrics |= self._forecast.observe(
            [draw.index for draw, _ in drawn],
            [score.right for _, score in drawn],
            [score.judged for _, score in drawn],
        )
        stage = self._stage
        self._step += 1
        if self._config.order is Order.CURRICULUM and self._stage != stage:
            self._position = 0
        self._draws, self._skipped = [], 0
        return metrics

    def drawn_ids(self) -> list[str]:
        """Return the id of each group's row, in the order of the step's groups."""
        return [self._pool[draw.index]["id"] for draw in self._draws]

    def first_rows(self, count: int) -> list[Row]:
        """Return the first rows in the order of the data."""
        return self._pool[: min(count, self._rows)]

    def all_rows(self) -> Sequence[Row]:
        """Return all rows and the reserve."""
        return self._pool

    def known_rates(self) -> Iterator[KnownRate]:
        """Yield the posterior pass rates of all rows and of the reserve, under the current policy."""
        for row, known in zip(self._pool, self._posteriors.known(), strict=True):
            yield {**row_reference(row), "posterior": known.components(), "expected_rate": known.mean}

    def row(self, draw: Draw) -> Row:
        """Return the row of a draw."""
        return self._pool[draw.index]

    def adopt(self, draws: Sequence[Draw]) -> None:
        """Use draws that were made earlier as the draws of the step."""
        self._draws = list(draws)

    def learn(self, drawn: Sequence[tuple[Draw, GroupScore]]) -> None:
        """Update the pass rates of rows from their groups."""
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
        """The current stage of a curriculum, from 0."""
        return min(self._step * self._config.stages // self._steps, self._config.stages - 1)

    def draw(self, count: int) -> list[Draw]:
        """Return the next draws of the stream. They do not become draws of the current step (`adopt`)."""
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
        # If an epoch brought too few rows, the step is filled with the rows that are most likely to teach.
        nearest = np.argsort(-worth, kind="stable")
        draws += [
            Draw(int(index), 1.0, float(teaching[index]))
            for index in nearest[np.arange(count - len(draws)) % len(nearest)]
        ]
        return draws

    def state(self) -> dict[str, Any]:
        """Return the state for a checkpoint between two steps."""
        return {
            "feed": {
                "step": self._step,
                "position": self._position,
                "refilled": self.refilled,
                "unjudged": dict(self._unjudged),
                "posteriors": self._posteriors.state(),
                "forecast": self._forecast.state(),
            }
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from the state of a checkpoint."""
        saved = state["feed"]
        self._step, self._position, self.refilled = saved["step"], saved["position"], saved["refilled"]
        self.unlearn(state)

    def unlearn(self, state: Mapping[str, Any]) -> None:
        """Reset the pass rates to an earlier state, without moving the stream back."""
        saved = state["feed"]
        self._unjudged = dict(saved["unjudged"])
        self._posteriors.restore(saved["posteriors"])
        self._forecast.restore(saved["forecast"])


@lru_cache(maxsize=2)
def _permutation(rows: int, key: str, epoch: int) -> list[int]:
    order = list(range(rows))
    random.Random(f"{key}-{epoch}").shuffle(order)
    return order


Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]

FORGET = (0.8, 0.9, 0.95, 0.98, 0.995)
"""The rates of forgetting that run side by side: the factors per step for the weight of earlier observations. The
weight halves after 3 steps (0.8) to 140 steps (0.995)."""
SCORE_MEMORY = 0.95
"""The rate of forgetting that predicted best is used. Earlier predictions lose weight by this factor per step."""
HOPELESS = 0.05
"""The prior probability that a problem never passes, because its label or text is wrong."""
HOPELESS_MEMORY = 0.99
"""The probability that a problem never passes returns to HOPELESS by this factor per step. So hopeless problems are
tried again."""
DRIFT_PER_STEP = 0.1
"""The standard deviation of the drift of all problems in one step, in log-odds."""
RECENT_GROUPS = 150.0
"""Mean and variance of all pass rates are estimated from about this number of latest groups."""
RATIO_GROUPS = 40.0
"""A step updates the teaching ratio (observed divided by predicted teaching groups). The previous ratio weighs as much
as this number of groups."""
TEACHING_RATIOS = (0.25, 2.0)
"""The lowest and the highest teaching ratio."""
MOST_STRENGTH = 200.0
"""The largest a + b of a posterior: the weight of earlier samples. It is bounded because the policy changes."""
MOST_COMPONENTS = 4
"""The largest number of Beta components of a posterior. Further components of the profile's posterior are merged."""
FURTHEST = 5.0
"""The largest absolute log-odds of a problem's pass rate at the start, because training may change it."""


def read_known(posteriors: Sequence[Sequence[Component] | None]) -> list[Mixture | None]:
    """Return the profile's posterior of each problem, merged to at most `MOST_COMPONENTS` components.

    Returns None for a problem without a posterior. Problems with equal posteriors share one object.
    """
    merged: dict[tuple[tuple[float, float, float], ...], Mixture | None] = {}
    known = []
    for posterior in posteriors:
        key = tuple((part["weight"], part["a"], part["b"]) for part in posterior or ())
        if key not in merged:
            mixture = Mixture.from_components(posterior)
            merged[key] = None if mixture is None else mixture.merge(MOST_COMPONENTS)
        known.append(merged[key])
    return known


class Posteriors:
    """The posteriors of pass rates under the current policy: the profile's posteriors, updated by every rollout.

        profile: the problem passed 2 of 8 times                   Beta(3.7, 10.5)
        20 steps later, other problems pass far more often         Beta(3.1, 1.2): shifted like them, less certain
        a group of the problem passes 3 of 8 times                 Beta(6.1, 6.2)

    Each posterior is a mixture of Beta distributions (`pipeline.rates`). All components are kept, so that a
    problem that is either easy or out of reach is not taken for a problem of medium difficulty.

    Drift: all problems become easier or harder together. A shift of their log-odds is estimated by a one-dimensional
    Kalman filter (Kalman 1960), from the difference between expected and observed passes of each step.

    Forgetting: an observation of s steps ago has the weight forget**s (discounting, West and Harrison, "Bayesian
    Forecasting", 6.3). A Beta distribution with the mean and variance of all recent pass rates gets the remaining
    weight. Several rates of forgetting run side by side. The one that predicted the latest groups best is used.

    Hopeless problems: some problems never pass, because their label or text is wrong. By Bayes' rule, each group that
    is all wrong makes it more probable that the problem is hopeless, especially if it was expected to pass.

    Teaching ratio: training drives pass rates towards 0 and 1. Beta distributions after much forgetting are too broad
    and predict too many teaching groups. So predictions are multiplied by the ratio of observed to predicted teaching
    groups of the latest steps.
    """

    def __init__(self, known: Sequence[Mixture | None], group_size: int) -> None:
        """Start with the posteriors of the profile, or None for a problem without one. group_size: the number of
        completions of a group."""
        self._group_size = group_size
        self._hopeless = np.full(len(known), HOPELESS)
        """The probability that each problem never passes, after its last group."""
        self._seen = np.zeros(len(known))
        """The step of each problem's last group."""
        self._step = 0
        self._teaching_ratio = 1.0
        """The number of teaching groups divided by the expected number, over the latest groups."""
        start = stack_mixtures(known)
        self._tracks = [_Track(*start, forget) for forget in FORGET]
        self._scores = np.zeros(len(FORGET))
        """The discounted sum of log-likelihoods of the latest groups, under each rate of forgetting."""

    @property
    def _best(self) -> _Track:
        return self._tracks[int(self._scores.argmax())]

    @property
    def drift(self) -> float:
        """The shift of the log-odds of all problems since the start."""
        return self._best.drift

    def parameters(self) -> tuple[Floats, Floats, Floats]:
        """Return weights, a and b of each problem's Beta distributions. Shapes [problems, components], float64."""
        return self._best.parameters()

    def known(self) -> Iterator[Mixture]:
        """Yield the posterior of each problem. Its first component is the probability that the problem never passes."""
        for never, weights, a, b in zip(self.hopeless_shares(), *self.parameters(), strict=True):
            shares = np.concatenate([[never], (1 - never) * weights])
            yield Mixture(shares, np.concatenate([[SPIKE[0]], a]), np.concatenate([[SPIKE[1]], b]))

    def means(self) -> Floats:
        """Return the expected pass rates. Shape [problems]."""
        return moments(*self.parameters())[0]

    def teaching_shares(self, rows: Indices | slice = slice(None), sizes: Floats | None = None) -> Floats:
        """Return the probability that a group of each problem has both right and wrong completions. Shape [problems].

        rows: the indices of the problems; by default all. sizes: the sizes of their groups; by default `group_size`.
        """
        size = float(self._group_size) if sizes is None else sizes[:, None]
        weights, a, b = (values[rows] for values in self.parameters())
        shares = teaching_shares(weights, a, b, size)
        chance = shares * (1 - self.hopeless_shares()[rows]) * self._teaching_ratio
        clipped: Floats = np.clip(chance, 0.0, 1.0)
        return clipped

    def hopeless_shares(self) -> Floats:
        """Return the probability that each problem never passes, now. Shape [problems].

        A problem without new groups returns to the prior HOPELESS (`HOPELESS_MEMORY`).
        """
        known: Floats = HOPELESS + (self._hopeless - HOPELESS) * HOPELESS_MEMORY ** (self._step - self._seen)
        return known

    def observe(
        self, problems: Sequence[int], right: Sequence[int], judged: Sequence[int], chances: Sequence[float]
    ) -> None:
        """Update the posteriors from a step's groups, in which `right` of `judged` completions passed.

        Several groups of one problem count as one. chances: the probability with which each problem was drawn. Mean and
        variance of all pass rates weigh a problem by 1 / chance.
        """
        counted = [index for index, count in enumerate(judged) if count]
        if not counted:
            return
        drawn: Indices = np.array(problems, dtype=np.int64)[counted]
        passes, sizes = np.array(right, dtype=np.float64)[counted], np.array(judged, dtype=np.float64)[counted]
        expected = float(self.teaching_shares(drawn, sizes).sum())
        taught = int(((passes > 0) & (passes < sizes)).sum())
        ratio = self._teaching_ratio * (taught + RATIO_GROUPS) / (expected + RATIO_GROUPS)
        self._teaching_ratio = float(np.clip(ratio, *TEACHING_RATIOS))
        rows, first, groups = np.unique(drawn, return_index=True, return_inverse=True)
        passed = np.bincount(groups, weights=passes).astype(np.float64)
        seen = np.bincount(groups, weights=sizes).astype(np.float64)
        weights = 1 / np.array(chances, dtype=np.float64)[counted][first]
        self._learn_hopeless(rows, passed, seen)
        for index, track in enumerate(self._tracks):
            likelihood = track.observe(rows, passed, seen, weights)
            self._scores[index] = SCORE_MEMORY * self._scores[index] + likelihood

    def _learn_hopeless(self, rows: Indices, passed: Floats, seen: Floats) -> None:
        """Update the probability that problems never pass, by Bayes' rule. A problem that passed gets 0."""
        weights, a, b = (values[rows] for values in self.parameters())
        by_chance = (weights * np.exp(betaln(a, b + seen[:, None]) - betaln(a, b))).sum(axis=1)
        before = self.hopeless_shares()[rows]
        self._hopeless[rows] = np.where(passed == 0, before / (before + (1 - before) * by_chance), 0.0)
        self._step += 1
        self._seen[rows] = self._step

    def state(self) -> dict[str, Any]:
        """Return the state for a checkpoint."""
        return {
            "hopeless": self._hopeless.tolist(),
            "seen": self._seen.tolist(),
            "step": self._step,
            "scores": self._scores.tolist(),
            "teaching_ratio": self._teaching_ratio,
            "tracks": [track.state() for track in self._tracks],
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from the state of a checkpoint."""
        self._scores, self._teaching_ratio = np.array(state["scores"]), state["teaching_ratio"]
        self._hopeless, self._seen, self._step = np.array(state["hopeless"]), np.array(state["seen"]), state["step"]
        for track, track_state in zip(self._tracks, state["tracks"], strict=True):
            track.restore(track_state)


class _Track:
    """The posteriors under one rate of forgetting."""

    def __init__(self, weights: Floats, a: Floats, b: Floats, forget: float) -> None:
        self.forget = forget
        self.drift = 0.0
        self._drift_variance = 0.0
        self._step = 0
        self._weights = weights.copy()
        """The weights of the components. Shape [problems, components]."""
        self._log_odds = np.clip(_log_odds(a, b), -FURTHEST, FURTHEST)
        """The log-odds of each component's mean, minus the drift up to the problem's last group. Same shape."""
        self._strength = np.minimum(a + b, MOST_STRENGTH)
        """a + b of each component after the problem's last group. Same shape."""
        self._seen = np.zeros(len(weights))
        """The step of each problem's last group. Shape [problems]."""
        mean, _, variance = moments(weights, a, b)
        self._center = min(max(float(mean.mean()), 1e-3), 1 - 1e-3)
        whole = self._center * (1 - self._center)
        self._spread = min(max(float(mean.var() + variance.mean()), whole / MOST_STRENGTH), 0.95 * whole)
        """Mean (`_center`) and variance (`_spread`) of the recent pass rates of all problems."""

    def parameters(self, rows: Indices | slice = slice(None)) -> tuple[Floats, Floats, Floats]:
        """Return weights, a and b of the components of each problem. Shapes [problems, components]."""
        weight = (self.forget ** (self._step - self._seen[rows]))[:, None]
        others = max(self._center * (1 - self._center) / self._spread - 1, 0.05)
        kept, filled = weight * self._strength[rows], (1 - weight) * others
        a = kept * expit(self._log_odds[rows] + self.drift) + filled * self._center
        return self._weights[rows], a, kept + filled - a

    def observe(self, rows: Indices, passed: Floats, seen: Floats, chosen: Floats) -> float:
        """Update the posteriors from the groups of a step, and return the log-likelihood of the groups.

        rows: the index of each group's problem, without repetition. passed, seen: right and judged completions of each
        group. chosen: the weight of each group in the mean and variance of all pass rates.
        """
        self._step += 1
        weights, a, b = self.parameters(rows)
        right, wrong = passed[:, None], (seen - passed)[:, None]
        with np.errstate(divide="ignore"):
            logs = np.log(weights) + betaln(a + right, b + wrong) - betaln(a, b)
        likelihood = float(logsumexp(logs, axis=1).sum())
        self._follow_drift(weights, a, b, passed, seen)
        self._follow_moments(passed, seen, chosen)
        weights, a, b = self.parameters(rows)
        self._weights[rows] = posterior_weights(weights, a, b, seen[:, None], right)
        self._log_odds[rows] = _log_odds(a + right, b + wrong) - self.drift
        self._strength[rows] = np.minimum(a + b + seen[:, None], MOST_STRENGTH)
        self._seen[rows] = self._step
        return likelihood

    def _follow_drift(self, weights: Floats, a: Floats, b: Floats, passed: Floats, seen: Floats) -> None:
        """Update the drift from the difference between observed and expected passes of the step (Kalman filter)."""
        mean, single, variance_of_rates = moments(weights, a, b)
        # The derivative of the mean by the log-odds is equal to the variance of a single sample.
        slope = float((seen * single).sum())
        variance = float((seen * single + seen**2 * variance_of_rates).sum())
        self._drift_variance += DRIFT_PER_STEP**2
        gain = self._drift_variance * slope / (self._drift_variance * slope**2 + variance)
        self.drift += gain * float((passed - seen * mean).sum())
        self._drift_variance *= 1 - gain * slope

    def _follow_moments(self, passed: Floats, seen: Floats, weights: Floats) -> None:
        """Move mean and variance of all pass rates towards the values in the step's groups."""
        weights = weights / weights.mean()
        share = len(passed) / (len(passed) + RECENT_GROUPS)
        self._center += share * (float(np.average(passed / seen, weights=weights)) - self._center)
        self._center = min(max(self._center, 1e-3), 1 - 1e-3)
        # With c passes of n and mean rate m: (c - n m)^2 - n m (1 - m) has the expectation n (n - 1) var(rates).
        excess = (passed - seen * self._center) ** 2 - seen * self._center * (1 - self._center)
        pairs = float((weights * seen * (seen - 1)).sum())
        if pairs:
            self._spread += share * (float((weights * excess).sum()) / pairs - self._spread)
        whole = self._center * (1 - self._center)
        self._spread = min(max(self._spread, whole / MOST_STRENGTH), 0.95 * whole)

    def state(self) -> dict[str, Any]:
        return {name: array.tolist() if name in _ARRAYS else array for name, array in vars(self).items()}

    def restore(self, state: Mapping[str, Any]) -> None:
        for name, value in state.items():
            setattr(self, name, np.array(value, dtype=np.float64) if name in _ARRAYS else value)


_ARRAYS = ("_weights", "_log_odds", "_strength", "_seen")
"""The fields of `_Track` that are arrays with an entry for each problem."""


def _log_odds(a: Floats, b: Floats) -> Floats:
    """Return the log-odds of the means of Beta distributions. Means are clipped to [1e-6, 1 - 1e-6]."""
    log_odds: Floats = logit(np.clip(a / (a + b), 1e-6, 1 - 1e-6))
    return log_odds
