"""The log of a training, written by rank 0: the metrics of each step, and the settings.

    metrics.jsonl    {"step": 0, "pass_rate": 0.31, ...}      also written to TensorBoard and the trackers
    settings.jsonl   {"step": 0, "settings": {"optimizer.lr": 1e-4, "steps": 200, ...}}
                     {"step": 40, "settings": {"optimizer.lr": 2e-5, ...}}      from step 40 on, after a restart

When a run is resumed, lines of steps after its checkpoint are removed from both files. `settings.jsonl` has a line for
the first start, and for each restart with changed settings (`TUNABLE_GRPO` lists the settings that may change).

Metrics and completions also go to trackers: wandb, trackio and MLflow.

    tracker = start_tracker("mlflow", folder)
    tracker.log({"pass_rate": 0.31}, step=0)
    tracker.log_table(COMPLETIONS, ["prompt", "score"], [["What is 3 + 4?", 1.0]], step=0)
    tracker.finish(failed=False)

Project, server and account are set by each tracker's environment variables (`WANDB_PROJECT`, `WANDB_MODE`,
`TRACKIO_SPACE_ID`, `MLFLOW_TRACKING_URI`, `MLFLOW_EXPERIMENT_NAME`, ...).
"""

from __future__ import annotations

import importlib
import json
import os
import re
import shutil
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import pairwise
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

from pydantic import BaseModel

from truegold.pipeline.running.disk import read_whole_lines, write_whole
from truegold.train.config.models import Tracker
from truegold.verifiers import SetupError

RUN_IDS = "trackers.json"
"""The file with the ids of this run in the trackers. With them, a resumed run continues there."""
PROJECT = "truegold"
"""The default project of all runs in the trackers."""
_REFUSED_BY_MLFLOW = re.compile(r"[^\w\-. :/]", re.ASCII)
"""A character that MLflow does not allow in the name of a metric."""

Table = Sequence[Sequence[object]]
"""The rows of a table, each with one value per column."""


class TrackedRun(Protocol):
    """A run in one tracker."""

    def log(self, metrics: Mapping[str, float], step: int) -> None:
        """Send one step's metrics."""

    def log_table(self, name: str, columns: Sequence[str], rows: Table, step: int) -> None:
        """Send one step's table."""

    def finish(self, failed: bool) -> None:
        """End the run. failed: whether an error has ended the training."""


class BoardRun:
    """A run in wandb or trackio, which have the same interface."""

    def __init__(self, tracker: Any, run: Any) -> None:
        self._tracker = tracker
        self._run = run

    def log(self, metrics: Mapping[str, float], step: int) -> None:
        """Send one step's metrics."""
        self._run.log(dict(metrics), step=step)

    def log_table(self, name: str, columns: Sequence[str], rows: Table, step: int) -> None:
        """Send one step's table."""
        table = self._tracker.Table(columns=list(columns), data=[list(row) for row in rows])
        self._run.log({name: table}, step=step)

    def finish(self, failed: bool) -> None:
        """End the run. In wandb, a failed run is marked as failed."""
        if failed and self._tracker.__name__ == "wandb":
            self._run.finish(exit_code=1)
        else:
            self._run.finish()


class MlflowRun:
    """A run in MLflow. Tables are artifacts: `completions/start-0/step-000012.json`.

    Each start of the training has its own folder, because MLflow appends to an existing table.
    """

    def __init__(self, mlflow: Any, run_id: str) -> None:
        self._mlflow = mlflow
        self._run_id = run_id
        self._starts: dict[str, int] = {}

    def log(self, metrics: Mapping[str, float], step: int) -> None:
        """Send one step's metrics. Characters that MLflow does not allow in a name are replaced by `_`."""
        named = {_REFUSED_BY_MLFLOW.sub("_", name): value for name, value in metrics.items()}
        self._mlflow.log_metrics(named, step=step, run_id=self._run_id)

    def log_table(self, name: str, columns: Sequence[str], rows: Table, step: int) -> None:
        """Send one step's table."""
        if name not in self._starts:
            self._starts[name] = len(self._mlflow.MlflowClient().list_artifacts(self._run_id, name))
        file = f"{name}/start-{self._starts[name]}/step-{step:06d}.json"
        data = {column: [row[index] for row in rows] for index, column in enumerate(columns)}
        self._mlflow.log_table(data, file, run_id=self._run_id)

    def finish(self, failed: bool) -> None:
        """End the run, with the status FAILED or FINISHED."""
        self._mlflow.end_run("FAILED" if failed else "FINISHED")


def start_tracker(name: Tracker, folder: Path) -> TrackedRun:
    """Return the tracker's run of the training in `folder`: a new run, or the run of an interrupted training.

    Raises SetupError if the tracker is not installed.
    """
    try:
        tracker = importlib.import_module(name)
        if name == "mlflow":
            importlib.import_module("pandas")
    except ImportError as error:
        more = " pandas" if name == "mlflow" else ""
        raise SetupError(f"The tracker {name} cannot be imported ({error}).", f"pip install {name}{more}") from error
    path = folder / RUN_IDS
    ids: dict[str, str] = json.loads(path.read_text()) if path.exists() else {}
    run: TrackedRun
    if name == "mlflow":
        tracker.set_experiment(os.environ.get("MLFLOW_EXPERIMENT_NAME", PROJECT))
        ids[name] = tracker.start_run(run_id=ids.get(name)).info.run_id
        run = MlflowRun(tracker, ids[name])
    else:
        run_id = ids.setdefault(name, uuid.uuid4().hex[:12])
        if name == "wandb":
            run = BoardRun(tracker, tracker.init(id=run_id, resume="allow", dir=str(folder)))
        else:
            run = BoardRun(tracker, tracker.init(project=PROJECT, name=run_id, resume="allow"))
    write_whole(path, json.dumps(ids).encode())
    return run


class MetricsLog:
    """Writes `metrics.jsonl` and `tensorboard/` in `folder`, and to trackers. On ranks other than 0 it does nothing.

    Lines of step `resume_at` and later steps are removed. Raises SetupError if a tracker is not installed.
    """

    def __init__(self, folder: Path, resume_at: int, trackers: Sequence[Tracker] = ()) -> None:
        self._sinks: list[TrackedRun] = []
        self._file = None
        # Planning a run imports this module without torch.
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
        # If the disk is full, lines stay in the buffer. A later flush writes them.
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
