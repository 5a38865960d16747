"""Tests Python functions by calls with expected results, or by test code.

    {"type": "calls", "entry_point": "add", "cases": [{"args": [1, 2], "expected": 3}]}
    {"type": "asserts", "entry_point": "add", "code": "def check(candidate): assert candidate(1, 2) == 3"}

All calls of a suite run in one sandboxed process, which gets the arguments, but never the expected results. Results are
sent as lines of JSON and compared in the verifier's process. A hostile program could send 64 million empty lines, or
lines with ten million lists. So the size of each line is estimated before it is parsed (`lines`).

Test code runs in the first of these ways that is possible:

1. Assertions that are calls and comparisons become data: one process makes the calls, and the verifier compares the
   results (`checks/lowering.py`). If a result is an object that is not plain data, the second way is used.
2. The test code runs in a second sandboxed process, which calls the solution's process by messages
   (`inside/test_session/`).
3. Test code that patches the solution's modules, reads its output, or passes objects that cannot be sent runs in the
   solution's process. The verdict is marked `one_process`, because the solution could tamper with the tests.

The third way depends on the suite alone, never on the solution. `needs_one_process` returns the reason:

    needs_one_process("with patch('solution.now'): ...")     "it imports unittest.mock"
    needs_one_process("class Mine(Base): ...")               "it derives a class from Base"
    needs_one_process("assert add(1, 2) == 3")               None

Objects that the tests pass and that cannot be sent between processes are noticed only when the tests run.
"""

from __future__ import annotations

import ast
import builtins
import hashlib
import os
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib.resources import files

from truegold.verifiers.code import outcomes
from truegold.verifiers.code.checks.lowering import CACHED_SUITES, Lowered, SolutionCall, lower
from truegold.verifiers.code.drivers import Signature
from truegold.verifiers.code.outcomes import (
    CannotJudge,
    CaseResult,
    Failure,
    Judged,
    Raised,
    failed_case,
    passed_case,
    without_addresses,
)
from truegold.verifiers.code.python_source import UNREADABLE
from truegold.verifiers.code.suite.imports import continued_names, imports_for, means_solution, solution_modules
from truegold.verifiers.code.suite.reading import Asserts, CallCase, Calls, Codecs, UnitTest
from truegold.verifiers.code.value_comparison import call_checker_of, shown_value, to_nodes, to_values
from truegold.verifiers.sandbox.execution import BOX_MB, Execution, Job, Limits
from truegold.verifiers.sandbox.inside.preload import PYTEST
from truegold.verifiers.sandbox.inside.program import MODULE
from truegold.verifiers.sandbox.inside.test_code.library_functions import defined_names, library_names
from truegold.verifiers.sandbox.inside.wire.decoding import decode
from truegold.verifiers.sandbox.inside.wire.encoding import are_plain, encode, from_json, to_json
from truegold.verifiers.sandbox.inside.wire.value_types import KNOWN_CODECS, Json, Undecodable
from truegold.verifiers.sandbox.local import Local
from truegold.verifiers.sandbox.pool import warm_modules
from truegold.verifiers.verdict import Reason

_WORDS = tomllib.loads(files(__package__).joinpath("isolation.toml").read_text(encoding="utf-8"))
_CALLS: Mapping[str, str] = _WORDS.pop("calls")
"""Functions that need one process, and the reason for each."""
_SETS = {name: frozenset(words.split()) for name, words in _WORDS.items()}
"""Sets of names, as `isolation.toml` describes them."""


@lru_cache(maxsize=CACHED_SUITES)
def needs_one_process(code: str) -> str | None:
    """Return the reason why test code has to share a process with the solution, or None.

    Returns None also for code that cannot be parsed.
    """
    try:
        tree = ast.parse(code)
    except UNREADABLE:
        return None
    reasons = (_node_reason(node, code) for node in ast.walk(tree))
    return next(filter(None, reasons), None) or _running_reason(tree, "pandas" in code) or _class_reason(tree, code)


