"""Chooses the checkpoints to keep, and the one to return to, by the steps that they begin with.

checkpoints 0, 20, 40, 60, 80 at step 80, the best of them 20   keep 20, 60 and 80
checkpoints 20, 60 and 80, a guard saw trouble begin at 62      return to 20: 60 may have had it already

All but the newest have weights alone (`train/model/saved_states.py`).
"""

from __future__ import annotations

from collections.abc import Collection

SETTLED = 8
"""A checkpoint is trusted once this many steps after it have raised no alarm: guards need some steps to fire."""
MARGIN = 3
"""Trouble may have begun this many steps before a guard notices it."""


def kept_checkpoints(steps: Collection[int], now: int, best: int | None) -> set[int]:
    """Return which checkpoints to keep at step `now`.

    Kept are the newest, the best by held-out pass rate, the newest one that has settled, and the oldest that has not,
    which is the next to settle.
    """
    ordered = sorted(steps)
    settled = [step for step in ordered if step <= now - SETTLED]
    unsettled = [step for step in ordered if step > now - SETTLED]
    return {*ordered[-1:], *settled[-1:], *unsettled[:1], *(step for step in ordered if step == best)}


def healthy_checkpoint(steps: Collection[int], since: int) -> int | None:
    """Return the newest checkpoint from `MARGIN` steps before the trouble that a guard noticed first at step `since`;
    the oldest one where all are later, or None if there is none."""
    ordered = sorted(steps)
    before = [step for step in ordered if step <= since - MARGIN]
    if before:
        return before[-1]
    return ordered[0] if ordered else None
