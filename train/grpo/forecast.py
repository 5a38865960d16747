"""Prediction of the pass rates of a training's first steps from the profile, and evidence against the prediction.

The profile has samples of each problem from before the training. Pass rates far below it show that the training judges
something else, for example golds of wrong rows:

    profile: 4 problems a step, each Beta(3, 9)          prediction: at most 18 of 32 completions right (99.9 %)
    four steps with wrong golds: 1, 0, 1, 0 of 32 right  evidence after each step: 1.3, 4.9, 6.4, 10.3; the run stops

The evidence is the logarithm of a likelihood ratio of all groups so far. It compares two kinds of hypotheses: pass
rates that are far below the profile or unrelated to it, and pass rates that are at most `TOLERANCE` below the profile.
The ratio is a test martingale (Ville 1939; Ramdas et al., arXiv 2210.01948): in at most one of 1,000 sound runs it ever
exceeds 1,000 (evidence ln 1,000 = 6.9), for any number of steps and prompts.

Pass rates that first fit the profile and fall later give no evidence here. Other guards watch for such a fall.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import betaln, expit, logit, logsumexp

from truegold.pipeline.rates import Mixture, moments, stack_mixtures

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]

STEPS = 20
"""The number of predicted steps. In later steps the policy differs too much from the profile's."""
TOLERANCE = 0.5
"""The log-odds by which a sound run's pass rates may be below the profile's. An example is another engine."""
SOUND = (-TOLERANCE, 0.0, 0.5, 1.0, 2.0, 3.0)
"""Hypotheses of a sound run: shifts of the profile's pass rates, in log-odds. Training raises pass rates."""
FURTHER = (0.5, 1.0, 2.0, 4.0)
"""Hypotheses of a faulty run: pass rates below the profile by `TOLERANCE` plus these log-odds."""
UNRELATED = (0.01, 0.03, 0.1, 0.2)
"""Hypotheses of a faulty run: pass rates with these means, unrelated to the profile."""
SPREAD_STRENGTH = 2.0
"""a + b of the Beta distribution of unrelated pass rates."""
MOST_STRENGTH = 50.0
"""The largest a + b of the Beta distributions of the profile's pass rates: the weight of its samples."""
LATER = 4.0
"""If leaving out the first steps raises the evidence by more than this, the policy has changed, and judging is
sound."""
Z_999 = 3.29
"""The normal quantile of a two-sided interval of 99.9 %."""


class Forecast:
    """The profile's prediction of the groups of the first steps, compared with the observed groups."""

    def __init__(self, known: Sequence[Mixture | None]) -> None:
        """Begin with the profile's posterior of each problem, or None for a problem without one."""
        self._is_known = np.array([mixture is not None for mixture in known])
        self._weights, a, b = stack_mixtures(known)
        self._strength = np.minimum(a + b, MOST_STRENGTH)
        self._means = np.clip(a / (a + b), 1e-4, 1 - 1e-4)
        self._right, self._judged = np.zeros(len(known)), np.zeros(len(known))
        """The numbers of right and of judged completions of each problem so far."""
        self._evidence: list[Floats] = []
        """For each step, the log-likelihood ratio of each hypothesis of a faulty run, compared with the best sound
        one."""

    def observe(self, problems: Sequence[int], right: Sequence[int], judged: Sequence[int]) -> dict[str, float]:
        """Compare a step's groups with the prediction. Returns an empty dict after the first `STEPS` steps.

        forecast_low, forecast_high   the predicted interval of the step's pass rate
        profile_evidence              the evidence so far that the run is faulty, in nats
        """
        known = [index for index, row in enumerate(problems) if judged[index] and self._is_known[row]]
        if not known or len(self._evidence) >= STEPS:
            return {}
        # Several groups of one problem count as one.
        indices: Indices = np.array(problems, dtype=np.int64)[known]
        rows, groups = np.unique(indices, return_inverse=True)
        passed = np.bincount(groups, weights=np.array(right, dtype=np.float64)[known]).astype(np.float64)
        seen = np.bincount(groups, weights=np.array(judged, dtype=np.float64)[known]).astype(np.float64)
        before = self._likelihoods(rows, self._right[rows], self._judged[rows])
        self._right[rows] += passed
        self._judged[rows] += seen
        likelihood = self._likelihoods(rows, self._right[rows], self._judged[rows]) - before
        self._evidence.append(likelihood[len(SOUND) :] - likelihood[: len(SOUND)].max())
        low, high = self._interval(rows, seen)
        return {"forecast_low": low, "forecast_high": high, "profile_evidence": self._weigh()}

    def _likelihoods(self, rows: Indices, right: Floats, judged: Floats) -> Floats:
        """Return the log-likelihood of the problems' counts under each hypothesis: `SOUND`, `FURTHER`, `UNRELATED`.

        Shape [hypotheses].
        """
        log_odds, strength = logit(self._means[rows]), self._strength[rows]
        passes, failures = right[:, None], (judged - right)[:, None]
        with np.errstate(divide="ignore"):
            weights = np.log(self._weights[rows])
        likelihoods = []
        for shift in (*SOUND, *(-TOLERANCE - more for more in FURTHER)):
            mean = expit(log_odds + shift)
            a, b = mean * strength, (1 - mean) * strength
            likelihoods.append(logsumexp(weights + betaln(a + passes, b + failures) - betaln(a, b), axis=1).sum())
        for unrelated in UNRELATED:
            first, second = unrelated * SPREAD_STRENGTH, (1 - unrelated) * SPREAD_STRENGTH
            likelihoods.append((betaln(first + passes, second + failures) - betaln(first, second)).sum())
        return np.array(likelihoods, dtype=np.float64)

    def _interval(self, rows: Indices, seen: Floats) -> tuple[float, float]:
        """Return the predicted 99.9 % interval of the step's pass rate, widened below by `TOLERANCE`."""
        weights, strength = self._weights[rows], self._strength[rows]
        bounds = []
        for shift, sign in ((-TOLERANCE, -1), (0.0, 1)):
            means = expit(logit(self._means[rows]) + shift)
            mean, single, variance_of_rates = moments(weights, means * strength, (1 - means) * strength)
            variance = (seen * single + seen**2 * variance_of_rates).sum()
            bounds.append(float((seen * mean).sum() + sign * Z_999 * math.sqrt(variance)) / float(seen.sum()))
        return max(0.0, bounds[0]), min(1.0, bounds[1])

    def _weigh(self) -> float:
        """Return the evidence of a faulty run in nats. It is 0 if a change at a later step explains the counts far
        better."""
        sums = np.cumsum(self._evidence, axis=0)
        total = sums[-1]
        since_later = float((total - sums.min(axis=0)).max()) if len(sums) > 1 else 0.0
        if since_later > float(total.max()) + LATER:
            return 0.0
        return max(0.0, float(logsumexp(total) - math.log(len(total))))

    def state(self) -> dict[str, Any]:
        """Return the state for a checkpoint."""
        evidence = [step.tolist() for step in self._evidence]
        return {"right": self._right.tolist(), "judged": self._judged.tolist(), "evidence": evidence}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from the state of a checkpoint."""
        self._right, self._judged = np.array(state["right"]), np.array(state["judged"])
        self._evidence = [np.array(step) for step in state["evidence"]]
