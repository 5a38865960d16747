"""Completions that people see: one right and one wrong on the terminal, on one line, and a table in the trackers."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import polars as pl
import pytest
from tables import rows

from truegold.pipeline.running.progress import NullProgress
from truegold.train.config.grpo import ShownConfig
from truegold.train.grpo.stage import COLUMNS, choose_completions, describe_completion, show_completions
from truegold.train.model.training_log import MetricsLog

SCORES = [0.0, None, 1.0, 0.5, 1.0]


def row(graded: float | None, **changed: Any) -> dict[str, Any]:
    texts = {"prompt": "What is\n3 + 4?", "completion": "3+4=7 \\boxed{7}", "gold": "7", "extracted": "7"}
    numbers = {"score": graded, "reward": graded, "advantage": 0.5, "version": 3}
    return {**texts, "reason": "match", **numbers, "truncated": False, "trained": True, "id": "a", **changed}


class Told(NullProgress):
    def __init__(self) -> None:
        self.notes: list[str] = []
        self.tables: list[tuple[int, int]] = []

    def note(self, text: str) -> None:
        self.notes.append(text)

    def write_table(self, step: int, name: str, columns: list[str], rows: list[list[Any]]) -> None:
        assert (name, *columns) == ("completions", *COLUMNS)
        self.tables.append((step, len(rows)))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "completions").mkdir()
    pl.DataFrame([row(score) for score in SCORES]).write_parquet(tmp_path / "completions/step-000004.parquet")
    return tmp_path


@pytest.mark.parametrize(("most", "scores"), [(1, [1.0]), (2, [1.0, 0.0]), (9, [1.0, 0.0, 1.0, None, 0.5]), (0, [])])
def test_right_and_other_ones_take_turns(folder: Path, most: int, scores: list[float | None]) -> None:
    chosen = choose_completions(folder / "completions/step-000004.parquet", most)
    assert [one["score"] for one in chosen] == scores


@pytest.mark.parametrize(
    ("settings", "notes", "rows"),
    [
        ({}, 2, 5),
        ({"shown": 0}, 0, 5),
        ({"rows": 0}, 2, 0),
        ({"rows": 3}, 2, 3),
        ({"every": 3}, 0, 0),
        ({"every": 0}, 0, 0),
    ],
)
def test_what_is_due_is_shown(folder: Path, settings: dict[str, int], notes: int, rows: int) -> None:
    told = Told()
    show_completions(folder, 4, ShownConfig(**settings), cast("MetricsLog", told), told)
    assert len(told.notes) == notes
    assert told.tables == ([(4, rows)] if rows else [])


@rows(
    "changed, line",
    [
        ({}, "step 4: right (match), reward 1, gold 7 | What is 3 + 4? | 3+4=7 \\boxed{7}"),
        ({"completion": "\x1b[2Jab\r\n\u202ecd"}, "␛[2Jab \ufffdcd"),
        (
            {"gold": None, "reward": None, "score": None, "reason": "timeout"},
            "not judged (timeout), reward none, gold none",
        ),
        ({"completion": "a" * 300 + " \\boxed{7}", "truncated": True}, ", cut off, reward 1, gold 7 | What"),
        ({"completion": "a" * 300 + " \\boxed{7}"}, "aaaa ... aaaa"),
        ({"completion": "a" * 300 + " \\boxed{7}"}, "aaa \\boxed{7}"),
        ({"score": 0.25, "reason": "partial"}, "score 0.25 (partial)"),
        ({"completion": ""}, "3 + 4? | "),
    ],
)
def test_a_completion_is_one_short_line(changed: dict[str, Any], line: str) -> None:
    text = describe_completion(4, row(1.0, **changed))
    assert line in text
    assert "\n" not in text
    assert len(text) < 400
