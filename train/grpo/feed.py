"""The feed of problems: an endless stream over the selected rows, the same for every number of ranks.

    order: uniform       a fresh permutation of all rows each epoch
    order: curriculum    the same over the easiest third, then two thirds, then all
    order: signal        the same, and a row is skipped with a probability that grows as its group would teach less

Whether a group would teach is predicted from posteriors that every rollout updates (`Posteriors`). A skipped row comes
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
import numpy.typing as npt
from scipy.special import betaln, expit, logit

from truegold.pipeline.tables.rows import Row
from truegold.train.config.grpo import FeedConfig, Order
from truegold.train.grpo.forecast import Forecast

SHARPNESS = 2.0
"""A row is taken with the share of its groups that will teach, relative to the best rows, to this power."""
BEST_ROWS = 0.9
"""The quantile of all rows that counts as the best: those above it are always taken."""
UNJUDGED = 0.5
"""How much rarer a row is taken for each of its latest groups in a row of which nothing could be judged."""


@dataclass(frozen=True, slots=True)
class GroupScore:
    """What decides whether a group enters."""

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
        self, rows: Sequence[Row], reserve: Sequence[Row], config: FeedConfig, *, group_size: int, steps: int, seed: int
    ) -> None:
        """Begin at the first step. rows: not empty; steps: those of the whole training."""
        self._pool = [*rows, *reserve]
        self._rows, self._config, self._seed = len(rows), config, seed
        self._steps = steps
        self._label_right = np.array([1 - (row.get("suspicion") or 0.0) for row in self._pool])
        # Nothing is known of a row without a profile.
        a = [row.get("posterior_a") or 1.0 for row in self._pool]
        b = [row.get("posterior_b") or 1.0 for row in self._pool]
        self._easy_first = sorted(range(len(rows)), key=lambda index: -a[index] / (a[index] + b[index]))
        self._posteriors = Posteriors(a, b, group_size)
        profiled = [(row.get("posterior_a"), row.get("posterior_b")) for row in self._pool]
        self._forecast = Forecast([a for a, _ in profiled], [b for _, b in profiled])
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
        """Learn from the step's groups, by their numbers, and return what the feed expected and did."""
        drawn = [(self._draws[group], score) for group, score in scores.items()]
        self.learn(drawn)
        a, b = self._posteriors.parameters()
        metrics = {
            "feed_expected_teaching": sum(draw.teaching for draw, _ in drawn) / max(len(drawn), 1),
            "feed_pass_rate": float((a / (a + b))[: self._rows].mean()),
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
        """Return the ids of the rows of the step's groups, by the number of the group."""
        return [self._pool[draw.index]["id"] for draw in self._draws]

    def first_rows(self, count: int) -> list[Row]:
        """Return the first rows, as they stand in the data."""
        return self._pool[: min(count, self._rows)]

    def all_rows(self) -> Sequence[Row]:
        """Return all rows and the reserve."""
        return self._pool

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
                "forecast": self._forecast.state(),
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
        self._forecast.restore(saved["forecast"])


@lru_cache(maxsize=2)
def _permutation(rows: int, key: str, epoch: int) -> list[int]:
    order = list(range(rows))
    random.Random(f"{key}-{epoch}").shuffle(order)
    return order


Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]

FORGET = (0.8, 0.9, 0.95, 0.98, 0.995)
"""The weights, after a step, of what is known: half is forgotten after 3 to 140 steps."""
SCORE_MEMORY = 0.95
"""The weight, after a step, of how well groups were predicted."""
HOPELESS = 0.05
"""The share of problems that never pass, whatever is learnt: their labels or their texts are at fault."""
HOPELESS_MEMORY = 0.99
"""The weight, after a step, of what is known of that, so that such problems are looked at again."""
DRIFT_PER_STEP = 0.1
"""The standard deviation of a step's drift, in log-odds."""
RECENT_GROUPS = 150.0
"""About so many groups are behind the moments of all pass rates."""
RATIO_GROUPS = 40.0
"""How many groups weigh against a step's own in the ratio that predicted shares are multiplied by."""
TEACHING_RATIOS = (0.25, 2.0)
"""The least and the greatest such ratio."""
MOST_STRENGTH = 200.0
"""No pass rate is taken for better known than by so many samples: it is that of a policy that moves."""


