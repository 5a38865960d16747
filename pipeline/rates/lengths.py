"""Proposes `max_tokens` from the lengths of right completions.

99.5 % of the right completions end within 130 tokens    ->  163 are proposed
2,048 allowed, and 31 % of all tokens lie beyond 163     ->  a third of the time went into what does not pass
"""

from __future__ import annotations

import math
from collections.abc import Mapping

QUANTILE = 0.995
"""Right completions up to this quantile of their lengths count; the few longer ones do not."""
MARGIN = 1.25
"""A completion may be so many times as long as that."""
WILDLY = 8
"""A limit so many times above what is proposed is taken for a mistake, unless it is short anyway."""
SHORT = 512
"""Tokens up to which any limit will do."""

FEWEST = 200
"""Of fewer right completions the quantile says nothing: no limit is taken for a mistake."""

LengthCounts = Mapping[int, int]
"""Completions by their tokens."""


def right_tokens(lengths: LengthCounts) -> int | None:
    """Return the length that QUANTILE of the right completions do not exceed, None where there is none."""
    total, seen = sum(lengths.values()), 0
    for length in sorted(lengths):
        seen += lengths[length]
        if seen >= QUANTILE * total:
            return length
    return None


def propose_max_tokens(lengths: LengthCounts) -> int | None:
    """Return the limit that right completions of these lengths need, None where there is none."""
    longest = right_tokens(lengths)
    return None if longest is None else math.ceil(MARGIN * longest)


def is_wildly_above_need(max_tokens: int, lengths: LengthCounts) -> bool:
    """Return whether a limit is so high that it cannot have been chosen by what right completions need."""
    proposed = propose_max_tokens(lengths)
    if proposed is None or sum(lengths.values()) < FEWEST:
        return False
    return max_tokens > max(SHORT, WILDLY * proposed)
