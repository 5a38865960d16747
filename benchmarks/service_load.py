"""The verification service under load: 64 clients, two of its processes killed, bad requests among good ones.

    python benchmarks/service_load.py --verdicts 100000 --out benchmarks/results/service_load.json

Every response is right or wrong by construction, so that each answer can be checked. A request has 1 to 15 responses;
one request in fifty is malformed and has to be refused with 400, one in two hundred is too large (413). A full queue
(429) is retried after the time in the response. Memory is the resident size of the service and its processes.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import signal
import socket
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from publishing import say

CLIENTS = 64
MAX_MB = 1


@dataclass
class Tally:
    """Counts of the responses that clients got."""

    verdicts: int = 0
    wrong: int = 0
    lost: int = 0
    statuses: Counter[int] = field(default_factory=Counter)
    surprises: list[str] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    memory_mb: list[float] = field(default_factory=list)
    killed: list[int] = field(default_factory=list)


def make_request(chance: random.Random) -> tuple[list[dict[str, Any]], list[float]]:
    """Return responses with the scores that they have to get."""
    entries, scores = [], []
    for _ in range(chance.randint(1, 15)):
        top, bottom = chance.randint(1, 400), chance.choice((2, 4, 5, 8))
        is_right = chance.random() < 0.5
        value = top / bottom if is_right else top / bottom + chance.randint(1, 9)
        text = f"We divide {top} by {bottom}. " * chance.randint(1, 5) + f"So it is \\boxed{{{value:g}}}."
        entries.append({"response": text, "gold": f"\\frac{{{top}}}{{{bottom}}}"})
        scores.append(float(is_right))
    return entries, scores


async def run_client(seed: int, address: str, verdicts: int, tally: Tally) -> None:
    """Ask for verdicts until this client has had its share."""
    chance = random.Random(seed)
    received = 0
    async with httpx.AsyncClient(base_url=address, timeout=300) as client:
        while received < verdicts:
            roll = chance.random()
            if roll < 0.02:
                await refused(client, chance.choice((b"{", b"[]", b'{"responses": [{"gold": "1"}]}')), 400, tally)
            elif roll < 0.025:
                await refused(client, b'{"response": "' + b"x" * (MAX_MB * 2**20) + b'"}', 413, tally)
            entries, scores = make_request(chance)
            began = time.monotonic()
            answer = await ask(client, entries, tally)
            tally.seconds.append(time.monotonic() - began)
            tally.statuses[answer.status_code] += 1
            judged = answer.json().get("verdicts", []) if answer.status_code == 200 else []
            tally.lost += len(scores) - len(judged)
            for verdict, score in zip(judged, scores, strict=False):
                tally.verdicts += 1
                if verdict["score"] != score:
                    tally.wrong += 1
                    tally.surprises.append(json.dumps(verdict)[:300])
            received += len(scores)


async def ask(client: httpx.AsyncClient, entries: list[dict[str, Any]], tally: Tally) -> httpx.Response:
    """Post a request, again while the queue is full."""
    while True:
        answer = await client.post("/verify", json={"responses": entries})
        if answer.status_code != 429:
            return answer
        tally.statuses[429] += 1
        await asyncio.sleep(float(answer.headers["retry-after"]))


async def refused(client: httpx.AsyncClient, body: bytes, status: int, tally: Tally, path: str = "/verify") -> None:
    """Send a bad request and see that it is refused."""
    try:
        answer = await client.post(path, content=body)
    except httpx.WriteError:
        # The service has answered and closed before all of a request that is too large was written.
        tally.statuses[status] += 1
        return
    tally.statuses[answer.status_code] += 1
    if answer.status_code != status:
        tally.surprises.append(f"{answer.status_code} in place of {status}")


async def watch(process: subprocess.Popen[bytes], verdicts: int, tally: Tally) -> None:
    """Measure memory, and kill a process of the service at a third and at two thirds of the verdicts."""
    while tally.verdicts + tally.lost < verdicts:
        pids = workers_of(process.pid)
        tally.memory_mb.append(sum(map(resident_mb, [process.pid, *pids])))
        if len(tally.killed) < 2 and tally.verdicts > verdicts * (len(tally.killed) + 1) / 3 and pids:
            os.kill(pids[0], signal.SIGKILL)
            tally.killed.append(tally.verdicts)
            say(f"killed a process at {tally.verdicts:,} verdicts")
        await asyncio.sleep(2)


def workers_of(pid: int) -> list[int]:
    """Return the processes that a service has started to verify."""
    tasks = Path(f"/proc/{pid}/task").glob("*/children")
    return sorted(int(child) for children in tasks for child in children.read_text().split())


def resident_mb(pid: int) -> float:
    """Return what a process holds; 0 where it is gone."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


async def load(address: str, process: subprocess.Popen[bytes], verdicts: int) -> Tally:
    """Run all clients to their end."""
    tally = Tally()
    watching = asyncio.create_task(watch(process, verdicts, tally))
    share = -(-verdicts // CLIENTS)
    await asyncio.gather(*(run_client(client, address, share, tally) for client in range(CLIENTS)))
    await watching
    return tally


@contextmanager
def serving(workers: int) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """Run the service at a free port, and yield its address and process when it answers."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    options = ["--port", str(port), "--workers", str(workers), "--max-mb", str(MAX_MB), "--queue", "512"]
    process = subprocess.Popen([sys.executable, "-P", "-m", "truegold.flows.cli", "serve-verifier", *options])
    address = f"http://127.0.0.1:{port}"
    try:
        for _ in range(240):
            try:
                httpx.get(f"{address}/health")
                break
            except httpx.ConnectError:
                time.sleep(0.5)
        yield address, process
    finally:
        process.terminate()
        process.wait(30)


def main() -> None:
    """Start the service, load it, and print its figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--verdicts", type=int, default=100_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    with serving(arguments.workers) as (address, process):
        began = time.monotonic()
        tally = asyncio.run(load(address, process, arguments.verdicts))
        wall_s = time.monotonic() - began
    memory = tally.memory_mb
    quarter = max(len(memory) // 4, 1)
    figures = {
        "verdicts": tally.verdicts,
        "wrong": tally.wrong,
        "lost": tally.lost,
        "killed_at": tally.killed,
        "statuses": dict(sorted(tally.statuses.items())),
        "surprises": tally.surprises[:5],
        "verdicts_a_second": round(tally.verdicts / wall_s),
        "request_s": {
            "p50": round(statistics.median(tally.seconds), 3),
            "p99": round(statistics.quantiles(tally.seconds, n=100)[98], 3),
        },
        "memory_mb": {
            "second_quarter": round(statistics.mean(memory[quarter : 2 * quarter])),
            "last_quarter": round(statistics.mean(memory[-quarter:])),
            "most": round(max(memory)),
        },
    }
    text = json.dumps(figures, indent=1)
    print(text)
    if arguments.out:
        arguments.out.write_text(text + "\n")


if __name__ == "__main__":
    main()
