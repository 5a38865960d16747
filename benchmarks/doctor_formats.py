"""Writers of log files in the formats of several trainers, for simulated metrics of the doctor's benchmark.

The names are those of the trainers' sources, see `train/guards/metric_names.toml`.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path

from doctor_runs import Row

TRL = {
    "accuracy": "rewards/accuracy_reward/mean",
    "accuracy_std": "rewards/accuracy_reward/std",
    "lr": "learning_rate",
    "format": "rewards/format_reward/mean",
    "format_std": "rewards/format_reward/std",
    "loss": "loss",
    "kl": "kl",
    "reward": "reward",
    "reward_std": "reward_std",
    "zero": "frac_reward_zero_std",
    "grad": "grad_norm",
    "entropy": "entropy",
    "length": "completions/mean_length",
    "cut": "completions/clipped_ratio",
    "epoch": "epoch",
    "clip": "clip_ratio/region_mean",
    "step": "step",
}
VERL = {
    "reward": "critic/score/mean",
    "reward_max": "critic/score/max",
    "reward_min": "critic/score/min",
    "advantage_max": "critic/advantages/max",
    "advantage_min": "critic/advantages/min",
    "loss": "actor/pg_loss",
    "grad": "actor/grad_norm",
    "lr": "actor/lr",
    "kl": "actor/kl_loss",
    "entropy": "actor/entropy",
    "length": "response_length/mean",
    "cut": "response_length/clip_ratio",
    "clip": "actor/pg_clipfrac",
    "mismatch": "rollout_corr/k3_kl",
    "heldout": "val-core/openai/gsm8k/acc/mean@1",
    "step": "training/global_step",
    "epoch": "training/epoch",
}
PRIME = {
    "reward": "train/agg/all/agent/reward/mean",
    "accuracy": "train/agg/all/agent/rewards/correct_answer/mean",
    "format": "train/agg/all/agent/rewards/format/mean",
    "length": "train/agg/all/agent/num_output_tokens/mean",
    "cut": "train/agg/all/agent/is_truncated/mean",
    "errors": "train/agg/all/has_error/mean",
    "heldout": "eval/math500/all/agent/avg@1",
    "step": "step",
}
PRIME_TRAINER = {
    "loss": "loss/mean",
    "grad": "optim/grad_norm",
    "lr": "optim/lr",
    "entropy": "entropy/all/mean",
    "mismatch": "mismatch_kl/all/mean",
    "clip": "is_masked/mean",
    "step": "step",
}
OPENRLHF = {
    "reward": "train/reward",
    "accuracy": "train/score",
    "reward_std": "train/group_reward_std",
    "kl": "train/kl",
    "loss": "train/policy_loss",
    "grad": "train/actor_grad_norm",
    "lr": "train/actor_lr",
    "entropy": "train/entropy_loss",
    "length": "train/response_length",
    "cut": "train/truncated",
    "clip": "train/ppo_clip_ratio",
    "mismatch": "train/vllm_kl",
    "heldout": "eval/eval_math500_pass1",
    "step": "train/global_step",
}
OPEN_INSTRUCT = {
    "reward": "scores",
    "accuracy": "objective/verifiable_correct_rate",
    "format": "val/format_scores",
    "lr": "lr",
    "loss": "loss/policy_avg",
    "grad": "optim/grad_norm",
    "kl": "objective/kl2_avg",
    "entropy": "policy/entropy_avg",
    "length": "val/sequence_lengths",
    "clip": "policy/clipfrac_avg",
    "heldout": "eval/pass_at_1",
    "step": "training_step",
}


def named(rows: list[Row], names: dict[str, str]) -> list[Row]:
    """Return rows in a trainer's names."""
    return [{names[name]: value for name, value in row.items() if name in names} for row in rows]


def write_lines(path: Path, rows: list[Row]) -> None:
    """JSON Lines."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def trl_rows(rows: list[Row]) -> list[Row]:
    """TRL's rows, those of an evaluation apart."""
    out = []
    for row, translated in zip(rows, named(rows, TRL), strict=True):
        out.append(translated)
        if "heldout" in row:
            out.append({"eval_rewards/accuracy_reward/mean": row["heldout"], "eval_loss": 0.0, "step": row["step"]})
    return out


def write_trl(path: Path, rows: list[Row]) -> None:
    """trainer_state.json."""
    path.write_text(json.dumps({"log_history": trl_rows(rows), "max_steps": len(rows)}))


