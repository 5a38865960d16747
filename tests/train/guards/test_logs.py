"""Logs as others write them: what is read, what is said not to be, and the faults that they show."""

from __future__ import annotations

import json
import math
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from house import ROOT
from tables import rows

from truegold.train.guards.doctor import examine_log
from truegold.train.guards.log_faults import CHECKS, find_faults
from truegold.train.guards.run_log import METRIC_NAMES, RunLog, is_accuracy, read_log
from truegold.train.guards.table import FAULTS, GUARDS
from truegold.train.guards.trends import fall_from_peak, find_period, gradual_fall, measure_move
from truegold.verifiers import InputError

PLANTS = ROOT / "benchmarks" / "plants" / "doors" / "logs"
PLANTED = {
    "dead_trl.jsonl": "nothing_teaches",
    "periodic_verl.jsonl": "periodic",
    "length_prime_rl.jsonl": "truncation",
    "hidden_trl_wandb.csv": "hidden_fall",
    "entropy_verl.jsonl": "entropy_collapse",
    "hacking_openrlhf.jsonl": "reward_hacking",
    "scale_verl.jsonl": "reward_scale",
    "repeated_trl/trainer_state.json": "by_heart",
    "clipping_openrlhf_wandb.csv": "clip_share",
}
CLEAN = ("trl.jsonl", "trl_hard_batch/trainer_state.json", "verl.jsonl", "verl_longer.jsonl", "prime_rl.jsonl")


def names_of(path: Path) -> list[str]:
    return [fault.name for fault in find_faults(read_log(path))]


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def lines(path: Path, rows: list[dict[str, Any]]) -> Path:
    return write(path, "".join(json.dumps(row) + "\n" for row in rows))


def trl_rows(steps: int = 60, **changes: Any) -> list[dict[str, Any]]:
    """Healthy steps of TRL with noise; `changes` are values or functions of the step."""
    draw = random.Random(5)
    rows = []
    for step in range(1, steps + 1):
        right = min(max(0.3 + 0.2 * step / steps + draw.gauss(0, 0.04), 0.0), 1.0)
        row = {
            "step": step,
            "loss": draw.gauss(0, 0.01),
            "grad_norm": 0.2 * math.exp(draw.gauss(0, 0.2)),
            "learning_rate": 1e-6,
            "reward": right + 0.9,
            "reward_std": 0.5,
            "frac_reward_zero_std": 0.2 + draw.gauss(0, 0.02),
            "rewards/accuracy_reward/mean": right,
            "rewards/format_reward/mean": 0.9,
            "entropy": 0.4 * math.exp(draw.gauss(0, 0.05)),
            "kl": 0.002 * math.exp(draw.gauss(0, 0.3)),
            "completions/mean_length": 300 * math.exp(draw.gauss(0, 0.05)),
            "completions/clipped_ratio": max(0.0, 0.03 + draw.gauss(0, 0.01)),
        }
        rows.append(row | {name: change(step) if callable(change) else change for name, change in changes.items()})
    return rows


@rows("file, name", PLANTED.items())
def test_planted_faults_are_named(file: str, name: str) -> None:
    assert name in names_of(PLANTS / file)


@pytest.mark.parametrize("file", [*CLEAN, "openrlhf.jsonl"])
def test_clean_logs_are_not_accused(file: str) -> None:
    assert names_of(PLANTS / f"clean_{file}") == []


def test_what_trl_printed_on_a_terminal_is_read() -> None:
    """16 steps of TRL 1.16 on a tiny model that is cut at every step."""
    log = read_log(ROOT / "tests" / "data" / "guards" / "trl_console.log")
    assert (log.trainer, [step for step, _ in log.lines]) == ("TRL", list(range(1, 17)))
    assert log.columns["pass_rate"] == "rewards/accuracy_reward/mean"
    assert log.columns["heldout_pass_rate"] == "eval_rewards/accuracy_reward/mean"
    assert log.series("heldout_pass_rate")[0] == [5, 10, 15, 16] and "completions/max_length" in log.unread
    assert names_of(log.path) == ["truncation"]


