"""One verdict at a time, with a deadline: for code that compares two answers and then decides what to compare next.

Verifiers of truegold's own judge in the calling process, as they bound their work. Others get a child process, which is
kept from one verdict to the next.
"""

from __future__ import annotations

import os
import threading

from truegold.verifiers.registry import BUILT_IN
from truegold.verifiers.running.batch import DEADLINE_S, Seat
from truegold.verifiers.running.deadlines import MAX_TIMEOUTS, TimeoutTally
from truegold.verifiers.running.item import Item, ResolvedVerifiers
from truegold.verifiers.verdict import Verdict

_LOCK = threading.Lock()
_VERIFIERS = ResolvedVerifiers()
_SEATS: list[Seat] = []
"""The process that is kept, once there is one."""


def verify_one(row: Item) -> Verdict:
    """Return the verdict on a row; one beyond its deadline has no score. Raises GuardError where a verifier hangs."""
    if row.verifier in BUILT_IN:
        return _VERIFIERS.judge(row).verdict
    with _LOCK:
        if not _SEATS:
            _SEATS.append(Seat(DEADLINE_S, TimeoutTally(MAX_TIMEOUTS, DEADLINE_S)))
        return _SEATS[0].judge([row])[0].verdict


def _after_fork() -> None:
    # The kept process belongs to the parent.
    global _LOCK  # noqa: PLW0603
    _LOCK = threading.Lock()
    _SEATS.clear()


os.register_at_fork(after_in_child=_after_fork)
