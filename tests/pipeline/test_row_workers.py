"""Rows worked on in processes: the same results in the same order, and nothing left behind."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from row_functions import dies, fails_at, squares

from truegold.pipeline.clean.stage import clean
from truegold.pipeline.config.stages import CleanConfig, FlagConfig
from truegold.pipeline.flag.stage import flag
from truegold.pipeline.running import row_workers as module
from truegold.pipeline.running.progress import NullProgress
from truegold.pipeline.running.row_workers import map_rows
from truegold.pipeline.tables.rows import Row, read_rows, row_id, write_rows
from truegold.verifiers import ConfigError, SetupError


@pytest.fixture(autouse=True)
def few_rows_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FEWEST", 0)
    monkeypatch.setattr(module, "CHUNK", 7)


def numbered(count: int) -> list[Row]:
    return [{"index": index} for index in range(count)]


def test_results_come_in_the_order_of_the_rows_from_other_processes() -> None:
    rows = numbered(100)
    outputs = list(map_rows(iter(rows), len(rows), squares, workers=2))
    assert [(row, square) for row, (square, _) in outputs] == [(row, row["index"] ** 2) for row in rows]
    assert os.getpid() not in {pid for _, (_, pid) in outputs}


def test_with_one_worker_the_work_is_done_here() -> None:
    assert {pid for _, (_, pid) in map_rows(numbered(20), 20, squares, workers=1)} == {os.getpid()}


def test_few_rows_start_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FEWEST", 21)
    assert {pid for _, (_, pid) in map_rows(numbered(20), 20, squares, workers=2)} == {os.getpid()}


def test_what_the_work_raises_is_raised_here() -> None:
    with pytest.raises(LookupError, match="no 40"):
        list(map_rows(numbered(100), 100, partial(fails_at, 40), workers=2))


def test_a_killed_worker_is_an_error_that_says_what_to_do() -> None:
    with pytest.raises(SetupError, match="lower"):
        list(map_rows(numbered(100), 100, dies, workers=2))
    assert len(list(map_rows(numbered(100), 100, squares, workers=2))) == 100


def test_workers_are_gone_when_the_work_is_done() -> None:
    pids = {pid for _, (_, pid) in map_rows(numbered(100), 100, squares, workers=2)}
    assert all(gone(pid) for pid in pids)


SLOW_WORK = """
import os, time

def make():
    def work(row):
        print(os.getpid(), flush=True)
        time.sleep(60)
    return work
"""
SCRIPT = """
from slow_work import make
from truegold.pipeline.running import row_workers

if __name__ == "__main__":
    row_workers.FEWEST, row_workers.CHUNK = 0, 5
    list(row_workers.map_rows([{}] * 10, 10, make, workers=2))
"""


def test_a_killed_parent_leaves_no_workers(tmp_path: Path) -> None:
    (tmp_path / "slow_work.py").write_text(SLOW_WORK)
    (tmp_path / "script.py").write_text(SCRIPT)
    with subprocess.Popen([sys.executable, tmp_path / "script.py"], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pids = [int(parent.stdout.readline()) for _ in range(2)]
        parent.kill()
    assert all(gone(pid) for pid in pids)


def gone(pid: int) -> bool:
    """Whether the process ends within 20 seconds."""
    for _ in range(200):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except FileNotFoundError:
            return True
        if state == "Z":
            return True
        time.sleep(0.1)
    return False


def problem(apples: int) -> Row:
    prompt = f"  Tom has {apples} apples &amp; buys 9.  How many apples has he now?"
    return {
        "id": row_id(prompt, str(apples + 9)),
        "prompt": prompt if apples % 5 else "Prove it: see the figure below.",
        "gold": str(apples + 9),
        "domain": "math",
        "verifier": "math",
        "verifier_args": "{}",
        "solution": None,
        "source": "made.jsonl",
        "source_row": apples,
        "split": "train",
        "meta": "{}",
    }


@pytest.mark.parametrize(("stage", "config"), [(clean, CleanConfig), (flag, FlagConfig)])
def test_stages_write_the_same_files_with_one_worker_and_with_two(
    stage: Callable[..., object], config: type[CleanConfig | FlagConfig], tmp_path: Path
) -> None:
    write_rows(tmp_path / "in.parquet", [problem(apples) for apples in range(60)])
    for workers in (1, 2):
        (tmp_path / str(workers)).mkdir()
        stage({"rows": tmp_path / "in.parquet"}, config(workers=workers), tmp_path / str(workers), NullProgress())
    files = sorted(file.name for file in (tmp_path / "1").iterdir())
    assert "ledger.parquet" in files
    for file in files:
        assert (tmp_path / "1" / file).read_bytes() == (tmp_path / "2" / file).read_bytes(), file


DETECTOR = """
from truegold.pipeline.flag.rules import Finding, detector

@detector("shouting", version="1")
def shouting(row):
    if row["source_row"] == 50:
        raise ValueError("fifty")
    return [Finding("shouting", 1.0, {})] if row["source_row"] == 7 else []
"""


def test_detectors_are_loaded_by_a_path_relative_to_this_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_rows(tmp_path / "in.parquet", [problem(apples) for apples in range(60)])
    (tmp_path / "checks.py").write_text(DETECTOR)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "out").mkdir()
    report = flag(
        {"rows": Path("in.parquet")},
        FlagConfig(detectors=("checks.py:shouting",), workers=2),
        tmp_path / "out",
        NullProgress(),
    )
    assert [flagged["source_row"] for flagged in read_rows(tmp_path / "out" / "flags.parquet")] == [7]
    assert report.counts["error:shouting"] == 1


def test_a_detector_that_cannot_be_loaded_is_told_before_anything_starts(tmp_path: Path) -> None:
    write_rows(tmp_path / "in.parquet", [problem(apples) for apples in range(60)])
    with pytest.raises(ConfigError, match="nothing_like_it"):
        flag(
            {"rows": tmp_path / "in.parquet"},
            FlagConfig(detectors=("nothing_like_it",), workers=2),
            tmp_path,
            NullProgress(),
        )
