"""Runs test code: each statement of it that asserts (`statements.py`) is a test, then its `check` function is called.

    def check(candidate):
        assert candidate(1) == 2         test 1
        x = candidate(2)                 if this fails, so does the run: a test more, and the units after it are not run
        assert x == 3                    test 2

Then the test cases that it defines for a test runner are run (`cases.py`), save functions that it has called itself.
"""

from __future__ import annotations

import linecache
import random
import sys
from functools import partial
from types import TracebackType
from typing import Any

from ..program import last_line_in
from .cases import run_cases
from .report import Report, RunEnded
from .statements import UNIT, Plan

FILE = "tests.py"


def run_code(
    plan: Plan, code: str, namespace: dict[str, Any], candidate: Any, report: Report, for_runner: bool
) -> None:
    """Run all tests of the code, or those up to the first that fails, as the report says."""
    report.total = len(plan.units)
    before = dict(namespace)
    linecache.cache[FILE] = (partial(str, code),)
    namespace[UNIT] = lambda index: _Unit(index, plan, report)
    try:
        exec(compile(plan.tree, FILE, "exec", dont_inherit=True), namespace)
        if plan.check is not None:
            namespace[plan.check](candidate)
    except RunEnded:
        return  # Tests that were not reached have not passed.
    except SystemExit:
        # The test cases that were to come have not passed either.
        report.total += for_runner or plan.has_cases or not plan.units
        return
    except BaseException as error:
        _report_failed_setup(error, code, report)
        return
    # In one process the namespace is the program's, which may have tests of its own.
    defined = {name: value for name, value in namespace.items() if before.get(name) is not value}
    run_cases(defined, namespace["__name__"], report, plan.called)


def seed_randomness(seed: int) -> None:
    """Seed the random numbers of a forked process, which has the random state of the one it came from.

    Otherwise a solution could foresee the inputs of tests. The seed is made of what the solution's process does not
    have, the test code, and is the same for the same row.
    """
    random.seed(seed)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(seed % 2**32)


class _Unit:
    """The `with` block around a unit, which reports how it ended."""

    def __init__(self, index: int, plan: Plan, report: Report) -> None:
        self._index = index
        self._plan = plan
        self._report = report

    def __enter__(self) -> None:
        return

    def __exit__(self, kind: Any, error: BaseException | None, traceback: TracebackType | None) -> bool:
        if isinstance(error, RunEnded):
            return False
        name = str(self._index + 1)
        if error is None:
            self._report.add_success(name)
        else:
            self._report.add_failure(name, self._plan.units[self._index], error)
        return True


def _report_failed_setup(error: BaseException, code: str, report: Report) -> None:
    """Report that a statement failed which the rest may build upon."""
    report.total += 1
    line = last_line_in(FILE, error)
    lines = code.splitlines()
    text = lines[line - 1].strip()[:300] if line is not None and 0 < line <= len(lines) else None
    try:
        report.add_failure("setup" if line is None else f"line {line}", text, error)
    except RunEnded:
        return
