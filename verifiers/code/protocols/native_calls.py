"""Functions called in other languages than Python, by a driver around the solution (`drivers`).

    {"entry_point": "Solution().twoSum", "cases": [{"args": [[2, 7], 9], "expected": [0, 1]}]}, language cpp

The suite is the one that judges Python: arguments go in as JSON, a line for each call, and what the function returns
comes back on lines of its own. The solution's process sees no expected value, so that a forged line buys nothing but
the value it states. Where a type of the program has no JSON, or the driver does not fit, nobody is at fault: the score
is None.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from truegold.verifiers.code.drivers import NO_FORM, CallTarget, Signature, compose, defines, language_name_of, probe
from truegold.verifiers.code.outcomes import SHOWN_CHARS, CannotJudge, Judged, Raised, failed_end
from truegold.verifiers.code.protocols.python_tests import ExpectedResults, judge_outcomes, read_results
from truegold.verifiers.code.protocols.stdio import NotCompiled
from truegold.verifiers.code.suite.reading import CallCase, Calls
from truegold.verifiers.code.value_comparison import to_values
from truegold.verifiers.sandbox.execution import Program
from truegold.verifiers.sandbox.inside.wire.foreign_values import Array, Instance, Value
from truegold.verifiers.sandbox.limits import Limits
from truegold.verifiers.sandbox.local import Backend

TYPED = ("cpp", "java")
"""Languages whose functions have one type for each argument and result."""


def judge_native_calls(
    tests: Calls, source: str, language: str, backend: Backend, limits: Limits, run_all: bool
) -> Judged:
    """Have the driver call the entry point for every case, and compare what it returns with what is expected.

    Raises NotCompiled, and CannotJudge where no driver fits.
    """
    lines = [json.dumps(_arguments(case), separators=(",", ":")) for case in tests.cases]
    signature = tests.signature or Signature()
    target = CallTarget(tests.entry_point, tests.in_place, signature)
    program = Program(language, compose(language, source, target))
    prepared = backend.prepare(program, limits)
    if prepared.compiled is not None and not prepared.compiled.ok and b"overloaded" in prepared.compiled.stderr:
        target = replace(target, arity=len(_arguments(tests.cases[0])))
        prepared = backend.prepare(Program(language, compose(language, source, target)), limits)
    if prepared.compiled is not None and not prepared.compiled.ok:
        _raise_for_driver(source, language, target, prepared.compiled.stderr, backend, limits)
    execution = prepared.run("".join(f"{line}\n" for line in lines).encode())
    replied = replace(execution, result=execution.stdout)
    returned = read_results(replied, len(tests.cases), {}, limits, ExpectedResults([]))
    for outcome in returned.outcomes:
        if isinstance(outcome, Raised) and NO_FORM in outcome.message:
            raise CannotJudge(f"a type of the program has no form in JSON: {outcome.message}")
    cases = tuple(case._replace(expected=to_values(case.expected)) for case in tests.cases)
    outcomes = [_as_in_python(case.expected, outcome) for case, outcome in zip(cases, returned.outcomes, strict=True)]
    judged = judge_outcomes(replace(tests, cases=cases), replace(returned, outcomes=outcomes), run_all)
    if language_name_of(language) in TYPED:
        _require_types(judged, cases)
    return judged


def _require_types(judged: Judged, cases: Sequence[CallCase]) -> None:
    """Raise CannotJudge where a program fails a case whose values are of several types, which it cannot have."""
    counts = Counter(kind for case in cases if (kind := _type_family(case.expected)) is not None)
    usual = counts.most_common(1)[0][0] if counts else None
    for case, result in zip(cases, judged.cases, strict=False):
        if result.passed:
            continue
        is_usual = _type_family(case.expected) == usual or (case.expected is None and usual == "list")
        if not is_usual or any(_mixes_types(value) for value in (*case.args, *case.kwargs.values(), case.expected)):
            raise CannotJudge("the tests have values of several types, which no one type of the language holds")


def _type_family(value: Value) -> str | None:
    """Return what sort of type holds a value; None for None."""
    match value:
        case None:
            return None
        case bool():
            return "truth value"
        case int() | float():
            return "number"
        case str():
            return "text"
        case dict():
            return "dictionary"
    return "list"


def _mixes_types(value: Value) -> bool:
    """Return whether a list, or a dictionary's keys or values, are of several types."""
    if isinstance(value, tuple):  # A tuple has a type for each of its items.
        return any(map(_mixes_types, value))
    groups: list[list[Value]] = [list(value)] if isinstance(value, list | set | frozenset | dict) else []
    groups += [list(value.values())] if isinstance(value, dict) else []
    return any(
        len({_type_family(item) for item in group} - {None}) > 1 or any(map(_mixes_types, group)) for group in groups
    )


def _raise_for_driver(
    source: str, language: str, target: CallTarget, message: bytes, backend: Backend, limits: Limits
) -> None:
    """Raise what follows from a driver that does not compile around a solution."""
    alone = probe(language, source)
    compiled = backend.prepare(Program(language, alone), limits).compiled if alone is not None else None
    if compiled is not None and (failure := failed_end(compiled)) is not None:
        raise NotCompiled(failure[1])
    if not defines(source, target.name):
        raise NotCompiled(f"the program has no {target.name!r}")
    errors = [line.strip()[:SHOWN_CHARS] for line in message.decode("utf-8", "replace").splitlines() if "error" in line]
    raise CannotJudge(f"no driver fits the types of {target.name!r}: {next(iter(errors), 'it does not compile')}")


def _arguments(case: CallCase) -> list[Value]:
    """Return the arguments for a driver; those that are named stand in the order of the function."""
    return [_driver_json(value) for value in (*case.args, *case.kwargs.values())]


def _driver_json(value: Value) -> Value:  # noqa: PLR0911  (One per type.)
    """Return an argument in the form that drivers read: {1: 2} as ["dict", [[1, 2]]], inf as "float:inf"."""
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else f"float:{value}"
        case Instance():
            return _driver_json(to_values(value)) if to_values(value) is not value else _no_form(value)
        case Array():
            return _driver_json(value.elements)
        case dict():
            return ["dict", [[_driver_json(key), _driver_json(item)] for key, item in value.items()]]
        case list() | tuple():
            return [_driver_json(item) for item in value]
        case set() | frozenset():
            return sorted((_driver_json(item) for item in value), key=repr)
    return _no_form(value)


def _no_form(value: Value) -> Value:
    raise CannotJudge(f"an argument of type {type(value).__name__} has no form in other languages than Python")


def _as_in_python(expected: Value, outcome: Value) -> Value:
    """Return a value as what it would be in Python, where other languages have one form for two of Python's."""
    if isinstance(expected, set | frozenset) and isinstance(outcome, list):
        return set(map(_hashable, outcome))
    if expected is None and outcome == []:
        return None  # An empty linked list or tree.
    return outcome


def _hashable(value: Value) -> Value:
    return tuple(map(_hashable, value)) if isinstance(value, list) else value
