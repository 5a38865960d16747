"""Calls that wait, end their thread or never return hold up no other one."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from typing import Any

import pytest

from truegold.train.turns.calls import THREAD_NAME, THREADS, Answer, EnvironmentCalls, describe_error
from truegold.train.turns.environment import AnswerError
from truegold.verifiers import SetupError


def take_all(calls: EnvironmentCalls, seconds: float) -> list[Answer]:
    answers: list[Answer] = []
    began = time.monotonic()
    while calls.pending and time.monotonic() - began < seconds:
        answers += calls.take_answers()
        time.sleep(0.005)
    return answers


def test_calls_that_never_return_hold_up_no_other_until_their_deadline() -> None:
    calls = EnvironmentCalls(deadline_s=30)
    held = threading.Event()
    for key in range(3 * THREADS):
        calls.start(key, held.wait)
    for key in range(100, 140):
        calls.start(key, lambda: "answer")
    answers = take_all(calls, 5)
    assert {answer.key for answer in answers if answer.value == "answer"} == set(range(100, 140))
    assert calls.lost_threads == 0
    held.set()
    assert len(take_all(calls, 5)) == 3 * THREADS
    calls.close()


def test_an_answer_that_is_taken_at_once_costs_no_thread() -> None:
    calls = EnvironmentCalls(deadline_s=30, threads=1)
    ended = []

    class TakenAtOnce:
        """Ends a call before its thread goes on."""

        def put(self, answered: Any) -> None:
            ended.append(calls._end(*answered).value)

    calls._answers = TakenAtOnce()  # type: ignore[assignment]
    for key in range(3):
        calls.start(key, lambda: "answer")
    began = time.monotonic()
    while len(ended) < 3 and time.monotonic() - began < 10:
        time.sleep(0.005)
    assert ended == ["answer"] * 3
    assert calls._threads == 1
    calls.close()


def test_stand_ins_end_with_the_calls_that_they_stood_in_for() -> None:
    calls = EnvironmentCalls(deadline_s=30)
    held = threading.Event()
    for key in range(2 * THREADS):
        calls.start(key, held.wait)
    calls.start("last", lambda: 1)
    assert [answer.value for answer in take_answer_of(calls, "last")] == [1]
    held.set()
    take_all(calls, 5)
    deadline = time.monotonic() + 5
    while calls._threads > THREADS and time.monotonic() < deadline:
        time.sleep(0.01)
    assert calls._threads == THREADS
    calls.close()


def take_answer_of(calls: EnvironmentCalls, key: str) -> list[Answer]:
    for _ in range(1000):
        answers = [answer for answer in calls.take_answers() if answer.key == key]
        if answers:
            return answers
        time.sleep(0.005)
    return []


def test_a_coroutine_that_blocks_its_event_loop_holds_up_no_later_one() -> None:
    held = threading.Event()

    async def block() -> None:
        held.wait()

    async def answer() -> int:
        return 1

    calls = EnvironmentCalls(deadline_s=30)
    calls.start("blocked", block)
    began = time.monotonic()
    while not calls.lost_threads and time.monotonic() - began < 10:
        assert calls.take_answers() == []
        time.sleep(0.005)
    calls.start("later", answer)
    assert [taken.value for taken in take_answer_of(calls, "later")] == [1]
    held.set()
    assert [taken.key for taken in take_all(calls, 5)] == ["blocked"]
    calls.close()


def test_an_environment_that_ends_its_thread_has_raised() -> None:
    class Unreadable(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    def raise_unreadable() -> Any:
        raise Unreadable

    async def exit_later() -> Any:
        raise KeyboardInterrupt("enough")

    calls = EnvironmentCalls(deadline_s=5)
    for _ in range(2):
        calls.start("exit", sys.exit, "no more")
        calls.start("unreadable", raise_unreadable)
        calls.start("coroutine", exit_later)
        errors = {str(answer.key): answer.error for answer in take_all(calls, 4)}
        assert errors == {
            "exit": "SystemExit: no more",
            "unreadable": "Unreadable: its message cannot be read",
            "coroutine": "KeyboardInterrupt: enough",
        }
    calls.close()


@pytest.mark.parametrize("how", ["gathered", "in the background", "stopped"])
def test_an_event_loop_goes_on_whatever_a_coroutine_raises_in_it(how: str) -> None:
    async def end_process() -> None:
        raise KeyboardInterrupt if how == "in the background" else SystemExit(3)

    async def break_loop() -> str:
        if how == "stopped":
            asyncio.get_running_loop().stop()
        elif how == "gathered":
            await asyncio.gather(end_process())
        else:
            background.add(asyncio.create_task(end_process()))
        await asyncio.sleep(0.05)
        return "broken"

    async def answer() -> str:
        await asyncio.sleep(0.1)
        return "answer"

    background: set[asyncio.Task[None]] = set()
    calls = EnvironmentCalls(deadline_s=5)
    for key in range(4):
        calls.start(key, answer)
    calls.start("breaks", break_loop)
    for key in range(4, 8):
        calls.start(key, answer)
    answers = {answer.key: answer for answer in take_all(calls, 4)}
    assert [answers[key].value for key in range(8)] == ["answer"] * 8
    if how == "gathered":
        assert answers["breaks"].error == "SystemExit: 3"
    else:
        assert answers["breaks"].value == "broken"
    calls.start("later", answer)
    assert [answer.value for answer in take_all(calls, 4)] == ["answer"]
    assert calls.lost_threads == 0
    calls.close()


def test_an_event_loop_ends_with_its_calls() -> None:
    async def answer() -> int:
        return 1

    calls = EnvironmentCalls(deadline_s=5, threads=1)
    calls.start("first", answer)
    assert len(take_all(calls, 4)) == 1
    calls.close()
    deadline = time.monotonic() + 5
    while not calls._loops[0].is_closed() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert calls._loops[0].is_closed()


def test_threads_that_are_lost_do_not_use_up_the_stand_ins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("truegold.train.turns.calls.MOST_THREADS", 8)
    held = threading.Event()
    calls = EnvironmentCalls(deadline_s=0.2, threads=2)
    for key in range(12):
        calls.start(key, held.wait)
    assert all(answer.is_late for answer in take_all(calls, 20))
    assert (calls.lost_threads, calls._threads) == (12, 2)
    # Those that are left get stand-ins as they did in the beginning.
    calls._deadline_s = 30
    waits = threading.Event()
    for key in range(2):
        calls.start(key, waits.wait)
    calls.start("last", lambda: 1)
    assert [answer.value for answer in take_answer_of(calls, "last")] == [1]
    held.set()
    waits.set()
    take_all(calls, 5)
    deadline = time.monotonic() + 5
    while calls._threads > 2 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert calls._threads == 2
    calls.close()


def test_a_process_has_an_end_of_threads_that_are_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    # The threads of other tests end when they like.
    monkeypatch.setattr("truegold.train.turns.calls.THREAD_NAME", "counted-here")
    monkeypatch.setattr("truegold.train.turns.calls.MOST_ALIVE", 4)
    held = threading.Event()
    calls = EnvironmentCalls(deadline_s=0.1, threads=1)
    for key in range(6):
        calls.start(key, held.wait)
    with pytest.raises(SetupError, match="no thread left for calls of environments: 4 calls have never returned"):
        take_all(calls, 10)
    held.set()


def test_what_is_read_of_an_answer_is_part_of_the_call() -> None:
    def read(value: object) -> str:
        if value == "bad":
            raise AnswerError("it is bad")
        return f"{value} in {threading.current_thread().name}"

    async def later(value: str) -> str:
        return value

    calls = EnvironmentCalls(deadline_s=5)
    calls.start("good", lambda: "good", read=read)
    calls.start("bad", lambda: "bad", read=read)
    calls.start("late and good", later, "good", read=read)
    calls.start("late and bad", later, "bad", read=read)
    answers = {answer.key: answer.value or answer.error for answer in take_all(calls, 4)}
    good = f"good in {THREAD_NAME}"
    assert answers == {"good": good, "bad": "it is bad", "late and good": good, "late and bad": "it is bad"}
    calls.close()


def test_an_error_is_described_by_what_can_be_written_anywhere() -> None:
    assert describe_error(ValueError("half \ud83d")) == "ValueError: half \\ud83d"
