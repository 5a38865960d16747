"""Counts tests and reports the outcome of each, as lines that `test_run` describes."""

from __future__ import annotations

from collections.abc import Sequence
from unittest import SkipTest

from ..program import describe_error
from ..wire.encoding import write_result

SHOWN_CHARS = 300

_SKIPS_OF_PYTEST = frozenset({"Skipped", "XFailed"})
"""The exceptions that `pytest.skip` and `pytest.xfail` raise."""


class RunEnded(BaseException):
    """Raised to end a run early, at the first failure or when no further test can run."""


class SolutionWatch:
    """The state of the solution during a run of tests. If tests and solution share a process, it stays unknown."""

    broken_reason: str | None = None
    """The reason that no further test can pass, or None."""

    is_collecting = False
    """Whether a test runner is searching for tests. It then inspects all objects, the solution's too."""

    def run_again(self) -> None:
        """Run the solution again, for `importlib.reload`."""
        raise ImportError("the program can only be run again in one process with its tests")

    def describe_last_call(self) -> list[str] | None:
        """Return the name, the arguments and the result of the solution's last call, as text, or None if unknown."""
        return None


class Report:
    """Counts tests and writes a line for each."""

    def __init__(self, watch: SolutionWatch, stop_first: bool, skipped: Sequence[str] = ()) -> None:
        """skipped: names of tests that are skipped for every program."""
        self.watch = watch
        self._stop_first = stop_first
        self._skipped = frozenset(skipped)
        self._failed = 0
        self._held = 0
        self.passed = 0
        self.total = 0

    def note_held(self) -> None:
        """Count an assertion that held. `statements.py` inserts this call after each assertion."""
        self._held += 1

    def begin(self) -> None:
        """Start the count of assertions for the next test."""
        self._held = 0

    @property
    def clean(self) -> bool:
        """Whether no test failed so far and the solution can still be trusted."""
        return self._failed == 0 and self.watch.broken_reason is None

    def add_success(self, test: str, first_assertion: int | None = None) -> None:
        """Report a test that passed. first_assertion: the line of its first assertion, if it has any.

        If the test has assertions and none of them held, it counts as failed: the solution may have returned an empty
        list, over which the test loops.
        """
        is_idle = first_assertion is not None and not self._held
        if is_idle or self.watch.broken_reason is not None:
            self.add_failure(test, None, f"line {first_assertion} asserted nothing")
            return
        self.passed += 1
        write_result({"test": test, "ok": True})

    def add_failure(self, test: str, line: str | None, error: BaseException | str | None) -> None:
        """Report a test that failed. Raises `RunEnded` if no further test is to be run."""
        self._failed += 1
        reason = self.watch.broken_reason
        described = describe_failure(error) if reason is None else ["SolutionGone", reason]
        calls = self.watch.describe_last_call()
        write_result({"test": test, "ok": False, "line": line, "error": described, "calls": calls})
        if self._stop_first or reason is not None:
            raise RunEnded

    def add_error(self, test: str, line: str | None, error: BaseException) -> None:
        """Report a test that raised an exception: a failure, or a skip."""
        if isinstance(error, SkipTest) or type(error).__name__ in _SKIPS_OF_PYTEST:
            self.add_skip(test, str(error))
        else:
            self.add_failure(test, line, error)

    def add_skip(self, test: str, reason: str, tests: int = 1) -> None:
        """Report skipped tests. Those that the suite skips for every program do not count; others count as failed."""
        if test in self._skipped:
            self.total -= tests
        else:
            self.add_failure(test, None, f"it skipped itself: {reason}")

    def expect_failure(self, test: str) -> None:
        """Note that the suite expects the current test to fail."""

    def finish(self) -> None:
        """Report that the run is complete."""
        if self._skipped and not self.total:
            self.total = 1  # Every test was skipped, so none can pass.
        write_result({"done": {"passed": self.passed, "total": self.total}})


def describe_failure(error: BaseException | str | None) -> list[str]:
    """Return the type and the message of a failure."""
    if not isinstance(error, BaseException):
        return ["Failed", error or ""]
    kind, message, _ = describe_error(error)
    return [kind, message[:SHOWN_CHARS]]
