"""From suspicion to what is to be done: `drop`, `review` or `keep`.

    suspicion 0.93, eight strong systems answered, gold "18"    ->  drop
    suspicion 0.93, gold "C"                                    ->  review: four options make agreement cheap
    suspicion 0.93, one 0.5B model sampled eight times          ->  review: nobody able has looked

Automatic dropping needs more than a high suspicion, because weak systems agree on wrong answers: enough systems that
are right on nearly all labels must have answered. A pass rate of 0 alone drops nothing.
"""

from __future__ import annotations

import re
from enum import StrEnum

from truegold.pipeline.suspicion.items import Item

DROP_AT = 0.5
"""Suspicion from which an item is dropped. See docs/suspicion.md for precision and recall at this cut."""
REVIEW_AT = 0.2
"""Suspicion from which an item goes to review: about every second of them is at fault."""
STRONG_RATE = 0.9
"""A strong system agrees with at least this share of all labels: its own errors are then no more common than theirs."""
STRONG_WITNESSES = 5
"""So many strong systems must have answered an item that is to be dropped."""

_CLOSED = re.compile(r"\s*(?:\(?[A-Za-z]\)?[.:]?|yes|no|true|false|是|否|对|错)\s*", re.IGNORECASE)


class Tier(StrEnum):
    """What becomes of an item."""

    DROP = "drop"
    REVIEW = "review"
    KEEP = "keep"


def tier(suspicion: float, strong_witnesses: int, open_answer: bool) -> Tier:
    """suspicion in [0, 1]; strong_witnesses: how many strong systems answered the item."""
    if suspicion >= DROP_AT and strong_witnesses >= STRONG_WITNESSES and open_answer:
        return Tier.DROP
    return Tier.REVIEW if suspicion >= REVIEW_AT else Tier.KEEP


def has_open_answer(item: Item) -> bool:
    """False where an answer is one of a few: independent errors agree there by chance."""
    return item.verifier != "choice" and item.gold is not None and not _CLOSED.fullmatch(item.gold)
