"""Runs test code. Each statement with an assertion (`statements.py`) is a test.

    def check(candidate):
        assert candidate(1) == 2         test 1
        x = candidate(2)                 if this fails, it counts as one more test, and later tests do not run
        assert x == 3                    test 2

Then `unittest.TestCase` classes and functions named `test...` run, such as "TestAdd.test_zero" and "test_one", unless
the code has called them itself. Classes run in the order of definition, and the tests of a class by name. A test that
is skipped or expected to fail for every solution (`test_session/tests.py`) is left out. Other skipped tests count as
failed, and so do tests in which no assertion ran. Tests for pytest run with pytest (`pytest_run.py`).

The outcome of each test is a line on the result descriptor. `calls` has the solution's last call: its name, arguments
and result.

    {"test": "2", "ok": true}
    {"test": "3", "ok": false, "line": "assert add(1, 2) == 3", "error": ["AssertionError", ""],
     "calls": ["add", "1, 2", "4"]}
    {"done": {"passed": 2, "total": 3}}

The role `one_process` runs a program and its tests in one namespace of one process, for test code that needs access to
the solution's process (`protocols/python_tests.py`):

    {"prelude": "", "program": "def add(a, b): ...", "code": "...", "entry_point": "add",
     "modules": [], "stop_first": true, "seed": 17, "nonce": "6f1c..."}

If every test passed, the last line is {"nonce": ...}, with the random text of the request. So a program that ends the
process early does not pass. Such a verdict is weak nevertheless: the program can search the process and override names
that the tests use. Replaced assertions and builtins are noticed, unless the program restores them in time. While the
program runs, no frame or object leads to the nonce.
"""

from __future__ import annotations

import builtins
import inspect
import linecache
import math
import random
import sys
import unittest
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from functools import partial
from types import FunctionType, ModuleType, SimpleNamespace, TracebackType

from ..program import (
    MODULE,
    PRELUDE_FILE,
    PROGRAM_FILE,
    NotDefined,
    describe_error,
    last_line_in,
    load,
    look_up,
    run_coroutine,
    run_source,
)
from ..wire.encoding import from_json, write_result
from ..wire.value_types import Value
from .library_functions import SOLUTION_FOLDERS, SolutionFinder
from .report import Report, RunEnded, SolutionWatch
from .statements import FILE, HELD, HOOKS, RAN, UNIT, Plan, plan_units


def run_code(plan: Plan, code: str, namespace: dict[str, Value], candidate: Value, report: Report) -> None:
    """Run all tests of the code, or those up to the first failure if `report` stops there."""
    with suppress(RunEnded):  # Tests that were not reached count as not passed.
        _run_all(plan, code, namespace, candidate, report)


def _run_all(plan: Plan, code: str, namespace: dict[str, Value], candidate: Value, report: Report) -> None:
    report.total = len(plan.units)
    linecache.cache[FILE] = (partial(str, code),)
    namespace |= {UNIT: lambda index: _Unit(index, plan, report), HELD: report.note_held, RAN: _Success()}
    before = dict(namespace)
    try:
        exec(compile(plan.tree, FILE, "exec", dont_inherit=True), namespace)
        if plan.check is not None:
            namespace[plan.check](candidate)
    except RunEnded:
        raise
    except SystemExit:
        report.total += 1  # Tests after the exit did not run, which is a failure.
        return
    except BaseException as error:
        _report_failed_setup(error, code, report)
        return
    # In one process, the namespace may also contain tests of the program itself.
    defined = {
        name: value
        for name, value in namespace.items()
        if before.get(name) is not value and _is_for_runner(name, type(value))
    }
    run_cases(defined, namespace["__name__"], report, plan)


def _is_for_runner(name: str, kind: type) -> bool:
    """Return whether a runner may find tests under a name. Objects of the solution are not inspected."""
    is_usual = issubclass(kind, FunctionType | type | partial)
    return is_usual or kind.__name__ == "FixtureFunctionDefinition" or name == "pytestmark"


def seed_randomness(seed: int) -> None:
    """Seed random numbers. The solution does not know the seed, so it cannot foresee inputs."""
    random.seed(seed)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(seed % 2**32)


class _Success(int):
    """The result of a successful test runner: `result.failed` and `failed, total = result` work."""

    def __getattr__(self, name: str) -> _Success:
        if name.startswith(("_", "pytest")):
            raise AttributeError(name)
        return self

    def __call__(self) -> bool:
        return True

    def __iter__(self) -> Iterator[int]:
        return iter((0, 0))

    def __len__(self) -> int:
        return 0

    def __getitem__(self, index: int) -> int:
        return 0


class _Unit:
    """The `with` block around a unit. It reports how the unit ended."""

    def __init__(self, index: int, plan: Plan, report: Report) -> None:
        self._index = index
        self._plan = plan
        self._report = report

    def __enter__(self) -> None:
        self._report.begin()

    def __exit__(self, kind: Value, error: BaseException | None, traceback: TracebackType | None) -> bool:
        if isinstance(error, RunEnded):
            return False
        name, (text, line) = str(self._index + 1), self._plan.units[self._index]
        if error is None:
            self._report.add_success(name, line)
        else:
            self._report.add_error(name, text, error)
        return True


