"""Says of a run what went wrong, when, and what probably caused it, by the guards that watch a running one.

    truegold   a run's folder, the folder of its stage, metrics.jsonl
    TRL        trainer_state.json or a folder with checkpoint-*/trainer_state.json: {"log_history": [{"step": 1, ...}]}
    verl       the JSON Lines of its file logger: {"step": 1, "data": {"actor/entropy": ...}}, or one flat object a line

Their metrics are read in the names that the guards know. Where something else than a guard has ended a training, such
as the probe, a verifier that hangs or a process that was killed, `record_stop` has written it down as an alarm.
"""

from __future__ import annotations

import json
import math
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from truegold.pipeline.report.training import ENDINGS, find_shifts
from truegold.pipeline.running.disk import read_whole_lines
from truegold.train.guards.table import SEVERITY
from truegold.train.guards.watch import Alarm, GuardWatch
from truegold.verifiers import ConfigError, GuardError, InputError, SetupError, TruegoldError

SHOWN_SHIFTS = 8


def examine_log(path: Path) -> Iterator[str]:
    """Yield the lines of a diagnosis. Raises InputError where `path` holds no metrics."""
    log = read_log(path)
    alarms = replay(log)
    first, last = (log.lines[0][0], log.lines[-1][0]) if log.lines else (0, 0)
    yield f"{log.path}: {log.trainer}, steps {first} to {last}, {len(alarms)} alarms"
    stop = recorded_stop(log.path.with_name(ALARMS))
    if stop is not None:
        yield f"what ended it: Step {stop['step']}: {stop['guard']}: {stop['causes']}."
        yield f"what to do: {stop['remedy']}"
    if alarms:
        worst = diagnose(alarms)
        yield f"what went wrong: {worst.line()}"
        yield f"what to do: {worst.remedy}"
        for guard, count in Counter(alarm.guard for alarm in alarms).items():
            if guard != worst.guard:
                first_alarm = next(alarm for alarm in alarms if alarm.guard == guard)
                yield f"  {first_alarm.line()} ({count} times)"
    elif stop is None:
        yield "no guard fires."
    moved = find_shifts(log.lines)[:SHOWN_SHIFTS]
    if moved:
        yield "what moved most, first steps -> last steps:"
    for shift in moved:
        yield f"  {shift.metric:<28} {shift.start:>10.4g} -> {shift.end:<10.4g} {shift.deviations:+.0f} deviations"


def recorded_stop(path: Path) -> dict[str, Any] | None:
    """Return the alarm that has ended a run without a guard of the table, by the run's own record; None where there is
    none, or where the run has gone on since."""
    alarms = read_whole_lines(path)
    if not alarms or alarms[-1]["action"] not in ENDINGS or alarms[-1]["metric"] is not None:
        return None
    return alarms[-1] if alarms[-1].get("resumed_at") is None else None


def replay(log: RunLog) -> list[Alarm]:
    """Return the alarms that a run would have raised, had it been watched; nobody has acted on them."""
    watch = GuardWatch()
    return [alarm for step, metrics in log.lines for alarm in watch.observe(step, metrics)]


def diagnose(alarms: list[Alarm]) -> Alarm:
    """Return the alarm that says what went wrong: the first that asks for more than a warning, else the first."""
    serious = [alarm for alarm in alarms if SEVERITY[alarm.action] > SEVERITY["warn"]]
    return (serious or alarms)[0]


ALARMS = "alarms.jsonl"
"""In the stage's folder: every alarm, with what was done."""

METRIC_NAMES: Mapping[str, Mapping[str, str]] = tomllib.loads(
    files("truegold.train.guards").joinpath("metric_names.toml").read_text("utf-8")
)
TRL_NAMES, VERL_NAMES = METRIC_NAMES["TRL"], METRIC_NAMES["VERL"]
"""Names of TRL's and verl's metrics, with ours; the mean of verl's `val-core/` metrics is the held-out pass rate."""


@dataclass(frozen=True)
class RunLog:
    """The metrics of a finished run."""

    trainer: str
    """Who wrote them."""
    path: Path
    """The file that was read."""
    lines: list[tuple[int, dict[str, float | None]]]
    """Steps with their metrics, in order."""


def read_log(path: Path) -> RunLog:
    """Read a run's metrics. Raises InputError where there are none that are understood."""
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
    if any(name in entry for entry in flat for name in ("completions/mean_length", "frac_reward_zero_std")):
        return RunLog("TRL", file, _translate([(int(entry["step"]), entry) for entry in flat], TRL_NAMES))
    if not any("pass_rate" in entry or "heldout_pass_rate" in entry for entry in flat):
        raise InputError(f"{file} has no metrics of truegold, TRL or verl.", "Give a run's folder or its metrics file.")
    steps = [(int(entry["step"]), {name: value for name, value in entry.items() if name != "step"}) for entry in flat]
    return RunLog("truegold", file, _merge(steps))


def unfinished_training(run_dir: Path) -> Path | None:
    """Return the folder of a run's training that has not ended well, the newest one; None where there is none."""
    folders = [path.parent for path in run_dir.glob(f".partial/train-*/{ALARMS}")]
    return max(folders, key=lambda folder: (folder / ALARMS).stat().st_mtime, default=None)


def _find_file(path: Path) -> Path:
    """Return the file that holds the metrics of what `path` names."""
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
    """Return metrics by our names; rewards that are not within 0 and 1 are scaled to that range."""
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


NAMES: tuple[tuple[type[Exception], str], ...] = (
    (SetupError, "machine"),
    (ConfigError, "configuration"),
    (InputError, "data"),
)
"""What an alarm calls an error that has no name of its own."""


def record_stop(folder: Path, error: Exception) -> None:
    """Write what has ended the training in `folder` into its alarms, unless a guard of the table has done so.

    Such an error may come from any rank, or from none that is left to write. The process that waits for all of them has
    it in the end, and leaves the record.
    """
    guard = next((name for kind, name in NAMES if isinstance(error, kind)), "crash")
    if isinstance(error, GuardError):
        guard = error.guard
    alarms = read_whole_lines(folder / ALARMS)
    if alarms and alarms[-1]["guard"] == guard and alarms[-1]["metric"] is not None:
        return
    steps = [line["step"] for line in read_whole_lines(folder / "metrics.jsonl") if "pass_rate" in line]
    message, hint, exit_code = str(error), None, 1
    if isinstance(error, TruegoldError):
        message, hint, exit_code = error.message, error.hint, error.exit_code
    step = int(steps[-1]) + 1 if steps else 0
    record: dict[str, Any] = {
        "step": step,
        "guard": guard,
        "action": "stop",
        **dict.fromkeys(("metric", "value", "baseline", "threshold")),
        "since": step,
        "causes": message.removesuffix("."),
        "remedy": hint or "",
        "exit_code": exit_code,
    }
    # A training may fail before it has made its folder.
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ALARMS).open("a") as log:
        log.write(json.dumps(record) + "\n")