def _node_reason(node: ast.AST, code: str) -> str | None:
    if isinstance(node, ast.Import | ast.ImportFrom):
        return _import_reason(node, code)
    if isinstance(node, ast.Call):
        return _call_reason(node)
    if isinstance(node, ast.FunctionDef) and (used := {a.arg for a in node.args.args} & _SETS["fixtures"]):
        return f"it uses the fixture {min(used)}"
    if isinstance(node, ast.AsyncFor | ast.AsyncWith):
        return "it uses asynchronous objects of the solution"
    targets = node.targets if isinstance(node, ast.Assign) else []
    targets = [node.target] if isinstance(node, ast.AugAssign) else targets
    for target in targets:
        name = _dotted_name(target.value if isinstance(target, ast.Subscript) else target)
        if name in _SETS["state"]:
            return f"it changes {name}"
    return None


def _import_reason(node: ast.Import | ast.ImportFrom, code: str) -> str | None:
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    elif node.level or means_solution(node.module or "", code):
        return None
    else:
        names = [node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)]
    for name in names:
        root = name.partition(".")[0]
        if root in _SETS["sharing"] or name in _SETS["sharing"]:
            return f"it imports {name if name in _SETS['sharing'] else root}"
        is_known = root in sys.stdlib_module_names or root in _SETS["foreign_free"] or means_solution(name, code)
        if not is_known:
            return f"it imports {root}, whose objects cannot be passed between processes"
    return None


def _call_reason(node: ast.Call) -> str | None:
    if any(keyword.arg == "allow_pickle" for keyword in node.keywords):
        return _CALLS["read_pickle"]
    return _CALLS.get(_dotted_name(node.func).rpartition(".")[2])


def _running_reason(tree: ast.Module, with_pandas: bool) -> str | None:
    """Return a reason if the code may execute a text from the solution, as in `eval(f(1))` or `map(eval, f(1))`.

    Such a text must not run in the process of the tests. Texts that are written in the test code may run there. A call
    of `format` is treated like `eval`, since `f(1).format(user)` can read every attribute of `user`.
    """
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    paths = {
        alias.asname or alias.name: f"{node.module}.{alias.name}" if isinstance(node, ast.ImportFrom) else alias.name
        for node in imports
        for alias in node.names
    }
    methods = _SETS["running_methods"] | (_SETS["running_by_pandas"] if with_pandas else set())
    texts = _names_of_texts(tree)
    harmless = set()
    for node in ast.walk(tree):
        name = _dotted_name(getattr(node, "func", node))
        first, dot, rest = name.partition(".")
        path = f"{paths.get(first, first)}{dot}{rest}".removeprefix("builtins.")
        last = path.rpartition(".")[2]
        if isinstance(node, ast.Call):
            arguments = [each.value for each in node.keywords if each.arg in _SETS["texts"] | {None}]
            arguments += node.args[: 2 if "timeit" in path else 1]
            if last in _SETS["formatting"] and not _is_constant(getattr(node.func, "value", node.func), texts):
                arguments = [*node.args, *(each.value for each in node.keywords)]
                path = "eval" if "." in path else path
            if all(_is_constant(each, texts) for each in arguments):
                harmless.add(id(node.func))
                continue
        elif id(node) in harmless:
            continue
        if path in _SETS["running"] or ("." in path and last in methods):
            return f"it calls {name} with a value that may come from the solution"
    return None


def _names_of_texts(tree: ast.Module) -> set[str]:
    """Return the names that the code assigns only constants to."""
    bound = Counter(defined_names(tree))
    constants = Counter(
        target.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and _is_constant(node.value, set())
        for target in node.targets
        if isinstance(target, ast.Name)
    )
    return {name for name, count in constants.items() if count == bound[name]}


def _is_constant(node: ast.expr, texts: set[str]) -> bool:
    """Return whether an expression is a constant, a lambda or a name in `texts`."""
    if isinstance(node, ast.Lambda) or (isinstance(node, ast.Name) and node.id in texts):
        return True
    try:
        ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return False
    return True


