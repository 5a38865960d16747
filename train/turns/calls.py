"""Runs many calls of environments at once. Each has a deadline, and none can delay the others.

    calls = EnvironmentCalls(deadline_s=30)
    calls.start("episode 7", environment.step, completion)
    calls.take_answers(wait_s=1.0)     [Answer("episode 7", value=Reply(...))], or [] if no call has ended yet

A plain function runs in a thread, and a coroutine on one event loop.

- A function that waits keeps its thread busy. If other calls are queued, another thread (a stand-in) is started for
  them.
- A function that never returns cannot be ended. Its thread is given up; as a daemon it dies with the process.
- A coroutine that blocks the event loop blocks all coroutines. The loop is given up, and later coroutines run on a new
  one.
- The event loop goes on after any error of a coroutine, since other coroutines run there too.
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
"""After this many seconds a call counts as waiting, and its thread gets a stand-in if other calls are queued."""
GATHER_S = 0.0005
"""Answers within this many seconds of each other are returned together."""
BLOCKED_S = 1.0
"""An event loop that has not answered for this many seconds is blocked by a coroutine."""
MOST_THREADS = 512
"""The most threads with stand-ins, without those that were given up."""
MOST_ALIVE = 4096
"""The most threads, with those that were given up. Stops a long run with hanging environments from using up the
machine's threads."""
THREAD_NAME = "truegold-environments"
LONGEST_ERROR = 500
"""Characters of an error's text that are kept: an environment may raise a whole page."""


class AnswerError(TypeError):
    """The answer of an environment cannot be used; the message says why."""


@dataclass(frozen=True)
class Answer:
    """The value or the error of one call."""

    key: Hashable
    """The call's, as it was started with."""
    value: Any = None
    """The value that the call has returned, or None if there is an `error`."""
    error: str | None = None
    """The error that the call has raised, such as "ValueError: no such tool", or "no answer within 30 s"."""
    is_late: bool = False
    """Whether its deadline has passed."""


@dataclass
class _Call:
    """A call from its start until it is answered and its thread is free."""

    key: Hashable
    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    read: Callable[[Any], Any]
    started: float | None = None
    """When a thread took it from the queue, by `time.monotonic`; None while it is queued."""
    is_over: bool = False
    """Whether the answer was returned. A later one is dropped."""
    has_stand_in: bool = False
    """Whether a stand-in was started. The call's own thread then ends when it returns."""
    has_returned: bool = False
    """Whether its thread has come back from the function."""
    is_lost: bool = False
    """Whether its thread was given up."""
    future: Any = None
    """The future of a coroutine, to cancel it. None for a plain function."""


class EnvironmentCalls:
    """Starts calls and returns their answers in the order in which they end. Used from one thread."""

    def __init__(self, deadline_s: float, threads: int = THREADS) -> None:
        self._deadline_s = deadline_s
        self._waiting: queue.SimpleQueue[_Call | None] = queue.SimpleQueue()
        self._answers: queue.SimpleQueue[tuple[_Call, Answer]] = queue.SimpleQueue()
        self._running: dict[Hashable, _Call] = {}
        self._threads = 0
        """The number of threads, without those that were given up."""
        self._threads_lock = threading.Lock()
        """Guards `_threads`, and the notes of calls about their threads."""
        self._is_closed = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        """The event loop of new coroutines, made for the first one."""
        self._loops: list[asyncio.AbstractEventLoop] = []
        """All event loops, with those that were given up."""
        self._loop_lock = threading.Lock()
        """Guards `_loop`, which several threads may need at once for the first time."""
        self._beat_asked: float | None = None
        """When the event loop was asked for a sign of life; None once it has given it."""
        self.lost_threads = 0
        """Threads that were given up because a function did not return, or a coroutine blocked their event loop."""
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

        read: makes the answer's value from what the function returns; of a coroutine, from its result. It runs within
        the call, with its deadline, since it may enter the environment author's code.
        """
        call = _Call(key, function, arguments, read)
        self._running[key] = call
        self._waiting.put(call)

    def take_answers(self, wait_s: float = 0.0) -> list[Answer]:
        """Return the answers of calls that have ended since the last call, or whose deadline has passed.

        wait_s: how long to wait for a first answer; answers within `GATHER_S` after it are returned too. Raises
        SetupError if calls that never returned hold all threads.
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
        """Return the answers of calls that have ended since the last time."""
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
        """End the threads that are free and the event loops."""
        self._is_closed.set()
        for _ in range(self._threads):
            self._waiting.put(None)
        for loop in self._loops:
            # A loop that has closed needs no end.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(loop.stop)

    def _give_up(self, call: _Call) -> None:
        """Give up the thread of a call that does not return, and start another one unless it has a stand-in."""
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
        """Start stand-ins for waiting threads, at most as many as calls in the queue."""
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
        with self._loop_lock:
            if self._loop is None or self._loop.is_closed():
                return
            if self._beat_asked is None:
                self._beat_asked = now
                self._loop.call_soon_threadsafe(self._beat)
            elif now - self._beat_asked > BLOCKED_S:
                self._loop = self._beat_asked = None
                self.lost_threads += 1

    def _beat(self) -> None:
        """Give a sign of life; runs on the event loop."""
        self._beat_asked = None

    def _end(self, call: _Call, answer: Answer) -> Answer:
        """Return the answer of a call, which is pending no more."""
        call.is_over = True
        del self._running[call.key]
        return answer

    def _start_thread(self) -> bool:
        """Start another thread, and return whether it could be started. The caller holds `_threads_lock`."""
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
        """Run calls of the queue one after the other, until a stand-in has taken over or the queue is closed."""
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
            # No call waits for the answer any more, and the event loop has ended; the coroutine still has to clean up.
            asyncio.run(run())
        else:
            call.future = asyncio.run_coroutine_threadsafe(run(), self._event_loop())

    def _event_loop(self) -> asyncio.AbstractEventLoop:
        """Return the event loop of new coroutines. Make one if there is none or the last one has closed."""
        with self._loop_lock:
            if self._loop is None or self._loop.is_closed():
                self._loop = asyncio.new_event_loop()
                self._loops.append(self._loop)
                arguments = (self._loop, self._is_closed)
                threading.Thread(target=_run_loop, args=arguments, name=THREAD_NAME, daemon=True).start()
            return self._loop


def _run_loop(loop: asyncio.AbstractEventLoop, is_closed: threading.Event) -> None:
    """Run an event loop until its calls are closed."""
    while not (is_closed.is_set() or loop.is_closed()):
        # A coroutine that raises SystemExit or KeyboardInterrupt ends `run_forever`, and so does one that stops the
        # loop; all others still have to be run.
        with suppress(BaseException):
            loop.run_forever()
    loop.close()


def describe_error(error: BaseException) -> str:
    """Return an error as one line that can be written anywhere, such as "ValueError: no such tool"."""
    try:
        text = " ".join(str(error).split())[:LONGEST_ERROR].encode("utf-8", "backslashreplace").decode()
    except BaseException:
        text = "its message cannot be read"
    if isinstance(error, AnswerError | TruegoldError):
        # These messages are truegold's own, and need no kind in front.
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
