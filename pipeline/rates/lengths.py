"""Proposes `max_tokens` from the lengths of right completions, and detects limits that are far too high.

99.5 % of 1,000 right completions have up to 130 tokens    ->  the proposal is 163 (130 * 1.25)
a limit of 1,024                                           high, but accepted
a limit of 2,048                                           a mistake: more than 8 times the proposal
a limit of 512, with a proposal of 40                      accepted: such a short limit costs little
"""

from __future__ import annotations

import math
from collections.abc import Mapping

QUANTILE = 0.995
"""The quantile of the lengths of right completions on which the proposal is based."""
MARGIN = 1.25
"""The factor from the quantile to the proposed limit."""
MISTAKE_FACTOR = 8
"""The factor from the proposed limit to the highest limit that is accepted."""
SHORT = 512
"""The number of tokens up to which every limit is accepted."""
MIN_COMPLETIONS = 200
"""The minimum number of right completions for a reliable quantile. With fewer, every limit is accepted."""

LengthCounts = Mapping[int, int]
"""The number of completions of each length in tokens."""


def quantile_length(lengths: LengthCounts) -> int | None:
    """Return the quantile QUANTILE of the lengths, or None without completions."""
    total, seen = sum(lengths.values()), 0
    for length in sorted(lengths):
        seen += lengths[length]
        if seen >= QUANTILE * total:
            return length
    return None


def propose_max_tokens(lengths: LengthCounts) -> int | None:
    """Return the proposed limit for right completions of these lengths, or None without completions."""
    longest = quantile_length(lengths)
    return None if longest is None else math.ceil(MARGIN * longest)


def is_wildly_above_need(max_tokens: int, lengths: LengthCounts) -> bool:
    """Return whether a limit is so far above the needed length that it must be a mistake."""
    proposed = propose_max_tokens(lengths)
    if proposed is None or sum(lengths.values()) < MIN_COMPLETIONS:
        return False
    return max_tokens > max(SHORT, MISTAKE_FACTOR * proposed)
