"""A list in a column of gold means accepted golds, any of which is right; what cannot be golds is a reject by name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from ingest_files import read_file, rejects, row_of, write_lines
from test_export_formats import WITHOUT_COMPLETIONS

from truegold import pipeline, verifiers
from truegold.pipeline.config.sources import FileSource
from truegold.pipeline.export import convert as conversion
from truegold.pipeline.export.formats import FORMATS
from truegold.pipeline.near.gold_keys import join_golds
from truegold.pipeline.problems import ProblemColumns, read_golds, read_problems
from truegold.pipeline.rescore.logs import read_logs
from truegold.pipeline.running.progress import NullProgress
from truegold.verifiers.columns import last_boxed


def golds(row: Any) -> list[str]:
    """Return every accepted gold of a row."""
    return [row["gold"], *json.loads(row["verifier_args"]).get("other_golds", [])]


def reject_in(folder: Path, value: Any) -> dict[str, Any]:
    """Return the reject that a gold becomes beside a good row."""
    path = write_lines(folder, {"question": "q?", "answer": value}, {"question": "1+1?", "answer": "2"})
    _, (row,) = read_file(path, folder)
    assert row["gold"] == "2"
    (reject,) = rejects(folder)
    return reject


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (["72", "73"], ["72", "73"]),
        ([72, 73.0, 0.5], ["72", "73", "0.5"]),
        (["1/2", None, "", "  ", "1/2", 0.5], ["1/2", "0.5"]),
        (["72"], ["72"]),
        ([["72"]], ["72"]),
        ([["1/2", "0.5"]], ["1/2", "0.5"]),
        ([["1/2"], ["0.5"]], ["1/2", "0.5"]),
        (["1,2"], ["1,2"]),
        ([True, False], ["true", "false"]),
        (["[1, 2]", "{1, 2}"], ["[1, 2]", "{1, 2}"]),
        ([10**30, 1], [str(10**30), "1"]),
        ("[1, 2]", ["[1, 2]"]),
        ('["72", "73"]', ["72", "73"]),
        ("['72', '1/2']", ["72", "1/2"]),
        ('["72"]', ["72"]),
        ("[a', b']", ["[a', b']"]),
        ('{"a": 1}', ['{"a": 1}']),
        ("(1, 2)", ["(1, 2)"]),
        (True, ["true"]),
    ],
)
def test_any_gold_of_a_list_is_right(tmp_path: Path, value: Any, expected: list[str]) -> None:
    assert golds(row_of(tmp_path, {"question": "q?", "answer": value})) == expected


def test_a_response_may_match_any_of_them(tmp_path: Path) -> None:
    row = row_of(tmp_path, {"question": "q?", "answer": ["72", "73"]})
    arguments = json.loads(row["verifier_args"])
    scores = [verifiers.verify(f"\\boxed{{{answer}}}", row["gold"], **arguments).score for answer in (72, 73, 74)]
    assert scores == [1.0, 1.0, 0.0]


@pytest.mark.parametrize(
    ("value", "reason", "says"),
    [
        ([], "missing_gold", "is empty"),
        ([None, ""], "missing_gold", "is empty"),
        ([[]], "missing_gold", "is empty"),
        ({}, "missing_gold", "is empty"),
        ({"value": 72, "unit": "m"}, "gold_not_text", "answer.value, answer.unit"),
        ([{"value": 72}], "gold_not_text", "answer.value"),
        ([{"value": 72}, {"value": 73}], "gold_not_text", "holds objects"),
        (["72", {"value": 73}], "gold_not_text", "holds objects"),
        ([["1", "2"], ["3", "4"]], "gold_not_text", "lists within a list"),
        (["1", ["2", "3"]], "gold_not_text", "lists within a list"),
        ([str(number) for number in range(65)], "too_many_golds", "65 accepted golds"),
    ],
)
def test_what_cannot_be_golds_is_rejected(tmp_path: Path, value: Any, reason: str, says: str) -> None:
    reject = reject_in(tmp_path, value)
    assert reject["reason"] == reason and says in reject["detail"]


@pytest.mark.parametrize(
    ("record", "config"),
    [
        ({"prompt": [{"role": "user", "content": "q?"}], "answer": ["72", "73"]}, {}),
        ({"prompt": "q?", "solution": ["so \\boxed{72}", "or \\boxed{73}"]}, {}),
        ({"problem": "q?", "solution": ["so \\boxed{72}", "or \\boxed{73}", "no box"]}, {}),
        ({"question": "q?", "answer": ["48+24\n#### 72", "#### 73"]}, {}),
        ({"data_source": "x", "prompt": "q?", "reward_model": {"ground_truth": ["72", "73"]}}, {}),
        ({"messages": [{"role": "user", "content": "q?"}], "ground_truth": ["72", "73"], "dataset": ["math"] * 2}, {}),
        ({"input": "q?", "target": ["72", "73"]}, {}),
        ({"question": "q?", "golds": ["72", "73"]}, {}),
        ({"question": "q?", "golds": '["72", "73"]'}, {}),
        ({"Body": "q?", "Keys": [72, 73]}, {"columns": {"prompt": "Body", "gold": "Keys"}}),
        ({"Body": "q?", "Keys": "[72, 73]"}, {"columns": {"prompt": "Body", "golds": "Keys"}}),
        ({"Body": "q?", "meta": {"keys": [72, 73]}}, {"columns": {"prompt": "Body", "gold": "meta.keys"}}),
    ],
)
def test_so_it_is_in_every_shape(tmp_path: Path, record: dict[str, Any], config: Any) -> None:
    assert golds(row_of(tmp_path, record, **config)) == ["72", "73"]


def test_a_text_that_looks_like_a_list_is_an_answer_in_presets_too(tmp_path: Path) -> None:
    messages = [{"role": "user", "content": "q?"}]
    for record in (
        {"messages": messages, "ground_truth": "[1, 2]", "dataset": "math"},
        {"prompt": messages, "reward_model": {"ground_truth": "[1, 2]"}},
    ):
        assert golds(row_of(tmp_path, record)) == ["[1, 2]"]


def test_tests_of_programs_are_no_golds(tmp_path: Path) -> None:
    cases = [{"input": "1\n", "output": "2\n"}]
    row = row_of(tmp_path, {"prompt": "Add one.", "reward_model": {"ground_truth": cases}})
    assert (row["gold"], row["verifier"]) == (None, "code")


def test_frames_parquet_and_arrays_say_the_same(tmp_path: Path) -> None:
    records = [{"question": "What is 1/2 of 1?", "answer": ["1/2", "0.5"]}]
    pl.DataFrame(records).write_parquet(tmp_path / "train.parquet")
    _, (row,) = read_file(tmp_path / "train.parquet", tmp_path)
    assert golds(row) == ["1/2", "0.5"]
    arrays = [{"question": "What is 1/2 of 1?", "answer": np.array(["1/2", "0.5"])}]
    tuples = [{"question": "What is 1/2 of 1?", "answer": ("1/2", "0.5")}]
    for form in (records, pl.DataFrame(records), pd.DataFrame(arrays), arrays, tuples, tmp_path / "train.parquet"):
        (row,) = pipeline.curate(form).rows.to_dicts()
        assert golds(row) == ["1/2", "0.5"]


@pytest.mark.parametrize("name", WITHOUT_COMPLETIONS)
def test_they_come_back_from_every_export(tmp_path: Path, name: str) -> None:
    path = write_lines(tmp_path, {"question": "q?", "answer": ["[1, 2]", "[2, 1]"]})
    _, (before,) = read_file(path, tmp_path)
    written = conversion.convert(
        path, FORMATS[name], tmp_path / "out", NullProgress(), FileSource(path=str(path)), None
    )
    _, (after,) = read_file(next(iter(written.splits)), tmp_path)
    assert (after["id"], golds(after)) == (before["id"], golds(before))


def test_commands_on_one_file_read_them_too(tmp_path: Path) -> None:
    path = write_lines(tmp_path, {"question": "q?", "answer": ["72", "73"]}, {"question": "r?", "answer": {"a": 1}})
    skipped: list[str] = []
    assert list(read_golds(path, None, lambda _, reason: skipped.append(reason))) == ["72", "73"]
    assert skipped == ["gold_not_text"]
    (batch,) = read_problems(path, ProblemColumns())
    assert batch.golds[0] == join_golds(["72", "73"])


def test_options_that_are_chosen_together_are_one_answer(tmp_path: Path) -> None:
    record = {"question": "Which are primes? A) 2 B) 4 C) 5", "answer": ["A", "C"], "verifier": "choice"}
    row = row_of(tmp_path, {**record, "verifier_args": {"multiple": True}})
    arguments = json.loads(row["verifier_args"])
    responses = ("\\boxed{A, C}", "\\boxed{A}")
    assert [verifiers.verify(text, row["gold"], verifier="choice", **arguments).score for text in responses] == [
        1.0,
        0.0,
    ]
    assert golds(row_of(tmp_path, record)) == ["A", "C"]
    assert row_of(tmp_path, record, verifier="choice", verifier_args={"multiple": True})["gold"] == row["gold"]


def test_logs_of_rollouts_have_them_too(tmp_path: Path) -> None:
    path = write_lines(tmp_path, {"input": "q?", "output": "0.5", "gts": ["1/2", 0.5], "score": 1.0, "step": 1})
    (rollout,) = read_logs([path])
    assert (rollout.gold, rollout.verifier_args) == ("1/2", '{"other_golds":["0.5"]}')


@pytest.mark.parametrize("name", ["golds", "accepted_golds", "accepted_answers", "acceptable_answers"])
@pytest.mark.parametrize("gold", ["gold", "answer", "ground_truth", "final_answer"])
@pytest.mark.parametrize("accepted", [["color"], ["colour", "color"], '["color"]'])
def test_a_list_of_accepted_golds_stands_beside_gold(tmp_path: Path, name: str, gold: str, accepted: Any) -> None:
    row = row_of(tmp_path, {"question": "Which word?", gold: "colour", name: accepted})
    assert (row["gold"], json.loads(row["verifier_args"])) == ("colour", {"other_golds": ["color"]})
    assert json.loads(row["meta"]) == {}


def test_a_list_of_accepted_golds_may_lack_its_gold_and_a_gold_its_list(tmp_path: Path) -> None:
    records = [("colour", ["color"]), (None, ["color", "colour"]), ("colour", None), ("colour", [])]
    lines = ({"question": "Which word?", "answer": gold, "golds": golds} for gold, golds in records)
    _, rows = read_file(write_lines(tmp_path, *lines), tmp_path)
    assert [row["gold"] for row in rows] == ["colour", "color", "colour", "colour"]
    row = row_of(tmp_path, {"question": "Which word?", "label": 1, "golds": ["color"]})
    assert (row["gold"], json.loads(row["meta"])) == ("color", {"label": 1})


@pytest.mark.parametrize(
    ("problem", "solution", "expected"),
    [
        ("Solve $x^2+x=2$.", r"The answers are $\boxed{-2}$ and $\boxed{1}$.", ["-2, 1"]),
        ("Find all solutions.", r"$x$ must be $\boxed{3}$ or $\boxed{\frac{2}{5}}$.", [r"3, \frac{2}{5}"]),
        (
            "Which $b$ are possible? Enter them separated by commas.",
            r"$b=\boxed{-7}$. If $r=-1$, $b=\boxed{7}$.",
            ["-7, 7"],
        ),
        ("Find both roots.", r"They are $x = \boxed{1}$ and $x = \boxed{4}$.", ["1, 4"]),
        ("List the angles, separated by a comma.", r"\boxed{30}, \boxed{60}, so \boxed{90}.", ["30, 60, 90"]),
        # Any of them is right.
        ("Simplify $(5x+3)-(4x-8)$.", r"This is $\boxed{x+11}$ or $\boxed{11+x}$.", ["x+11", "11+x"]),
        ("Find the foci. Enter only one of them.", r"\boxed{(9, 0)} \text{ and } \boxed{(0, 0)}", ["(9, 0)", "(0, 0)"]),
        ("What is the difference?", "It is $\\boxed{-3}$.\n\nNote: $\\boxed{3}$ is also accepted.", ["-3", "3"]),
        (
            "Find a vertex.",
            r"\boxed{(1, 2)} and \boxed{(3, 2)} (either point is a correct answer).",
            ["(1, 2)", "(3, 2)"],
        ),
        # One answer, and others on the way to it or beside it.
        ("Find $a+b$.", r"We get $\boxed{\frac{3}{5}}$. So $a=3$, $b=5$ and $a+b=\boxed{8}$.", ["8"]),
        ("Find the sum of all solutions.", r"They are $\boxed{7}$ and $\boxed{-11}$, so it is $\boxed{-4}$.", ["-4"]),
        ("What is the length?", "It is $\\boxed{10}$.\n\n- OR -\n\nThe triple gives $\\boxed{10}$.", ["10"]),
        ("What is it?", r"It is $\boxed{10\sqrt{2}}$. Or: $\boxed{10\sqrt 2}$.", [r"10\sqrt 2"]),
        ("What is it?", r"It is $\boxed{\frac{25}{13}} = \boxed{1\frac{12}{13}}$.", [r"1\frac{12}{13}"]),
        ("Find all $x$, separated by commas.", r"First \boxed{2}. So they are \boxed{2, 5}.", ["2, 5"]),
        (r"For $\boxed{3}=2$, find $\boxed{\boxed{11}}$.", r"$\boxed{11}=2$ and $\boxed{2}=2$. So \boxed{2}.", ["2"]),
        ("What is it?", r"It is \boxed{}, or rather \boxed{5}.", ["5"]),
    ],
)
def test_boxes_of_a_solution_are_one_answer_or_several(
    problem: str, solution: str, expected: list[str], tmp_path: Path
) -> None:
    row = row_of(tmp_path, {"problem": problem, "solution": solution})
    assert golds(row) == expected
    verdict = verifiers.verify(f"\\boxed{{{expected[0]}}}", row["gold"], verifier="math")
    assert verdict.score == 1.0
    prepared = row_of(tmp_path, {"problem": problem, "answer": last_boxed(solution)})
    assert row["id"] == prepared["id"], "a decision is about both"
