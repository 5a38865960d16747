"""The verdict and the verifier: the contract of everything that says what is right.

A verifier is synchronous, pure, picklable and thread-safe; it uses no signals and no global state. It judges one
response against one gold answer. Batches, processes, deadlines and caching belong to the runner (`verify_batch`).

"Could not judge" is `score=None`. It is never turned into 0 or 1: metrics leave it out and count it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NoReturn, Protocol, runtime_checkable


class Reason(StrEnum):
    """Why a verdict came out as it did. The vocabulary is closed, so that reports can count by it."""

    MATCH = "match"
    """The response earns the full score."""
    MISMATCH = "mismatch"
    """The response answers, and the answer is wrong."""
    PARTIAL = "partial"
    """Some of the checks passed, such as part of the test cases, and the score lies between 0 and 1."""
    NO_ANSWER = "no_answer"
    """The response commits to no answer, and nothing at its end looks like one."""
    HEDGED = "hedged"
    """The response offers several answers where one was asked for."""
    UNREAD = "unread"
    """An answer seems to be there, in a form that is not read: it may be right or wrong. It earns 0, since a reward
    of None would let a policy opt out of every problem that it cannot solve, and is counted apart from `mismatch`."""
    GOLD_MISSING = "gold_missing"
    """The row has no gold answer, or an empty one."""
    GOLD_UNPARSED = "gold_unparsed"
    """The form of the gold answer cannot be read."""
    TIMEOUT = "timeout"
    """A deadline passed before a verdict was reached."""
    LIMIT = "limit"
    """A bound on length, depth, size or memory was met before a verdict was reached."""
    SANDBOX_ERROR = "sandbox_error"
    """The sandbox or the service that runs programs failed."""
    DECLINED = "declined"
    """The verifier cannot tell: a user's returned None, or both sides of `math` may mean the same."""
    VERIFIER_ERROR = "verifier_error"
    """A user's verifier raised, or what the row hands to its verifier (`info`, tests) is wrong."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict of a verifier on one response. Raises ValueError for a score outside [0, 1]."""

    score: float | None
    """The share that the response earned, in [0, 1], or None if it could not be judged."""
    reason: Reason
    """Why, as a code that reports count by."""
    extracted: str | None = None
    """The answer that was judged, as it stood in the response."""
    evidence: Mapping[str, Any] = field(default_factory=dict)
    """The grounds of the verdict, fit for JSON: parsed forms, the rule that decided, the failing test, the cost."""

    def __post_init__(self) -> None:
        if self.score is not None and not 0.0 <= self.score <= 1.0:
            raise ValueError(f"score must lie in [0, 1] or be None, got {self.score!r}")

    def __bool__(self) -> NoReturn:
        """Raise TypeError: every object is true otherwise, so that `if verify(...)` would pass wrong answers."""
        raise TypeError("a Verdict has no truth value: ask verdict.passed, or verdict.score")

    @property
    def passed(self) -> bool:
        """Whether the response earned the full score."""
        return self.score == 1.0


NO_INFO: Mapping[str, Any] = {}
"""The `info` of a call that hands none over."""


def reason_for_score(score: float) -> Reason:
    """Return the reason that goes with a score which is the share of checks that passed."""
    if score == 1.0:
        return Reason.MATCH
    return Reason.PARTIAL if score > 0.0 else Reason.MISMATCH


@runtime_checkable
class Verifier(Protocol):
    """The protocol of a verifier, which judges a whole response.

    It may also have `options`, the names that it reads of `info`; `needed_options`, the names without which it judges
    nothing; `check_options(info)`, which raises ValueError for a senseless value; and `deterministic`, which is False
    where the same response may get another verdict. Arguments that a configuration sets for all rows are checked by
    them before any work.
    """

    @property
    def name(self) -> str:
        """The name by which reports speak of it."""

    @property
    def version(self) -> str:
        """A text that changes whenever a verdict could change, so that caches notice."""

    def __call__(
        self, response: str, gold: str | None, *, problem: str | None = None, info: Mapping[str, Any] = ...
    ) -> Verdict:
        """Judge `response` against `gold`.

        problem: the text that was answered, if it is known. info: the row's arguments for this verifier, such as a
        tolerance or tests.
        """
