"""A training remembers which settings it ran with, from which step on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tables import rows

from truegold.pipeline.running.disk import read_whole_lines
from truegold.train.config.grpo import TUNABLE_GRPO, GrpoConfig
from truegold.train.model.training_log import SETTINGS_FILE, changes_of, record_settings


def start(folder: Path, step: int, **settings: Any) -> list[str]:
    return record_settings(folder, step, GrpoConfig.model_validate(settings), TUNABLE_GRPO)


def test_a_change_is_recorded_with_the_step_from_which_it_took_effect(tmp_path: Path) -> None:
    assert start(tmp_path, 0, optimizer={"lr": 1e-4}) == []
    assert start(tmp_path, 20, optimizer={"lr": 1e-4}) == []
    changed = start(tmp_path, 40, optimizer={"lr": 2e-5, "warmup_steps": 5}, evaluation={"every": 10}, steps=150)
    expected = [
        "evaluation.every: 0 -> 10",
        "optimizer.lr: 0.0001 -> 2e-05",
        "optimizer.warmup_steps: 0 -> 5",
        "steps: 100 -> 150",
    ]
    assert changed == expected
    assert changes_of(tmp_path) == [{"step": 40, "changed": expected}]
    assert [line["step"] for line in read_whole_lines(tmp_path / SETTINGS_FILE)] == [0, 40]


def test_a_change_whose_steps_are_taken_again_is_forgotten(tmp_path: Path) -> None:
    start(tmp_path, 0, steps=100)
    start(tmp_path, 40, steps=80)
    assert start(tmp_path, 40, steps=60) == ["steps: 100 -> 60"]
    assert start(tmp_path, 20) == []
    assert changes_of(tmp_path) == []


@rows("name", TUNABLE_GRPO)
def test_what_may_change_is_a_setting(name: str) -> None:
    if name == "guards" or name.startswith("engine."):
        pytest.skip("a section of another part, or of one kind of engine")
    section: Any = GrpoConfig()
    for part in name.split("."):
        section = getattr(section, part)
