"""Writes the training logs of this folder: nine with a planted fault, six clean ones, and expected.json.

Run it in any folder: `python make_logs.py`. The seed is fixed, so that the files come out the same.
"""

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
Row = dict[str, Any]
START = 1_760_000_000.0


def tidy(value: Any) -> Any:
    """Four digits are enough."""
    if not isinstance(value, float):
        return value
    return round(value, 1) if abs(value) >= 1e6 else float(f"{value:.4g}")


def ramp(step: int, steps: int, low: float, high: float) -> float:
    """A learning curve: quick at first, then slow."""
    return low + (high - low) * (1 - np.exp(-3.0 * step / steps))


class Noise:
    """Random numbers of one log."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def around(self, value: float, share: float = 0.05) -> float:
        """The value, give or take a share of it."""
        return float(value * (1 + share * self.rng.standard_normal()))

    def measured(self, probability: float, count: int) -> float:
        """A share of the same `count` problems each time."""
        return float(self.rng.binomial(count, probability) / count)

    def rate(self, probability: float, count: int = 256) -> float:
        """A share of `count` samples; batches differ in how hard they are."""
        if 0.05 < probability < 0.95:
            probability += 0.018 * self.rng.standard_normal()
        return float(self.rng.binomial(count, min(max(probability, 0.0), 1.0)) / count)


def trl_row(noise: Noise, step: int, steps: int, accuracy: float, form: float | None = None, **known: Any) -> Row:
    """What TRL's GRPOTrainer hands to `log` at each step."""
    right = noise.rate(accuracy)
    formed = None if form is None else noise.rate(form)
    length = known.pop("length", 380 + 90 * step / steps)
    clipped = known.pop("clipped", 0.02)
    zero = known.pop("zero", None)
    row: Row = {
        "loss": float(0.004 * noise.rng.standard_normal()),
        "grad_norm": abs(noise.around(0.21, 0.25)),
        "learning_rate": 1e-06 * min(1.0, step / 10) * (1 - step / (steps + 1)),
        "num_tokens": float(step * 256 * (length + 110)),
        "completions/mean_length": noise.around(length, 0.04),
        "completions/min_length": float(noise.rng.integers(38, 120)),
        "completions/max_length": 1024.0 if clipped > 0.003 else noise.around(980, 0.02),
        "completions/clipped_ratio": noise.rate(clipped),
        "completions/mean_terminated_length": noise.around(length * 0.96, 0.04),
        "rewards/accuracy_reward/mean": right,
        "rewards/accuracy_reward/std": float(np.sqrt(right * (1 - right))),
    }
    if formed is not None:
        row["rewards/format_reward/mean"] = formed
        row["rewards/format_reward/std"] = float(np.sqrt(formed * (1 - formed)))
    total = right + (formed or 0.0)
    spread = float(np.sqrt(right * (1 - right) + (formed * (1 - formed) if formed is not None else 0.0)))
    mixed = right**8 + (1 - right) ** 8
    row |= {
        "reward": total,
        "reward_std": spread,
        "frac_reward_zero_std": noise.rate(mixed, 32) if zero is None else zero,
        "entropy": noise.around(0.42 - 0.12 * step / steps, 0.05),
        "clip_ratio/low_mean": abs(noise.around(0.0002, 0.5)),
        "clip_ratio/high_mean": abs(noise.around(0.0005, 0.5)),
        "clip_ratio/region_mean": abs(noise.around(0.0007, 0.5)),
        "step_time": noise.around(21.0, 0.08),
        "epoch": step / 120,
        "step": step,
    }
    return row | known