def test_verls_console_is_read_with_all_kinds_of_numbers(tmp_path: Path) -> None:
    text = "(TaskRunner pid=1) Training Progress: 3%\n" + "".join(
        f"(TaskRunner pid=1) step:{step} - critic/score/mean:np.float64(0.{step}5) - actor/lr:1e-06 - "
        f"training/global_step:{step} - val-core/gsm8k/acc/mean@4:0.5\n"
        for step in range(1, 5)
    )
    log = read_log(write(tmp_path / "verl.log", text))
    assert (log.trainer, log.is_rounded) == ("verl", False)
    assert log.lines[1] == (
        2,
        {"reward": 0.25, "accuracy": 0.25, "pass_rate": 0.25, "lr": 1e-6, "heldout_pass_rate": 0.5},
    )


def test_a_zero_of_three_digits_is_no_zero(tmp_path: Path) -> None:
    text = "".join(f"step:{step} - critic/score/mean:0.{step % 7}00 - actor/lr:0.000\n" for step in range(1, 40))
    log = read_log(write(tmp_path / "verl.log", text))
    assert log.is_rounded and names_of(log.path) == []


def test_prime_rls_lines_are_read(tmp_path: Path) -> None:
    text = "".join(
        f"10:00:0{step} SUCCESS Step {step} | 1m 2s | Loss 0.0012 | Entropy 0.4012 | Grad. Norm 0.2100 | LR 1.00e-06\n"
        for step in range(1, 5)
    )
    log = read_log(write(tmp_path / "trainer.log", text))
    assert log.lines[0] == (1, {"loss": 0.0012, "entropy": 0.4012, "grad_norm": 0.21, "lr": 1e-6})


CHART = '"Step","my - run, 1 - train/{0}","my - run, 1 - train/{0}__MIN","my - run, 1 - train/{0}__MAX"\n'


def test_a_chart_of_wandb_is_read(tmp_path: Path) -> None:
    rows = "".join(f'"{step}","0.{step}","0.1","0.9"\n' for step in range(1, 10))
    log = read_log(write(tmp_path / "chart.csv", CHART.format("reward") + rows))
    assert [metrics["reward"] for _, metrics in log.lines][:3] == [0.1, 0.2, 0.3]
    two = '"Step","a - train/reward","b - train/reward"\n"1","0.2","0.3"\n"2","0.2","0.3"\n'
    with pytest.raises(InputError, match=r"holds 2 runs \(a, b\)"):
        read_log(write(tmp_path / "two.csv", two))


def test_tensorboard_is_read(tmp_path: Path) -> None:
    writer = pytest.importorskip("tensorboard.summary.writer.event_file_writer")
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary

    events = writer.EventFileWriter(str(tmp_path))
    for row in trl_rows():
        values = [Summary.Value(tag="train/" + name, simple_value=value) for name, value in row.items()]
        events.add_event(Event(step=row["step"], summary=Summary(value=values)))
    events.close()
    log = read_log(tmp_path)
    assert (log.trainer, len(log.lines), find_faults(log)) == ("TRL", 60, [])


@pytest.mark.parametrize(
    ("rows", "trainer"),
    [
        ({"train/reward": 0.3, "train/baseline_reward/pct_mixed": 40.0, "train/gen_kl_error": 0.001}, "NeMo-RL"),
        ({"scores": 3.0, "objective/verifiable_correct_rate": 0.3, "val/stop_rate": 0.9}, "open-instruct"),
        ({"train/reward": 0.3, "train/ppo_clip_ratio": 0.01, "train/actor_lr": 1e-6}, "OpenRLHF"),
        ({"reward": 0.3, "loss": 0.01}, "unknown trainer"),
    ],
)
def test_a_trainer_is_known_by_its_names(tmp_path: Path, rows: dict[str, float], trainer: str) -> None:
    log = read_log(lines(tmp_path / "log.jsonl", [{"step": step, **rows} for step in range(1, 4)]))
    assert log.trainer == trainer
    if trainer == "NeMo-RL":
        assert log.lines[0][1]["zero_std"] == pytest.approx(0.6)
    if trainer == "open-instruct":
        assert (log.lines[0][1]["truncated"], log.lines[0][1]["pass_rate"]) == (pytest.approx(0.1), 0.3)


def test_the_accuracy_is_the_term_whose_name_says_so() -> None:
    assert all(
        map(is_accuracy, ("accuracy_reward", "acc", "correctness_reward_func", "truegold", "score", "isCorrect"))
    )
    others = ("format_reward", "correct_format", "length", "reward", "style_score", "soft_overlong_punishment")
    assert not any(map(is_accuracy, others))


