"""Judges many rows in child processes.

    verify_batch         verdicts on many rows
    verify_batch_timed   verdicts with the cost of each row
    BatchVerifier        several batches with the same child processes
    verify_one           a single row

An `Item` is a row with its response. Verdicts come in the order of the rows. Rows are read in chunks while earlier ones
are judged, so only a few chunks are in memory.

If a verifier crashes its child process (out of memory, a signal, `os._exit`) or exceeds its deadline, only the row at
fault has the score None. A user's verifier always runs in a child process, since a deadline can only be enforced from
outside. Built-in verifiers limit their own work. They run in the calling process for a small batch or `workers=1`.

A batch is stopped if more rows time out than `max_timeouts` allows (`TimeoutTally`). For 256 rows and a limit of .1:

    3 rows time out                           3 verdicts without a score, with the reason `timeout`
    30 rows time out                          GuardError at the 26th timeout
    the first 8 rows, on 2 problems           GuardError at the 8th, since 248 more timeouts would take hours
"""

from __future__ import annotations

import itertools
import json
import os
import queue
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Generator, Iterable, Iterator, Mapping, Sized
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import astuple, dataclass, field
from typing import Any, NamedTuple, NoReturn

from truegold.verifiers.checked import checked, checked_class
from truegold.verifiers.gold import BadGold, gold_and_arguments, golds_in, judge_any, judges_solutions
from truegold.verifiers.registry import BUILT_IN, check_options, require_name, resolve, unknown_option
from truegold.verifiers.sandbox.child_process import (
    ChildDied,
    ChildProcess,
    DeadlinePassed,
    describe_start,
    python_module,
    usable_cores,
)
from truegold.verifiers.sandbox.errors import ERROR_TYPES, ConfigError, GuardError, SetupError, TruegoldError
from truegold.verifiers.sandbox.pool import last_run
from truegold.verifiers.verdict import Reason, Verdict, Verifier

SMALL_BATCH = 64
"""Smaller batches of built-in verifiers are judged in the calling process, where they take less time."""
LOOK_AHEAD = 2
"""Number of chunks in memory for each process: one is being judged, one waits."""
START_S = 120.0
"""Maximum time that a process takes to start on a busy machine, in seconds. It is not part of a row's deadline."""
DEADLINE_S = 60.0
"""The default deadline of a verdict, in seconds. Built-in verifiers always get at least this."""
MAX_TIMEOUTS = 0.1
"""The default share of verdicts that may time out before a run stops. `verify_batch` itself has no limit by default."""
HANGING = 8
"""A verifier is stopped if its first 8 verdicts, on more than one problem, all time out."""
MIN_ROWS = 64
"""Shares of timeouts are computed as if there were at least this many rows."""
_CHILD_MODULE = "truegold.verifiers.running.batch_child"
_STARTS = 3
"""Number of attempts to start a process. The kernel may kill a process at its start for lack of memory."""
_ATTEMPTS = 2
"""Number of attempts to judge a row. The first process may die because of earlier rows; the second process is new."""


@dataclass(frozen=True, slots=True)
class Item:
    """One response to judge, with everything that its verifier needs."""

    response: str
    """The response as the model wrote it."""
    gold: Any
    """The reference answer, or None for verifiers without gold. In a list of accepted golds, the first one is kept
    here, and the others become the argument `other_golds`."""
    verifier: str = "math"
    """The verifier's name or import string."""
    verifier_args: Any = "{}"
    """The verifier's arguments (`info`) as JSON text. A mapping is checked and converted to text."""
    problem: str | None = None
    """The problem, for verifiers that read it."""
    unread_gold: str | None = None
    """The reason why gold is invalid, or None if it is valid."""

    def __post_init__(self) -> None:
        """Raise ConfigError for a verifier that is not a name, and for invalid options in a mapping."""
        if type(self.verifier) is not str:
            require_name(self.verifier)
        if isinstance(self.verifier_args, Mapping):
            check_options(self.verifier, self.verifier_args)
            object.__setattr__(self, "verifier_args", json.dumps(dict(self.verifier_args)))
        if self.gold is not None and type(self.gold) is not str:
            self._read_gold()

    def _read_gold(self) -> None:
        try:
            golds = golds_in(self.gold)
        except BadGold as error:
            golds = []
            object.__setattr__(self, "unread_gold", str(error))
        gold, verifier_args = _gold_and_arguments(golds, self.verifier, self.verifier_args)
        object.__setattr__(self, "gold", gold)
        object.__setattr__(self, "verifier_args", verifier_args)


