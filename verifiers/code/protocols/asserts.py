"""Test code: `check(candidate)` functions, bare assertions and unittest cases.

In order of preference:

1. assertions that are calls and comparisons become data: one process makes the calls, comparisons happen here
   (`checks/lowering.py`), save where objects of the solution's classes are compared with each other;
2. other test code runs in a sandboxed process of its own, which calls the solution's process by message
   (`inside/test_session/`);
3. test code that has to share the solution's process (it patches the solution's modules, reads its output, passes
   objects that cannot travel) runs there, and the verdict is marked `one_process`: a solution could tamper with it.

Whether tests and solution run in separate processes depends on the suite alone, never on what a solution does.

Whether test code does something that cannot be done from another process than the solution's.

    needs_one_process("with patch('solution.now'): ...")     "it imports unittest.mock"
    needs_one_process("assert Vector(1) + Vector(2) == Vector(3)")    "it applies operators to objects of Vector"
    needs_one_process("assert add(1, 2) == 3")               None

Only the test code is looked at, and never a solution: which way tests are run must not be the choice of what they test.
This finds what can be read off the code; passing an object that cannot travel is noticed when it happens.
"""

from __future__ import annotations

import ast
import builtins
import dataclasses
import hashlib
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from truegold.verifiers.code.checks.lowering import lower
from truegold.verifiers.code.outcomes import (
    ONE_PROCESS,
    SEPARATE_PROCESSES,
    CannotJudge,
    CaseResult,
    Failure,
    Judged,
    failed_case,
    failed_end,
    last_line,
    passed_case,
)
from truegold.verifiers.code.protocols.python_tests import NeedsRunning, PartsBudget, Source, judge_lowered, lines
from truegold.verifiers.code.suite import Asserts, UnitTest
from truegold.verifiers.sandbox.execution import Execution, Job
from truegold.verifiers.sandbox.inside.preload import warm_modules
from truegold.verifiers.sandbox.inside.test_code.library_functions import is_solution_module, library_names
from truegold.verifiers.sandbox.inside.wire import Undecodable, from_json, to_json
from truegold.verifiers.sandbox.limits import Limits
from truegold.verifiers.sandbox.local import Local
from truegold.verifiers.verdict import Reason

TWO_PROCESSES = "two_processes"
NONCE_BYTES = 16
SEED_BYTES = 8
MAX_MESSAGE_PARTS = 2_000_000
"""Enough for the messages of some tens of thousands of tests. In one process with the tests, a program can write there
too."""

_LIMITS = (Reason.TIMEOUT, Reason.LIMIT)
_WITH_NUMPY = frozenset({"numpy", "pandas", "scipy"})
"""Packages whose users may return arrays of numpy's, which then are arrays for test code as well."""


def judge_code(tests: Asserts | UnitTest, source: Source, local: Local, limits: Limits, run_all: bool) -> Judged:
    """Run test code against the program."""
    becomes_data = isinstance(tests, Asserts) and (bool(tests.codecs) or not compares_objects(tests.code))
    if isinstance(tests, Asserts) and becomes_data and (lowered := lower(tests)) is not None:
        try:
            return judge_lowered(lowered, source, tests.codecs, local, limits, run_all)
        except NeedsRunning:
            # What the program returned brought this about: it must not bring it into one process with the tests.
            judged = _run_in_two_processes(tests, source, local, limits, run_all)
            return judged or Judged(
                [failed_case(1.0, error="what it returned cannot be passed on")], 1, 1.0, method=TWO_PROCESSES
            )
    if needs_one_process(tests.code) is None:
        judged = _run_in_two_processes(tests, source, local, limits, run_all)
        if judged is not None:
            return judged
    return _run_in_one_process(tests, source, local, limits, run_all)


