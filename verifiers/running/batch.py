"""Many rows, several processes: `verify_batch`, and `verify_batch_timed` for what each row cost.

Verdicts come out in the order the items went in, while items are still being read: no more than a few chunks are held.
In child processes, a verifier that crashes the interpreter (memory, a signal, `os._exit`) or overruns its deadline
costs its own row only: that row gets score None and says why, all others are judged. With `workers=1`, or few items,
rows are judged in the calling process, where no deadline can be kept and a crash is a crash.
"""

from __future__ import annotations

import itertools
import os
import queue
import sys
import threading
import time
from collections import deque
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import astuple
from typing import Any

from truegold.verifiers.errors import ERROR_TYPES, ConfigError, SetupError, TruegoldError
from truegold.verifiers.processes.child_process import ChildDied, ChildProcess, DeadlinePassed
from truegold.verifiers.running.item import Item, Judge, Timed, from_json
from truegold.verifiers.verdict import Reason, Verdict

SMALL_BATCH = 64
"""Below this many items, starting processes costs more than it saves."""

LOOK_AHEAD = 2
"""Chunks held for each process: one in work, one waiting."""

START_S = 120.0
"""What a new process may need to start on a busy machine. No item's deadline runs meanwhile."""

_CHILD_MODULE = "truegold.verifiers.running.batch_child"
_ATTEMPTS = 2
"""A process may die of what earlier items left behind. An item is blamed when a fresh process dies of it as well."""


def verify_batch(
    items: Iterable[Item], workers: int = 0, chunk: int = 256, item_deadline_s: float = 60.0
) -> Iterator[Verdict]:
    """One verdict for each item, in order. `workers` 0: one process for each core; 1: none, in this process."""
    return _verdicts(verify_batch_timed(items, workers, chunk, item_deadline_s))


def verify_batch_timed(
    items: Iterable[Item], workers: int = 0, chunk: int = 256, item_deadline_s: float = 60.0
) -> Generator[Timed, None, None]:
    """As `verify_batch`, each verdict with the CPU milliseconds that it took."""
    if workers < 0 or chunk < 1 or item_deadline_s <= 0:
        raise ConfigError(
            f"verify_batch got workers={workers}, chunk={chunk}, item_deadline_s={item_deadline_s}.",
            "workers may be 0 (one for each core) or more, chunk 1 or more, the deadline above 0.",
        )
    return _verify(iter(items), workers, chunk, item_deadline_s)


def _verdicts(timed: Generator[Timed, None, None]) -> Iterator[Verdict]:
    with closing(timed):  # whoever stops reading verdicts stops the processes behind them
        for verdict, _ in timed:
            yield verdict


def _verify(items: Iterator[Item], workers: int, chunk: int, item_deadline_s: float) -> Generator[Timed, None, None]:
    judge = Judge()
    if workers == 0:
        head = list(itertools.islice(items, SMALL_BATCH))
        items = itertools.chain(head, items)
        workers = _cores() if len(head) == SMALL_BATCH else 1
    if workers == 1:
        yield from map(judge.timed, items)
        return
    pool = _Pool(workers, item_deadline_s)
    waiting: deque[Future[list[Timed]]] = deque()
    try:
        while batch := list(itertools.islice(items, chunk)):
            for name in {item.verifier for item in batch}:
                judge.verifier(name)  # a misspelt name is one error here, not one in each process
            waiting.append(pool.submit(batch))
            if len(waiting) >= LOOK_AHEAD * workers:
                yield from waiting.popleft().result()
        while waiting:
            yield from waiting.popleft().result()
    finally:
        pool.close()


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class _Pool:
    """A thread for each process: the thread waits, keeps the deadline and replaces the process."""

    def __init__(self, workers: int, item_deadline_s: float) -> None:
        self._seats: queue.SimpleQueue[_Seat] = queue.SimpleQueue()
        self._all = [_Seat(item_deadline_s) for _ in range(workers)]
        for seat in self._all:
            self._seats.put(seat)
        self._threads = ThreadPoolExecutor(max_workers=workers, thread_name_prefix="truegold-verify")

    def submit(self, items: list[Item]) -> Future[list[Timed]]:
        return self._threads.submit(self._run, items)

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)
        for seat in self._all:
            seat.interrupt()
        self._threads.shutdown(wait=True)
        for seat in self._all:
            seat.stop()

    def _run(self, items: list[Item]) -> list[Timed]:
        seat = self._seats.get()
        try:
            return seat.judge(items)
        finally:
            self._seats.put(seat)


class _Seat:
    """The place of one child process, whichever child sits there."""

    def __init__(self, item_deadline_s: float) -> None:
        self._item_deadline_s = item_deadline_s
        self._child: ChildProcess | None = None
        self._closed = False
        self._lock = threading.Lock()  # `interrupt` comes from another thread

    def judge(self, items: list[Item]) -> list[Timed]:
        judged: list[Timed] = []
        failures = 0
        while len(judged) < len(items):
            # After a death the suspect goes alone: what follows it must not be judged in a process it has damaged.
            batch = items[len(judged) :] if failures == 0 else [items[len(judged)]]
            try:
                for timed in self._ask(batch):
                    judged.append(timed)
                    failures = 0
            except DeadlinePassed:
                self.stop()
                late = Verdict(None, Reason.TIMEOUT, evidence={"item_deadline_s": self._item_deadline_s})
                judged.append(Timed(late, None))
                failures = 0
            except ChildDied as error:
                self.stop()
                failures += 1
                if failures == _ATTEMPTS:
                    what = f"the verifier's process {error}"
                    judged.append(Timed(Verdict(None, Reason.VERIFIER_ERROR, evidence={"error": what}), None))
                    failures = 0
        return judged

    def interrupt(self) -> None:
        """From another thread: the one in `judge` gives up."""
        with self._lock:
            self._closed = True
            if self._child is not None:
                self._child.interrupt()

    def stop(self) -> None:
        with self._lock:
            child, self._child = self._child, None
        if child is not None:
            child.kill()

    def _ask(self, items: list[Item]) -> Iterator[Timed]:
        child = self._seated()
        child.send([astuple(item) for item in items], time.monotonic() + self._item_deadline_s)
        for _ in items:
            yield _read(child.receive(time.monotonic() + self._item_deadline_s))

    def _seated(self) -> ChildProcess:
        with self._lock:
            if self._closed:
                raise _Closed
            if self._child is not None:
                return self._child
            child = self._child = ChildProcess(_CHILD_MODULE)
        try:
            child.send({"path": sys.path}, time.monotonic() + START_S)
            child.receive(time.monotonic() + START_S)
        except (ChildDied, DeadlinePassed) as error:
            if self._closed:
                raise _Closed from error
            raise SetupError(
                f"a process of verify_batch did not start ({error or 'no answer in time'}).",
                f"See why: python -m {_CHILD_MODULE} < /dev/null, or use workers=1.",
            ) from error
        return child


class _Closed(Exception):
    """The caller has stopped reading verdicts."""


def _read(reply: dict[str, Any]) -> Timed:
    if "problem" in reply:
        kind, message, hint = reply["problem"]
        raise ERROR_TYPES.get(kind, TruegoldError)(message, hint)
    if "bug" in reply:
        raise RuntimeError(f"a verifier failed in a process of verify_batch:\n{reply['bug']}")
    return Timed(from_json(reply["verdict"]), reply["cpu_ms"])
