"""Rewards and advantages for pass@k: that at least one of k completions is right.

All take counts, n completions of a prompt of which c are right, and return two numbers: one for each right completion
and one for each wrong one. 1 <= k <= n. With k completions drawn from the n without replacement, one is right with
probability rho(n, c, k) = 1 - C(n - c, k) / C(n, k) (Chen et al. 2021, arXiv 2107.03374, eq. 1).
"""

from __future__ import annotations

from math import comb, sqrt

CHEN_EPSILON = 1e-6


def rho(n: int, c: int, k: int) -> float:
    """The share of the k-subsets of n completions that have one of the c right ones; 0 where k is 0."""
    return 1.0 - comb(n - c, k) / comb(n, k)


def chen(n: int, c: int, k: int) -> tuple[float, float]:
    """Z-scores of a k-subset's reward, averaged over the subsets that a completion is in.

    Pass@k training, arXiv 2508.10751: with R = rho(n, c, k) and s = sqrt(R (1 - R)), right (1 - R) / s
    and wrong (1 - R - C(n - c - 1, k - 1) / C(n - 1, k - 1)) / s. Both are 0 where every subset is alike.
    """
    mean = rho(n, c, k)
    spread = sqrt(mean * (1.0 - mean)) + CHEN_EPSILON
    alone = comb(n - c - 1, k - 1) / comb(n - 1, k - 1) if c < n else 0.0
    return (1.0 - mean) / spread, (1.0 - mean - alone) / spread if c < n else 0.0


def walder_rewards(n: int, c: int, k: int) -> tuple[float, float]:
    """Rewards whose policy gradient, summed over the n completions, is an unbiased gradient of pass@k.

    Walder and Karkhanis, arXiv 2505.15201: right k / n, wrong (k / n) rho(n - 1, c, k - 1).
    """
    return k / n, k / n * rho(n - 1, c, k - 1) if c < n else 0.0


def walder(n: int, c: int, k: int) -> tuple[float, float]:
    """n times those rewards, for a loss that averages over completions, less a baseline that leaves each one out.

    The baseline is that of the subsets without the completion's own part (arXiv 2505.15201, "leave one out minus
    one"): a right completion gets k (1 - rho(n - 1, c - 1, k - 1)), what it alone brings, and a wrong one 0. With
    k = 1 there is nothing left in such a subset, and the baseline is the mean of the others (RLOO).
    """
    if k == 1:
        return ((n - c) / (n - 1), -c / (n - 1)) if n > 1 else (0.0, 0.0)
    return k * (1.0 - rho(n - 1, c - 1, k - 1)) if c else 0.0, 0.0
