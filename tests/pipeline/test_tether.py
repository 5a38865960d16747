"""Processes on other machines end with one of them, and with the process that has started them."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from truegold.pipeline.running import tether as module
from truegold.pipeline.running.tether import Tether

CHILD = """
import json, sys, time
from truegold.pipeline.running.tether import hold
last_word = hold(json.loads(sys.argv[1]), sys.argv[2])
print("held", flush=True)
sys.stdin.readline()
last_word(sys.argv[3].encode())
time.sleep(60)
"""


STARTED: list[subprocess.Popen[str]] = []


@pytest.fixture
def tether() -> Iterator[Tether]:
    tether = Tether(["127.0.0.1"])
    yield tether
    tether.close()
    while STARTED:
        child = STARTED.pop()
        child.kill()
        child.communicate()


def start(tether: Tether, word: str = ".", token: str | None = None) -> subprocess.Popen[str]:
    arguments = [json.dumps(tether.addresses), token or tether.token, word]
    child = subprocess.Popen(
        [sys.executable, "-P", "-c", CHILD, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    STARTED.append(child)
    assert child.stdout is not None
    assert token is not None or child.stdout.readline() == "held\n"
    return child


def is_running(child: subprocess.Popen[str]) -> bool:
    try:
        child.wait(1)
    except subprocess.TimeoutExpired:
        return True
    return False


@pytest.mark.parametrize("how", ["killed", "failed", "let_go"])
def test_where_one_is_gone_the_others_end(tether: Tether, how: str) -> None:
    first, second = start(tether, "!"), start(tether)
    assert is_running(first)
    if how == "killed":
        first.kill()
    elif how == "failed":
        print(file=first.stdin, flush=True)
    else:
        tether.close()
    assert second.wait(30) == 1
    assert tether.is_broken == (how == "killed")


def test_one_that_says_nothing_any_more_is_given_up(tether: Tether, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PULSE_S", 1.0)
    monkeypatch.setattr(module, "SILENT_S", 12.0)
    first, second = start(tether), start(tether)
    time.sleep(15)
    assert is_running(second)
    first.send_signal(signal.SIGSTOP)
    assert second.wait(60) == 1
    assert tether.is_broken


def test_one_that_is_done_ends_alone(tether: Tether) -> None:
    first, second = start(tether), start(tether)
    print(file=first.stdin, flush=True)
    assert is_running(second)
    first.kill()
    assert is_running(second)
    assert not tether.is_broken
    tether.close()
    assert second.wait(30) == 1


def test_signals_reach_all_and_strangers_do_not_count(tether: Tether) -> None:
    first, second = start(tether), start(tether)
    stranger = start(tether, token="0" * len(tether.token))
    assert stranger.wait(30) == 1
    assert is_running(first)
    tether.tell(signal.SIGTERM)
    assert [first.wait(30), second.wait(30)] == [-signal.SIGTERM] * 2
