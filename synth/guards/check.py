"""All guards on one right output: what it owes to its context, and why it is dropped where it owes too much."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from truegold.synth.config import LeakConfig
from truegold.synth.guards.mentions import find_mentions
from truegold.synth.guards.order import states_answer_first
from truegold.synth.guards.quotes import find_quote, is_in_another_language, retold_share
from truegold.synth.guards.text import normal, runs
from truegold.synth.records import Weights

_TOKEN = re.compile(r"\w+|[^\w\s]")


class LeakReason(StrEnum):
    """Why a right output is not trained on."""

    MENTIONS_ATTEMPT = "mentions_attempt"
    """It speaks of an earlier attempt."""
    MENTIONS_ADVICE = "mentions_advice"
    """It speaks of feedback, a hint, or of whoever gave it."""
    QUOTES = "quotes_guidance"
    """It repeats the guidance in its words."""
    RETELLS = "retells_guidance"
    """It repeats the guidance in other words or in another language."""
    OTHER_LANGUAGE = "other_language"
    """It is in another language than its problem."""
    ANSWER_FIRST = "answer_first"
    """It states its answer, and derives it afterwards."""
    IMPLAUSIBLE = "implausible"
    """It is too improbable behind the bare prompt."""
    NEAR_COPY = "near_copy"
    """The row has nearly the same positive already."""
    OVER_SHARE = "over_share"
    """Its strategy has brought as large a share of the positives as it may."""


@dataclass(frozen=True)
class Sources:
    """The texts that an output is compared with."""

    problem: str
    guidance: str
    """What somebody wrote about an attempt: feedback, reflection, the gold."""
    attempt: str
    """The failed attempt."""


@dataclass(frozen=True)
class LeakReport:
    """What the guards say of an output."""

    reasons: tuple[LeakReason, ...]
    """Why it is dropped; none where it is fit to be trained on."""
    measures: Mapping[str, Any]
    """What was measured, fit for JSON."""


def check_output(
    output: str, sources: Sources, extracted: str | None, weights: Weights, config: LeakConfig, *, is_program: bool
) -> LeakReport:
    """Look for what an output owes to its context. Programs have no order of steps, and comments of their own."""
    mentions = find_mentions(output, sources.problem, is_program=is_program) if config.mentions else []
    kinds = {kind for kind, _ in mentions}
    quote = find_quote(output, sources.guidance, sources.problem, sources.attempt, config)
    retold = retold_share(output, sources.guidance, sources.problem, sources.attempt)
    is_foreign = not is_program and is_in_another_language(output, sources.problem)
    is_early = config.answer_first and not is_program and states_answer_first(output, sources.problem, extracted)
    flagged = {
        LeakReason.MENTIONS_ATTEMPT: "attempt" in kinds,
        LeakReason.MENTIONS_ADVICE: "advice" in kinds,
        LeakReason.QUOTES: quote is not None,
        LeakReason.RETELLS: retold >= config.retold_share,
        LeakReason.OTHER_LANGUAGE: is_foreign,
        LeakReason.ANSWER_FIRST: is_early,
        LeakReason.IMPLAUSIBLE: weights.geometric < config.min_geometric_weight,
    }
    measures = {
        "mentions": [words for _, words in mentions][:5],
        "quote": quote,
        "retold_share": round(retold, 3),
        "geometric_weight": round(weights.geometric, 4),
    }
    return LeakReport(tuple(reason for reason, is_flagged in flagged.items() if is_flagged), measures)


def is_near_copy(output: str, others: Sequence[str], share: float) -> bool:
    """Return whether one of the others has so much of an output's runs of three tokens (Jaccard)."""
    triples = _triples(output)
    for other in others:
        others_triples = _triples(other)
        if len(triples & others_triples) >= share * max(len(triples | others_triples), 1):
            return True
    return False


def _triples(text: str) -> set[tuple[str, ...]]:
    tokens = _TOKEN.findall(normal(text))
    return runs(tokens, 3) or {tuple(tokens)}
