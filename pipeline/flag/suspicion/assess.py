"""Suspicion of items from samples: the whole computation, in the order of its steps.

    votes (classes of equal answers) -> population -> readings -> pool -> neighbours -> suspicion
                                                   -> readings beside the neighbours' difficulty -> tier

No label of good or bad items is used anywhere: everything is learnt from who agrees with whom. The assessments depend
on the set of samples only, not on their order; the order of the items matters for `vicinity`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truegold.pipeline.flag.suspicion.ability import MAX_ITEMS, Ability, text_features
from truegold.pipeline.flag.suspicion.answer_classes import LABEL_CLASS
from truegold.pipeline.flag.suspicion.ballot import Votes
from truegold.pipeline.flag.suspicion.item import Item, has_open_answer
from truegold.pipeline.flag.suspicion.population import Learnt, learn, relearn
from truegold.pipeline.flag.suspicion.readings import SHARED, UNDECIDED, Readings, pooled_fault, read
from truegold.pipeline.flag.suspicion.tiers import STRONG_RATE, Tier, choose_tier
from truegold.pipeline.flag.suspicion.vicinity import Vicinity, neighbour_means, with_neighbours

Array = NDArray[np.float64]

DIFFICULTY_HALF_WIDTH = 20
"""How many neighbours on either side say how hard a part of the file is."""
LOCAL_ROUNDS = 3
"""Rounds of the fit in which that is learnt."""
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

    learnt: Learnt
    agreement: Array
    """(m,), the share of a system's answers that agree with the label."""
    strength: Array
    """(m,), the share that agrees with the truth, as far as it is known."""
    vicinity: Vicinity

    @property
    def ability(self) -> Ability:
        """The abilities of the systems."""
        return self.learnt.population.ability


def assess(problems: Sequence[Item], votes: Votes) -> tuple[Fit, Iterator[Assessment]]:
    """Return what was learnt, and an assessment for each item, in order. ValueError where votes are of other items."""
    if len(problems) != votes.n_items:
        raise ValueError(f"{len(problems)} items, but votes on {votes.n_items}")
    features = text_features(problems)
    answered = votes.has_votes()
    chosen = np.flatnonzero(answered)
    if len(chosen) > MAX_ITEMS:
        chosen = chosen[np.linspace(0, len(chosen) - 1, MAX_ITEMS).astype(np.intp)]
    learnt = learn(votes.of_items(chosen), features[chosen])
    rates = _rates(votes.of_items(chosen), learnt)
    wrong = _wrong_beside_neighbours(votes, features, chosen, learnt)
    votes = votes.reweight(learnt.system_weight)
    # With the learnt prior, which is confident, the suspicion of ambiguous items would be far below their share of bad.
    undecided = replace(learnt.population, prior=UNDECIDED)
    readings = read(votes, undecided, features)
    suspicion = pooled_fault(readings.fault, votes, undecided, features)
    vicinity = with_neighbours(suspicion[answered])
    suspicion[answered] = vicinity.suspicion
    fit = Fit(learnt, *rates, vicinity)
    return fit, _assessments(problems, votes, readings, suspicion, wrong, fit)


def _rates(votes: Votes, learnt: Learnt) -> tuple[Array, Array]:
    """Return (m,) each: the shares of a system's answers that agree with the label, and with the truth so far."""
    seen = np.maximum(votes.table(votes.is_any()).sum(axis=0), 1e-9)
    agreeing = votes.table(votes.answer_class == LABEL_CLASS).sum(axis=0)
    return agreeing / seen, learnt.right(votes).sum(axis=0) / seen


def _wrong_beside_neighbours(votes: Votes, features: Array, chosen: NDArray[np.intp], learnt: Learnt) -> Array:
    """Return (n,): how likely each label is wrong, where items in a part of the file that is hard are expected to be.

    A section that systems find hard is an innocent reason for their common error, and has to be ruled out before a
    drop. It must not lower the suspicion: bad labels come in runs as well.
    """
    if len(chosen) < 3:
        return np.zeros(votes.n_items)
    votes_of_chosen = votes.of_items(chosen)
    right, seen = learnt.right(votes_of_chosen).sum(axis=1) + 0.5, votes_of_chosen.table(votes_of_chosen.is_any())
    difficulty = np.log((seen.sum(axis=1) + 1.0 - right) / right)
    means = neighbour_means(difficulty, DIFFICULTY_HALF_WIDTH)
    spread = float(means.std())
    local = np.zeros((votes.n_items, 1))
    if spread > 0:
        local[chosen, 0] = (means - means.mean()) / spread
    with_local = np.hstack([features, local])
    relearnt = learnt
    for _ in range(LOCAL_ROUNDS):
        relearnt = relearn(votes_of_chosen, with_local[chosen], relearnt)
    return read(votes.reweight(relearnt.system_weight), relearnt.population, with_local).outvoted


def _assessments(
    problems: Sequence[Item], votes: Votes, readings: Readings, suspicion: Array, wrong: Array, fit: Fit
) -> Iterator[Assessment]:
    group = _ability_groups(fit.ability.theta)
    is_strong = fit.strength >= STRONG_RATE
    system_weight = fit.learnt.system_weight
    starts = votes.starts()
    for index, item in enumerate(problems):
        entries = slice(starts[index], starts[index + 1])
        system, answer_class = votes.system[entries], votes.answer_class[entries]
        unjudged, cut_short = int(votes.unjudged[index]), int(votes.cut_short[index])
        samples = int(votes.samples[entries].sum())
        looks_cut = cut_short > 0 and cut_short >= samples
        if not len(system):
            evidence = {"systems": 0, "samples": 0, "unjudged": unjudged, "cut_short": cut_short}
            yield Assessment(item.id, None, Tier.REVIEW if looks_cut else Tier.KEEP, evidence, None)
            continue
        alternative = int(readings.alternative[index])
        alternative_text = votes.alternatives[index][alternative - 1] if alternative else None
        answered_by = np.unique(system)
        independent = float(system_weight[answered_by].sum())
        strong_samples = votes.samples[entries] * is_strong[system]
        probability = float(f"{suspicion[index]:.6g}")  # Significant digits keep the order of small suspicions.
        evidence = _count_evidence(system, answer_class, votes.samples[entries], group, alternative) | {
            "alternative": alternative_text,
            "independent": round(independent / (1.0 + (independent - 1.0) * SHARED), 2),
            "label_share_at_top": round(float(readings.strong_share[index]), 4),
            "label_wrong": round(float(wrong[index]), 4),
            "unjudged": unjudged,
            "cut_short": cut_short,
            "strong": {
                "systems": int(is_strong[answered_by].sum()),
                "label": int(strong_samples[answer_class == LABEL_CLASS].sum()),
                "alternative": int(strong_samples[answer_class == alternative].sum()) if alternative else 0,
            },
        }
        tier = choose_tier(probability, float(wrong[index]), len(answered_by), independent, has_open_answer(item))
        if looks_cut:
            tier = Tier.REVIEW
        yield Assessment(
            item.id, probability, tier, evidence, alternative_text if readings.strong_share[index] < 0.5 else None
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
        "systems": len(np.unique(system)),
        "samples": total,
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