def _request(tests: Asserts | UnitTest, source: Source, run_all: bool) -> dict[str, Any]:
    return {
        "kind": "asserts" if isinstance(tests, Asserts) else "unittest",
        "code": tests.code,
        "entry_point": tests.entry_point,
        "prelude": source.prelude,
        "codecs": tests.codecs,
        "stop_first": not run_all,
        "seed": _seed(tests.code, source.program),
        "numpy": not _WITH_NUMPY.isdisjoint(source.warm),
    }


def _seed(code: str, program: str) -> int:
    """Return a seed for tests that draw their inputs: the same for the same row, unknown to the solution's process."""
    digest = hashlib.sha256(f"{code}\0{program}".encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:SEED_BYTES], "big")


def _run_in_two_processes(
    tests: Asserts | UnitTest, source: Source, local: Local, limits: Limits, run_all: bool
) -> Judged | None:
    """Run tests in one process, the solution in another. None where the suite turns out to need a single one."""
    serve = Job("serve", to_json({**source.fields(), "codecs": tests.codecs}), limits, warm=source.warm)
    test = Job("tests", to_json(_request(tests, source, run_all)), limits, warm=warm_modules(tests.code))
    solution, tester = local.sandbox().run_pair(serve, test)
    messages = list(_messages(tester))
    if any("cannot_isolate" in message for message in messages):
        return None
    failure = failed_end(solution)
    # The tester waits while the solution overruns, and is ended by the solution's end. Where the tester came to its own
    # end, the solution's end counts for nothing unless it met a limit.
    if failure is not None and failure[0] not in _LIMITS and tester.ok:
        failure = None
    return _judge_messages(messages, failure or failed_end(tester), tester)


def _run_in_one_process(
    tests: Asserts | UnitTest, source: Source, local: Local, limits: Limits, run_all: bool
) -> Judged:
    nonce = os.urandom(NONCE_BYTES).hex()
    request = {**_request(tests, source, run_all), "program": source.program, "nonce": nonce}
    warm = tuple(sorted({*source.warm, *warm_modules(tests.code)}))
    execution = local.sandbox().run(Job("one_process", to_json(request), limits, warm=warm))
    messages = list(_messages(execution))
    is_complete = any(message.get("nonce") == nonce for message in messages)
    judged = _judge_messages(messages, failed_end(execution), execution, ONE_PROCESS)
    if is_complete or any(not case.passed for case in judged.cases):
        return judged
    case = failed_case(1.0, error="the program ended before the tests did")
    return dataclasses.replace(
        judged,
        cases=[*judged.cases, case],
        total=judged.total + 1,
        total_weight=judged.total_weight + 1.0,
    )


def _messages(execution: Execution) -> Iterator[dict[str, Any]]:
    """Yield what the tests reported."""
    budget = PartsBudget(MAX_MESSAGE_PARTS)
    for line in lines(execution.result):
        if not budget.spend(line):
            break
        try:
            message = from_json(line)
        except Undecodable:
            continue
        if isinstance(message, dict) and all(key in _SHAPES and _SHAPES[key](message[key]) for key in message):
            yield message


def _is_text(value: Any) -> bool:
    return value is None or isinstance(value, str)


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_text, value))


def _are_counts(value: Any) -> bool:
    return isinstance(value, dict) and all(type(value.get(key)) is int for key in ("passed", "total"))


_SHAPES: Mapping[str, Callable[[Any], bool]] = {
    **dict.fromkeys(("test", "line", "nonce", "cannot_isolate", "gone"), _is_text),
    **dict.fromkeys(("error", "bad_suite", "not_loaded"), _are_texts),
    "calls": lambda value: value is None or _are_texts(value),
    "ok": lambda value: isinstance(value, bool),
    "done": _are_counts,
}
"""What the lines of `inside/test_code/report.py` and `inside/test_session/tests.py` hold. A line of another shape was
written by a program."""