def _dotted_name(node: ast.AST) -> str:
    """Return a dotted name as text: `a.b.c`, or `().c` if the attribute belongs to another expression."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    parts.append(node.id if isinstance(node, ast.Name) else "()")
    return ".".join(reversed(parts))


def _class_reason(tree: ast.Module, code: str) -> str | None:
    """Return a reason if the code derives a class from a class of the solution, else None."""
    solutions = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and means_solution(node.module or MODULE, code)
        for alias in node.names
    }
    known = (set(defined_names(tree)) - solutions) | vars(builtins).keys() | library_names(tree, None)
    bases = (base for node in ast.walk(tree) if isinstance(node, ast.ClassDef) for base in node.bases)
    foreign = (base.id for base in bases if isinstance(base, ast.Name) and base.id not in known)
    return next((f"it derives a class from {name}" for name in foreign), None)


ROOM_FACTOR = 2
"""Maximum size of the results, as a multiple of the size of the expected ones: 1.0 and 1.0000001 may both be right."""

MAX_PARTS, MAX_MESSAGE_PARTS = 8_000_000, 2_000_000
"""Maximum number of parts (values within values) of all results, and of all messages of tests."""

LIST_PARTS, OBJECT_PARTS, BYTES_A_PART = 4, 12, 4
"""Weights for estimating the number of parts of a line: LIST_PARTS for each list, OBJECT_PARTS for each object, and one
part for every BYTES_A_PART bytes, since integers may have thousands of digits."""

TOO_LARGE = "ResultTooLarge"
"""The name of the exception that is reported for a result beyond the limit."""

TWO_PROCESSES = "two_processes"
NONCE_BYTES = 16
SEED_BYTES = 8

_LINE = re.compile(rb"[^\n]+")
_OBJECTS = (b'"opaque"', b'"package"')
"""Tags of results that are not plain data."""
_LOADED = b'{"loaded":true}\n'
"""The first line of results: the program was loaded."""
_FOR_PYTEST = re.compile(
    r"\bpytest\.|^[ \t]*class[ \t]+Test\w*[ \t]*(?:\((?![^)]*TestCase)[^)]*\))?:"
    r"|^def[ \t]+(?:setup|teardown)_(?:module|function)\b"
    r"|^[ \t]*(?:async[ \t]+)?def[ \t]+test\w*\([ \t\n]*(?!self\b|cls\b)\w",
    re.MULTILINE,
)
"""A sign of tests for pytest: plain classes `Test...`, module hooks, or test functions with parameters."""
_LIMITS = (Reason.TIMEOUT, Reason.LIMIT)
_WITH_NUMPY = frozenset({"numpy", "pandas", "scipy"})
"""If a program imports one of these packages, test code gets numpy arrays instead of lists."""


@dataclass(frozen=True, slots=True)
class TestedProgram:
    """A Python program from a response, with the settings for running it."""

    program: str
    prelude: str
    """Imports, classes and helpers of the problem, which run before the program in the same namespace."""
    local: Local
    limits: Limits
    imports: str = ""
    """Imports of the test code that the program may rely on, as if program and test code were one file."""

    def fields(self) -> dict[str, str]:
        """Return the program's fields in the request of a job."""
        return {"program": self.program, "prelude": f"{self.imports}{self.prelude}"}

    @property
    def warm(self) -> tuple[str, ...]:
        """The imported modules that may be loaded once for all jobs, before a process is forked for each."""
        return warm_modules(f"{self.imports}{self.prelude}\n{self.program}")


class ExpectedResults:
    """The expected results of a suite, which are plain data, and limits on the size of the results."""

    def __init__(self, values: Sequence[object]) -> None:
        self.values = values
        self.json = to_json(values)
        self.max_bytes = ROOM_FACTOR * len(self.json)
        """Maximum size of the results, in bytes."""

    @property
    def max_parts(self) -> int:
        """Maximum number of parts (values within values) of the results."""
        return ROOM_FACTOR * _count_parts(self.json)


@dataclass(frozen=True, slots=True)
class CallOutcomes:
    """The outcomes of a batch of calls."""

    outcomes: Sequence[object]
    """The outcome of each call: its value, `Raised`, or `NotReturned`."""
    failure: Failure | None
    """The failure that ended the process early, or None."""
    load_error: str | None = None
    """The error that the program raised when it was loaded, or None."""
    has_objects: bool = False
    """Whether a result is not plain data, so that it can be compared only in a sandbox."""


@dataclass(frozen=True, slots=True)
class NotReturned:
    """The outcome of a call that did not return before the process ended."""


