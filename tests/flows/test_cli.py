"""The command line: bad input ends in one clear line with a telling exit code; the local run resumes and caches."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from command_line import run_command

TRUEGOLD = [sys.executable, "-P", "-m", "truegold.flows.cli"]

HOLD_LOCK = """
import fcntl, sys, time
lock = open(sys.argv[1], "a+")
fcntl.flock(lock, fcntl.LOCK_EX)
print("held", flush=True)
time.sleep(60)
"""

PROBLEMS = [
    {
        "question": f"Ann has {a} pens and buys {b} more. How many pens does Ann have now?",
        "answer": f"{a}+{b}={a + b}\n#### {a + b}",
    }
    for a, b in [(1, 2), (3, 4), (5, 6), (7, 8), (9, 10), (11, 12), (13, 14), (15, 16)]
]


def write_lines(path: Path, entries: list[Any]) -> Path:
    path.write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    return path


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with data, a script of completions and a configuration that needs no model."""
    write_lines(tmp_path / "train.jsonl", PROBLEMS)
    script = [
        {
            "prompt": p["question"],
            "completions": [f"\\boxed{{{p['answer'].split('#### ')[1]}}}"] + ["\\boxed{0}"] * (n % 4),
        }
        for n, p in enumerate(PROBLEMS)
    ]
    write_lines(tmp_path / "script.jsonl", script)
    (tmp_path / "run.yaml").write_text(
        "name: small\ndata: {path: train.jsonl, preset: gsm8k}\nengine: {type: scripted, path: script.jsonl}\n"
        "profile: {samples: 4}\n"
        "select: {min_passes: 2}\n"
    )
    return tmp_path


def test_a_run_without_a_model_server_goes_from_raw_rows_to_a_report(project: Path) -> None:
    done = run_command("run", "run.yaml", "--engine", "local", cwd=project)
    assert done.returncode == 0, done.stderr
    run_dir = project / "runs" / "small"
    assert (run_dir / "report" / "index.html").exists()
    profile = pl.read_parquet(run_dir / "profile" / "profile.parquet").sort("source_row")
    assert profile["pass_rate"].to_list() == [1.0, 0.5, 0.5, 0.25] * 2
    selected = pl.read_parquet(run_dir / "select" / "selected.parquet")
    assert sorted(selected["source_row"]) == [1, 2, 3, 5, 6, 7]
    dropped = pl.read_parquet(run_dir / "select" / "dropped.parquet")
    assert dropped["drop_reason"].to_list() == ["too_few_passes"] * 2
    resolved = json.loads((run_dir / "config.resolved.json").read_text())
    assert resolved["profile"]["samples"] == 4
    story = run_command("explain", "train.jsonl:4", "--run", run_dir, cwd=project)
    assert story.returncode == 0, story.stderr
    assert "too_few_passes" in story.stdout


def test_a_second_run_does_nothing_and_says_so(project: Path) -> None:
    assert run_command("run", "run.yaml", "--engine", "local", cwd=project).returncode == 0
    again = run_command("run", "run.yaml", cwd=project)
    assert again.returncode == 0, again.stderr
    assert "nothing to do" in again.stderr


def test_a_phase_runs_only_what_it_needs(project: Path) -> None:
    done = run_command("curate", "run.yaml", "--engine", "local", cwd=project)
    assert done.returncode == 0, done.stderr
    assert not (project / "runs" / "small" / "profile").exists()
    more = run_command("select", "run.yaml", "--engine", "local", cwd=project)
    assert "settle        from the cache" in more.stderr
    assert (project / "runs" / "small" / "select").exists()


def test_hard_rows_get_positives_between_selection_and_training(project: Path) -> None:
    script = [json.loads(line) for line in (project / "script.jsonl").read_text().splitlines()]
    for entry in script[:2]:
        entry["completions"] = [f"\\boxed{{{wrong}}}" for wrong in (90, 91, 92, 93)]
    asked = "Write a solution that stands on its own, for a reader who has seen nothing but the problem"
    script.append({"prompt": asked, "completions": ["So it is \\boxed{3}"]})
    (project / "script.jsonl").write_text("".join(json.dumps(entry) + "\n" for entry in script))
    settings = ["--set", "synth.strategies=[retry]", "--set", "select.min_passes=0"]
    done = run_command("synth", "run.yaml", "--engine", "local", *settings, cwd=project)
    assert done.returncode == 0, done.stderr
    run_dir = project / "runs" / "small"
    # The first problem's answer is 3, and that of the other one is not.
    assert pl.read_parquet(run_dir / "synth" / "distilled.parquet")["prompt"].to_list() == [PROBLEMS[0]["question"]]
    page = (run_dir / "report" / "index.html").read_text()
    assert "Positives for hard rows" in page
    story = run_command("explain", "train.jsonl:1", "--run", run_dir, cwd=project).stdout
    assert "back in training by a distilled positive" in story or "selected for training" in story
    assert "Attempts of synthesis" in story
    assert "So it is \\boxed{3}" in story
    missing = run_command("synth", "run.yaml", "--engine", "local", cwd=project)
    assert missing.returncode == 2
    assert "`synth` section" in missing.stderr


