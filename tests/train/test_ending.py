"""A signal ends a training in order: at once while it samples and judges, between two steps else. So does a full
disk, once what the step had to write is in the room that was reserved."""

from __future__ import annotations

import errno
import os
import re
import signal
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
import torch

from truegold.pipeline.running.stage import RESERVE, SCRATCH, reserve_room
from truegold.train.model import ending
from truegold.train.model.distributed import init_distributed
from truegold.train.model.ending import (
    EndAsked,
    end_if_asked,
    ended,
    interruptible,
    is_end_asked,
    listening,
    save_on_full_gpu,
    write_anyway,
)

pytestmark = [pytest.mark.real, pytest.mark.filterwarnings("default")]


@pytest.fixture(scope="module", autouse=True)
def group_of_one() -> None:
    init_distributed()


@pytest.fixture
def ear() -> Iterator[None]:
    with listening():
        yield


def ask(signum: int = signal.SIGTERM) -> None:
    os.kill(os.getpid(), signum)


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT])
def test_what_may_be_broken_off_is_broken_off_at_once(ear: None, signum: int) -> None:
    began = time.monotonic()
    with pytest.raises(EndAsked), interruptible():
        ask(signum)
        time.sleep(60)
    assert time.monotonic() - began < 5
    assert ended(7).exit_code == 128 + signum
    assert "checkpoint of all 7 finished steps" in str(ended(7))


def test_what_changes_weights_goes_on_to_its_end(ear: None) -> None:
    ask()
    time.sleep(0.1)
    assert is_end_asked()
    with pytest.raises(EndAsked):
        end_if_asked()
    with pytest.raises(EndAsked), interruptible():
        raise AssertionError("it is not begun any more")


def test_a_library_that_swallows_the_signal_is_told_again(ear: None) -> None:
    with pytest.raises(EndAsked), interruptible():
        try:
            ask()
            time.sleep(5)
        except EndAsked:
            pass
        time.sleep(60)


def test_errors_behind_the_signal_are_its_consequence_and_others_pass(ear: None) -> None:
    with pytest.raises(ZeroDivisionError), interruptible():
        raise ZeroDivisionError
    end_if_asked()
    with pytest.raises(EndAsked), interruptible():
        ending._Noticed.signum = signal.SIGTERM
        raise ConnectionResetError("the sampler has heard it too")


def test_handlers_are_those_of_before_afterwards() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with listening():
        assert signal.getsignal(signal.SIGTERM) != before
    assert signal.getsignal(signal.SIGTERM) == before


def is_full(folder: Path) -> bool:
    return (folder / SCRATCH / RESERVE).exists()


def test_a_full_disk_ends_a_training_behind_its_step(ear: None, tmp_path: Path) -> None:
    """The disk is a stand-in: it is full as long as the reserve is there."""
    reserve_room(tmp_path / SCRATCH)
    written = []

    def write() -> None:
        if is_full(tmp_path):
            raise OSError(errno.ENOSPC, "No space left on device")
        written.append("step 7")

    write_anyway(tmp_path, write)
    assert written == ["step 7"]
    with pytest.raises(EndAsked):
        end_if_asked()
    error = ended(8)
    assert (error.exit_code, "checkpoint of all 8 finished steps" in str(error)) == (4, True)
    assert str(tmp_path) in str(error)


def test_a_disk_that_stays_full_and_other_errors_pass(ear: None, tmp_path: Path) -> None:
    def write(code: int) -> None:
        raise OSError(code, os.strerror(code))

    for code in (errno.ENOSPC, errno.EDQUOT, errno.EACCES):
        with pytest.raises(OSError, match=re.escape(os.strerror(code))):
            write_anyway(tmp_path, partial(write, code))
    end_if_asked()


def test_a_checkpoint_after_a_full_gpu_has_what_the_update_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: calls.append("given back"))
    save_on_full_gpu(lambda: calls.append("saved"), calls.append)
    assert calls == ["given back", "saved"]


def test_a_gpu_without_room_for_a_checkpoint_does_not_hide_what_filled_it() -> None:
    def save() -> None:
        raise torch.distributed.DistBackendError(
            "NCCL error in: NCCLUtils.cpp:93\nFailed to CUDA calloc async 4 bytes\n"
        )

    lines: list[str] = []
    save_on_full_gpu(save, lines.append)
    assert len(lines) == 1
    assert "taken again (Failed to CUDA calloc async 4 bytes)" in lines[0]
