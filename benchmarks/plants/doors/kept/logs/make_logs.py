"""Writes the training logs of this folder: nine with a planted fault, six clean ones, and expected.json.

Run it in any folder: `python make_logs.py`. The seeds are fixed. Only the standard library is needed.
"""

import csv
import json
import math
import random
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
Row = dict[str, Any]
START = 1_782_000_000.0
EXPECTED: Row = {}


def tidy(value: Any) -> Any:
    """Five digits are enough; NaN stays."""
    if not isinstance(value, float) or math.isnan(value) or math.isinf(value):
        return value
    return round(value, 1) if abs(value) >= 1e6 else float(f"{value:.5g}")


class Noise:
    """Random numbers of one log; what is slow in it wanders, as in real runs."""

    def __init__(self, seed: int) -> None:
        self.r = random.Random(seed)
        self.drift = 0.0

    def wander(self) -> float:
        """A slow walk around 0, of some 2 %."""
        self.drift = 0.9 * self.drift + 0.009 * self.r.gauss(0, 1)
        return self.drift

    def near(self, value: float, share: float = 0.05) -> float:
        """The value, give or take a share."""
        return value * (1 + share * self.r.gauss(0, 1))

    def tail(self, value: float, share: float = 0.3) -> float:
        """A positive value with now and then a large one."""
        return (
            value * math.exp(share * self.r.gauss(0, 1)) * (self.r.uniform(1.8, 3.0) if self.r.random() < 0.03 else 1.0)
        )

    def rate(self, p: float, n: int = 512) -> float:
        """A share of n samples whose batches differ."""
        q = min(1.0, max(0.0, p + (0.02 * self.r.gauss(0, 1) + self.wander() if 0.04 < p < 0.96 else 0.0)))
        return sum(self.r.random() < q for _ in range(n)) / n


def curve(step: float, steps: float, low: float, high: float) -> float:
    """A learning curve."""
    return low + (high - low) * (1 - math.exp(-2.6 * step / steps))


def save(name: str, rows: list[Row], trainer: str, fault: str | None, **more: Any) -> None:
    """JSON Lines, CSV of wandb, or a trainer's state."""
    rows = [
        {k: tidy(v) if not isinstance(v, dict) else {a: tidy(b) for a, b in v.items()} for k, v in row.items()}
        for row in rows
    ]
    path = HERE / name
    path.parent.mkdir(exist_ok=True)
    if name.endswith(".csv"):
        columns: list[str] = []
        for row in rows:
            columns += [k for k in row if k not in columns]
        with path.open("w", newline="", encoding="utf-8") as file:
            out = csv.DictWriter(file, sorted(columns))
            out.writeheader()
            out.writerows(rows)
    elif name.endswith("trainer_state.json"):
        state = {
            "best_metric": None,
            "epoch": rows[-1]["epoch"],
            "global_step": rows[-1]["step"],
            "is_local_process_zero": True,
            "log_history": rows,
            "logging_steps": 1,
            "max_steps": rows[-1]["step"],
            "num_train_epochs": 1,
            "save_steps": 50,
            "stateful_callbacks": {},
            "total_flos": 0.0,
            "train_batch_size": 8,
            "trial_name": None,
            "trial_params": None,
        }
        path.write_text(json.dumps(state, indent=2) + "\n", encoding="utf-8")
    else:
        path.write_text("\n".join(json.dumps(row) for row in rows) + "\n", encoding="utf-8")
    EXPECTED[name] = {"trainer": trainer, "fault": fault, "rows": len(rows)} | more


