"""Functions called with given arguments. All calls run in one sandboxed process; results are compared here, outside.

    {"entry_point": "add", "cases": [{"args": [1, 2], "expected": 3}]}

The process sees the arguments and never what is expected. What comes back is data of exact built-in types: an object
that defines `__eq__` comes as the data under it, or as nothing.

What came back from calls: lines of JSON that a solution's process wrote, as values.

The lines are trusted for nothing but the values that they state. Where the expected results are known
(`ExpectedResults`) and what came reads the same, nothing is taken apart; otherwise plain lines are read together, and
others one by one.

Reads the lines of JSON that a sandboxed process left behind, which may be built to exhaust memory.

    for line in lines(result): ...              complete lines, without empty ones and without a list of all of them
    budget = PartsBudget()
    budget.spend(b"[1,2,3]")                    True: few enough parts, over all lines

A result of 64 MB can be 64 million empty lines, or lines of ten million lists: seconds and gigabytes once read.

The program under test, and what is run before it in its namespace.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from truegold.verifiers.code.checks.lowering import CACHED_SUITES, Lowered
from truegold.verifiers.code.checks.terms import Raised, Work
from truegold.verifiers.code.drivers import Signature
from truegold.verifiers.code.outcomes import (
    CaseResult,
    Failure,
    Judged,
    cut,
    failed_case,
    failed_end,
    last_line,
    passed_case,
)
from truegold.verifiers.code.suite import CallCase, Calls
from truegold.verifiers.code.value_comparison import call_checker_of, shown_value, to_nodes, to_values
from truegold.verifiers.sandbox.execution import Execution, Job
from truegold.verifiers.sandbox.inside.preload import warm_modules
from truegold.verifiers.sandbox.inside.wire import (
    KNOWN_CODECS,
    Undecodable,
    are_plain,
    decode,
    encode,
    from_json,
    to_json,
)
from truegold.verifiers.sandbox.limits import BOX_MB, MB, Limits
from truegold.verifiers.sandbox.local import Local
from truegold.verifiers.verdict import Reason

CallArguments = tuple[str, list[Any], dict[str, Any]]
"""Function, positional and named arguments."""


class NeedsRunning(Exception):
    """Only Python itself can tell whether a check holds of a value, such as one of the length of an object."""


def judge_calls(tests: Calls, source: Source, local: Local, limits: Limits, run_all: bool) -> Judged:
    """Call the entry point for every case and compare what it returns with what is expected."""
    signature, returned_argument = tests.signature or Signature(), tests.returned_argument
    has_nodes = any((*signature.params, signature.returns))
    if has_nodes:
        cases = tuple(_with_nodes(case, signature) for case in tests.cases)
        tests = replace(tests, cases=cases, plain_args=False, plain_expected=False)
    if tests.plain_args and returned_argument < 0:
        calls = [[0, case.args, {}] for case in tests.cases]
        request = to_json({"functions": [tests.entry_point], "calls": calls, "codecs": tests.codecs})
    else:
        arguments = [(tests.entry_point, list(case.args), dict(case.kwargs)) for case in tests.cases]
        request = _request(arguments, tests.codecs, returned_argument)
    expected = ExpectedResults([case.expected for case in tests.cases]) if tests.plain_expected else None
    returned = _run(source, request, len(tests.cases), tests.codecs, local, limits, expected)
    if has_nodes:
        returned = replace(returned, outcomes=[_values_of(outcome, signature) for outcome in returned.outcomes])
    return judge_outcomes(tests, returned, run_all)


def judge_outcomes(tests: Calls, returned: CallOutcomes, run_all: bool) -> Judged:
    """Compare what the calls of a suite returned with what is expected."""
    find_difference = call_checker_of(tests.checker)
    total_weight = sum(case.weight for case in tests.cases)
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
    return Judged(case_results, len(tests.cases), total_weight, method="calls")


def judge_lowered(
    lowered: Lowered, source: Source, codecs: Mapping[str, Any], local: Local, limits: Limits, run_all: bool
) -> Judged:
    """Make the calls of assertions and check what they returned. Raises `NeedsRunning`."""
    request = _lowered_request(lowered) if not codecs else _request(_calls_of(lowered), codecs)
    returned = _run(source, request, len(lowered.calls), codecs, local, limits)
    case_results: list[CaseResult] = []
    work = Work()
    for check in lowered.checks:
        outcomes = [returned.outcomes[index] for index in check.calls]
        failures = [failure for outcome in outcomes if (failure := failed_call(outcome, returned)) is not None]
        if failures:
            case_results.append(failed_case(1.0, failures[0][0], test=check.text, error=failures[0][1]))
        elif (holds := check.holds(returned.outcomes, work)) is None:
            raise NeedsRunning
        elif holds:
            case_results.append(passed_case())
        else:
            case_results.append(failed_case(1.0, test=check.text, got=", ".join(map(shown_value, outcomes))))
        if not case_results[-1].passed and not run_all:
            break
    return Judged(case_results, len(lowered.checks), float(len(lowered.checks)), method="lowered")


def make_calls(
    source: Source, calls: Sequence[CallArguments], codecs: Mapping[str, Any], local: Local, limits: Limits
) -> CallOutcomes:
    """Run the program and make the calls, in order, in one process."""
    return _run(source, _request(calls, codecs), len(calls), codecs, local, limits)


@lru_cache(maxsize=CACHED_SUITES)
def _lowered_request(lowered: Lowered) -> bytes:
    return _request(_calls_of(lowered), {})


def _calls_of(lowered: Lowered) -> list[CallArguments]:
    return [(call.function, list(call.args), dict(call.kwargs)) for call in lowered.calls]


def _with_nodes(case: CallCase, signature: Signature) -> CallCase:
    args = [to_nodes(value, signature.param(index)) for index, value in enumerate(case.args)]
    kwargs = {
        name: to_nodes(value, signature.param(len(args) + index))
        for index, (name, value) in enumerate(case.kwargs.items())
    }
    return case._replace(args=tuple(args), kwargs=kwargs, expected=_values_of(case.expected, signature))


def _values_of(outcome: Any, signature: Signature) -> Any:
    if outcome is None and signature.returns in KNOWN_CODECS:
        return []
    return to_values(outcome)


def _request(calls: Sequence[CallArguments], codecs: Mapping[str, Any], returned_argument: int = -1) -> bytes:
    """Encode the calls as the part of the request that is the same for all programs that the suite judges.

    returned_argument: which argument's change is the result; -1 for what the function returns.
    """
    functions = list(dict.fromkeys(name for name, _, _ in calls))
    indices = {name: index for index, name in enumerate(functions)}
    encoded = [
        [indices[name], encode(args, codecs), encode(kwargs, codecs) if kwargs else {}] for name, args, kwargs in calls
    ]
    in_place = {"in_place": returned_argument} if returned_argument >= 0 else {}
    return to_json({"functions": functions, "calls": encoded, "codecs": codecs, **in_place})


def _run(
    source: Source,
    request: bytes,
    call_count: int,
    codecs: Mapping[str, Any],
    local: Local,
    limits: Limits,
    expected: ExpectedResults | None = None,
) -> CallOutcomes:
    """Run the program and make the calls of a request. Expected results, where they are known, have to find room."""
    payload = to_json(source.fields())[:-1] + b"," + request[1:]
    result_bytes = expected.max_bytes if expected else 0
    execution = local.sandbox().run(Job("calls", payload, limits, warm=source.warm, result_bytes=result_bytes))
    return read_results(execution, call_count, codecs, limits, expected)


def _shown_case(case: CallCase) -> dict[str, str]:
    parts = [shown_value(value) for value in case.args]
    parts += [f"{name}={shown_value(value)}" for name, value in case.kwargs.items()]
    return {"input": cut(", ".join(parts)), "expected": shown_value(case.expected)}


ROOM_FACTOR = 2
"""Where many or large results are expected, so many times as much may come, with other spaces and other types."""

_LOADED = b'{"loaded":true}'

TOO_LARGE = "ResultTooLarge"
"""What a call is taken to have raised whose result does not fit, here or where it was made
(`inside/wire/encoding.py`)."""


class ExpectedResults:
    """Results that ought to come, all of them plain data."""

    def __init__(self, values: Sequence[Any]) -> None:
        self.values = values
        self.json = to_json(values)

    @property
    def max_bytes(self) -> int:
        """Bytes that results may take up."""
        return ROOM_FACTOR * len(self.json)

    @property
    def max_parts(self) -> int:
        """Values within values that results may have."""
        return ROOM_FACTOR * count_parts(self.json)


@dataclass(frozen=True, slots=True)
class CallOutcomes:
    """What came of a batch of calls."""

    outcomes: Sequence[Any]
    """For each call its value, `Raised`, or `NotReturned`."""
    failure: Failure | None
    """Why the process ended early, if it did."""
    load_error: str | None = None


@dataclass(frozen=True, slots=True)
class NotReturned:
    """The process ended before, or during, this call."""


def failed_call(outcome: Any, calls: CallOutcomes) -> Failure | None:
    """Return why a call has no value; None where it has one."""
    if isinstance(outcome, NotReturned):
        return calls.failure or (Reason.MISMATCH, calls.load_error or "the program ended before this call returned")
    if isinstance(outcome, Raised):
        reason = Reason.LIMIT if outcome.type == TOO_LARGE else Reason.MISMATCH
        return reason, f"it raised {outcome.type}: {outcome.message}"
    return None


def read_results(
    execution: Execution,
    call_count: int,
    codecs: Mapping[str, Any],
    limits: Limits,
    expected: ExpectedResults | None,
) -> CallOutcomes:
    """Read what came of the calls that a job made."""
    returned = _read_together(execution.result, call_count, codecs, limits, expected)
    if returned is not None:
        return CallOutcomes(returned, failed_end(execution))
    max_bytes = max(limits.output_mb * MB, BOX_MB * MB, expected.max_bytes if expected else 0)
    budget = PartsBudget(max(MAX_PARTS, expected.max_parts if expected else 0))
    load_error: str | None = None
    outcomes: list[Any] = []
    failure = failed_end(execution)
    for line in lines(execution.result):
        if len(outcomes) == call_count:
            break
        if not budget.spend(line):
            failure = failure or (Reason.LIMIT, "its results are larger than the limit")
            break
        if len(line) > limits.output_mb * MB:
            message = f"the result takes {len(line)} bytes, the limit is {limits.output_mb} MB"
            outcomes.append(Raised(TOO_LARGE, message))
            continue
        try:
            message = from_json(line)
            if "load_error" in message:
                load_error = ": ".join(map(str, message["load_error"][:2]))
            elif "missing" in message:
                load_error = f"the program has no {message['missing']!r}"
            elif "r" in message:
                value = message["r"]
                outcomes.append(value if are_plain([value]) else decode(value, codecs))
            elif "raised" in message:
                outcomes.append(Raised(*[str(part) for part in message["raised"][:2]]))
        except (TypeError, LookupError, Undecodable):
            outcomes.append(Raised("Unreadable", "what it returned cannot be read"))
    missing = call_count - len(outcomes)
    if missing and len(execution.result) >= max_bytes:
        failure = Reason.LIMIT, "its results are larger than the limit"
    if failure is None and missing and load_error is None:
        failure = Reason.MISMATCH, f"the program ended early: {last_line(execution.stderr)}".removesuffix(": ")
    return CallOutcomes([*outcomes, *[NotReturned()] * missing], failure, load_error)


def _read_together(
    result: bytes, call_count: int, codecs: Mapping[str, Any], limits: Limits, expected: ExpectedResults | None
) -> Sequence[Any] | None:
    """Return what all calls returned, the usual case; None where one did not return, or cannot be read."""
    if result.count(b"\n") != call_count + 1:
        return None
    first, *lines, rest = result.split(b"\n")
    if first != _LOADED or rest:
        return None
    if expected and b"[%b]" % b",".join([line[5:-1] for line in lines]) == expected.json:
        return expected.values
    return _plain_values(lines, codecs, int(limits.output_mb * MB))


def _plain_values(lines: Sequence[bytes], codecs: Mapping[str, Any], max_bytes: int) -> list[Any] | None:
    joined = b"[%b]" % b",".join(lines)
    if len(joined) > max_bytes or not PartsBudget().spend(joined):
        return None
    try:
        values = [message["r"] for message in from_json(joined) if len(message) == 1]
        if b'"$"' in joined:
            values = [decode(value, codecs) for value in values]
        elif not are_plain(values):
            return None
    except (TypeError, LookupError, Undecodable):
        return None
    return values if len(values) == len(lines) else None


MAX_PARTS = 8_000_000
"""All lines together may have this many parts. Stops results that take gigabytes once read."""

LIST_PARTS, OBJECT_PARTS = 4, 12
"""What lists and objects count, beside their items: about the memory and the time that they take."""

BYTES_A_PART = 4
"""Stops integers of thousands of digits, of which each byte takes as long as a short item."""

_LINE = re.compile(rb"[^\n]+")


def lines(result: bytes) -> Iterator[bytes]:
    """Yield the complete lines. What stands behind the last end of a line was cut off, and is left out."""
    for line in _LINE.finditer(result):
        if line.end() < len(result):
            yield line[0]


class PartsBudget:
    """Bounds what lines may be made of, all of them together."""

    def __init__(self, max_parts: int = MAX_PARTS) -> None:
        self._left = max_parts

    def spend(self, line: bytes) -> bool:
        """Count a line's parts, and return whether they are still within the bound."""
        self._left -= count_parts(line)
        return self._left >= 0


def count_parts(line: bytes) -> int:
    """Return about how many values within values a line of JSON holds, without reading it."""
    containers = LIST_PARTS * line.count(b"[") + OBJECT_PARTS * line.count(b"{")
    return containers + line.count(b",") + len(line) // BYTES_A_PART + 1


@dataclass(frozen=True, slots=True)
class Source:
    """A Python program with its prelude."""

    program: str
    """What the response gave."""
    prelude: str = ""
    """Imports, classes and helpers that the problem provides."""

    def fields(self) -> dict[str, Any]:
        """Return what a job's request says of it."""
        return {"program": self.program, "prelude": self.prelude}

    @property
    def warm(self) -> tuple[str, ...]:
        """The packages that it imports and that the zygote may import for all jobs."""
        return warm_modules(f"{self.prelude}\n{self.program}")