def test_a_total_reward_is_no_pass_rate(tmp_path: Path) -> None:
    rows = [{"step": step, "reward": 0.4, "frac_reward_zero_std": 0.2} for step in range(1, 20)]
    path = lines(tmp_path / "log.jsonl", rows)
    assert "pass_rate" not in read_log(path).lines[0][1]
    assert any(
        line.startswith("no pass rate: no term is called accuracy; faults not checked: ") for line in examine_log(path)
    )
    weighted = [row | {"rewards/correct/mean": 1.4} for row in rows]
    assert "no pass rate: rewards/correct/mean has values outside of 0 to 1, so it is read as accuracy only" in list(
        examine_log(lines(tmp_path / "weighted.jsonl", weighted))
    )


def test_what_is_not_read_is_counted_and_named(tmp_path: Path) -> None:
    rows = [{"step": 1, "reward": 0.4, "loss": 0.1, "perf/mfu": 0.3, "note": "first", "weights": [1, 2]}]
    shown = list(examine_log(lines(tmp_path / "log.jsonl", rows)))
    assert "not read, 3 columns: note, perf/mfu, weights" in shown
    assert any("1 steps; to tell a move from noise takes 10 steps" in line for line in shown)


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("empty.jsonl", ""),
        ("words.log", "hello\nworld\n"),
        ("header.csv", "step,reward\n"),
        ("nothing.json", '{"log_history": []}'),
        ("rows.jsonl", '{"question": "1+1", "answer": "2", "reward": 0.5}\n' * 20),
        ("rates.jsonl", '{"id": "a", "pass_rate": 0.5}\n' * 20),
        ("rollouts.jsonl", '{"step": 1, "reward": 0.5, "completion": "x"}\n' * 20),
        ("deep.json", "[" * 100_000),
    ],
)
def test_a_file_that_is_no_log_is_a_line(tmp_path: Path, file: str, text: str) -> None:
    with pytest.raises(InputError) as caught:
        read_log(write(tmp_path / file, text))
    assert file in caught.value.message and "\n" not in caught.value.message


