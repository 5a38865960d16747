"""Reads the metrics of a run, of truegold or of another trainer, in the names that the guards know.

truegold   a run's folder, the folder of its stage, metrics.jsonl
TRL        trainer_state.json or a folder with checkpoint-*/trainer_state.json: {"log_history": [{"step": 1, ...}]}
verl       the JSON Lines of its file logger: {"step": 1, "data": {"actor/entropy": ...}}, or one flat object a line
"""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from truegold.verifiers import InputError

ALARMS = "alarms.jsonl"
"""In the stage's folder: every alarm, with what was done."""

METRIC_NAMES: Mapping[str, Mapping[str, str]] = tomllib.loads(
    files("truegold.train.guards").joinpath("metric_names.toml").read_text("utf-8")
)
"""By trainer, the names of its metrics, each with the name that the guards know."""
TRL_NAMES, VERL_NAMES = METRIC_NAMES["TRL"], METRIC_NAMES["VERL"]
TRL_SIGNS = ("completions/mean_length", "frac_reward_zero_std")
"""Metrics that only TRL writes."""


@dataclass(frozen=True)
class RunLog:
    """The metrics of a finished run."""

    trainer: str
    """Who wrote them: `truegold`, `TRL` or `verl`."""
    path: Path
    """The file that was read."""
    lines: list[tuple[int, dict[str, float | None]]]
    """Steps with their metrics by the names that the guards know, in order."""


def read_log(path: Path) -> RunLog:
    """Read a run's metrics, and tell by their shape and names who wrote them. Raises InputError for all others."""
    file = _find_file(path)
    if file.name == ALARMS:
        return RunLog("truegold", file, [])
    text = file.read_text(encoding="utf-8")
    if file.name == "trainer_state.json" or '"log_history"' in text[:4096]:
        history = json.loads(text)["log_history"]
        return RunLog("TRL", file, _translate([(int(entry["step"]), entry) for entry in history], TRL_NAMES))
    entries = [json.loads(line) for line in text.splitlines() if line.strip()]
    if not all(isinstance(entry, dict) for entry in entries):
        raise InputError(f"{file} does not hold one JSON object a line.")
    flat = [{**entry.get("data", {}), **entry} if isinstance(entry.get("data"), dict) else entry for entry in entries]
    if any(name in entry for entry in flat for name in VERL_NAMES):
        steps = [
            (int(entry.get("step", entry.get("training/global_step", index))), entry)
            for index, entry in enumerate(flat)
        ]
        return RunLog("verl", file, _translate(steps, VERL_NAMES))
    if any(name in entry for entry in flat for name in TRL_SIGNS):
        return RunLog("TRL", file, _translate([(int(entry["step"]), entry) for entry in flat], TRL_NAMES))
    if not any("pass_rate" in entry or "heldout_pass_rate" in entry for entry in flat):
        raise InputError(f"{file} has no metrics of truegold, TRL or verl.", "Give a run's folder or its metrics file.")
    steps = [(int(entry["step"]), {name: value for name, value in entry.items() if name != "step"}) for entry in flat]
    return RunLog("truegold", file, _merge(steps))


def _find_file(path: Path) -> Path:
    """Return the newest file with metrics of a run: `path` itself, or one in that folder."""
    if path.is_file():
        return path
    choices = (
        # A run may have a finished training and a newer one that has not ended well.
        ("metrics.jsonl", "train/metrics.jsonl", ".partial/train-*/metrics.jsonl"),
        ("trainer_state.json", "checkpoint-*/trainer_state.json"),
        # A training that was stopped before its first step has nothing else.
        (ALARMS, f".partial/train-*/{ALARMS}"),
    )
    for patterns in choices:
        files = [file for pattern in patterns for file in path.glob(pattern)]
        if files:
            return max(files, key=lambda file: file.stat().st_mtime)
    raise InputError(f"{path} has no metrics of a training.", "Give a run's folder or its metrics file.")


def _translate(
    steps: Iterable[tuple[int, Mapping[str, Any]]], names: Mapping[str, str]
) -> list[tuple[int, dict[str, float | None]]]:
    """Return another trainer's metrics by the names that the guards know.

    The mean of verl's `val-core/` metrics is the held-out pass rate. The reward, scaled to 0 to 1 where it goes beyond
    that, stands for the pass rate.
    """
    translated = []
    for step, entry in steps:
        numbers = {name: float(value) for name, value in entry.items() if isinstance(value, int | float)}
        metrics: dict[str, float | None] = {names[name]: numbers[name] for name in names if name in numbers}
        validation = [value for name, value in numbers.items() if name.startswith("val-core/")]
        if validation:
            metrics["heldout_pass_rate"] = sum(validation) / len(validation)
        if "frac_reward_zero_std" in numbers:
            metrics["trained_completions"] = float(numbers["frac_reward_zero_std"] < 1.0)
        translated.append((step, metrics))
    merged = _merge(translated)
    rewards = [value for _, metrics in merged if (value := metrics.get("reward")) is not None and math.isfinite(value)]
    low, high = min([0.0, *rewards]), max([1.0, *rewards])
    for _, metrics in merged:
        reward = metrics.get("reward")
        if reward is not None:
            metrics["pass_rate"] = (reward - low) / (high - low)
    return merged


def _merge(steps: Iterable[tuple[int, Mapping[str, float | None]]]) -> list[tuple[int, dict[str, float | None]]]:
    """Put lines of the same step together, in order, and mark those with a loss or a gradient that is not finite."""
    merged: dict[int, dict[str, float | None]] = {}
    for step, metrics in steps:
        merged.setdefault(step, {}).update(metrics)
    for metrics in merged.values():
        watched = [metrics.get(name) for name in ("loss", "grad_norm")]
        if any(value is not None and not math.isfinite(value) for value in watched):
            metrics["not_finite"] = 1.0
    return sorted(merged.items())