def trl(n: Noise, step: int, steps: int, accuracy: float, **known: Any) -> Row:
    """TRL's GRPOTrainer."""
    length, cut, size = known.pop("length", 512 + 40 * step / steps), known.pop("cut", 0.03), known.pop("limit", 2048)
    right = n.rate(accuracy)
    form = n.rate(curve(step, steps / 4, 0.8, 0.995))
    total = right + 0.5 * form
    dead = n.rate(right**8 + (1 - right) ** 8, 64)
    row: Row = {
        "loss": 0.01 * n.r.gauss(0, 1),
        "grad_norm": n.tail(0.16),
        "learning_rate": 2e-06 * min(1.0, step / 12) * 0.5 * (1 + math.cos(math.pi * step / (steps + 20))),
        "num_tokens": float(step * 512 * (length + 140)),
        "completions/mean_length": n.near(length, 0.05),
        "completions/min_length": float(n.r.randint(20, 160)),
        "completions/max_length": float(size),
        "completions/clipped_ratio": n.rate(cut),
        "completions/mean_terminated_length": n.near(length * 0.95, 0.05),
        "completions/min_terminated_length": float(n.r.randint(20, 160)),
        "completions/max_terminated_length": n.near(size * 0.95, 0.02),
        "rewards/accuracy_reward/mean": right,
        "rewards/accuracy_reward/std": math.sqrt(right * (1 - right)),
        "rewards/format_reward/mean": 0.5 * form,
        "rewards/format_reward/std": 0.5 * math.sqrt(form * (1 - form)),
        "reward": total,
        "reward_std": n.near(0.6 * math.sqrt(right * (1 - right)) + 0.02, 0.08),
        "frac_reward_zero_std": dead,
        "entropy": n.near(0.6 - 0.15 * step / steps, 0.06),
        "clip_ratio/low_mean": n.tail(0.0003, 0.6),
        "clip_ratio/low_min": 0.0,
        "clip_ratio/high_mean": n.tail(0.0006, 0.6),
        "clip_ratio/high_max": n.tail(0.003, 0.6),
        "clip_ratio/region_mean": n.tail(0.0009, 0.6),
        "sampling/sampling_logp_difference/mean": n.near(0.011, 0.1),
        "sampling/importance_sampling_ratio/mean": n.near(0.9995, 0.0005),
        "step_time": n.tail(34.0, 0.1),
        "epoch": step / 210,
        "step": step,
    }
    return row | known


def verl(n: Noise, step: int, steps: int, score: float, **known: Any) -> Row:
    """verl's metrics."""
    length, cut, limit = known.pop("length", 900 + 120 * step / steps), known.pop("cut", 0.02), known.pop("limit", 4096)
    mean = n.rate(score, 1024)
    row: Row = {
        "training/global_step": step,
        "training/epoch": step // 75,
        "critic/score/mean": mean,
        "critic/score/max": 1.0,
        "critic/score/min": 0.0,
        "critic/rewards/mean": mean,
        "critic/rewards/max": 1.0,
        "critic/rewards/min": 0.0,
        "critic/advantages/mean": 0.03 * n.r.gauss(0, 1),
        "critic/advantages/max": 2.47487,
        "critic/advantages/min": -2.47487,
        "critic/returns/mean": 0.03 * n.r.gauss(0, 1),
        "response_length/mean": n.near(length, 0.04),
        "response_length/max": float(limit),
        "response_length/min": float(n.r.randint(50, 220)),
        "response_length/clip_ratio": n.rate(cut, 1024),
        "response/aborted_ratio": 0.0,
        "prompt_length/mean": n.near(141, 0.03),
        "prompt_length/clip_ratio": 0.0,
        "actor/entropy": n.near(0.48 - 0.12 * step / steps, 0.05),
        "actor/pg_loss": 0.015 * n.r.gauss(0, 1),
        "actor/pg_clipfrac": n.tail(0.0015, 0.4),
        "actor/pg_clipfrac_lower": 0.0,
        "actor/ppo_kl": n.tail(0.0005, 0.5),
        "actor/grad_norm": n.tail(0.12),
        "actor/lr": 1e-06,
        "rollout_corr/kl": n.tail(0.0011, 0.2),
        "perf/mfu/actor": n.near(0.31, 0.04),
        "perf/throughput": n.near(2100, 0.06),
        "timing_s/gen": n.tail(61, 0.1),
        "timing_s/step": n.tail(118, 0.08),
    }
    return row | known


def file_logger(row: Row) -> Row:
    """A line of verl's file logger."""
    return {"step": row["training/global_step"], "data": row}