class TimedVerdict(NamedTuple):
    """A verdict and its cost. `Verdict` itself has no cost, so that verdicts on equal rows are equal."""

    verdict: Verdict
    cpu_ms: float | None
    """CPU milliseconds of the judging thread, without processes that the verifier started. None if the judging process
    died."""
    program_s: float | None = None
    """CPU time plus sleeping time, in seconds, of the last program that the verifier ran; None if it ran no program."""


class ResolvedVerifiers:
    """The verifiers of a batch, each resolved once."""

    def __init__(self) -> None:
        self._by_name: dict[str, Verifier] = {}

    def resolve(self, name: str) -> Verifier:
        """Return the verifier with this name or import string. Raises ConfigError if there is none."""
        if name not in self._by_name:
            self._by_name[name] = resolve(name)
        return self._by_name[name]

    def judge(self, item: Item) -> TimedVerdict:
        """Return the verdict on an item. An item with a field of a wrong type gets no score."""
        # The time for importing the verifier does not count as a cost of the item.
        verifier = self.resolve(item.verifier)
        last_run.own_s = None
        start = time.thread_time()
        verdict = _judge(verifier, item)
        return TimedVerdict(verdict, (time.thread_time() - start) * 1000, last_run.own_s)


def _judge(verifier: Verifier, item: Item) -> Verdict:
    response: object = item.response
    if not isinstance(response, str):
        return _unjudgeable(f"response must be a text; this is {type(response).__name__} {response!r:.60}")
    if item.unread_gold is not None and not judges_solutions(verifier):
        return Verdict(None, Reason.GOLD_UNPARSED, evidence={"error": item.unread_gold})
    try:
        info = json.loads(item.verifier_args)
    except (ValueError, RecursionError) as error:
        return _unjudgeable(f"verifier_args is not a JSON object: {error}")
    if not isinstance(info, dict):
        return _unjudgeable(f"verifier_args is not a JSON object: it is {item.verifier_args[:40]}")
    if info and (mistake := unknown_option(verifier, info)) is not None:
        return _unjudgeable(mistake)
    return judge_any(verifier, response, item.gold, item.problem, info)


def _gold_and_arguments(golds: list[str], verifier: str, verifier_args: str) -> tuple[str | None, str]:
    """Return the first gold, and the arguments as JSON with the other golds.

    Arguments that are not a JSON object are returned unchanged; `_judge` reports them.
    """
    if len(golds) > 1:
        try:
            arguments = json.loads(verifier_args)
        except (ValueError, RecursionError):
            arguments = None
        if isinstance(arguments, dict):
            gold, arguments = gold_and_arguments(golds, verifier, arguments)
            return gold, json.dumps(arguments)
    return next(iter(golds), None), verifier_args


def _unjudgeable(error: str) -> Verdict:
    return Verdict(None, Reason.VERIFIER_ERROR, evidence={"error": error})


def verdict_to_json(verdict: Verdict) -> dict[str, Any]:
    """Return the verdict as a dict that `json` can write, provided that its evidence can be written."""
    fields = {"score": verdict.score, "reason": verdict.reason, "extracted": verdict.extracted}
    return {**fields, "evidence": dict(verdict.evidence)}


def verdict_from_json(fields: Mapping[str, Any]) -> Verdict:
    """Return the verdict for a dict from `verdict_to_json`."""
    return Verdict(fields["score"], Reason(fields["reason"]), fields["extracted"], fields["evidence"])


@checked
def verify_batch(
    rows: Iterable[Item],
    workers: int = 0,
    chunk: int = 256,
    item_deadline_s: float = DEADLINE_S,
    max_timeouts: float = 1.0,
) -> Iterator[Verdict]:
    """Return one verdict for each row, in order.

    workers: the number of child processes; 0 uses one per core, or none for a small batch.
    chunk: the number of rows that a process gets at a time.
    item_deadline_s: seconds for one row; after that its verdict has no score and the reason `timeout`.
    max_timeouts: the share of a verifier's rows that may time out; 1 for no limit.

    Raises ConfigError for an invalid argument, row or verifier, SetupError if a process cannot be started, and
    GuardError if a verifier hangs.
    """
    return _without_costs(verify_batch_timed(rows, workers, chunk, item_deadline_s, max_timeouts))


def verify_batch_timed(
    rows: Iterable[Item],
    workers: int = 0,
    chunk: int = 256,
    item_deadline_s: float = DEADLINE_S,
    max_timeouts: float = 1.0,
) -> Generator[TimedVerdict, None, None]:
    """Return the verdicts of `verify_batch`, each with its cost."""
    return _verify_once(BatchVerifier(workers, chunk, item_deadline_s, max_timeouts), rows)


