"""Runs test code: each statement of it that asserts (`statements.py`) is a test, then its `check` function is called.

    def check(candidate):
        assert candidate(1) == 2         test 1
        x = candidate(2)                 if this fails, so does the run: a test more, and the units after it are not run
        assert x == 3                    test 2

Then the test cases that it defines for a test runner are run, `unittest.TestCase` classes and functions called
`test...`, save functions that it has called itself:

    class TestAdd(unittest.TestCase):
        def test_zero(self): ...          test "TestAdd.test_zero"
    def test_one(): assert add(1, 0) == 1     test "test_one"

Classes run in the order of their definition, the tests of each by name. A test that is skipped from the start does not
count; one that skips itself while it runs has not passed. Fixtures, parameters and classes of pytest are not covered:
a suite that has them is not run at all (`suite/unrun.py`).

What became of each test is written in lines on the result descriptor:

    {"test": "2", "ok": true}
    {"test": "3", "ok": false, "line": "assert add(1, 2) == 3", "error": ["AssertionError", ""],
     "calls": ["add", "1, 2", "4"]}
    {"done": {"passed": 2, "total": 3}}

`calls` is the last call of the solution before the failure, with its arguments and its result. All tests passed where
`passed` is `total`, which is 0 where the code holds no test.

The role `one_process` runs a program and its tests in one namespace of one process:

    {"prelude": "", "program": "def add(a, b): ...", "kind": "unittest", "code": "...", "entry_point": "add",
     "stop_first": true, "seed": 17, "nonce": "6f1c..."}

This is for test code that cannot be apart from the solution (`protocols/isolation.py`). Where every test
passed, the lines end with {"nonce": ...}: a program that ends the process before that, by `sys.exit` or worse, has not
passed.

The verdict is weak. The program shares its process with the tests and can search it, override what they use, and
answer comparisons. Replacing assertions and builtins is noticed unless it is undone in time. While the program runs,
the nonce is on the interpreter's evaluation stack only, so that walking frames and objects does not lead to it.
"""

from __future__ import annotations

import builtins
import inspect
import linecache
import math
import random
import sys
import unittest
from collections.abc import Callable, Iterator, Mapping, Set
from contextlib import suppress
from functools import partial
from types import SimpleNamespace, TracebackType

from ..program import NotDefined, describe_error, last_line_in, load, look_up, run_coroutine
from ..wire.foreign_values import Value
from ..wire.json_lines import from_json, write_result
from .statements import UNIT, Plan, plan_units

FILE = "tests.py"


def run_code(
    plan: Plan, code: str, namespace: dict[str, Value], candidate: Value, report: Report, for_runner: bool
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

    def __exit__(self, kind: Value, error: BaseException | None, traceback: TracebackType | None) -> bool:
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


_TestFunction = tuple[str, Callable[[], Value]]
"""A name that begins with `test`, and the function that it stands for."""


def run_cases(defined: Mapping[str, Value], module: str, report: Report, called: Set[str]) -> None:
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
    defined: Mapping[str, Value], module: str, called: Set[str]
) -> tuple[list[type[unittest.TestCase]], list[_TestFunction]]:
    classes: list[type[unittest.TestCase]] = []
    functions: dict[str, Callable[[], Value]] = {}
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


def _needs_arguments(function: Callable[..., Value]) -> bool:
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


def _run_function(name: str, function: Callable[[], Value], report: Report) -> None:
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

    def addSuccess(self, test: Value) -> None:
        self._succeeded = True

    def addError(self, test: Value, err: Value) -> None:
        self._note(err[1])
        if not isinstance(test, unittest.TestCase):  # The error is of a class, whose tests are not run.
            self._report.add_failure(str(test), None, self._trouble)

    def addFailure(self, test: Value, err: Value) -> None:
        self._note(err[1])

    def addSubTest(self, test: Value, subtest: Value, err: Value) -> None:
        if err is not None:
            self._note(err[1])

    def addSkip(self, test: Value, reason: str) -> None:
        if isinstance(test, unittest.TestCase) and not _is_skipped(test):
            self._note(f"it skipped itself: {reason}")

    def addExpectedFailure(self, test: Value, err: Value) -> None:
        self._succeeded = True

    def addUnexpectedSuccess(self, test: Value) -> None:
        self._note("it was expected to fail")

    def _note(self, trouble: BaseException | str) -> None:
        if isinstance(trouble, RunEnded):
            raise trouble
        self._trouble = self._trouble or trouble


