"""`truegold clean` frees what is superseded, and nothing that the run needs."""

from __future__ import annotations

import fcntl
from pathlib import Path

import pytest

from tests.flows.test_mistakes import project, run
from truegold.flows.cli.look_commands import describe_bytes

__all__ = ["project"]


def test_it_frees_what_is_superseded_and_the_run_goes_on_from_its_cache(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    curate = ("curate", "run.yaml", "--engine", "local")
    for setting in ("8", "9"):
        assert run(monkeypatch, *curate, "--set", f"clean.min_prompt_chars={setting}") == 0
    folder = project / "runs" / "run"
    unfinished = folder / ".partial" / "profile-abc"
    unfinished.mkdir(parents=True)
    (unfinished / "samples").write_bytes(b"x" * 2_000)
    assert list((folder / ".superseded").iterdir())
    capsys.readouterr()
    assert run(monkeypatch, "clean", str(folder), "--dry-run") == 0
    shown = capsys.readouterr().out
    assert "would free" in shown and "stages of earlier settings" in shown and "2.0 kB" in shown
    assert (folder / ".superseded").is_dir()
    assert run(monkeypatch, "clean", str(folder)) == 0
    assert not (folder / ".superseded").exists()
    assert (unfinished / "samples").exists()
    capsys.readouterr()
    assert run(monkeypatch, *curate, "--set", "clean.min_prompt_chars=9") == 0
    assert "nothing to do" in capsys.readouterr().err
    assert run(monkeypatch, "clean", str(folder), "--unfinished") == 0
    assert not unfinished.exists()


def test_what_is_no_run_or_is_at_work_is_left_alone(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = project / "folder" / ".superseded"
    kept.mkdir()
    assert run(monkeypatch, "clean", "folder") == 3
    assert run(monkeypatch, "clean", "file") == 3
    assert kept.is_dir()
    (project / "folder" / "config.resolved.json").write_text("{}")
    with (project / "folder" / ".lock").open("a+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert run(monkeypatch, "clean", "folder") == 2
    assert "is working in folder" in capsys.readouterr().err
    assert kept.is_dir()
    elsewhere = project / "elsewhere"
    kept.rename(elsewhere)
    kept.symlink_to(elsewhere)
    assert run(monkeypatch, "clean", "folder") == 0
    assert elsewhere.is_dir()


def test_sizes_are_told_as_a_person_says_them() -> None:
    sizes = {0: "0 B", 812: "812 B", 3_400: "3.4 kB", 1_200_000_000: "1.2 GB", 5e12: "5.0 TB"}
    assert {size: describe_bytes(size) for size in sizes} == sizes