def _verify_once(verifier: BatchVerifier, rows: Iterable[Item]) -> Generator[TimedVerdict, None, None]:
    with closing(verifier):
        yield from verifier.verify_timed(rows)


class _Verdicts(Iterator[Verdict]):
    """An iterator over verdicts, each of which is made when it is read."""

    def __init__(self, verdicts: Generator[Verdict, None, None]) -> None:
        self._verdicts = verdicts
        self.close = verdicts.close

    def __next__(self) -> Verdict:
        return next(self._verdicts)

    def __getitem__(self, index: object) -> NoReturn:
        """Raise TypeError with a hint, because an iterator has no index."""
        raise TypeError(f"verdicts come one after the other: list(verify_batch(rows))[{index}]")


def _without_costs(timed_verdicts: Generator[TimedVerdict, None, None]) -> Iterator[Verdict]:
    return _Verdicts(_read_without_costs(timed_verdicts))


def _read_without_costs(timed_verdicts: Generator[TimedVerdict, None, None]) -> Generator[Verdict, None, None]:
    # If the caller stops reading verdicts, `closing` ends the child processes.
    with closing(timed_verdicts):
        for timed in timed_verdicts:
            yield timed.verdict


def _checked(rows: Iterable[Item]) -> Iterator[Item]:
    for row_number, row in enumerate(rows, 1):
        if not isinstance(row, Item):
            raise ConfigError(
                f"verify_batch: row {row_number} is not an Item; it is {type(row).__name__} {row!r:.60}.",
                "Type Item(response, gold).",
            )
        yield row


@dataclass
class _Tally:
    judged: int = 0
    """All verdicts, timeouts included."""
    timeouts: int = 0
    problems: set[tuple[str | None, str | None]] = field(default_factory=set)
    """Up to `HANGING` problems, with their golds, on which the verifier timed out."""


class TimeoutTally:
    """Counts timeouts by verifier. Shares refer to all `rows` if these have a length, else to the rows so far."""

    def __init__(self, max_share: float, deadline_s: float, rows: Iterable[Item] = ()) -> None:
        self._max_share = max_share
        self._deadline_s = deadline_s
        known = rows if isinstance(rows, Sized) else ()
        self._expected = Counter(row.verifier for row in known if isinstance(row, Item))
        self._tallies: dict[str, _Tally] = {}
        self._lock = threading.Lock()

    def add(self, row: Item, verdict: Verdict) -> None:
        """Count a verdict; thread-safe. Raises GuardError if too many verdicts have timed out."""
        with self._lock:
            self._count(row, verdict)

    def _count(self, row: Item, verdict: Verdict) -> None:
        tally = self._tallies.setdefault(row.verifier, _Tally())
        tally.judged += 1
        if verdict.score is not None or verdict.reason is not Reason.TIMEOUT:
            return
        tally.timeouts += 1
        if len(tally.problems) < HANGING:
            tally.problems.add((row.problem, row.gold))
        if self._max_share >= 1:
            return
        expected = max(self._expected.get(row.verifier, 0), tally.judged, MIN_ROWS)
        never_judged = tally.judged == tally.timeouts >= HANGING and len(tally.problems) > 1
        if never_judged or tally.timeouts > self._max_share * expected:
            raise GuardError(
                f"The verifier {row.verifier} hangs: {tally.timeouts} of {tally.judged} verdicts took longer than "
                f"{self._deadline_s:g} s, the last on gold {row.gold!r:.60}.",
                "Mend the verifier or limit its work. The settings next to its workers allow more: deadline_s is the "
                f"time for a verdict, max_timeouts the share that may take longer (now {self._max_share:g}).",
                "timeouts",
            )


