"""Functions called with given arguments. All calls run in one sandboxed process; results are compared here, outside.

    {"entry_point": "add", "cases": [{"args": [1, 2], "expected": 3}]}

The process sees the arguments and never what is expected. What comes back is data of exact built-in types: an object
that defines `__eq__` comes as the data under it, or as nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from truegold.verifiers.code.checks.lowering import CACHED_SUITES, Lowered
from truegold.verifiers.code.checks.work import Work
from truegold.verifiers.code.comparison.nodes import to_nodes, to_values
from truegold.verifiers.code.comparison.values import call_checker_of, shown_value
from truegold.verifiers.code.drivers import Signature
from truegold.verifiers.code.judging import CaseResult, Judged, cut, failed_case, passed_case
from truegold.verifiers.code.protocols.results import CallOutcomes, ExpectedResults, failed_call, read_results
from truegold.verifiers.code.protocols.source import Source
from truegold.verifiers.code.suite import CallCase, Calls
from truegold.verifiers.sandbox.inside.wire import KNOWN_CODECS, encode, to_json
from truegold.verifiers.sandbox.job import Job
from truegold.verifiers.sandbox.limits import Limits
from truegold.verifiers.sandbox.local import Local

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
