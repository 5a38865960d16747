"""Concurrent calls of environments. Each call has a deadline, and no call can delay another one.

    calls = EnvironmentCalls(deadline_s=30)
    calls.start("episode 7", environment.step, completion)
    calls.take_answers(wait_s=1.0)     [Answer("episode 7", value=Reply(...))], or [] if no call has ended yet

Plain functions run in threads, coroutines on an event loop.

- A function that waits occupies its thread. If other calls are queued, another thread (a stand-in) is started.
- A function that never returns cannot be ended. Its thread is abandoned; it is a daemon and dies with the process.
- A coroutine that blocks the event loop blocks all coroutines. Later coroutines run on a new loop.
- The event loop continues after any error of a coroutine, because other coroutines run there too.
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
"""The number of threads that call environments. Environments rarely compute and mostly wait."""
STAND_IN_S = 0.1
"""Seconds after which a call counts as waiting. Its thread then gets a stand-in if other calls are queued."""
GATHER_S = 0.0005
"""Answers within this number of seconds of each other are returned together."""
BLOCKED_S = 1.0
"""An event loop that has not responded for this number of seconds counts as blocked by a coroutine."""
MOST_THREADS = 512
"""The largest number of threads. It includes stand-ins, and leaves abandoned threads out."""
MOST_ALIVE = 4096
"""The largest number of threads, with abandoned ones. It keeps hanging environments of a long run from using up the
machine's threads."""
THREAD_NAME = "truegold-environments"
"""The name of all threads of environments."""
LONGEST_ERROR = 500
"""The largest number of characters of an error that are kept."""


class AnswerError(TypeError):
    """An invalid answer of an environment. The message names the reason."""


@dataclass(frozen=True)
class Answer:
    """The value or the error of one call."""

    key: Hashable
    """The key with which the call was started."""
    value: Any = None
    """The return value of the call, or None if there is an `error`."""
    error: str | None = None
    """The error of the call, such as "ValueError: no such tool" or "no answer within 30 s"."""
    is_late: bool = False
    """Whether the call missed its deadline."""


@dataclass
class _Call:
    """A call, from its start until it has an answer and its thread is free."""

    key: Hashable
    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    read: Callable[[Any], Any]
    """A function from the return value to the value of the answer."""
    started: float | None = None
    """The time when a thread took the call from the queue, by `time.monotonic`; None while it is queued."""
    is_over: bool = False
    """Whether an answer was returned. Later answers are dropped."""
    has_stand_in: bool = False
    """Whether a stand-in was started for the thread of this call. The thread then ends when the function returns."""
    has_returned: bool = False
    is_lost: bool = False
    """Whether the thread of the call was abandoned."""
    future: Any = None
    """The future of a coroutine, to cancel it. None for a plain function."""


