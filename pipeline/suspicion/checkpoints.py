"""Samples of one model at several steps of its training, told apart as checkpoints of it.

    policy: steps 0, 1, ..., 79, 256 samples each  ->  "policy@0-19", "policy@20-39", "policy@40-59", "policy@60-79"

Where the label is wrong, the answer that the model comes to prefer rises over training while the label falls; on a hard
item the label rises (arXiv 2604.03993). That is the way answers change with ability (`readings`), so each checkpoint
takes part as a system with an ability of its own. The checkpoints of a model share their errors: for one item they
count as repeated samples of one system do, and they are one witness (`tiers`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

MAX_CHECKPOINTS = 4
"""Steps of one model are joined into so many checkpoints, of about as many samples each."""
NO_STEP = -1
"""The step of a sample that names none."""


@dataclass(frozen=True, slots=True)
class Checkpoints:
    """The systems that m models with their steps make."""

    names: list[str]
    """Of the systems."""
    family: NDArray[np.int32]
    """The index of each system's model."""
    system: NDArray[np.int32]
    """The index of each sample's system."""


def split_by_step(models: Sequence[str], model: NDArray[np.int32], step: NDArray[np.int32]) -> Checkpoints:
    """Tell the checkpoints of the models apart; model, step: of each sample. Models come in the order of their names.

    The steps of a model rise from one of its systems to the next. A model all of whose samples are of one step, or of
    none, is one system.
    """
    names: list[str] = []
    family: list[int] = []
    system = np.zeros(len(model), dtype=np.int32)
    for index, name in enumerate(sorted(models)):
        rows = np.flatnonzero(model == models.index(name))
        steps, counts = np.unique(step[rows], return_counts=True)
        # A step belongs to the part in which the middle of its samples lies.
        middle = np.cumsum(counts) - counts / 2
        part = np.minimum((middle * min(MAX_CHECKPOINTS, len(steps)) / len(rows)).astype(int), MAX_CHECKPOINTS - 1)
        for position in np.unique(part):
            of_part = steps[part == position]
            system[rows[np.isin(step[rows], of_part)]] = len(names)
            names.append(name if len(np.unique(part)) == 1 else f"{name}@{_describe(of_part)}")
            family.append(index)
    return Checkpoints(names, np.array(family, dtype=np.int32), system)


def _describe(steps: NDArray[np.int32]) -> str:
    return str(steps[0]) if len(steps) == 1 else f"{steps[0]}-{steps[-1]}"
