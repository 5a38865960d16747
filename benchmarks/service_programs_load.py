"""`/run_code` and `/test_program` of the verification service under load: 64 clients, processes killed in between.

    python benchmarks/service_programs_load.py --requests 4000 --out benchmarks/results/service_programs_load.json

The output, result or error of each program is known by construction, and its output contains a unique number. So lost,
wrong, duplicate and exchanged answers are noticed. One program in forty never ends and must be answered with a timeout;
one request in fifty is malformed (400), one in two hundred is too large (413). After a third of the answers a verifying
process is killed, after two thirds a sandbox in which programs run. The counts of `/metrics` must equal those of the
clients.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import re
import signal
import statistics
import time
from collections import Counter
from pathlib import Path
from typing import Any

import httpx
from publishing import say
from service_load import CLIENTS, MAX_MB, Tally, refused, resident_mb, serving

ENDLESS_S = 0.3
"""The CPU seconds of a program that never ends."""
_COUNTED = re.compile(r'truegold_requests_total\{path="(/\w+)",status="200"\} (\d+)')


def run_request(chance: random.Random, nonce: int) -> tuple[dict[str, Any], Any]:
    """Return a request to run a program, and what its answer has to tell: status, exit code, output."""
    left, right = chance.randint(2, 999), chance.randint(2, 999)
    roll = chance.random()
    base = {"language": "python", "stdin": f"{left} {right}"}
    if roll < 0.025:
        code = "while True:\n    pass"
        return {**base, "code": code, "run_timeout": ENDLESS_S}, ("Failed", None, "")
    head = f"a, b = map(int, input().split())\nprint(a * b, {nonce})\n"
    output = f"{left * right} {nonce}\n"
    if roll < 0.2:
        status = chance.randint(1, 9)
        return {**base, "code": f"{head}raise SystemExit({status})"}, ("Failed", status, output)
    return {**base, "code": head}, ("Success", 0, output)


def suite_request(chance: random.Random, nonce: int) -> tuple[dict[str, Any], Any]:
    """Return a program with tests, and the results that it has to get."""
    program = f"def shift(value):\n    return value + {nonce}"
    passing = [int(chance.random() < 0.6) for _ in range(chance.randint(1, 4))]
    tests = [
        f"assert shift({turn}) == {turn + nonce + (0 if passes else chance.randint(1, 9))}"
        for turn, passes in enumerate(passing)
    ]
    request = {"program": program, "tests": tests, "max_execution_time": 2.0}
    return request, passing


def told_by(path: str, answer: dict[str, Any]) -> Any:
    """Return what an answer tells, as a request expects it."""
    if path == "/test_program":
        return answer.get("results")
    run = answer.get("run_result") or {}
    return answer.get("status"), run.get("return_code"), run.get("stdout")


async def run_client(seed: int, address: str, requests: int, tally: Tally, answered: Counter[str]) -> None:
    """Ask until this client has had its share."""
    chance = random.Random(seed)
    async with httpx.AsyncClient(base_url=address, timeout=300) as client:
        for turn in range(requests):
            roll = chance.random()
            path = chance.choice(("/run_code", "/test_program"))
            if roll < 0.02:
                body = chance.choice((b"{", b"[]", b'{"code": 7, "program": 7, "language": "python", "tests": []}'))
                await refused(client, body, 400, tally, path)
            elif roll < 0.025:
                await refused(client, b'{"code": "' + b"x" * (MAX_MB * 2**20) + b'"}', 413, tally, path)
            make = run_request if path == "/run_code" else suite_request
            request, expected = make(chance, seed * 1_000_000 + turn)
            began = time.monotonic()
            answer = await ask(client, path, request, tally)
            tally.seconds.append(time.monotonic() - began)
            tally.statuses[answer.status_code] += 1
            tally.verdicts += 1
            if answer.status_code != 200:
                tally.lost += 1
                tally.surprises.append(f"{path}: {answer.status_code} {answer.text[:200]}")
                continue
            answered[path] += 1
            if told_by(path, answer.json()) != expected:
                tally.wrong += 1
                tally.surprises.append(f"{path}: {answer.text[:300]} in place of {expected}")


async def ask(client: httpx.AsyncClient, path: str, request: dict[str, Any], tally: Tally) -> httpx.Response:
    """Post a request, again while the queue is full."""
    while True:
        answer = await client.post(path, json=request)
        if answer.status_code != 429:
            return answer
        tally.statuses[429] += 1
        await asyncio.sleep(float(answer.headers["retry-after"]))


def children_of(pid: int) -> list[int]:
    """Return the processes that a process has started and that live."""
    children = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for path in children for child in path.read_text().split()]


def _verifies(pid: int) -> bool:
    """Return whether a child of the service is a process that verifies, and no sandbox."""
    try:
        return b"batch_child" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return False


async def watch(pid: int, requests: int, tally: Tally) -> None:
    """Measure memory, and kill a verifying process at a third and a sandbox at two thirds of the answers."""
    while tally.verdicts < requests:
        children = children_of(pid)
        workers = [child for child in children if _verifies(child)]
        sandboxes = [child for child in children if child not in workers]
        tally.memory_mb.append(sum(map(resident_mb, [pid, *workers, *sandboxes])))
        targets = workers if not tally.killed else sandboxes
        if len(tally.killed) < 2 and tally.verdicts > requests * (len(tally.killed) + 1) / 3 and targets:
            os.kill(targets[0], signal.SIGKILL)
            tally.killed.append(tally.verdicts)
            say(f"killed a {'sandbox' if len(tally.killed) == 2 else 'process'} at {tally.verdicts:,} answers")
        await asyncio.sleep(0.5)


async def load(address: str, pid: int, requests: int) -> tuple[Tally, Counter[str], Counter[str]]:
    """Run all clients to their end; return what they saw, and by path what the service counts."""
    tally, answered = Tally(), Counter[str]()
    share = -(-requests // CLIENTS)
    watching = asyncio.create_task(watch(pid, share * CLIENTS, tally))
    await asyncio.gather(*(run_client(client, address, share, tally, answered) for client in range(CLIENTS)))
    await watching
    async with httpx.AsyncClient(base_url=address) as client:
        metrics = (await client.get("/metrics")).text
    counted = Counter({path: int(count) for path, count in _COUNTED.findall(metrics)})
    return tally, answered, counted


def main() -> None:
    """Start the service, load it, and print its figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=4_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    with serving(arguments.workers) as (address, process):
        began = time.monotonic()
        tally, answered, counted = asyncio.run(load(address, process.pid, arguments.requests))
        wall_s = time.monotonic() - began
    memory = tally.memory_mb
    quarter = max(len(memory) // 4, 1)
    figures = {
        "answers": tally.verdicts,
        "wrong": tally.wrong,
        "lost": tally.lost,
        "counted_by_the_service": dict(sorted(counted.items())),
        "counted_by_the_clients": dict(sorted(answered.items())),
        "killed_at": tally.killed,
        "statuses": dict(sorted(tally.statuses.items())),
        "surprises": tally.surprises[:5],
        "answers_a_second": round(tally.verdicts / wall_s, 1),
        "request_s": {
            "p50": round(statistics.median(tally.seconds), 3),
            "p99": round(statistics.quantiles(tally.seconds, n=100)[98], 3),
        },
        "memory_mb": {
            "second_quarter": round(statistics.mean(memory[quarter : 2 * quarter] or memory)),
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
