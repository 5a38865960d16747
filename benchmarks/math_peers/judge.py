"""The child process: one peer judges rows in their order and says each verdict as a line of JSON on standard output.

    python -m math_peers.judge describe TARGET          versions of the peer, or what is missing
    python -m math_peers.judge TARGET ROWS.jsonl FIRST  judge the rows from number FIRST on

CPU time of a row is that of this process while the peer judges it, and what its children used meanwhile. Imports,
making the peer and the same few warm-up rows come before the first row and count for nobody.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import json
import os
import resource
import signal
import sys
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, TextIO

from math_peers import Peer, adapter_class
from math_peers.cpu import live_children_s, reaped_s

MAX_ADDRESS_SPACE = 12 << 30
"""Bytes. A peer that expands a power tower fails alone and does not take the machine with it."""

PR_SET_PDEATHSIG = 1

WAITED_S = 0.001
"""A row that had its process wait so long may have used a child: only then is the process table read, which after every
row would cost the quick graders more than judging does."""

WARM_UP = [
    ("2", "2"),
    ("\\frac{1}{2}", "0.5"),
    ("x^2+2x+1", "(x+1)^2"),
    ("(1,2]", "(1,3]"),
    ("\\sqrt{12}", "2\\sqrt{3}"),
    ("\\text{even}", "odd"),
]


def describe(target: str) -> dict[str, Any]:
    """The versions of a peer's packages and the kinds of rows it takes, or the package that is missing."""
    adapter = adapter_class(target)
    versions: dict[str, str] = {}
    for package in adapter.packages:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            return {"missing": package}
    if hasattr(adapter, "source"):
        versions["source"] = adapter.source()
    return {"versions": versions, "kinds": [kind for kind in ("pair", "response") if hasattr(adapter, kind)]}


def judge(peer: Peer, row: dict[str, Any]) -> tuple[bool | None, str]:
    """One row's verdict. An exception is a verdict too: the peer could not judge."""
    try:
        if row["kind"] == "response":
            return peer.response(row["gold"], row["text"])
        return peer.pair(row["gold"], row["text"], row["options"])
    except Exception as error:
        return None, f"raised {type(error).__name__}"


def warm_up(peer: Peer) -> None:
    """Loads what peers import late and builds their parsers' tables."""
    for gold, answer in WARM_UP:
        judge(peer, {"kind": "pair", "gold": gold, "text": answer, "options": None})
        judge(peer, {"kind": "response", "gold": gold, "text": f"So the answer is $\\boxed{{{answer}}}$."})


def children_s() -> float:
    """Return the CPU seconds of this process's children, ended and living."""
    return reaped_s() + live_children_s(os.getpid())


def judge_all(peer: Peer, rows: list[dict[str, Any]], say: TextIO) -> None:
    """Print a record of each verdict."""
    of_children = children_s()
    gc.collect()
    gc.freeze()  # the rows and modules are the benchmark's: no grader pays for their being looked through again
    for row in rows:
        began, began_wall = time.process_time(), time.perf_counter()
        score, note = judge(peer, row)
        cpu_s, wall = time.process_time() - began, time.perf_counter() - began_wall
        before = of_children
        if wall - cpu_s > WAITED_S:
            of_children = children_s()
        record = {
            "key": row["key"],
            "score": score,
            "note": note,
            "cpu_ms": round(1000 * (cpu_s + max(0.0, of_children - before)), 4),
            "spent_ms": round(1000 * (time.process_time() + of_children), 1),
        }
        print(json.dumps(record), file=say, flush=True)


def main() -> None:
    """Describe a peer, or judge the rows that come in."""
    if sys.argv[1] == "describe":
        print(json.dumps(describe(sys.argv[2])))
        return
    target, rows_path, first = sys.argv[1:]
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    resource.setrlimit(resource.RLIMIT_AS, (MAX_ADDRESS_SPACE, MAX_ADDRESS_SPACE))
    say = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # peers print; their words must not land among the verdicts
    rows = [json.loads(line) for line in Path(rows_path).read_text().splitlines()]
    peer: Peer = adapter_class(target)()
    with contextlib.suppress(Exception):
        warm_up(peer)
    print(json.dumps({"ready": True}), file=say, flush=True)
    judge_all(peer, rows[int(first) :], say)


if __name__ == "__main__":
    main()