def write_console(path: Path, rows: list[Row]) -> None:
    """Write the console output of transformers."""
    lines = ["Map: 100%|####| 10/10"]
    for row in trl_rows(rows):
        lines.append(str({name: f"{value:.4g}" for name, value in row.items() if name != "step"}))
        lines.append(f" 10%|#    | {row['step']:.0f}/{len(rows)} [00:12<01:30,  4.52s/it]")
    path.write_text("\n".join(lines))


def table_row(row: Row) -> Row:
    """A row of TRL by the names that wandb has: `train/` or `eval/` before them."""
    if "eval_loss" in row:
        named_row = {name.replace("eval_", "eval/", 1): value for name, value in row.items() if name != "step"}
    else:
        named_row = {f"train/{name}": value for name, value in row.items() if name != "step"}
    return named_row | {"train/global_step": row["step"]}


def write_table(path: Path, rows: list[Row]) -> None:
    """wandb's history as CSV."""
    named_rows = [table_row(row) for row in trl_rows(rows)]
    columns = list(dict.fromkeys(name for row in named_rows for name in row))
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, ["_step", "_runtime", *columns])
        writer.writeheader()
        writer.writerows({"_step": index, "_runtime": 9.0 * index} | row for index, row in enumerate(named_rows))


def write_verl(path: Path, rows: list[Row]) -> None:
    """verl's file logger."""
    write_lines(path, [{"step": row["training/global_step"], "data": row} for row in named(rows, VERL)])  # type: ignore[dict-item]


def write_verl_console(path: Path, rows: list[Row]) -> None:
    """verl's console."""
    lines = ["(TaskRunner pid=7) Training Progress:   0%|          | 0/90"]
    for row in named(rows, VERL):
        pairs = " - ".join(f"{name}:{value!r}" for name, value in row.items())
        lines.append(f"(TaskRunner pid=7) step:{row['training/global_step']:.0f} - {pairs}")
    path.write_text("\n".join(lines))


def write_prime(path: Path, rows: list[Row]) -> None:
    """prime-rl's metrics.jsonl, without numbers that are not finite, as its monitor leaves them out."""
    pairs = zip(named(rows, PRIME), named(rows, PRIME_TRAINER), strict=True)
    write_lines(path, [row for pair in pairs for row in pair])


WRITERS: dict[str, tuple[str, Callable[[Path, list[Row]], None]]] = {
    "TRL trainer_state": ("trainer_state.json", write_trl),
    "TRL console": ("output.log", write_console),
    "TRL wandb CSV": ("wandb.csv", write_table),
    "verl file": ("verl.jsonl", write_verl),
    "verl console": ("verl.log", write_verl_console),
    "prime-rl": ("metrics.jsonl", write_prime),
    "OpenRLHF": ("openrlhf.jsonl", lambda path, rows: write_lines(path, named(rows, OPENRLHF))),
    "open-instruct": ("open_instruct.jsonl", lambda path, rows: write_lines(path, named(rows, OPEN_INSTRUCT))),
}
LACKS = {
    "verl file": {"accuracy", "format"},
    "verl console": {"accuracy", "format"},
    "prime-rl": {"kl", "reward_std"},
    "OpenRLHF": {"format"},
    "open-instruct": {"cut", "mismatch", "reward_std"},
    "TRL trainer_state": {"mismatch"},
    "TRL console": {"mismatch", "step"},
    "TRL wandb CSV": {"mismatch"},
}
"""What a trainer does not log: kinds that need it are not asked in its names."""
NEEDS = {
    "hidden_fall": {"accuracy", "format"},
    "reward_blind": {"accuracy", "format"},
    "mismatch": {"mismatch"},
    "kl": {"kl"},
    "truncation": {"cut"},
    "teaching_fall": {"zero"},
    "reward_scale": {"reward_std"},
    "reward_hacking": {"kl"},
    "periodic": {"cut"},
    "clip_share": {"clip"},
    "nothing_teaches": {"reward_std"},
    "resumed": {"step"},
}
ONLY_TRL = {"zero"}


ONLY_TRL = {"zero"}
"""What only TRL logs."""


def formats_for(names: tuple[str, ...]) -> list[str]:
    """The formats in which a fault can be seen."""
    needed = {metric for name in names for metric in NEEDS.get(name, set())}
    chosen = [form for form in WRITERS if not needed & LACKS[form]]
    return [form for form in chosen if form.startswith("TRL")] if needed & ONLY_TRL else chosen
