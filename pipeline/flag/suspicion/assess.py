"""Suspicion of items from samples: the whole computation, in the order of its steps.

    votes (classes of equal answers) -> abilities and expected difficulty -> readings -> pool -> neighbours -> tier

No label of good or bad items is used anywhere: everything is learnt from who agrees with whom. The assessments depend
on the set of samples only, not on their order; the order of the items matters for `vicinity`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truegold.pipeline.flag.suspicion.ability import MAX_ITEMS, Ability, fit, text_features
from truegold.pipeline.flag.suspicion.answer_classes import LABEL_CLASS
from truegold.pipeline.flag.suspicion.ballot import Votes
from truegold.pipeline.flag.suspicion.item import Item
from truegold.pipeline.flag.suspicion.readings import SHARED, Readings, pooled_fault, read
from truegold.pipeline.flag.suspicion.tiers import (
    STRONG_RATE,
    StrongVotes,
    Tier,
    choose_tier,
    has_open_answer,
    lower_for_closed,
)
from truegold.pipeline.flag.suspicion.vicinity import Vicinity, with_neighbours

Array = NDArray[np.float64]

GROUPS = ("weak", "middle", "strong")
"""Thirds of the systems by ability. With fewer than three systems all of them are in the last."""


@dataclass(frozen=True, slots=True)
class Assessment:
    """What the samples say of one item."""

    id: str
    suspicion: float | None
    """The probability that the label is at fault; None where nobody answered."""
    tier: Tier
    evidence: dict[str, Any]
    """Counts that a reviewer can check; JSON-able."""
    suggestion: str | None
    """The alternative answer, where able systems rather give that than the label."""


@dataclass(frozen=True, slots=True)
class Fit:
    """What was learnt from all items together; for reports."""

    ability: Ability
    rates: Array
    """(m,): the share of all labels that a system agrees with."""
    vicinity: Vicinity


def assess(problems: Sequence[Item], votes: Votes) -> tuple[Fit, Iterator[Assessment]]:
    """Return what was learnt, and an assessment for each item, in order. ValueError where votes are of other items."""
    if len(problems) != votes.n_items:
        raise ValueError(f"{len(problems)} items, but votes on {votes.n_items}")
    features = text_features(problems)
    right, seen, chosen = _vote_tables(votes)
    rates = right.sum(axis=0) / np.maximum(seen.sum(axis=0), 1e-9)
    ability = fit(right, seen, features[chosen])
    readings = read(votes, ability, features)
    answered = votes.has_votes()
    suspicion = pooled_fault(readings.fault, votes, ability, features)
    vicinity = with_neighbours(suspicion[answered])
    suspicion[answered] = vicinity.suspicion
    closed = np.array([not has_open_answer(item) for item in problems], dtype=bool)
    suspicion[closed] = lower_for_closed(suspicion[closed])
    return Fit(ability, rates, vicinity), _assessments(problems, votes, readings, suspicion, ability, rates)


def _vote_tables(votes: Votes) -> tuple[Array, Array, NDArray[np.intp]]:
    """Return (n, m) weights of right answers, (n, m) of all, and the (n,) chosen items.

    These are at most MAX_ITEMS answered items, evenly spread over the data.
    """
    chosen = np.flatnonzero(votes.has_votes())
    if len(chosen) > MAX_ITEMS:
        chosen = chosen[np.linspace(0, len(chosen) - 1, MAX_ITEMS).astype(np.intp)]
    row = np.full(votes.n_items, -1)
    row[chosen] = np.arange(len(chosen))
    kept = row[votes.item] >= 0
    shape = (len(chosen), len(votes.systems))
    cell = row[votes.item[kept]] * shape[1] + votes.system[kept]
    weight = votes.weight[kept]
    agreeing = weight * (votes.answer_class[kept] == LABEL_CLASS)
    right, seen = (
        np.bincount(cell, weights=weights, minlength=shape[0] * shape[1]).astype(np.float64).reshape(shape)
        for weights in (agreeing, weight)
    )
    return right, seen, chosen


def _assessments(
    problems: Sequence[Item], votes: Votes, readings: Readings, suspicion: Array, ability: Ability, rates: Array
) -> Iterator[Assessment]:
    group = _ability_groups(ability.theta)
    is_strong = rates >= STRONG_RATE
    starts = votes.starts()
    for index, item in enumerate(problems):
        entries = slice(starts[index], starts[index + 1])
        system, answer_class = votes.system[entries], votes.answer_class[entries]
        unjudged = int(votes.unjudged[index])
        if not len(system):
            yield Assessment(item.id, None, Tier.KEEP, {"systems": 0, "samples": 0, "unjudged": unjudged}, None)
            continue
        alternative = int(readings.alternative[index])
        alternative_text = votes.alternatives[index][alternative - 1] if alternative else None
        strong_weight = votes.weight[entries] * is_strong[system]
        strong = StrongVotes(
            systems=int(is_strong[np.unique(system)].sum()),
            label=float(strong_weight[answer_class == LABEL_CLASS].sum()),
            alternative=float(strong_weight[answer_class == alternative].sum()) if alternative else 0.0,
        )
        probability = float(f"{suspicion[index]:.6g}")  # Significant digits keep the order of small suspicions.
        evidence = _count_evidence(system, answer_class, votes.samples[entries], group, alternative) | {
            "alternative": alternative_text,
            "label_share_at_top": round(float(readings.strong_share[index]), 4),
            "label_outvoted_at_top": round(float(readings.outvoted[index]), 4),
            "unjudged": unjudged,
            "strong": {"systems": strong.systems, "label": strong.label, "alternative": strong.alternative},
        }
        yield Assessment(
            item.id,
            probability,
            choose_tier(probability, float(readings.outvoted[index]), strong, has_open_answer(item)),
            evidence,
            alternative_text if readings.strong_share[index] < 0.5 else None,
        )


def _count_evidence(
    system: NDArray[np.int32],
    answer_class: NDArray[np.int32],
    samples: NDArray[np.int32],
    group: NDArray[np.intp],
    alternative: int,
) -> dict[str, Any]:
    """Count one item's votes by ability group and class. Entropy is in bits, over the shares of the classes."""
    total = int(samples.sum())
    wrong = total - int(samples[answer_class == LABEL_CLASS].sum())
    shares = np.bincount(answer_class, weights=samples) / total
    shares = shares[shares > 0]
    systems = len(np.unique(system))
    passes, support = {}, {}
    for group_index, name in enumerate(GROUPS):
        in_group = group[system] == group_index
        n = int(samples[in_group].sum())
        if n:
            passes[name] = [int(samples[in_group & (answer_class == LABEL_CLASS)].sum()), n]
            if alternative:
                support[name] = [int(samples[in_group & (answer_class == alternative)].sum()), n]
    agreement = None
    if wrong and alternative:
        agreement = round(int(samples[answer_class == alternative].sum()) / wrong, 4)
    return {
        "systems": systems,
        "samples": total,
        "independent": round(systems / (1.0 + (systems - 1) * SHARED), 2),
        "passes": passes,
        "alternative_support": support,
        "wrong_agreement": agreement,
        "entropy": round(-sum(float(share) * math.log2(share) for share in shares) + 0.0, 4),
    }


def _ability_groups(theta: Array) -> NDArray[np.intp]:
    """Return the index in `GROUPS` of each system."""
    m = len(theta)
    if m < len(GROUPS):
        return np.full(m, len(GROUPS) - 1, dtype=np.intp)
    rank = np.empty(m, dtype=np.intp)
    rank[np.argsort(theta, kind="stable")] = np.arange(m)
    return rank * len(GROUPS) // m
