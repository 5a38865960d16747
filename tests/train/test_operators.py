"""A locked build of DeepSpeed's operator is announced, and given up with the line that clears it."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from threading import Timer

import pytest
from torch.utils.file_baton import FileBaton

from truegold.train.model import distributed
from truegold.verifiers import SetupError


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TORCH_EXTENSIONS_DIR", str(tmp_path))
    monkeypatch.setattr(distributed, "ANNOUNCE_S", 0.1)
    monkeypatch.setattr(distributed, "PATIENCE_S", 0.5)
    monkeypatch.setattr(distributed, "POLL_S", 0.02)
    return tmp_path


def test_a_build_that_does_not_end_is_named_and_given_up(folder: Path) -> None:
    notes: list[str] = []
    original = FileBaton.wait
    with distributed.extensions_folder(notes.append):
        (folder / "shm").mkdir()
        (folder / "shm" / "lock").touch()
        with pytest.raises(SetupError, match=r"operator is locked: another build has held .*shm/lock") as caught:
            FileBaton(str(folder / "shm" / "lock")).wait()
    assert str(caught.value.hint).endswith(f"rm {folder}/shm/lock")
    assert len(notes) == 1
    assert str(folder / "shm" / "lock") in notes[0]
    assert FileBaton.wait is original


def test_a_process_that_keeps_the_lock_to_itself_is_given_up(folder: Path) -> None:
    with (folder / "truegold.lock").open("w") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(SetupError, match=r"truegold\.lock"), distributed.extensions_folder(lambda _: None):
            pass


def test_a_build_that_ends_is_waited_for(folder: Path) -> None:
    lock = folder / "lock"
    with distributed.extensions_folder(lambda _: None):
        lock.touch()
        Timer(0.2, lock.unlink).start()
        FileBaton(str(lock)).wait()


def test_what_a_killed_build_left_behind_is_removed(folder: Path) -> None:
    (folder / "shm").mkdir()
    (folder / "shm" / "lock").touch()
    with distributed.extensions_folder(lambda _: None):
        assert not (folder / "shm" / "lock").exists()


def test_two_installations_do_not_compile_over_each_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("TORCH_EXTENSIONS_DIR", "restored after the test")
    folders = []
    for version in ("1.0", "1.0", "2.0"):
        monkeypatch.delenv("TORCH_EXTENSIONS_DIR")
        monkeypatch.setattr(distributed.importlib.metadata, "version", lambda package, version=version: version)
        with distributed.extensions_folder(lambda _: None):
            folders.append(os.environ["TORCH_EXTENSIONS_DIR"])
    assert folders[0] == folders[1] != folders[2]
