"""Runs and tests programs over HTTP, with the request formats of two other servers.

SandboxFusion:

    POST /run_code       {"code": "print(input())", "language": "python", "stdin": "3", "run_timeout": 10}
      -> {"status": "Success", "run_result": {"status": "Finished", "return_code": 0, "stdout": "3\\n", ...}, ...}

Source: sandbox/server/sandbox_api.py. A timeout limits the time that a program computes or sleeps. The program's wall
time may be `BUSY_S` longer, since it may have to wait for a core. A program that exceeds its wall time gets
TimeLimitExceeded if it computed or slept for at least a quarter of its timeout. Otherwise the machine was too busy, and
the answer is SandboxError. `Unjudged` is raised if the time of the request is up. Requests with `fetch_files` or `args`
get SandboxError.

open-instruct, whose verifiers `code` and `code_stdio` send these requests:

    POST /test_program         {"program": "def add(a, b): ...", "tests": ["assert add(1, 2) == 3"],
                                "max_execution_time": 1}                   -> {"results": [1], "runtimes": [0.01]}
    POST /test_program_stdio   {"program": "print(int(input()) + 1)", "tests": [{"input": "1", "output": "2"}]}
                                                                           -> {"results": [1], "runtimes": [0.02]}

A passed test has the result 1, a failed one 0. If a test cannot be judged, `Unjudged` is raised for the whole request,
because a 0 would mean a wrong program. `runtimes` are seconds, without time spent waiting for a core. The runtime is -1
if an assertion fails, if the program raises an error, or if it takes longer than `max_execution_time`.

Outputs are compared line by line, as texts or as decimal numbers, without blanks at the ends of lines. Programs start
with the same imports as in open-instruct. `tests` may be JSON text, or the output of open-instruct's `encode_tests`.

Source: api.py, code_utils.py and testing_util.py in open_instruct/code_utils, of August 2026. Two things differ.
Programs may import `os` or `threading`, because they run in the sandbox. An invalid request has the status 400.
"""

from __future__ import annotations

import base64
import binascii
import io
import json
import pickle
import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from enum import StrEnum
from functools import partial
from typing import Any, TypeVar

from truegold.verifiers.running.batch import Item, TimedVerdict
from truegold.verifiers.sandbox.execution import CPU_S_BOUNDS, Execution, Limits, MachineBusy, Program, ProgramEnd
from truegold.verifiers.sandbox.local import PYTHON, Local
from truegold.verifiers.sandbox.toolchains import language_name
from truegold.verifiers.user_code import did_you_mean
from truegold.verifiers.verdict import Reason

MEMORY_MB = 1024
"""The memory limit of a program of `/run_code` that does not set one."""
BUSY_S = 0.3
"""Seconds of wall time that a program of `/run_code` may wait for a core, in addition to its timeout."""
LATE_SHARE = 0.25
"""A program that exceeds its wall time is too slow if it computed or slept for this share of its timeout. With a lower
share, the machine was too busy, and the program is not judged."""
_LIMIT_ENDS = (ProgramEnd.CPU_LIMIT, ProgramEnd.WALL_LIMIT)

MAX_TESTS = 4096
MAX_DECODED_BYTES = 2**26
"""Maximum size of decompressed tests, in bytes."""
NEVER_RAN = -1.0
"""The runtime of a test that failed for another reason than a wrong output."""

T = TypeVar("T")
ProgramOutcome = tuple[int, float]
"""The result of a test, 1 or 0, and its runtime in seconds."""

RUN_FIELDS = (
    *("code", "language", "stdin", "files", "compile_timeout", "run_timeout", "memory_limit_MB"),
    *("fetch_files", "args"),
)
TEST_FIELDS = ("program", "tests", "max_execution_time")
"""The fields of `/run_code`, and of `/test_program` and `/test_program_stdio`. Other fields are allowed, as on the
original servers, unless they look like misspelt ones."""

_MODULES = (
    *("string", "re", "datetime", "collections", "heapq", "bisect", "copy", "math", "random", "statistics"),
    *("itertools", "functools", "operator", "io", "sys", "json"),
)
_PRELUDE = "\n".join(
    [
        *(f"from {module} import *" for module in (*_MODULES, "builtins", "typing")),
        f"import {', '.join(_MODULES)}",
        "sys.setrecursionlimit(50000)\n",
    ]
)
"""The imports that open-instruct puts before programs that read stdin."""


class BadRequest(ValueError):
    """A request with a missing or invalid field; the text names the field."""


def json_kind(value: object) -> str:
    """Return the word for the kind of a JSON value."""
    kinds = {
        bool: "true or false",
        str: "a text",
        int: "a number",
        float: "a number",
        list: "a list",
        dict: "an object",
    }
    return kinds.get(type(value), "null")


