"""Runs tests with pytest, so that fixtures, parameters, marks and classes work as their author expects.

    @pytest.mark.parametrize("a, b, c", [(1, 2, 3)])
    def test_sum(a, b, c): ...                             test "test_sum[1-2-3]"
    class TestAdd:
        def test_file(self, tmp_path): ...                 test "TestAdd.test_file"

The session of pytest is created once, before a process is forked for each job. Only plug-ins of pytest itself and
pytest-mock are loaded.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Generator, Mapping, Set
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest
from _pytest.skipping import evaluate_xfail_marks

from ..program import run_coroutine
from ..wire.value_types import Value
from .report import Report
from .statements import FILE, Plan

_LEFT_OUT = """
cacheprovider debugging doctest faulthandler junitxml pastebin setuponly setupplan stepwise terminal threadexception
unraisableexception warnings
""".split()
"""Plug-ins of pytest that are disabled: they handle terminals, files and threads of whole runs."""


@cache
def session() -> pytest.Session:
    """Return pytest's session without any tests."""
    arguments = ["-s", "--assert=plain", "--noconftest", "-c", "/dev/null", "--rootdir", "/"]
    arguments += [part for name in _LEFT_OUT for part in ("-p", f"no:{name}")]
    arguments += ["--disable-plugin-autoload", *(["-p", "pytest_mock"] if find_spec("pytest_mock") else [])]
    config = pytest.Config.fromdictargs({"tbstyle": "no", "trace": False, "usepdb": False}, arguments)
    config._do_configure()
    made = pytest.Session.from_config(config)
    config.hook.pytest_sessionstart(session=made)
    return made


class _Suite(pytest.Module):
    """The test code, as a module that is already loaded."""

    def _getobj(self) -> Value:
        return sys.modules[self.name]


class _Reporter:
    """Reports each test once, when it is over."""

    def __init__(self, report: Report, plan: Plan, tests: Set[str]) -> None:
        self._tests = tests
        self._report = report
        self._plan = plan
        self._trouble: BaseException | str | None = None
        self._skip_reason: str | None = None

    @pytest.hookimpl(tryfirst=True)
    def pytest_pycollect_makeitem(self, collector: pytest.Collector, name: str) -> list[pytest.Item] | None:
        """Skip names that the module has imported."""
        return [] if isinstance(collector, _Suite) and name not in self._tests else None

    def pytest_pyfunc_call(self, pyfuncitem: pytest.Function) -> bool | None:
        """Run an asynchronous test to its end."""
        if not inspect.iscoroutinefunction(pyfuncitem.obj):
            return None
        names = pyfuncitem._fixtureinfo.argnames
        run_coroutine(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names}))
        return True

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Report code that could not be searched for tests."""
        if not report.passed:
            self._report.total += 1
            self._report.add_failure(report.nodeid.partition("::")[2] or "the collection", None, str(report.longrepr))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Note the outcome of setup, call or teardown, and report the test after teardown."""
        outcome = yield
        name = name_of(item)
        if call.when == "setup":
            self._trouble = self._skip_reason = None
            self._report.begin()
            if outcome.passed and evaluate_xfail_marks(item) is not None:
                self._report.expect_failure(name)
        error = call.excinfo.value if call.excinfo is not None else None
        if outcome.outcome == "failed":
            self._trouble = self._trouble or error or str(outcome.longrepr)
        elif outcome.outcome == "skipped" or hasattr(outcome, "wasxfail"):
            self._skip_reason = self._skip_reason or str(getattr(outcome, "wasxfail", None) or error or "skipped")
        if call.when == "teardown":
            if self._trouble is not None:
                self._report.add_failure(name, name, self._trouble)
            elif self._skip_reason is not None and "empty parameter set" not in self._skip_reason:
                self._report.add_skip(name, self._skip_reason)
            else:
                self._report.add_success(
                    name, self._plan.line_of(getattr(item, "function", getattr(item, "obj", None)))
                )
        return outcome


def name_of(item: pytest.Item) -> str:
    """Return the name that a test has in reports: `TestAdd.test_file[1-2]`."""
    return item.nodeid.partition("::")[2].replace("::", ".")


def run_by_pytest(defined: Mapping[str, Value], module: str, report: Report, plan: Plan) -> None:
    """Run the tests among the names that test code has defined."""
    run = session()
    if (folders := getattr(run.config, "_tmp_path_factory", None)) is not None:
        folders._basetemp = Path.cwd()
    suite: _Suite = _Suite.from_parent(run, path=Path("/", FILE), name=module, nodeid=FILE)
    tests = {name for name, value in defined.items() if getattr(value, "__module__", module) == module}
    run.config.pluginmanager.register(_Reporter(report, plan, tests))
    report.watch.is_collecting = True
    collected = vars(run)["items"] = list(run.genitems(suite))
    run.config.hook.pytest_collection_modifyitems(session=run, config=run.config, items=collected)
    report.watch.is_collecting = False
    report.total += len(collected)
    run.config.hook.pytest_runtestloop(session=run)
