"""Checks that what a step trains on belongs together: rows to their ranks, verdicts, golds and rewards to completions.

rank 0 drew rows a b c d for the step, and trains on a and c; rank 1 on b and a    1 group is apart
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from truegold.train.model.distributed import gathered


def count_apart(drawn: Sequence[str], trained: Sequence[tuple[int, str]]) -> int:
    """Return how many of the step's groups are apart: of a row that the first rank has not drawn for that number, or
    sampled by two ranks. Every rank calls this together.

    drawn: the ids of the rows that this rank's feed has drawn, by the number of the group. trained: number and id of
    the groups that this rank has sampled.
    """
    ranks = gathered((list(drawn), sorted(set(trained))))
    first = dict(enumerate(ranks[0][0]))
    holders = Counter(group for _, groups in ranks for group in {group for group, _ in groups})
    apart = {group for group, count in holders.items() if count > 1}
    apart |= {group for _, groups in ranks for group, row_id in groups if first.get(group) != row_id}
    # A feed that will come apart later has drawn other rows for groups that it does not sample.
    apart |= {
        group for drawn_there, _ in ranks for group, row_id in enumerate(drawn_there) if first.get(group) != row_id
    }
    return len(apart)
