"""Role `tests`: run test code here and the solution in a partner's process (`serve.py`).

    {"kind": "asserts", "code": "assert add(1, 2) == 3", "entry_point": "add", "prelude": "", "codecs": {},
     "stop_first": true, "seed": 17}

kind: `asserts` or `unittest`. The lines that come of it are those of `report.py`, and further

    {"not_loaded": [type, message]}     the program failed before any test
    {"bad_suite": [type, message]}      the test code, or what stands before it, fails without the solution's doing
    {"cannot_isolate": why}             the test code has to share a process with the solution; the rest means nothing
    {"gone": why}                       the solution's process ended or talked nonsense: from there on no test passed

What is expected is in this process only. The solution's names are stubs here (`names.py`, `stubs.py`).
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from ..program import PRELUDE_FILE, run, told
from ..test_code.library_functions import uses_numpy as numpy_is_meant
from ..test_code.report import Report
from ..test_code.running import FILE, fresh_randomness, run_code
from ..test_code.statements import Plan, plan
from ..wire import from_json
from ..wire.lines import write
from .argument_use import Later
from .remote_objects import CannotIsolate
from .session import NoSuchName, NotLoaded, Session, SolutionGone
from .solution_names import SolutionFinder, SolutionNames

SUITE = "suite"


def run_tests(payload: bytes) -> None:
    request = from_json(payload, len(payload))
    fresh_randomness(request["seed"])
    module = ModuleType(SUITE)
    sys.modules[SUITE] = module
    try:
        planned = plan(request["code"])
        run(request["prelude"], PRELUDE_FILE, module.__dict__)
    except BaseException as error:
        write({"bad_suite": told(error)[:2]})
        return
    uses_numpy = "numpy" in request["code"] or "numpy" in request["prelude"] or "np." in request["code"]
    uses_numpy = uses_numpy or numpy_is_meant(request["code"])
    session = Session(module.__dict__, request["codecs"], uses_numpy, Later(planned.tree, FILE))
    report = Report(session, request["stop_first"])
    try:
        session.wait_until_loaded()
        _run(request, planned, module.__dict__, session, report)
    except NotLoaded as error:
        write({"not_loaded": error.args[0]})
        report.total = max(report.total, len(planned.units), 1)
    except (SolutionGone, CannotIsolate):
        report.total += 1
    if session.cannot is not None:
        write({"cannot_isolate": session.cannot})
    elif session.broken is not None:
        write({"gone": session.broken})
    report.done()


def _run(request: dict[str, Any], planned: Plan, namespace: dict[str, Any], session: Session, report: Report) -> None:
    entry_point = request["entry_point"]
    names = SolutionNames(session, planned.tree, entry_point)
    namespace["__builtins__"] = names
    SolutionFinder(names, session, entry_point).install()
    candidate = None
    if entry_point:
        try:
            candidate = names["candidate"] = session.entry(entry_point)
        except (SolutionGone, CannotIsolate):
            raise
        except BaseException as error:
            report.total = max(len(planned.units), 1)
            missing = isinstance(error, NoSuchName)
            report.failure("entry point", None, NameError(str(error)) if missing else error)
            return
        if entry_point.isidentifier():
            names[entry_point] = candidate
    elif planned.check is not None:
        write({"bad_suite": ["ValueError", f"{planned.check}(candidate) needs an entry point"]})
        return
    run_code(planned, request["code"], namespace, candidate, report, request["kind"] == "unittest")
