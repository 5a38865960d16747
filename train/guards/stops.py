"""What ended a training other than a guard of the table, as an alarm: the probe, the sampling engine, a verifier that
hangs, a locked operator, a process that was killed.

Such an error may come from any rank, or from none that is left to write. The process that waits for all of them has it
in the end, and leaves the record.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from truegold.pipeline.running.disk import read_whole_lines
from truegold.train.guards.logs import ALARMS
from truegold.verifiers import ConfigError, GuardError, InputError, SetupError, TruegoldError

NAMES: tuple[tuple[type[Exception], str], ...] = (
    (SetupError, "machine"),
    (ConfigError, "configuration"),
    (InputError, "data"),
)
"""What an alarm calls an error that has no name of its own."""


def record_stop(folder: Path, error: Exception) -> None:
    """Write what has ended the training in `folder` into its alarms, unless a guard of the table has done so."""
    guard = error.guard if isinstance(error, GuardError) else _name(error)
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
        "metric": None,
        "value": None,
        "baseline": None,
        "threshold": None,
        "since": step,
        "causes": message.removesuffix("."),
        "remedy": hint or "",
        "exit_code": exit_code,
    }
    # A training may fail before it has made its folder.
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ALARMS).open("a") as log:
        log.write(json.dumps(record) + "\n")


def _name(error: Exception) -> str:
    return next((name for kind, name in NAMES if isinstance(error, kind)), "crash")
