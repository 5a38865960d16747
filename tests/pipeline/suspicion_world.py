"""Items that systems of known strength answer, for tests of suspicion."""

from __future__ import annotations

import numpy as np

from truegold.pipeline.suspicion.answer_classes import LabelledProblem, Sample
from truegold.pipeline.suspicion.assess import assess
from truegold.pipeline.suspicion.votes import VoteCounter

N_ITEMS = 300
RATES = {f"s{index:02d}": rate for index, rate in enumerate(np.linspace(0.35, 0.985, 20))}


def world(special=None, systems=RATES, seed=0):
    """Items of mixed difficulty with gold "7", answered by systems of known strength.

    special: item index -> function (rate of the system, rng) -> answer.
    """
    rng = np.random.default_rng(seed)
    problems = [LabelledProblem(str(index), "7") for index in range(N_ITEMS)]
    difficulty = rng.normal(0, 1.2, N_ITEMS)
    samples = []
    for name, rate in systems.items():
        ability = np.log(rate / (1 - rate)) * 1.3
        for index in range(N_ITEMS):
            if special and index in special:
                answer = special[index](rate, rng)
            else:
                right = rng.random() < 1 / (1 + np.exp(difficulty[index] - ability))
                answer = "7" if right else str(rng.integers(100, 120))
            samples.append(Sample(str(index), name, answer=answer))
    return problems, samples


def assessed(problems, samples):
    """Return the fit, and the assessments by item id."""
    counter = VoteCounter(problems)
    counter.add(samples)
    fit, assessments = assess(problems, counter.count())
    return fit, {entry.id: entry for entry in assessments}
