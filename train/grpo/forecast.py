"""Foretells the pass rates of a training's first steps by the profile's posteriors, and weighs what comes against them.

    profile                   4 problems a step of Beta(3, 9)    at most 18 of 32 completions right, 99.9 % of the time
    golds of other problems   1, 0 and 1 of 32, then 0           evidence 1.3, 4.9, 6.4 and 10.3: stopped

The evidence is the logarithm of a test martingale (Ville 1939; Ramdas et al., arXiv 2210.01948): how much likelier all
groups so far are where something else is judged than in the profile (pass rates further below it, or without relation
to it) than where they are the profile's, at most `TOLERANCE` below. Over 1,000, ln 1,000 = 6.9, it comes in one of
1,000 sound runs at most, however often one looks and however many prompts a step has. Training makes no policy worse
from the first step on: a run that fits the profile first and dies later is left to other guards.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import betaln, expit, logit, logsumexp

from truegold.pipeline.rates.posterior import Mixture, moments, stack_mixtures

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]

STEPS = 20
"""The steps that are foretold: later the policy is another than the profile's."""
TOLERANCE = 0.5
"""The log-odds by which passing may be below the profile's: another machine, another engine, a lucky profile."""
SOUND = (-TOLERANCE, 0.0, 0.5, 1.0, 2.0, 3.0)
"""The log-odds by which passing may be above the profile's, at any step: training raises them."""
FURTHER = (0.5, 1.0, 2.0, 4.0)
"""The further log-odds by which passing is lower where something else is judged."""
UNRELATED = (0.01, 0.03, 0.1, 0.2)
"""Means of pass rates that have nothing to do with the profile's."""
SPREAD_STRENGTH = 2.0
"""The strength of the Beta distribution of such pass rates."""
MOST_STRENGTH = 50.0
"""No pass rate is taken for better known than by this many samples."""
LATER = 4.0
"""If a change at a later step explains so much more, it was the policy that changed."""
Z_999 = 3.29
"""The normal quantile of a two-sided interval of 99.9 %."""


class Forecast:
    """The profile's prediction of the first steps' groups, and how well it was right."""

    def __init__(self, known: Sequence[Mixture | None]) -> None:
        """Begin with the posterior of each problem in the profile, or with None."""
        self._is_known = np.array([mixture is not None for mixture in known])
        self._weights, a, b = stack_mixtures(known)
        self._strength = np.minimum(a + b, MOST_STRENGTH)
        self._means = np.clip(a / (a + b), 1e-4, 1 - 1e-4)
        self._right, self._judged = np.zeros(len(known)), np.zeros(len(known))
        """The right and the judged completions of each problem, in the groups so far."""
        self._evidence: list[Floats] = []
        """The evidence by step, for each hypothesis that something else is judged."""

    def observe(self, problems: Sequence[int], right: Sequence[int], judged: Sequence[int]) -> dict[str, float]:
        """Take in a step's groups, and return the interval that was foretold for its pass rate and the evidence so far
        that something else is judged than in the profile."""
        known = [index for index, row in enumerate(problems) if judged[index] and self._is_known[row]]
        if not known or len(self._evidence) >= STEPS:
            return {}
        # Groups of one problem count as one.
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
        """Return the log-likelihood of all counts of these problems by each hypothesis: first those that all is as it
        was in the profile, then those that something else is judged. Shape [hypotheses]."""
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
        """Return the interval of the share that passes, the tolerance taken off below."""
        weights, strength = self._weights[rows], self._strength[rows]
        bounds = []
        for shift, sign in ((-TOLERANCE, -1), (0.0, 1)):
            means = expit(logit(self._means[rows]) + shift)
            mean, single, variance_of_rates = moments(weights, means * strength, (1 - means) * strength)
            variance = (seen * single + seen**2 * variance_of_rates).sum()
            bounds.append(float((seen * mean).sum() + sign * Z_999 * math.sqrt(variance)) / float(seen.sum()))
        return max(0.0, bounds[0]), min(1.0, bounds[1])

    def _weigh(self) -> float:
        """Return the logarithm of the evidence, 0 where a change at a later step explains what came far better."""
        sums = np.cumsum(self._evidence, axis=0)
        total = sums[-1]
        since_later = float((total - sums.min(axis=0)).max()) if len(sums) > 1 else 0.0
        if since_later > float(total.max()) + LATER:
            return 0.0
        return max(0.0, float(logsumexp(total) - math.log(len(total))))

    def state(self) -> dict[str, Any]:
        """Return what a checkpoint keeps."""
        evidence = [step.tolist() for step in self._evidence]
        return {"right": self._right.tolist(), "judged": self._judged.tolist(), "evidence": evidence}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a checkpoint's state."""
        self._right, self._judged = np.array(state["right"]), np.array(state["judged"])
        self._evidence = [np.array(step) for step in state["evidence"]]