class _NeedsRunning(Exception):
    """Raised for a check that has to run in a sandbox, such as the length of an object."""


def judge_calls(tests: Calls, source: TestedProgram, run_all: bool) -> Judged:
    """Call the entry point for every case and compare the results with the expected ones."""
    signature, returned_argument = tests.signature or Signature(), tests.returned_argument
    has_nodes = any((*signature.params, signature.returns))
    if has_nodes:
        cases = tuple(_with_nodes(case, signature) for case in tests.cases)
        tests = replace(tests, cases=cases, plain_args=False, plain_expected=False)
    if tests.plain_args and returned_argument < 0:
        calls = [[0, case.args, {}] for case in tests.cases]
        request = to_json({"functions": [tests.entry_point], "calls": calls, "codecs": tests.codecs})
    else:
        arguments = [SolutionCall(tests.entry_point, list(case.args), dict(case.kwargs)) for case in tests.cases]
        request = _calls_request(arguments, tests.codecs, returned_argument)
    expected = ExpectedResults([case.expected for case in tests.cases]) if tests.plain_expected else None
    returned = _run_calls(source, request, len(tests.cases), tests.codecs, expected)
    if has_nodes:
        returned = replace(returned, outcomes=[_values_of(outcome, signature) for outcome in returned.outcomes])
    return judge_outcomes(tests, returned, run_all)


def judge_outcomes(tests: Calls, returned: CallOutcomes, run_all: bool) -> Judged:
    """Compare the outcomes of a suite's calls with the expected results."""
    find_difference = call_checker_of(tests.checker)
    case_results: list[CaseResult] = []
    equality_decides = tests.plain_expected and find_difference.accepts_equal
    for case, outcome in zip(tests.cases, returned.outcomes, strict=True):
        if equality_decides and (outcome is case.expected or outcome == case.expected):
            case_results.append(passed_case(case.weight))
        elif (failure := failed_call(outcome, returned)) is not None:
            case_results.append(failed_case(case.weight, failure[0], error=failure[1], **_shown_case(case)))
        elif (difference := find_difference(case.expected, outcome)) is not None:
            shown = _shown_case(case)
            case_results.append(failed_case(case.weight, got=shown_value(outcome), error=difference, **shown))
        else:
            case_results.append(passed_case(case.weight))
        if not case_results[-1].passed and not run_all:
            break
    return Judged(case_results, len(tests.cases), sum(case.weight for case in tests.cases), method="calls")


def make_calls(source: TestedProgram, calls: Sequence[SolutionCall], codecs: Codecs) -> CallOutcomes:
    """Load the program and make the calls, in order, in one process."""
    return _run_calls(source, _calls_request(calls, codecs), len(calls), codecs)


def failed_call(outcome: object, calls: CallOutcomes) -> Failure | None:
    """Return the failure of a call without a value, or None if the call returned a value."""
    if isinstance(outcome, NotReturned):
        return calls.failure or (Reason.MISMATCH, calls.load_error or "the program ended before this call returned")
    if isinstance(outcome, Raised):
        reason = Reason.LIMIT if outcome.type == TOO_LARGE else Reason.MISMATCH
        return reason, f"it raised {outcome.type}: {outcome.message}"
    return None


def _with_nodes(case: CallCase, signature: Signature) -> CallCase:
    args = [to_nodes(value, signature.param(index)) for index, value in enumerate(case.args)]
    named = enumerate(case.kwargs.items(), start=len(args))
    kwargs = {name: to_nodes(value, signature.param(index)) for index, (name, value) in named}
    return case._replace(args=tuple(args), kwargs=kwargs, expected=_values_of(case.expected, signature))


def _values_of(outcome: object, signature: Signature) -> object:
    return [] if outcome is None and signature.returns in KNOWN_CODECS else to_values(outcome)


def _shown_case(case: CallCase) -> dict[str, str]:
    parts = [shown_value(value) for value in case.args]
    parts += [f"{name}={shown_value(value)}" for name, value in case.kwargs.items()]
    return {"input": outcomes.cut(", ".join(parts)), "expected": shown_value(case.expected)}


