"""The feed: an endless stream of problems from the selected rows. It does not depend on the number of ranks.

    order: uniform       a fresh permutation of all rows each epoch
    order: curriculum    the same over the easiest third, then two thirds, then all
    order: signal        the same, and a row is skipped with a probability that grows as its group would teach less

The probability that a group teaches comes from posteriors of pass rates, which every rollout updates (`Posteriors`). A
skipped row comes again in the next epoch. Refills, which replace groups that teach nothing, come from the reserve in
order, and then from the stream. A checkpoint has the whole state.
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

from truegold.pipeline.rates.posterior import (
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
"""A row is taken with the share of its groups that will teach, relative to the best rows, to this power."""
BEST_ROWS = 0.9
"""The quantile of all rows that counts as the best: those above it are always taken."""
UNJUDGED = 0.5
"""The factor by which a row is drawn less often, for each of its last consecutive groups without a judged
completion."""


@dataclass(frozen=True, slots=True)
class GroupScore:
    """The figures that decide whether a group enters."""

    right: int
    """How many of the judged completions passed."""
    judged: int
    """How many completions could be judged."""
    teaches: bool
    """Whether its completions have advantages."""

    @property
    def right_share(self) -> float:
        """The share of judged completions that passed."""
        return self.right / self.judged


@dataclass(frozen=True)
class Draw:
    """A drawn row."""

    index: int
    """Its number among rows and reserve."""
    chance: float
    """How probable it was that the row is taken when it comes up."""
    teaching: float
    """How probable it was that its group teaches."""


class KnownRate(RowReference):
    """A row of `pass_rates.parquet`: the pass rate of a problem at the end of a training, in the columns of the
    profile."""

    posterior: Posterior
    expected_rate: float


class Feed:
    """The stream of rows, and where it is."""

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
        """Rows that came up in the stream, in a curriculum in its stage."""
        self.refilled = 0
        """Rows that came from the reserve."""
        self._skipped = 0
        """Rows that came up in the step and were not taken."""
        self._draws: list[Draw] = []
        """The draws of the step, in the order of its groups."""
        self._unjudged: dict[int, int] = {}
        """The number of a row's latest groups that could not be judged."""

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
        expected = self._posteriors.means()
        return {group: float(expected[self._draws[group].index]) for group in groups}

    def finish_step(self, scores: Mapping[int, GroupScore]) -> dict[str, float]:
        """Learn from the groups of a step, and return metrics of the feed."""
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
        """Yield the posterior pass rates of all rows and of the reserve, under the present policy."""
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
        # Hardly any row would teach, so the step is filled with the best ones.
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
        """Go on where the feed was at that state."""
        saved = state["feed"]
        self._step, self._position, self.refilled = saved["step"], saved["position"], saved["refilled"]
        self.unlearn(state)

    def unlearn(self, state: Mapping[str, Any]) -> None:
        """Forget what was learned since a state. The stream continues."""
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
"""Factors by which knowledge loses weight with each step: half is forgotten after 3 to 140 steps."""
SCORE_MEMORY = 0.95
"""The weight, after a step, of how well groups were predicted."""
HOPELESS = 0.05
"""The share of problems that never pass, however much is learned: their labels or their texts are at fault."""
HOPELESS_MEMORY = 0.99
"""The factor by which the probability of a hopeless problem falls with each step, so that it is tried again."""
DRIFT_PER_STEP = 0.1
"""The standard deviation of a step's drift, in log-odds."""
RECENT_GROUPS = 150.0
"""The moments of all pass rates come from about this many last groups."""
RATIO_GROUPS = 40.0
"""How many groups weigh against a step's own in the ratio that predicted shares are multiplied by."""
TEACHING_RATIOS = (0.25, 2.0)
"""The least and the greatest such ratio."""
MOST_STRENGTH = 200.0
"""A pass rate counts as known from at most this many samples, because the policy changes."""
MOST_COMPONENTS = 4
"""Components of a profile's posterior that are carried on; neighbours become one."""
FURTHEST = 5.0
"""A problem that never or always passed is placed so far from one half in log-odds, because training may change it."""


