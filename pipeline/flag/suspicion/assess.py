"""Suspicion of items from samples: the whole computation, in the order of its steps.

    votes (classes of equal answers) -> abilities and expected difficulty -> readings -> pool -> neighbours -> tier

No label of good or bad items is used anywhere: what is learnt is learnt from who agrees with whom. Results depend on
the set of samples only, not on their order; the order of the items matters for `vicinity`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truegold.pipeline.flag.suspicion.ability import MAX_ITEMS, Ability, fit
from truegold.pipeline.flag.suspicion.ballot import Votes
from truegold.pipeline.flag.suspicion.difficulty import features
from truegold.pipeline.flag.suspicion.items import Item
from truegold.pipeline.flag.suspicion.pool import pooled
from truegold.pipeline.flag.suspicion.readings import SHARED, Readings, read
from truegold.pipeline.flag.suspicion.tiers import STRONG_RATE, Strong, Tier, has_open_answer, of_closed, tier
from truegold.pipeline.flag.suspicion.vicinity import Vicinity, with_neighbours

Array = NDArray[np.float64]

GROUPS = ("weak", "middle", "strong")
"""Thirds of the systems by ability. With fewer than three systems all of them are in the last."""


@dataclass(frozen=True, slots=True)
class Assessment:
    """What the samples say of one item.

    suspicion: in [0, 1], the probability that the label is at fault; None where nobody answered. evidence: JSON-able.
    suggestion: the alternative answer, where able systems rather give that than the label.
    """

    id: str
    suspicion: float | None
    tier: Tier
    evidence: dict[str, Any]
    suggestion: str | None


@dataclass(frozen=True, slots=True)
class Fit:
    """What was learnt from all items together; for reports."""

    ability: Ability
    rates: Array
    """(m,): the share of all labels that a system agrees with."""
    vicinity: Vicinity


def assess(items: Sequence[Item], votes: Votes) -> tuple[Fit, Iterator[Assessment]]:
    """An assessment for each item, in order. ValueError where votes are not those of the items."""
    if len(items) != votes.n_items:
        raise ValueError(f"{len(items)} items, but votes on {votes.n_items}")
    text = features(items)
    right, seen, chosen = _dense(votes)
    rates = right.sum(axis=0) / np.maximum(seen.sum(axis=0), 1e-9)
    ability = fit(right, seen, text[chosen])
    readings = read(votes, ability, text)
    answered = np.bincount(votes.item, minlength=votes.n_items) > 0
    suspicion = pooled(readings.fault, votes, ability, text)
    vicinity = with_neighbours(suspicion[answered])
    suspicion[answered] = vicinity.suspicion
    closed = np.array([not has_open_answer(item) for item in items], dtype=bool)
    suspicion[closed] = of_closed(suspicion[closed])
    return Fit(ability, rates, vicinity), _assessments(items, votes, readings, suspicion, ability, rates)


def _dense(votes: Votes) -> tuple[Array, Array, NDArray[np.intp]]:
    """Weights of right and of all answers, of at most MAX_ITEMS answered items, evenly spread over the data."""
    n, m = votes.n_items, len(votes.systems)
    answered = np.flatnonzero(np.bincount(votes.item, minlength=n))
    if len(answered) > MAX_ITEMS:
        answered = answered[np.linspace(0, len(answered) - 1, MAX_ITEMS).astype(np.intp)]
    place = np.full(n, -1)
    place[answered] = np.arange(len(answered))
    kept = place[votes.item] >= 0
    flat = place[votes.item[kept]] * m + votes.system[kept]
    weight = votes.weight[kept]
    size = len(answered) * m
    shape = (len(answered), m)
    seen: Array = np.bincount(flat, weights=weight, minlength=size).astype(np.float64).reshape(shape)
    agreeing = weight * (votes.cls[kept] == 0)
    right: Array = np.bincount(flat, weights=agreeing, minlength=size).astype(np.float64).reshape(shape)
    return right, seen, answered


def _assessments(
    items: Sequence[Item], votes: Votes, readings: Readings, suspicion: Array, ability: Ability, rates: Array
) -> Iterator[Assessment]:
    group = _groups(ability.theta)
    is_strong = rates >= STRONG_RATE
    starts = np.searchsorted(votes.item, np.arange(votes.n_items + 1))
    for place, item in enumerate(items):
        entries = slice(starts[place], starts[place + 1])
        system, cls, samples = votes.system[entries], votes.cls[entries], votes.samples[entries]
        weight = votes.weight[entries] * is_strong[system]
        unjudged = int(votes.unjudged[place])
        if not len(system):
            yield Assessment(item.id, None, Tier.KEEP, {"systems": 0, "samples": 0, "unjudged": unjudged}, None)
            continue
        answer = int(readings.alternative[place])
        strong = Strong(
            systems=int(is_strong[np.unique(system)].sum()),
            label=float(weight[cls == 0].sum()),
            alternative=float(weight[cls == answer].sum()) if answer else 0.0,
        )
        favoured = _text(votes, place, answer)
        value = float(f"{suspicion[place]:.6g}")  # significant digits: the order of small ones matters
        evidence = _evidence(system, cls, samples, group, answer)
        evidence |= {
            "alternative": favoured,
            "label_share_at_top": round(float(readings.strong_share[place]), 4),
            "label_outvoted_at_top": round(float(readings.outvoted[place]), 4),
            "unjudged": unjudged,
            "strong": {"systems": strong.systems, "label": strong.label, "alternative": strong.alternative},
        }
        yield Assessment(
            item.id,
            value,
            tier(value, float(readings.outvoted[place]), strong, has_open_answer(item)),
            evidence,
            favoured if readings.strong_share[place] < 0.5 else None,
        )


def _text(votes: Votes, place: int, cls: int) -> str | None:
    return votes.alternatives[place][cls - 1] if cls else None


def _evidence(
    system: NDArray[np.int32], cls: NDArray[np.int32], samples: NDArray[np.int32], group: NDArray[np.intp], answer: int
) -> dict[str, Any]:
    """Counts a reviewer can check. Entropy is in bits, over the shares of the classes."""
    total = int(samples.sum())
    wrong = total - int(samples[cls == 0].sum())
    shares = np.bincount(cls, weights=samples) / total
    shares = shares[shares > 0]
    systems = len(np.unique(system))
    passes, support = {}, {}
    for number, name in enumerate(GROUPS):
        here = group[system] == number
        n = int(samples[here].sum())
        if n:
            passes[name] = [int(samples[here & (cls == 0)].sum()), n]
            if answer:
                support[name] = [int(samples[here & (cls == answer)].sum()), n]
    return {
        "systems": systems,
        "samples": total,
        "independent": round(systems / (1.0 + (systems - 1) * SHARED), 2),
        "passes": passes,
        "alternative_support": support,
        "wrong_agreement": round(int(samples[cls == answer].sum()) / wrong, 4) if wrong and answer else None,
        "entropy": round(-sum(float(share) * math.log2(share) for share in shares) + 0.0, 4),
    }


def _groups(theta: Array) -> NDArray[np.intp]:
    """0, 1 or 2 for each system."""
    m = len(theta)
    if m < len(GROUPS):
        return np.full(m, len(GROUPS) - 1, dtype=np.intp)
    rank = np.empty(m, dtype=np.intp)
    rank[np.argsort(theta, kind="stable")] = np.arange(m)
    return rank * len(GROUPS) // m