def _calls_request(calls: Sequence[SolutionCall], codecs: Codecs, returned_argument: int = -1) -> bytes:
    """Return the request for some calls.

    returned_argument: the index of the argument that is the result, or -1 if the returned value is the result.
    """
    functions = list(dict.fromkeys(name for name, _, _ in calls))
    indices = {name: index for index, name in enumerate(functions)}
    encoded = [[indices[name], encode(args, codecs), kwargs and encode(kwargs, codecs)] for name, args, kwargs in calls]
    in_place = {"in_place": returned_argument} if returned_argument >= 0 else {}
    return to_json({"functions": functions, "calls": encoded, "codecs": codecs, **in_place})


def _run_calls(
    source: TestedProgram, request: bytes, call_count: int, codecs: Codecs, expected: ExpectedResults | None = None
) -> CallOutcomes:
    """Load the program and make the calls of a request. expected: for larger limits, if these results are large."""
    payload = to_json(source.fields())[:-1] + b"," + request[1:]
    result_bytes = expected.max_bytes if expected else 0
    job = Job("calls", payload, source.limits, warm=source.warm, result_bytes=result_bytes)
    execution = source.local.sandbox().run(job)
    returned = read_results(execution, call_count, codecs, source.limits, expected)
    return replace(returned, has_objects=any(tag in execution.result for tag in _OBJECTS))


def read_results(
    execution: Execution, call_count: int, codecs: Codecs, limits: Limits, expected: ExpectedResults | None
) -> CallOutcomes:
    """Return the outcomes of the calls that a job made."""
    max_line = int(limits.output_mb * 2**20)
    returned = _read_together(execution.result, call_count, codecs, max_line, expected)
    failure = outcomes.failed_end(execution)
    if returned is not None:
        return CallOutcomes(returned, failure)
    max_bytes = max(limits.output_mb * 2**20, BOX_MB * 2**20, expected.max_bytes if expected else 0)
    max_parts = max(MAX_PARTS, expected.max_parts if expected else 0)
    load_error: str | None = None
    values: list[object] = []
    for line in lines(execution.result, max_parts):
        if len(values) == call_count:
            break
        if line is None:
            failure = failure or (Reason.LIMIT, "its results are larger than the limit")
            break
        if len(line) > max_line:
            values.append(Raised(TOO_LARGE, f"the result takes {len(line)} bytes, the limit is {limits.output_mb} MB"))
            continue
        try:
            message = from_json(line)
            if "load_error" in message:
                load_error = ": ".join(map(str, message["load_error"][:2]))
            elif "missing" in message:
                load_error = f"the program has no {message['missing']!r}"
            elif "r" in message:
                values.append(message["r"] if are_plain([message["r"]]) else decode(message["r"], codecs))
            elif "raised" in message:
                values.append(Raised(*[str(part) for part in message["raised"][:2]]))
        except (TypeError, LookupError, Undecodable):
            values.append(Raised("Unreadable", "the returned value cannot be read"))
    missing = call_count - len(values)
    if missing and len(execution.result) >= max_bytes:
        failure = Reason.LIMIT, "its results are larger than the limit"
    if failure is None and missing and load_error is None:
        last_words = outcomes.last_line(execution.stderr)
        failure = Reason.MISMATCH, f"the program ended early: {last_words}".removesuffix(": ")
    return CallOutcomes([*values, *[NotReturned()] * missing], failure, load_error)


def _read_together(
    result: bytes, call_count: int, codecs: Codecs, max_bytes: int, expected: ExpectedResults | None
) -> Sequence[object] | None:
    """Return the results of all calls, read in one step, or None if the lines have to be read one by one."""
    if result.count(b"\n") != call_count + 1 or not (result.startswith(_LOADED) and result.endswith(b"\n")):
        return None
    messages = result.split(b"\n")[1:-1]
    if expected and b"[%b]" % b",".join([message[5:-1] for message in messages]) == expected.json:
        return expected.values
    joined = b"[%b]" % b",".join(messages)
    if len(joined) > max_bytes or _count_parts(joined) > MAX_PARTS:
        return None
    try:
        values: list[object] = [message["r"] for message in from_json(joined) if len(message) == 1]
        if b'"$"' in joined:
            values = [decode(value, codecs) for value in values]
        elif not are_plain(values):
            return None
    except (TypeError, LookupError, Undecodable):
        return None
    return values if len(values) == call_count else None


