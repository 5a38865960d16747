"""Role `tests`: runs test code here and the solution in a partner's process (`serve.py`).

    {"kind": "asserts", "code": "assert add(1, 2) == 3", "entry_point": "add", "prelude": "", "codecs": {},
     "stop_first": true, "seed": 17, "numpy": false}

kind: `asserts` or `unittest`. The lines that come of it are those of `test_code/report.py`, and further

    {"not_loaded": [type, message]}     the program failed before any test
    {"bad_suite": [type, message]}      the test code, or what stands before it, fails without the solution's doing
    {"cannot_isolate": why}             the test code has to share a process with the solution; the rest means nothing
    {"gone": why}                       the solution's process ended or talked nonsense: from there on no test passed

Expected values are in this process only. The solution's names stand for remote objects here.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from ..program import PRELUDE_FILE, describe_error, run_source
from ..test_code.library_functions import may_use_numpy
from ..test_code.report import Report
from ..test_code.running import FILE, run_code, seed_randomness
from ..test_code.statements import Plan, plan_units
from ..wire import from_json
from ..wire.lines import write_result
from .argument_use import ArgumentUse
from .remote_objects import CannotIsolate
from .sending import TEST_MODULE
from .session import NoSuchName, NotLoaded, Session, SolutionGone
from .solution_names import SolutionFinder, SolutionNames


def run_tests(payload: bytes) -> None:
    """Run the test code of the payload, a line of JSON."""
    request = from_json(payload, len(payload))
    seed_randomness(request["seed"])
    module = ModuleType(TEST_MODULE)
    sys.modules[TEST_MODULE] = module
    try:
        plan = plan_units(request["code"])
        run_source(request["prelude"], PRELUDE_FILE, module.__dict__)
    except BaseException as error:
        write_result({"bad_suite": describe_error(error)[:2]})
        return
    uses_numpy = "numpy" in request["code"] or "numpy" in request["prelude"] or "np." in request["code"]
    uses_numpy = uses_numpy or request.get("numpy", False) or may_use_numpy(request["code"])
    session = Session(module.__dict__, request["codecs"], uses_numpy, ArgumentUse(plan.tree, FILE))
    report = Report(session, request["stop_first"])
    try:
        session.wait_until_loaded()
        _run_against_solution(request, plan, module.__dict__, session, report)
    except NotLoaded as error:
        write_result({"not_loaded": error.args[0]})
        report.total = max(report.total, len(plan.units), 1)
    except (SolutionGone, CannotIsolate):
        report.total += 1
    if session.isolation_problem is not None:
        write_result({"cannot_isolate": session.isolation_problem})
    elif session.broken_reason is not None:
        write_result({"gone": session.broken_reason})
    report.finish()


def _run_against_solution(
    request: dict[str, Any], plan: Plan, namespace: dict[str, Any], session: Session, report: Report
) -> None:
    entry_point = request["entry_point"]
    names = SolutionNames(session, plan.tree, entry_point)
    namespace["__builtins__"] = names
    SolutionFinder(names, session, entry_point).install()
    candidate = None
    if entry_point:
        try:
            candidate = names["candidate"] = session.look_up_entry(entry_point)
        except (SolutionGone, CannotIsolate):
            raise
        except BaseException as error:
            report.total = max(len(plan.units), 1)
            missing = isinstance(error, NoSuchName)
            report.add_failure("entry point", None, NameError(str(error)) if missing else error)
            return
        if entry_point.isidentifier():
            names[entry_point] = candidate
    elif plan.check is not None:
        write_result({"bad_suite": ["ValueError", f"{plan.check}(candidate) needs an entry point"]})
        return
    run_code(plan, request["code"], namespace, candidate, report, request["kind"] == "unittest")
