"""The choice of checkpoints to keep, and of the checkpoint to roll back to. A checkpoint is named by its step.

checkpoints 0, 20, 40, 60, 80 at step 80, 20 is the best    keep 20, 60 and 80
checkpoints 20, 60 and 80, trouble was noticed at step 62   roll back to 20, because trouble may have begun before 60

All checkpoints but the newest have only weights, no optimizer state (`train/model/saved_states.py`).
"""

from __future__ import annotations

from collections.abc import Collection

SETTLED = 8
"""The number of steps after which a checkpoint counts as settled. Guards need some steps to notice trouble."""
MARGIN = 3
"""The number of steps by which trouble may begin before a guard notices it."""


def kept_checkpoints(steps: Collection[int], now: int, best: int | None) -> set[int]:
    """Return the checkpoints to keep at step `now`.

    Kept are the newest checkpoint, the best by held-out pass rate (`best`), the newest settled one, and the oldest one
    that is not settled yet, which will be the next to settle.
    """
    ordered = sorted(steps)
    settled = [step for step in ordered if step <= now - SETTLED]
    unsettled = [step for step in ordered if step > now - SETTLED]
    return {*ordered[-1:], *settled[-1:], *unsettled[:1], *(step for step in ordered if step == best)}


def healthy_checkpoint(steps: Collection[int], since: int) -> int | None:
    """Return the checkpoint to roll back to after trouble that was first noticed at step `since`.

    It is the newest checkpoint at least `MARGIN` steps before `since`, or the oldest one if all are later. Returns None
    if there are no checkpoints.
    """
    ordered = sorted(steps)
    before = [step for step in ordered if step <= since - MARGIN]
    if before:
        return before[-1]
    return ordered[0] if ordered else None