def check_fields(
    body: Mapping[str, Any], known: Sequence[str], where: str = "", *, only_misspelt: bool = False
) -> None:
    """Raise BadRequest for an unknown field. With `only_misspelt`, fields that resemble no known one are allowed."""
    for name in body:
        near = did_you_mean(name, known) if name not in known else None
        if near is not None or (name not in known and not only_misspelt):
            listed = near or f"There are: {', '.join(known)}."
            raise BadRequest(f"{where}there is no field {name[:80]!r}. {listed}")


class UnjudgedCause(StrEnum):
    """The cause of a request without a result, by which `/metrics` counts."""

    BUSY = "busy"
    """The queue is full."""
    LATE = "late"
    """The time of the request was up."""
    GONE = "gone"
    """The client disconnected."""
    MACHINE = "machine"
    """The machine was too busy to run a program, or a verifying process died."""
    SANDBOX = "sandbox"
    """The sandbox failed."""
    SUITE = "suite"
    """The tests check nothing."""


class Unjudged(Exception):
    """A request without a result; the text has the reason."""

    def __init__(self, cause: UnjudgedCause, message: str) -> None:
        super().__init__(message)
        self.cause = cause


@dataclass(frozen=True, slots=True)
class Allowance:
    """The time of one request."""

    request_s: float
    """Seconds that a request may take, including the time in the queue."""
    end: float
    """The end of these seconds on the monotonic clock."""

    def seconds_left(self) -> float:
        """Return the remaining seconds. Raises Unjudged if there are fewer than a program needs."""
        if (left_s := self.end - time.monotonic()) < CPU_S_BOUNDS[0]:
            raise self.late()
        return left_s

    def late(self) -> Unjudged:
        """Return the error for a request whose time is up."""
        return Unjudged(UnjudgedCause.LATE, f"not done within the {self.request_s:g} s of a request (--request-s)")


def run_code(request: Mapping[str, Any], allowance: Allowance) -> dict[str, Any]:
    """Run a program in the sandbox and return the answer in SandboxFusion's format. Raises Unjudged and
    SandboxError."""
    program, limits, stdin = _read_program(request, allowance.request_s)
    if request.get("fetch_files") or request.get("args"):
        return sandbox_error("truegold's service does not support fetch_files and args")
    asked_compile_s, asked_s, left_s = limits.compile_cpu_s, limits.cpu_s, allowance.seconds_left()
    compile_s, run_s = min(asked_compile_s, left_s), min(asked_s, left_s)
    limits = replace(limits, compile_cpu_s=compile_s, cpu_s=run_s, own_s=run_s)
    prepared = in_time(lambda: Local().prepare(program, limits), compile_s)
    compiled = prepared if isinstance(prepared, Execution) else prepared.compiled
    if isinstance(prepared, Execution) or (compiled is not None and not compiled.ok):
        if compiled is not None and compiled.end in _LIMIT_ENDS and compile_s < asked_compile_s:
            raise allowance.late()
        return _answer("Failed", compiled, None)
    run_s = min(asked_s, allowance.seconds_left())
    prepared.job = replace(prepared.job, limits=replace(limits, cpu_s=run_s, own_s=run_s))
    execution = in_time(lambda: prepared.run(stdin.encode("utf-8", "surrogatepass")), run_s)
    if execution.end in _LIMIT_ENDS and run_s < asked_s:
        raise allowance.late()
    return _answer("Success" if execution.ok else "Failed", compiled, execution)


def in_time(run: Callable[[], T], limit_s: float) -> T | Execution:
    """Return the result of `run`, or the execution of a program that was stopped at its wall time.

    Raises MachineBusy if the stopped program computed or slept for less than `LATE_SHARE` of its limit.
    """
    try:
        return run()
    except MachineBusy as busy:
        if busy.execution is None or busy.execution.own_s < LATE_SHARE * limit_s:
            raise
        return busy.execution


def _read_program(request: Mapping[str, Any], most_s: float) -> tuple[Program, Limits, str]:
    files = request.get("files") or {}
    if not isinstance(files, dict):
        raise BadRequest(f"files must be an object of names and base64 texts; this is {json_kind(files)}")
    try:
        contents = {name: base64.b64decode(content or "", validate=True) for name, content in files.items()}
    except (TypeError, ValueError) as error:
        raise BadRequest(f"files must map names to base64 texts: {error}") from None
    memory_mb = request.get("memory_limit_MB") or -1
    if not isinstance(memory_mb, int):
        raise BadRequest("memory_limit_MB must be a whole number")
    program = Program(language_name(text_field(request, "language")), text_field(request, "code"), contents)
    stdin = request.get("stdin") or ""
    if not isinstance(stdin, str):
        raise BadRequest("stdin must be a text")
    run_s, compile_s = (seconds_field(request, f"{name}_timeout", 10.0, most_s) for name in ("run", "compile"))
    try:
        limits = Limits(
            cpu_s=run_s,
            memory_mb=memory_mb if memory_mb > 0 else MEMORY_MB,
            compile_cpu_s=compile_s,
            own_s=run_s,
            busy_s=BUSY_S,
        )
    except ValueError as error:
        raise BadRequest(str(error)) from None
    return program, limits, stdin


