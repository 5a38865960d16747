"""Named held-out sets: files of any shape are read, and rates are told apart by set, source and domain."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from truegold.pipeline.tables.rows import Row
from truegold.train.config.grpo import EvaluationConfig
from truegold.train.grpo import evaluation
from truegold.train.grpo.evaluation import MOST_LABELS, EvaluationRows, evaluated_rates, measure_evaluation, read_set
from truegold.verifiers import InputError

GSM = [{"question": f"What is {n} + 4?", "answer": f"Add. #### {n + 4}"} for n in range(4)]
OLYMPIADS = [
    {"problem": "Find $x$.", "answer": "4", "source": "amc", "domain": "algebra"},
    {"problem": "Find the area.", "answer": "5", "source": "aime", "domain": "geometry"},
    {"problem": "Find $y$.", "answer": "6", "source": "amc", "domain": "algebra"},
    {"problem": "Find $z$.", "answer": None, "source": "amc", "domain": "algebra"},
]


@pytest.fixture(autouse=True)
def one_rank(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluation, "gathered", lambda value: [value])


def write(path: Path, records: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def test_files_of_any_shape_are_read(tmp_path: Path) -> None:
    gsm, none_unusable = read_set(write(tmp_path / "gsm.jsonl", GSM))
    olympiads, one_unusable = read_set(write(tmp_path / "olympiads.jsonl", OLYMPIADS))
    assert [row["gold"] for row in gsm] == ["4", "5", "6", "7"]
    assert [row["gold"] for row in olympiads] == ["4", "5", "6"]
    assert (none_unusable, one_unusable) == (0, 1)
    assert {row["split"] for row in gsm} == {"heldout"}


@pytest.mark.parametrize("records", [[], [{"prompt": "What?", "answer": None}], [{"a": 1}]])
def test_a_file_without_a_usable_row_is_refused(tmp_path: Path, records: list[dict[str, Any]]) -> None:
    with pytest.raises(InputError, match=r"empty\.jsonl"):
        read_set(write(tmp_path / "empty.jsonl", records))


def test_rates_are_told_apart_by_set_source_and_domain(tmp_path: Path) -> None:
    sets = {
        "heldout": read_set(write(tmp_path / "gsm.jsonl", GSM))[0],
        "hard": read_set(write(tmp_path / "olympiads.jsonl", OLYMPIADS))[0],
    }
    rows = EvaluationRows.from_sets(sets)
    assert len(rows.rows) == 7
    # A set with a single source or domain has no rates of its parts.
    assert rows.names[0] == ("evaluation/heldout",)
    assert rows.names[5] == ("evaluation/hard", "evaluation/hard/source/aime", "evaluation/hard/domain/geometry")
    passed = [[True, False], [True, True], [], [False, False], [True, True], [False, True], [False, False]]
    metrics = measure_evaluation(rows.names, passed, 2)
    assert metrics == pytest.approx(
        {
            "heldout_pass_rate": 3 / 6,
            # Only the samples vary: the first problem's, with (1/2) (1/2) a sample, times 2 / (2 - 1) for the estimate.
            "heldout_error": (2 * 0.25 * 2) ** 0.5 / 6,
            "evaluation/hard": 3 / 6,
            "evaluation_error/hard": (2 * 0.25 * 2) ** 0.5 / 6,
            "evaluation/hard/source/amc": 2 / 4,
            "evaluation/hard/source/aime": 1 / 2,
            "evaluation/hard/domain/algebra": 2 / 4,
            "evaluation/hard/domain/geometry": 1 / 2,
        }
    )
    assert list(evaluated_rates(metrics))[:2] == ["heldout", "hard"]


def row(number: int) -> Row:
    return {  # type: ignore[typeddict-item]
        "id": str(number),
        "source": f"file-{number % (MOST_LABELS + 8)}",
        "domain": "math",
        "meta": "{}",
    }


def test_of_many_sources_the_most_frequent_have_rates() -> None:
    rows = EvaluationRows.from_sets({"web": [row(number) for number in range(400)]})
    assert len({name for names in rows.names for name in names}) == 1 + MOST_LABELS


def test_of_one_sample_a_problem_the_error_is_that_of_a_share() -> None:
    assert measure_evaluation([["evaluation/heldout"]] * 4, [[True], [False], [False], [True]], 1) == {
        "heldout_pass_rate": 0.5,
        "heldout_error": 0.25,
    }


@pytest.mark.parametrize("passed", [[], [[]]])
def test_nothing_judged_is_no_rate(passed: list[list[bool]]) -> None:
    assert measure_evaluation([["evaluation/heldout"]] * len(passed), passed, 1) == {"heldout_pass_rate": None}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"every": 2, "sets": {"heldout": "a.jsonl"}}, "run's own held-out rows"),
        ({"sets": {"gsm": "a.jsonl"}}, "set every"),
        ({"every": 2, "sets": {"a/b": "a.jsonl"}}, "pattern"),
        ({"every": 2, "sets": {"": "a.jsonl"}}, "pattern"),
    ],
)
def test_sets_that_cannot_be_evaluated_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        EvaluationConfig(**settings)
