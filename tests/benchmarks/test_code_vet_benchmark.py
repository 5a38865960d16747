"""Tests that the benchmark of vetting counts what vetting finds, on tiny data."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "code_vet.py"

DOUBLE = {
    "task_id": "HumanEval/900",
    "prompt": "def double(x):\n    '''Twice x.'''\n",
    "entry_point": "double",
    "canonical_solution": "    return x * 2\n",
    "test": "def check(candidate):\n    assert candidate(0) == 0\n    assert candidate(2) == 4\n",
}
ANY_OF_TWO = {
    "task_id": "pick",
    "problem": "Print two different numbers from 1 to n. If there are several answers, print any.",
    "solution": "n = int(input())\nprint(1, n)\n",
    "tests": [{"input": f"{n}\n", "output": f"{n} 1\n"} for n in (2, 3, 5)],
}
SUM = {
    "task_id": "sum",
    "problem": "Print the sum of a and b.",
    "solution": "print(sum(map(int, input().split())))\n",
    "tests": [{"input": f"{a} {a * a}\n", "output": f"{a + a * a}\n"} for a in (2, 3, 5, 11)],
}


def test_suites_are_vetted_counted_and_written(tmp_path: Path) -> None:
    (tmp_path / "humaneval.jsonl").write_text(json.dumps(DOUBLE) + "\n")
    (tmp_path / "codecontests_stdio.jsonl").write_text("".join(json.dumps(row) + "\n" for row in (ANY_OF_TWO, SUM)))
    page, numbers = tmp_path / "page.md", tmp_path / "numbers.json"
    command = [sys.executable, str(BENCHMARK), str(tmp_path), "--json", str(numbers), "--write", str(page)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    measured = json.loads(numbers.read_text())
    assert "Left out: mbpp.jsonl is not there." in measured["missing"]
    assert measured["sets"]["humaneval"]["outcomes"] == {"keep": 1}
    assert measured["sets"]["codecontests"]["outcomes"] == {"keep": 1, "drop": 1}
    text = page.read_text()
    assert "# Vetting test suites" in text and "several right answers" in text


def test_a_folder_that_is_not_there_is_one_clear_line(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(BENCHMARK), str(tmp_path / "none")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1 and done.stderr.count("\n") == 1 and "is not a folder" in done.stderr
