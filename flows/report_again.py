"""The report on a run as it stands, from the stages its manifest names."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from truegold.flows.console import Terminal
from truegold.flows.execute import stage_caller
from truegold.flows.plan import GROUP_SIZE, report_stage
from truegold.pipeline.running.disk import full_disk_reported
from truegold.pipeline.running.stage import StageResult, load_record
from truegold.verifiers import InputError


def report_again(run_dir: Path, terminal: Terminal) -> StageResult:
    """Run the report stage over the finished stages. Raises InputError where `run_dir` is no run."""
    manifest = run_dir / "manifest.json"
    if not manifest.exists():
        raise InputError(f"{run_dir} is not the directory of a run: it has no manifest.json.")
    names = [entry["name"] for entry in json.loads(manifest.read_text())["stages"] if entry["name"] != "report"]
    finished = [name for name in names if load_record(run_dir / name) is not None]
    shutil.rmtree(run_dir / "report", ignore_errors=True)  # asked for by name, so made anew
    with full_disk_reported(run_dir):
        return stage_caller(run_dir, terminal)(report_stage(run_dir.name, finished, _group_size(run_dir)))


def _group_size(run_dir: Path) -> int:
    """The group size that the run's configuration has for training, or else would have."""
    resolved = run_dir / "config.resolved.json"
    train = json.loads(resolved.read_text()).get("train") if resolved.exists() else None
    return int((train or {}).get("group_size", GROUP_SIZE))
