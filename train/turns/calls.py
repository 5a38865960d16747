"""Calls into environments, many at once: each has a deadline, and none can hold up the others.

A plain function runs in a thread, a coroutine on one event loop. While a function waits for something, another thread
stands in for its own, so that those that wait behind it need not wait for its deadline. A function that never returns
cannot be ended: its thread is given up, a daemon that dies with the process. An event loop goes on whatever a coroutine
raises in it, since the others run there too.
"""

from __future__ import annotations

import asyncio
import inspect
import queue
import threading
import time
from collections.abc import Awaitable, Callable, Hashable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from truegold.verifiers import SetupError, TruegoldError

THREADS = 16
"""Threads that call environments. An environment seldom computes; most of the time it waits for something."""
STAND_IN_S = 0.1
"""After so many seconds a call is taken to wait, and its thread gets a stand-in where other calls are queued."""
GATHER_S = 0.0005
"""Answers that come within so many seconds of each other are taken together."""
BLOCKED_S = 1.0
"""An event loop that has not come round for so long is blocked by a coroutine that waits without awaiting."""
MOST_THREADS = 512
"""No more stand-ins are started beyond so many threads, those aside that were given up."""
MOST_ALIVE = 4096
"""Threads that a process may have here, those that were given up among them. In a long run whose environments hang now
and then they would take all that the machine has, and whatever needs a thread next would fail without saying why."""
THREAD_NAME = "truegold-environments"


class AnswerError(TypeError):
    """What an environment has returned cannot be used; the message says why."""


@dataclass(frozen=True)
class Answer:
    """What came of a call."""

    key: Hashable
    value: Any = None
    error: str | None = None
    """What it raised, with its kind; `deadline` where it had none of its seconds left."""
    is_late: bool = False


@dataclass
class _Call:
    key: Hashable
    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    read: Callable[[Any], Any]
    started: float | None = None
    is_over: bool = False
    has_stand_in: bool = False
    """Whether another thread has taken the place of the one that calls."""
    has_returned: bool = False
    """Whether its thread has come back from it."""
    is_lost: bool = False
    """Whether its thread was given up."""
    future: Any = None
    """The coroutine's, where it is one."""