SHOWN_CHARS = 300


class RunEnded(BaseException):
    """The run ends here: a test failed and no more are asked for, or none can be run."""


class SolutionWatch:
    """What a run has to know of its solution. In the tests' own process nobody can watch that."""

    broken_reason: str | None = None
    """Why no test passes any more; None while they can."""

    def describe_last_call(self) -> list[str] | None:
        """Return the name, the arguments and the result of the solution's last call, as text; None where unknown."""
        return None


class Report:
    """Counts tests and writes a line for each."""

    def __init__(self, watch: SolutionWatch, stop_first: bool) -> None:
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


_GUARDED: dict[str, Value] = {
    "TestCase": unittest.TestCase,
    "TestResult": unittest.TestResult,
    "AssertRaisesContext": unittest.case._AssertRaisesContext,
    "math": math,
}
"""Whose functions a program is not to replace, besides the builtins."""

_REPLACEABLE = frozenset({"print", "input", "open", "exit", "quit", "help", "_", "copyright", "credits", "license"})
"""Builtins that programs and tests replace for honest ends."""


def run_in_one_process(payload: bytes) -> None:
    """Run the program and the tests of the payload, a line of JSON."""
    request = from_json(payload, len(payload))
    del payload
    _write_nonce(request.pop("nonce"), _run_program_and_tests(request))


def _write_nonce(nonce: str, have_passed: bool) -> None:
    if have_passed:
        write_result({"nonce": nonce})


def _run_program_and_tests(request: dict[str, Value]) -> bool:
    """Run them, report what came of each test, and return whether all passed."""
    guard = _ReplacementGuard()
    report = Report(SolutionWatch(), request["stop_first"])
    try:
        plan = plan_units(request["code"])
    except (SyntaxError, ValueError) as error:
        write_result({"bad_suite": describe_error(error)[:2]})
        return False
    try:
        namespace = load(request["prelude"], request["program"])
        seed_randomness(request["seed"])
        candidate = _find_candidate(namespace, request["entry_point"])
    except BaseException as error:
        write_result({"not_loaded": describe_error(error)[:2]})
        report.total = max(len(plan.units), 1)
        report.finish()
        return False
    run_code(plan, request["code"], namespace, candidate, report, request["kind"] == "unittest")
    if (name := guard.find_replaced()) is not None:
        with suppress(RunEnded):
            report.total += 1
            report.add_failure("the run", None, f"the program replaced {name}")
    report.finish()
    return report.clean and 0 < report.total == report.passed


def _find_candidate(namespace: dict[str, Value], entry_point: str | None) -> Value:
    if entry_point is None:
        return None
    try:
        return namespace.setdefault("candidate", look_up(namespace, entry_point))
    except NotDefined as error:
        raise NameError(str(error)) from None


class _ReplacementGuard:
    """Notices whether what tests are made of is replaced: `TestCase.assertEqual`, `all`, `isinstance` ...

        guard = _ReplacementGuard()
        unittest.TestCase.assertEqual = lambda *args: None
        guard.find_replaced()                                "TestCase.assertEqual"

    A program that undoes this at the right moment, or replaces something else, is not noticed.
    """

    def __init__(self) -> None:
        self._before = _function_identities()

    def find_replaced(self) -> str | None:
        """Return the name of the first function that is another one now."""
        now = _function_identities()
        return next((name for name, identity in self._before.items() if now.get(name) != identity), None)


def _function_identities() -> dict[str, tuple[int, int]]:
    functions = {
        f"{owner_name}.{name}": value
        for owner_name, owner in _GUARDED.items()
        for name, value in vars(owner).items()
        if callable(value)
    }
    functions |= {name: value for name, value in vars(builtins).items() if name not in _REPLACEABLE and callable(value)}
    return {name: (id(value), id(getattr(value, "__code__", None))) for name, value in functions.items()}
