"""From suspicion to what is to be done: `drop`, `review` or `keep`.

    outvoted 0.98; of eight strong systems none gives the label, seven the alternative; gold "18"    ->  drop
    the same, gold "C"                                           ->  review: four options make agreement cheap
    the same, but one 0.5B model sampled eight times             ->  review: nobody able has looked

Automatic dropping needs more than a high suspicion, because weak systems agree on wrong answers: enough systems that
are right on nearly all labels must have answered, and must in fact not prefer the label. A pass rate of 0 alone drops
nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from truegold.pipeline.flag.suspicion.item import Item

OUTVOTED = 0.4
"""Posterior probability, from which an item may be dropped, that at most half of the strong systems read the label."""
LEAD = 0.8
"""To drop an item, the alternative also needs this share of the votes that strong systems gave the label."""
REVIEW_AT = 0.15
"""Suspicion from which an item goes to review: about two of three are at fault where strong systems have answered, one
of three where none has."""
STRONG_RATE = 0.9
"""A strong system agrees with at least this share of all labels: its errors are then no more common than theirs."""
STRONG_WITNESSES = 8
"""This many strong systems must have answered an item that is to be dropped: with five, one drop in five was wrong."""
MANY_WITNESSES = 16
"""Fewer than these must give the alternative no less often than the label: `LEAD` is for a crowd."""

CLOSED_ODDS = 12.0
"""Where an answer is one of a few, able systems often agree on a wrong one, and the odds are divided by this. On one
half of MMLU-Redux the mean suspicion then is the share of bad items; the order of items stays."""

_CLOSED = re.compile(r"\s*(?:\(?[A-Za-z]\)?[.:]?|yes|no|true|false|是|否|对|错)\s*", re.IGNORECASE)


class Tier(StrEnum):
    """What becomes of an item."""

    DROP = "drop"
    REVIEW = "review"
    KEEP = "keep"


@dataclass(frozen=True, slots=True)
class StrongVotes:
    """How the strong systems (`STRONG_RATE`) voted on one item; samples of one system count by their weight."""

    systems: int
    label: float
    """The votes for the label."""
    alternative: float
    """The votes for the favoured alternative."""


def choose_tier(suspicion: float, outvoted: float, strong: StrongVotes, open_answer: bool) -> Tier:
    """Return what becomes of an item; suspicion, outvoted: in [0, 1], see `readings`."""
    if (
        outvoted >= OUTVOTED
        and open_answer
        and strong.systems >= STRONG_WITNESSES
        and strong.alternative > 0
        and strong.alternative >= (LEAD if strong.systems >= MANY_WITNESSES else 1.0) * strong.label
    ):
        return Tier.DROP
    return Tier.REVIEW if suspicion >= REVIEW_AT else Tier.KEEP


def lower_for_closed(suspicion: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the suspicion of items with closed answers as a probability again: (n,), odds over `CLOSED_ODDS`."""
    lowered: NDArray[np.float64] = suspicion / (suspicion + CLOSED_ODDS * (1.0 - suspicion))
    return lowered


def has_open_answer(item: Item) -> bool:
    """Whether the answer is not one of a few, where independent errors would agree by chance."""
    return item.verifier != "choice" and item.gold is not None and not _CLOSED.fullmatch(item.gold)