def verl_row(noise: Noise, step: int, steps: int, score: float, **known: Any) -> Row:
    """What verl's file logger writes in `data`."""
    scale = known.pop("scale", 1.0)
    length = known.pop("length", 620 + 160 * step / steps)
    clipped = known.pop("clipped", 0.015)
    epoch = known.pop("epoch", step // 58)
    mean = scale * noise.rate(score, 1024)
    row: Row = {
        "training/global_step": step,
        "training/epoch": epoch,
        "critic/score/mean": mean,
        "critic/score/max": scale if mean else 0.0,
        "critic/score/min": 0.0,
        "critic/rewards/mean": mean,
        "critic/rewards/max": scale if mean else 0.0,
        "critic/rewards/min": 0.0,
        "critic/advantages/mean": float(0.02 * noise.rng.standard_normal()),
        "critic/advantages/max": 2.47487 if mean else 0.0,
        "critic/advantages/min": -2.47487 if mean else 0.0,
        "response_length/mean": noise.around(length, 0.03),
        "response_length/max": 2048.0,
        "response_length/min": float(noise.rng.integers(60, 190)),
        "response_length/clip_ratio": noise.rate(clipped, 1024),
        "prompt_length/mean": noise.around(128, 0.03),
        "actor/entropy": noise.around(0.55 - 0.2 * step / steps, 0.04),
        "actor/pg_loss": float(0.01 * noise.rng.standard_normal()),
        "actor/pg_clipfrac": abs(noise.around(0.0018, 0.3)),
        "actor/ppo_kl": abs(noise.around(0.0004, 0.5)),
        "actor/kl_loss": abs(noise.around(0.0006 + 0.004 * step / steps, 0.1)),
        "actor/grad_norm": abs(noise.around(0.17, 0.2)),
        "actor/lr": 1e-06,
        "perf/throughput": noise.around(1850, 0.05),
        "timing_s/step": noise.around(88, 0.06),
    }
    return row | known


def prime_rows(noise: Noise, step: int, steps: int, reward: float, older: bool = False, **known: Any) -> list[Row]:
    """The rows of prime-rl's metrics.jsonl of a step: one of the orchestrator, one of the trainer."""
    mean = noise.rate(reward, 512)
    length = noise.around(known.pop("length", 1500 + 300 * step / steps), 0.03)
    cut = noise.rate(known.pop("cut", 0.02), 512)
    none, every = noise.rate((1 - reward) ** 5, 64), noise.rate(reward**5, 64)
    moment = START + 95.0 * step
    sampled: Row = {"step": step, "time": moment}
    if older:
        sampled |= {
            "reward/all/mean": mean,
            "seq_len/all/mean": length,
            "is_truncated/all/mean": cut,
            "num_turns/all/mean": 1.0,
            "errored_rollouts/all": 0.0,
        }
    else:
        base = "train/agg/all"
        sampled |= {
            f"{base}/num_total_tokens/mean": length + 140,
            f"{base}/num_output_tokens/mean": length,
            f"{base}/has_error/mean": 0.0,
            f"{base}/agent/reward/mean": mean,
            f"{base}/agent/reward/max": 1.0,
            f"{base}/agent/reward/min": 0.0,
            f"{base}/agent/num_output_tokens/mean": length,
            f"{base}/agent/is_truncated/mean": cut,
            f"{base}/agent/solved_none": none,
            f"{base}/agent/solved_all": every,
            f"{base}/agent/solved_some": 1 - none - every,
            "off_policy/mean": noise.around(1.2, 0.1),
        }
    trained: Row = {
        "step": step,
        "time": moment + 60,
        "loss/mean": float(0.003 * noise.rng.standard_normal()),
        "entropy/all/mean": noise.around(0.38 - 0.08 * step / steps, 0.04),
        "mismatch_kl/all/mean": abs(noise.around(0.0011, 0.2)),
        "is_masked/mean": abs(noise.around(0.0007, 0.3)),
        "optim/lr": 1e-06,
        "optim/grad_norm": abs(noise.around(0.09, 0.2)),
    }
    return [sampled, trained | known]


def openrlhf_row(noise: Noise, step: int, steps: int, reward: float, **known: Any) -> Row:
    """What OpenRLHF logs at each step, without the prefix `train/`."""
    mean = noise.rate(reward, 512)
    length = noise.around(known.pop("length", 540 + 80 * step / steps), 0.03)
    row: Row = {
        "policy_loss": float(0.006 * noise.rng.standard_normal()),
        "actor_lr": 5e-07,
        "actor_grad_norm": abs(noise.around(0.31, 0.2)),
        "reward": mean,
        "return": mean,
        "group_reward_std": noise.around(0.3, 0.08),
        "response_length": length,
        "total_length": length + 133,
        "response_clip_ratio": noise.rate(0.012, 512),
        "truncated": noise.rate(0.012, 512),
        "kl": abs(noise.around(0.0004 + 0.003 * step / steps, 0.1)),
        "ppo_clip_ratio": abs(noise.around(0.004, 0.25)),
        "ppo_kl": abs(noise.around(0.0006, 0.4)),
        "vllm_kl": abs(noise.around(0.0009, 0.2)),
        "timing/step_total": noise.around(140, 0.05),
    }
    return row | known


def validated(row: Row, noise: Noise, step: int, rate: float, every: int = 10) -> Row:
    """The row with a validation at every tenth step."""
    if step % every == 0:
        row["val-core/openai/gsm8k/acc/mean@1"] = noise.measured(rate, 1319)
    return row


def dead_trl() -> list[Row]:
    """Every completion of every group has the same reward from the first step on."""
    noise = Noise(1)
    same = {"loss": 0.0, "grad_norm": 0.0, "reward_std": 0.0, "zero": 1.0}
    still = {f"clip_ratio/{part}_mean": 0.0 for part in ("low", "high", "region")}
    return [
        trl_row(noise, step, 90, 0.0, 1.0, length=212, clipped=0.0, **same)
        | still
        | {"entropy": noise.around(0.31, 0.01)}
        for step in range(1, 91)
    ]


def periodic_verl() -> list[Row]:
    """The step after each validation: no reward, every response at the limit."""
    noise, rows = Noise(2), []
    for step in range(1, 81):
        hit = step % 10 == 1 and step > 1
        score = 0.0 if hit else ramp(step, 80, 0.34, 0.62)
        changed: Row = {"clipped": 1.0, "length": 2048.0} if hit else {}
        row = verl_row(noise, step, 80, score, **changed)
        if hit:
            row |= {"response_length/mean": 2048.0, "response_length/min": 2048.0, "actor/pg_loss": 0.0}
        rows.append(validated(row, noise, step, ramp(step, 80, 0.36, 0.6)))
    return rows


def length_prime() -> list[Row]:
    """Responses grow from 900 to 3,600 of 4,096 tokens, a few a step, while the reward stands still, then falls."""
    noise, rows = Noise(3), []
    for step in range(120):
        share = step / 119
        rows += prime_rows(
            noise,
            step,
            120,
            0.47 - 0.1 * max(0.0, share - 0.6) / 0.4,
            length=900 + 2700 * share,
            cut=0.01 + 0.46 * share**2,
        )
    return rows


def hidden_trl() -> list[Row]:
    """The reward of the format rises and hides that right answers become rare."""
    noise, rows = Noise(4), []
    for step in range(1, 111):
        form = ramp(step, 60, 0.25, 0.98)
        accuracy = 0.41 if step < 25 else 0.41 - 0.27 * min(1.0, (step - 25) / 60)
        rows.append(trl_row(noise, step, 110, accuracy, form, length=430 - 1.6 * step))
    return rows


def entropy_verl() -> list[Row]:
    """Entropy falls to nothing by step 60; groups become all right or all wrong and the score stands still."""
    noise, rows = Noise(5), []
    for step in range(1, 101):
        entropy = max(0.008, 0.82 * np.exp(-step / 14))
        score = ramp(step, 40, 0.31, 0.46)
        row = verl_row(noise, step, 100, score, length=560 - 1.2 * step)
        row["actor/entropy"] = noise.around(entropy, 0.04)
        fade = max(0.04, np.exp(-step / 25))
        row["actor/grad_norm"] = abs(noise.around(0.2 * fade, 0.2))
        row["actor/pg_loss"] *= fade
        rows.append(validated(row, noise, step, ramp(step, 40, 0.3, 0.41)))
    return rows


def hacking_openrlhf() -> list[Row]:
    """At step 70 the reward jumps within four steps, responses shrink, and the pass rate of the evaluation falls."""
    noise, rows = Noise(6), []
    for step in range(1, 121):
        gamed = 1 / (1 + np.exp(-(step - 71) / 1.1))
        reward = ramp(step, 120, 0.27, 0.38) * (1 - gamed) + 0.975 * gamed
        length = (540 + step) * (1 - gamed) + 46 * gamed
        row = openrlhf_row(noise, step, 120, reward, length=length)
        row["group_reward_std"] = noise.around(0.3 * (1 - gamed) + 0.05 * gamed, 0.08)
        row["kl"] = abs(noise.around(0.001 + 0.00002 * step + 0.16 * gamed, 0.1))
        out: Row = {"train/" + key: value for key, value in row.items()} | {"train/global_step": step}
        if step % 20 == 0:
            out |= {
                "eval/eval_gsm8k_pass1": noise.measured(ramp(step, 120, 0.28, 0.36) * (1 - gamed) + 0.06 * gamed, 1319),
                "eval/eval_response_length_mean": noise.around(length, 0.04),
                "eval/global_step": step,
            }
        rows.append(out)
    return rows


def scale_verl() -> list[Row]:
    """From step 48 on, after a restart, a right answer is worth 10 instead of 1."""
    noise, rows = Noise(7), []
    for step in range(1, 101):
        row = verl_row(noise, step, 100, ramp(step, 100, 0.3, 0.55), scale=10.0 if step >= 48 else 1.0)
        if step >= 48:
            row["actor/grad_norm"] = abs(noise.around(0.17, 0.2))
        rows.append(validated(row, noise, step, ramp(step, 100, 0.31, 0.54)))
    return rows


def repeated_trl() -> list[Row]:
    """Twenty-five batches come again in every epoch: the training reward climbs a stair, held-out accuracy falls."""
    noise, rows = Noise(8), []
    hard = noise.rng.normal(0.0, 0.07, size=25)
    stairs = [0.36, 0.55, 0.72, 0.85, 0.93, 0.97]
    held_out = [0.37, 0.39, 0.38, 0.35, 0.32, 0.30]
    for step in range(1, 151):
        turn, batch = divmod(step - 1, 25)
        row = trl_row(noise, step, 150, stairs[turn] + hard[batch] * (1 - stairs[turn]))
        row["epoch"] = step / 25
        rows.append(row)
        if batch == 24:
            right = noise.measured(held_out[turn], 1319)
            rows.append(
                {
                    "eval_loss": float(0.002 * noise.rng.standard_normal()),
                    "eval_rewards/accuracy_reward/mean": right,
                    "eval_reward": right,
                    "eval_completions/mean_length": noise.around(420, 0.03),
                    "eval_runtime": noise.around(61, 0.05),
                    "epoch": step / 25,
                    "step": step,
                }
            )
    return rows


def clipping_openrlhf() -> list[Row]:
    """The share of clipped tokens grows from 0.4 to 30 %: the weights that sampled fall behind those that learn."""
    noise, rows = Noise(9), []
    for step in range(1, 111):
        share = step / 110
        row = openrlhf_row(noise, step, 110, ramp(min(step, 60), 110, 0.3, 0.5) - 0.08 * max(0.0, share - 0.6))
        row["ppo_clip_ratio"] = abs(noise.around(0.004 + 0.3 * share**2, 0.08))
        row["ppo_kl"] = abs(noise.around(0.0006 + 0.07 * share**2, 0.12))
        row["vllm_kl"] = abs(noise.around(0.0009 + 0.05 * share**2, 0.12))
        rows.append({"train/" + key: value for key, value in row.items()} | {"train/global_step": step})
    return rows


def clean_trl() -> list[Row]:
    """Accuracy and format rise."""
    noise = Noise(11)
    return [trl_row(noise, step, 90, ramp(step, 90, 0.34, 0.61), ramp(step, 30, 0.6, 0.99)) for step in range(1, 91)]


def clean_trl_hard_batch() -> list[Row]:
    """Two batches of hard problems: a dip that is none of the policy's doing. KL is measured."""
    noise, rows = Noise(12), []
    for step in range(1, 91):
        low = 0.12 if step in (37, 38) else 0.0
        row = trl_row(noise, step, 90, ramp(step, 90, 0.42, 0.57) - low)
        row["kl"] = abs(noise.around(0.0003 + 0.006 * step / 90, 0.15))
        rows.append(row)
    return rows


def clean_verl() -> list[Row]:
    """The score rises and levels off."""
    noise = Noise(13)
    return [
        validated(verl_row(noise, step, 80, ramp(step, 80, 0.4, 0.68)), noise, step, ramp(step, 80, 0.41, 0.66))
        for step in range(1, 81)
    ]


def clean_verl_longer() -> list[Row]:
    """Responses grow by half and the score grows with them: a model that learns to think longer, far from its limit."""
    noise, rows = Noise(14), []
    for step in range(1, 81):
        row = verl_row(noise, step, 80, ramp(step, 80, 0.22, 0.58), length=ramp(step, 80, 480, 760), clipped=0.008)
        row["response_length/max"] = float(noise.rng.integers(1700, 2048))
        rows.append(validated(row, noise, step, ramp(step, 80, 0.24, 0.57)))
    return rows


def clean_prime() -> list[Row]:
    """The reward rises; names of the guide."""
    noise, rows = Noise(15), []
    for step in range(90):
        rows += prime_rows(noise, step, 90, ramp(step, 90, 0.44, 0.63), older=True)
    return rows


def clean_openrlhf() -> list[Row]:
    """The reward rises, and so does the evaluation."""
    noise, rows = Noise(16), []
    for step in range(1, 81):
        row = openrlhf_row(noise, step, 80, ramp(step, 80, 0.3, 0.47))
        rows.append({"train/" + key: value for key, value in row.items()} | {"train/global_step": step})
        if step % 20 == 0:
            rows[-1] |= {
                "eval/eval_gsm8k_pass1": noise.measured(ramp(step, 80, 0.31, 0.46), 1319),
                "eval/global_step": step,
            }
    return rows


def as_lines(path: Path, rows: list[Row]) -> None:
    """JSON Lines."""
    path.write_text("".join(json.dumps({k: tidy(v) for k, v in row.items()}) + "\n" for row in rows), encoding="utf-8")


def as_verl(path: Path, rows: list[Row]) -> None:
    """verl's FileLogger: {"step": ..., "data": {...}}."""
    lines = [{"step": row["training/global_step"], "data": {k: tidy(v) for k, v in row.items()}} for row in rows]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


def as_trainer_state(path: Path, rows: list[Row]) -> None:
    """transformers' trainer_state.json, in which TRL's log lies."""
    history = [{k: tidy(v) for k, v in row.items()} for row in rows]
    state = {
        "best_metric": None,
        "epoch": history[-1]["epoch"],
        "global_step": history[-1]["step"],
        "is_world_process_zero": True,
        "log_history": history,
        "logging_steps": 1.0,
        "max_steps": history[-1]["step"],
    }
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(state), encoding="utf-8")


