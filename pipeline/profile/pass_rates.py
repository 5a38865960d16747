"""Statistics of one problem's samples: unbiased pass@k, and which answers agree."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence


def pass_at_k(passes: int, n: int, k: int) -> float:
    """The unbiased estimate 1 - C(n-c, k) / C(n, k) (Chen et al. 2021, arXiv 2107.03374, eq. 1)."""
    if not 1 <= k <= n:
        raise ValueError(f"k must lie in 1..n, got k={k}, n={n}")
    return 1.0 - math.comb(n - passes, k) / math.comb(n, k)


def powers_up_to(n: int) -> list[int]:
    """1, 2, 4, ... up to n: the k that pass@k is reported at."""
    return [2**exponent for exponent in range(n.bit_length()) if 2**exponent <= n]


def largest_cluster(answers: Sequence[str], same: Callable[[str, str], bool]) -> tuple[str | None, int]:
    """The answer that most samples agree on and how many do, `same` deciding whether two forms are one answer.

    Equal strings vote together before `same` is asked, so that it is asked once for each pair of distinct forms at
    most. Ties go to the answer seen first.
    """
    counts: dict[str, int] = {}
    for answer in answers:
        counts[answer] = counts.get(answer, 0) + 1
    clusters: list[tuple[str, int]] = []
    for answer, count in counts.items():
        for place, (representative, votes) in enumerate(clusters):
            if same(representative, answer):
                clusters[place] = (representative, votes + count)
                break
        else:
            clusters.append((answer, count))
    return max(clusters, key=lambda cluster: cluster[1], default=(None, 0))
