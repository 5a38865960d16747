"""The rows that `code_verifier.py` judges: a program, its tests, and the right verdict if it is known.

    Row("humaneval", "HumanEval/0", program="def has_close_elements...", tests={"type": "asserts", ...}, right=True)

DATA_DIR has one JSON Lines file for each set; files may be missing. Tests contain values that JSON does not have
(tuples, sets) in the tagged form of the verifier. HumanEval+ and MBPP+ need the results of their reference programs
first (`code_evalplus.py`).
"""

from __future__ import annotations

import ast
import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FILES = {
    "hostile": "hostile.jsonl",
    "humaneval": "humaneval.jsonl",
    "mbpp": "mbpp.jsonl",
    "humanevalplus": "humanevalplus.jsonl",
    "mbppplus": "mbppplus.jsonl",
    "quixbugs": "quixbugs.jsonl",
    "codecontests": "codecontests_stdio.jsonl",
    "leetcode": "leetcode.jsonl",
    "codet": "codet_labelled.jsonl",
    "mutants": "humaneval_mutants.jsonl",
}
SLOW_QUIXBUGS = {"knapsack": "[6404180,", "levenshtein": '["amanaplanacanalpanama",'}
"""Cases that QuixBugs' own tests skip, because its reference programs take minutes for them."""

Json = Any
Record = Mapping[str, Json]


@dataclass(frozen=True, slots=True)
class Row:
    """One program to judge. right: whether it should pass, None where nothing says so."""

    set_name: str
    key: str
    program: str
    tests: Mapping[str, Json]
    right: bool | None = True
    limits: Mapping[str, float] = field(default_factory=dict)

    @property
    def response(self) -> str:
        """The program as a model gives it: in a block of code."""
        fence = "~~~~" if "```" in self.program else "```"
        return f"{fence}python\n{self.program}\n{fence}"

    @property
    def info(self) -> dict[str, Json]:
        """The arguments of the verifier in addition to the response."""
        return {"tests": dict(self.tests), **({"limits": dict(self.limits)} if self.limits else {})}

    @property
    def may_be_read(self) -> bool:
        """Whether the row may be read: in labelled sets half of the rows, by a hash. Other rows are only counted."""
        return int(hashlib.sha256(f"{self.set_name}{self.key}".encode()).hexdigest()[0], 16) % 2 == 0


def load(folder: Path) -> tuple[dict[str, list[Record]], list[str]]:
    """The records of each set that is there, and a line for each file that is not."""
    records = {name: _lines(folder / file) for name, file in FILES.items() if (folder / file).exists()}
    return records, [f"{file} is not in {folder}" for name, file in FILES.items() if name not in records]


def _lines(path: Path) -> list[Record]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]


def humaneval(records: list[Record]) -> list[Row]:
    """Return HumanEval's reference programs."""
    return [
        Row("humaneval", record["task_id"], record["prompt"] + record["canonical_solution"], humaneval_tests(record))
        for record in records
    ]


def humaneval_tests(record: Record) -> dict[str, Json]:
    """Return the tests of a problem of HumanEval."""
    tests = {"type": "asserts", "entry_point": record["entry_point"], "code": record["test"]}
    return {**tests, "stub": record["prompt"]}


def mbpp(records: list[Record]) -> list[Row]:
    """Return MBPP's reference programs, with the challenge tests too."""
    rows = []
    for record in records:
        code = "\n".join([record["test_setup_code"], *record["test_list"], *record["challenge_test_list"]])
        rows.append(Row("mbpp", str(record["task_id"]), record["code"], {"type": "asserts", "code": code}))
    return rows


def leetcode(records: list[Record]) -> list[Row]:
    """Return LeetCode's reference programs."""
    return [
        Row(
            "leetcode",
            record["task_id"],
            record["canonical_solution"],
            {
                "type": "asserts",
                "entry_point": record["entry_point"],
                "code": record["test"],
                "prelude": record["prelude"],
            },
        )
        for record in records
    ]


def codecontests(records: list[Record]) -> list[Row]:
    """Return CodeContests' reference programs."""
    return [
        Row("codecontests", record["task_id"], record["solution"], {"type": "stdio", "cases": record["tests"]})
        for record in records
    ]


def quixbugs(records: list[Record], side: str) -> list[Row]:
    """side: `correct` or `buggy`."""
    return [
        Row(f"quixbugs {side}", record["task_id"], record[side], _quixbugs_tests(record), side == "correct")
        for record in records
    ]


def _quixbugs_tests(record: Record) -> dict[str, Json]:
    """QuixBugs' JSON cases, compared as its tests compare; where it has test functions instead, those."""
    name = record["task_id"]
    if not record["json_tests"]:
        tests = {"type": "asserts", "entry_point": name, "code": _functions_called(record["pytest"])}
        return {**tests, "prelude": record["node_py"]} if record["node_py"] else tests
    slow = SLOW_QUIXBUGS.get(name)
    cases = [case for case in record["json_tests"] if not (slow and _compact(case["args"]).startswith(slow))]
    compare = _QUIXBUGS_ASSERTS.get(name)
    if compare is None:
        return {"type": "calls", "entry_point": name, "cases": cases}
    return {"type": "asserts", "entry_point": name, "code": "\n".join(map(compare, cases))}


def _compact(value: Json) -> str:
    return json.dumps(value, separators=(",", ":"))


def _listed(name: str) -> Callable[[Record], str]:
    return lambda case: f"assert list({name}({', '.join(map(repr, case['args']))})) == {case['expected']!r}"


def _near_root(case: Record) -> str:
    radicand, tolerance = case["args"]
    return f"assert abs(sqrt({radicand!r}, {tolerance!r}) - {case['expected']!r}) <= {tolerance!r}"


_QUIXBUGS_ASSERTS: dict[str, Callable[[Record], str]] = {
    "flatten": _listed("flatten"),
    "kheapsort": _listed("kheapsort"),
    "sqrt": _near_root,
}


def _functions_called(source: str) -> str:
    """Test functions for pytest, without its imports, and a call of each."""
    tree = ast.parse(source)
    tree.body = [node for node in tree.body if not isinstance(node, ast.Import | ast.ImportFrom | ast.If)]
    names = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
    return "\n".join([ast.unparse(tree), *(f"{name}()" for name in names)])


def samples(
    name: str, records: list[Record], suites: Mapping[str, Record], label: str, keep: Callable[[Record], bool]
) -> list[Row]:
    """Programs for HumanEval's problems with a label. suites: tests by problem; label: the column that says right."""
    counts: dict[str, int] = {}
    rows = []
    for record in records:
        task = record["task_id"]
        counts[task] = occurrence = counts.get(task, -1) + 1  # in its file, so that a row has one name in all sets
        if task in suites and keep(record):
            rows.append(Row(name, f"{task}#{occurrence}", record["code"], suites[task], record[label]))
    return rows
