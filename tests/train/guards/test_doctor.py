"""Diagnoses of finished runs: of ours, TRL's and verl's. (`test_logs.py` has the logs of others.)"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from truegold.pipeline.report.training import find_shifts
from truegold.train.guards.doctor import examine_log, record_stop
from truegold.train.guards.log_faults import find_faults
from truegold.train.guards.run_log import read_log
from truegold.verifiers import GuardError, InputError

RECORDED = Path(__file__).parents[2] / "data" / "guards"


def write_lines(path: Path, lines: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def trl_history(dead_from: int) -> list[dict[str, Any]]:
    return [
        {
            "step": step,
            "loss": 0.01,
            "grad_norm": 0.3,
            "reward": 0.02 if step >= dead_from else 1.2 + 0.02 * (step % 3),
            "reward_std": 0.0 if step >= dead_from else 0.5,
            "frac_reward_zero_std": 1.0 if step >= dead_from else 0.2,
            "entropy": 0.4,
            "completions/mean_length": 120.0,
            "completions/clipped_ratio": 0.05,
        }
        for step in range(1, 40)
    ]


def test_our_healthy_run_has_nothing_wrong() -> None:
    lines = list(examine_log(RECORDED / "healthy.jsonl"))
    assert "no guard fires." in lines
    assert any(line.split()[:1] == ["pass_rate"] for line in lines)


@pytest.mark.parametrize(
    ("guard", "change"),
    [
        ("verdicts_moved", {"verdicts_moved": 1.0}),
        ("golds_moved", {"golds_moved": 1.0}),
        ("verdicts_wrong", {"verdicts_wrong": 0.5}),
        ("ranks_apart", {"ranks_apart": 1.0}),
        ("forecast", {"profile_evidence": 9.0}),
        ("groups_alike", {"trained_completions": 0.0, "groups_teaching": 0.0, "positive_token_mass": 0.0}),
        ("weights_still", {"weights_moved": 0.0}),
    ],
)
def test_a_log_alone_says_what_the_guards_would_have(guard: str, change: dict[str, float], tmp_path: Path) -> None:
    healthy = [json.loads(line) for line in (RECORDED / "healthy.jsonl").read_text().splitlines()]
    steps = [line | {"groups": 32.0, "lr": 1e-4} | change for line in healthy if "loss" in line][:20]
    log = write_lines(tmp_path / "metrics.jsonl", steps)
    assert f": {guard}: " in next(line for line in examine_log(log) if line.startswith("what went wrong"))


def test_our_dead_run_is_told_by_the_step_at_which_it_died() -> None:
    lines = list(examine_log(RECORDED / "rate_x100.jsonl"))
    assert lines[1].startswith("what went wrong: Step 2: pass_rate_start")
    assert "learning rate" in lines[1]


@pytest.mark.parametrize("has_metrics", [True, False])
def test_what_ended_our_run_besides_the_guards_is_told_first(tmp_path: Path, has_metrics: bool) -> None:
    if has_metrics:
        (tmp_path / "metrics.jsonl").write_text((RECORDED / "healthy.jsonl").read_text())
    record_stop(tmp_path, GuardError("The engines disagree. Cause: temperature.", "Sample at one.", "probe"))
    step = 120 if has_metrics else 0
    lines = list(examine_log(tmp_path))
    assert lines[1:3] == [
        f"what ended it: Step {step}: probe: The engines disagree. Cause: temperature.",
        "what to do: Sample at one.",
    ]
    assert "no guard fires." not in lines


def test_of_a_run_the_training_that_was_touched_last_is_read(tmp_path: Path) -> None:
    finished, stopped = tmp_path / "train", tmp_path / ".partial" / "train-0123"
    for age, folder in ((100, finished), (0, stopped)):
        folder.mkdir(parents=True)
        path = write_lines(folder / "metrics.jsonl", [{"step": 0, "pass_rate": 0.5}])
        os.utime(path, (path.stat().st_atime, path.stat().st_mtime - age))
    assert read_log(tmp_path).path == stopped / "metrics.jsonl"
    os.utime(stopped / "metrics.jsonl", (0, 0))
    assert read_log(tmp_path).path == finished / "metrics.jsonl"


def test_trl_is_read_from_the_newest_checkpoint(tmp_path: Path) -> None:
    for steps in (20, 39):
        folder = tmp_path / f"checkpoint-{steps}"
        folder.mkdir()
        (folder / "trainer_state.json").write_text(json.dumps({"log_history": trl_history(25)[:steps]}))
    log = read_log(tmp_path)
    assert (log.trainer, log.lines[-1][0]) == ("TRL", 39)
    fault = find_faults(log)[0]
    assert (fault.name, fault.first, fault.last) == ("nothing_teaches", 25, 39)


@pytest.mark.parametrize("nested", [True, False])
def test_verl_is_read_nested_or_flat(tmp_path: Path, nested: bool) -> None:
    lines = []
    for step in range(1, 40):
        data = {
            "critic/score/mean": 0.4 + 0.02 * (step % 4),
            "actor/entropy": 0.5 + 0.01 * (step % 3) + (0.0 if step < 30 else 3.5),
            "response_length/clip_ratio": 0.0,
            "training/global_step": step,
        }
        lines.append({"step": step, "data": data} if nested else data)
    log = read_log(write_lines(tmp_path / "verl.jsonl", lines))
    assert (log.trainer, [fault.name for fault in find_faults(log)]) == ("verl", ["entropy_up"])


def test_a_gradient_that_is_not_finite_is_seen_in_any_log(tmp_path: Path) -> None:
    history = trl_history(100)
    history[19]["grad_norm"] = float("nan")
    path = tmp_path / "trainer_state.json"
    path.write_text(json.dumps({"log_history": history}))
    fault = find_faults(read_log(path))[0]
    assert (fault.name, fault.first, fault.last) == ("not_finite", 20, 20)


def test_a_file_of_something_else_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no metrics"):
        read_log(write_lines(tmp_path / "rows.jsonl", [{"prompt": "1+1"}]))
    with pytest.raises(InputError, match="has no metrics of a training"):
        read_log(tmp_path / "nowhere")


def test_what_moved_most_comes_first() -> None:
    moves = {"steady": 0.0, "risen": 0.4, "risen_more": 2.0}
    lines = [
        (step, {name: 1.0 + 0.02 * (step % 3) + move * (step >= 20) for name, move in moves.items()})
        for step in range(40)
    ]
    assert [shift.metric for shift in find_shifts(lines)] == ["risen_more", "risen"]


@pytest.mark.parametrize(
    ("change", "name", "count"),
    [({"trained_completions": 0.0}, "nothing_trained", "1 alarm"), ({"lr": 0.0}, "rate_zero", "0 alarms")],
)
def test_our_run_that_learnt_nothing_is_named(tmp_path: Path, change: dict[str, float], name: str, count: str) -> None:
    lines = [
        {
            "step": step,
            "pass_rate": 0.3 + 0.01 * (step % 3),
            "reward": 0.3,
            "trained_completions": 64.0,
            "lr": 1e-6,
            **change,
        }
        for step in range(20)
    ]
    shown = list(examine_log(write_lines(tmp_path / "metrics.jsonl", lines)))
    assert shown[0].endswith(f"steps 0 to 19, {count}")
    assert name in next(line for line in shown if line.startswith("what went wrong: "))