def test_a_file_that_is_no_text_is_a_line(tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_bytes(b"\xff\xfe{\x00")
    with pytest.raises(InputError, match="cannot be read as text"):
        read_log(tmp_path / "log.jsonl")


def test_a_folder_of_several_logs_asks_for_one(tmp_path: Path) -> None:
    for name in ("a.jsonl", "b.jsonl"):
        lines(tmp_path / name, trl_rows(5))
    with pytest.raises(InputError, match="has 2 files that may be logs"):
        read_log(tmp_path)


def test_half_a_line_at_the_end_is_noted(tmp_path: Path) -> None:
    path = lines(tmp_path / "log.jsonl", trl_rows(30))
    path.write_text(path.read_text() + '{"step": 31, "rew')
    log = read_log(path)
    assert (len(log.lines), log.notes) == (30, ["1 of 31 lines are not JSON and were skipped, the first: 31"])


def test_rows_that_a_tracker_has_filled_with_nan_are_no_fault(tmp_path: Path) -> None:
    rows = trl_rows(30)
    filled = [row if row["step"] % 5 else dict.fromkeys(row, math.nan) | {"step": row["step"]} for row in rows]
    filled[4]["eval_rewards/accuracy_reward/mean"] = 0.4
    log = read_log(lines(tmp_path / "log.jsonl", [*filled, *trl_rows(31)[30:]]))
    assert find_faults(log) == [] and log.series("heldout_pass_rate") == ([5], [0.4])
    lost = [row if row["step"] < 20 else dict.fromkeys(row, math.nan) | {"step": row["step"]} for row in rows]
    assert names_of(lines(tmp_path / "lost.jsonl", lost)) == ["not_finite"]


VERL = "step:{0} - critic/score/mean:0.{0}5 - actor/lr:1e-06\n"


@pytest.mark.parametrize(
    "line",
    [
        *("step:1 - actor/loss:0.5 - x " + "a" * 10**6, "step:1 - " + "a:" * 500_000, "step:1 - a:" + "1" * 10**6),
        *("step:" + "1" * 10**6, "Step 1 | A" + " " * 10**6 + "| B", "Step " + "1" * 10**6 + " | A 1"),
        *("step:1 - " + "a - " * 250_000, "{'" + "a': '" * 200_000, "{'a': " * 160_000, ":0.0" + " " * 10**6 + "x"),
    ],
    ids=lambda line: f"{line[:9]}...{line[-3:]}",
)
def test_a_line_of_a_million_characters_is_passed_in_no_time(tmp_path: Path, line: str) -> None:
    path = write(tmp_path / "verl.log", VERL.format(1) + line + "\n" + VERL.format(2) + VERL.format(3))
    begin = time.process_time()
    log = read_log(path)
    assert time.process_time() - begin < 3.0
    assert [log.lines[index][1]["reward"] for index in (0, -1)] == [0.15, 0.35]


def test_a_console_with_some_lines_of_json_is_no_json(tmp_path: Path) -> None:
    text = '{"step": 7, "lr": 0.5}\n{"step": 8, "lr": 0.5}\n' + "".join(VERL.format(step) for step in range(1, 10))
    log = read_log(write(tmp_path / "verl.log", text))
    assert [step for step, _ in log.lines] == list(range(1, 10)) and log.lines[0][1]["lr"] == 1e-6


def test_texts_beside_the_metrics_of_a_table_are_passed(tmp_path: Path) -> None:
    rows = "".join(f'{step},"{"x" * 200_000}\n2nd line",0.{step}\n' for step in range(1, 5))
    log = read_log(write(tmp_path / "log.csv", "step,completion,reward\n" + rows))
    assert [metrics["reward"] for _, metrics in log.lines] == [0.1, 0.2, 0.3, 0.4] and log.unread == ["completion"]


def test_columns_of_one_name_are_named_where_they_differ(tmp_path: Path) -> None:
    path = write(tmp_path / "log.csv", "step,reward,reward\n1,0.5,0.5\n2,0.25,0.25\n")
    assert [metrics["reward"] for _, metrics in read_log(path).lines] == [0.5, 0.25]
    with pytest.raises(InputError, match="several columns with the same name and different cells: reward"):
        read_log(write(path, path.read_text() + "3,0.5,0.75\n"))


@pytest.mark.filterwarnings("error")
def test_numbers_that_nothing_can_be_reckoned_with(tmp_path: Path) -> None:
    """Steps beyond all counting are counted by their order, and what single precision cannot hold is infinite."""
    rows = trl_rows(40)
    later = read_log(lines(tmp_path / "a.jsonl", [row | {"step": 10**300 + index} for index, row in enumerate(rows)]))
    assert [step for step, _ in later.lines] == list(range(40)) and find_faults(later) == []
    assert later.notes == ["40 entries have a step above 1e+15; their order is used instead"]
    huge = [row | {"reward": (-1) ** row["step"] * 1e308, "loss": 10**400, "kl": 1e38} for row in rows]
    shown = list(examine_log(lines(tmp_path / "b.jsonl", huge)))
    assert any("not_finite: loss, reward NaN or infinite in 40 steps" in line for line in shown)


@pytest.mark.parametrize(
    ("rate", "steps"),
    [
        (lambda step: 1e-6 * (1 + math.cos(math.pi * (step % 20) / 10)) if step % 20 != 10 else 0.0, None),
        (lambda step: 1e-6 * abs((step % 4) - 2), None),
        (lambda step: 1e-6 * max(0, 5 - step % 13) if step % 13 < 11 else 1e-6, None),
        (lambda step: 1e-6 * max(0.0, math.cos(step / 10)), (16, 47)),
        (lambda step: 1e-6 * max(0, 40 - step), (40, 60)),
    ],
    ids=["cosine", "triangle", "six steps of each cycle", "clipped half waves", "ended"],
)
def test_a_rate_of_0_is_a_fault_where_it_lasts(
    tmp_path: Path, rate: Callable[[int], float], steps: tuple[int, int] | None
) -> None:
    faults = find_faults(read_log(lines(tmp_path / "log.jsonl", trl_rows(learning_rate=rate))))
    assert [(fault.name, fault.first, fault.last) for fault in faults] == ([("rate_zero", *steps)] if steps else [])


def test_what_comes_with_each_epoch_is_no_periodic_fault(tmp_path: Path) -> None:
    """The same hard batch ends every epoch of ten steps."""
    dips = FAULTY["periodic"]
    assert names_of(lines(tmp_path / "log.jsonl", trl_rows(**dips, epoch=lambda step: step / 7))) == ["periodic"]
    assert names_of(lines(tmp_path / "log.jsonl", trl_rows(**dips, epoch=lambda step: step / 10))) == []


FAULTY: dict[str, dict[str, Any]] = {
    "not_finite": {"loss": lambda step: math.nan if step > 40 else 0.1},
    "rate_zero": {"learning_rate": 0.0},
    "reward_constant": {
        **{"reward": 1.0, "reward_std": 0.0, "frac_reward_zero_std": 1.0, "rewards/accuracy_reward/mean": 1.0},
    },
    "nothing_teaches": {"reward": 3.0, "reward_std": 0.0, "frac_reward_zero_std": 1.0, "loss": 0.0, "grad_norm": 0.0},
    "no_gradient": {"grad_norm": 0.0},
    "kl": {"kl": lambda step: 0.002 * math.exp(0.13 * step)},
    "grad_norm": {"grad_norm": lambda step: 90.0 if step in (17, 31, 44) else 0.2},
    "entropy_collapse": {"entropy": lambda step: 0.5 * math.exp(-0.1 * step), "rewards/accuracy_reward/mean": 0.3},
    "teaching_fall": {"frac_reward_zero_std": lambda step: min(0.99, 0.3 + 0.7 * step / 50)},
    "truncation": {"completions/clipped_ratio": lambda step: 0.02 + 0.5 * step / 60},
    "periodic": {"reward": lambda step: 0.0 if step % 10 == 1 else 0.5, "rewards/accuracy_reward/mean": 0.4},
    "hidden_fall": {
        "rewards/accuracy_reward/mean": lambda step: 0.40 - 0.24 * step / 60 + 0.02 * (step % 3),
        "reward": lambda step: 0.89 + 0.1 * step / 60,
    },
    "reward_blind": {"rewards/accuracy_reward/mean": lambda step: 0.02 + 0.01 * (step % 3 - 1), "reward": 0.97},
}


@pytest.mark.parametrize("name", FAULTY)
def test_faults_of_one_metric_are_named(tmp_path: Path, name: str) -> None:
    assert name in names_of(lines(tmp_path / "log.jsonl", trl_rows(**FAULTY[name])))


def test_weights_that_do_not_move_are_seen_by_a_kl_of_0(tmp_path: Path) -> None:
    still = [{name: value for name, value in row.items() if name != "learning_rate"} for row in trl_rows(kl=0.0)]
    assert names_of(lines(tmp_path / "log.jsonl", still)) == ["rate_zero"]


def test_healthy_steps_have_no_fault(tmp_path: Path) -> None:
    assert names_of(lines(tmp_path / "log.jsonl", trl_rows())) == []


def test_a_run_that_resumed_twice_is_named_and_its_later_steps_count(tmp_path: Path) -> None:
    rows = trl_rows(60)
    twice = [*rows[:30], *[row | {"reward": 7.0} for row in rows[20:45]], *rows[40:]]
    log = read_log(lines(tmp_path / "log.jsonl", twice))
    assert log.returns == [(30, 21), (45, 41)] and log.lines[22][1]["reward"] == 7.0
    assert "resumed" in [fault.name for fault in find_faults(log)]
    once = read_log(lines(tmp_path / "once.jsonl", [*rows[:30], *rows[20:]]))
    assert (once.returns, find_faults(once)) == ([(30, 21)], [])


def climb(low: float, high: float, share: float = 0.0) -> Callable[[int], float]:
    """A curve that climbs for sixty steps and begins anew; there it is at `share` of the way again."""
    return lambda step: low + (high - low) * ((step - 1) % 60 / 60 + share * (step > 60)) + 0.02 * low * (step % 3 - 1)


BEGINS_ANEW = {"rewards/accuracy_reward/mean": climb(0.3, 0.6), "reward": climb(1.2, 1.5)}


@pytest.mark.parametrize(
    ("changes", "is_restart"),
    [
        ({"kl": climb(0.001, 0.02)}, True),
        ({"kl": climb(0.001, 0.02, 0.8)}, False),
        ({"kl": 0.0001, "entropy": climb(0.5, 0.2), "completions/mean_length": climb(300, 500)}, True),
        ({"kl": 0.0001, "entropy": climb(0.5, 0.2), "completions/mean_length": climb(300, 500, 0.6)}, False),
        ({"kl": 0.0001, "entropy": climb(0.5, 0.2, 0.7)}, False),
        (
            {
                **{"kl": 0.0001, "entropy": climb(0.5, 0.2), "completions/mean_length": climb(300, 500)},
                "epoch": lambda step: (step - 1) / 60,
            },
            False,
        ),
        ({"kl": climb(0.001, 0.02), "rewards/accuracy_reward/mean": climb(0.3, 0.6, 0.4)}, False),
    ],
    ids=["KL returns", "KL stays", "entropy and length", "length stays", "harder problems", "epoch", "half way back"],
)
def test_a_run_that_begins_anew_is_no_curriculum(tmp_path: Path, changes: dict[str, Any], is_restart: bool) -> None:
    faults = find_faults(read_log(lines(tmp_path / "log.jsonl", trl_rows(120, **BEGINS_ANEW | changes))))
    assert [(fault.name, fault.first) for fault in faults] == ([("restarted", 61)] if is_restart else [])


def test_a_resumed_run_without_its_weights_is_named(tmp_path: Path) -> None:
    """It did eight steps again, from the base model; its log has nothing else than the accuracy that says so."""
    rows = trl_rows(120, **BEGINS_ANEW, kl=0.0001)
    later = [row | {"step": row["step"] - 8} for row in rows[60:]]
    (fault,) = find_faults(read_log(lines(tmp_path / "log.jsonl", [*rows[:60], *later])))
    assert (fault.name, fault.first) == ("restarted", 53) and "the log goes back there" in fault.evidence
    healthy = [*rows[:60], *[row | {"step": row["step"] - 8} for row in rows[52:]]]
    assert names_of(lines(tmp_path / "once.jsonl", healthy[:68])) == []
    tested = [row | {"eval_rewards/accuracy_reward/mean": 0.3 + 0.004 * (row["step"] % 61)} for row in rows]
    held = [row if row["step"] % 12 else tested[row["step"] - 1] for row in rows]
    assert names_of(lines(tmp_path / "heldout.jsonl", held)) == ["restarted"]


def test_harder_problems_are_no_slide() -> None:
    draw = random.Random(3)
    steps = list(range(120))
    curriculum = [(0.6 if step < 60 else 0.3) + 0.001 * (step % 60) + draw.gauss(0, 0.03) for step in steps]
    slide = [0.6 - 0.3 * step / 120 + draw.gauss(0, 0.03) for step in steps]
    for values, is_slide in ((curriculum, False), (slide, True)):
        move = fall_from_peak(steps, values)
        assert move is not None and move.is_down
        assert (gradual_fall(values) > 0.5 * -move.change) is is_slide


def test_a_step_down_is_noted_and_is_no_fault(tmp_path: Path) -> None:
    down = {"rewards/accuracy_reward/mean": lambda step: (0.6 if step < 30 else 0.3) + 0.02 * (step % 3)}
    shown = list(examine_log(lines(tmp_path / "log.jsonl", trl_rows(60, **down, reward=1.5))))
    assert any(line.startswith("note: rewards/accuracy_reward/mean falls at one step, 0.6") for line in shown)
    assert not any(line.startswith("what went wrong") for line in shown)


def test_noise_does_not_move() -> None:
    """A level is told to move in hardly any of 200 series of noise, of independent noise and of noise that lasts."""
    for memory, most in ((0.0, 2), (0.6, 6)):
        moved = 0
        for seed in range(200):
            draw, drift, values = random.Random(seed), 0.0, []
            for _ in range(100):
                drift = memory * drift + draw.gauss(0, 0.1)
                values.append(0.4 + drift)
            move = measure_move(range(100), values)
            moved += move is not None and (move.is_up or move.is_down)
        assert moved <= most


def test_a_period_is_more_than_some_outliers() -> None:
    draw = random.Random(2)
    values = [0.5 + draw.gauss(0, 0.12) for _ in range(100)]
    assert find_period(range(100), values, -1, 3) == []
    for place in (13, 14, 57):
        values[place] = 0.0
    assert find_period(range(100), values, -1, 3) == []
    for place in range(4, 100, 10):
        values[place] = 0.0
    assert find_period(range(100), values, -1, 3) == list(range(4, 100, 10))


def test_every_fault_has_causes_and_a_check_and_shares_its_name_with_the_guards() -> None:
    assert all(fault.keys() == {"causes", "remedy"} for fault in FAULTS.values())
    shared = {guard.name for guard in GUARDS} & FAULTS.keys()
    assert {"not_finite", "truncation", "entropy_collapse", "kl", "grad_norm", "clip_share", "mismatch"} <= shared
    assert len(CHECKS) == len(set(CHECKS))


def test_the_source_of_every_trainers_names_is_told() -> None:
    assert all(table["source"] and table["names"] for table in METRIC_NAMES.values())


def test_a_log_without_steps_has_no_fault(tmp_path: Path) -> None:
    assert find_faults(RunLog("TRL", tmp_path, [])) == []