class EnvironmentCalls:
    """Starts calls and hands out what came of them, in the order in which they end. Used from one thread."""

    def __init__(self, deadline_s: float, threads: int = THREADS) -> None:
        self._deadline_s = deadline_s
        self._waiting: queue.SimpleQueue[_Call | None] = queue.SimpleQueue()
        self._answers: queue.SimpleQueue[tuple[_Call, Answer]] = queue.SimpleQueue()
        self._running: dict[Hashable, _Call] = {}
        self._threads = 0
        """Those that were not given up."""
        self._threads_lock = threading.Lock()
        """Guards `_threads`, and which thread a call has."""
        self._is_closed = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._loops: list[asyncio.AbstractEventLoop] = []
        """The present event loop, and those that were given up."""
        self._beat_asked: float | None = None
        """When the event loop was asked for a sign of life that has not come."""
        self.lost_threads = 0
        """Threads that were given up, since what they call does not return."""
        with self._threads_lock:
            if sum(self._start_thread() for _ in range(threads)) == 0:
                raise self._no_thread_error()

    @property
    def pending(self) -> int:
        """How many calls have no answer yet."""
        return len(self._running)

    def start(
        self,
        key: Hashable,
        function: Callable[..., Any],
        *arguments: Any,
        read: Callable[[Any], Any] = lambda value: value,
    ) -> None:
        """Start a call; its answer has this key.

        read: makes the answer's value of what the function returns or, where that is awaitable, of what that yields.
        It is part of the call, since what it reads may be code of the function's author.
        """
        call = _Call(key, function, arguments, read)
        self._running[key] = call
        self._waiting.put(call)

    def take_answers(self, wait_s: float = 0.0) -> list[Answer]:
        """Return what has ended since the last time, and every call whose deadline has passed.

        wait_s: how long to wait for an answer where there is none yet. Those that come right behind it come along.
        Raises SetupError where so many calls have never returned that there is no thread for others.
        """
        answers = self._take_ended(wait_s)
        now = time.monotonic()
        late = [
            call
            for call in self._running.values()
            if call.started is not None and now - call.started > self._deadline_s
        ]
        for call in late:
            if call.future is not None:
                call.future.cancel()
            else:
                self._give_up(call)
            error = f"no answer within {self._deadline_s:g} s"
            answers.append(self._end(call, Answer(call.key, error=error, is_late=True)))
        self._stand_in(now)
        self._check_loop(now)
        return answers

    def _take_ended(self, wait_s: float) -> list[Answer]:
        """Return what has ended since the last time."""
        answers: list[Answer] = []
        until = time.monotonic() + wait_s
        while True:
            try:
                left = until - time.monotonic()
                if left > 0 and self._running:
                    call, answer = self._answers.get(timeout=min(left, GATHER_S) if answers else left)
                else:
                    call, answer = self._answers.get_nowait()
            except queue.Empty:
                break
            if not call.is_over:
                answers.append(self._end(call, answer))
        return answers

    def close(self) -> None:
        """End the threads that still answer."""
        self._is_closed.set()
        for _ in range(self._threads):
            self._waiting.put(None)
        for loop in self._loops:
            # A loop that has closed needs no end.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(loop.stop)

    def _give_up(self, call: _Call) -> None:
        """Give up the thread of a call that does not return; another one takes its place."""
        with self._threads_lock:
            if call.has_returned:
                return
            call.is_lost = True
            self._threads -= 1
            self.lost_threads += 1
            if not call.has_stand_in and not self._start_thread():
                raise self._no_thread_error()
            call.has_stand_in = True

    def _stand_in(self, now: float) -> None:
        """Start a thread in the place of each that waits for something, as far as calls are queued."""
        with self._threads_lock:
            queued = min(self._waiting.qsize(), MOST_THREADS - self._threads)
            if queued <= 0:
                return
            for call in self._running.values():
                is_waiting = call.started is not None and now - call.started > STAND_IN_S and not call.has_returned
                if is_waiting and not call.has_stand_in and queued > 0:
                    call.has_stand_in = self._start_thread()
                    queued -= 1

    def _no_thread_error(self) -> SetupError:
        return SetupError(
            f"There is no thread left for calls of environments; {self.lost_threads:,} calls have never returned.",
            "Give whatever an environment waits for a time limit of its own.",
        )

    def _check_loop(self, now: float) -> None:
        """Give up an event loop that a coroutine blocks, so that later coroutines run on another one."""
        with _LOOP_LOCK:
            if self._loop is None or self._loop.is_closed():
                return
            if self._beat_asked is None:
                self._beat_asked = now
                self._loop.call_soon_threadsafe(self._beat)
            elif now - self._beat_asked > BLOCKED_S:
                self._loop = self._beat_asked = None
                self.lost_threads += 1

    def _beat(self) -> None:
        self._beat_asked = None

    def _end(self, call: _Call, answer: Answer) -> Answer:
        call.is_over = True
        del self._running[call.key]
        return answer

    def _start_thread(self) -> bool:
        """Start another thread, and return whether it could be started. The caller holds the lock."""
        if sum(thread.name == THREAD_NAME for thread in threading.enumerate()) >= MOST_ALIVE:
            return False
        try:
            threading.Thread(target=self._work, name=THREAD_NAME, daemon=True).start()
        except RuntimeError:
            # The machine may allow fewer.
            return False
        self._threads += 1
        return True

    def _work(self) -> None:
        while (call := self._waiting.get()) is not None:
            call.started = time.monotonic()
            try:
                value = call.function(*call.arguments)
                if inspect.isawaitable(value):
                    self._await(call, value)
                else:
                    self._answers.put((call, Answer(call.key, call.read(value))))
            except BaseException as error:
                # An environment that ends its thread, by sys.exit or otherwise, would leave its call unanswered.
                self._answers.put((call, Answer(call.key, error=describe_error(error))))
            with self._threads_lock:
                call.has_returned = True
                if call.has_stand_in and not call.is_lost:
                    self._threads -= 1
            if call.has_stand_in or call.is_lost:
                return

    def _await(self, call: _Call, awaitable: Awaitable[Any]) -> None:
        """Hand a coroutine to the event loop."""

        async def run() -> None:
            try:
                answer = Answer(call.key, call.read(await awaitable))
            except BaseException as error:
                answer = Answer(call.key, error=describe_error(error))
            self._answers.put((call, answer))

        if self._is_closed.is_set():
            # A function that nobody waits for any more has still to end what it began.
            asyncio.run(run())
        else:
            call.future = asyncio.run_coroutine_threadsafe(run(), self._event_loop())

    def _event_loop(self) -> asyncio.AbstractEventLoop:
        with _LOOP_LOCK:
            if self._loop is None or self._loop.is_closed():
                self._loop = asyncio.new_event_loop()
                self._loops.append(self._loop)
                threading.Thread(target=_run, args=(self._loop, self._is_closed), name=THREAD_NAME, daemon=True).start()
            return self._loop


_LOOP_LOCK = threading.Lock()


def _run(loop: asyncio.AbstractEventLoop, is_closed: threading.Event) -> None:
    """Run an event loop until its calls are closed."""
    while not (is_closed.is_set() or loop.is_closed()):
        # A task that raises SystemExit or KeyboardInterrupt ends `run_forever` by it, and so does whoever stops the
        # loop; all other tasks are still to be run.
        with suppress(BaseException):
            loop.run_forever()
    loop.close()


def describe_error(error: BaseException) -> str:
    """Return what went wrong in a line that can be written anywhere."""
    try:
        text = " ".join(str(error).split())[:LONGEST_ERROR].encode("utf-8", "backslashreplace").decode()
    except BaseException:
        text = "its message cannot be read"
    if isinstance(error, AnswerError | TruegoldError):
        # These were written here, and say all.
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


LONGEST_ERROR = 500
"""Characters of an error's text that are kept: an environment may raise a whole page."""