def lines(result: bytes, max_parts: int) -> Iterator[bytes | None]:
    """Yield the complete, nonempty lines; after `max_parts` parts yield None and stop."""
    for line in _LINE.finditer(result):
        if line.end() < len(result):
            max_parts -= _count_parts(line[0])
            if max_parts < 0:
                yield None
                return
            yield line[0]


def _count_parts(line: bytes) -> int:
    """Return an estimate of the parts (values within values) of a line of JSON, without parsing it."""
    containers = LIST_PARTS * line.count(b"[") + OBJECT_PARTS * line.count(b"{")
    return containers + line.count(b",") + len(line) // BYTES_A_PART + 1


def judge_code(tests: Asserts | UnitTest, source: TestedProgram, run_all: bool) -> Judged:
    """Run test code against the program."""
    if "import" in tests.code:
        source = replace(source, imports=imports_for(source.program, tests.code))
    if isinstance(tests, Asserts):
        lowered = lower(tests.code, tests.entry_point, tests.prelude, tests.stub)
        if isinstance(lowered, Lowered):
            try:
                return _judge_lowered(lowered, source, tests.codecs, run_all)
            except _NeedsRunning:
                # A returned value is the cause, so the tests stay apart: a program must not choose to share a process.
                judged = _run_in_two_processes(tests, source, run_all)
                case = failed_case(1.0, error="the returned value cannot be sent to the tests")
                return judged or Judged([case], 1, 1.0, method=TWO_PROCESSES)
    judged = _run_in_two_processes(tests, source, run_all) if needs_one_process(tests.code) is None else None
    return judged or _run_in_one_process(tests, source, run_all)


@lru_cache(maxsize=CACHED_SUITES)
def _skipped_tests(code: str, entry_point: str | None, prelude: str, local: Local) -> tuple[str, ...]:
    """Return the tests that a suite skips when it runs without a program (`inside/test_session/tests.py`).

    Raises CannotJudge for a suite whose outcome does not depend on the program.
    """
    request: dict[str, object] = {"code": code, "entry_point": entry_point, "prelude": prelude, "seed": 0}
    request |= {"modules": sorted(solution_modules(code)), "codecs": {}, "stop_first": False, "skipped": []}
    request["continued"] = continued_names(code, prelude) if entry_point is None else []
    total, endings = _probe(request, "use", local)
    for stand_in in ("None", "function") if any(each[0] in ("passed", "failed") for each in endings.values()) else ():
        # A test that passes may still depend on the program without calling it: `assert add is not None`.
        _, others = _probe(request, stand_in, local)
        same = {test for test, each in endings.items() if each[0] == others.get(test, ("",))[0]}
        endings = {test: each for test, each in endings.items() if test in same or each[0] in ("skipped", "idle")}
    for test, (outcome, why, _) in endings.items():
        if outcome in ("failed", "idle"):
            raise CannotJudge(f"the suite judges no program: {test}: {why}", Reason.VERIFIER_ERROR)
    skipped = tuple(test for test, each in endings.items() if each[0] == "skipped")
    if total <= sum(int(tests) for _, _, tests in endings.values()):
        why = "all its tests are skipped" if skipped else "its code does not assert anything about a program"
        raise CannotJudge(f"the suite has no tests: {why}", Reason.VERIFIER_ERROR)
    return skipped


def _probe(request: Mapping[str, object], stand_in: str, local: Local) -> tuple[int, dict[str, list[str]]]:
    """Run a suite without a program, with placeholders for the program's names.

    Returns the number of tests, and an entry for each test that ended without using the program:
    `{"test_large": ["skipped", "slow", "1"]}`. An entry has the outcome, the reason, and the number of tests, which is
    above 1 for a skipped class. Raises CannotJudge if the test code cannot run.

    stand_in: the kind of placeholder, such as "None" or "function".
    """
    job = Job("tests", to_json({**request, "probe": stand_in}), Limits(), warm=_warm_for_tests(str(request["code"])))
    total, endings = 1, dict[str, list[str]]()
    for message in _messages(local.sandbox().run(job)):
        if (error := message.get("bad_suite")) is not None:
            raise CannotJudge(f"the suite itself fails: {': '.join(map(str, error[:2]))}")
        if (untouched := message.get("untouched")) is not None and len(untouched) == 4:
            endings.setdefault(str(untouched[0]), [str(each) for each in untouched[1:]])
        if message.get("done") is not None:
            total = message["done"]["total"]
    return total, endings


