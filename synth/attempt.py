"""One attempt at a hard row: what was in the prompt, what came, and what its verdict says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Attempt:
    """A sampled completion with its verdict. Attempts that go on from each other form a chain."""

    strategy: str
    completion: str
    token_ids: tuple[int, ...]
    is_cut: bool
    """Whether it ended otherwise than by itself."""
    score: float | None
    reason: str
    extracted: str | None
    evidence: Mapping[str, Any]
    temperature: float
    parent: Attempt | None = None
    """The failed attempt that it goes on from."""
    ordinal: int | None = None
    """Its number among the row's attempts; None for a sample of the profile."""
    context: str = ""
    """What was put to the model in place of the problem; empty where the bare prompt was."""
    guidance: str = ""
    """The parts of the context that somebody wrote about the attempt before: feedback, reflection, gold."""
    reflection: str | None = None
    feedback: str | None = None
    logprobs: tuple[float, ...] = ()
    """Of token_ids, with the context, as sampled."""
    bare_logprobs: tuple[float, ...] = ()
    """Of token_ids behind the bare prompt, at temperature 1."""
    conditioned_logprobs: tuple[float, ...] = ()
    """Of token_ids with the context, at temperature 1."""
    tokens: int = 0
    """Sampled tokens, the reflection's included."""
    leaks: Mapping[str, Any] = field(default_factory=dict)
    """What the guards measured of it, where it is right."""
    kept: bool = False
    """Whether it is a positive."""
    dropped: str | None = None
    """Why it is none though it is right."""
    uses: int = 0
    """How many attempts have gone on from it."""

    @property
    def passed(self) -> bool:
        """Whether its verifier gave it the full score."""
        return self.score == 1.0

    @property
    def depth(self) -> int:
        """How many attempts of synthesis it and those before it are."""
        before = self.parent.depth if self.parent is not None else 0
        return before + (self.ordinal is not None)

    def chain(self) -> list[dict[str, Any]]:
        """Return it and what it goes on from, the first one first, as the records have it."""
        link = {
            "strategy": self.strategy,
            "completion": self.completion,
            "extracted": self.extracted,
            "reason": self.reason,
            "feedback": self.feedback,
            "reflection": self.reflection,
        }
        return [*(self.parent.chain() if self.parent is not None else []), link]