def prime(n: Noise, step: int, steps: int, reward: float, **known: Any) -> list[Row]:
    """prime-rl's rows of a step."""
    length, cut = known.pop("length", 2100 + 260 * step / steps), known.pop("cut", 0.03)
    mean = n.rate(reward)
    when = START + 120.0 * step
    base = "train/agg/all"
    none, every = n.rate((1 - mean) ** 7, 64), n.rate(mean**7, 64)
    first: Row = {
        "step": step,
        "time": when,
        f"{base}/num_total_tokens/mean": n.near(length + 160, 0.03),
        f"{base}/has_error/mean": 0.0,
        f"{base}/agent/reward/mean": mean,
        f"{base}/agent/reward/max": 1.0,
        f"{base}/agent/reward/min": 0.0,
        f"{base}/agent/num_output_tokens/mean": n.near(length, 0.03),
        f"{base}/agent/is_truncated/mean": n.rate(cut),
        f"{base}/agent/solved_none": none,
        f"{base}/agent/solved_all": every,
        f"{base}/agent/solved_some": max(0.0, 1 - none - every),
        "off_policy/mean": n.near(1.6, 0.15),
        "off_policy/max": float(n.r.choice([2, 3, 3, 4])),
    }
    second: Row = {
        "step": step,
        "time": when + 70,
        "loss/mean": 0.004 * n.r.gauss(0, 1),
        "entropy/all/mean": n.near(0.33, 0.05),
        "mismatch_kl/all/mean": n.tail(0.0013, 0.2),
        "is_masked/mean": n.tail(0.0008, 0.3),
        "optim/lr": 1e-06,
        "optim/grad_norm": n.tail(0.08),
        "perf/throughput": n.near(9400, 0.05),
    }
    for k, v in known.items():
        (first if k in first or k.startswith(("train/", "eval/", "off_policy")) else second)[k] = v
    return [first, second]


def openrlhf(n: Noise, step: int, steps: int, reward: float, **known: Any) -> Row:
    """OpenRLHF's metrics, as wandb has them."""
    length = n.near(known.pop("length", 620 + 70 * step / steps), 0.04)
    mean = n.rate(reward)
    row: Row = {
        "policy_loss": 0.008 * n.r.gauss(0, 1),
        "actor_lr": 5e-07,
        "actor_grad_norm": n.tail(0.28),
        "reward": mean,
        "return": mean,
        "group_reward_std": n.near(0.32, 0.1),
        "response_length": length,
        "total_length": length + 150,
        "response_clip_ratio": n.rate(0.015),
        "truncated": n.rate(0.015),
        "kl": n.tail(0.0006 + 0.004 * step / steps, 0.15),
        "ppo_clip_ratio": n.tail(0.004, 0.3),
        "ppo_kl": n.tail(0.0005, 0.4),
        "vllm_kl": n.tail(0.001, 0.2),
        "timing/step_total": n.tail(150, 0.06),
    }
    return {"train/" + k: v for k, v in (row | known).items()} | {"train/global_step": step}


def own(n: Noise, step: int, steps: int, p: float, **known: Any) -> Row:
    """truegold's metrics.jsonl, by the names of docs/reference/training-metrics.md."""
    right = n.rate(p, 256)
    length = n.near(known.get("length_mean", 310 + 30 * step / steps), 0.04)
    row: Row = {
        "step": step,
        "reward": right,
        "pass_rate": right,
        "right_share": right,
        "score/correct": right,
        "reward/correct": right,
        "unjudged": n.rate(0.008, 256),
        "avoidable": 0.0,
        "unread": n.rate(0.01, 256),
        "timeouts": 0.0,
        "truncated": n.rate(0.02, 256),
        "repetition": n.near(0.06, 0.1),
        "foreign_script": 0.0,
        "length_mean": length,
        "groups_teaching": n.rate(1 - p**8 - (1 - p) ** 8, 32),
        "groups_all_right": n.rate(p**8, 32),
        "groups_all_wrong": n.rate((1 - p) ** 8, 32),
        "groups_entered": 28,
        "effective_completions": n.near(190, 0.05),
        "entropy": n.near(0.45 - 0.1 * step / steps, 0.05),
        "loss": 0.006 * n.r.gauss(0, 1),
        "grad_norm": n.tail(0.4, 0.25),
        "learning_rate": 1e-06,
        "clip_share": n.tail(0.004, 0.3),
        "clipped_low": n.tail(0.001, 0.4),
        "clipped_high": n.tail(0.003, 0.4),
        "mismatch_abs": n.near(0.012, 0.08),
        "mismatch_fresh": n.near(0.012, 0.08),
        "mismatch_k3": n.tail(0.0004, 0.2),
        "correction": n.near(0.998, 0.001),
        "kept_tokens": 1.0,
        "positive_token_mass": n.near(0.9, 0.1),
        "seconds_rollout": n.tail(22, 0.1),
        "seconds_update": n.tail(14, 0.06),
    }
    return row | known