def _warm_for_tests(code: str) -> tuple[str, ...]:
    """Return the modules that test code imports, with pytest if the tests are written for pytest."""
    names = warm_modules(code)
    return names if PYTEST in names or not _FOR_PYTEST.search(code) else (*names, PYTEST)


def _judge_lowered(lowered: Lowered, source: TestedProgram, codecs: Codecs, run_all: bool) -> Judged:
    """Make the calls of lowered assertions and check the results. Raises `_NeedsRunning`."""
    request = _lowered_request(lowered) if not codecs else _calls_request(lowered.calls, codecs)
    returned = _run_calls(source, request, len(lowered.calls), codecs)
    if returned.has_objects:
        raise _NeedsRunning
    case_results: list[CaseResult] = []
    for check in lowered.checks:
        got = returned.outcomes[check.call]
        if (failure := failed_call(got, returned)) is not None:
            case_results.append(failed_case(1.0, failure[0], test=check.text, error=failure[1]))
        elif (holds := check.holds(got)) is None:
            raise _NeedsRunning
        elif holds:
            case_results.append(passed_case())
        else:
            case_results.append(failed_case(1.0, test=check.text, got=shown_value(got)))
        if not case_results[-1].passed and not run_all:
            break
    return Judged(case_results, len(lowered.checks), float(len(lowered.checks)), method="lowered")


@lru_cache(maxsize=CACHED_SUITES)
def _lowered_request(lowered: Lowered) -> bytes:
    return _calls_request(lowered.calls, {})


def _tests_request(tests: Asserts | UnitTest, source: TestedProgram, run_all: bool) -> dict[str, object]:
    # The seed of tests with random inputs is the same for the same row, and unknown to the solution's process.
    digest = hashlib.sha256(f"{tests.code}\0{source.program}".encode("utf-8", "surrogatepass")).digest()
    return {
        "code": tests.code,
        "entry_point": tests.entry_point,
        "modules": sorted(solution_modules(tests.code)),
        "continued": continued_names(tests.code, source.prelude) if tests.entry_point is None else [],
        "prelude": source.prelude,
        "codecs": tests.codecs,
        "stop_first": not run_all,
        "seed": int.from_bytes(digest[:SEED_BYTES], "big"),
        "numpy": not _WITH_NUMPY.isdisjoint(source.warm),
        "skipped": _skipped_tests(tests.code, tests.entry_point, source.prelude, source.local),
        "probe": "",
    }


def _run_in_two_processes(tests: Asserts | UnitTest, source: TestedProgram, run_all: bool) -> Judged | None:
    """Run the tests in one process and the solution in another.

    Returns None if the tests turn out to need the solution's process.
    """
    serve = Job("serve", to_json({**source.fields(), "codecs": tests.codecs}), source.limits, warm=source.warm)
    request = to_json(_tests_request(tests, source, run_all))
    test = Job("tests", request, source.limits, warm=_warm_for_tests(tests.code))
    solution, tester = source.local.sandbox().run_pair(serve, test)
    messages = list(_messages(tester))
    if any("cannot_isolate" in message for message in messages):
        return None
    failure = outcomes.failed_end(solution)
    # After tests that ended by themselves, only an exceeded limit of the solution's process counts as its failure.
    if failure is not None and failure[0] not in _LIMITS and tester.ok:
        failure = None
    return _judge_messages(messages, failure or outcomes.failed_end(tester), tester)


