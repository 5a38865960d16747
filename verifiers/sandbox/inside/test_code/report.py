"""Counts tests and reports the outcome of each, in the lines that `test_run.py` describes."""

from __future__ import annotations

from collections.abc import Sequence
from unittest import SkipTest

from ..program import describe_error
from ..wire.json_lines import write_result

SHOWN_CHARS = 300

_SKIPS_OF_PYTEST = frozenset({"Skipped", "XFailed"})
"""Exceptions that `pytest.skip` and `pytest.xfail` raise."""


class RunEnded(BaseException):
    """The run ends here: a test failed and no more are asked for, or none can be run."""


class SolutionWatch:
    """The solution as a run of tests sees it. In the tests' own process it cannot be watched."""

    broken_reason: str | None = None
    """Why no test passes any more; None while they can."""

    is_collecting = False
    """Whether a runner looks for tests, which asks objects of the solution as well what they are."""

    def run_again(self) -> None:
        """Run the solution once more, for `importlib.reload`."""
        raise ImportError("the program can only be run again in one process with its tests")

    def describe_last_call(self) -> list[str] | None:
        """Return the name, the arguments and the result of the solution's last call, as text, or None if unknown."""
        return None


class Report:
    """Counts tests and writes a line for each."""

    def __init__(self, watch: SolutionWatch, stop_first: bool, skipped: Sequence[str] = ()) -> None:
        """skipped: the tests that are skipped for every program."""
        self.watch = watch
        self._stop_first = stop_first
        self._skipped = frozenset(skipped)
        self._failed = 0
        self._held = 0
        self.passed = 0
        self.total = 0

    def note_held(self) -> None:
        """Take note that an assertion held (`statements.py` has put this call after each)."""
        self._held += 1

    def begin(self) -> None:
        """Take note that a test begins."""
        self._held = 0

    @property
    def clean(self) -> bool:
        """Whether no test failed so far, and none passed by silencing its failure."""
        return self._failed == 0 and self.watch.broken_reason is None

    def add_success(self, test: str, first_assertion: int | None = None) -> None:
        """Report a test that passed. first_assertion: the line of an assertion that it has.

        One that none held of has not passed: a solution may have returned an empty list to a loop of assertions.
        """
        is_idle = first_assertion is not None and not self._held
        if is_idle or self.watch.broken_reason is not None:
            self.add_failure(test, None, f"line {first_assertion} asserted nothing")
            return
        self.passed += 1
        write_result({"test": test, "ok": True})

    def add_failure(self, test: str, line: str | None, error: BaseException | str | None) -> None:
        """Report a test that failed. Raises `RunEnded` if no more is to be run."""
        self._failed += 1
        reason = self.watch.broken_reason
        described = describe_failure(error) if reason is None else ["SolutionGone", reason]
        calls = self.watch.describe_last_call()
        write_result({"test": test, "ok": False, "line": line, "error": described, "calls": calls})
        if self._stop_first or reason is not None:
            raise RunEnded

    def add_error(self, test: str, line: str | None, error: BaseException) -> None:
        """Report a test that raised: it failed, or it was skipped."""
        if isinstance(error, SkipTest) or type(error).__name__ in _SKIPS_OF_PYTEST:
            self.add_skip(test, str(error))
        else:
            self.add_failure(test, line, error)

    def add_skip(self, test: str, reason: str, tests: int = 1) -> None:
        """Report a test, or several, that was skipped. It does not count where the suite skips it for every program."""
        if test in self._skipped:
            self.total -= tests
        else:
            self.add_failure(test, None, f"it skipped itself: {reason}")

    def expect_failure(self, test: str) -> None:
        """Take note that the suite expects a test to fail, which begins now."""

    def finish(self) -> None:
        """Report that the run came to its end."""
        if self._skipped and not self.total:
            self.total = 1  # Nothing is left that could have passed.
        write_result({"done": {"passed": self.passed, "total": self.total}})


def describe_failure(error: BaseException | str | None) -> list[str]:
    """Return the type and the message of a failure."""
    if not isinstance(error, BaseException):
        return ["Failed", error or ""]
    kind, message, _ = describe_error(error)
    return [kind, message[:SHOWN_CHARS]]
