"""A signal ends a training in order: at once while it samples and judges, between two steps else."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator

import pytest

from truegold.train.model import ending
from truegold.train.model.distributed import init_distributed
from truegold.train.model.ending import EndAsked, end_if_asked, ended, interruptible, is_heard, listening

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
    assert is_heard()
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
        ending._Ear.heard = signal.SIGTERM
        raise ConnectionResetError("the sampler has heard it too")


def test_handlers_are_those_of_before_afterwards() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with listening():
        assert signal.getsignal(signal.SIGTERM) != before
    assert signal.getsignal(signal.SIGTERM) == before
