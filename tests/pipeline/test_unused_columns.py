"""Columns that no row carries are named, with a hint for those that look like something."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from command_line import run_command
from ingest_files import Notes, read_file, write_lines

from truegold.pipeline.config.sources import FileSource
from truegold.pipeline.sources.data_files import open_file
from truegold.pipeline.sources.presets import choose_layout
from truegold.pipeline.sources.records import look_ahead
from truegold.pipeline.sources.unused_columns import describe_unused, unused_columns

RECORD = {"question": "Ann has 3 pens and buys 4. How many has she?", "answer": "7"}


def unused(folder: Path, *records: dict[str, Any], **config: Any) -> str:
    path = write_lines(folder, *records)
    opened = open_file(path, "auto", 2**20)
    ahead = look_ahead(opened.records, lambda reject: None)
    source = FileSource(path=str(path), **config)
    layout = choose_layout(source, opened.location, [record.values for record in ahead])
    return describe_unused(unused_columns(source, layout, ahead))


@pytest.mark.parametrize(
    ("column", "line"),
    [
        ({"difficulty": 3}, "difficulty (a measure)"),
        ({"Level": "Level 5"}, "Level (a measure)"),
        (
            {"tests": ["assert f(1) == 2"]},
            "tests (tests: data.verifier=code with data.columns.tests=tests judges by them)",
        ),
        ({"system": "gpt-4o"}, "system (a name, not a message)"),
        ({"aliases": ["7", "seven"]}, "aliases (has the gold among others: data.columns.golds=aliases)"),
        ({"aliases": "['7', 'seven']"}, "aliases (has the gold among others: data.columns.golds=aliases)"),
        ({"target": "8"}, "target (other answers? data.columns.other_golds=target)"),
        ({"pre_text": ["In 2008 sales", "grew by a fifth."]}, "pre_text (a text: do questions need it?)"),
        ({"topic": "arithmetic"}, "topic"),
        ({"topic": "arithmetic", "difficulty": 3}, "difficulty (a measure), topic"),
        # These are read, or hold nothing.
        ({"id": 7}, ""),
        ({"solution": "3+4 = 7"}, ""),
        ({"system": "Be brief."}, ""),
        ({"split": "train"}, ""),
        ({"golds": ["7", "seven"]}, ""),
        ({"topic": None}, ""),
        ({"topic": ""}, ""),
        ({"problem": RECORD["question"]}, ""),
    ],
)
def test_a_column_that_is_not_used_is_named(tmp_path: Path, column: dict[str, Any], line: str) -> None:
    config = {"columns": {"prompt": "question", "gold": "answer"}} if "tests" in column else {}
    assert unused(tmp_path, {**RECORD, **column}, **config) == line


def test_options_that_a_named_gold_leaves_aside_are_named(tmp_path: Path) -> None:
    record = {"question": "Which?", "choices": ["iron", "argon"], "answer": "argon"}
    columns = {"prompt": "question", "gold": "answer"}
    assert unused(tmp_path, record, columns=columns) == "choices (options)"
    notes = Notes()
    read_file(write_lines(tmp_path, record), tmp_path, notes, columns=columns)
    assert notes.notes == ["train.jsonl: columns that are not used: choices (options)"]


def test_options_of_some_rows_and_solutions_in_a_struct_are_named_with_their_use(tmp_path: Path) -> None:
    notes = Notes()
    pick = {"question": "Pick: which is red?", "choices": ["rose", "sky"], "answer": "A"}
    tests = {
        "question": "Write add.",
        "answer": "",
        "test_list": ["assert add(1, 2) == 3"],
        "code": "def add(a, b): ...",
    }
    read_file(write_lines(tmp_path, RECORD, pick, tests), tmp_path, notes)
    assert "options of some rows: in a file of their own, these rows are read with them" in notes.notes[0]
    steps = {"index": 3, "answer": f"We add them: 2+2 = 4\n#### {RECORD['answer']}"}
    assert "data.columns.solution=extra_info.answer" in unused(tmp_path, {**RECORD, "extra_info": steps})


def test_files_that_questions_speak_of_are_noted(tmp_path: Path) -> None:
    notes = Notes()
    asked = {"question": "What is the total in the attached sheet?", "answer": "5", "file_name": "a.xlsx"}
    read_file(write_lines(tmp_path, asked, {**RECORD, "file_name": "x.json"}), tmp_path, notes)
    assert notes.notes == ["train.jsonl: columns that are not used: file_name (a file that questions speak of)"]
    assert unused(tmp_path, {**RECORD, "file_name": "train-03.json"}) == "file_name"


def test_columns_that_decide_nothing_are_not_noted(tmp_path: Path) -> None:
    notes = Notes()
    read_file(write_lines(tmp_path, {**RECORD, "difficulty": 3, "topic": "x"}), tmp_path, notes)
    assert notes.notes == []


def test_a_dry_run_says_what_is_read_and_what_is_not(tmp_path: Path) -> None:
    record = {"question": "2+2?", "answer": "2+2 = 4 #### 4", "topic": "sums", "level": 1}
    (tmp_path / "train.jsonl").write_text(json.dumps(record) + "\n")
    (tmp_path / "run.yaml").write_text("name: small\ndata: {path: train.jsonl}\n")
    done = run_command("curate", "run.yaml", "--dry-run", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[1:4] == [
        "data      train.jsonl: 1 records",
        "columns   prompt question; gold answer (after ####); solution answer; verifier math",
        "unused    level (a measure), topic",
    ]


def test_a_dry_run_names_columns_of_options(tmp_path: Path) -> None:
    record = {"question": "Which?", "choices": ["iron", "argon"], "answer": "B"}
    (tmp_path / "train.jsonl").write_text(json.dumps(record) + "\n")
    (tmp_path / "run.yaml").write_text("name: small\ndata: {path: train.jsonl}\n")
    lines = run_command("curate", "run.yaml", "--dry-run", cwd=tmp_path).stdout.splitlines()
    assert lines[2] == "columns   prompt question; answer, choices as choice; verifier choice"
    assert not any(line.startswith("unused") for line in lines)


def test_a_dry_run_names_all_columns_of_the_prompt(tmp_path: Path) -> None:
    record = {"context": "The library opened in 1907.", "question": "When did it open?", "answer": "1907"}
    (tmp_path / "train.jsonl").write_text(json.dumps(record) + "\n")
    (tmp_path / "run.yaml").write_text("name: small\ndata: {path: train.jsonl}\n")
    lines = run_command("curate", "run.yaml", "--dry-run", cwd=tmp_path).stdout.splitlines()
    assert lines[2] == "columns   prompt context + question; gold answer; verifier math"
    assert not any(line.startswith("unused") for line in lines)


def test_a_dry_run_counts_the_records_of_an_array_and_knows_the_solutions_that_rows_take(tmp_path: Path) -> None:
    programs = [
        {
            "question": f"Read n and print n+{add}.",
            "input_output": json.dumps({"inputs": ["1\n", "2\n"], "outputs": [f"{1 + add}\n", f"{2 + add}\n"]}),
            "solutions": json.dumps([f"print(int(input())+{add})", f"n=int(input())\nprint(n+{add})"]),
        }
        for add in range(3)
    ]
    (tmp_path / "set.json").write_text(json.dumps(programs, indent=2), encoding="utf-8")
    (tmp_path / "c.yaml").write_text(f"{{name: x, data: {{path: {tmp_path / 'set.json'}}}}}", encoding="utf-8")
    shown = run_command("curate", "c.yaml", "--dry-run", cwd=tmp_path).stdout
    assert "set.json: 3 records" in shown and "unused" not in shown


def test_doctor_and_dedup_say_what_there_is(tmp_path: Path) -> None:
    shown = run_command("doctor", "nowhere", cwd=tmp_path)
    assert shown.returncode == 3 and "nowhere does not exist." in shown.stderr
    rows = "".join(f"What is {number}+{number}?,{2 * number},{number},70,90,A\n" for number in range(4))
    (tmp_path / "mcq.csv").write_text("Question,A,B,C,D,Correct\n" + rows, encoding="utf-8")
    shown = run_command("dedup", "--data", "mcq.csv", "--out", "out", cwd=tmp_path)
    assert "reading prompt from Question, and A, B, C, Correct, D as choice" in shown.stderr
