"""The reward of the comparison: cheap, and different for nearly every completion, so that every group teaches.

With a right-or-wrong reward a small untrained model gets most groups all wrong, and a trainer that leaves those out
would be timed on nothing.
"""

from __future__ import annotations


def vowels(response: str, gold: str | None) -> float:
    """The share of vowels among the characters."""
    return sum(response.count(vowel) for vowel in "aeiou") / max(1, len(response))