def text_field(request: Mapping[str, Any], name: str) -> str:
    """Return a text field. Raises BadRequest for a missing field or another type."""
    value = request.get(name)
    if not isinstance(value, str):
        raise BadRequest(must_be_text(request, name))
    return value


def must_be_text(request: Mapping[str, Any], name: str) -> str:
    """Return the words for a text field that is missing or has another type."""
    return f"{name} must be a text; this is {json_kind(request[name])}" if name in request else f"{name} is missing"


def seconds_field(request: Mapping[str, Any], name: str, default: float, most_s: float) -> float:
    """Return a field of seconds. Raises BadRequest for a value outside `CPU_S_BOUNDS` or above `most_s`."""
    value = default if request.get(name) is None else request[name]
    low, high = CPU_S_BOUNDS
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise BadRequest(f"{name} must be a number of seconds from {low} to {high:g}")
    if value > most_s and request.get(name) is not None:
        raise BadRequest(f"{name} is {value:g} s, but a request may take only {most_s:g} s here (--request-s)")
    return float(value)


def _answer(status: str, compiled: Execution | None, execution: Execution | None) -> dict[str, Any]:
    ended = {"compile_result": compiled, "run_result": execution}
    shown = {name: None if end is None else _command_result(end) for name, end in ended.items()}
    return {"status": status, "message": "", **shown, "executor_pod_name": None, "files": {}}


def _command_result(execution: Execution) -> dict[str, Any]:
    is_late = execution.end in _LIMIT_ENDS
    return {
        "status": "TimeLimitExceeded" if is_late else "Finished",
        "execution_time": execution.wall_s,
        "return_code": None if is_late else _return_code(execution),
        "stdout": execution.stdout.decode("utf-8", "replace"),
        "stderr": execution.stderr.decode("utf-8", "replace"),
    }


def _return_code(execution: Execution) -> int:
    """Return the exit code, the negative number of a signal, or 1 for a limit without a signal."""
    if execution.end is ProgramEnd.EXITED:
        return execution.status
    return -execution.status or 1


def sandbox_error(message: str) -> dict[str, Any]:
    """Return the answer for a program that did not run, or did not run to its end."""
    return {**_answer("SandboxError", None, None), "message": message}


def assert_tests(request: Mapping[str, Any], most_s: float) -> list[Item]:
    """Return one item of the verifier `code` for each test of a program."""
    program, tests = text_field(request, "program"), _tests(request)
    if not all(isinstance(test, str) for test in tests):
        raise BadRequest("each of tests must be a text, such as assert add(1, 2) == 3")
    limit_s = time_limit(request, most_s)
    limits = {"cpu_s": limit_s, "own_s": limit_s}
    fence = "~~~~" if "```" in program else "```"
    response = f"{fence}python\n{program}\n{fence}"
    suites = [{"tests": {"type": "asserts", "code": test}, "limits": limits} for test in tests]
    return [Item(response, None, "code", json.dumps(suite)) for suite in suites]


def assert_outcomes(verdicts: Sequence[TimedVerdict], limit_s: float, allowance: Allowance) -> list[ProgramOutcome]:
    """Return the outcomes of tests that the verifier `code` judged. Raises Unjudged if a verdict has no score.

    For example, `assert True` checks nothing and has no score. open-instruct's own server gives it the result 1.
    """
    for position, timed in enumerate(verdicts, 1):
        if timed.verdict.score is None:
            cause, why = _why_unjudged(timed, allowance)
            raise Unjudged(cause, f"test {position} of {len(verdicts)} could not be judged: {why}")
    return [_outcome(timed, limit_s) for timed in verdicts]


def _why_unjudged(timed: TimedVerdict, allowance: Allowance) -> tuple[UnjudgedCause, str]:
    evidence = timed.verdict.evidence
    if timed.verdict.reason is Reason.TIMEOUT:
        deadline_s = evidence.get("item_deadline_s")
        late = f"no verdict within {deadline_s:g} s" if deadline_s is not None else str(allowance.late())
        return UnjudgedCause.LATE, late
    error = " ".join(str(evidence.get("error", timed.verdict.reason)).split())
    if timed.verdict.reason is not Reason.VERIFIER_ERROR:
        return UnjudgedCause.SANDBOX, error
    # The CPU time is None if the verifying process died.
    return (UnjudgedCause.MACHINE if timed.cpu_ms is None else UnjudgedCause.SUITE), error


