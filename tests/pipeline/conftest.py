"""A real curation of a few problems, for the tests of what is made of whole runs."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

sys.path.insert(0, str(Path(__file__).parent))  # `fake_run` and its like, which several files here share

import fake_run as fake
from report_pages import run_report

from truegold.flows.config import validate_config
from truegold.flows.console import Terminal
from truegold.flows.execute import execute, stage_caller, write_manifest
from truegold.flows.plan import plan


def _curate(
    folder: Path, problems: Iterable[tuple[str, str]], until: str = "curate", file: str = "train.jsonl", **sections: Any
) -> Path:
    data = folder / file
    entries = [json.dumps({"question": prompt, "answer": gold}) + "\n" for prompt, gold in problems]
    data.write_text("".join(entries), encoding="utf-8")
    source = {
        "path": str(data),
        "columns": {"prompt": "question", "gold": "answer"},
        "heldout": 0.3,
        "verifier": "math",
    }
    values = {"name": "small", "runs_dir": str(folder / "runs"), **sections}
    config = validate_config({**values, "data": source | sections.get("data", {})}, "test")
    run_dir = config.run_dir
    run_dir.mkdir(parents=True, exist_ok=True)
    with Terminal(Console(quiet=True)).stage("test") as terminal:
        results = execute(plan(config, until), run_dir, stage_caller(run_dir, terminal))
    write_manifest(run_dir, results)
    return run_dir


@pytest.fixture(scope="session")
def curate() -> Callable[..., Path]:
    """A function from a folder, problems (prompt, gold) and sections of the configuration to the run's folder."""
    return _curate


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, dict[str, Any]]:
    """The report of the small run with all its stages: the run's folder, the page, the numbers."""
    folder = tmp_path_factory.mktemp("full") / "fake"
    fake.FakeRun(folder).build(fake.FULL)
    stage_report, html, numbers = run_report(folder, fake.FULL)
    assert (stage_report.rows_in, stage_report.rows_out) == (16, 4)
    return folder, html, numbers
