"""Ranks rows that are one problem: the best of copies and of rewordings stays.

    preferred  >  with gold  >  of a better source  >  with a complete text  >  with a longer worked solution

For copies, rows that are held out are preferred.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from truegold.pipeline.config.sources import MAX_SOURCES
from truegold.pipeline.near.arrays import Floats, Ints, Marks
from truegold.pipeline.near.gold_keys import NO_GOLD

MAX_SOLUTION_CHARS = 10_000
"""The length from which a worked solution is not better for being longer."""


def row_quality(
    gold: Ints,
    solutions: Sequence[int],
    complete: Marks,
    preferred: Sequence[bool] | None,
    source_ranks: Sequence[int] | None = None,
) -> Floats:
    """Return a number for each row, the higher the better.

    `solutions` has the characters of each worked solution. The best source has rank 0: of two rows with gold the one of
    the better source is the better.
    """
    length = np.minimum(np.asarray(solutions, dtype=np.float32), MAX_SOLUTION_CHARS) / (MAX_SOLUTION_CHARS + 1)
    is_preferred = np.zeros(len(gold)) if preferred is None else np.asarray(preferred, dtype=np.float32)
    text_score = complete + length
    below_gold = text_score
    if source_ranks is not None:
        # The step between two sources is as large as all that texts and solutions can make of a row.
        source_score = MAX_SOURCES - 1 - np.asarray(source_ranks, dtype=np.float64)
        below_gold = (source_score + text_score / 2) / MAX_SOURCES
    quality: Floats = (4 * is_preferred + 2 * (gold != NO_GOLD) + below_gold).astype(np.float32)
    return quality
