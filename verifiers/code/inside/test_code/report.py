"""What a run of test code says of itself, in lines on the result descriptor.

    {"test": "2", "ok": true}
    {"test": "3", "ok": false, "line": "assert add(1, 2) == 3", "error": ["AssertionError", ""],
     "calls": ["add", "1, 2", "4"]}
    {"done": {"passed": 2, "total": 3}}

calls: the last call of the solution before, with what it was given and what came. All passed where `passed` is `total`,
which is 0 where the code holds no test.
"""

from __future__ import annotations

from typing import Protocol

from ..wire.lines import write

SHOWN_CHARS = 300


class Stop(BaseException):
    """The run ends here: a test failed and no more are wanted, or none can be run."""


class Watch(Protocol):
    """What a run has to know of its solution. broken: why no test passes any more."""

    broken: str | None

    def describe_last_call(self) -> list[str] | None:
        """The name, the arguments and the result of the solution's last call, as text."""


class Alone:
    """For tests that run in the solution's own process, where nobody watches."""

    broken: str | None = None

    def describe_last_call(self) -> list[str] | None:
        """There is none to be known."""
        return None


class Report:
    def __init__(self, watch: Watch, stop_first: bool) -> None:
        self._watch = watch
        self._stop_first = stop_first
        self._failed = 0
        self.passed = 0
        self.total = 0

    @property
    def clean(self) -> bool:
        """Whether no test failed so far, and none passed by silencing its failure."""
        return self._failed == 0 and self._watch.broken is None

    def success(self, test: str) -> None:
        if self._watch.broken is not None:
            self.failure(test, None, None)
            return
        self.passed += 1
        write({"test": test, "ok": True})

    def failure(self, test: str, line: str | None, error: BaseException | str | None) -> None:
        """Raises `Stop` where no more is to be run."""
        self._failed += 1
        said = ["SolutionGone", self._watch.broken] if self._watch.broken is not None else _said(error)
        write({"test": test, "ok": False, "line": line, "error": said, "calls": self._watch.describe_last_call()})
        if self._stop_first or self._watch.broken is not None:
            raise Stop

    def done(self) -> None:
        write({"done": {"passed": self.passed, "total": self.total}})


def _said(error: BaseException | str | None) -> list[str]:
    if not isinstance(error, BaseException):
        return ["Failed", error or ""]
    try:
        return [type(error).__name__, str(error)[:SHOWN_CHARS]]
    except Exception:
        return [type(error).__name__, ""]
