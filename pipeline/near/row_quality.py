"""Ranks the rows of one problem, so that the best of several copies or rewordings stays.

    preferred  >  with gold  >  of a better source  >  with a complete text  >  with a longer worked solution

The caller marks the preferred rows, such as rows that are held out.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from truegold.pipeline.config.sources import MAX_SOURCES
from truegold.pipeline.near.arrays import Floats, Ints, Marks
from truegold.pipeline.near.gold_keys import NO_GOLD

MAX_SOLUTION_CHARS = 10_000
"""A longer worked solution makes a row better, up to this number of characters."""


def row_quality(
    gold: Ints,
    solutions: Sequence[int],
    complete: Marks,
    preferred: Sequence[bool] | None,
    source_ranks: Sequence[int] | None = None,
) -> Floats:
    """Return a number for each row. A better row has a higher number.

    `solutions` has the length of each worked solution in characters. `source_ranks` has 0 for the best source. Among
    rows with gold, a row of a better source always wins.
    """
    length = np.minimum(np.asarray(solutions, dtype=np.float32), MAX_SOLUTION_CHARS) / (MAX_SOLUTION_CHARS + 1)
    is_preferred = np.zeros(len(gold)) if preferred is None else np.asarray(preferred, dtype=np.float32)
    text_score = complete + length
    below_gold = text_score
    if source_ranks is not None:
        # One step between sources counts at least as much as text and solution together.
        source_score = MAX_SOURCES - 1 - np.asarray(source_ranks, dtype=np.float64)
        below_gold = (source_score + text_score / 2) / MAX_SOURCES
    quality: Floats = (4 * is_preferred + 2 * (gold != NO_GOLD) + below_gold).astype(np.float32)
    return quality