# --- with a fault -------------------------------------------------------------------------------------------------------
n = Noise(101)
rows = []
for step in range(1, 121):
    row = trl(n, step, 120, curve(min(step, 70), 120, 0.33, 0.55))
    if step in (69, 70):
        row["grad_norm"] = n.near(31.0 * (step - 67), 0.1)
    if step >= 71:
        row |= {
            "loss": 0.0,
            "grad_norm": float("nan"),
            "entropy": float("nan"),
            "reward": 0.0,
            "reward_std": 0.0,
            "frac_reward_zero_std": 1.0,
            "completions/mean_length": 2048.0,
            "completions/clipped_ratio": 1.0,
            "completions/mean_terminated_length": 0.0,
            "rewards/accuracy_reward/mean": 0.0,
            "rewards/accuracy_reward/std": 0.0,
            "rewards/format_reward/mean": 0.0,
            "rewards/format_reward/std": 0.0,
        }
    rows.append(row)
save(
    "nan_trl.jsonl",
    rows,
    "TRL",
    "not finite",
    say="the gradient is NaN from step 71 on, and completions are noise up to the limit",
    first_step=[69, 73],
    shown_by=["grad_norm", "entropy", "completions/clipped_ratio", "reward"],
)

n = Noise(102)
rows = []
for step in range(1, 131):
    grow = math.exp(0.085 * max(0, step - 55)) - 1
    rows.append(
        openrlhf(
            n,
            step,
            130,
            curve(min(step, 80), 130, 0.28, 0.44) - 0.1 * min(1.0, grow / 60),
            kl=n.tail(0.003 + 0.02 * grow, 0.12),
        )
        | {"_step": step - 1, "_runtime": 155.0 * step, "_timestamp": START + 155.0 * step}
    )
save(
    "kl_openrlhf_wandb.csv",
    rows,
    "OpenRLHF, exported from wandb",
    "kl explodes",
    say="the distance from the reference grows without bound, from 0.003 to above 10",
    first_step=[60, 125],
    shown_by=["train/kl", "train/reward"],
)

n = Noise(103)
rows = []
for step in range(1, 111):
    fall = 1 / (1 + math.exp(-(step - 48) / 4))
    length = 540 * (1 - fall) + 9 * fall
    row = trl(n, step, 110, 0.46 * (1 - fall) + 0.24 * fall, length=length, cut=0.03 * (1 - fall))
    row |= {
        "completions/min_length": float(n.r.randint(20, 160)) * (1 - fall) + 4 * fall,
        "completions/max_length": 2048 * (1 - fall) + 30 * fall,
    }
    rows.append(row)
    if step % 22 == 0:
        rows.append(
            {
                "eval_loss": 0.001,
                "eval_reward": n.near(0.9 * (1 - fall) + 0.72 * fall, 0.01),
                "eval_rewards/accuracy_reward/mean": n.near(0.44 * (1 - fall) + 0.22 * fall, 0.02),
                "eval_completions/mean_length": n.near(length, 0.03),
                "eval_runtime": 88.0,
                "epoch": step / 210,
                "step": step,
            }
        )
save(
    "short_trl/trainer_state.json",
    rows,
    "TRL",
    "length collapse",
    say="completions shrink to nine tokens, reasoning is gone and accuracy falls by half",
    first_step=[40, 62],
    shown_by=["completions/mean_length", "rewards/accuracy_reward/mean"],
)

n = Noise(104)
rows = []
for step in range(140):
    worse = max(0.0, (step - 60) / 79)
    rows += prime(
        n,
        step,
        140,
        curve(min(step, 75), 140, 0.35, 0.55) - 0.22 * worse**2,
        **{
            "mismatch_kl/all/mean": n.tail(0.0013 + 0.9 * worse**2, 0.15),
            "is_masked/mean": min(0.95, n.tail(0.0008 + 0.35 * worse**2, 0.15)),
            "optim/grad_norm": n.tail(0.08 + 0.3 * worse, 0.3),
        },
    )
save(
    "mismatch_prime_rl.jsonl",
    rows,
    "prime-rl",
    "engines drift apart",
    say="sampler and trainer disagree more and more about the same tokens, and the reward falls",
    first_step=[62, 125],
    shown_by=["mismatch_kl/all/mean", "is_masked/mean", "train/agg/all/agent/reward/mean"],
)

n = Noise(105)
rows = []
for step in [*range(1, 66), *range(51, 121)]:
    again = len(rows) >= 65
    score = curve(step - 50 if again else step, 110, 0.31, 0.62)
    row = verl(n, step, 120, score)
    if step % 10 == 0:
        row["val-core/math500/acc/mean@1"] = round(sum(n.r.random() < score - 0.02 for _ in range(500)) / 500, 4)
    rows.append(file_logger(row))