def _report_failed_setup(error: BaseException, code: str, report: Report) -> None:
    """Report a failed statement outside of all units, on which later tests may depend."""
    report.total += 1
    line = last_line_in(FILE, error)
    lines = code.splitlines()
    text = lines[line - 1].strip()[:300] if line is not None and 0 < line <= len(lines) else None
    report.add_failure("setup" if line is None else f"line {line}", text, error)


def run_cases(defined: Mapping[str, Value], module: str, report: Report, plan: Plan) -> None:
    """Run the tests of a module, except functions that it has already called."""
    # For two long lists that differ, unittest would take minutes to describe the difference.
    setattr(unittest.case, "difflib", SimpleNamespace(ndiff=lambda first, second: ()))  # noqa: B010
    defined = {name: value for name, value in defined.items() if name not in plan.called or isinstance(value, type)}
    classes, functions = _find_tests(defined, module)
    try:
        if any(_asks_for_pytest(name, value, module) for name, value in defined.items()):
            from .pytest_run import run_by_pytest

            run_by_pytest(defined, module, report, plan)
            return
        loader = unittest.TestLoader()
        loader.sortTestMethodsUsing = None  # type: ignore[assignment]
        suites = [loader.loadTestsFromTestCase(case_class) for case_class in classes]
        report.total += sum(suite.countTestCases() for suite in suites) + len(functions)
        result = _ReportingResult(report, plan)
        for suite in suites:
            result.class_size = suite.countTestCases()
            suite.run(result)
        for name, function in functions.items():
            report.begin()
            try:
                outcome = function()
                if inspect.iscoroutine(outcome):
                    run_coroutine(outcome)
            except RunEnded:
                raise
            except BaseException as error:
                report.add_error(name, name, error)
            else:
                report.add_success(name, plan.line_of(function))
    except RunEnded:
        raise
    except BaseException as error:
        # KeyboardInterrupt and exceptions of `load_tests` and of class fixtures pass through unittest.
        report.add_failure("the run", None, error)


def _find_tests(
    defined: Mapping[str, Value], module: str
) -> tuple[list[type[unittest.TestCase]], dict[str, Callable[[], Value]]]:
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
    return list(dict.fromkeys(classes)), functions


def _asks_for_pytest(name: str, value: Value, module: str) -> bool:
    """Return whether a definition of the test code needs pytest: a class `Test...`, a fixture, a hook or a mark."""
    is_definition = inspect.isfunction(value) or isinstance(value, type)
    if is_definition and value.__module__ != module:
        return False
    # `unittest.mock.call` has every attribute, so only functions and classes are searched for marks.
    if name == "pytestmark" or type(value).__name__ == "FixtureFunctionDefinition":
        return True
    if is_definition and hasattr(value, "pytestmark"):
        return True
    if isinstance(value, type) and issubclass(value, unittest.TestCase):
        return any(hasattr(method, "pytestmark") for method in vars(value).values())
    if isinstance(value, type):
        return name.startswith("Test") and any(each.lower().startswith("test") for each in dir(value))
    return inspect.isfunction(value) and (name in HOOKS or (name.startswith("test") and _needs_arguments(value)))


def _needs_arguments(function: Callable[..., Value]) -> bool:
    code = function.__code__
    return code.co_argcount > len(function.__defaults__ or ()) or bool(code.co_kwonlyargcount)


class _ReportingResult(unittest.TestResult):
    """Reports each test once, after its end."""

    def __init__(self, report: Report, plan: Plan) -> None:
        super().__init__()
        self._report = report
        self._plan = plan
        self._trouble: BaseException | str | None = None
        self._skip_reason: str | None = None
        self._succeeded = False
        self.class_size = 0
        """The number of tests in the class that is running."""

    def startTest(self, test: unittest.TestCase) -> None:
        super().startTest(test)
        self._trouble, self._skip_reason, self._succeeded = None, None, False
        self._report.begin()
        if getattr(_method_of(test), "__unittest_expecting_failure__", False):
            self._report.expect_failure(_name_of(test))

    def stopTest(self, test: unittest.TestCase) -> None:
        super().stopTest(test)
        name = _name_of(test)
        if self._skip_reason is not None and self._trouble is None:
            self._report.add_skip(name, self._skip_reason)
        elif self._succeeded and self._trouble is None:
            self._report.add_success(name, self._plan.line_of(_method_of(test)))
        else:
            self._report.add_failure(name, test.shortDescription() or name, self._trouble or "it ended early")

    def addSuccess(self, test: Value) -> None:
        self._succeeded = True

    def addError(self, test: Value, err: Value) -> None:
        self._note(err[1])
        if not isinstance(test, unittest.TestCase):  # The setup of a class failed, so its tests did not run.
            self._report.add_failure(str(test), None, self._trouble)

    def addFailure(self, test: Value, err: Value) -> None:
        self._note(err[1])

    def addSubTest(self, test: Value, subtest: Value, err: Value) -> None:
        if err is not None:
            self._note(err[1])

    def addSkip(self, test: Value, reason: str) -> None:
        if isinstance(test, unittest.TestCase):
            self._skip_reason = reason
        else:  # A class skipped itself during its setup.
            self._report.add_skip(str(test), reason, self.class_size)

    def addExpectedFailure(self, test: Value, err: Value) -> None:
        self._skip_reason = "it fails as expected"

    def addUnexpectedSuccess(self, test: Value) -> None:
        self._skip_reason = "it was expected to fail"

    def _note(self, trouble: BaseException | str) -> None:
        if isinstance(trouble, RunEnded):
            raise trouble
        self._trouble = self._trouble or trouble