@checked_class
class BatchVerifier:
    """Judges several batches like `verify_batch`, but with the same child processes. Thread-safe.

    A user's verifier is imported once, and keeps its loaded data from one batch to the next. After a fork, the forked
    process starts child processes of its own.
    """

    def __init__(
        self, workers: int = 0, chunk: int = 256, item_deadline_s: float = DEADLINE_S, max_timeouts: float = 1.0
    ) -> None:
        """Create a verifier with the arguments of `verify_batch`. Raises ConfigError for an invalid argument."""
        if workers < 0 or chunk < 1 or not item_deadline_s > 0 or not 0 <= max_timeouts <= 1:
            raise ConfigError(
                f"verify_batch got workers={workers}, chunk={chunk}, item_deadline_s={item_deadline_s}, "
                f"max_timeouts={max_timeouts}.",
                "workers may be 0 (one for each core) or more, chunk 1 or more, the deadline above 0, "
                "max_timeouts is a share from 0 to 1.",
            )
        self._workers, self._chunk = workers, chunk
        self._item_deadline_s, self._max_timeouts = item_deadline_s, max_timeouts
        self._verifiers = ResolvedVerifiers()
        self._pool: VerifierPool | None = None
        self._pid = 0
        self._lock = threading.Lock()

    def verify(self, rows: Iterable[Item], tally: TimeoutTally | None = None) -> Iterator[Verdict]:
        """Return one verdict for each row, in order.

        tally: counts the timeouts of several batches together. By default, each batch is counted alone.
        """
        return _without_costs(self.verify_timed(rows, tally))

    def verify_timed(
        self, rows: Iterable[Item], tally: TimeoutTally | None = None
    ) -> Generator[TimedVerdict, None, None]:
        """Return the verdicts of `verify`, each with its cost."""
        tally = tally or TimeoutTally(self._max_timeouts, self._item_deadline_s, rows)
        batches = _checked(rows)
        processes, uses_caller = self._workers, self._workers == 1
        if self._workers == 0:
            head = list(itertools.islice(batches, SMALL_BATCH))
            batches = itertools.chain(head, batches)
            uses_caller = len(head) < SMALL_BATCH
            processes = 1 if uses_caller else usable_cores()
        waiting: deque[Future[list[TimedVerdict]]] = deque()
        try:
            while batch := list(itertools.islice(batches, self._chunk)):
                if uses_caller and all(row.verifier in BUILT_IN for row in batch):
                    while waiting:
                        yield from waiting.popleft().result()
                    yield from map(self._verifiers.judge, batch)
                    continue
                # A misspelt name raises one error here, instead of one in each process.
                for name in {row.verifier for row in batch}:
                    self._verifiers.resolve(name)
                waiting.append(self._running_pool().submit(batch, tally))
                if len(waiting) >= LOOK_AHEAD * processes:
                    yield from waiting.popleft().result()
            while waiting:
                yield from waiting.popleft().result()
        finally:
            for unread in waiting:
                unread.cancel()

    def close(self) -> None:
        """End the child processes, also in the middle of a batch; the next batch starts new ones."""
        with self._lock:
            pool, self._pool = self._pool, None
        # In a forked process the pool has no threads, and its child processes belong to the parent.
        if pool is not None and self._pid == os.getpid():
            pool.close()

    def _running_pool(self) -> VerifierPool:
        with self._lock:
            if self._pool is None or self._pid != os.getpid():
                self._pid = os.getpid()
                self._pool = VerifierPool(self._workers or usable_cores(), self._item_deadline_s)
            return self._pool


