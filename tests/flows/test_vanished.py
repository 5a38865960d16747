"""Runs that lose their rows: exit code 3 and a report, a red line where much is lost, bounds on the command line."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest
from command_line import run_command

from truegold.flows.config import validate_config
from truegold.pipeline.running.stage_table import Phase
from truegold.verifiers import InputError

PROBLEMS = [
    {"question": f"Ann has {a} pens and buys {a + 3} more. How many has she?", "answer": str(2 * a + 3)}
    for a in range(2, 22)
]
UNREADABLE = [{**problem, "answer": "see picture"} for problem in PROBLEMS[:8]]


def project(folder: Path, *rows: dict[str, str | None]) -> Path:
    (folder / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "run.yaml").write_text("name: small\ndata: {path: train.jsonl}\n")
    return folder


@pytest.mark.parametrize("command", ["curate", "run"])
def test_a_run_without_rows_ends_with_3_and_leaves_its_report(tmp_path: Path, command: str) -> None:
    project(tmp_path, *PROBLEMS)
    arguments = (command, "run.yaml", "--engine", "local", "--set", "data.verifier=choice")
    for _ in range(2):
        done = run_command(*arguments, cwd=tmp_path)
        assert done.returncode == 3
        assert "error: No row is left of 20. 20 of 20 rows (100 %) are held back: gold_unparsed." in done.stderr
        assert "Every gold is a number: is `math` meant? --set data.verifier=math" in done.stderr
    run_dir = tmp_path / "runs" / "small"
    page, summary = run_dir / "report" / "index.html", json.loads((run_dir / "report" / "summary.json").read_text())
    assert "Every gold is a number: is `math` meant?" in page.read_text()
    (loss,) = summary["losses"]
    assert (loss["kind"], loss["reason"], loss["rows"], loss["rows_in"]) == ("held back", "gold_unparsed", 20, 20)
    assert not (run_dir / "export").exists()


def test_a_red_line_ends_a_run_that_loses_much(tmp_path: Path) -> None:
    project(tmp_path, *PROBLEMS[8:], *UNREADABLE)
    for _ in range(2):  # The second time all stages come from the cache.
        done = run_command("curate", "run.yaml", "--engine", "local", cwd=tmp_path)
        assert done.returncode == 0
        red = "8 of 20 rows (40 %) are held back: gold_unmatchable. The first is train.jsonl:13, gold"
        assert red in done.stderr and "`truegold review` shows them" in done.stderr
    assert run_command("curate", "run.yaml", "--engine", "local", "--max-held", "0.4", cwd=tmp_path).returncode == 0
    failed = run_command("curate", "run.yaml", "--engine", "local", "--max-held", "0.3", cwd=tmp_path)
    assert failed.returncode == 3
    assert "error: 8 of 20 rows (40 %) are held back, above max_held = 0.3: 8 held_for_review." in failed.stderr


def test_too_many_rejects_end_a_run_and_leave_a_report(tmp_path: Path) -> None:
    project(tmp_path, *PROBLEMS[8:], *({"question": row["question"], "answer": None} for row in PROBLEMS[:8]))
    failed = run_command("curate", "run.yaml", "--engine", "local", "--max-rejected", "0.2", cwd=tmp_path)
    assert failed.returncode == 3
    assert "8 of 20 rows (40 %) are rejected, above max_rejected = 0.2: 8 missing_gold." in failed.stderr
    summary = json.loads((tmp_path / "runs" / "small" / "report" / "summary.json").read_text())
    assert summary["losses"][0]["reason"] == "missing_gold" and summary["headline"]["rows_left"] == 12
    page = run_command("report", "runs/small", cwd=tmp_path)
    assert page.returncode == 0, page.stderr


def test_the_setting_is_the_option(tmp_path: Path) -> None:
    project(tmp_path, *PROBLEMS[8:], *UNREADABLE)
    (tmp_path / "run.yaml").write_text("name: small\nmax_held: 0.3\ndata: {path: train.jsonl}\n")
    assert run_command("curate", "run.yaml", "--engine", "local", cwd=tmp_path).returncode == 3
    assert run_command("curate", "run.yaml", "--engine", "local", "--max-held", "1", cwd=tmp_path).returncode == 0
    wrong = run_command("curate", "run.yaml", "--engine", "local", "--set", "max_held=40", cwd=tmp_path)
    assert wrong.returncode == 2 and "max_held" in wrong.stderr


def test_a_healthy_run_says_nothing(tmp_path: Path) -> None:
    done = run_command("curate", "run.yaml", "--engine", "local", cwd=project(tmp_path, *PROBLEMS))
    assert done.returncode == 0
    assert " are held back" not in done.stderr and " are rejected" not in done.stderr
    assert json.loads((tmp_path / "runs" / "small" / "report" / "summary.json").read_text())["losses"] == []


@pytest.mark.filterwarnings("default")
def test_a_flow_ends_in_the_same_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from truegold.flows import prefect_flows

    logging.getLogger("prefect").setLevel(logging.CRITICAL)
    data = {"path": str(project(tmp_path, *PROBLEMS) / "train.jsonl"), "verifier": "choice"}
    config = validate_config({"name": "small", "runs_dir": str(tmp_path / "runs"), "data": data}, "test")
    # The stages are called as they are: a task of Prefect's needs a server.
    monkeypatch.setattr(prefect_flows, "stage_task", prefect_flows.stage_task.fn)
    with pytest.raises(InputError, match=r"No row is left of 20\. .*\n.*is `math` meant\?"):
        prefect_flows._flow(config, Phase.CURATE)
    assert (tmp_path / "runs" / "small" / "report" / "index.html").exists()


def test_an_export_ends_where_too_much_is_rejected(tmp_path: Path) -> None:
    project(tmp_path, *PROBLEMS[8:], *({"question": row["question"], "answer": None} for row in PROBLEMS[:8]))
    arguments = ("export", "train.jsonl", "--format", "trl", "--out", "out")
    done = run_command(*arguments, cwd=tmp_path)
    assert done.returncode == 0
    assert "8 of 20 records (40 %) are rejected: missing_gold. The first is train.jsonl:13" in done.stderr
    failed = run_command(*arguments, "--max-rejected", "0.3", cwd=tmp_path)
    assert failed.returncode == 3
    assert "8 of 20 rows (40 %) are rejected, above max_rejected = 0.3: 8 missing_gold." in failed.stderr


def test_a_gate_has_a_bound_for_rejects_and_says_the_cause(tmp_path: Path) -> None:
    rows = [{"question": row["question"], "answer": None, "result": row["answer"]} for row in PROBLEMS[:8]]
    project(tmp_path, *PROBLEMS[8:], *rows)
    failed = run_command("gate", "train.jsonl", "--fail-on", "unusable", "--max", "unusable=0.3", cwd=tmp_path)
    assert failed.returncode == 8
    assert "The golds of these rows stand in column 'result'." in failed.stderr
    passed = run_command("gate", "train.jsonl", "--fail-on", "unusable", "--max", "unusable=0.4", cwd=tmp_path)
    assert passed.returncode == 0
