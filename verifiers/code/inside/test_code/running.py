"""Run test code: each statement of it that asserts (`statements.py`) is a test, then its `check` function is called.

    def check(candidate):
        assert candidate(1) == 2         test 1
        x = candidate(2)                 if this fails, so does the run: a test more, and the units after it are not run
        assert x == 3                    test 2

Code that asserts nothing this way, and code said to be for a test runner, is searched for test cases (`cases.py`).
"""

from __future__ import annotations

import linecache
import random
import sys
from functools import partial
from types import TracebackType
from typing import Any

from .cases import run_cases
from .report import Report, Stop
from .statements import UNIT, Plan

FILE = "tests.py"


def run_code(
    planned: Plan, code: str, namespace: dict[str, Any], candidate: Any, report: Report, for_runner: bool
) -> None:
    """Run all tests of the code, or those up to the first that fails, as the report says."""
    report.total = len(planned.units)
    linecache.cache[FILE] = (partial(str, code),)
    namespace[UNIT] = lambda number: _Unit(number, planned, report)
    try:
        exec(compile(planned.tree, FILE, "exec", dont_inherit=True), namespace)
        if planned.check is not None:
            namespace[planned.check](candidate)
    except Stop:
        return  # what was not reached has not passed
    except SystemExit:
        report.total += for_runner or not planned.units  # nor have the test cases that were to come
        return
    except BaseException as error:
        _broken_off(error, code, report)
        return
    if for_runner or not planned.units:
        run_cases(namespace, report)


class _Unit:
    def __init__(self, number: int, planned: Plan, report: Report) -> None:
        self._number = number
        self._planned = planned
        self._report = report

    def __enter__(self) -> None:
        return

    def __exit__(self, kind: Any, error: BaseException | None, traceback: TracebackType | None) -> bool:
        if isinstance(error, Stop):
            return False
        name = str(self._number + 1)
        if error is None:
            self._report.success(name)
        else:
            self._report.failure(name, self._planned.units[self._number], error)
        return True


def _broken_off(error: BaseException, code: str, report: Report) -> None:
    """A statement failed that the rest may build upon."""
    report.total += 1
    line = None
    at = error.__traceback__
    while at is not None:
        if at.tb_frame.f_code.co_filename == FILE:
            line = at.tb_lineno
        at = at.tb_next
    lines = code.splitlines()
    text = lines[line - 1].strip()[:300] if line is not None and 0 < line <= len(lines) else None
    try:
        report.failure("setup" if line is None else f"line {line}", text, error)
    except Stop:
        return


def fresh_randomness(seed: int) -> None:
    """A forked process has the random state of the one it came from: a solution could foresee the inputs of tests.

    The seed is made of what the solution's process does not have, the test code, and is the same for the same row.
    """
    random.seed(seed)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(seed % 2**32)
