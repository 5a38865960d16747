"""Completions of the first step that are judged again at every later one: a verdict on the same text must not change.

What the model writes changes while it trains, so that a verifier that turns around, starts to fail or says the same of
everything cannot be told from the policy by rewards alone. By the same completions it can, within a step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

CANARIES = 8
"""Half of them right and half of them wrong, where the first step has so many."""

Completion = TypeVar("Completion")
Judgement = tuple[float | None, float | None]
"""A reward and a score on correctness; None where it could not be judged."""


@dataclass
class Canaries(Generic[Completion]):
    """The completions, and what was judged of them first."""

    judge: Callable[[Sequence[Completion]], Sequence[Judgement]]
    completions: list[Completion] = field(default_factory=list)
    judgements: list[Judgement] = field(default_factory=list)

    def choose(self, completions: Sequence[Completion], judgements: Sequence[Judgement]) -> None:
        """Take the first right and the first wrong ones, unless there are canaries already."""
        if self.completions:
            return
        judged = [pair for pair in zip(completions, judgements, strict=True) if None not in pair[1]]
        right = [pair for pair in judged if pair[1][1] == 1.0]
        wrong = [pair for pair in judged if pair[1][1] != 1.0]
        each = min(CANARIES // 2, len(right), len(wrong))
        for completion, judgement in right[:each] + wrong[:each]:
            self.completions.append(completion)
            self.judgements.append(judgement)

    def changed_share(self) -> float | None:
        """Judge them again, and return the share that is judged otherwise; None where there are none yet."""
        if not self.completions:
            return None
        judged_again = self.judge(self.completions)
        changed = [_differ(first, now) for first, now in zip(self.judgements, judged_again, strict=True)]
        return sum(changed) / len(changed)


def _differ(first: Judgement, now: Judgement) -> bool:
    return any(
        before is None or after is None or not abs(before - after) <= 1e-6
        for before, after in zip(first, now, strict=True)
    )
