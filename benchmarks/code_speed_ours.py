"""Child of `code_speed.py`: judges rows with the verifier `code`, first cold and then warm.

    python code_speed_ours.py WORKERS ROWS.jsonl

Cold means that the sandboxes are running, but the tests of all problems are new. CPU time is that of this process and
of all its child processes, also ended ones. Memory is measured at the end, while the sandboxes are running.
"""

from __future__ import annotations

import json
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from pathlib import Path
from typing import Any

from math_peers.cpu import family_of, shared_out_mb, tree_s

from truegold.verifiers.code.verifier import CodeVerifier

WARM_UP = (
    {"tests": {"type": "calls", "entry_point": "f", "cases": [{"args": [], "expected": 1}]}},
    {"tests": {"type": "unittest", "code": "import unittest\nclass T(unittest.TestCase):\n    def test(self): f()"}},
)
"""A suite of each group of jobs whose sandboxes HumanEval needs."""


def main() -> None:
    """Time truegold on the rows of a file, cold and warm, and print what it took."""
    workers = int(sys.argv[1])
    rows = [json.loads(line) for line in Path(sys.argv[2]).read_text().split("\n") if line]
    by = CodeVerifier()

    def judge(row: dict[str, Any]) -> bool:
        return by(row["response"], info=row["info"]).score == 1.0

    with ThreadPoolExecutor(workers) as pool:
        # Programs that wait for each other's start take every sandbox.
        for info in WARM_UP:
            slow = {"response": "```python\nimport time\ntime.sleep(0.2)\ndef f(): return 1\n```", "info": info}
            list(pool.map(judge, [slow] * 2 * workers))
        measured: dict[str, Any] = {}
        for name in ("", "warm_"):
            cpu, began = tree_s(os.getpid()), time.perf_counter()
            passed = sum(pool.map(judge, rows))
            wall = time.perf_counter() - began
            measured[f"{name}wall_s"] = wall
            measured[f"{name}cpu_ms"] = 1000 * (tree_s(os.getpid()) - cpu) / len(rows)
            measured[f"{name}passed"] = passed
        measured["itself_mb"] = shared_out_mb({os.getpid()})
        measured["sandboxes_mb"] = shared_out_mb(family_of(os.getpid()) - {os.getpid()})
    print(json.dumps({**measured, "version": version("truegold")}))


if __name__ == "__main__":
    main()