def read_known(posteriors: Sequence[Sequence[Component] | None]) -> list[Mixture | None]:
    """Return the posterior of each problem in the profile, with few components, or None for a problem without
    one. Problems with the same counts share it."""
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
    """The pass rates of problems under the policy as it is now: the profile's posteriors, carried on.

        profile: 2 of 8                             Beta(3.7, 10.5)
        20 steps on, others pass far more often     Beta(3.1, 1.2): shifted with them, and less certain
        its own group comes out 3 of 8              Beta(6.1, 6.2)

    Each is a mixture of Beta distributions (`pipeline.rates.posterior`), whose components are carried on side by side:
    a problem that is either easy or out of reach is not taken for one between.

    Between a problem's visits all problems become easier or harder together: their log-odds are shifted by a drift,
    which a Kalman filter of one dimension (Kalman 1960) follows by comparing what each step's groups were expected to
    pass with what they passed. A problem also goes a way of its own: what was seen of it s steps ago counts with the
    weight forget**s (discounting, as in West and Harrison, "Bayesian Forecasting", 6.3), and the Beta distribution with
    the moments of all pass rates of late fills its place. How fast to forget depends on how fast the policy moves.
    Several rates run side by side, and the one counts that has predicted the latest groups best.

    Some problems never pass, since their label or their text is at fault. One that is all wrong again and again while
    the others pass is ever more probably one of those, by Bayes' rule.

    Training drives pass rates to both ends, while a Beta distribution that has forgotten much lies between them and
    predicts too many teaching groups. So predicted shares are multiplied by the ratio in which the latest came true.
    """

    def __init__(self, known: Sequence[Mixture | None], group_size: int) -> None:
        """Start with the posteriors of the profile, or None for a problem without one. group_size: the samples of a
        group."""
        self._group_size = group_size
        self._hopeless = np.full(len(known), HOPELESS)
        """The probability of each problem, when it was last seen, that it will never pass."""
        self._seen = np.zeros(len(known))
        """The step at which each problem was seen last."""
        self._step = 0
        self._teaching_ratio = 1.0
        """How many of the latest groups taught, for each that was expected to."""
        start = stack_mixtures(known)
        self._tracks = [_Track(*start, forget) for forget in FORGET]
        self._scores = np.zeros(len(FORGET))
        """How well each track has predicted the latest groups: a discounted sum of log-likelihoods."""

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
        """Yield the posterior of each problem, and the probability that it never passes."""
        for never, weights, a, b in zip(self.hopeless_shares(), *self.parameters(), strict=True):
            shares = np.concatenate([[never], (1 - never) * weights])
            yield Mixture(shares, np.concatenate([[SPIKE[0]], a]), np.concatenate([[SPIKE[1]], b]))

    def means(self) -> Floats:
        """Return the expected pass rates. Shape [problems]."""
        return moments(*self.parameters())[0]

    def teaching_shares(self, rows: Indices | slice = slice(None), sizes: Floats | None = None) -> Floats:
        """Return how often a group of each problem would have right and wrong completions. Shape [problems].

        rows: which problems; all where left out. sizes: of their groups; the usual one where left out.
        """
        size = float(self._group_size) if sizes is None else sizes[:, None]
        weights, a, b = (values[rows] for values in self.parameters())
        shares = teaching_shares(weights, a, b, size)
        chance = shares * (1 - self.hopeless_shares()[rows]) * self._teaching_ratio
        clipped: Floats = np.clip(chance, 0.0, 1.0)
        return clipped

    def hopeless_shares(self) -> Floats:
        """Return how probable it is that each problem never passes; little by little that is forgotten."""
        known: Floats = HOPELESS + (self._hopeless - HOPELESS) * HOPELESS_MEMORY ** (self._step - self._seen)
        return known

    def observe(
        self, problems: Sequence[int], right: Sequence[int], judged: Sequence[int], chances: Sequence[float]
    ) -> None:
        """Learn from a step's groups: `right` of `judged` completions passed.

        A problem may come more than once: its groups count as one. chances: how probable it was that each was chosen,
        so that the moments are those of all problems and not of the chosen ones alone.
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
        """Compare how well "never" and the Beta distributions explain groups that are all wrong (Bayes)."""
        weights, a, b = (values[rows] for values in self.parameters())
        by_chance = (weights * np.exp(betaln(a, b + seen[:, None]) - betaln(a, b))).sum(axis=1)
        before = self.hopeless_shares()[rows]
        self._hopeless[rows] = np.where(passed == 0, before / (before + (1 - before) * by_chance), 0.0)
        self._step += 1
        self._seen[rows] = self._step

    def state(self) -> dict[str, Any]:
        """Return what a checkpoint keeps."""
        return {
            "hopeless": self._hopeless.tolist(),
            "seen": self._seen.tolist(),
            "step": self._step,
            "scores": self._scores.tolist(),
            "teaching_ratio": self._teaching_ratio,
            "tracks": [track.state() for track in self._tracks],
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on with what was known at that state."""
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
        """The weights of the components. Shape [problems, components], as are the next two."""
        self._log_odds = np.clip(_log_odds(a, b), -FURTHEST, FURTHEST)
        """The log-odds of the components' means, less the drift at the time when they were seen."""
        self._strength = np.minimum(a + b, MOST_STRENGTH)
        self._seen = np.zeros(len(weights))
        """The step at which each problem was seen last."""
        mean, _, variance = moments(weights, a, b)
        self._center = min(max(float(mean.mean()), 1e-3), 1 - 1e-3)
        whole = self._center * (1 - self._center)
        self._spread = min(max(float(mean.var() + variance.mean()), whole / MOST_STRENGTH), 0.95 * whole)
        """Mean and variance of the pass rates of all problems, of late."""

    def parameters(self, rows: Indices | slice = slice(None)) -> tuple[Floats, Floats, Floats]:
        """Return weights, a and b of the components of each problem."""
        weight = (self.forget ** (self._step - self._seen[rows]))[:, None]
        others = max(self._center * (1 - self._center) / self._spread - 1, 0.05)
        kept, filled = weight * self._strength[rows], (1 - weight) * others
        a = kept * expit(self._log_odds[rows] + self.drift) + filled * self._center
        return self._weights[rows], a, kept + filled - a

    def observe(self, rows: Indices, passed: Floats, seen: Floats, chosen: Floats) -> float:
        """Learn from the groups of a step, one for each row, and return their log-likelihood. chosen: weights that
        correct for the choice of rows."""
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
        """Move the drift so that the expected passes of the step come nearer to the observed ones."""
        mean, single, variance_of_rates = moments(weights, a, b)
        # The variance of a single sample is the slope of the mean in the log-odds, too.
        slope = float((seen * single).sum())
        variance = float((seen * single + seen**2 * variance_of_rates).sum())
        self._drift_variance += DRIFT_PER_STEP**2
        gain = self._drift_variance * slope / (self._drift_variance * slope**2 + variance)
        self.drift += gain * float((passed - seen * mean).sum())
        self._drift_variance *= 1 - gain * slope

    def _follow_moments(self, passed: Floats, seen: Floats, weights: Floats) -> None:
        """Move the moments of all pass rates towards those of a step's groups."""
        weights = weights / weights.mean()
        share = len(passed) / (len(passed) + RECENT_GROUPS)
        self._center += share * (float(np.average(passed / seen, weights=weights)) - self._center)
        self._center = min(max(self._center, 1e-3), 1 - 1e-3)
        # (c - n m)^2 - n m (1 - m) has the expectation n (n - 1) times the variance of the rates.
        excess = (passed - seen * self._center) ** 2 - seen * self._center * (1 - self._center)
        pairs = float((weights * seen * (seen - 1)).sum())
        if pairs:
            self._spread += share * (float((weights * excess).sum()) / pairs - self._spread)
        whole = self._center * (1 - self._center)
        self._spread = min(max(self._spread, whole / MOST_STRENGTH), 0.95 * whole)

    def state(self) -> dict[str, Any]:
        """Return what a checkpoint keeps."""
        return {name: array.tolist() if name in _ARRAYS else array for name, array in vars(self).items()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on with what was known at that state."""
        for name, value in state.items():
            setattr(self, name, np.array(value, dtype=np.float64) if name in _ARRAYS else value)


_ARRAYS = ("_weights", "_log_odds", "_strength", "_seen")
"""The fields of a track with numbers for each problem."""


def _log_odds(a: Floats, b: Floats) -> Floats:
    """Return the log-odds of the means of Beta distributions, which are kept away from 0 and 1."""
    log_odds: Floats = logit(np.clip(a / (a + b), 1e-6, 1 - 1e-6))
    return log_odds