def test_a_killed_run_goes_on_and_ends_with_the_same_output(project: Path) -> None:
    assert run_command("run", "run.yaml", "--engine", "local", "--set", "name=calm", cwd=project).returncode == 0
    for _ in range(4):
        child = subprocess.Popen(
            [*TRUEGOLD, "run", "run.yaml", "--engine", "local"], cwd=project, stderr=subprocess.DEVNULL
        )
        time.sleep(1.3)
        child.send_signal(signal.SIGKILL)
        child.wait()
    last = run_command("run", "run.yaml", "--engine", "local", cwd=project)
    assert last.returncode == 0, last.stderr
    for table in ("select/selected.parquet", "profile/profile.parquet", "settle/rows.parquet", "clean/ledger.parquet"):
        assert (project / "runs/small" / table).read_bytes() == (project / "runs/calm" / table).read_bytes(), table


def test_dry_run_prints_the_resolved_configuration_and_the_plan(project: Path) -> None:
    shown = run_command("run", "run.yaml", "--dry-run", cwd=project)
    assert shown.returncode == 0
    assert "data      train.jsonl: 8 records" in shown.stdout
    assert "profile        to run    not run before" in shown.stdout
    assert len(shown.stdout.splitlines()) < 20
    as_json = run_command("run", "run.yaml", "--dry-run", "--json", cwd=project)
    read = json.loads(as_json.stdout)
    assert read["config"]["profile"]["samples"] == 4
    assert {"name": "profile", "function": "truegold.pipeline.profile:profile", "isolated": True, "cached": False} in (
        read["stages"]
    )
    assert not (project / "runs").exists()
    assert run_command("curate", "run.yaml", "--engine", "local", cwd=project).returncode == 0
    partly = run_command("run", "run.yaml", "--dry-run", cwd=project).stdout
    assert [line.split()[1] for line in partly.splitlines() if line.startswith(("settle", "profile"))] == [
        "cached",
        "to",
    ]
    changed = run_command("curate", "run.yaml", "--dry-run", "--set", "clean.min_prompt_chars=9", cwd=project).stdout
    states = {line.split()[0]: line[15:24].strip() for line in changed.splitlines()[4:-2]}
    assert states["ingest"] == "cached"
    assert states["clean"] == states["settle"] == "to run"
    assert "expected  about" in changed


def broken(project: Path, name: str, content: bytes) -> list[str]:
    (project / name).write_bytes(content)
    return ["--set", f"data.path={name}"]


@pytest.mark.parametrize(
    ("case", "code", "expected"),
    [
        ("no config", 2, "no such file"),
        ("unknown setting", 2, "did you mean"),
        ("no data file", 3, "does not exist"),
        ("empty file", 3, "empty"),
        ("directory", 3, "no data file"),
        ("wrong columns", 3, "question"),
        ("nothing parses", 3, "line 1"),
        ("invalid utf-8 only", 3, "utf"),
        ("one huge line", 3, "too"),
        ("no model folder", 4, "does not exist"),
        ("unknown verifier", 2, "did you mean 'math'"),
        ("no script", 3, "profile.engine.path: none.jsonl does not exist"),
    ],
)
def test_bad_input_ends_in_one_clear_line(project: Path, case: str, code: int, expected: str) -> None:
    empty_folder = project / "nothing"
    empty_folder.mkdir()
    options: dict[str, list[str]] = {
        "no config": [],
        "unknown setting": ["--set", "data.limti=3"],
        "no data file": ["--set", "data.path=nowhere.jsonl"],
        "empty file": broken(project, "empty.jsonl", b""),
        "directory": ["--set", f"data.path={empty_folder}"],
        "wrong columns": broken(project, "columns.jsonl", b'{"frage": "1+1?", "antwort": "#### 2"}\n'),
        "nothing parses": broken(project, "words.jsonl", b"these are\nonly words\n"),
        "invalid utf-8 only": broken(project, "latin.jsonl", b'{"question": "caf\xe9?", "answer": "#### 1"}\n'),
        "one huge line": broken(project, "huge.jsonl", b'{"question": "' + b"x" * 50_000_000 + b'"}\n'),
        "no model folder": ["--set", "engine.type=vllm", "--set", "engine.path=", "--set", "model.path=./nowhere"],
        "unknown verifier": ["--set", "data.verifier=maths"],
        "no script": ["--set", "engine.path=none.jsonl"],
    }
    if case == "no model folder":
        (project / "run.yaml").write_text("name: small\ndata: {path: train.jsonl}\nmodel: {path: ./nowhere}\n")
        options[case] = []
    config = "nothing.yaml" if case == "no config" else "run.yaml"
    done = run_command("run", config, "--engine", "local", *options[case], cwd=project)
    assert done.returncode == code, done.stderr
    failure = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert len(failure) == 1, done.stderr
    assert expected in failure[0].lower() + done.stderr.lower()
    assert "Traceback" not in done.stderr


