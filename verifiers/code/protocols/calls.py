"""Functions called with given arguments. All calls run in one sandboxed process; results are compared here, outside.

    {"entry_point": "add", "cases": [{"args": [1, 2], "expected": 3}]}

The process sees the arguments and never what is expected. What comes back is data of exact built-in types: an object
with an `__eq__` of its own is the data under it, or nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from truegold.verifiers.code.checks.work import Work
from truegold.verifiers.code.inside.wire import encode, to_json
from truegold.verifiers.code.judging import CaseResult, Judged, cut, failed, passed
from truegold.verifiers.code.limits import Limits
from truegold.verifiers.code.lowering import CACHED_SUITES, Lowered
from truegold.verifiers.code.protocols.results import Called, Hoped, explained, read_results
from truegold.verifiers.code.protocols.source import Source
from truegold.verifiers.code.sandbox.job import Job
from truegold.verifiers.code.sandbox.local import Local
from truegold.verifiers.code.suite import CallCase, Calls
from truegold.verifiers.code.values_equal import call_checker_of, shown_value

CallArguments = tuple[str, list[Any], dict[str, Any]]
"""Function, positional and named arguments."""


class NeedsRunning(Exception):
    """What a check says of this value only Python itself can tell, such as the length of an object."""


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
    hoped = Hoped([case.expected for case in tests.cases]) if tests.plain_expected else None
    called = _call(source, wanted, len(tests.cases), tests.codecs, local, limits, hoped)
    total_weight = sum(case.weight for case in tests.cases)
    results: list[CaseResult] = []
    equal_will_do = tests.plain_expected and differs.accepts_equal
    for case, got in zip(tests.cases, called.results, strict=True):
        if equal_will_do and (got is case.expected or got == case.expected):
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
    source: Source,
    wanted: bytes,
    number: int,
    codecs: Mapping[str, Any],
    local: Local,
    limits: Limits,
    hoped: Hoped | None = None,
) -> Called:
    """hoped: what shall come back, where that is known. There has to be room for it."""
    payload = to_json(source.fields())[:-1] + b"," + wanted[1:]
    done = local.sandbox().run(Job("calls", payload, limits, warm=source.warm, result_bytes=hoped.room if hoped else 0))
    return read_results(done, number, codecs, limits, hoped)


def _shown_case(case: CallCase) -> dict[str, str]:
    parts = [shown_value(value) for value in case.args]
    parts += [f"{name}={shown_value(value)}" for name, value in case.kwargs.items()]
    return {"input": cut(", ".join(parts)), "expected": shown_value(case.expected)}
