"""Which checkpoints are kept: those to go on from, the best one, and those to return to when a guard fires."""

from __future__ import annotations

from collections.abc import Collection

NEWEST = 2
"""A kill while one is written leaves the one before."""
SETTLED = 8
"""A checkpoint is trusted once so many steps after it have raised no alarm: guards need some steps to fire."""
MARGIN = 3
"""What a guard notices may have begun so many steps before."""


def kept_checkpoints(steps: Collection[int], now: int, best: int | None) -> set[int]:
    """Return which of the checkpoints, by their steps, to keep at step `now`.

    Kept are the newest two, the best by held-out pass rate, the newest one that has settled, and the oldest that has
    not, which is the next to settle.
    """
    ordered = sorted(steps)
    settled = [step for step in ordered if step <= now - SETTLED]
    unsettled = [step for step in ordered if step > now - SETTLED]
    return {*ordered[-NEWEST:], *settled[-1:], *unsettled[:1], *(step for step in ordered if step == best)}


def healthy_checkpoint(steps: Collection[int], since: int) -> int | None:
    """Return the newest checkpoint from before what a guard noticed first at step `since`; the oldest where all are
    later; None where there is none."""
    ordered = sorted(steps)
    before = [step for step in ordered if step <= since - MARGIN]
    if before:
        return before[-1]
    return ordered[0] if ordered else None
