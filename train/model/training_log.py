"""The log of a training, written by rank 0: the metrics of each step, and the settings.

    metrics.jsonl    {"step": 0, "pass_rate": 0.31, ...}      also written to TensorBoard and the trackers
    settings.jsonl   {"step": 0, "settings": {"optimizer.lr": 1e-4, "steps": 200, ...}}
                     {"step": 40, "settings": {"optimizer.lr": 2e-5, ...}}      from step 40 on, after a restart

When a run is resumed, lines of steps after its checkpoint are removed from both files. `settings.jsonl` has a line for
the first start, and for each restart with changed settings (`TUNABLE_GRPO` lists the settings that may change).
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import pairwise
from pathlib import Path
from types import TracebackType
from typing import Any

from pydantic import BaseModel

from truegold.pipeline.running.disk import read_whole_lines, write_whole
from truegold.train.config.models import Tracker
from truegold.train.model.trackers import Table, TrackedRun, start_tracker


class MetricsLog:
    """Writes `metrics.jsonl` and `tensorboard/` in `folder`, and to trackers. On ranks other than 0 it does nothing.

    Lines of step `resume_at` and later steps are removed. Raises SetupError if a tracker is not installed.
    """

    def __init__(self, folder: Path, resume_at: int, trackers: Sequence[Tracker] = ()) -> None:
        self._sinks: list[TrackedRun] = []
        self._file = None
        # Imported here because planning a run imports this module without torch.
        from truegold.train.model.distributed import rank

        if rank() != 0:
            return
        self._sinks = [start_tracker(name, folder) for name in trackers]
        from torch.utils.tensorboard import SummaryWriter

        path = folder / "metrics.jsonl"
        kept = [line for line in read_whole_lines(path) if line["step"] < resume_at]
        write_whole(path, "".join(json.dumps(line) + "\n" for line in kept).encode())
        self._folder = folder
        self._file = path.open("a")
        board = folder / "tensorboard"
        if resume_at == 0:
            shutil.rmtree(board, ignore_errors=True)
        self._board = SummaryWriter(str(board), purge_step=resume_at)

    def write(self, step: int, metrics: Mapping[str, float | None]) -> None:
        """Write one step's metrics. A value is None if the metric is not defined for this step."""
        if self._file is None:
            return
        from truegold.train.model.ending import write_anyway

        self._file.write(json.dumps({"step": step, **metrics}) + "\n")
        # With a full disk, lines stay in the buffer and are written by a later flush.
        write_anyway(self._folder, self._file.flush)
        known = {name: value for name, value in metrics.items() if value is not None}
        for name, value in known.items():
            self._board.add_scalar(name, value, step)
        for sink in self._sinks:
            write_anyway(self._folder, partial(sink.log, known, step))

    def write_table(self, step: int, name: str, columns: Sequence[str], rows: Table) -> None:
        """Send one step's table to the trackers. TensorBoard has no tables."""
        for sink in self._sinks:
            sink.log_table(name, columns, rows, step)

    def __enter__(self) -> MetricsLog:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if self._file is not None:
            with suppress(OSError):  # A full disk was already reported at the end of a step.
                self._file.close()
                self._board.close()
        for sink in self._sinks:
            sink.finish(failed=error is not None)


SETTINGS_FILE = "settings.jsonl"
"""The file with the settings of each start."""


def record_settings(
    folder: Path, step: int, config: BaseModel, tunable: Sequence[str], *, is_first_rank: bool = True
) -> list[str]:
    """Record the tunable settings of a training that starts or resumes at `step`, and return a line for each change.

    Lines of this step and later steps are removed, because these steps are taken again. Ranks other than 0 do nothing.
    """
    if not is_first_rank:
        return []
    path = folder / SETTINGS_FILE
    settings = {name: value for name in tunable for value in _values(config.model_dump(mode="json"), name)}
    lines = [line for line in read_whole_lines(path) if line["step"] < step]
    before = lines[-1]["settings"] if lines else settings
    changed = describe_changes(before, settings)
    if changed or not lines:
        lines.append({"step": step, "settings": settings})
    write_whole(path, "".join(json.dumps(line) + "\n" for line in lines).encode())
    return changed


def changes_of(folder: Path) -> list[dict[str, Any]]:
    """Return all changes of settings in a training as {"step", "changed"}, for the record of its stage."""
    lines = read_whole_lines(folder / SETTINGS_FILE)
    return [
        {"step": line["step"], "changed": describe_changes(earlier["settings"], line["settings"])}
        for earlier, line in pairwise(lines)
    ]


def describe_changes(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """Return a line for each changed setting: `optimizer.lr: 0.0001 -> 2e-05`. Sections are compared recursively."""
    changed = []
    for name in sorted({*before, *after}):
        old, new = before.get(name), after.get(name)
        if isinstance(old, dict) and isinstance(new, dict):
            changed += [f"{name}.{line}" for line in describe_changes(old, new)]
        elif old != new:
            changed.append(f"{name}: {json.dumps(old)} -> {json.dumps(new)}")
    return changed


def _values(settings: Any, name: str) -> list[Any]:
    """Return a list with the value of a dotted name, or an empty list if there is no such setting."""
    for part in name.split("."):
        if not isinstance(settings, dict) or part not in settings:
            return []
        settings = settings[part]
    return [settings]
