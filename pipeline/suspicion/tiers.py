"""From suspicion to what is to be done: `drop`, `review` or `keep`.

    wrong with 0.98; 12 systems, worth 9, have answered; gold "18"        ->  drop
    the same, gold "C"                                                    ->  review: able systems share misconceptions
    the same, but one model sampled eight times                           ->  review: its errors may be the label's
    ten of twelve answers are "1", the gold "1,800"                       ->  review: they look cut short by extraction

Dropping goes by the probability that the label is wrong, with what the file itself says of its noise, of the systems'
strength and of how they share errors (`population`). A pass rate of 0 alone drops nothing. Letters and yes/no are never
dropped: of those that 14 systems outvote with near certainty reviewers kept one in twenty-five.
"""

from __future__ import annotations

from enum import StrEnum

DROP_AT = 0.95
"""Probability of a wrong label from which an item is dropped. Of these, more than 99 of 100 were wrong on GSM8K."""
MIN_WITNESSES = 3
"""Fewer systems drop nothing: two may share an error, and one cannot be told from the label."""
MIN_INDEPENDENT = 2.0
"""What the systems that answered must at least be worth together (`dependence`)."""
REVIEW_AT = 0.15
"""Suspicion from which an item goes to review: about two of three are at fault where strong systems have answered, one
of three where none has."""
REVIEW_CLOSED_AT = 0.3
"""The same where the answer is one of a few; a fifth are at fault."""


class Tier(StrEnum):
    """What becomes of an item."""

    DROP = "drop"
    REVIEW = "review"
    KEEP = "keep"


def choose_tier(suspicion: float, wrong: float, systems: int, independent: float, open_answer: bool) -> Tier:
    """Return what becomes of an item that `systems` have answered, worth `independent` together.

    suspicion: see `assess`; wrong: the probability that the label is wrong.
    """
    if open_answer and wrong >= DROP_AT and systems >= MIN_WITNESSES and independent >= MIN_INDEPENDENT:
        return Tier.DROP
    review_at = REVIEW_AT if open_answer else REVIEW_CLOSED_AT
    return Tier.REVIEW if suspicion >= review_at else Tier.KEEP
