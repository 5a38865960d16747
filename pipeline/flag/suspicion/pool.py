"""Suspicion read from all systems, from the abler half of them and from the ablest quarter, put together.

    60 systems: 0.31     the best 30: 0.52     the best 15: 0.68     ->  0.51

The curves of `readings` are an approximation, and where it errs depends on who votes: many weak systems that share a
trap pull the curve of all, one slip moves that of the ablest few. The logarithmic opinion pool (Genest and Zidek 1986,
Statistical Science 1, section 3; equal weights) believes neither alone: it is the mean of the log odds.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from truegold.pipeline.flag.suspicion.ability import Ability, sigmoid
from truegold.pipeline.flag.suspicion.ballot import Votes
from truegold.pipeline.flag.suspicion.readings import read

Array = NDArray[np.float64]

SHARES = (0.5, 0.25)
"""Of the systems, the ablest first."""
MIN_SYSTEMS = 12
"""Smaller sets say too little of their own."""
FLOOR = 1e-7


def pooled(fault: Array, votes: Votes, ability: Ability, features: Array) -> Array:
    """(n,): `fault`, read from all systems, pooled with the abler ones' reading of the items they answered."""
    m = len(votes.systems)
    ranked = np.argsort(-ability.theta, kind="stable")
    total, count = _log_odds(fault), np.ones(votes.n_items)
    for share in SHARES:
        size = round(m * share)
        if size < MIN_SYSTEMS:
            break
        chosen = np.zeros(m, dtype=bool)
        chosen[ranked[:size]] = True
        part = votes.of_systems(chosen)
        answered = np.bincount(part.item, minlength=votes.n_items) > 0
        total = total + np.where(answered, _log_odds(read(part, ability.of_systems(chosen), features).fault), 0.0)
        count = count + answered
    return np.where(count > 1, sigmoid(total / count), fault)


def _log_odds(probability: Array) -> Array:
    clipped = np.clip(probability, FLOOR, 1.0 - FLOOR)
    odds: Array = np.log(clipped / (1.0 - clipped))
    return odds
