"""The diagnosis of a run from its log: what went wrong, at which step, and the likely cause.

    trl-run/trainer_state.json: TRL, steps 1 to 300, 4 faults
    what went wrong: Step 120: entropy_collapse: entropy is 0.02 ...
    what to do: ...

The log of a truegold training is replayed to the guards, and every log is searched for faults (`log_faults`). A
training may also end by an error, such as a full disk or a verifier that hangs. `record_stop` then writes the reason as
an alarm.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from truegold.pipeline.report.training import ENDINGS, find_shifts
from truegold.pipeline.running.disk import append_lines, read_whole_lines
from truegold.train.guards.log_faults import NEEDS_RATE, find_faults
from truegold.train.guards.move_faults import step_down
from truegold.train.guards.run_log import ALARMS, RunLog, read_log
from truegold.train.guards.table import SEVERITY
from truegold.train.guards.trends import FEWEST
from truegold.train.guards.watch import Alarm, GuardWatch
from truegold.verifiers import ConfigError, GuardError, InputError, SetupError, TruegoldError
from truegold.verifiers.sandbox.errors import Preempted

SHOWN_SHIFTS = 8
"""The largest number of moved metrics in a diagnosis."""
SHOWN_COLUMNS = 12
"""The largest number of unknown columns that a diagnosis names."""
ERROR_NAMES: tuple[tuple[type[Exception], str], ...] = (
    (Preempted, "preempted"),
    (SetupError, "machine"),
    (ConfigError, "configuration"),
    (InputError, "data"),
)
"""The name under which each kind of error is written as an alarm. Other errors have the name `crash`."""


def examine_log(path: Path) -> Iterator[str]:
    """Yield the lines of a diagnosis of the log at `path`. Raises InputError if it has no metrics."""
    log = read_log(path)
    is_ours = log.trainer == "truegold"
    alarms = replay(log) if is_ours else []
    guards = {alarm.guard for alarm in alarms}
    faults = [fault for fault in find_faults(log) if fault.name not in guards]
    first, last = (log.lines[0][0], log.lines[-1][0]) if log.lines else (0, 0)
    count, noun = (len(alarms), "alarm") if is_ours else (len(faults), "fault")
    yield f"{log.path}: {log.trainer}, steps {first} to {last}, {count} {noun}{'' if count == 1 else 's'}"
    yield from _reading(log)
    stop = recorded_stop(log.path.with_name(ALARMS)) if is_ours else None
    if stop is not None:
        yield f"what ended it: Step {stop['step']}: {stop['guard']}: {stop['causes']}."
        yield f"what to do: {stop['remedy']}"
    if alarms:
        worst = diagnose(alarms)
        yield f"what went wrong: {worst.line()}"
        yield f"what to do: {worst.remedy}"
        for guard, times in Counter(alarm.guard for alarm in alarms).items():
            if guard != worst.guard:
                first_alarm = next(alarm for alarm in alarms if alarm.guard == guard)
                yield f"  {first_alarm.line()} ({times} times)"
    for index, fault in enumerate(faults):
        yield f"{'then' if alarms or index else 'what went wrong'}: {fault.line()}"
        yield f"what to do: {fault.remedy}"
    if not alarms and not faults and stop is None:
        yield "no guard fires."
        if (note := step_down(log)) is not None:
            yield f"note: {note}"
    moved = find_shifts(log.lines)[:SHOWN_SHIFTS]
    if moved:
        yield "metrics that moved most, first steps -> last steps:"
    for shift in moved:
        yield f"  {shift.metric:<28} {shift.start:>10.4g} -> {shift.end:<10.4g} {shift.deviations:+.0f} deviations"


def _reading(log: RunLog) -> Iterator[str]:
    """Yield lines on the columns of a log that were read and that were not."""
    if log.trainer != "truegold":
        rate, accuracy = log.columns.get("pass_rate"), log.columns.get("accuracy")
        if rate is not None:
            yield f"pass rate: {rate}"
        elif accuracy is not None:
            yield f"no pass rate: {accuracy} has values outside of 0 to 1, so it is read as accuracy only"
        else:
            yield f"no pass rate: no term is called accuracy; faults not checked: {', '.join(NEEDS_RATE)}"
        if len(log.lines) < FEWEST:
            yield f"note: {len(log.lines)} steps; to tell a move from noise takes {FEWEST} steps, a small move more."
        if "heldout_pass_rate" in log.columns:
            yield f"held out: {log.columns['heldout_pass_rate']}"
    if log.unread:
        names = ", ".join(log.unread[:SHOWN_COLUMNS]) + (" ..." if len(log.unread) > SHOWN_COLUMNS else "")
        yield f"not read, {len(log.unread)} columns: {names}"
    if log.returns:
        returns = ", ".join(f"{left} to {back}" for left, back in log.returns[:SHOWN_SHIFTS])
        yield f"note: the log goes back from step {returns}; the later entries of a step are used."
    for note in log.notes:
        yield f"note: {note}."


def recorded_stop(path: Path) -> dict[str, Any] | None:
    """Return the alarm with which `record_stop` recorded the end of a run.

    Returns None if a guard ended the run, if it has not ended, or if it was resumed since.
    """
    alarms = read_whole_lines(path)
    if not alarms or alarms[-1]["action"] not in ENDINGS or alarms[-1]["metric"] is not None:
        return None
    return alarms[-1] if alarms[-1].get("resumed_at") is None else None


def replay(log: RunLog) -> list[Alarm]:
    """Return the alarms that the guards raise for a log, without taking any action."""
    stale = [int(age) for _, metrics in log.lines if (age := metrics.get("staleness_max")) is not None]
    watch = GuardWatch(settling=max(stale) + 1 if stale else 0)
    alarms = [alarm for step, metrics in log.lines for alarm in watch.observe(step, metrics)]
    untrained = watch.untrained(log.lines[-1][0] + 1) if log.lines and not alarms else None
    return alarms if untrained is None else [untrained]


def diagnose(alarms: list[Alarm]) -> Alarm:
    """Return the alarm that best explains a run: the first one with an action other than a warning, else the first."""
    serious = [alarm for alarm in alarms if SEVERITY[alarm.action] > SEVERITY["warn"]]
    return (serious or alarms)[0]


def unfinished_training(run_dir: Path) -> Path | None:
    """Return the folder of the newest training in a run that has not finished, or None if there is none."""
    folders = [path.parent for path in run_dir.glob(f".partial/train-*/{ALARMS}")]
    return max(folders, key=lambda folder: (folder / ALARMS).stat().st_mtime, default=None)


def record_stop(folder: Path, error: Exception) -> None:
    """Append the error that ended a training to the alarms in `folder`, unless a guard has done so.

    The process that waits for all ranks calls this, because a failed rank may not be able to write.
    """
    guard = next((name for kind, name in ERROR_NAMES if isinstance(error, kind)), "crash")
    if isinstance(error, GuardError):
        guard = error.guard
    alarms = read_whole_lines(folder / ALARMS)
    if alarms and alarms[-1]["guard"] == guard and alarms[-1]["metric"] is not None:
        return
    steps = [line["step"] for line in read_whole_lines(folder / "metrics.jsonl") if "pass_rate" in line]
    message, hint, exit_code = str(error), None, 1
    action = "pause" if isinstance(error, Preempted) else "stop"
    if isinstance(error, TruegoldError):
        message, hint, exit_code = error.message, error.hint, error.exit_code
    step = int(steps[-1]) + 1 if steps else 0
    record: dict[str, Any] = {
        "step": step,
        "guard": guard,
        "action": action,
        **dict.fromkeys(("metric", "value", "baseline", "threshold")),
        "since": step,
        "causes": message.removesuffix("."),
        "remedy": hint or "",
        "exit_code": exit_code,
    }
    # A training may fail before it has created its folder.
    folder.mkdir(parents=True, exist_ok=True)
    append_lines(folder / ALARMS, record)
