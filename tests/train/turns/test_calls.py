"""Calls that wait, end their thread or never return hold up no other one."""

from __future__ import annotations

import sys
import threading
import time
from typing import Any

from truegold.train.turns.calls import THREADS, Answer, Calls


def take_all(calls: Calls, seconds: float) -> list[Answer]:
    answers: list[Answer] = []
    began = time.monotonic()
    while calls.pending and time.monotonic() - began < seconds:
        answers += calls.take_answers()
        time.sleep(0.005)
    return answers


def test_calls_that_never_return_hold_up_no_other_until_their_deadline() -> None:
    calls = Calls(deadline_s=30)
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
    calls = Calls(deadline_s=30, threads=1)
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
    calls = Calls(deadline_s=30)
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


def take_answer_of(calls: Calls, key: str) -> list[Answer]:
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

    calls = Calls(deadline_s=30)
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

    calls = Calls(deadline_s=5)
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