def _judge_messages(
    messages: Sequence[dict[str, Any]],
    failure: Failure | None,
    execution: Execution,
    isolation: str = SEPARATE_PROCESSES,
) -> Judged:
    # In one process with the program, a message about the suite may be the program's: nothing follows from it.
    suite_error = next((message["bad_suite"] for message in messages if "bad_suite" in message), None)
    if suite_error is not None and isolation == SEPARATE_PROCESSES:
        raise CannotJudge(f"the suite itself fails: {': '.join(map(str, suite_error[:2]))}")
    case_results = [_case_result(message, failure) for message in messages if "test" in message]
    program_error = next((message[key] for message in messages for key in _PROGRAM_ERRORS if key in message), None)
    if program_error is not None and failure is None:
        error = program_error if isinstance(program_error, str) else ": ".join(map(str, program_error[:2]))
        failure = Reason.MISMATCH, error
    counts = next((message["done"] for message in messages if "done" in message), None)
    if counts is not None and counts["total"] == 0 and isolation == SEPARATE_PROCESSES:
        raise CannotJudge("the suite has no tests: nothing in its code asserts anything", Reason.VERIFIER_ERROR)
    total = max(len(case_results), counts["total"] if counts is not None else 0)
    if counts is None or (len(case_results) < total and all(case.passed for case in case_results)):
        unfinished = f"the tests did not come to their end: {last_line(execution.stderr)}"
        reason, error = failure or (Reason.MISMATCH, unfinished)
        if not case_results or case_results[-1].passed:
            case_results.append(failed_case(1.0, reason, error=error.removesuffix(": ")))
        total = max(total, len(case_results))
    method = ONE_PROCESS if isolation == ONE_PROCESS else TWO_PROCESSES
    return Judged(case_results, total, float(total), isolation, method)


_PROGRAM_ERRORS = ("not_loaded", "gone")
"""Messages which say that the solution did not load, or that its process ended."""


def _case_result(message: dict[str, Any], failure: Failure | None) -> CaseResult:
    if message.get("ok") is True:
        return passed_case()
    error = ": ".join(str(part) for part in (message.get("error") or [])[:2])
    reason = failure[0] if failure is not None and failure[0] in _LIMITS else Reason.MISMATCH
    calls = message.get("calls")
    got = str(calls) if calls else None
    return failed_case(1.0, reason, test=message.get("line") or message.get("test"), error=error, got=got)


CACHED_SUITES = 256
"""How many suites' answers are kept."""

_FOREIGN_FREE = frozenset({"numpy", "pytest", "hypothesis", "sortedcontainers"})
"""Packages whose values can travel between processes, or that have none."""

_SHARING = frozenset(
    "mock unittest.mock inspect gc weakref importlib threading multiprocessing concurrent subprocess socket sqlite3"
    " tempfile shutil logging tracemalloc dis pickle".split()
)
"""Modules that deal with the process or with the folder that it runs in."""

_FIXTURES = frozenset("mocker monkeypatch capsys capfd caplog tmp_path tmpdir recwarn".split())

_CALLS = {
    "open": "it opens files",
    "globals": "it looks at the names of the process",
    "redirect_stdout": "it reads what the solution prints",
    "redirect_stderr": "it reads what the solution prints",
    "assertLogs": "it reads what the solution logs",
    **dict.fromkeys("assertWarns assertWarnsRegex catch_warnings warns".split(), "it reads what the solution warns of"),
}

_FILE_FUNCTIONS = frozenset(
    "makedirs mkdir remove unlink rename replace rmdir listdir scandir walk chdir exists isfile isdir getsize stat"
    " write_text read_text write_bytes read_bytes touch".split()
)
_FILE_OWNERS = frozenset({"os", "path", "Path", "pathlib"})

_STATE = frozenset({"sys.stdin", "sys.stdout", "sys.stderr", "sys.argv", "sys.path", "os.environ", "sys.modules"})

_CAPITALISED_CALL = re.compile(r"\b_*[A-Z]\w*[\s)\\]*\(")
"""What every call of a class has, in code of ASCII. Most test code has none, and need not be read for that."""

