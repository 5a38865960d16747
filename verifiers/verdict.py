"""The verdict and the verifier: the contract of everything that says what is right.

A verifier is synchronous, pure, picklable and thread-safe; it uses no signals and no global state. It judges one
response against one gold answer. Batches, processes, deadlines and caching belong to the runner (`verify_batch`).

"Could not judge" is `score=None`. It is never turned into 0 or 1: metrics leave it out and count it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol, runtime_checkable


class Reason(StrEnum):
    """Why a verdict came out as it did. A closed vocabulary, so that reports can count by it."""

    MATCH = "match"
    MISMATCH = "mismatch"
    PARTIAL = "partial"
    """Some of the checks passed, such as part of the test cases: 0 < score < 1."""
    NO_ANSWER = "no_answer"
    """The response commits to no answer."""
    HEDGED = "hedged"
    """The response offers several answers where one was asked for."""
    ANSWER_UNPARSED = "answer_unparsed"
    """An answer was found, and its form cannot be read. It earns 0: a reward of None would let a policy opt out of
    every problem it cannot solve."""
    GOLD_MISSING = "gold_missing"
    GOLD_UNPARSED = "gold_unparsed"
    TIMEOUT = "timeout"
    LIMIT = "limit"
    """A bound on length, depth, size or memory was met before a verdict was reached."""
    SANDBOX_ERROR = "sandbox_error"
    DECLINED = "declined"
    """A user's verifier said that it cannot judge."""
    VERIFIER_ERROR = "verifier_error"
    """A user's verifier raised."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """One judgement.

    score: in [0, 1], or None where no judgement could be made.
    extracted: the answer that was judged, as it stood in the response.
    evidence: JSON-able: parsed forms, the rule that decided, the failing test, cost.
    """

    score: float | None
    reason: Reason
    extracted: str | None = None
    evidence: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.score is not None and not 0.0 <= self.score <= 1.0:
            raise ValueError(f"score must lie in [0, 1] or be None, got {self.score!r}")

    @property
    def passed(self) -> bool:
        """True where the response earned the full score."""
        return self.score == 1.0


def reason_for_score(score: float) -> Reason:
    """The reason of a verdict that is a share of what was asked for."""
    if score == 1.0:
        return Reason.MATCH
    return Reason.PARTIAL if score > 0.0 else Reason.MISMATCH


@runtime_checkable
class Verifier(Protocol):
    """Judges a whole response. `version` changes whenever a verdict could change, so that caches notice."""

    @property
    def name(self) -> str: ...

    @property
    def version(self) -> str: ...

    def __call__(
        self,
        response: str,
        gold: str | None,
        *,
        problem: str | None = None,
        info: Mapping[str, Any] = ...,
    ) -> Verdict: ...
