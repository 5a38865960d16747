"""Problems from any file: columns by their names, chats, final answers, and no record lost."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from truegold.pipeline import problem_file
from truegold.pipeline.problem_file import Batch, ProblemColumns, read_problems
from truegold.verifiers import InputError


def read(path: Path, **columns: str) -> Batch:
    """All problems of a file in one batch."""
    whole = Batch()
    for batch in read_problems(path, ProblemColumns(**columns)):
        for name in ("ids", "numbers", "prompts", "golds", "solutions"):
            getattr(whole, name).extend(getattr(batch, name))
    return whole


def jsonl(folder: Path, *rows: Any) -> Path:
    path = folder / "problems.jsonl"
    path.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))
    return path


def test_columns_are_found_by_their_names(tmp_path):
    found = read(jsonl(tmp_path, {"id": 7, "question": "Q?", "answer": "48+24 = 72\n#### 72"}))
    assert (found.ids, found.prompts, found.golds, found.solutions) == (["7"], ["Q?"], ["72"], [18])
    found = read(jsonl(tmp_path, {"problem": "P", "solution": "So \\boxed{\\frac12}."}))
    assert (found.ids, found.golds) == (["1"], ["\\frac12"])
    found = read(jsonl(tmp_path, {"prompt": [{"role": "user", "content": "C?"}], "reward_model": {"ground_truth": 5}}))
    assert (found.prompts, found.golds) == (["C?"], ["5"])


def test_columns_can_be_named(tmp_path):
    path = jsonl(tmp_path, {"Body": "B", "prompt": "no", "meta": {"label": 4}, "key": "k"})
    found = read(path, prompt="Body", gold="meta.label", id="key")
    assert (found.ids, found.prompts, found.golds) == (["k"], ["B"], ["4"])


def test_what_cannot_be_read_is_a_problem_without_a_prompt(tmp_path):
    found = read(
        jsonl(tmp_path, {"prompt": "A"}, "{broken", "", {"prompt": None}, {"prompt": 12}, {"prompt": "\ud800"})
    )
    assert found.numbers == [1, 2, 4, 5, 6]
    assert found.prompts == ["A", "", "", "12", "?"]
    assert found.golds == [None] * 5


def test_a_file_without_a_prompt_column_says_what_it_has(tmp_path):
    with pytest.raises(InputError, match=r"has no prompt column .*it has: titel, text_fr.*--prompt-column"):
        read(jsonl(tmp_path, {"titel": "A", "text_fr": "B"}))
    with pytest.raises(InputError, match=r"has no column 'lable'"):
        read(jsonl(tmp_path, {"prompt": "A"}), gold="lable")
    with pytest.raises(InputError, match="is empty"):
        (tmp_path / "empty.jsonl").write_text("")
        read(tmp_path / "empty.jsonl")


def test_batches_are_bounded_and_parquet_and_csv_are_read(tmp_path, monkeypatch):
    frame = pl.DataFrame({"id": range(25), "problem": [f"P{number}" for number in range(25)]})
    frame.write_parquet(tmp_path / "p.parquet")
    frame.write_csv(tmp_path / "p.csv")
    monkeypatch.setattr(problem_file, "BATCH_ROWS", 10)
    assert [len(batch) for batch in read_problems(tmp_path / "p.parquet", ProblemColumns())] == [10, 10, 5]
    assert read(tmp_path / "p.csv").ids == read(tmp_path / "p.parquet").ids == [str(number) for number in range(25)]
