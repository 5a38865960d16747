"""How different the completions of a group are: answers, and what they are made of."""

from __future__ import annotations

from collections.abc import Sequence

N = 4


def distinct_share(groups: Sequence[Sequence[object]]) -> float | None:
    """The mean over groups of distinct values / values, such as extracted answers; 1/size where all are alike.

    None is no value. None where no group has any.
    """
    shares = [len(set(known)) / len(known) for group in groups if (known := [v for v in group if v is not None])]
    return sum(shares) / len(shares) if shares else None


def distinct_ngrams(groups: Sequence[Sequence[Sequence[int]]], n: int = N) -> float | None:
    """The mean over groups of the share of n-grams of token ids that differ, among all n-grams of a group's completions
    (distinct-n of Li et al., arXiv 1510.03055). None where no completion has n tokens."""
    shares = []
    for group in groups:
        grams = [tuple(ids[at : at + n]) for ids in group for at in range(len(ids) - n + 1)]
        if grams:
            shares.append(len(set(grams)) / len(grams))
    return sum(shares) / len(shares) if shares else None