def as_wandb(path: Path, rows: list[Row], prefix: str = "") -> None:
    """The table that wandb's page exports as CSV: one line a step, empty cells where nothing was logged."""
    named = []
    for index, row in enumerate(rows):
        held = {(prefix + k if k != "step" else prefix + "global_step"): tidy(v) for k, v in row.items()}
        named.append({"_step": index, "_runtime": tidy(22.0 * index), "_timestamp": START + 22 * index} | held)
    columns = sorted({key for row in named for key in row}, key=lambda key: (not key.startswith("_"), key))
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns, quoting=csv.QUOTE_MINIMAL, lineterminator="\n")
        writer.writeheader()
        writer.writerows(named)


PLANTS: dict[str, tuple[Callable[[], list[Row]], Callable[[Path, list[Row]], None]]] = {
    "dead_trl.jsonl": (dead_trl, as_lines),
    "periodic_verl.jsonl": (periodic_verl, as_verl),
    "length_prime_rl.jsonl": (length_prime, as_lines),
    "hidden_trl_wandb.csv": (hidden_trl, lambda path, rows: as_wandb(path, rows, "train/")),
    "entropy_verl.jsonl": (entropy_verl, as_verl),
    "hacking_openrlhf.jsonl": (hacking_openrlhf, as_lines),
    "scale_verl.jsonl": (scale_verl, as_verl),
    "repeated_trl/trainer_state.json": (repeated_trl, as_trainer_state),
    "clipping_openrlhf_wandb.csv": (clipping_openrlhf, as_wandb),
    "clean_trl.jsonl": (clean_trl, as_lines),
    "clean_trl_hard_batch/trainer_state.json": (clean_trl_hard_batch, as_trainer_state),
    "clean_verl.jsonl": (clean_verl, as_verl),
    "clean_verl_longer.jsonl": (clean_verl_longer, as_verl),
    "clean_prime_rl.jsonl": (clean_prime, as_lines),
    "clean_openrlhf.jsonl": (clean_openrlhf, as_lines),
}

