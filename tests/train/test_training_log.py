"""Metrics of rank 0: files cut back on resume, trackers gone on with, one clear error where a tracker is missing."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from truegold.pipeline.running.disk import read_whole_lines
from truegold.train.model import distributed
from truegold.train.model.training_log import MetricsLog
from truegold.verifiers import SetupError

pytestmark = pytest.mark.filterwarnings("default")


@pytest.fixture(autouse=True)
def first_rank(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(distributed, "rank", lambda: 0)


def test_a_disk_that_is_full_when_a_run_goes_on_costs_no_metrics(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with MetricsLog(tmp_path, 0) as log:
        for step in range(3):
            log.write(step, {"loss": 1.0})

    def full(path: Path, content: bytes) -> int:
        path.open("w").close()
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OSError, match="No space"):
        MetricsLog(tmp_path, 2)
    assert [line["step"] for line in read_whole_lines(tmp_path / "metrics.jsonl")] == [0, 1, 2]


class Recorder(ModuleType):
    """Takes what a tracker would take."""

    def __init__(self) -> None:
        super().__init__("wandb")
        self.started: list[dict[str, Any]] = []
        self.logged: list[tuple[int, dict[str, float]]] = []
        self.finished = 0

    def init(self, **settings: Any) -> Recorder:
        self.started.append(settings)
        return self

    def log(self, values: dict[str, float], step: int) -> None:
        self.logged.append((step, values))

    def finish(self) -> None:
        self.finished += 1


def test_a_resumed_log_has_each_step_once(tmp_path: Path) -> None:
    with MetricsLog(tmp_path, 0) as log:
        for step in range(4):
            log.write(step, {"loss": float(step), "missing": None})
    with MetricsLog(tmp_path, 2) as log:
        log.write(2, {"loss": 20.0})
    lines = read_whole_lines(tmp_path / "metrics.jsonl")
    assert [(line["step"], line["loss"]) for line in lines] == [(0, 0.0), (1, 1.0), (2, 20.0)]


def test_a_line_cut_short_by_a_kill_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "metrics.jsonl").write_text('{"step": 0, "loss": 1.0}\n{"step": 1, "lo')
    assert [line["step"] for line in read_whole_lines(tmp_path / "metrics.jsonl")] == [0]


def test_a_tracker_is_gone_on_with_under_its_id(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tracker = Recorder()
    monkeypatch.setitem(sys.modules, "wandb", tracker)
    for step in (0, 1):
        with MetricsLog(tmp_path, step, ["wandb"]) as log:
            log.write(step, {"loss": 0.5, "missing": None})
    assert tracker.logged == [(0, {"loss": 0.5}), (1, {"loss": 0.5})]
    assert tracker.finished == 2
    first, second = tracker.started
    assert first["id"] == second["id"] == json.loads((tmp_path / "trackers.json").read_text())["wandb"]


def test_a_tracker_that_is_not_installed_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "trackio", None)
    with pytest.raises(SetupError, match="trackio cannot be imported"):
        MetricsLog(tmp_path, 0, ["trackio"])


def test_other_ranks_write_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(distributed, "rank", lambda: 1)
    with MetricsLog(tmp_path, 0, ["wandb"]) as log:
        log.write(0, {"loss": 1.0})
    assert not list(tmp_path.iterdir())
