"""The benchmark of cleaning counts what fires in which half, and checks every row. Its data here is tiny."""

from __future__ import annotations

import json
import sys
from pathlib import Path

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))

import curation_cleaning  # noqa: E402

ROWS = [
    {"question": "Which is prime?<br/>(A) 4<br/>(B) 7<br/>(C) 9", "answer": "B"},
    {"prompt": [{"role": "user", "content": "Is 91 prime? Let's think step by step."}], "label": "No"},
    {"problem": "Write a program.", "tests": ["assert f()"]},
    {"input": "What is 6*7?", "target": 42.0},
]


def test_every_problem_is_counted_in_one_half(tmp_path):
    (tmp_path / "few.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    measured = curation_cleaning.measure(tmp_path)
    assert sum(half.rows for half in measured.values()) == 3
    fired = {reason for half in measured.values() for reason in half.files}
    assert fired == {"html_tags", "multiple_choice", "boilerplate", "yes_no_answer"}
    table = curation_cleaning.table(measured)
    assert "| lost_backslashes | 0 | 0 |  |" in table
    assert "choice 1" in table