EXPECTED: dict[str, Row] = {
    "dead_trl.jsonl": {
        "trainer": "TRL",
        "fault": "dead run",
        "say": "no group teaches: all completions of a group have the same reward, so that nothing is learnt",
        "first_step": [1, 3],
        "shown_by": ["frac_reward_zero_std", "loss", "grad_norm", "reward_std"],
        "wrong": "a pass rate of 1 (the total reward is 1: the format is paid, no answer is right)",
    },
    "periodic_verl.jsonl": {
        "trainer": "verl",
        "fault": "periodic fault",
        "say": "every tenth step, right after a validation, has no reward and only responses at the limit",
        "first_step": [11, 31],
        "period": 10,
        "shown_by": ["critic/score/mean", "response_length/clip_ratio", "response_length/mean"],
    },
    "length_prime_rl.jsonl": {
        "trainer": "prime-rl",
        "fault": "slow rise of length",
        "say": "responses grow up to the limit and are cut, while the reward does not grow",
        "first_step": [20, 110],
        "shown_by": ["train/agg/all/agent/num_output_tokens/mean", "train/agg/all/agent/is_truncated/mean"],
    },
    "hidden_trl_wandb.csv": {
        "trainer": "TRL, exported from wandb",
        "fault": "format reward hides falling accuracy",
        "say": "right answers become rare while the total reward rises with the format's",
        "first_step": [25, 75],
        "shown_by": ["train/rewards/accuracy_reward/mean", "train/rewards/format_reward/mean"],
    },
    "entropy_verl.jsonl": {
        "trainer": "verl",
        "fault": "entropy collapse",
        "say": "entropy falls to nothing and the score stands still",
        "first_step": [10, 60],
        "shown_by": ["actor/entropy"],
    },
    "hacking_openrlhf.jsonl": {
        "trainer": "OpenRLHF",
        "fault": "reward hacking",
        "say": "the reward jumps within a few steps, responses shrink, and the held-out pass rate falls",
        "first_step": [68, 82],
        "shown_by": ["train/reward", "train/response_length", "eval/eval_gsm8k_pass1"],
    },
    "scale_verl.jsonl": {
        "trainer": "verl",
        "fault": "reward scale changes",
        "say": "the greatest reward is 10 from step 48 on, and was 1 before; the share of right answers did not jump",
        "first_step": [46, 52],
        "shown_by": ["critic/score/max", "critic/score/mean"],
    },
    "repeated_trl/trainer_state.json": {
        "trainer": "TRL",
        "fault": "data repeated each epoch",
        "say": "the reward climbs with each epoch over the same 25 batches while held-out accuracy falls",
        "first_step": [26, 110],
        "shown_by": ["rewards/accuracy_reward/mean", "eval_rewards/accuracy_reward/mean", "epoch"],
    },
    "clipping_openrlhf_wandb.csv": {
        "trainer": "OpenRLHF, exported from wandb",
        "fault": "clip ratio grows",
        "say": "more and more tokens are clipped; the sampler's weights and the policy's move apart",
        "first_step": [25, 90],
        "shown_by": ["train/ppo_clip_ratio", "train/ppo_kl", "train/vllm_kl"],
    },
    "clean_trl.jsonl": {"trainer": "TRL", "fault": None},
    "clean_trl_hard_batch/trainer_state.json": {
        "trainer": "TRL",
        "fault": None,
        "note": "steps 37 and 38 have hard problems",
    },
    "clean_verl.jsonl": {"trainer": "verl", "fault": None},
    "clean_verl_longer.jsonl": {"trainer": "verl", "fault": None, "note": "responses and score grow together"},
    "clean_prime_rl.jsonl": {"trainer": "prime-rl, names of its guide", "fault": None},
    "clean_openrlhf.jsonl": {"trainer": "OpenRLHF", "fault": None},
}


def main() -> None:
    """Writes all files of the folder."""
    for name, (make, write) in PLANTS.items():
        rows = make()
        write(HERE / name, rows)
        EXPECTED[name]["rows"] = len(rows)
    (HERE / "expected.json").write_text(json.dumps(EXPECTED, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