class Posteriors:
    """Beta distributions of the pass rates of problems under the policy as it is now: the profile's, carried on.

        profile: 2 of 8                             Beta(3.7, 10.5)
        20 steps on, others pass far more often     Beta(3.1, 1.2): shifted with them, and less certain
        its own group comes out 3 of 8              Beta(6.1, 6.2)

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

    def __init__(self, a: Sequence[float], b: Sequence[float], group_size: int) -> None:
        """Begin with the profile's Beta(a, b) of each problem, of which groups of `group_size` will be sampled."""
        self._group_size = group_size
        self._hopeless = np.full(len(a), HOPELESS)
        """How probable it was, when each problem was seen last, that it never passes whatever the policy learns."""
        self._seen = np.zeros(len(a))
        """The step at which each problem was seen last."""
        self._step = 0
        self._teaching_ratio = 1.0
        """How many of the latest groups taught, for each that was expected to."""
        start = np.array(a, dtype=np.float64), np.array(b, dtype=np.float64)
        self._tracks = [_Track(*start, forget) for forget in FORGET]
        self._scores = np.zeros(len(FORGET))
        """How well each track has predicted the latest groups: a discounted sum of log-likelihoods."""

    @property
    def _best(self) -> _Track:
        return self._tracks[int(self._scores.argmax())]

    @property
    def drift(self) -> float:
        """By how much the log-odds of all problems have moved since the start."""
        return self._best.drift

    def parameters(self) -> tuple[Floats, Floats]:
        """Return a and b of each problem's Beta distribution. Shapes [problems], float64."""
        return self._best.parameters()

    def teaching_shares(self, rows: Indices | slice = slice(None), sizes: Floats | None = None) -> Floats:
        """Return how often a group of each problem would have right and wrong completions. Shape [problems].

        rows: which problems; all where left out. sizes: of their groups; the usual one where left out.
        """
        size = self._group_size if sizes is None else sizes
        a, b = (values[rows] for values in self.parameters())
        whole = betaln(a, b)
        dead, saturated = (np.exp(betaln(a + right, b + size - right) - whole) for right in (0, size))
        chance = (1 - dead - saturated) * (1 - self.hopeless_shares()[rows]) * self._teaching_ratio
        shares: Floats = np.clip(chance, 0.0, 1.0)
        return shares

    def hopeless_shares(self) -> Floats:
        """Return how probable it is that each problem never passes; little by little that is forgotten."""
        known: Floats = HOPELESS + (self._hopeless - HOPELESS) * HOPELESS_MEMORY ** (self._step - self._seen)
        return known

    def observe(
        self, problems: Sequence[int], right: Sequence[int], judged: Sequence[int], chances: Sequence[float]
    ) -> None:
        """Learn from a step's groups: `right` of `judged` completions passed.

        A problem may come more than once. chances: how probable it was that each was chosen, so that the moments are
        those of all problems and not of the chosen ones alone.
        """
        counted = [index for index, count in enumerate(judged) if count]
        if not counted:
            return
        rows = np.array(problems, dtype=np.int64)[counted]
        passed, seen = np.array(right, dtype=np.float64)[counted], np.array(judged, dtype=np.float64)[counted]
        weights = 1 / np.array(chances, dtype=np.float64)[counted]
        expected = float(self.teaching_shares(rows, seen).sum())
        taught = int(((passed > 0) & (passed < seen)).sum())
        ratio = self._teaching_ratio * (taught + RATIO_GROUPS) / (expected + RATIO_GROUPS)
        self._teaching_ratio = float(np.clip(ratio, *TEACHING_RATIOS))
        self._learn_hopeless(rows, passed, seen)
        for index, track in enumerate(self._tracks):
            likelihood = track.observe(rows, passed, seen, weights)
            self._scores[index] = SCORE_MEMORY * self._scores[index] + likelihood

    def _learn_hopeless(self, rows: Indices, passed: Floats, seen: Floats) -> None:
        """Compare how well "never" and the Beta distributions explain groups that are all wrong (Bayes). The groups of
        a problem that came several times count as one."""
        rows, groups = np.unique(rows, return_inverse=True)
        passed = np.bincount(groups, weights=passed).astype(np.float64)
        seen = np.bincount(groups, weights=seen).astype(np.float64)
        a, b = (array[rows] for array in self.parameters())
        by_chance = np.exp(betaln(a, b + seen) - betaln(a, b))
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
    """What is known with one rate of forgetting."""

    def __init__(self, a: Floats, b: Floats, forget: float) -> None:
        mean, strength = _mean_and_strength(a, b)
        self.forget = forget
        self.drift = 0.0
        self._drift_variance = 0.0
        self._step = 0
        self._log_odds = logit(mean)
        """Of the means, less the drift at the time they were seen."""
        self._strength = np.minimum(strength, MOST_STRENGTH)
        self._seen = np.zeros(len(mean))
        """The step at which each problem was seen last."""
        self._center = float(mean.mean())
        self._spread = float(mean.var() + (mean * (1 - mean) / (strength + 1)).mean())
        """Mean and variance of the pass rates of all problems, of late."""

    def parameters(self) -> tuple[Floats, Floats]:
        """Return a and b of each problem."""
        weight = self.forget ** (self._step - self._seen)
        others = max(self._center * (1 - self._center) / self._spread - 1, 0.05)
        kept, filled = weight * self._strength, (1 - weight) * others
        a = kept * expit(self._log_odds + self.drift) + filled * self._center
        return a, kept + filled - a

    def observe(self, rows: Indices, passed: Floats, seen: Floats, weights: Floats) -> float:
        """Learn from a step's groups, and return the log-likelihood at which they were expected."""
        self._step += 1
        a, b = self.parameters()
        likelihood = float((betaln(a[rows] + passed, b[rows] + seen - passed) - betaln(a[rows], b[rows])).sum())
        self._follow_drift(*_mean_and_strength(a[rows], b[rows]), passed, seen)
        self._follow_moments(passed, seen, weights)
        a, b = self.parameters()
        np.add.at(a, rows, passed)
        np.add.at(b, rows, seen - passed)
        mean, strength = _mean_and_strength(a[rows], b[rows])
        self._log_odds[rows] = logit(mean) - self.drift
        self._strength[rows] = np.minimum(strength, MOST_STRENGTH)
        self._seen[rows] = self._step
        return likelihood

    def _follow_drift(self, mean: Floats, strength: Floats, passed: Floats, seen: Floats) -> None:
        """Move the drift towards what makes the step's passes as many as expected."""
        single = seen * mean * (1 - mean)
        # The slope of a beta-binomial's mean in the log-odds, and its variance.
        slope = float((single * strength / (strength + 1)).sum())
        variance = float((single * (seen + strength) / (strength + 1)).sum())
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


_ARRAYS = ("_log_odds", "_strength", "_seen")
"""The fields of a track with a number for each problem."""


def _mean_and_strength(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """Return a / (a + b), away from 0 and 1 so that it has log-odds, and a + b."""
    return np.clip(a / (a + b), 1e-6, 1 - 1e-6), a + b