save(
    "restart_verl.jsonl",
    rows,
    "verl",
    "restart from the base weights",
    say="steps 51 to 65 come twice, and after the restart the score is that of the first step: the weights were not loaded",
    first_step=[51, 66],
    shown_by=["critic/score/mean", "step", "val-core/math500/acc/mean@1"],
)

n = Noise(106)
rows = []
for step in range(1, 101):
    down = 0.0 if step < 44 else min(0.82, 0.05 * (step - 43))
    row = own(n, step, 100, curve(step, 100, 0.36, 0.58))
    if down:
        row |= {
            "unjudged": n.rate(down, 256),
            "timeouts": n.rate(down * 0.95, 256),
            "groups_entered": max(2, int(28 * (1 - down))),
            "seconds_rollout": n.tail(22 + 140 * down, 0.1),
            "effective_completions": n.near(190 * (1 - down), 0.05),
        }
    rows.append(row)
save(
    "verdicts_truegold.jsonl",
    rows,
    "truegold's metrics.jsonl",
    "verdicts are missing",
    say="from step 44 on ever more completions are not judged, because the judge's service times out",
    first_step=[44, 58],
    shown_by=["unjudged", "timeouts", "seconds_rollout"],
)

n = Noise(107)
rows = []
for step in range(1, 111):
    up = 1 / (1 + math.exp(-(step - 66) / 3.5))
    row = verl(
        n,
        step,
        110,
        curve(step, 110, 0.34, 0.6) * (1 - up) + 0.01 * up,
        length=(900 + step) * (1 - up) + 4010 * up,
        cut=0.02 * (1 - up) + 0.97 * up,
    )
    row["actor/entropy"] = n.near(0.48 * (1 - up) + 7.2 * up, 0.05)
    row["actor/grad_norm"] = n.tail(0.12 + 1.1 * up)
    if step % 10 == 0:
        row["val-core/math500/acc/mean@1"] = n.rate(curve(step, 110, 0.33, 0.58) * (1 - up), 500)
    rows.append(file_logger(row))
save(
    "gibberish_verl.jsonl",
    rows,
    "verl",
    "entropy explodes",
    say="entropy rises from 0.5 to 7, all responses run to the limit, and the score falls to nothing",
    first_step=[55, 72],
    shown_by=["actor/entropy", "response_length/clip_ratio", "critic/score/mean"],
)

n = Noise(108)
rows = []
for step in range(1, 101):
    limit = 4096 if step < 40 else 1024
    score = curve(step, 100, 0.36, 0.56)
    row = verl(
        n,
        step,
        100,
        score if step < 40 else 0.62 * score,
        limit=limit,
        cut=0.02 if step < 40 else 0.43,
        length=(900 + step) if step < 40 else 735.0,
    )
    rows.append(row | {"_step": step, "_runtime": 120.0 * step, "_timestamp": START + 120.0 * step})
save(
    "limit_verl_wandb.csv",
    rows,
    "verl, exported from wandb",
    "responses are cut",
    say="from step 40 on responses end at 1,024 tokens instead of 4,096: four in ten are cut and the score falls at once",
    first_step=[40, 44],
    shown_by=["response_length/clip_ratio", "response_length/max", "critic/score/mean"],
)

n = Noise(109)
rows = []
for step in range(1, 121):
    hot = max(0, step - 58)
    norm = n.tail(0.28 * math.exp(0.11 * hot), 0.3)
    row = openrlhf(
        n,
        step,
        120,
        curve(min(step, 62), 120, 0.3, 0.47) - 0.25 * min(1.0, (hot / 45) ** 2),
        actor_grad_norm=norm,
        policy_loss=(0.008 + 0.03 * hot / 10) * n.r.gauss(0, 1),
    )
    row["train/actor_lr"] = 5e-07 if step < 56 else 5e-05
    if step % 20 == 0:
        row |= {
            "eval/eval_math500_pass1": n.rate(
                curve(min(step, 62), 120, 0.3, 0.45) - 0.2 * min(1.0, (hot / 45) ** 2), 500
            ),
            "eval/global_step": step,
        }
    rows.append(row)
