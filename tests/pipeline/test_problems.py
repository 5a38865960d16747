"""Problems from any file: columns by their names, chats, final answers, and no record lost."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from truegold.pipeline import problems
from truegold.pipeline.near.gold_keys import join_golds
from truegold.pipeline.problems import Batch, ProblemColumns, problems_of, read_problems
from truegold.pipeline.sources.data_files import open_file, split_file
from truegold.verifiers import InputError


def read(path: Path, **columns: str) -> Batch:
    """All problems of a file in one batch."""
    whole = Batch()
    for batch in read_problems(path, ProblemColumns(**columns)):
        for name in ("ids", "row_numbers", "prompts", "golds", "solution_chars"):
            getattr(whole, name).extend(getattr(batch, name))
    return whole


def jsonl(folder: Path, *rows: Any) -> Path:
    path = folder / "problems.jsonl"
    path.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))
    return path


def test_columns_are_found_by_their_names(tmp_path):
    batch = read(jsonl(tmp_path, {"id": 7, "question": "Q?", "answer": "48+24 = 72\n#### 72"}))
    assert (batch.ids, batch.prompts, batch.golds, batch.solution_chars) == (["7"], ["Q?"], ["72"], [18])
    batch = read(jsonl(tmp_path, {"problem": "P", "solution": "So \\boxed{\\frac12}."}))
    assert (batch.ids, batch.golds) == (["1"], ["\\frac12"])
    batch = read(jsonl(tmp_path, {"prompt": [{"role": "user", "content": "C?"}], "reward_model": {"ground_truth": 5}}))
    assert (batch.prompts, batch.golds) == (["C?"], ["5"])


def test_columns_can_be_named(tmp_path):
    path = jsonl(tmp_path, {"Body": "B", "prompt": "no", "meta": {"label": 4}, "key": "k"})
    batch = read(path, prompt="Body", gold="meta.label", id="key")
    assert (batch.ids, batch.prompts, batch.golds) == (["k"], ["B"], ["4"])


def test_what_cannot_be_read_is_a_problem_without_a_prompt(tmp_path):
    batch = read(
        jsonl(tmp_path, {"prompt": "A"}, "{broken", "", {"prompt": None}, {"prompt": 12}, {"prompt": "\ud800"})
    )
    assert batch.row_numbers == [1, 2, 4, 5, 6]
    assert batch.prompts == ["A", "", "", "12", ""]
    assert batch.golds == [None] * 5


def test_a_file_without_a_prompt_column_says_what_it_has(tmp_path):
    with pytest.raises(InputError, match=r"has no prompt column, such as .*it has: titel, text_fr.*--prompt-column"):
        read(jsonl(tmp_path, {"titel": "A", "text_fr": "B"}))
    with pytest.raises(InputError, match=r"has no column 'lable'"):
        read(jsonl(tmp_path, {"prompt": "A"}), gold="lable")
    with pytest.raises(InputError, match="is empty"):
        (tmp_path / "empty.jsonl").write_text("")
        read(tmp_path / "empty.jsonl")


def test_batches_are_bounded_and_parquet_and_csv_are_read(tmp_path, monkeypatch):
    frame = pl.DataFrame({"id": range(25), "problem": [f"P{index}" for index in range(25)]})
    frame.write_parquet(tmp_path / "p.parquet")
    frame.write_csv(tmp_path / "p.csv")
    monkeypatch.setattr(problems, "BATCH_ROWS", 10)
    assert [len(batch) for batch in read_problems(tmp_path / "p.parquet", ProblemColumns())] == [10, 10, 5]
    assert read(tmp_path / "p.csv").ids == read(tmp_path / "p.parquet").ids == [str(index) for index in range(25)]


LINES = (
    b'{"prompt": "A", "gold": 1}',
    b'{"prompt": "B", "gold": 12345678901234567890123}',
    b'{"prompt": "C", "gold": 0.5}',
    b'{"prompt": [{"role": "user", "content": "D"}]}',
    b'{"gold": "no prompt"}',
    b"{broken",
    b"",
    b"  ",
    b"[1]",
    b"null",
    b'{"prompt": "E\\ud800"}',
    b'{"prompt": "\xff"}',
    b'{"prompt": " F", "id": 0, "gold": "x #### 7"}' + b"\r",
    b'{"prompt": 1e400}',
    b'{"prompt": "G", "solution": "so \\\\boxed{3}"}',
    b'{"prompt": null, "id": " "}',
    b'{"prompt": "H", "gold": NaN}',
)


@pytest.mark.parametrize("end", [b"", b"\n", b"\n\n"])
def test_odd_lines_are_read_and_none_is_lost(tmp_path, end):
    path = tmp_path / "p.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + b"\n".join(LINES * 3) + end)
    batch = read(path)
    assert len(batch.row_numbers) == 3 * (len(LINES) - 2)
    assert batch.prompts[:4] == ["A", "B", "C", "D"] and batch.golds[1] == "12345678901234567890123"
    bounded = Batch()
    for part in problems_of(open_file(path, "auto", 40), ProblemColumns()):
        bounded.row_numbers.extend(part.row_numbers)
        bounded.prompts.extend(part.prompts)
    assert bounded.row_numbers == batch.row_numbers
    assert bounded.prompts[:2] == ["A", ""]


def test_texts_are_cleaned_as_a_run_cleans_them(tmp_path):
    boxed = "What is $\\frac{1}{2}$ of 84?\nPlease reason step by step, and put your final answer within \\boxed{}."
    path = jsonl(
        tmp_path,
        {"question": "Question 3: How many&nbsp;apples?<br>", "answer": " 72 "},
        {"question": boxed, "answer": "42\n"},
        {"question": "Which is a prime?\nAnswer: 7", "answer": "7"},
    )
    batch = read(path)
    assert batch.prompts == ["How many apples?", "What is $\\frac{1}{2}$ of 84?", "Which is a prime?"]
    assert batch.golds == ["72", "42", "7"]
    (raw,) = read_problems(path, ProblemColumns(), clean=False)
    assert raw.prompts[1] == boxed


def test_programs_and_exported_rows_are_read_as_ingest_reads_them(tmp_path):
    mbpp = {"text": "Add one.", "code": "def f(x): return x + 1", "test_list": ["assert f(1) == 2"]}
    assert read(jsonl(tmp_path, mbpp)).prompts == ["Add one.\n\nYour code should pass this test:\n\nassert f(1) == 2"]
    several = {"question": "Which word?", "answer": "colour", "golds": ["color"], "other_golds": ["hue"]}
    assert read(jsonl(tmp_path, several)).golds == [join_golds(["colour", "color", "hue"])]


RECORDS = [{"id": index, "question": f"line {index}\nand more, {index}", "answer": str(index)} for index in range(1, 6)]


@pytest.mark.parametrize("name", ["train.jsonl", "train.jsonl.gz", "train.csv", "train.csv.gz", "train.parquet"])
def test_a_file_is_split_in_its_own_form(tmp_path, name):
    path = tmp_path / name
    frame = pl.DataFrame(RECORDS)
    content = b"".join(json.dumps(record).encode() + b"\n" for record in RECORDS)
    if ".csv" in name:
        content = frame.write_csv().encode()
    if name == "train.parquet":
        frame.write_parquet(path)
    else:
        path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    numbers = read(path).row_numbers
    kept, dropped = split_file(path, {numbers[1], numbers[4]}, tmp_path)
    assert (kept.name, dropped.name) == (name.replace("train", "kept"), name.replace("train", "dropped"))
    assert read(kept).ids == ["1", "3", "4"] and read(dropped).ids == ["2", "5"]
    if name == "train.parquet":
        assert pl.read_parquet(kept).equals(frame[[0, 2, 3]])
    else:
        both = [gzip.decompress(file.read_bytes()) if ".gz" in name else file.read_bytes() for file in (kept, dropped)]
        header = content.splitlines()[:1] if ".csv" in name else []
        assert sorted(b"\n".join(both).split()) == sorted(content.split() + b" ".join(header).split())


def test_lines_that_cannot_be_read_stay(tmp_path):
    path = tmp_path / "train.jsonl"
    path.write_bytes(b'{"question": "a"}\n\n{broken\n{"question": "a"}')
    kept, dropped = split_file(path, {4}, tmp_path)
    assert kept.read_bytes() == b'{"question": "a"}\n\n{broken\n'
    assert dropped.read_bytes() == b'{"question": "a"}'
