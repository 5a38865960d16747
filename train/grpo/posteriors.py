"""What is known of each problem's pass rate while the policy moves: the profile's posterior, carried on.

    profile: 2 of 8                             Beta(3.7, 10.5)
    20 steps on, others pass far more often     Beta(3.1, 1.2): shifted with them, and less certain
    its own group comes out 3 of 8              Beta(6.1, 6.2)

Between a problem's visits all problems become easier or harder together: their log-odds are shifted by a drift, which
a Kalman filter of one dimension (Kalman 1960) follows by comparing what each step's groups were expected to pass with
what they passed. A problem also goes a way of its own: what was seen of it s steps ago counts with the weight forget**s
(discounting, as in West and Harrison, "Bayesian Forecasting", 6.3), and the Beta distribution with the moments of all
pass rates of late fills its place. How fast to forget depends on how fast the policy moves. Several rates run side by
side, and the one counts that has foretold the latest groups best.

Some problems never pass, since their label or their text is at fault. One that is all wrong again and again while the
others pass is ever more probably one of those, by Bayes' rule.

Training drives pass rates to both ends, while a Beta distribution that has forgotten much lies between them and
foretells too many teaching groups. So foretold shares are multiplied by the ratio in which the latest ones came true.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import betaln, expit, logit

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]

FORGET = (0.8, 0.9, 0.95, 0.98, 0.995)
"""The weights, after a step, of what is known: half is forgotten after 3 to 140 steps."""
SCORE_MEMORY = 0.95
"""The weight, after a step, of how well groups were foretold."""
HOPELESS = 0.05
"""The share of problems that never pass, whatever is learnt: their labels or their texts are at fault."""
HOPELESS_MEMORY = 0.99
"""The weight, after a step, of what is known of that, so that such problems are looked at again."""
DRIFT_PER_STEP = 0.1
"""The standard deviation of a step's drift, in log-odds."""
RECENT_GROUPS = 150.0
"""About so many groups are behind the moments of all pass rates."""
RATIO_GROUPS = 40.0
"""How many groups weigh against a step's own in the ratio that foretold shares are multiplied by."""
TEACHING_RATIOS = (0.25, 2.0)
"""The least and the greatest such ratio."""
MOST_STRENGTH = 200.0
"""No pass rate is taken for better known than by so many samples: it is that of a policy that moves."""


class Posteriors:
    """Beta distributions of the pass rates of a set of problems under the policy as it is now."""

    def __init__(self, a: Sequence[float], b: Sequence[float], group_size: int) -> None:
        """Begin with the profile's Beta(a, b) of each problem, of which groups of `group_size` will be sampled."""
        self._group_size = group_size
        self._hopeless = np.full(len(a), HOPELESS)
        """How probable it was, when each problem was seen last, that it never passes whatever the policy learns."""
        self._seen = np.zeros(len(a))
        """The step at which each problem was seen last."""
        self._step = 0
        self._teaching_ratio = 1.0
        """How many of the latest groups taught, for each that was foretold to."""
        start = np.array(a, dtype=np.float64), np.array(b, dtype=np.float64)
        self._tracks = [_Track(*start, forget) for forget in FORGET]
        self._scores = np.zeros(len(FORGET))
        """How well each track has foretold the latest groups: a discounted sum of log-likelihoods."""

    @property
    def _best(self) -> _Track:
        return self._tracks[int(self._scores.argmax())]

    @property
    def drift(self) -> float:
        """By how much the log-odds of all problems have moved since the start."""
        return self._best.drift

    @property
    def forget(self) -> float:
        """The rate of forgetting that foretells best."""
        return self._best.forget

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
        """Learn from a step's groups, and return the log-likelihood at which they were foretold."""
        self._step += 1
        a, b = self.parameters()
        foretold = float((betaln(a[rows] + passed, b[rows] + seen - passed) - betaln(a[rows], b[rows])).sum())
        self._follow_drift(*_mean_and_strength(a[rows], b[rows]), passed, seen)
        self._follow_moments(passed, seen, weights)
        a, b = self.parameters()
        np.add.at(a, rows, passed)
        np.add.at(b, rows, seen - passed)
        mean, strength = _mean_and_strength(a[rows], b[rows])
        self._log_odds[rows] = logit(mean) - self.drift
        self._strength[rows] = np.minimum(strength, MOST_STRENGTH)
        self._seen[rows] = self._step
        return foretold

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
