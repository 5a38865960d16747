"""Notices a training that trains nothing, and why.

    16 prompts, .6 of the groups expected to teach; none does in 3 steps      chance .4 ** 48: members of a group alike
    4 prompts, .1 expected to teach; none does in 3 steps                     chance .9 ** 12: nothing unusual
    every completion is cut, and cut ones are masked                          the policy never ends

How many groups teach is foretold by the posteriors of their problems' pass rates (`Feed`), and by the run itself.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

FEWEST = 3
"""The fewest steps in a row."""
UNKNOWN = 0.05
"""The share of groups that is taken to teach if there is no profile."""
REMEMBERED = 40
"""The run's own record is of this many steps."""
ENOUGH = 16
"""The number of groups from which on the record counts."""
MASKED = 2.0
"""How much a step tells, in powers of ten, whose groups teach and of which nothing is trained on."""
KINDS = ("idle_alike", "idle_cut", "idle_masked", "idle_hard", "idle_dead")
ALL = 0.99
ALMOST_NONE = 0.1


@dataclass
class Idleness:
    """The steps in a row that have trained nothing, and how rare that is."""

    record: list[tuple[float, float]] = field(default_factory=list)
    """The groups of the last steps before the streak, and how many of them taught."""
    streak: list[tuple[float, float]] = field(default_factory=list)
    """The groups of the streak's steps, and how many of them taught."""
    evidence: float = 0.0
    """The powers of ten by which chance is unlikely to have made them."""
    kind: str = "idle_masked"
    """The kind of the last of them."""
    trained: int = 0
    """The steps of the whole run that have trained something."""

    def add(self, metrics: Mapping[str, float | None]) -> dict[str, float]:
        """Take in a step, and return by kind of cause how unlikely chance is: `idle_alike`, `idle_cut`, `idle_masked`,
        `idle_hard` (hardly any passes, and never did), `idle_dead` (nor does any now)."""
        passed, teaching = metrics.get("pass_rate"), metrics.get("groups_teaching") or 0.0
        groups = metrics.get("groups")
        step = (groups or 0.0, teaching * (groups or 0.0))
        if metrics.get("trained_completions"):
            self.record = [*self.record, *self.streak, step][-REMEMBERED:]
            self.streak, self.evidence = [], 0.0
            self.trained += 1
        elif not metrics.get("not_finite") and passed is not None:
            self.evidence += self._rarity(metrics, passed, groups)
            self.streak.append(step)
            self.kind = self._kind(metrics, passed)
        return {**dict.fromkeys(KINDS, 0.0), self.kind: self.evidence if self.is_long else 0.0}

    @property
    def is_long(self) -> bool:
        """Whether enough steps in a row have trained nothing to report it."""
        return len(self.streak) >= FEWEST

    def start_over(self) -> None:
        """Forget the steps in a row, as after a return to earlier weights."""
        self.streak, self.evidence = [], 0.0

    def _rarity(self, metrics: Mapping[str, float | None], passed: float, groups: float | None) -> float:
        """Return how unlikely it is that a step trains nothing, in powers of ten."""
        is_cut = (metrics.get("truncated") or 0.0) >= ALL
        if is_cut or metrics.get("groups_teaching") or (groups is None and passed < ALMOST_NONE):
            return MASKED
        expected = metrics.get("feed_expected_teaching")
        if expected is None or metrics.get("profile_pass_rate") is None:
            expected = UNKNOWN
        counted = sum(count for count, _ in self.record)
        if counted >= ENOUGH:
            recorded = sum(taught for _, taught in self.record) / counted
            expected = recorded if metrics.get("profile_pass_rate") is None else min(expected, recorded)
        return -(groups or 0.0) * math.log10(max(1.0 - expected, 1e-3))

    def _kind(self, metrics: Mapping[str, float | None], passed: float) -> str:
        if (metrics.get("truncated") or 0.0) >= ALL:
            return "idle_cut"
        if (metrics.get("groups_teaching") is None and passed >= ALMOST_NONE) or any(
            taught for _, taught in self.streak
        ):
            return "idle_masked"
        if passed < ALMOST_NONE:
            return "idle_dead" if self.trained else "idle_hard"
        return "idle_alike"
