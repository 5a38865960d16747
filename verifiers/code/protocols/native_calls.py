"""Calls functions in languages other than Python, by a driver around the solution (`drivers`).

    {"entry_point": "Solution().twoSum", "cases": [{"args": [[2, 7], 9], "expected": [0, 1]}]}, language cpp

The driver reads arguments as JSON, one line for each call, and prints one line for each returned value. The solution's
process never gets an expected value, so that forging a line does not help: the line still has to hold the right value.

A program whose types cannot be written as JSON fails. Tests whose values do not fit one type of the language raise
CannotJudge.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from urllib.parse import quote

from truegold.verifiers.code.drivers import NO_FORM, CallTarget, Signature, compose, language_name_of, names_like
from truegold.verifiers.code.outcomes import CannotJudge, Judged, failed_end
from truegold.verifiers.code.protocols.python_tests import ExpectedResults, judge_outcomes, read_results
from truegold.verifiers.code.protocols.stdio import NotCompiled
from truegold.verifiers.code.suite.reading import CallCase, Calls
from truegold.verifiers.code.value_comparison import to_values
from truegold.verifiers.sandbox.execution import Limits, Program
from truegold.verifiers.sandbox.inside.wire.value_types import Array, Instance, Value
from truegold.verifiers.sandbox.local import Backend

TYPED = ("cpp", "java")
"""Languages with static types, where each argument and result has one type."""


def judge_native_calls(
    tests: Calls, source: str, language: str, backend: Backend, limits: Limits, run_all: bool
) -> Judged:
    """Call the entry point for every case and judge the results. Raises NotCompiled and CannotJudge."""
    if language_name_of(language) in TYPED:
        _require_types(tests.cases)
    lines = [json.dumps(_arguments(case), separators=(",", ":")) for case in tests.cases]
    target = CallTarget(tests.entry_point, tests.in_place, tests.signature or Signature())
    prepared = backend.prepare(Program(language, compose(language, source, target)), limits)
    if prepared.compiled is not None and not prepared.compiled.ok and b"overloaded" in prepared.compiled.stderr:
        target = replace(target, arity=len(_arguments(tests.cases[0])))
        prepared = backend.prepare(Program(language, compose(language, source, target)), limits)
    if prepared.compiled is not None and (failure := failed_end(prepared.compiled)) is not None:
        lacks_form = NO_FORM in prepared.compiled.stderr
        why = f"a type of {target.name!r} cannot be written as JSON" if lacks_form else failure[1]
        raise NotCompiled(why if names_like(source, target.name) else f"the program has no {target.name!r}")
    execution = prepared.run("".join(f"{line}\n" for line in lines).encode())
    replied = replace(execution, result=execution.stdout)
    returned = read_results(replied, len(tests.cases), {}, limits, ExpectedResults([]))
    cases = tuple(case._replace(expected=to_values(case.expected)) for case in tests.cases)
    outcomes = [_as_in_python(case.expected, outcome) for case, outcome in zip(cases, returned.outcomes, strict=True)]
    return judge_outcomes(replace(tests, cases=cases), replace(returned, outcomes=outcomes), run_all)


def _require_types(cases: Sequence[CallCase]) -> None:
    """Raise CannotJudge if an argument or the results of the tests do not fit one static type."""
    mixed = any(_mixes_lists(value) for case in cases for value in (*case.args, *case.kwargs.values(), case.expected))
    if mixed or len({_type_family(case.expected) for case in cases} - {None}) > 1:
        raise CannotJudge("the tests mix values of several types, which do not fit one type of the language")


def _type_family(value: Value) -> str | None:
    """Return the family of a value's type, such as "number", or None for the value None."""
    families = {bool: "truth value", int: "number", float: "number", str: "text", dict: "dictionary"}
    return None if value is None else families.get(type(value), "list")


def _mixes_lists(value: Value) -> bool:
    """Return whether a list mixes lists with other values, as in [1, [2, [3]]]."""
    if isinstance(value, dict):
        return _mixes_lists(list(value)) or _mixes_lists(list(value.values()))
    if not isinstance(value, list):  # A tuple has a type for each of its items.
        return isinstance(value, tuple) and any(map(_mixes_lists, value))
    kinds = {_type_family(item) for item in value} - {None}
    return (len(kinds) > 1 and "list" in kinds) or any(map(_mixes_lists, value))


def _arguments(case: CallCase) -> list[Value]:
    """Return the arguments for a driver: positional ones, then named ones, which are in the function's order."""
    return [_driver_json(value) for value in (*case.args, *case.kwargs.values())]


def _driver_json(value: Value) -> Value:  # noqa: PLR0911  (One per type.)
    """Return an argument as drivers read it: {1: "a b"} -> ["dict:", [[1, "a%20b"]]], inf -> "float:inf"."""
    match value:
        case None | bool() | int():
            return value
        case str():
            return quote(value, safe="", errors="surrogatepass")
        case float():
            return value if math.isfinite(value) else f"float:{value}"
        case Instance():
            return _driver_json(to_values(value)) if to_values(value) is not value else _no_form(value)
        case Array():
            return _driver_json(value.elements)
        case dict():
            return ["dict:", [[_driver_json(key), _driver_json(item)] for key, item in value.items()]]
        case list() | tuple():
            return [_driver_json(item) for item in value]
        case set() | frozenset():
            return sorted((_driver_json(item) for item in value), key=repr)
    return _no_form(value)


def _no_form(value: Value) -> Value:
    raise CannotJudge(f"an argument of type {type(value).__name__} exists only in Python")


def _as_in_python(expected: Value, outcome: Value) -> Value:
    """Return a result as the Python type that is expected, where JSON has one form for two types."""
    if isinstance(expected, set | frozenset) and isinstance(outcome, list):
        return set(map(_hashable, outcome))
    if expected is None and outcome == []:
        return None  # An empty linked list or tree.
    return outcome


def _hashable(value: Value) -> Value:
    return tuple(map(_hashable, value)) if isinstance(value, list) else value
