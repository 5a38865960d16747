"""The contract of verifiers: the verdict, its reasons, and the verifier protocol.

A verifier judges one response against one gold answer. It is synchronous, pure, picklable and thread-safe, and uses
neither signals nor global state. Batches, processes, deadlines and caching belong to the runner (`verify_batch`).

A score of None means "could not judge". It is never replaced by 0 or 1: metrics leave such verdicts out and report
their number.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NoReturn, Protocol, runtime_checkable


class Reason(StrEnum):
    """The reason of a verdict, as a code. Reports count verdicts by these codes."""

    MATCH = "match"
    """The response earns the full score."""
    MISMATCH = "mismatch"
    """The response has an answer, which is wrong."""
    PARTIAL = "partial"
    """Some of the checks passed, such as part of the test cases, and the score lies between 0 and 1."""
    NO_ANSWER = "no_answer"
    """The response does not commit to an answer, and nothing at its end looks like an answer."""
    HEDGED = "hedged"
    """The response gives several different answers instead of one."""
    UNREAD = "unread"
    """The response seems to have an answer, but in a form that cannot be read; the answer may be right. The score is 0:
    with None, a model in training could avoid every problem that it cannot solve. Reports count these verdicts apart
    from `mismatch`."""
    GOLD_MISSING = "gold_missing"
    """The row has no gold answer, or an empty one."""
    GOLD_UNPARSED = "gold_unparsed"
    """The gold answer is in a form that cannot be read."""
    TIMEOUT = "timeout"
    """A deadline passed before a verdict was reached."""
    LIMIT = "limit"
    """A limit on length, depth, size or memory was exceeded before a verdict was reached."""
    SANDBOX_ERROR = "sandbox_error"
    """The sandbox or the service that runs programs failed."""
    DECLINED = "declined"
    """The verifier cannot decide: a user's verifier returned None, or `math` could neither prove the two answers equal
    nor different."""
    VERIFIER_ERROR = "verifier_error"
    """A user's verifier raised an error, or the row's arguments for the verifier (`info`, tests) are invalid."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict of a verifier on one response. Raises ValueError for a score outside [0, 1]."""

    score: float | None
    """The share that the response earned, in [0, 1], or None if it could not be judged."""
    reason: Reason
    """The code of the verdict, by which reports count it."""
    extracted: str | None = None
    """The answer that was judged, as the response wrote it."""
    evidence: Mapping[str, Any] = field(default_factory=dict)
    """Details of the verdict as JSON values: parsed forms, the deciding rule, the failing test, the cost."""

    def __post_init__(self) -> None:
        if self.score is not None and not (isinstance(self.score, int | float) and 0.0 <= self.score <= 1.0):
            raise ValueError(f"score must lie in [0, 1] or be None, got {self.score!r}")

    def __bool__(self) -> NoReturn:
        """Raise TypeError. By default every object is true, so that `if verify(...)` would accept wrong answers."""
        raise TypeError("a Verdict has no truth value: use verdict.passed or verdict.score")

    @property
    def passed(self) -> bool:
        """Whether the response earned the full score."""
        return self.score == 1.0


NO_INFO: Mapping[str, Any] = {}
"""The default `info`: no arguments."""


def reason_for_score(score: float) -> Reason:
    """Return the reason for a score that is a share of passed checks: all, some or none."""
    if score == 1.0:
        return Reason.MATCH
    return Reason.PARTIAL if score > 0.0 else Reason.MISMATCH


@runtime_checkable
class Verifier(Protocol):
    """The protocol of a verifier, which judges a whole response.

    With three optional attributes, the arguments of a configuration are checked before any work:

    - `options`: the keys of `info` that the verifier reads.
    - `needed_options`: the keys of `info` that are required.
    - `check_options(info)`: raises ValueError for an invalid value.

    `deterministic` is optional too: False if the same response may get different verdicts.
    """

    @property
    def name(self) -> str:
        """The name of the verifier in reports."""

    @property
    def version(self) -> str:
        """A text that changes whenever a verdict could change, since it is part of cache keys."""

    def __call__(
        self, response: str, gold: str | None, *, problem: str | None = None, info: Mapping[str, Any] = ...
    ) -> Verdict:
        """Judge `response` against `gold`.

        problem: the problem that the response answers, if known. info: the row's arguments for this verifier, such as
        a tolerance or tests.
        """
