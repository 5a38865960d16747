"""Main program of the child process in which `probe.py` runs a verifier.

The first line of input has the parent's `sys.path`, the verifier, the CPU time for a verdict and the memory limit. Each
further line is an operation, which is answered by one line. The process may be killed at any time: by its own timer of
CPU time, by the kernel, or by the parent at the deadline.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import pickle
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

from truegold.verifiers.audit.made_answers import EXECUTED
from truegold.verifiers.gold import gold_response
from truegold.verifiers.registry import resolve
from truegold.verifiers.running.batch import Item
from truegold.verifiers.sandbox.child_process import Conversation, limit_memory
from truegold.verifiers.verdict import Reason, Verdict, Verifier

THREADS = 8
SWITCH_INTERVAL_S = 1e-5
"""Seconds between switches of threads: a 500th of Python's default. Short times make races on shared state likely."""

KILL_FACTOR, KILL_EXTRA_S = 1.5, 0.5
"""The process is killed at `KILL_FACTOR` times the CPU limit plus `KILL_EXTRA_S` seconds, so that a slightly slow
verdict is still measured."""


def main() -> None:
    """Answer requests until the parent closes the connection."""
    with Conversation() as conversation:
        requests = conversation.requests()
        if (hello := next(requests, None)) is None:
            return
        sys.path[:] = hello["path"]
        try:
            verifier = _load(hello)
        except (Exception, SystemExit) as error:
            conversation.reply({"not_loaded": f"{type(error).__name__}: {error}"})
            return
        try:
            limit_memory(_address_space() + hello["memory_bytes"])
        except (ValueError, OSError) as error:
            conversation.reply({"not_started": f"its memory cannot be limited: {error}"})
            return
        conversation.reply({"ready": True})
        for request in requests:
            conversation.reply(_answer(verifier, request, hello["cpu_s"]))


def _load(hello: dict[str, Any]) -> Verifier:
    if hello["name"] is not None:
        return resolve(hello["name"])
    verifier: Verifier = pickle.loads(base64.b64decode(hello["pickle"]))
    return verifier


def _answer(verifier: Verifier, request: dict[str, Any], cpu_s: float) -> Any:
    if request["operation"] == "gold_response":
        return _gold_response(verifier, request["gold"])
    rows = [Item(*fields) for fields in request["rows"]]
    match request["operation"]:
        case "judge":
            return [_judge_timed(verifier, row, cpu_s) for row in rows]
        case "pickled":
            return _judge_pickled(verifier, rows)
        case "thread":
            return _judge_in_threads(verifier, rows, threads=1, rounds=1)
        case "threads":
            return _judge_in_threads(verifier, rows, threads=THREADS, rounds=request["rounds"])
        case "task":
            return asyncio.run(_judge_in_tasks(verifier, rows))


def _judge_timed(verifier: Verifier, row: Item, cpu_s: float) -> dict[str, Any]:
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_PROF, cpu_s * KILL_FACTOR + KILL_EXTRA_S)
    children_before, process_before, thread_before = _children_cpu_s(), time.process_time(), time.thread_time()
    observed = _judge(verifier, row)
    # While the timer runs, Linux measures the time of the process in coarse ticks; the thread's time stays exact.
    process_cpu_s = max(time.thread_time() - thread_before, time.process_time() - process_before)
    observed["cpu_s"] = process_cpu_s + _children_cpu_s() - children_before
    signal.setitimer(signal.ITIMER_PROF, 0)
    return observed


def _judge(verifier: Verifier, row: Item) -> dict[str, Any]:
    """Judge a row and return the fields of `probe.Observed`."""
    os.environ.pop(EXECUTED, None)
    observed: dict[str, Any] = dict.fromkeys(("score", "reason", "extracted", "failure"))
    try:
        info = json.loads(row.verifier_args)
        verdict: object = verifier(row.response, row.gold, problem=row.problem, info=info)
    except (Exception, SystemExit) as error:
        return observed | {"failure": f"raised {type(error).__name__}: {error}"}
    if EXECUTED in os.environ:
        return observed | {"failure": "ran the answer as code"}
    if not isinstance(verdict, Verdict):
        return observed | {"failure": f"returned {type(verdict).__name__} instead of a Verdict"}
    failure = f"raised {verdict.evidence.get('error')}" if verdict.reason is Reason.VERIFIER_ERROR else None
    observed = {"score": verdict.score, "reason": verdict.reason, "extracted": verdict.extracted, "failure": failure}
    weakness = verdict.evidence.get("weakness")
    return observed | {"not_json": _not_json(verdict), "weakness": weakness if isinstance(weakness, str) else None}


def _not_json(verdict: Verdict) -> str | None:
    """Return the error from writing the evidence as JSON, or None if it can be written."""
    try:
        json.dumps(dict(verdict.evidence), allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        return str(error)
    return None


def _gold_response(verifier: Verifier, gold: str) -> dict[str, Any]:
    try:
        return {"response": gold_response(verifier, gold), "failure": None}
    except Exception as error:
        return {"response": None, "failure": f"gold_response raised {type(error).__name__}: {error}"}


def _judge_pickled(verifier: Verifier, rows: list[Item]) -> Any:
    try:
        copy: Verifier = pickle.loads(pickle.dumps(verifier))
    except Exception as error:
        return {"not_pickled": f"{type(error).__name__}: {error}"}
    return [[{**_judge(copy, row), "row": index} for index, row in enumerate(rows)]]


def _judge_in_threads(verifier: Verifier, rows: list[Item], threads: int, rounds: int) -> list[list[dict[str, Any]]]:
    """Return the verdicts of each thread, which judges every row `rounds` times. Threads start at different rows."""
    observed: list[list[dict[str, Any]]] = [[] for _ in range(threads)]
    start = threading.Barrier(threads)

    def work(thread_index: int) -> None:
        order = [(thread_index + index) % len(rows) for index in range(len(rows))]
        start.wait()
        for _ in range(rounds):
            for index in order:
                observed[thread_index].append({**_judge(verifier, rows[index]), "row": index})

    interval = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    workers = [threading.Thread(target=work, args=(thread_index,)) for thread_index in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    sys.setswitchinterval(interval)
    return observed


async def _judge_in_tasks(verifier: Verifier, rows: list[Item]) -> list[list[dict[str, Any]]]:
    async def judge_row(index: int) -> dict[str, Any]:
        await asyncio.sleep(0)
        return {**_judge(verifier, rows[index]), "row": index}

    return [await asyncio.gather(*(judge_row(index) for index in range(len(rows))))]


def _address_space() -> int:
    """Return the bytes of address space in use, or 0 if the system does not report them."""
    statm = Path("/proc/self/statm")
    return int(statm.read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE") if statm.exists() else 0


def _children_cpu_s() -> float:
    """Return the CPU time of ended child processes, and on Linux also that of running ones."""
    return sum(os.times()[2:4]) + sum(_descendants_cpu_s(os.getpid()))


def _descendants_cpu_s(pid: int) -> list[float]:
    cpu_s = []
    for listing in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in _read(listing).split():
            if fields := _read(Path(f"/proc/{child}/stat")).rpartition(")")[2].split():
                # The user and system time of the process, and of its ended children.
                ticks = sum(map(int, fields[11:15]))
                cpu_s += [ticks / os.sysconf("SC_CLK_TCK"), *_descendants_cpu_s(int(child))]
    return cpu_s


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:  # The process has just ended.
        return ""


if __name__ == "__main__":
    main()
