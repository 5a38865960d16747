"""The trackers themselves, offline: metrics and tables of a run that was killed and goes on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from truegold.train.model import distributed
from truegold.train.model.training_log import RUN_IDS, MetricsLog

pytestmark = pytest.mark.filterwarnings("default")

COLUMNS = ["prompt", "score"]
ROWS = [["What is 3 + 4?", 1.0], ["What is 3 - 4?", None]]


def train_twice(folder: Path, tracker: str) -> str:
    """Log three steps and go on from the second; return the run's id."""
    for first, last in ((0, 3), (2, 4)):
        with MetricsLog(folder, first, [tracker]) as log:  # type: ignore[list-item]
            for step in range(first, last):
                log.write(step, {"pass_rate": step / 10, "pass_rate/math, easy": 0.5})
                log.write_table(step, "completions", COLUMNS, ROWS)
    return str(json.loads((folder / RUN_IDS).read_text())[tracker])


@pytest.fixture(autouse=True)
def first_rank(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(distributed, "rank", lambda: 0)
    monkeypatch.setenv("TRACKIO_DIR", str(tmp_path / "trackio"))
    monkeypatch.chdir(tmp_path)


def test_wandb_has_the_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_MODE", "offline")
    train_twice(tmp_path, "wandb")
    tables = sorted(tmp_path.glob("wandb/offline-run-*/files/media/table/completions_*.table.json"))
    assert len(tables) >= 2
    assert json.loads(tables[0].read_text()) == {"columns": COLUMNS, "data": ROWS}


def test_mlflow_has_each_start_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path}/mlflow.db")
    run_id = train_twice(tmp_path, "mlflow")
    client = mlflow.MlflowClient()
    run = client.get_run(run_id)
    assert run.data.metrics == {"pass_rate": 0.3, "pass_rate/math_ easy": 0.5}
    assert run.info.status == "FINISHED"
    paths = [
        file.path
        for start in client.list_artifacts(run_id, "completions")
        for file in client.list_artifacts(run_id, start.path)
    ]
    steps = [("start-0", 0), ("start-0", 1), ("start-0", 2), ("start-1", 2), ("start-1", 3)]
    assert paths == [f"completions/{start}/step-{step:06d}.json" for start, step in steps]
    assert mlflow.load_table(paths[-1], run_ids=[run_id])[COLUMNS[0]].tolist() == [row[0] for row in ROWS]


def test_trackio_has_the_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("trackio")
    from trackio.sqlite_storage import SQLiteStorage

    run_id = train_twice(tmp_path, "trackio")
    logged = [line for line in SQLiteStorage.get_logs("truegold", run_id) if "completions" in line]
    assert [line["step"] for line in logged] == [0, 1, 2, 2, 3]
    assert logged[0]["completions"]["_value"][0] == dict(zip(COLUMNS, ROWS[0], strict=True))


def test_an_error_ends_the_run_as_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path}/mlflow.db")
    with pytest.raises(ValueError, match="stop"), MetricsLog(tmp_path, 0, ["mlflow"]):
        raise ValueError("stop")
    assert mlflow.MlflowClient().get_run(json.loads((tmp_path / RUN_IDS).read_text())["mlflow"]).info.status == "FAILED"