def test_bad_lines_are_set_aside_and_the_rest_goes_on(project: Path) -> None:
    good = [json.dumps(entry).encode() for entry in PROBLEMS]
    lines = [good[0], b"{broken", good[1], b"\xff\xfe", good[2], b'{"question": "no answer?"}']
    (project / "train.jsonl").write_bytes(b"\n".join(lines) + b"\n")
    done = run_command("curate", "run.yaml", "--engine", "local", cwd=project)
    assert done.returncode == 0, done.stderr
    rejects = [json.loads(line) for line in (project / "runs/small/ingest/rejects.jsonl").read_text().splitlines()]
    assert [(reject["source_row"], reject["reason"]) for reject in rejects] == [
        (2, "invalid_json"),
        (4, "invalid_utf8"),
        (6, "missing_gold"),
    ]


def test_two_runs_in_one_directory_do_not_collide(project: Path) -> None:
    run_dir = project / "runs" / "small"
    run_dir.mkdir(parents=True)
    holder = subprocess.Popen(
        [
            sys.executable,
            "-P",
            "-c",
            HOLD_LOCK,
            str(run_dir / ".lock"),
        ],
        stdout=subprocess.PIPE,
    )
    try:
        assert holder.stdout is not None
        holder.stdout.readline()
        done = run_command("run", "run.yaml", "--engine", "local", cwd=project)
    finally:
        holder.kill()
        holder.wait()
        holder.stdout.close()
    assert done.returncode == 2
    assert "Another truegold run" in done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small tmpfs needs root")
def test_a_full_disk_is_one_line_and_loses_nothing(project: Path) -> None:
    small = project / "small-disk"
    small.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=200k", "tmpfs", str(small)], check=False, capture_output=True
    )
    if mounted.returncode:
        pytest.skip(f"mounting a tmpfs is not allowed here: {mounted.stderr.decode().strip()}")
    try:
        noise = random.Random(0)
        many = [
            {**PROBLEMS[0], "question": PROBLEMS[0]["question"] + f" ({noise.randbytes(400).hex()})"}
            for _ in range(3000)
        ]
        write_lines(project / "train.jsonl", many)
        done = run_command("run", "run.yaml", "--engine", "local", "--set", f"runs_dir={small}", cwd=project)
        assert done.returncode == 4, done.stderr
        failure = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
        assert len(failure) == 1
        assert "No space left" in failure[0]
        assert "Traceback" not in done.stderr
    finally:
        # The command ran in this process, whose traceback may still hold files that it has mapped.
        subprocess.run(["umount", "--lazy", str(small)], check=True)


def test_init_writes_a_configuration_that_loads(tmp_path: Path, tiny_model: Path) -> None:
    (tmp_path / "x.jsonl").write_text('{"question": "1+1?", "answer": "2"}\n')
    assert run_command("init", "x.jsonl", "mine.yaml", "--train", cwd=tmp_path).returncode == 0
    again = run_command("init", "x.jsonl", "mine.yaml", cwd=tmp_path)
    assert again.returncode == 2
    assert "exists already" in again.stderr
    assert "has a line break" in run_command("init", "x.jsonl", "a\nname: b.yaml", cwd=tmp_path).stderr
    command = ("run", "mine.yaml", "--dry-run", "--set", f"model.path={tiny_model}")
    refused = run_command(*command, cwd=tmp_path).stderr
    advised = "--set engine.max_model_len=256 --set profile.max_tokens=128"
    assert "the model takes at most 256 tokens (max_position_embeddings in its config.json)" in refused
    assert advised in refused
    shown = run_command(*command, *advised.split(), cwd=tmp_path)
    assert shown.returncode == 0, shown.stderr