class VerifierPool:
    """A pool of child processes, each with a thread that enforces deadlines and replaces the process if it dies."""

    def __init__(self, workers: int, item_deadline_s: float) -> None:
        self._seats = [VerifierSeat(item_deadline_s) for _ in range(workers)]
        # Last in, first out: a new process is started only if all running ones are busy.
        self._free_seats: queue.LifoQueue[VerifierSeat] = queue.LifoQueue()
        for seat in self._seats:
            self._free_seats.put(seat)
        self._threads = ThreadPoolExecutor(max_workers=workers, thread_name_prefix="truegold-verify")

    def submit(self, batch: list[Item], tally: TimeoutTally) -> Future[list[TimedVerdict]]:
        """Judge a batch in the next free process; the tally counts its timeouts."""
        return self._threads.submit(self._judge, batch, tally)

    @property
    def pids(self) -> list[int]:
        """The process ids of the running child processes."""
        return [pid for seat in self._seats if (pid := seat.pid) is not None]

    def close(self) -> None:
        """End the processes, also in the middle of a batch."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        for seat in self._seats:
            seat.interrupt()
        self._threads.shutdown(wait=True)
        for seat in self._seats:
            seat.stop()

    def _judge(self, batch: list[Item], tally: TimeoutTally) -> list[TimedVerdict]:
        seat = self._free_seats.get()
        try:
            return seat.judge(batch, tally)
        except BaseException:
            # Without this stop, replies to this batch would be taken for replies to the next one.
            seat.stop()
            raise
        finally:
            self._free_seats.put(seat)


class VerifierSeat:
    """Holds one child process, and replaces it when it dies or hangs."""

    def __init__(self, item_deadline_s: float) -> None:
        self._item_deadline_s = item_deadline_s
        self._child: ChildProcess | None = None
        self._closed = False
        self._lock = threading.Lock()
        """Guards `_child` and `_closed`, because `interrupt` is called from another thread."""

    def judge(self, batch: list[Item], tally: TimeoutTally) -> list[TimedVerdict]:
        """Return the verdicts on a batch, with a deadline for each row."""
        judged: list[TimedVerdict] = []
        deaths = 0
        while len(judged) < len(batch):
            # After the process died, the row at fault is judged alone, so that it cannot harm other rows.
            unjudged = batch[len(judged) :] if deaths == 0 else [batch[len(judged)]]
            try:
                for row, timed_verdict in zip(unjudged, self._ask(unjudged), strict=True):
                    judged.append(timed_verdict)
                    tally.add(row, timed_verdict.verdict)
                    deaths = 0
            except DeadlinePassed:
                self.stop()
                row = batch[len(judged)]
                judged.append(_no_score(Reason.TIMEOUT, {"item_deadline_s": self._deadline_for(row)}))
                tally.add(row, judged[-1].verdict)
                deaths = 0
            except ChildDied as error:
                self.stop()
                deaths += 1
                if deaths == _ATTEMPTS:
                    judged.append(_no_score(Reason.VERIFIER_ERROR, {"error": f"the verifier's process {error}"}))
                    deaths = 0
        return judged

    @property
    def pid(self) -> int | None:
        """The process id of the child, or None if none is running."""
        with self._lock:
            return None if self._child is None else self._child.pid

    def interrupt(self) -> None:
        """Make a running `judge` raise an error; called from another thread."""
        with self._lock:
            self._closed = True
            if self._child is not None:
                self._child.interrupt()

    def stop(self) -> None:
        """End the child process; the next batch starts a new one."""
        with self._lock:
            child, self._child = self._child, None
        if child is not None:
            child.kill()

    def _ask(self, batch: list[Item]) -> Iterator[TimedVerdict]:
        child = self._running_child()
        child.send([astuple(row) for row in batch], time.monotonic() + self._item_deadline_s)
        for row in batch:
            yield _read_reply(child.receive(time.monotonic() + self._deadline_for(row)))

    def _deadline_for(self, row: Item) -> float:
        return max(self._item_deadline_s, DEADLINE_S) if row.verifier in BUILT_IN else self._item_deadline_s

    def _running_child(self) -> ChildProcess:
        for attempt in range(1, _STARTS + 1):
            with self._lock:
                if self._closed:
                    raise _Closed
                if self._child is not None:
                    return self._child
                child = self._child = ChildProcess(python_module(_CHILD_MODULE))
            try:
                child.send({"path": sys.path}, time.monotonic() + START_S)
                child.receive(time.monotonic() + START_S)
            except (ChildDied, DeadlinePassed) as error:
                if self._closed:
                    raise _Closed from error
                self.stop()
                if isinstance(error, ChildDied) and attempt < _STARTS:
                    continue
                raise SetupError(
                    f"a process of verify_batch did not start: {describe_start(_CHILD_MODULE, error)}.",
                    f"Run python -m {_CHILD_MODULE} < /dev/null to see the error, or use workers=1.",
                ) from error
            return child
        raise AssertionError("unreachable")  # The last attempt returns or raises.


class _Closed(Exception):
    """Raised in `judge` after `interrupt`."""


def _no_score(reason: Reason, evidence: dict[str, Any]) -> TimedVerdict:
    return TimedVerdict(Verdict(None, reason, evidence=evidence), None)


def _read_reply(reply: dict[str, Any]) -> TimedVerdict:
    """Return the verdict in a reply of the child process. Raises the error if the reply holds one."""
    if "user_error" in reply:
        kind, message, hint = reply["user_error"]
        raise ERROR_TYPES.get(kind, TruegoldError)(message, hint)
    if "bug" in reply:
        raise RuntimeError(f"a verifier failed in a process of verify_batch:\n{reply['bug']}")
    return TimedVerdict(verdict_from_json(reply["verdict"]), *reply["costs"])


_VERIFIERS = ResolvedVerifiers()
_PROCESS = BatchVerifier(workers=1)
_TALLY = TimeoutTally(MAX_TIMEOUTS, DEADLINE_S)


def verify_one(row: Item) -> Verdict:
    """Return the verdict on one row, without a score if it times out. Raises GuardError if the verifier hangs.

    Use `verify_batch` for several rows, unless each row depends on the last verdict. Built-in verifiers run in the
    calling process. A user's verifier runs in a child process, which is kept for the next verdict.
    """
    if row.verifier in BUILT_IN:
        return _VERIFIERS.judge(row).verdict
    (verdict,) = _PROCESS.verify([row], _TALLY)
    return verdict