def _name_of(test: unittest.TestCase) -> str:
    return f"{type(test).__name__}.{test._testMethodName}"


def _method_of(test: unittest.TestCase) -> Value:
    return getattr(test, test._testMethodName, None)


_GUARDED: dict[str, Value] = {
    "TestCase": unittest.TestCase,
    "TestResult": unittest.TestResult,
    "AssertRaisesContext": unittest.case._AssertRaisesContext,
    "math": math,
}
"""Modules and classes whose functions a program must not replace. Builtins are guarded as well."""

_REPLACEABLE = frozenset({"print", "input", "open", "exit", "quit", "help", "_", "copyright", "credits", "license"})
"""Builtins that programs and tests may replace."""


def run_in_one_process(payload: bytes) -> None:
    """Run the program and the tests of the payload, a line of JSON."""
    request = from_json(payload, len(payload))
    del payload
    _write_nonce(request.pop("nonce"), _run_program_and_tests(request))


def _write_nonce(nonce: str, have_passed: bool) -> None:
    if have_passed:
        write_result({"nonce": nonce})


def _run_program_and_tests(request: dict[str, Value]) -> bool:
    """Run program and tests, report the outcome of each test, and return whether all passed."""
    before = _function_identities()
    report = Report(SolutionWatch(), request["stop_first"], request.get("skipped", ()))
    try:
        plan = plan_units(request["code"])
    except (SyntaxError, ValueError) as error:
        write_result({"bad_suite": describe_error(error)[:2]})
        return False
    try:
        namespace = load(request["prelude"], request["program"])
        make_module = partial(_as_module, sys.modules[MODULE], request.get("modules", ()))
        run_again = partial(_run_again, namespace, request["prelude"], request["program"])
        finder = SolutionFinder(make_module, request.get("modules", ()), request["entry_point"], run_again)
        sys.meta_path.append(finder)
        seed_randomness(request["seed"])
        candidate = _find_candidate(namespace, request["entry_point"])
    except BaseException as error:
        write_result({"not_loaded": describe_error(error)[:2]})
        report.total = max(len(plan.units), 1)
        report.finish()
        return False
    run_code(plan, request["code"], namespace, candidate, report)
    now = _function_identities()
    # This misses programs that restore a function in time, or replace something else.
    if replaced := [name for name, identity in before.items() if now.get(name) != identity]:
        with suppress(RunEnded):
            report.total += 1
            report.add_failure("the run", None, f"the program replaced {replaced[0]}")
    report.finish()
    return report.clean and 0 < report.total == report.passed


def _run_again(namespace: dict[str, Value], prelude: str, program: str) -> None:
    run_source(prelude, PRELUDE_FILE, namespace)
    run_source(program, PROGRAM_FILE, namespace)


def _as_module(program: ModuleType, names: Collection[str], name: str) -> ModuleType:
    """Return the program as a module of this name. For `pkg.sums`, the package `pkg` passes names on to the program."""
    if name not in SOLUTION_FOLDERS and not any(each.startswith(f"{name}.") for each in names):
        return program
    package = ModuleType(name)
    package.__dict__["__getattr__"] = partial(getattr, program)
    return package


def _find_candidate(namespace: dict[str, Value], entry_point: str | None) -> Value:
    if entry_point is None:
        return None
    try:
        return namespace.setdefault("candidate", look_up(namespace, entry_point))
    except NotDefined as error:
        raise NameError(str(error)) from None


def _function_identities() -> dict[str, tuple[int, int]]:
    """Return the identities of functions that tests use, such as `TestCase.assertEqual` and `all`, by name."""
    functions = {
        f"{owner_name}.{name}": value
        for owner_name, owner in _GUARDED.items()
        for name, value in vars(owner).items()
        if callable(value)
    }
    functions |= {name: value for name, value in vars(builtins).items() if name not in _REPLACEABLE and callable(value)}
    return {name: (id(value), id(getattr(value, "__code__", None))) for name, value in functions.items()}