_COMPARING = frozenset(
    "assertEqual assertNotEqual assertGreater assertGreaterEqual assertLess assertLessEqual assertAlmostEqual"
    " assertNotAlmostEqual assertCountEqual assertFalse assertTrue hash sorted sum max min abs round bool".split()
)


@lru_cache(maxsize=CACHED_SUITES)
def needs_one_process(code: str) -> str | None:
    """Return why the code has to share a process with the solution.

    None where it does not have to, or cannot be read.
    """
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError, SystemError):
        return None
    seeds = draws = False
    for node in ast.walk(tree):
        if (reason := _node_reason(node)) is not None:
            return reason
        if isinstance(node, ast.Name) and node.id == "__file__":
            return "it asks where its file lies"
        if isinstance(node, ast.Call) and "random" in _dotted_name(node.func):
            seeds |= _dotted_name(node.func).endswith(".seed")
            draws |= not _dotted_name(node.func).endswith(".seed")
    if seeds and not draws:
        return "it seeds the random numbers of the solution"
    return _class_reason(tree)


@lru_cache(maxsize=CACHED_SUITES)
def compares_objects(code: str) -> bool:
    """Return whether the code compares objects of the solution's classes with each other: `V(1) + V(2) == V(3)`."""
    if code.isascii() and not _CAPITALISED_CALL.search(code):
        return False
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError, SystemError):
        return False
    known = set(_defined_names(tree)) | vars(builtins).keys() | library_names(tree, None)

    def is_object(node: ast.AST) -> bool:
        if isinstance(node, ast.BinOp):
            return is_object(node.left) or is_object(node.right)
        name = _constructed_class(node.operand if isinstance(node, ast.UnaryOp) else node)
        return name is not None and name not in known

    compared = (node for node in ast.walk(tree) if isinstance(node, ast.Compare))
    return any(is_object(node.left) and any(map(is_object, node.comparators)) for node in compared)


def _node_reason(node: ast.AST) -> str | None:
    if isinstance(node, ast.Import | ast.ImportFrom):
        return _import_reason(node)
    if isinstance(node, ast.Call):
        return _call_reason(node)
    if isinstance(node, ast.FunctionDef) and (used := {a.arg for a in node.args.args} & _FIXTURES):
        return f"it uses the fixture {min(used)}"
    if isinstance(node, ast.AsyncFor | ast.AsyncWith):
        return "it steps through asynchronous objects of the solution"
    targets: list[ast.expr] = []
    if isinstance(node, ast.Assign):
        targets = node.targets
    elif isinstance(node, ast.AugAssign):
        targets = [node.target]
    for target in targets:
        name = _dotted_name(target.value if isinstance(target, ast.Subscript) else target)
        if name in _STATE:
            return f"it changes {name}"
    return None


def _import_reason(node: ast.Import | ast.ImportFrom) -> str | None:
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    elif node.level:
        return None
    else:
        names = [node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)]
    for name in names:
        root = name.partition(".")[0]
        if root in _SHARING or name in _SHARING:
            return f"it imports {name if name in _SHARING else root}"
        if root not in sys.stdlib_module_names and root not in _FOREIGN_FREE and not is_solution_module(root):
            return f"it imports {root}, whose objects cannot be passed between processes"
    return None


def _call_reason(node: ast.Call) -> str | None:
    name = _dotted_name(node.func)
    last = name.rpartition(".")[2]
    if last in _CALLS and (last != "open" or name in {"open", "io.open"}):
        return _CALLS[last]
    owner = name.rpartition(".")[0].rpartition(".")[2]
    if last in _FILE_FUNCTIONS and (owner in _FILE_OWNERS or last.endswith(("_text", "_bytes"))):
        return "it uses files"
    return None


