"""Tests of HumanEval+ and MBPP+ for the verifier `code`, with results compared like in EvalPlus.

A problem is a list of inputs; the expected results are those of its reference program. Results are compared with `==`,
floats within EvalPlus's tolerances (absolute `atol`, by default 1e-6, and relative 1e-7). A few problems have a special
comparison, written here as test code (`ORACLES`). Facts about single problems come from EvalPlus 0.3.1 (Apache-2.0).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from code_plain import Call, answers
from code_rows import Json, Record, Row

from truegold.verifiers.sandbox.inside.wire.decoding import decode
from truegold.verifiers.sandbox.inside.wire.encoding import encode
from truegold.verifiers.sandbox.inside.wire.value_types import Undecodable

ABSOLUTE, RELATIVE = 1e-6, 1e-7


def _tuples(inputs: list[Any]) -> list[Any]:
    return [tuple(value) for value in inputs]


def _inner_tuples(inputs: list[Any]) -> list[Any]:
    return [[tuple(value) for value in outer] for outer in inputs]


def _all_tuples(value: Any) -> Any:
    return tuple(map(_all_tuples, value)) if isinstance(value, list) else value


def _sets(inputs: list[Any]) -> list[Any]:
    return [[set(item) if isinstance(item, list) and item else {} for item in inputs[0]]]


RESTORED: list[tuple[str, Callable[[list[Any]], list[Any]]]] = [
    ("2 116 132 143 222 261 273 394 399 421 424 429 470 560 579 596 616 630 726 740 744 809", _tuples),
    ("63 64 70 94 120 237 272 299 400 409 417 438 473 614 780", _inner_tuples),
    ("75 413 444 753", lambda it: [_tuples(it[0]), it[1]]),
    ("106 750", lambda it: [it[0], tuple(it[1])]),
    ("115", _sets),
    ("124", lambda it: [float(it[0]), complex(it[1])]),
    ("252", lambda it: [complex(it[0])]),
    ("250 307 405 446 617 720 763 808", lambda it: [tuple(it[0]), *it[1:]]),
    ("259 278 401 445", lambda it: [tuple(tuple(v) if isinstance(v, list) else v for v in outer) for outer in it]),
    ("722", lambda it: [{key: tuple(value) for key, value in it[0].items()}, *it[1:]]),
    ("580 615 791", lambda it: [_all_tuples(value) for value in it]),
]
"""What became lists and texts on the way through JSON, by number of the MBPP+ problem."""

ORACLES = {
    "find_zero": "abs(sum(c * math.pow(got, i) for i, c in enumerate(args[0]))) <= 1e-4",
    "are_equivalent": "True",
    "sum_div": "same(got, wanted) or got == 0",
    "surface_Area": "same(got, wanted) or got == round(args[0] ** 2 + 2 * args[0] * math.hypot(args[0] / 2, args[1]))",
    "digit_distance_nums": "same(got, wanted) or got == sum(abs(int(a) - int(b)) for a, b in zip("
    "str(args[0]).zfill(len(str(args[1]))), str(args[1]).zfill(len(str(args[0])))))",
    **dict.fromkeys(
        ("check_str", "text_match_three", "text_starta_endb"),
        "wanted == (got if isinstance(got, bool) else got is not None)",
    ),
    **dict.fromkeys(
        (
            "similar_elements",
            "find_char_long",
            "common_in_nested_lists",
            "extract_singly",
            "larg_nnum",
            "intersection_array",
            "find_dissimilar",
            "Diff",
        ),
        "set(got) == set(wanted)",
    ),
}
"""Problems whose results are not compared with the reference's, or not in order: what EvalPlus asks of them instead."""

GIVES_NO_VALUE = ("check_str", "text_match_three", "text_starta_endb")
"""Whether there is a result counts, and not which."""

_ORACLE_TEST = """import math
inf, nan = math.inf, math.nan

def same(got, wanted):
    return got == wanted or (isinstance(wanted, float) and math.isclose(got, wanted, rel_tol=1e-7, abs_tol=1e-6))

INPUTS = {inputs!r}
WANTED = {expected_values!r}

def check(candidate):
    for args, wanted in zip(INPUTS, WANTED):
        got = candidate(*args)
        assert {oracle}
"""


def rows(set_name: str, records: Sequence[Record], jobs: int) -> tuple[list[Row], list[str]]:
    """A row for each problem whose reference program answers all inputs; a line for each where it does not."""
    programs = [program(record) for record in records]
    calls: list[list[Call]] = [[(args, {}) for args in inputs(record)] for record in records]
    names = [record["entry_point"] for record in records]
    rows_with_tests, lost = [], []
    for record, source, replies in zip(records, programs, answers(programs, names, calls, jobs), strict=True):
        tests = replies if isinstance(replies, str) else suite(record, replies)
        if isinstance(tests, str):
            lost.append(f"{record['task_id']}: {tests}")
        else:
            rows_with_tests.append(Row(set_name, record["task_id"], source, tests))
    return rows_with_tests, lost


def program(record: Record) -> str:
    """Return the reference program."""
    return str(record["prompt"] + record["canonical_solution"])


def inputs(record: Record) -> list[list[Any]]:
    """All inputs, base before plus, with the types that the program was written for."""
    all_inputs = [*record["base_input"], *(record["plus_input"] or [])]
    dataset, _, task_number = record["task_id"].partition("/")
    for numbers, restore in RESTORED if dataset == "Mbpp" else []:
        if task_number in numbers.split():
            return [list(restore(args)) for args in all_inputs]
    return [list(args) for args in all_inputs]


def suite(record: Record, replies: Sequence[Json]) -> dict[str, Json] | str:
    """Tests with the reference's answers (tagged), or why there are none."""
    name, all_inputs = record["entry_point"], inputs(record)
    oracle = ORACLES.get(name)
    try:
        expected_values = [decode(reply) for reply in replies]
    except Undecodable as error:
        return f"an answer of its reference program cannot be said: {error}"
    if oracle is not None:
        if name in GIVES_NO_VALUE:
            expected_values = [value if isinstance(value, bool) else value is not None for value in expected_values]
        code = _ORACLE_TEST.format(inputs=all_inputs, expected_values=expected_values, oracle=oracle)
        return {"type": "asserts", "entry_point": name, "code": code, "stub": record["prompt"]}
    cases = [
        {"args": [encode(arg, {}) for arg in args], "expected": reply}
        for args, reply in zip(all_inputs, replies, strict=True)
    ]
    atol = record["atol"] or ABSOLUTE
    checker = {"type": "values", "abs_tol": atol, "rel_tol": RELATIVE}
    return {"type": "calls", "entry_point": name, "cases": cases, "checker": checker}
