"""The command `truegold review`: a real server, killed and started again, and what it refuses to begin with."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
import yaml

from truegold.flows.cli.app import main
from truegold.pipeline.tables.rows import row_id

YES_NO = [(f"Is the sum of {n} odd numbers even?", "yes") for n in (2, 4, 6, 8)]
ADDRESS = re.compile(r"(http://127\.0\.0\.1:\d+)/\?token=([\w-]+)")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with a curated run, which is the working directory."""
    folder = tmp_path_factory.mktemp("project")
    records = [{"question": prompt, "answer": gold} for prompt, gold in YES_NO]
    (folder / "train.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    settings = {"name": "small", "data": {"path": "train.jsonl", "verifier": "math"}}
    (folder / "run.yaml").write_text(yaml.safe_dump(settings))
    before = Path.cwd()
    os.chdir(folder)
    # Every row waits for a decision: no row is left, and the run can be reviewed all the same.
    assert run_main("curate", "run.yaml", "--engine", "local") == 3
    yield folder
    os.chdir(before)


def run_main(*arguments: str) -> int:
    """Run a command in this process and return its exit code."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.argv", ["truegold", *arguments])
        try:
            main()
        except SystemExit as stop:
            return int(stop.code or 0)
    return 0


@contextmanager
def review_app(*options: str, end: signal.Signals = signal.SIGINT) -> Iterator[tuple[str, dict[str, str]]]:
    """Run the server and yield its address and the header that its calls need; end it by a signal."""
    command = [
        sys.executable,
        "-P",
        "-m",
        "truegold.flows.cli",
        "review",
        "runs/small",
        "--reviewer",
        "ann",
        "--port",
        "0",
    ]
    process = subprocess.Popen([*command, *options], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        match = ADDRESS.search(process.stdout.readline())
        assert match is not None
        yield match[1], {"X-Truegold-Token": match[2]}
    finally:
        process.send_signal(end)
        rest = process.communicate(timeout=30)[0]
    if end is signal.SIGINT:
        assert (process.returncode, "acts on what was decided" in rest) == (0, True)


def test_a_server_that_is_killed_loses_no_decision(project: Path) -> None:
    with review_app(end=signal.SIGKILL) as (address, headers):
        page = httpx.get(f"{address}/", params={"token": headers["X-Truegold-Token"]})
        assert (page.status_code, "<html" in page.text) == (200, True)
        for prompt, gold in YES_NO[:3]:
            body = {"id": row_id(prompt, gold), "decision": "keep"}
            assert httpx.post(f"{address}/api/decisions", json=body, headers=headers).status_code == 200
    with review_app() as (address, headers):
        decided = httpx.get(f"{address}/api/decisions", headers=headers).json()["decisions"]
        assert {entry["id"] for entry in decided} == {row_id(*problem) for problem in YES_NO[:3]}
        assert httpx.get(f"{address}/api/decisions").status_code == 401
        stranger = httpx.get(f"{address}/api/decisions", headers={**headers, "Host": "evil.example"})
        assert stranger.status_code == 403


def test_the_status_is_printed_without_a_server(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_main("review", "runs/small", "--status") == 0
    assert capsys.readouterr().out.startswith("waiting   ")


@pytest.mark.parametrize(
    ("options", "code", "line"),
    [
        (["nothing"], 3, "nothing is not a run of truegold"),
        (["runs"], 3, "runs is not a run of truegold"),
        (["runs/small", "--random", "3", "--second", "bob"], 2, "--random and --second both say which rows to read"),
        (["runs/small", "--random", "3", "--among", "some"], 2, "--among some: rows are drawn among `flagged`"),
        (["runs/small", "--second", "ann"], 2, "ann has decided these rows. Say who reads them this time"),
        (["runs/small", "--second", "zoe"], 3, "zoe has decided about no row"),
        (["runs/small", "--guidelines", "nothing.md"], 3, "nothing.md: no such file"),
        (["runs/small", "--guidelines", "runs"], 4, "runs: Is a directory"),
        (["runs/small", "--host", "no.such.host.invalid"], 2, "--host no.such.host.invalid is not an address"),
    ],
)
def test_a_mistake_is_one_line(
    options: list[str], code: int, line: str, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    got = run_main("review", *options, "--reviewer", "ann")
    message = capsys.readouterr().err
    assert (got, line in message, "Traceback" in message) == (code, True, False), message


def test_a_port_in_use_is_one_line(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        assert run_main("review", "runs/small", "--port", str(taken.getsockname()[1])) == 4
    assert "--port 0 takes a free one" in capsys.readouterr().err


@pytest.mark.parametrize("token", ["short", "sixteen chars\nand", "ünsichtbar-und-lang"])
def test_a_token_that_can_be_guessed_or_is_no_header_is_refused(
    token: str, project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TRUEGOLD_REVIEW_TOKEN", token)
    assert run_main("review", "runs/small", "--port", "0") == 2
    assert "TRUEGOLD_REVIEW_TOKEN is not a token" in capsys.readouterr().err
