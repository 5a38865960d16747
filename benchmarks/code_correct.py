"""Reference programs: how many pass under plain Python, and how many of these the verifier `code` accepts.

measure(records, jobs=2)  ->  {"sets": {"humaneval": {"rows": 164, "plain": 164, "accepted": 164, ...}}, ...}
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import code_evalplus
import code_plain
import code_rows
from code_judging import Outcome, judge_all, verifier
from code_plain import Plain
from code_rows import Record, Row

from truegold.verifiers.sandbox.execution import Limits

Say = Callable[[str], None]
Counts = dict[str, Any]

TIME_FACTOR = 4.0
"""What a program may take of its reference program's CPU time, as EvalPlus has it."""

ROOM = {"output_mb": 512.0, "memory_mb": 4096}
PLUS = ("humanevalplus", "mbppplus")
SIMPLE: Mapping[str, Callable[[list[Record]], list[Row]]] = {
    "humaneval": code_rows.humaneval,
    "mbpp": code_rows.mbpp,
    "quixbugs": lambda records: code_rows.quixbugs(records, "correct"),
    "codecontests": code_rows.codecontests,
    "leetcode": code_rows.leetcode,
}


def measure(records: Mapping[str, list[Record]], plus: Mapping[str, list[Row]], jobs: int, say: Say) -> Counts:
    """plus: the rows of HumanEval+ and MBPP+, for which the reference programs have run once already."""
    sets = {}
    for name, read in SIMPLE.items():
        if name in records:
            sets[name] = _set(read(records[name]), jobs, say)
    for name, rows in plus.items():
        sets[name] = _set(rows, jobs, say)
    return sets


def plus_rows(records: Mapping[str, list[Record]], jobs: int, say: Say) -> tuple[dict[str, list[Row]], list[str]]:
    """Return the rows of each set of EvalPlus, and a line for each problem that has none."""
    rows_by_set, lost = {}, []
    for name in PLUS:
        if name in records:
            rows_by_set[name], without = code_evalplus.rows(name, records[name], jobs)
            lost += without
            say(f"{name}: {len(rows_by_set[name])} problems have answers of their reference programs")
    return rows_by_set, lost


def _set(rows: Sequence[Row], jobs: int, say: Say) -> Counts:
    plain = code_plain.all_pass(rows, jobs, say)
    outcomes = judge_all(rows, verifier(), jobs)
    roomy = _with_room(rows, plain, outcomes, jobs)
    pairs = list(zip(plain, outcomes, strict=True))
    counts = {
        "rows": len(rows),
        "plain": sum(reference.passed for reference in plain),
        "accepted": sum(outcome.accepted for outcome in outcomes),
        "refused": sum(reference.passed and not outcome.accepted for reference, outcome in pairs),
        "refused_with_room": sum(not outcome.accepted for outcome in roomy.values()),
        "unjudged": sum(outcome.score is None for outcome in outcomes),
        "more": sum(outcome.accepted and not reference.passed for reference, outcome in pairs),
        "one_process": sum(outcome.in_one_process for outcome in outcomes),
        "exceptions": [
            _exception(row, *pair, roomy.get(index))
            for index, (row, pair) in enumerate(zip(rows, pairs, strict=True))
            if pair[0].passed is not pair[1].accepted
        ],
    }
    name = rows[0].set_name if rows else "nothing"
    say(f"{name}: {counts['accepted']} of {counts['rows']} accepted, {counts['plain']} pass plainly")
    return counts


def _with_room(
    rows: Sequence[Row], plain: Sequence[Plain], outcomes: Sequence[Outcome], jobs: int
) -> dict[int, Outcome]:
    """Of rows that only Python itself passes, by position: the verdict with limits set after the reference program."""
    triples = enumerate(zip(rows, plain, outcomes, strict=True))
    again = {
        index: replace(row, limits={**ROOM, "cpu_s": max(Limits().cpu_s, TIME_FACTOR * reference.cpu_s)})
        for index, (row, reference, outcome) in triples
        if reference.passed and not outcome.accepted
    }
    return dict(zip(again, judge_all(list(again.values()), verifier(), jobs), strict=True))


def _exception(row: Row, reference: Plain, outcome: Outcome, roomy: Outcome | None) -> dict[str, Any]:
    """Return the verdicts of the verifier and of plain Python on a row on which they differ."""
    with_room = None
    if roomy is not None:
        with_room = "accepts" if roomy.accepted else roomy.explanation
    return {
        "set": row.set_name,
        "id": row.key,
        "plain": "passes" if reference.passed else "fails",
        "plain_cpu_s": reference.cpu_s,
        "ours": "accepts" if outcome.accepted else outcome.reason,
        "plain_said": reference.explanation,
        "ours_said": outcome.explanation,
        "with_room": with_room,
    }
