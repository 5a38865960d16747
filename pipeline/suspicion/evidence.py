"""What a reviewer can check of one item's votes: who gave the label, who the alternative, and what speaks of the two.

{"passes": {"weak": [5, 20], "strong": [0, 20]}, "alternative_support": {"weak": [3, 20], "strong": [19, 20]},
 "inversions": 6, "inverted": [["Qwen2-7B", "Qwen2-72B"]], "history": {"label": [0.6, 0.1], ...}, ...}
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truegold.pipeline.suspicion.answer_classes import LABEL_CLASS
from truegold.pipeline.suspicion.ballot import Votes
from truegold.pipeline.suspicion.readings import SHARED

Array = NDArray[np.float64]

GROUPS = ("weak", "middle", "strong")
"""Thirds of the systems by ability. With fewer than three systems all of them are in the last."""
STRONG_RATE = 0.9
"""Systems that are right this often, by the truth as far as it is known, are counted apart."""
MIN_LEAD = 0.05
"""By how much a system must be right more often than another for their answers to be an inversion."""
MAX_INVERTED = 3
"""The most inversions that are named."""


@dataclass(frozen=True, slots=True)
class ItemVotes:
    """The entries of one item."""

    system: NDArray[np.int32]
    answer_class: NDArray[np.int32]
    samples: NDArray[np.int32]
    alternative: int
    """The class of the favoured alternative; 0 where there is none."""

    def count(self, answer_class: int, chosen: NDArray[np.bool_]) -> int:
        """Return the samples of the chosen entries that are of a class."""
        return int(self.samples[chosen & (self.answer_class == answer_class)].sum())


class Witnesses:
    """The systems, and how they testify."""

    def __init__(self, theta: Array, strength: Array, system_weight: Array, votes: Votes) -> None:
        self._group = _ability_groups(theta)
        self._strength = strength
        self._weight = system_weight
        self._family = votes.family
        self._names = votes.systems

    def count_models(self, votes: ItemVotes) -> tuple[int, float]:
        """Return how many models answered, and how many they are worth, shared errors taken into account."""
        weight: dict[int, float] = {}
        for system in np.unique(votes.system).tolist():
            family = int(self._family[system])
            weight[family] = max(weight.get(family, 0.0), float(self._weight[system]))
        return len(weight), sum(weight.values())

    def describe(self, votes: ItemVotes) -> dict[str, Any]:
        """Return the evidence; JSON-able. Entropy is in bits, over the shares of the classes."""
        everybody = np.ones(len(votes.system), dtype=bool)
        total = int(votes.samples.sum())
        wrong = total - votes.count(LABEL_CLASS, everybody)
        shares = np.bincount(votes.answer_class, weights=votes.samples) / total
        passes, support = {}, {}
        for index, name in enumerate(GROUPS):
            in_group = self._group[votes.system] == index
            if n := int(votes.samples[in_group].sum()):
                passes[name] = [votes.count(LABEL_CLASS, in_group), n]
                if votes.alternative:
                    support[name] = [votes.count(votes.alternative, in_group), n]
        is_strong = self._strength[votes.system] >= STRONG_RATE
        agreement = votes.count(votes.alternative, everybody) / wrong if wrong and votes.alternative else None
        models, independent = self.count_models(votes)
        return {
            "systems": models,
            "samples": total,
            "independent": round(independent / (1.0 + max(0.0, independent - 1.0) * SHARED), 2),
            "passes": passes,
            "alternative_support": support,
            "wrong_agreement": None if agreement is None else round(agreement, 4),
            "entropy": round(-sum(float(share) * math.log2(share) for share in shares[shares > 0]) + 0.0, 4),
            "strong": {
                "systems": len(np.unique(votes.system[is_strong])),
                "label": votes.count(LABEL_CLASS, is_strong),
                "alternative": votes.count(votes.alternative, is_strong) if votes.alternative else 0,
            },
            **self._consistency(votes),
            **self._inversions(votes),
            **self._history(votes),
        }

    def _consistency(self, votes: ItemVotes) -> dict[str, Any]:
        """Return the mean share of a system's samples that give its most frequent answer, where it has several."""
        shares = []
        for system in np.unique(votes.system):
            samples = votes.samples[votes.system == system]
            if samples.sum() > 1:
                shares.append(float(samples.max() / samples.sum()))
        return {"self_consistency": round(sum(shares) / len(shares), 4)} if shares else {}

    def _inversions(self, votes: ItemVotes) -> dict[str, Any]:
        """Return how often a system gives the label and an abler one the alternative; the widest apart are named."""
        if not votes.alternative:
            return {}
        givers = [self._givers(votes, answer_class) for answer_class in (LABEL_CLASS, votes.alternative)]
        pairs = [
            (self._strength[abler] - self._strength[weaker], self._names[weaker], self._names[abler])
            for weaker in givers[0]
            for abler in givers[1]
            if self._strength[abler] - self._strength[weaker] >= MIN_LEAD
        ]
        named = sorted(pairs, key=lambda pair: (-pair[0], pair[1:]))[:MAX_INVERTED]
        return {"inversions": len(pairs), "inverted": [[weaker, abler] for _, weaker, abler in named]} if pairs else {}

    def _givers(self, votes: ItemVotes, answer_class: int) -> list[int]:
        """Return the systems most of whose samples are of a class."""
        return [system for system, favourite in _favourites(votes) if favourite == answer_class]

    def _history(self, votes: ItemVotes) -> dict[str, Any]:
        """Return the shares of label and alternative at the first and the last checkpoint, over the models that have
        several.
        """
        first, last = [], []
        for family in np.unique(self._family[votes.system]):
            systems = np.unique(votes.system[self._family[votes.system] == family])
            if len(systems) > 1:
                first.append(systems[0])
                last.append(systems[-1])
        if not first:
            return {}
        history = {}
        for name, answer_class in (("label", LABEL_CLASS), ("alternative", votes.alternative)):
            ends = [np.isin(votes.system, systems) for systems in (first, last)]
            history[name] = [round(votes.count(answer_class, end) / int(votes.samples[end].sum()), 4) for end in ends]
        if not votes.alternative:
            del history["alternative"]
        return {"history": history}


def _favourites(votes: ItemVotes) -> Iterator[tuple[int, int]]:
    """Yield each system with the class of most of its samples, where one has more than half."""
    for system in np.unique(votes.system).tolist():
        entries = votes.system == system
        samples = votes.samples[entries]
        if 2 * samples.max() > samples.sum():
            yield system, int(votes.answer_class[entries][samples.argmax()])


def _ability_groups(theta: Array) -> NDArray[np.intp]:
    """Return the index in `GROUPS` of each system."""
    m = len(theta)
    if m < len(GROUPS):
        return np.full(m, len(GROUPS) - 1, dtype=np.intp)
    rank = np.empty(m, dtype=np.intp)
    rank[np.argsort(theta, kind="stable")] = np.arange(m)
    return rank * len(GROUPS) // m
