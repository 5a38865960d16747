"""Test code: `check(candidate)` functions, bare assertions and unittest cases.

In order of preference:

1. assertions that are calls and comparisons become data: one process makes the calls, comparisons happen here
   (`checks/lowering.py`), save where objects of the solution's classes are compared with each other;
2. other test code runs in a sandboxed process of its own, which calls the solution's process by message
   (`inside/test_session/`);
3. test code that has to share the solution's process (it patches the solution's modules, reads its output, passes
   objects that cannot travel) runs there, and the verdict is marked `one_process`: a solution could tamper with it.

Whether tests and solution run in separate processes depends on the suite alone, never on what a solution does.
"""

from __future__ import annotations

import dataclasses
import hashlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from truegold.verifiers.code.checks.lowering import lower
from truegold.verifiers.code.judging import (
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
from truegold.verifiers.code.protocols.calls import NeedsRunning, judge_lowered
from truegold.verifiers.code.protocols.lines import PartsBudget, lines
from truegold.verifiers.code.protocols.source import Source
from truegold.verifiers.code.suite import Asserts, UnitTest
from truegold.verifiers.sandbox.execution import Execution
from truegold.verifiers.sandbox.inside.confine.preload import warm_modules
from truegold.verifiers.sandbox.inside.test_code.isolation import compares_objects, needs_one_process
from truegold.verifiers.sandbox.inside.wire import Undecodable, from_json, to_json
from truegold.verifiers.sandbox.job import Job
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
