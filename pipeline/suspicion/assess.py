"""Suspicion of items from samples: the whole computation, in the order of its steps.

    votes (classes of equal answers) -> population -> readings, prior undecided -> pool -> neighbours -> suspicion
                                                   -> readings, prior learnt -> is the label wrong? -> tier

No label of good or bad items is used anywhere: everything is learnt from who agrees with whom. The assessments depend
on the set of samples only, not on their order; the order of the items matters for `vicinity`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truegold.pipeline.suspicion.ability import MAX_ITEMS, Ability, text_features
from truegold.pipeline.suspicion.answer_classes import LABEL_CLASS
from truegold.pipeline.suspicion.ballot import Votes
from truegold.pipeline.suspicion.evidence import ItemVotes, Witnesses
from truegold.pipeline.suspicion.item import Item, has_open_answer
from truegold.pipeline.suspicion.population import Learnt, learn
from truegold.pipeline.suspicion.readings import UNDECIDED, WRONG, Readings, pooled_fault, read
from truegold.pipeline.suspicion.tiers import Tier, choose_tier
from truegold.pipeline.suspicion.vicinity import Vicinity, with_neighbours

Array = NDArray[np.float64]


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
    def wrong_labels(self) -> float | None:
        """The share of wrong labels; None where one model alone has answered, which cannot tell."""
        return self.learnt.population.prior[WRONG] if self.learnt.is_informed else None

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
    votes = votes.reweight(learnt.system_weight)
    wrong = read(votes, learnt.population, features).outvoted
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


def _assessments(
    problems: Sequence[Item], votes: Votes, readings: Readings, suspicion: Array, wrong: Array, fit: Fit
) -> Iterator[Assessment]:
    witnesses = Witnesses(fit.ability.theta, fit.strength, fit.learnt.system_weight, votes)
    starts = votes.starts()
    for index, item in enumerate(problems):
        part = slice(starts[index], starts[index + 1])
        entries = ItemVotes(
            votes.system[part], votes.answer_class[part], votes.samples[part], int(readings.alternative[index])
        )
        set_aside = {"unjudged": int(votes.unjudged[index]), "cut_short": int(votes.cut_short[index])}
        looks_cut = set_aside["cut_short"] >= max(1, int(entries.samples.sum()))
        if not len(entries.system):
            tier = Tier.REVIEW if looks_cut else Tier.KEEP
            yield Assessment(item.id, None, tier, {"systems": 0, "samples": 0, **set_aside}, None)
            continue
        text = votes.alternatives[index][entries.alternative - 1] if entries.alternative else None
        probability = float(f"{suspicion[index]:.6g}")  # Significant digits keep the order of small suspicions.
        models, independent = witnesses.count_models(entries)
        tier = choose_tier(probability, float(wrong[index]), models, independent, has_open_answer(item))
        evidence = witnesses.describe(entries) | {
            "alternative": text,
            "label_wrong": round(float(wrong[index]), 4),
            "label_share_at_top": round(float(readings.strong_share[index]), 4),
            **set_aside,
        }
        suggestion = text if readings.strong_share[index] < 0.5 else None
        yield Assessment(item.id, probability, Tier.REVIEW if looks_cut else tier, evidence, suggestion)