def _dotted_name(node: ast.AST) -> str:
    """Return `a.b.c` as text, and `().c` where something else than a name has the attribute."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    parts.append(node.id if isinstance(node, ast.Name) else "()")
    return ".".join(reversed(parts))


def _class_reason(tree: ast.Module) -> str | None:
    """Return why the code shares classes: it derives from the solution's, or lets objects of them compare and compute.

    A class of the solution is a capitalised name that the code calls and does not define.
    """
    known = set(_defined_names(tree)) | vars(builtins).keys() | library_names(tree, None)
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            for base in node.bases:
                if isinstance(base, ast.Name) and base.id not in known:
                    return f"it derives a class from {base.id}"
    classes = {name for node in ast.walk(tree) if (name := _constructed_class(node)) and name not in known}
    if not classes:
        return None
    class_of = _classes_of_variables(tree, classes)
    for node in ast.walk(tree):
        for operand in _operands(node):
            name = _constructed_class(operand)
            if name in classes or (name := class_of.get(_dotted_name(operand))) is not None:
                return f"it applies operators to objects of {name}"
    return None


def _defined_names(tree: ast.Module) -> Iterator[str]:
    """Yield the names that the code defines, save those that it imports from the solution."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Import):
            yield from ((alias.asname or alias.name).partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not is_solution_module(node.module or "solution"):
            yield from (alias.asname or alias.name for alias in node.names)


def _constructed_class(node: ast.AST) -> str | None:
    """Return the capitalised name that the expression calls: `Vector` of `Vector(1)` and of `solution.Vector(1)`."""
    if not isinstance(node, ast.Call):
        return None
    owner, _, name = _dotted_name(node.func).rpartition(".")
    return name if name.lstrip("_")[:1].isupper() and (not owner or is_solution_module(owner)) else None


def _classes_of_variables(tree: ast.Module, classes: set[str]) -> dict[str, str]:
    """Return the class of each variable and attribute that such an object is assigned to."""
    class_of: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and (name := _constructed_class(node.value)) in classes and name is not None:
            class_of |= {
                _dotted_name(target): name for target in node.targets if isinstance(target, ast.Name | ast.Attribute)
            }
    return class_of


def _operands(node: ast.AST) -> list[ast.expr]:
    """Return what an expression compares, computes with, hashes or takes the truth of.

    What is compared with a literal does not count: functions may have capitalised names, and `Sort(x) == [1, 2]` says
    that it is one.
    """
    if isinstance(node, ast.Compare):
        return _compared_operands(node)
    if isinstance(node, ast.BinOp):
        return [node.left, node.right]
    if isinstance(node, ast.UnaryOp):
        return [] if _constructed_class(node.operand) else [node.operand]
    if isinstance(node, ast.Set | ast.Dict):
        return [key for key in (node.elts if isinstance(node, ast.Set) else node.keys) if key is not None]
    if isinstance(node, ast.Call) and _dotted_name(node.func).rpartition(".")[2] in _COMPARING:
        return _passed_operands(node)
    return []


def _compared_operands(node: ast.Compare) -> list[ast.expr]:
    operands: list[ast.expr] = []
    for left, sign, right in zip([node.left, *node.comparators], node.ops, node.comparators, strict=False):
        if isinstance(sign, ast.Is | ast.IsNot) or _is_literal(left) or _is_literal(right):
            continue
        operands += [left] if isinstance(sign, ast.In | ast.NotIn) else [left, right]
    return operands


def _passed_operands(node: ast.Call) -> list[ast.expr]:
    if len(node.args) == 1:
        argument = node.args[0]
        elements = argument.elts if isinstance(argument, ast.List | ast.Tuple) else []
        return [*elements, *([] if _constructed_class(argument) else [argument])]
    return [] if any(map(_is_literal, node.args)) else node.args


def _is_literal(node: ast.expr) -> bool:
    return not any(isinstance(below, ast.Name | ast.Call) for below in ast.walk(node))
