"""What became of a run of test code, in lines on the result descriptor.

    {"test": "2", "ok": true}
    {"test": "3", "ok": false, "line": "assert add(1, 2) == 3", "error": ["AssertionError", ""],
     "calls": ["add", "1, 2", "4"]}
    {"done": {"passed": 2, "total": 3}}

`calls` is the last call of the solution before the failure, with its arguments and its result. All tests passed where
`passed` is `total`, which is 0 where the code holds no test.
"""

from __future__ import annotations

from typing import Protocol

from ..wire.lines import write_result

SHOWN_CHARS = 300


class RunEnded(BaseException):
    """The run ends here: a test failed and no more are asked for, or none can be run."""


class Watch(Protocol):
    """What a run has to know of its solution."""

    broken_reason: str | None
    """Why no test passes any more; None while they can."""

    def describe_last_call(self) -> list[str] | None:
        """Return the name, the arguments and the result of the solution's last call, as text."""


class Unwatched:
    """The watch over tests that run in the solution's own process, where nobody can watch."""

    broken_reason: str | None = None

    def describe_last_call(self) -> list[str] | None:
        """Return None: the calls are not known."""
        return None


class Report:
    """Counts tests and writes a line for each."""

    def __init__(self, watch: Watch, stop_first: bool) -> None:
        self._watch = watch
        self._stop_first = stop_first
        self._failed = 0
        self.passed = 0
        self.total = 0

    @property
    def clean(self) -> bool:
        """Whether no test failed so far, and none passed by silencing its failure."""
        return self._failed == 0 and self._watch.broken_reason is None

    def add_success(self, test: str) -> None:
        """Report a test that passed."""
        if self._watch.broken_reason is not None:
            self.add_failure(test, None, None)
            return
        self.passed += 1
        write_result({"test": test, "ok": True})

    def add_failure(self, test: str, line: str | None, error: BaseException | str | None) -> None:
        """Report a test that failed. Raises `RunEnded` where no more is to be run."""
        self._failed += 1
        reason = self._watch.broken_reason
        described = _describe_failure(error) if reason is None else ["SolutionGone", reason]
        calls = self._watch.describe_last_call()
        write_result({"test": test, "ok": False, "line": line, "error": described, "calls": calls})
        if self._stop_first or reason is not None:
            raise RunEnded

    def finish(self) -> None:
        """Report that the run came to its end."""
        write_result({"done": {"passed": self.passed, "total": self.total}})


def _describe_failure(error: BaseException | str | None) -> list[str]:
    if not isinstance(error, BaseException):
        return ["Failed", error or ""]
    try:
        return [type(error).__name__, str(error)[:SHOWN_CHARS]]
    except Exception:
        return [type(error).__name__, ""]
