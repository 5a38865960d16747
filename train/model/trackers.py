"""Output of a training's metrics and completions to trackers: wandb, trackio and MLflow.

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
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from truegold.pipeline.running.disk import write_whole
from truegold.train.config.models import Tracker
from truegold.verifiers import SetupError

RUN_IDS = "trackers.json"
"""The file with the ids of this run in the trackers, so that a resumed run continues there."""
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
