"""One verdict at a time, with a deadline: for code that compares two answers and then decides what to compare next.

Verifiers of truegold's own judge in the calling process, as they bound their work. Others get a child process, which is
kept from one verdict to the next.
"""

from __future__ import annotations

from truegold.verifiers.registry import BUILT_IN
from truegold.verifiers.running.batch import DEADLINE_S, BatchVerifier
from truegold.verifiers.running.deadlines import MAX_TIMEOUTS, TimeoutTally
from truegold.verifiers.running.item import Item, ResolvedVerifiers
from truegold.verifiers.verdict import Verdict

_VERIFIERS = ResolvedVerifiers()
_PROCESS = BatchVerifier(workers=1)
_TALLY = TimeoutTally(MAX_TIMEOUTS, DEADLINE_S)


def verify_one(row: Item) -> Verdict:
    """Return the verdict on a row; one beyond its deadline has no score. Raises GuardError where a verifier hangs."""
    if row.verifier in BUILT_IN:
        return _VERIFIERS.judge(row).verdict
    (verdict,) = _PROCESS.verify([row], _TALLY)
    return verdict
