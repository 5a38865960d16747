"""Decisions about rows that tests judge, from the terminal to the exported set, and in a copy of the run."""

from __future__ import annotations

import json
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from truegold.flows.cli.app import main
from truegold.verifiers.code import CodeVerifier

Command = Callable[..., tuple[int, str]]

WRONG, WEAK, BROKEN, RIGHT = 1, 2, 3, 4
PROGRAMS = [
    ("add", "a + b", ["assert add(1, 2) == 3", "assert add(2, 2) == 5", "assert add(0, 7) == 7"]),
    ("mul", "a * b", ["assert mul(0, 0) == 0", "assert mul(1, 0) == 0"]),
    ("larger", "max(a, b)", ["assert larger(3, 2=3"]),
    ("sub", "a - b", ["assert sub(3, 2) == 1", "assert sub(2, 2) == 0", "assert sub(9, 2) == 7"]),
]


@pytest.fixture
def truegold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """A command in a folder with a curated run of four programs, that returns its exit code and what it printed."""
    monkeypatch.chdir(tmp_path)
    records = [
        {
            "task_id": number,
            "text": f"Write a function {name} of two numbers.",
            "code": f"def {name}(a, b):\n    return {body}",
            "test_list": tests,
        }
        for number, (name, body, tests) in enumerate(PROGRAMS, start=1)
    ]
    Path("mbpp.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))

    def run(*arguments: str) -> tuple[int, str]:
        monkeypatch.setattr("sys.argv", ["truegold", *arguments])
        code = 0
        try:
            main()
        except SystemExit as stop:
            code = int(stop.code or 0)
        return code, " ".join("".join(capsys.readouterr()).split())

    assert run("curate", "mbpp.jsonl", "--engine", "local")[0] == 0
    return run


def settled(run: str = "mbpp") -> dict[int, dict[str, Any]]:
    """Return the rows that passed `settle`, by number."""
    return {row["source_row"]: row for row in pl.read_parquet(f"runs/{run}/settle/rows.parquet").to_dicts()}


def test_a_wrong_test_is_replaced_by_a_decision(truegold: Command) -> None:
    assert set(settled()) == {RIGHT}
    code, told = truegold("decide", f"mbpp.jsonl:{WRONG}", "fix=drop 1\nassert add(2, 2) == 4", "--reviewer", "ann")
    assert code == 0
    assert "drops 1: assert add(2, 2) == 5 and adds assert add(2, 2) == 4. The worked solution passes." in told
    told = truegold("decide", f"mbpp.jsonl:{RIGHT}", "fix=assert sub(1, 1) == 3", "--reviewer", "ann")[1]
    assert "The worked solution does not pass" in told and "assert sub(1, 1) == 3" in told
    assert truegold("decide", f"mbpp.jsonl:{RIGHT}", "undo", "--reviewer", "ann")[0] == 0
    truegold("curate", "mbpp.jsonl", "--engine", "local")
    row = settled()[WRONG]
    assert json.loads(row["verifier_args"])["code"].splitlines() == [
        "assert add(1, 2) == 3",
        "assert add(0, 7) == 7",
        "assert add(2, 2) == 4",
    ]
    program = "```python\ndef add(a, b):\n    return a + b\n```"
    assert CodeVerifier()(program, info=json.loads(row["verifier_args"])).score == 1


def test_a_fix_that_changes_no_tests_is_refused_with_the_row_and_what_is_accepted(truegold: Command) -> None:
    for gold in ("hello", "18", "add(2, 2) == 4", "drop 3", "drop all", "drop it", "assert add(2, 2"):
        code, told = truegold("decide", f"mbpp.jsonl:{WRONG}", f"fix={gold}", "--reviewer", "ann")
        assert code == 3
        assert f"(mbpp.jsonl:{WRONG}) is judged by tests. gold: " in told
        assert "assert f(3) == 4 adds a case, drop 1 removes case 1 (the first is 0), drop all removes all" in told
    assert not Path("runs/mbpp/decisions").exists()


def test_a_row_with_unreadable_tests_is_kept_only_with_other_tests(truegold: Command) -> None:
    code, told = truegold("decide", f"mbpp.jsonl:{BROKEN}", "keep", "--reviewer", "ann")
    assert code == 3
    assert f"(mbpp.jsonl:{BROKEN}) cannot be kept: its tests cannot be read" in told
    Path("ann.jsonl").write_text(
        json.dumps({"id": told.split()[3], "decision": "keep", "reviewer": "ann", "at": "2026-11-27T09:00:00Z"})
    )
    told = truegold("curate", "mbpp.jsonl", "--engine", "local", "--decisions", "ann.jsonl")[1]
    assert "1 drop:keep_unpayable" in told and "decide about 1 held row" in told
    assert set(settled()) == {RIGHT}
    assert "waiting 1 rows: keep_unpayable 1" in truegold("review", "runs/mbpp", "--status")[1]
    fixed = "fix=drop all\nassert larger(3, 2) == 3\nassert larger(2, 4) == 4"
    assert truegold("decide", f"mbpp.jsonl:{BROKEN}", fixed, "--reviewer", "ann")[0] == 0
    assert "waiting 0 rows" in truegold("review", "runs/mbpp", "--status")[1]
    truegold("curate", "mbpp.jsonl", "--engine", "local", "--decisions", "ann.jsonl")
    assert set(settled()) == {BROKEN, RIGHT}


def test_the_next_steps_count_dropped_rows_without_a_decision(truegold: Command) -> None:
    told = truegold("curate", "mbpp.jsonl", "--engine", "local", "--set", "name=other")[1]
    assert "next: look at 3 dropped rows that can return truegold review runs/other" in told
    truegold("decide", f"mbpp.jsonl:{WEAK}", "keep", "--reviewer", "ann", "--run", "runs/other")
    truegold("decide", f"mbpp.jsonl:{BROKEN}", "drop", "--reviewer", "ann", "--run", "runs/other")
    told = truegold("curate", "mbpp.jsonl", "--engine", "local", "--set", "name=other")[1]
    assert "look at 1 dropped row that can return truegold review" in told


def test_a_copied_or_moved_run_has_its_own_decisions(truegold: Command) -> None:
    assert truegold("decide", f"mbpp.jsonl:{RIGHT}", "drop", "--reviewer", "ann")[0] == 0
    truegold("curate", "mbpp.jsonl", "--engine", "local")
    shutil.copytree("runs/mbpp", "runs/b")
    told = truegold("decide", f"mbpp.jsonl:{WEAK}", "keep", "--reviewer", "bob", "--run", "runs/b")[1]
    assert "in runs/b/decisions/bob.jsonl" in told
    assert "The next `truegold curate ... --set name=b` of runs/b acts on it." in told
    assert sorted(path.name for path in Path("runs/mbpp/decisions").iterdir()) == ["ann.jsonl"]
    truegold("curate", "mbpp.jsonl", "--engine", "local", "--set", "name=b")
    assert (set(settled()), set(settled("b"))) == (set(), {WEAK})

    shutil.move("runs", "elsewhere")
    told = truegold("decide", f"mbpp.jsonl:{WRONG}", "drop", "--reviewer", "bob", "--run", "elsewhere/mbpp")[1]
    assert "in elsewhere/mbpp/decisions/bob.jsonl" in told
    assert f"--set runs_dir={Path.cwd() / 'elsewhere'}`" in told


@pytest.mark.parametrize(("folder", "name"), [("a b", "a-b"), ("$x's", "x-s"), ("1e3", "1e3"), ("null", "null")])
def test_the_command_for_a_copied_run_works_whatever_its_name(truegold: Command, folder: str, name: str) -> None:
    shutil.copytree("runs/mbpp", f"runs/{folder}")
    told = truegold("decide", f"mbpp.jsonl:{WEAK}", "keep", "--reviewer", "ann", "--run", f"runs/{folder}")[1]
    rename, _, curate = told.partition("The next `")[2].partition("` of ")[0].rpartition(" && ")
    if rename:
        shutil.move(*shlex.split(rename)[1:])
    command = shlex.split(curate.replace("...", "mbpp.jsonl"))[1:]
    assert truegold(*command, "--engine", "local")[0] == 0
    assert (set(settled(name)), set(settled())) == ({WEAK, RIGHT}, {RIGHT})


def test_a_path_that_is_a_pattern_is_refused(truegold: Command) -> None:
    code, told = truegold("curate", "mbpp.jsonl", "--engine", "local", "--set", "runs_dir=r[1]")
    assert code == 2 and "runs_dir has one of * ? [" in told
    shutil.copytree("runs/mbpp", "runs/[x]")
    code, told = truegold("review", "runs/[x]", "--status")
    assert code == 3 and "runs/[x] has one of * ? [ in its path" in told


def test_a_named_folder_of_decisions_that_is_gone_is_told(truegold: Command) -> None:
    Path("reviews").mkdir()
    truegold("curate", "mbpp.jsonl", "--engine", "local", "--decisions", "reviews")
    Path("reviews").rename("moved")
    code, told = truegold("decide", f"mbpp.jsonl:{WEAK}", "keep", "--reviewer", "ann")
    assert code == 3 and "reviews, which runs/mbpp was curated with, does not exist." in told
    decide = ("decide", f"mbpp.jsonl:{WEAK}", "keep", "--reviewer", "ann", "--decisions", "moved")
    assert truegold(*decide)[0] == 0
    assert Path("moved/ann.jsonl").is_file() and not Path("reviews").exists()


def test_a_fix_that_the_worked_solution_fails_is_told_in_the_summary_of_the_run(truegold: Command) -> None:
    assert truegold("decide", f"mbpp.jsonl:{RIGHT}", "fix=assert sub(1, 1) == 3", "--reviewer", "ann")[0] == 0
    for _ in range(2):  # The second time from the cache.
        told = truegold("curate", "mbpp.jsonl", "--engine", "local")[1]
        assert f"the worked solution fails after the fix. The first is mbpp.jsonl:{RIGHT}, by ann." in told
    assert truegold("decide", f"mbpp.jsonl:{RIGHT}", "fix=assert sub(1, 1) == 0", "--reviewer", "ann")[0] == 0
    assert "fails after the fix" not in truegold("curate", "mbpp.jsonl", "--engine", "local")[1]