def test_verify_judges_a_file_and_loses_no_row(tmp_path: Path) -> None:
    rows = [{"id": 1, "response": "\\boxed{42}", "gold": "42"}, {"id": 2, "response": "\\boxed{41}", "gold": "42"}]
    path = write_lines(tmp_path / "rows.jsonl", rows)
    path.write_bytes(path.read_bytes() + b"not json\n")
    done = run_command("verify", "--input", path, "--output", tmp_path / "verdicts.parquet", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    verdicts = pl.read_parquet(tmp_path / "verdicts.parquet")
    assert verdicts["score"].to_list() == [1.0, 0.0, None]
    assert verdicts["reason"].to_list() == ["match", "mismatch", "rejected:invalid_json"]


def test_the_help_has_groups_with_run_first_and_the_version(tmp_path: Path) -> None:
    shown = run_command("--help", cwd=tmp_path).stdout
    groups = [
        shown.index(group) for group in ("A run", "Look at a run", "Work on one file", "Verifiers and this machine")
    ]
    assert groups == sorted(groups)
    assert groups[0] < shown.index("│ run ") < shown.index("│ curate ") < shown.index("│ verify ")
    assert "--install-completion" in shown
    version = run_command("--version", cwd=tmp_path)
    assert (version.returncode, version.stdout.split()[0]) == (0, "truegold")


def test_commands_on_one_file_end_with_a_summary_and_a_report(project: Path) -> None:
    row = {"id": 1, "response": "\\boxed{42}", "gold": "42"}
    write_lines(project / "rows.jsonl", [row, {**row, "response": "\\boxed{|}"}])
    done = run_command("verify", "--input", "rows.jsonl", "--output", "v.parquet", cwd=project)
    assert "2 responses of rows.jsonl were judged" in done.stdout
    assert "report: v.parquet.report.md" in done.stdout
    assert "| match | 1 | 50.0% |" in (project / "v.parquet.report.md").read_text()
    done = run_command("flag", "--data", "train.jsonl", "--out", "flagged", cwd=project)
    assert done.returncode == 0, done.stderr
    assert "8 rows of train.jsonl were looked at" in done.stdout
    assert (project / "flagged" / "report.md").read_text().startswith("# Flags of train.jsonl")
    page = next(line.removeprefix("every row: ") for line in done.stdout.splitlines() if line.startswith("every row: "))
    assert "flags of train.jsonl" in (project / page).read_text(encoding="utf-8")


def test_help_of_every_command_and_a_wrong_command(tmp_path: Path) -> None:
    for command in ("run", "curate", "profile", "select", "train", "report", "explain", "verify", "doctor", "init"):
        assert run_command(command, "--help", cwd=tmp_path).returncode == 0
    assert run_command("fly", cwd=tmp_path).returncode == 2


def test_diff_names_the_rows_that_moved_and_the_setting_behind_them(project: Path) -> None:
    for name, setting in (("a", []), ("b", ["--set", "clean.min_prompt_chars=70"])):
        done = run_command("curate", "run.yaml", "--engine", "local", "--set", f"name={name}", *setting, cwd=project)
        assert done.returncode == (3 if setting else 0), done.stderr
    difference = run_command("diff", "runs/a", "runs/b", cwd=project)
    assert difference.returncode == 0, difference.stderr
    assert "because clean.min_prompt_chars: 8 -> 70" in difference.stdout
    read = json.loads(run_command("diff", "runs/a", "runs/b", "--json", cwd=project).stdout)
    assert [move["second"] for move in read["transitions"]] == ["clean: prompt_too_short"]
    compared = run_command("report", "--compare", "runs/a", "runs/b", "--out", "both.html", cwd=project)
    assert compared.returncode == 0 and "both.html" in compared.stdout
    assert "clean.min_prompt_chars" in (project / "both.html").read_text(encoding="utf-8")
    one = run_command("report", "--compare", "runs/a", cwd=project)
    assert (one.returncode, one.stderr.count("\n")) == (2, 1) and "--compare takes two runs, not 1" in one.stderr
    none = run_command("diff", "runs/a", "runs", cwd=project)
    assert none.returncode == 3
    assert "is not a run of truegold" in none.stderr
