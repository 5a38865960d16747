"""`truegold testcases vet`: a table on the terminal, tables and a page in a folder; curation vets code rows too."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from command_line import run_command

from truegold.flows.config import validate_config
from truegold.flows.plan import plan
from truegold.verifiers.sandbox import Tier, possible_tiers

PROBLEMS: list[dict[str, Any]] = [
    {
        "task_id": "T/0",
        "prompt": "def add(a, b):\n    '''The sum.'''\n",
        "canonical_solution": "    return a + b\n",
        "test": "def check(candidate):\n    assert candidate(1, 2) == 3\n    assert candidate(5, -5) == 0\n",
        "entry_point": "add",
    },
    {
        "task_id": "T/1",
        "prompt": "def same(x):\n    '''The same.'''\n",
        "canonical_solution": "    return x\n",
        "test": "def check(candidate):\n    assert candidate(1) == 1\n    assert candidate(2) == 2\n",
        "entry_point": "same",
    },
]


@pytest.fixture(autouse=True, scope="module")
def _sandbox() -> None:
    if (why := possible_tiers()[Tier.FULL]) is not None:
        pytest.skip(f"this machine does not give the tier full: {why}")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "code.jsonl").write_text("".join(json.dumps(problem) + "\n" for problem in PROBLEMS))
    (tmp_path / "math.jsonl").write_text('{"question": "1+1?", "answer": "#### 2"}\n')
    return tmp_path


def test_a_file_is_vetted_and_a_second_run_does_nothing_again(project: Path) -> None:
    arguments = ("testcases", "vet", "code.jsonl", "--out", "vetted", "--runs", 1, "--mutants", 4)
    done = run_command(*arguments, cwd=project)
    assert done.returncode == 0, done.stderr
    assert "2 suites: 1 keep, 1 drop" in done.stdout
    assert "returns its first argument" in done.stdout
    out = project / "vetted"
    assert pl.read_parquet(out / "rows.parquet")["source_row"].to_list() == [1]
    assert pl.read_parquet(out / "dropped.parquet")["drop_reason"].to_list() == ["paid_null"]
    assert pl.read_parquet(out / "ledger.parquet")["reason"].to_list() == ["paid_null"]
    assert pl.read_parquet(out / "suites.parquet").height == 2
    assert "code.jsonl:2" in (out / "report.md").read_text()
    again = run_command(*arguments, cwd=project)
    assert again.returncode == 0, again.stderr
    assert "vet_tests     from the cache" in again.stderr


HINTS = "Given two numbers, find their sum.\nRead from standard input only.\nCategories: greedy\n"
PLACES: list[Any] = ["tests", "verifier_args", "info", ("verifier_args", "tests"), ("info", "tests")]


@pytest.mark.parametrize("column", PLACES)
def test_tests_are_read_where_the_verifier_takes_them(project: Path, column: Any) -> None:
    tests = {"type": "asserts", "entry_point": "add", "code": "assert add(1, 2) == 3\nassert add(2, 5) == 7"}
    placed = {column[0]: {column[1]: tests}} if isinstance(column, tuple) else {column: tests}
    rows = [{"prompt": f"{HINTS}{k}", "solution": "def add(a, b):\n    return a + b\n", **placed} for k in range(6)]
    (project / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = run_command("testcases", "vet", "rows.jsonl", "--out", "o", "--runs", 1, "--mutants", 1, cwd=project)
    assert done.returncode == 0, done.stderr
    assert "6 suites: 6 keep" in done.stdout
    assert "6 of 6 prompts of rows.jsonl say how they are solved" in done.stdout
    assert "6 of 6 prompts of rows.jsonl have the line 'Read from standard input only.'" in done.stdout


def test_settings_can_be_given(project: Path) -> None:
    done = run_command(
        "testcases",
        "vet",
        "code.jsonl",
        "--out",
        "o",
        "--limit",
        1,
        "--set",
        "mutants=2",
        "--set",
        "runs=1",
        cwd=project,
    )
    assert done.returncode == 0, done.stderr
    assert pl.read_parquet(project / "o" / "suites.parquet")["mutants"].to_list() == [2]


@pytest.mark.parametrize(
    ("arguments", "code", "expected"),
    [
        (["nowhere.jsonl"], 3, "does not exist"),
        (["math.jsonl"], 3, "holds no programs with tests"),
        (["code.jsonl", "--preset", "humanevil"], 2, "no preset"),
        (["code.jsonl", "--set", "mutans=3"], 2, "did you mean mutants"),
        (["code.jsonl", "--set", "mutants"], 2, "expected vet_tests.FIELD=VALUE or data.FIELD=VALUE"),
        (["code.jsonl", "--set", "other.thing=1"], 2, "expected vet_tests.FIELD=VALUE or data.FIELD=VALUE"),
    ],
)
def test_bad_input_ends_in_one_clear_line(project: Path, arguments: list[str], code: int, expected: str) -> None:
    done = run_command("testcases", "vet", *arguments, "--out", "o", cwd=project)
    assert done.returncode == code, done.stderr
    assert expected in done.stderr
    assert "Traceback" not in done.stderr


def stages(**data: Any) -> list[str]:
    vet_tests = data.pop("vet_tests", {})
    config = validate_config({"data": data, "vet_tests": vet_tests}, "here")
    return [stage.name for stage in plan(config, "curate")]


def test_code_is_vetted_after_its_gold_is_verified_and_only_code(project: Path) -> None:
    code, arithmetic = str(project / "code.jsonl"), str(project / "math.jsonl")
    curation = ["ingest", "clean", "dedup", "verify_gold", "vet_tests", "flag", "settle", "export", "report"]
    assert stages(path=code) == curation
    without = [name for name in curation if name != "vet_tests"]
    assert stages(path=arithmetic) == without
    assert stages(path=code, vet_tests={"enabled": False}) == without
    assert stages(type="demo") == ["make_data", *without]
    assert stages(type="hf", name="openai/openai_humaneval") == curation


def test_curation_drops_weak_suites_and_tells_of_it(project: Path) -> None:
    (project / "run.yaml").write_text("name: small\ndata: {path: code.jsonl}\nvet_tests: {runs: 1, mutants: 2}\n")
    done = run_command("curate", "run.yaml", "--engine", "local", cwd=project)
    assert done.returncode == 0, done.stderr
    run_dir = project / "runs" / "small"
    assert pl.read_parquet(run_dir / "settle" / "rows.parquet")["source_row"].to_list() == [1]
    story = run_command("explain", "code.jsonl:2", "--run", run_dir, cwd=project)
    assert "paid_null" in story.stdout
    summary = json.loads((run_dir / "report" / "summary.json").read_text())
    ends = {(end["stage"], end["reason"]): end["rows"] for end in summary["accounting"]["ends"]}
    assert ends["vet_tests", "paid_null"] == 1


ADD = {
    "prompt": "Write add(a, b).",
    "solution": "def add(a, b):\n    return a + b\n",
    "verifier_args": {"tests": {"type": "asserts", "code": "assert add(1, 2) == 3\nassert add(5, -5) == 0"}},
}


@pytest.mark.parametrize(
    "changes",
    [
        {"verifier": "code"},
        {"verifier": "code", "verifier_args": json.dumps(ADD["verifier_args"])},
        {"verifier": "code", "verifier_args": {"tests": ["assert add(1, 2) == 3", "assert add(5, -5) == 0"]}},
        {"verifier": "code", "gold": "unused"},
        {"verifier": "code", "solution": None},
    ],
)
def test_tests_that_stand_in_verifier_args_are_vetted(changes: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text(json.dumps({**ADD, **changes}) + "\n")
    done = run_command("testcases", "vet", "rows.jsonl", "--out", "out", "--runs", 1, "--mutants", 2, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "1 suites: 1 keep" in done.stdout


def test_where_rows_with_tests_in_verifier_args_name_no_verifier_the_error_says_what_to_add(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text(json.dumps(ADD) + "\n")
    vet = ("testcases", "vet", "rows.jsonl", "--out", "out", "--runs", 1, "--mutants", 2)
    refused = run_command(*vet, cwd=tmp_path)
    if refused.returncode:
        assert "--set data.verifier=code" in refused.stderr
        refused = run_command(*vet, "--set", "data.verifier=code", cwd=tmp_path)
    assert refused.returncode == 0, refused.stderr
    assert "1 suites: 1 keep" in refused.stdout
