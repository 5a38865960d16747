"""Which rows may have no gold, and what rows that name `code` are judged by instead: tests, wherever they stand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ingest_files import read_file, rejects, row_of, write_lines

from truegold.verifiers import InputError

ADD = {"prompt": "Add.", "verifier": "code"}
ASSERTIONS = ["assert add(1, 2) == 3"]
WITH_TESTS = {**ADD, "verifier_args": {"tests": ASSERTIONS}}
PROGRAM = "def add(a, b):\n    return a + b"
NO_PRESET = (InputError, "no column has a usual name of problems or answers")
NO_GOLD = (InputError, "no other column has a usual name of answers")


@pytest.mark.parametrize(
    ("record", "columns", "error"),
    [
        ({"problem": "pi?", "value": "3.14", "verifier": "numeric"}, {}, NO_PRESET),
        ({"problem": "pi?", "value": "3.14", "verifier": "math"}, {}, NO_PRESET),
        ({"prompt": "Who?", "key": "me", "verifier": None}, {}, NO_PRESET),
        ({"prompt": "Who?", "key": "me", "verifier": ""}, {}, NO_PRESET),
        ({"prompt": "Who?", "key": "me", "verifier": "Alice"}, {}, NO_PRESET),
        ({"prompt": "Who?", "key": "me", "verifier": "regex"}, {}, NO_PRESET),
        ({"prompt": "Who?", "key": "me", "judge": "exact"}, {"verifier": "judge"}, NO_PRESET),
        ({"q": "Who?", "key": "me", "verifier": None}, {"prompt": "q"}, NO_GOLD),
        ({"q": "Who?", "key": "me", "verifier": "exact"}, {"prompt": "q"}, NO_GOLD),
        ({"q": "Who?", "key": "me", "judge": "exact"}, {"prompt": "q", "verifier": "judge"}, NO_GOLD),
        ({"q": "Who?", "gold": "me"}, {"prompt": "q"}, NO_GOLD),
    ],
)
def test_a_file_whose_verifiers_need_a_gold_is_refused_without_one(
    tmp_path: Path, record: dict[str, Any], columns: dict[str, str], error: tuple[type[Exception], str]
) -> None:
    with pytest.raises(error[0], match=error[1]):
        read_file(write_lines(tmp_path, record, record), tmp_path, columns=columns)


@pytest.mark.parametrize("name", ["gold", "ground_truth", "answer", "target"])
@pytest.mark.parametrize("verifier", ["exact", "numeric", "regex", None])
def test_gold_is_taken_by_its_usual_name_where_the_prompt_is_named(
    tmp_path: Path, name: str, verifier: str | None
) -> None:
    named = {"q": "Who?", name: "me", "verifier": verifier}
    others = [{"q": "When?", name: "now", "verifier": "exact"}, {"q": "Add.", **WITH_TESTS, name: None}]
    _, rows = read_file(write_lines(tmp_path, named, *others), tmp_path, columns={"prompt": "q"})
    assert [row["gold"] for row in rows] == ["me", "now", None]


@pytest.mark.parametrize(
    "record",
    [
        WITH_TESTS,
        {"prompt": "Briefly.", "verifier": "length", "verifier_args": {"max": 9}},
        {"prompt": "Think.", "verifier": "format"},
        {"prompt": "When?", "verifier": "regex", "verifier_args": {"pattern": "now"}},
    ],
)
@pytest.mark.parametrize("gold", [{}, {"gold": None}])
def test_a_row_without_gold_is_one_only_where_its_verifier_judges_without(
    tmp_path: Path, record: dict[str, Any], gold: dict[str, Any]
) -> None:
    needing = [{"prompt": "Who?", "verifier": name} for name in ("exact", "math", "choice", "regex", None)]
    path = write_lines(tmp_path, {**record, **gold}, *({**other, **gold} for other in needing))
    report, rows = read_file(path, tmp_path)
    assert [(row["verifier"], row["gold"]) for row in rows] == [(record["verifier"], None)]
    assert report.counts == {"reject:missing_gold": 5}
    assert gold or "exact needs a gold" in rejects(tmp_path)[0]["detail"]


CALLS = [{"args": [1, 2], "expected": 3}]


@pytest.mark.parametrize(
    ("columns", "tests"),
    [
        ({"tests": ASSERTIONS}, {"type": "asserts", "code": ASSERTIONS[0]}),
        ({"tests": json.dumps(ASSERTIONS)}, {"type": "asserts", "code": ASSERTIONS[0]}),
        ({"test_list": ASSERTIONS}, {"type": "asserts", "code": ASSERTIONS[0]}),
        (
            {"test_list": ASSERTIONS, "test_setup_code": "import math"},
            {"type": "asserts", "code": f"import math\n{ASSERTIONS[0]}"},
        ),
        ({"tests": {"type": "asserts", "code": ASSERTIONS[0]}}, {"type": "asserts", "code": ASSERTIONS[0]}),
        ({"test": ASSERTIONS[0]}, {"type": "asserts", "code": ASSERTIONS[0]}),
        (
            {"test": "def check(f):\n    assert f(1, 2) == 3", "entry_point": "add"},
            {"type": "asserts", "code": "def check(f):\n    assert f(1, 2) == 3", "entry_point": "add"},
        ),
        ({"test_cases": [{"input": "1", "output": "2"}]}, {"type": "stdio", "cases": [{"input": "1", "output": "2"}]}),
        ({"tests": {"inputs": ["1"], "outputs": ["2"]}}, {"type": "stdio", "cases": [{"input": "1", "output": "2"}]}),
        (
            {"tests": CALLS, "verifier_args": {"entry_point": "add"}},
            {"type": "calls", "entry_point": "add", "cases": CALLS},
        ),
        ({"tests": [], "test": ASSERTIONS[0]}, {"type": "asserts", "code": ASSERTIONS[0]}),
        ({"tests": ["assert False"], "verifier_args": {"tests": ASSERTIONS}}, ASSERTIONS),
    ],
)
def test_tests_stand_in_a_column_of_a_usual_name(tmp_path: Path, columns: dict[str, Any], tests: Any) -> None:
    row = row_of(tmp_path, {**ADD, **columns})
    assert json.loads(row["verifier_args"])["tests"] == tests
    in_meta = set(json.loads(row["meta"])) & {"test", "test_list", "test_cases"}
    assert not in_meta and row["gold"] is None


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ({}, "missing_tests"),
        ({"verifier_args": {"reward": "all"}}, "missing_tests"),
        ({"verifier_args": {"tests": []}}, "missing_tests"),
        ({"verifier_args": {"tests": {"type": "stdio", "cases": []}}}, "missing_tests"),
        ({"tests": []}, "missing_tests"),
        ({"tests": "[]"}, "missing_tests"),
        ({"test": " "}, "missing_tests"),
        ({"tests": {"note": 1}}, "unreadable_tests"),
        ({"tests": [1, 2]}, "unreadable_tests"),
        ({"gold": PROGRAM}, "missing_tests"),
    ],
)
def test_a_program_without_tests_is_rejected(tmp_path: Path, columns: dict[str, Any], reason: str) -> None:
    _, rows = read_file(write_lines(tmp_path, WITH_TESTS, {**ADD, **columns}), tmp_path)
    assert len(rows) == 1 and [reject["reason"] for reject in rejects(tmp_path)] == [reason]


@pytest.mark.parametrize("beside", [[], [{"prompt": "1+1?", "solution": "so \\boxed{2}"}]])
@pytest.mark.parametrize("solution", [PROGRAM, f"```python\n{PROGRAM}\n```", [PROGRAM, "pass"]])
def test_the_solution_of_a_program_is_no_gold(tmp_path: Path, beside: list[Any], solution: Any) -> None:
    _, rows = read_file(write_lines(tmp_path, {**WITH_TESTS, "solution": solution}, *beside), tmp_path)
    assert rows[0]["gold"] is None and PROGRAM in (rows[0]["solution"] or "")
    assert [row["gold"] for row in rows[1:]] == ["2"] * len(beside)


def test_a_column_of_gold_that_somebody_names_is_gold(tmp_path: Path) -> None:
    row = row_of(tmp_path, {**WITH_TESTS, "solution": PROGRAM}, columns={"prompt": "prompt", "gold": "solution"})
    assert row["gold"] == PROGRAM
