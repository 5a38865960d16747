"""Counts the verdicts that hit their deadline, and stops a batch whose verifier mostly hangs.

256 rows, 30 without a verdict after 60 s     ->  GuardError at the 26th, where a tenth is allowed
the first 8 rows of two problems all hang     ->  GuardError at the 8th: waiting for 248 more would take hours
3 of 256                                      ->  three verdicts without a score, reason `timeout`
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Sized
from dataclasses import dataclass, field

from truegold.verifiers.running.item import Item
from truegold.verifiers.sandbox.errors import GuardError
from truegold.verifiers.verdict import Reason, Verdict

MAX_TIMEOUTS = 0.1
"""The share of verdicts that may hit their deadline before a run is stopped, by default."""
HANGING = 8
"""A verifier that has given none of so many verdicts, on more than one problem, hangs."""
MIN_ROWS = 64
"""A share of fewer rows says little."""


@dataclass
class _Tally:
    """What one verifier did."""

    judged: int = 0
    timeouts: int = 0
    problems: set[tuple[str | None, str | None]] = field(default_factory=set)
    """The problems, with their golds, that it hung on; a few of them."""


class TimeoutTally:
    """Counts deadlines by verifier. Where `rows` has a length it is known how many verdicts there will be."""

    def __init__(self, max_share: float, deadline_s: float, rows: Iterable[Item] = ()) -> None:
        self._max_share = max_share
        self._deadline_s = deadline_s
        known = rows if isinstance(rows, Sized) else ()
        self._expected = Counter(row.verifier for row in known if isinstance(row, Item))
        self._tallies: dict[str, _Tally] = {}
        self._lock = threading.Lock()

    def add(self, row: Item, verdict: Verdict) -> None:
        """Count a verdict, from any thread. Raises GuardError where too many have hit their deadline."""
        with self._lock:
            self._count(row, verdict)

    def _count(self, row: Item, verdict: Verdict) -> None:
        tally = self._tallies.setdefault(row.verifier, _Tally())
        tally.judged += 1
        if verdict.score is not None or verdict.reason is not Reason.TIMEOUT:
            return
        tally.timeouts += 1
        if len(tally.problems) < HANGING:
            tally.problems.add((row.problem, row.gold))
        if self._max_share >= 1:
            return
        expected = max(self._expected.get(row.verifier, 0), tally.judged, MIN_ROWS)
        never_judged = tally.judged == tally.timeouts >= HANGING and len(tally.problems) > 1
        if never_judged or tally.timeouts > self._max_share * expected:
            raise GuardError(
                f"The verifier {row.verifier} hangs: {tally.timeouts} of {tally.judged} verdicts were not there after "
                f"{self._deadline_s:g} s, the last on gold {row.gold!r:.60}.",
                "Mend it or bound its work; deadline_s and max_timeouts beside its workers say how long a verdict may "
                f"take, and which share may take longer (now {self._max_share:g}).",
                "timeouts",
            )
