"""Functions called with given arguments. All calls run in one sandboxed process; results are compared here, outside.

    {"entry_point": "add", "cases": [{"args": [1, 2], "expected": 3}]}

The process sees the arguments and never what is expected. What comes back is data of exact built-in types: an object
with an `__eq__` of its own is the data under it, or nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from truegold.verifiers.code.checks.work import Work
from truegold.verifiers.code.execution import Execution
from truegold.verifiers.code.inside.plain import are_plain
from truegold.verifiers.code.inside.values import Undecodable, decode, encode, from_json, to_json
from truegold.verifiers.code.judging import CaseResult, Judged, cut, ended, failed, last_line, passed
from truegold.verifiers.code.limits import Limits
from truegold.verifiers.code.lowering import CACHED_SUITES, Lowered, Raised
from truegold.verifiers.code.protocols.lines import Parts, lines
from truegold.verifiers.code.protocols.source import Source
from truegold.verifiers.code.sandbox.job import BOX_MB, MB, Job
from truegold.verifiers.code.sandbox.local import Local
from truegold.verifiers.code.suite import CallCase, Calls
from truegold.verifiers.code.values_equal import call_checker_of, shown_value
from truegold.verifiers.verdict import Reason

CallArguments = tuple[str, list[Any], dict[str, Any]]
"""Function, positional and named arguments."""


class NeedsRunning(Exception):
    """What a check says of this value only Python itself can tell, such as the length of an object."""


LOADED = b'{"loaded":true}'

TOO_LARGE = "ResultTooLarge"
"""What a call has raised whose result does not fit, here or where it was made (`inside/encoding.py`)."""


@dataclass(frozen=True, slots=True)
class Called:
    """What came of a batch of calls: for each its value, `Raised`, or `Missed` where the process ended before."""

    results: Sequence[Any]
    trouble: tuple[Reason, str] | None
    """Why the process ended early, if it did."""
    load_error: str | None = None


@dataclass(frozen=True, slots=True)
class Missed:
    """The process ended before, or during, this call."""


def judge_calls(tests: Calls, source: Source, local: Local, limits: Limits, run_all: bool) -> Judged:
    """Call the entry point for every case and compare."""
    differs = call_checker_of(tests.checker)
    if tests.plain_args:
        wanted = to_json(
            {
                "functions": [tests.entry_point],
                "calls": [[0, case.args, {}] for case in tests.cases],
                "codecs": tests.codecs,
            }
        )
    else:
        wanted = _wanted(
            [(tests.entry_point, list(case.args), dict(case.kwargs)) for case in tests.cases], tests.codecs
        )
    called = _call(source, wanted, len(tests.cases), tests.codecs, local, limits)
    total_weight = sum(case.weight for case in tests.cases)
    results: list[CaseResult] = []
    equal_will_do = tests.plain_expected and differs.accepts_equal
    for case, got in zip(tests.cases, called.results, strict=True):
        if equal_will_do and got == case.expected:
            results.append(passed(case.weight))
        elif (trouble := explained(got, called)) is not None:
            results.append(failed(case.weight, trouble[0], error=trouble[1], **_shown_case(case)))
        elif (why := differs(case.expected, got)) is not None:
            results.append(failed(case.weight, got=shown_value(got), error=why, **_shown_case(case)))
        else:
            results.append(passed(case.weight))
        if not results[-1].passed and not run_all:
            break
    return Judged(results, len(tests.cases), total_weight)


def judge_lowered(
    lowered: Lowered, source: Source, codecs: Mapping[str, Any], local: Local, limits: Limits, run_all: bool
) -> Judged:
    """Assertions that are calls and checks on their results. Raises `NeedsRunning`."""
    wanted = _wanted_by(lowered) if not codecs else _wanted(_calls_of(lowered), codecs)
    called = _call(source, wanted, len(lowered.calls), codecs, local, limits)
    results: list[CaseResult] = []
    work = Work()
    for check in lowered.checks:
        troubles = [trouble for at in check.calls if (trouble := explained(called.results[at], called)) is not None]
        if troubles:
            results.append(failed(1.0, troubles[0][0], test=check.text, error=troubles[0][1]))
        elif (holds := check.holds(called.results, work)) is None:
            raise NeedsRunning
        elif holds:
            results.append(passed())
        else:
            got = [shown_value(called.results[at]) for at in check.calls]
            results.append(failed(1.0, test=check.text, got=", ".join(got)))
        if not results[-1].passed and not run_all:
            break
    return Judged(results, len(lowered.checks), float(len(lowered.checks)))


def call(
    source: Source, calls: Sequence[CallArguments], codecs: Mapping[str, Any], local: Local, limits: Limits
) -> Called:
    """Run the program and make the calls, in order, in one process."""
    return _call(source, _wanted(calls, codecs), len(calls), codecs, local, limits)


@lru_cache(maxsize=CACHED_SUITES)
def _wanted_by(lowered: Lowered) -> bytes:
    return _wanted(_calls_of(lowered), {})


def _calls_of(lowered: Lowered) -> list[CallArguments]:
    return [(call.function, list(call.args), dict(call.kwargs)) for call in lowered.calls]


def _wanted(calls: Sequence[CallArguments], codecs: Mapping[str, Any]) -> bytes:
    """The calls as a part of the request: the same for all programs that the suite judges."""
    functions = list(dict.fromkeys(name for name, _, _ in calls))
    numbers = {name: number for number, name in enumerate(functions)}
    encoded = [
        [numbers[name], encode(args, codecs), encode(kwargs, codecs) if kwargs else {}] for name, args, kwargs in calls
    ]
    return to_json({"functions": functions, "calls": encoded, "codecs": codecs})


def _call(
    source: Source, wanted: bytes, number: int, codecs: Mapping[str, Any], local: Local, limits: Limits
) -> Called:
    payload = to_json(source.fields())[:-1] + b"," + wanted[1:]
    done = local.sandbox().run(Job("calls", payload, limits, warm=source.warm))
    return _read(done, number, codecs, limits)


def explained(got: Any, called: Called) -> tuple[Reason, str] | None:
    """Why a call has no value; None where it has one."""
    if isinstance(got, Missed):
        return called.trouble or (Reason.MISMATCH, called.load_error or "the program ended before this call returned")
    if isinstance(got, Raised):
        reason = Reason.LIMIT if got.type == TOO_LARGE else Reason.MISMATCH
        return reason, f"it raised {got.type}: {got.message}"
    return None


def _read(done: Execution, wanted: int, codecs: Mapping[str, Any], limits: Limits) -> Called:
    """The lines that a solution's process wrote. Nothing in them is trusted but as the values it claims."""
    load_error: str | None = None
    results: list[Any] = []
    at_once = _read_at_once(done.result, wanted, codecs, limits)
    if at_once is not None:
        return Called(at_once, ended(done))
    trouble = ended(done)
    parts = Parts()
    for line in lines(done.result):
        if len(results) == wanted:
            break
        if not parts.allow(line):
            trouble = trouble or (Reason.LIMIT, "its results are larger than the limit")
            break
        if len(line) > limits.output_mb * MB:
            results.append(Raised(TOO_LARGE, f"the result takes {len(line)} bytes, the limit is {limits.output_mb} MB"))
            continue
        try:
            message = from_json(line)
            if "load_error" in message:
                load_error = ": ".join(map(str, message["load_error"][:2]))
            elif "missing" in message:
                load_error = f"the program has no {message['missing']!r}"
            elif "r" in message:
                value = message["r"]
                results.append(decode(value, codecs) if b'"$"' in line else value)
            elif "raised" in message:
                results.append(Raised(*[str(part) for part in message["raised"][:2]]))
        except (TypeError, LookupError, Undecodable):
            results.append(Raised("Unreadable", "what it returned cannot be read"))
    if len(results) < wanted and len(done.result) >= max(limits.output_mb, BOX_MB) * MB:
        trouble = Reason.LIMIT, "its results are larger than the limit"
    if trouble is None and len(results) < wanted and load_error is None:
        trouble = Reason.MISMATCH, f"the program ended early: {last_line(done.stderr)}".removesuffix(": ")
    results += [Missed()] * (wanted - len(results))
    return Called(results, trouble, load_error)


def _read_at_once(result: bytes, wanted: int, codecs: Mapping[str, Any], limits: Limits) -> list[Any] | None:
    """What all calls returned: the usual case. None where one did not return, or cannot be read."""
    if len(result) > limits.output_mb * MB or result.count(b"\n") != wanted + 1:
        return None
    first, *lines, rest = result.split(b"\n")
    joined = b"[%b]" % b",".join(lines)
    if first != LOADED or rest or not Parts().allow(joined):
        return None
    try:
        found = [message["r"] for message in from_json(joined) if len(message) == 1]
        if b'"$"' in joined:
            found = [decode(value, codecs) for value in found]
        elif not are_plain(found):
            return None
    except (TypeError, LookupError, Undecodable):
        return None
    return found if len(found) == wanted else None


def _shown_case(case: CallCase) -> dict[str, str]:
    parts = [shown_value(value) for value in case.args]
    parts += [f"{name}={shown_value(value)}" for name, value in case.kwargs.items()]
    return {"input": cut(", ".join(parts)), "expected": shown_value(case.expected)}