class EnvironmentCalls:
    """Starts calls, and returns their answers in the order in which they end. Use it from one thread only."""

    def __init__(self, deadline_s: float, threads: int = THREADS) -> None:
        self._deadline_s = deadline_s
        self._waiting: queue.SimpleQueue[_Call | None] = queue.SimpleQueue()
        self._answers: queue.SimpleQueue[tuple[_Call, Answer]] = queue.SimpleQueue()
        self._running: dict[Hashable, _Call] = {}
        self._threads = 0
        self._threads_lock = threading.Lock()
        """Protects `_threads` and the fields of calls about their threads."""
        self._is_closed = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        """The event loop of new coroutines, created for the first one."""
        self._loops: list[asyncio.AbstractEventLoop] = []
        self._loop_lock = threading.Lock()
        """Protects `_loop`, which several threads may create."""
        self._beat_asked: float | None = None
        """The time of a call on the event loop that has not run yet, or None. An old time shows that the loop is
        blocked."""
        self.lost_threads = 0
        """The number of abandoned threads. Their function did not return, or a coroutine blocked their event loop."""
        with self._threads_lock:
            if sum(self._start_thread() for _ in range(threads)) == 0:
                raise self._no_thread_error()

    @property
    def pending(self) -> int:
        """The number of calls without an answer."""
        return len(self._running)

    def start(
        self,
        key: Hashable,
        function: Callable[..., Any],
        *arguments: Any,
        read: Callable[[Any], Any] = lambda value: value,
    ) -> None:
        """Start a call of a function or coroutine. Its answer has the key `key`.

        read: a function from the result to the value of the answer. It may run code of the environment, so it runs
        within the call and its deadline.
        """
        call = _Call(key, function, arguments, read)
        self._running[key] = call
        self._waiting.put(call)

    def take_answers(self, wait_s: float = 0.0) -> list[Answer]:
        """Return the answers of calls that have ended or missed their deadline since the last call of this method.

        wait_s: seconds to wait for a first answer. Answers within `GATHER_S` after it are returned too. Raises
        SetupError if no thread is left because calls never returned.
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
        """Return the answers of calls that have ended since the last call of this method."""
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
        """End free threads and all event loops."""
        self._is_closed.set()
        for _ in range(self._threads):
            self._waiting.put(None)
        for loop in self._loops:
            # A closed loop raises RuntimeError.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(loop.stop)

    def _give_up(self, call: _Call) -> None:
        """Abandon the thread of a call that does not return. Start another thread unless the call has a stand-in."""
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
        """Start stand-ins for waiting threads, at most one for each queued call."""
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
            f"There is no thread left for calls of environments: {self.lost_threads:,} calls have never returned.",
            "Set a timeout for each operation on which the environment waits.",
        )

    def _check_loop(self, now: float) -> None:
        """Abandon the event loop if a coroutine blocks it. Later coroutines run on a new loop."""
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
        """Show that the event loop is not blocked. This runs on the loop."""
        self._beat_asked = None

    def _end(self, call: _Call, answer: Answer) -> Answer:
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
            # The machine does not allow more threads.
            return False
        self._threads += 1
        return True

    def _work(self) -> None:
        """Run queued calls one after another, until a stand-in replaces this thread or the queue is closed."""
        while (call := self._waiting.get()) is not None:
            call.started = time.monotonic()
            try:
                value = call.function(*call.arguments)
                if inspect.isawaitable(value):
                    self._await(call, value)
                else:
                    self._answers.put((call, Answer(call.key, call.read(value))))
            except BaseException as error:
                # BaseException, because an environment may call sys.exit().
                self._answers.put((call, Answer(call.key, error=describe_error(error))))
            with self._threads_lock:
                call.has_returned = True
                if call.has_stand_in and not call.is_lost:
                    self._threads -= 1
            if call.has_stand_in or call.is_lost:
                return

    def _await(self, call: _Call, awaitable: Awaitable[Any]) -> None:
        """Run a coroutine on the event loop, and queue its answer when it ends."""

        async def run() -> None:
            try:
                answer = Answer(call.key, call.read(await awaitable))
            except BaseException as error:
                answer = Answer(call.key, error=describe_error(error))
            self._answers.put((call, answer))

        if self._is_closed.is_set():
            # The event loops have ended. The coroutine runs here to clean up, and its answer is not used.
            asyncio.run(run())
        else:
            call.future = asyncio.run_coroutine_threadsafe(run(), self._event_loop())

    def _event_loop(self) -> asyncio.AbstractEventLoop:
        """Return the event loop of new coroutines. Create one if there is none or the last one was closed."""
        with self._loop_lock:
            if self._loop is None or self._loop.is_closed():
                self._loop = asyncio.new_event_loop()
                self._loops.append(self._loop)
                arguments = (self._loop, self._is_closed)
                threading.Thread(target=_run_loop, args=arguments, name=THREAD_NAME, daemon=True).start()
            return self._loop


def _run_loop(loop: asyncio.AbstractEventLoop, is_closed: threading.Event) -> None:
    """Run an event loop until `is_closed` is set."""
    while not (is_closed.is_set() or loop.is_closed()):
        # A coroutine may end `run_forever` by SystemExit, KeyboardInterrupt or by stopping the loop. Other coroutines
        # are still running, so the loop is started again.
        with suppress(BaseException):
            loop.run_forever()
    loop.close()


def describe_error(error: BaseException) -> str:
    """Return an error as one line of valid UTF-8: "ValueError: no such tool"."""
    try:
        text = " ".join(str(error).split())[:LONGEST_ERROR].encode("utf-8", "backslashreplace").decode()
    except BaseException:
        text = "its message cannot be read"
    if isinstance(error, AnswerError | TruegoldError):
        # Messages of truegold are complete without the name of the exception.
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
