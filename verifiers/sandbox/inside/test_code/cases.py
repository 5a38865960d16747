"""Runs the tests that test code defines for a runner: `unittest.TestCase` classes and functions called `test...`.

    class TestAdd(unittest.TestCase):
        def test_zero(self): ...          test "TestAdd.test_zero"
    def test_one(): assert add(1, 0) == 1     test "test_one"

Classes run in the order of their definition, the tests of each by name. A test that is skipped from the start does not
count; one that skips itself while it runs has not passed. Fixtures, parameters and classes of pytest are not covered:
a suite that has them is not run at all (`suite/unrun.py`).
"""

from __future__ import annotations

import inspect
import unittest
from collections.abc import Callable, Iterator, Mapping, Set
from functools import partial
from types import SimpleNamespace
from typing import Any

from ..program import run_coroutine
from .report import Report, RunEnded

_TestFunction = tuple[str, Callable[[], Any]]
"""A name that begins with `test`, and the function that it stands for."""


def run_cases(defined: Mapping[str, Any], module: str, report: Report, called: Set[str] = frozenset()) -> None:
    """Run the test cases among what a module has defined, save the functions that were `called` already."""
    classes, functions = _find_tests(defined, module, called)
    # Where two long lists differ, working out how takes unittest minutes.
    setattr(unittest.case, "difflib", SimpleNamespace(ndiff=lambda first, second: ()))  # noqa: B010
    loader = unittest.TestLoader()
    loader.sortTestMethodsUsing = None  # type: ignore[assignment]
    suites = [loader.loadTestsFromTestCase(case_class) for case_class in classes]
    report.total += sum(not _is_skipped(test) for suite in suites for test in _walk_tests(suite)) + len(functions)
    result = _ReportingResult(report)
    try:
        for suite in suites:
            suite.run(result)
        for name, function in functions:
            _run_function(name, function, report)
    except RunEnded:
        return
    except BaseException as error:
        # KeyboardInterrupt passes through unittest, and so does what a `load_tests` or a fixture of a class raises.
        try:
            report.add_failure("the run", None, error)
        except RunEnded:
            return


def _find_tests(
    defined: Mapping[str, Any], module: str, called: Set[str]
) -> tuple[list[type[unittest.TestCase]], list[_TestFunction]]:
    classes: list[type[unittest.TestCase]] = []
    functions: dict[str, Callable[[], Any]] = {}
    for name, value in defined.items():
        function = value.func if isinstance(value, partial) else value
        if getattr(function, "__module__", None) != module:
            continue
        if isinstance(value, type) and issubclass(value, unittest.TestCase):
            classes.append(value)
        elif inspect.isfunction(function) and "test" in (name[:4], function.__name__[:4]):
            functions[name] = value
    return list(dict.fromkeys(classes)), [
        (name, function)
        for name, function in functions.items()
        if name not in called and not _needs_arguments(function)
    ]


def _needs_arguments(function: Callable[..., Any]) -> bool:
    if isinstance(function, partial):
        return False
    code = function.__code__
    return code.co_argcount > len(function.__defaults__ or ()) or bool(code.co_kwonlyargcount)


def _walk_tests(suite: unittest.TestSuite) -> Iterator[unittest.TestCase]:
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from _walk_tests(test)
        else:
            yield test


def _is_skipped(test: unittest.TestCase) -> bool:
    method = getattr(test, test._testMethodName, None)
    return bool(getattr(type(test), "__unittest_skip__", False) or getattr(method, "__unittest_skip__", False))


def _run_function(name: str, function: Callable[[], Any], report: Report) -> None:
    try:
        result = function()
        if inspect.iscoroutine(result):
            run_coroutine(result)
    except RunEnded:
        raise
    except BaseException as error:
        report.add_failure(name, name, error)
    else:
        report.add_success(name)


class _ReportingResult(unittest.TestResult):
    """Reports each test once, when it is over."""

    def __init__(self, report: Report) -> None:
        super().__init__()
        self._report = report
        self._trouble: BaseException | str | None = None
        self._succeeded = False

    def startTest(self, test: unittest.TestCase) -> None:
        super().startTest(test)
        self._trouble, self._succeeded = None, False

    def stopTest(self, test: unittest.TestCase) -> None:
        super().stopTest(test)
        name = f"{type(test).__name__}.{test._testMethodName}"
        if self._succeeded and self._trouble is None:
            self._report.add_success(name)
        elif not _is_skipped(test):
            self._report.add_failure(name, test.shortDescription() or name, self._trouble or "it broke off")

    def addSuccess(self, test: Any) -> None:
        self._succeeded = True

    def addError(self, test: Any, err: Any) -> None:
        self._note(err[1])
        if not isinstance(test, unittest.TestCase):  # The error is of a class, whose tests are not run.
            self._report.add_failure(str(test), None, self._trouble)

    def addFailure(self, test: Any, err: Any) -> None:
        self._note(err[1])

    def addSubTest(self, test: Any, subtest: Any, err: Any) -> None:
        if err is not None:
            self._note(err[1])

    def addSkip(self, test: Any, reason: str) -> None:
        if isinstance(test, unittest.TestCase) and not _is_skipped(test):
            self._note(f"it skipped itself: {reason}")

    def addExpectedFailure(self, test: Any, err: Any) -> None:
        self._succeeded = True

    def addUnexpectedSuccess(self, test: Any) -> None:
        self._note("it was expected to fail")

    def _note(self, trouble: BaseException | str) -> None:
        if isinstance(trouble, RunEnded):
            raise trouble
        self._trouble = self._trouble or trouble
