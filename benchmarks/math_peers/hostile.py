"""Hostile strings against truegold alone: CPU time and growth of memory of each verdict, each in a process of its own.

    python -m math_peers.hostile             JSON: how many strings the catalogue holds, or why there is none
    python -m math_peers.hostile NUMBER      judges one string and prints what it cost

The catalogue is the product's own (`truegold.verifiers.audit.made_answers`). What counts begins after the imports, the
warm-up and the making of the two strings; memory is the growth of the process's peak. Linux only.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from math_peers.judge import children_s, judge, warm_up
from math_peers.ours import Truegold
from math_peers.streams import environment

LIMIT_S = 60.0
"""Wall seconds for one string; then its process is killed and the case is a hang."""


FORGET_PEAK = "5"
"""What Linux takes as the order to begin the count of a process's peak memory anew."""


def measure_all(python: str) -> list[dict[str, Any]] | str:
    """Every case in the catalogue's order, or why there are none."""
    reply, _ = _ask(python)
    if "count" not in reply:
        return str(reply.get("missing", "the catalogue of hostile strings cannot be read"))
    cases = []
    for index in range(reply["count"]):
        case, lost = _ask(python, str(index))
        cases.append({"name": f"number {index}", "expected": "any", "score": None, "note": lost, **case})
    return cases


def _ask(python: str, *arguments: str) -> tuple[dict[str, Any], str]:
    """What the child said, and how it was lost where it said nothing."""
    child = subprocess.Popen(
        [python, "-P", "-m", "math_peers.hostile", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment(),
        start_new_session=True,
    )
    try:
        reply, _ = child.communicate(timeout=LIMIT_S)
        return (json.loads(reply.splitlines()[-1]), "") if reply else ({}, "crash")
    except subprocess.TimeoutExpired:
        return {"cpu_ms": 1000 * LIMIT_S, "mb": 0.0}, "hang"
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.communicate()


def peak_kb() -> int:
    """Of this process, and the largest of its children that have ended.

    The process's own `ru_maxrss` would begin with the memory of whoever started it.
    """
    [peak_line] = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM:")]
    return int(peak_line.split()[1]) + resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss


def measure(case: Any) -> dict[str, Any]:
    """Return the verdict on a case, and what it cost."""
    truegold = Truegold()
    warm_up(truegold)
    row = {"kind": "pair", "gold": case.gold, "text": case.answer, "options": None}  # may be megabytes
    Path("/proc/self/clear_refs").write_text(FORGET_PEAK)
    peak, of_children, began = peak_kb(), children_s(), time.process_time()
    score, note = judge(truegold, row)
    cpu_s = time.process_time() - began + children_s() - of_children
    grown_mb = (peak_kb() - peak) / 1024
    cost = {"cpu_ms": round(1000 * cpu_s, 3), "mb": round(grown_mb, 2)}
    return {"name": case.name, "expected": case.expected, "score": score, "note": note, **cost}


def main() -> None:
    """Measure one case of the catalogue, or say how many there are."""
    try:
        from truegold.verifiers.audit.made_answers import HOSTILE
    except ImportError as error:
        print(json.dumps({"missing": str(error)}))
        return
    reply = measure(HOSTILE[int(sys.argv[1])]) if len(sys.argv) > 1 else {"count": len(HOSTILE)}
    print(json.dumps(reply))


if __name__ == "__main__":
    main()