save(
    "gradient_openrlhf.jsonl",
    rows,
    "OpenRLHF",
    "gradient explodes",
    say="after the learning rate became a hundredfold at step 56 the gradient's norm grows from 0.3 to above 100, and the reward falls",
    first_step=[56, 95],
    shown_by=["train/actor_grad_norm", "train/actor_lr", "train/reward"],
)

# --- clean ones ---------------------------------------------------------------------------------------------------------
n = Noise(201)
rows = []
for step in range(1, 131):
    row = trl(n, step, 130, curve(step, 130, 0.29, 0.57))
    if step == 84:
        row["grad_norm"] = 1.9
    rows.append(row)
    if step % 26 == 0:
        rows.append(
            {
                "eval_loss": 0.0008,
                "eval_reward": n.near(curve(step, 130, 0.79, 1.06), 0.01),
                "eval_rewards/accuracy_reward/mean": n.near(curve(step, 130, 0.29, 0.56), 0.015),
                "eval_completions/mean_length": n.near(530, 0.03),
                "eval_runtime": 90.0,
                "epoch": step / 210,
                "step": step,
            }
        )
save(
    "clean_trl_spike.jsonl",
    rows,
    "TRL",
    None,
    note="one gradient ten times as large, at step 84, without consequence; evaluations between the steps",
)

n = Noise(202)
rows = []
for step in range(1, 101):
    row = verl(n, step, 100, curve(step, 100, 0.4, 0.66))
    row["timing_s/step"] = n.tail(118 + (240 if step % 20 == 0 else 0), 0.06)
    if step % 20 == 0:
        row |= {
            "val-core/math500/acc/mean@1": n.rate(curve(step, 100, 0.41, 0.64), 500),
            "val-aux/math500/reward/mean@1": 0.6,
            "timing_s/testing": n.near(236, 0.05),
        }
    rows.append({"_step": step, "_runtime": 120.0 * step, "_timestamp": START + 120.0 * step} | row)
save(
    "clean_verl_wandb.csv",
    rows,
    "verl, exported from wandb",
    None,
    note="validation at every twentieth step leaves empty cells in the others, and makes these steps slow",
)

n = Noise(203)
rows = []
for step in range(120):
    out = prime(n, step, 120, curve(step, 120, 0.33, 0.6), **{"off_policy/mean": 1.6 + 1.2 * math.sin(step / 6) ** 2})
    if step % 30 == 0:
        out[0] |= {
            "eval/aime2024/avg@16": n.near(curve(step, 120, 0.2, 0.33), 0.04),
            "eval/aime2024/no_response/mean": 0.0,
        }
    rows += out
save(
    "clean_prime_rl_stale.jsonl",
    rows,
    "prime-rl",
    None,
    note="off-policy steps come and go between 1.6 and 2.8 without consequence",
)

n = Noise(204)
rows = []
for step in range(1, 101):
    row = openrlhf(n, step, 100, curve(step, 100, 0.26, 0.5), length=620 - 150 * step / 100)
    if step % 25 == 0:
        row |= {
            "eval/eval_math500_pass1": n.rate(curve(step, 100, 0.27, 0.48), 500),
            "eval/eval_response_length_mean": n.near(540, 0.04),
            "eval/global_step": step,
        }
    rows.append(row)
save(
    "clean_openrlhf_shorter.jsonl",
    rows,
    "OpenRLHF",
    None,
    note="responses become a quarter shorter while the reward rises: less chatter",
)

n = Noise(205)
save(
    "clean_truegold.jsonl",
    [
        own(n, step, 110, curve(step, 110, 0.34, 0.63))
        | ({"heldout_pass_rate": n.rate(curve(step, 110, 0.35, 0.6), 500)} if step % 20 == 0 else {})
        for step in range(1, 111)
    ],
    "truegold's metrics.jsonl",
    None,
)

n = Noise(206)
rows = []
for step in range(1, 101):
    p = curve(step, 80, 0.5, 0.87)
    rows.append(trl(n, step, 100, p, length=420 + 190 * step / 100, kl=n.tail(0.0004 + 0.02 * step / 100, 0.1)))
save(
    "clean_trl_easy/trainer_state.json",
    rows,
    "TRL",
    None,
    note="easy data: the pass rate ends at 0.85, so that a quarter of the groups are all right; KL and length grow slowly with it",
)

(HERE / "expected.json").write_text(json.dumps(EXPECTED, indent=1) + "\n", encoding="utf-8")
print({k: v["rows"] for k, v in EXPECTED.items()})