def _run_in_one_process(tests: Asserts | UnitTest, source: TestedProgram, run_all: bool) -> Judged:
    nonce = os.urandom(NONCE_BYTES).hex()
    request = {**_tests_request(tests, source, run_all), **source.fields(), "nonce": nonce}
    warm = tuple(sorted({*source.warm, *_warm_for_tests(tests.code)}))
    execution = source.local.sandbox().run(Job("one_process", to_json(request), source.limits, warm=warm))
    messages = list(_messages(execution))
    is_complete = any(message.get("nonce") == nonce for message in messages)
    judged = _judge_messages(messages, outcomes.failed_end(execution), execution, outcomes.ONE_PROCESS)
    if is_complete or any(not case.passed for case in judged.cases):
        return judged
    cases = [*judged.cases, failed_case(1.0, error="the program ended before the tests did")]
    return replace(judged, cases=cases, total=judged.total + 1, total_weight=judged.total_weight + 1.0)


_Message = dict[str, Json]
"""A message from the process that runs the tests. Its keys are among those of `_SHAPES`."""


def _messages(execution: Execution) -> Iterator[_Message]:
    """Yield the valid messages of the tests."""
    for line in lines(execution.result, MAX_MESSAGE_PARTS):
        if line is None:
            break
        try:
            message = from_json(line)
        except Undecodable:
            continue
        if isinstance(message, dict) and all(key in _SHAPES and _SHAPES[key](message[key]) for key in message):
            yield message


def _is_text(value: object) -> bool:
    return value is None or isinstance(value, str)


def _are_texts(value: object) -> bool:
    return isinstance(value, list) and all(map(_is_text, value))


_SHAPES: Mapping[str, Callable[[object], bool]] = {
    **dict.fromkeys(("test", "line", "nonce", "cannot_isolate", "gone"), _is_text),
    **dict.fromkeys(("error", "bad_suite", "not_loaded", "untouched"), _are_texts),
    "calls": lambda value: value is None or _are_texts(value),
    "ok": lambda value: isinstance(value, bool),
    "done": lambda value: isinstance(value, dict) and all(type(value.get(key)) is int for key in ("passed", "total")),
}
"""The valid values for each key of a message from `inside/test_code/test_run.py` and `inside/test_session/tests.py`.
Other messages are ignored, since a program may have forged them."""


def _judge_messages(
    messages: Sequence[_Message],
    failure: Failure | None,
    execution: Execution,
    isolation: str = outcomes.SEPARATE_PROCESSES,
) -> Judged:
    is_apart = isolation == outcomes.SEPARATE_PROCESSES
    first = {name: message[name] for message in reversed(messages) for name in message}
    # In one process, the program may have forged a message about the suite, so such messages are ignored.
    if is_apart and (suite_error := first.get("bad_suite")) is not None:
        raise CannotJudge(f"the suite itself fails: {': '.join(map(str, suite_error[:2]))}")
    case_results = [_case_result(message, failure) for message in messages if "test" in message]
    # The solution did not load, or its process ended.
    errors = (message[key] for message in messages for key in ("not_loaded", "gone") if key in message)
    program_error = next(errors, None)
    if program_error is not None and failure is None:
        error = program_error if isinstance(program_error, str) else ": ".join(map(str, program_error[:2]))
        failure = Reason.MISMATCH, error
    counts = first.get("done")
    if is_apart and counts is not None and counts["total"] == 0:
        raise CannotJudge("the suite has no tests: its code does not assert anything", Reason.VERIFIER_ERROR)
    total = max(len(case_results), counts["total"] if counts is not None else 0)
    if counts is None or (len(case_results) < total and all(case.passed for case in case_results)):
        unfinished = f"the tests did not finish: {outcomes.last_line(execution.stderr)}"
        reason, error = failure or (Reason.MISMATCH, unfinished)
        if not case_results or case_results[-1].passed:
            case_results.append(failed_case(1.0, reason, error=error.removesuffix(": ")))
        total = max(total, len(case_results))
    return Judged(case_results, total, float(total), isolation, TWO_PROCESSES if is_apart else outcomes.ONE_PROCESS)


def _case_result(message: _Message, failure: Failure | None) -> CaseResult:
    if message.get("ok") is True:
        return passed_case()
    error = ": ".join(str(part) for part in (message.get("error") or [])[:2])
    reason = failure[0] if failure is not None and failure[0] in _LIMITS else Reason.MISMATCH
    calls = message.get("calls")
    got = without_addresses(str(calls)) if calls else None
    return failed_case(1.0, reason, test=message.get("line") or message.get("test"), error=error, got=got)
