"""Detection of steps that train on nothing, and their cause. A group teaches if its completions have advantages.

    16 groups a step, each expected to teach with .6; none teaches in 3 steps   probability .4 ** 48: a fault, the
                                                                                completions of a group are alike
    4 groups a step, each expected to teach with .1; none teaches in 3 steps    probability .9 ** 12: not unusual
    every completion is cut at max_tokens, and cut ones are masked              the policy does not end completions

The expected share of teaching groups comes from the posteriors of pass rates (`Feed`) and from earlier steps of the
run.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

FEWEST = 3
"""The smallest number of consecutive idle steps that is reported."""
UNKNOWN = 0.05
"""The expected share of teaching groups without a profile."""
REMEMBERED = 40
"""The number of earlier steps from which the share of teaching groups is estimated."""
ENOUGH = 16
"""The smallest number of groups for this estimate."""
MASKED = 2.0
"""The evidence, in powers of ten, of an idle step with another cause than equal rewards, such as masks or cut
completions."""
KINDS = ("idle_alike", "idle_cut", "idle_masked", "idle_hard", "idle_dead")
"""The causes: equal rewards in every group, cut completions, masks, a pass rate near 0 from the start, and a pass rate
near 0 that was higher before."""
ALL = 0.99
"""The share of cut completions from which all completions count as cut."""
ALMOST_NONE = 0.1
"""The pass rate below which almost no completion passes."""


@dataclass
class Idleness:
    """The latest consecutive steps that trained on nothing (idle steps), and how unlikely they are by chance."""

    record: list[tuple[float, float]] = field(default_factory=list)
    """The number of groups and of teaching groups in the last steps before the idle ones."""
    streak: list[tuple[float, float]] = field(default_factory=list)
    """The number of groups and of teaching groups in the idle steps."""
    evidence: float = 0.0
    """-log10 of the probability that the idle steps occur by chance."""
    kind: str = "idle_masked"
    """The cause of the last idle step."""
    trained: int = 0
    """The number of steps of the whole run that trained on something."""

    def add(self, metrics: Mapping[str, float | None]) -> dict[str, float]:
        """Add a step, and return the evidence for each of `KINDS`: 0 except for the cause of the last idle step."""
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
        """Whether there are enough consecutive idle steps for a report."""
        return len(self.streak) >= FEWEST

    def start_over(self) -> None:
        """Forget the idle steps, after a roll-back to earlier weights."""
        self.streak, self.evidence = [], 0.0

    def _rarity(self, metrics: Mapping[str, float | None], passed: float, groups: float | None) -> float:
        """Return -log10 of the probability that a step trains on nothing."""
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
        """Return the cause of an idle step, one of `KINDS`."""
        if (metrics.get("truncated") or 0.0) >= ALL:
            return "idle_cut"
        if (metrics.get("groups_teaching") is None and passed >= ALMOST_NONE) or any(
            taught for _, taught in self.streak
        ):
            return "idle_masked"
        if passed < ALMOST_NONE:
            return "idle_dead" if self.trained else "idle_hard"
        return "idle_alike"
