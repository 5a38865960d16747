"""Role `one_process`: runs a program and its tests in one namespace of one process.

    {"prelude": "", "program": "def add(a, b): ...", "kind": "unittest", "code": "...", "entry_point": "add",
     "stop_first": true, "seed": 17, "nonce": "6f1c..."}

This is for test code that cannot be apart from the solution (`test_code/isolation.py`). The lines are those of
`test_code/report.py` and, where every test passed, {"nonce": ...} at the end: a program that ends the process before
that, by `sys.exit` or worse, has not passed.

The verdict is weak. The program shares its process with the tests and can search it, override what they use, and
answer comparisons. Replacing assertions and builtins is noticed unless it is undone in time. While the program runs,
the nonce is on the interpreter's evaluation stack only, so that walking frames and objects does not lead to it.
"""

from __future__ import annotations

import builtins
import math
import unittest
from contextlib import suppress
from typing import Any

from ..program import NotDefined, describe_error, load, look_up
from ..wire import from_json
from ..wire.json_lines import write_result
from .statements import plan_units
from .test_run import Report, RunEnded, Unwatched, run_code, seed_randomness

_GUARDED: dict[str, Any] = {
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


def _run_program_and_tests(request: dict[str, Any]) -> bool:
    """Run them, report what came of each test, and return whether all passed."""
    guard = _ReplacementGuard()
    report = Report(Unwatched(), request["stop_first"])
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


def _find_candidate(namespace: dict[str, Any], entry_point: str | None) -> Any:
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