def _outcome(timed: TimedVerdict, limit_s: float) -> ProgramOutcome:
    seconds = timed.program_s or 0.0
    return (1, seconds) if timed.verdict.passed and seconds <= limit_s else (0, NEVER_RAN)


def stdio_runs(request: Mapping[str, Any], allowance: Allowance) -> list[Callable[[], ProgramOutcome]]:
    """Return one function for each test, which runs the program on the test's input."""
    source = text_field(request, "program")
    # `from __future__` must come first in a program.
    program = Program(PYTHON, source if "__future__" in source else _PRELUDE + source)
    limit_s = time_limit(request, allowance.request_s)
    run = partial(_run_stdio, program, limit_s, allowance)
    return [partial(run, _lines(test, "input"), _lines(test, "output")) for test in _tests(request)]


def outcome_lists(outcomes: Sequence[ProgramOutcome]) -> dict[str, Any]:
    """Return the outcomes of a request's tests as its answer."""
    return {"results": [result for result, _ in outcomes], "runtimes": [seconds for _, seconds in outcomes]}


def time_limit(request: Mapping[str, Any], most_s: float) -> float:
    """Return the limit of seconds for a test, 1 by default."""
    return seconds_field(request, "max_execution_time", min(1.0, most_s), most_s)


def same_output(expected: str, printed: str) -> bool:
    """Return whether each printed line equals the expected line, as text or as decimal numbers."""
    lines, others = _stripped_lines(expected), _stripped_lines(printed)
    return len(lines) == len(others) and all(map(_same_line, lines, others))


def _run_stdio(program: Program, asked_s: float, allowance: Allowance, stdin: str, expected: str) -> ProgramOutcome:
    limit_s = min(asked_s, allowance.seconds_left())
    limits = Limits(cpu_s=limit_s, own_s=limit_s)
    execution = Local().prepare(program, limits).run(stdin.encode("utf-8", "surrogatepass"))
    if execution.end in _LIMIT_ENDS or execution.own_s > limit_s:
        if limit_s < asked_s:
            raise allowance.late()
        return 0, NEVER_RAN
    if not execution.ok:
        return 0, NEVER_RAN
    return int(same_output(expected, execution.stdout.decode("utf-8", "replace"))), execution.own_s


def _stripped_lines(text: str) -> list[str]:
    return [line.strip() for line in text.strip().split("\n")]


def _same_line(expected: str, printed: str) -> bool:
    if expected == printed:
        return True
    try:
        return list(map(Decimal, expected.split())) == list(map(Decimal, printed.split()))
    except InvalidOperation:
        return False


def _lines(test: Any, name: str) -> str:
    value = test.get(name) if isinstance(test, dict) else None
    if isinstance(value, list) and all(isinstance(line, str) for line in value):
        return "\n".join(value)
    if not isinstance(value, str):
        raise BadRequest('each of tests must be an object {"input": "...", "output": "..."}')
    return value


def _tests(request: Mapping[str, Any]) -> list[Any]:
    if request.get("tests") is None:
        raise BadRequest("the list tests is missing")
    tests = request["tests"] or []
    if isinstance(tests, str):
        tests = _decoded(tests)
    if not isinstance(tests, list) or len(tests) > MAX_TESTS:
        raise BadRequest(f"tests must be a list of at most {MAX_TESTS} tests, as JSON or from encode_tests")
    return tests


def _decoded(text: str) -> Any:
    """Return the list in a text: JSON, or a compressed pickle in base64, which may hold only plain data."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    try:
        inflater = zlib.decompressobj()
        pickled = inflater.decompress(base64.b64decode(text, validate=True), MAX_DECODED_BYTES)
        if inflater.unconsumed_tail:
            raise BadRequest(f"decompressed tests have more than {MAX_DECODED_BYTES} bytes")
        return _PlainData(io.BytesIO(pickled)).load()
    except BadRequest:
        raise
    except (binascii.Error, zlib.error):
        return None
    except Exception as error:
        # An invalid pickle may raise any exception.
        raise BadRequest(f"tests cannot be unpickled: {type(error).__name__}: {error}"[:300]) from None


class _PlainData(pickle._Unpickler):
    """Unpickles only lists, dicts, texts and numbers. pickle's unpickler in C would allocate any size that is named."""

    def find_class(self, module: str, name: str) -> Any:
        raise pickle.UnpicklingError(f"{module}.{name} is not allowed, only lists, dicts, texts and numbers")
