"""Labelled programs: buggy programs of QuixBugs, programs of models, and mutants.

If label and verdict differ, program and tests are run again as one ordinary program in the sandbox. The label is called
wrong if this run agrees with the verdict. For this, tests that are calls become assertions on every case, with numpy's
default tolerance for floats. Functions that the prompt defines are replaced by those of the prompt, because in some
mutants such a function is changed, and their labels come from tests that used it. For half of the rows (by a hash),
only counts are kept.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import code_rows
from code_judging import Outcome, as_one_program, judge_all, verifier
from code_rows import Record, Row

from truegold.verifiers.code.python_source import stub_names
from truegold.verifiers.code.suite.reading import Calls, read_suite

CHECK_CASES = """
def check(candidate):
    import copy, math, pickle, sys

    def same(got, expected):
        if isinstance(expected, float) or isinstance(got, float):
            return got == expected or math.isclose(got, expected, rel_tol=1e-5, abs_tol=1e-8)
        if isinstance(expected, (list, tuple)) and isinstance(got, (list, tuple)):
            return len(got) == len(expected) and all(map(same, got, expected))
        if isinstance(expected, dict) and isinstance(got, dict):
            return got.keys() == expected.keys() and all(same(got[key], expected[key]) for key in expected)
        return got == expected

    for args, kwargs, expected in pickle.load(sys.stdin.buffer):
        got = candidate(*copy.deepcopy(args), **kwargs)
        assert same(got, expected), f"{args!r:.60} gives {got!r:.60}, expected {expected!r:.60}"
"""

Say = Callable[[str], None]


def measure(
    records: Mapping[str, list[Record]], plus: Mapping[str, list[Row]], jobs: int, say: Say
) -> dict[str, dict[str, Any]]:
    """Counts by set and label."""
    sets: dict[str, dict[str, Any]] = {}
    if "quixbugs" in records:
        rows = code_rows.quixbugs(records["quixbugs"], "buggy")
        sets["quixbugs buggy"] = _set(rows, {}, jobs, say)
    for name in ("codet", "mutants"):
        if name not in records:
            continue
        base = {it["task_id"]: code_rows.humaneval_tests(it) for it in records.get("humaneval", [])}
        base_tests = {task: tests["code"] for task, tests in base.items()}
        rows = code_rows.samples(f"{name} base", records[name], base, "base_pass", lambda _: True)
        sets[f"{name} base"] = _set(rows, base_tests, jobs, say)
        more = {row.key: row.tests for row in plus.get("humanevalplus", [])}
        rows = code_rows.samples(f"{name} plus", records[name], more, "plus_pass", _has_plus_label)
        sets[f"{name} plus"] = _set(rows, {}, jobs, say)
    return {name: counts for name, counts in sets.items() if counts["rows"]}


def _set(rows: Sequence[Row], tests: Mapping[str, str], jobs: int, say: Say) -> dict[str, Any]:
    """tests: the assertions of each problem as one piece of code, for the second opinion, where a row has none."""
    outcomes = judge_all(rows, verifier(), jobs)
    pairs = list(zip(rows, outcomes, strict=True))
    apart = [_apart(row, it, tests) for row, it in pairs if it.accepted is not row.right]
    counts = {
        "rows": len(rows),
        "right": sum(bool(row.right) for row in rows),
        "accepted_wrong": sum(it.accepted and not row.right for row, it in pairs),
        "refused_right": sum(bool(row.right) and not it.accepted for row, it in pairs),
        "unjudged": sum(it.score is None for it in outcomes),
        "one_process": sum(it.in_one_process for it in outcomes),
        "label_wrong": sum(entry["label_wrong"] for entry in apart),
        "apart": [entry for entry in apart if entry.pop("may_be_read")],
        "apart_rows": len(apart),
    }
    if rows:
        summary = f"{counts['accepted_wrong']} wrong accepted, {counts['refused_right']} right refused"
        say(f"{rows[0].set_name}: {summary}, {counts['label_wrong']} labels are wrong")
    return counts


def _apart(row: Row, it: Outcome, tests: Mapping[str, str]) -> dict[str, Any]:
    passed, second = _second_opinion(row, tests.get(row.key.partition("#")[0]))
    return {
        "id": row.key,
        "label": "right" if row.right else "wrong",
        "ours": "accepts" if it.accepted else it.reason,
        "ours_said": it.explanation,
        "second": second,
        "label_wrong": passed is not None and it.score is not None and passed is it.accepted,
        "may_be_read": row.may_be_read,
    }


def _second_opinion(row: Row, test: str | None) -> tuple[bool | None, str]:
    if row.tests["type"] == "calls":
        suite = read_suite(row.tests).tests
        assert isinstance(suite, Calls)
        cases = pickle.dumps([(case.args, dict(case.kwargs), case.expected) for case in suite.cases])
        return as_one_program(_with_given_helpers(row), CHECK_CASES, cases)
    test = row.tests.get("code", test)
    return as_one_program(_with_given_helpers(row), test) if test is not None else (None, "")


def _with_given_helpers(row: Row) -> Row:
    helpers = stub_names(row.tests.get("stub", ""), row.tests.get("entry_point", ""))
    preamble = f"_own = {{'__name__': 'solution'}}\nexec({row.program!r}, _own)\nglobals().update(_own)"
    return replace(row, program=f"{preamble}\n{helpers}")


def _has_plus_label(record: Record) -> bool:
    """Of model programs that label was looked for only where the base tests pass."""
    return bool(record["plus_why"] != "skipped")
