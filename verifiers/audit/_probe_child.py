"""The process in which a verifier is probed (`probe.py` is the parent's side).

First line in: where to import from, which verifier, how much CPU time a verdict and how much memory the process may
take. Every further line is an operation, answered by one line. The process may be killed at any time: by its own timer
for CPU time, which the verifier cannot catch unless it means to, by the kernel, or by the parent after its deadline.
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

from truegold.verifiers.audit.hostile_case import EXECUTED
from truegold.verifiers.gold import gold_response
from truegold.verifiers.processes.child_serve import Conversation, limit_memory
from truegold.verifiers.registry import resolve
from truegold.verifiers.running.item import Item, to_json
from truegold.verifiers.verdict import Reason, Verdict, Verifier

THREADS = 8
ROUNDS = 10
"""How often each thread judges every item: races need chances."""

SWITCH_INTERVAL_S = 1e-5
"""Between threads while they are tested, 500 times as often as usual: what is shared and unguarded then shows."""

KILL_FACTOR, KILL_EXTRA_S = 1.5, 0.5
"""A verdict is cut short at this multiple of its CPU time and so much more: late enough to be measured as too slow."""


def main() -> None:
    with Conversation() as conversation:
        requests = conversation.requests()
        hello = next(requests, None)
        if hello is None:
            return
        sys.path[:] = hello["path"]
        try:
            verifier = _load(hello)
        except Exception as error:
            conversation.reply({"not_loaded": f"{type(error).__name__}: {error}"})
            return
        limit_memory(_address_space() + hello["memory_bytes"])
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
    items = [Item(*fields) for fields in request["items"]]
    match request["operation"]:
        case "judge":
            return [_timed(verifier, item, cpu_s) for item in items]
        case "pickled":
            return _pickled(verifier, items)
        case "thread":
            return _in_threads(verifier, items, threads=1, rounds=1)
        case "threads":
            return _in_threads(verifier, items, threads=THREADS, rounds=ROUNDS)
        case "task":
            return asyncio.run(_in_tasks(verifier, items))


def _timed(verifier: Verifier, item: Item, cpu_s: float) -> dict[str, Any]:
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_PROF, cpu_s * KILL_FACTOR + KILL_EXTRA_S)
    others, process, thread = _others_cpu_s(), time.process_time(), time.thread_time()
    observed = _judge(verifier, item)
    # While the timer runs, Linux counts the process's time in ticks of some milliseconds; this thread's is exact.
    own = max(time.thread_time() - thread, time.process_time() - process)
    observed["cpu_s"] = own + _others_cpu_s() - others
    signal.setitimer(signal.ITIMER_PROF, 0)
    return observed


def _judge(verifier: Verifier, item: Item) -> dict[str, Any]:
    os.environ.pop(EXECUTED, None)
    observed: dict[str, Any] = {"verdict": None, "failure": None, "evidence": None}
    try:
        info = json.loads(item.verifier_args)
        verdict: object = verifier(item.response, item.gold, problem=item.problem, info=info)
    except (Exception, SystemExit) as error:
        observed["failure"] = f"raised {type(error).__name__}: {error}"
        return observed
    if EXECUTED in os.environ:
        observed["failure"] = "ran the answer as code"
    elif not isinstance(verdict, Verdict):
        observed["failure"] = f"returned {type(verdict).__name__}, not a Verdict"
    else:
        observed["verdict"] = {**to_json(verdict), "evidence": {}}
        observed["evidence"] = _not_json(verdict)
        if verdict.reason is Reason.VERIFIER_ERROR:
            observed["failure"] = f"raised {verdict.evidence.get('error')}"
    return observed


def _not_json(verdict: Verdict) -> str | None:
    """Why the evidence is no JSON, if it is none."""
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


def _pickled(verifier: Verifier, items: list[Item]) -> Any:
    try:
        copy: Verifier = pickle.loads(pickle.dumps(verifier))
    except Exception as error:
        return {"not_pickled": f"{type(error).__name__}: {error}"}
    return [_judge(copy, item) for item in items]


def _in_threads(verifier: Verifier, items: list[Item], threads: int, rounds: int) -> list[list[dict[str, Any]]]:
    """What each thread saw: every item, `rounds` times; each thread begins somewhere else."""
    seen: list[list[dict[str, Any]]] = [[] for _ in range(threads)]
    start = threading.Barrier(threads)

    def work(number: int) -> None:
        order = [(number + index) % len(items) for index in range(len(items))]
        start.wait()
        for _ in range(rounds):
            for index in order:
                seen[number].append({**_judge(verifier, items[index]), "item": index})

    interval = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    workers = [threading.Thread(target=work, args=(number,)) for number in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    sys.setswitchinterval(interval)
    return seen


async def _in_tasks(verifier: Verifier, items: list[Item]) -> list[list[dict[str, Any]]]:
    async def one(index: int) -> dict[str, Any]:
        await asyncio.sleep(0)
        return {**_judge(verifier, items[index]), "item": index}

    return [await asyncio.gather(*(one(index) for index in range(len(items))))]


def _address_space() -> int:
    """Bytes of address space in use; 0 where the system does not tell, which leaves the whole limit to the verifier."""
    statm = Path("/proc/self/statm")
    return int(statm.read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE") if statm.exists() else 0


def _others_cpu_s() -> float:
    """CPU time of processes this one has started, on Linux of those still running too: work must not hide in one."""
    return sum(os.times()[2:4]) + sum(_descendants_cpu_s(os.getpid()))


def _descendants_cpu_s(pid: int) -> list[float]:
    found = []
    for listing in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in _read(listing).split():
            fields = _read(Path(f"/proc/{child}/stat")).rpartition(")")[2].split()
            if fields:
                ticks = sum(map(int, fields[11:15]))  # user and system time, its own and of children it waited for
                found += [ticks / os.sysconf("SC_CLK_TCK"), *_descendants_cpu_s(int(child))]
    return found


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:  # it has just ended
        return ""


if __name__ == "__main__":
    main()
