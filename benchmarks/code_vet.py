"""Measures the vetting of test suites: HumanEval, MBPP and CodeContests with their reference solutions.

    python benchmarks/code_vet.py DATA_DIR [--json FILE] [--write PAGE.md] [--limit N] [--only SET ...]
                                           [--jobs N]

DATA_DIR has humaneval.jsonl, mbpp.jsonl, codecontests_stdio.jsonl, and for HumanEval labelled programs of models and
mutants (`code_rows.FILES`); missing files are reported and skipped. Reference solutions of CodeContests also run under
plain Python, to find those that fail their own tests. All other programs run only in truegold's sandbox.

For the half of the problems that may be read, a person has labelled why reference solutions fail
(`code_vet_labels.json`).
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import code_rows
import code_vet_contests
from code_rows import Record
from code_vet_suites import Problem, Vetted, humaneval, mbpp, summary, vet_problem
from code_vet_tables import report
from math_verifier import machine
from publishing import publish, say

from truegold.verifiers.code.verifier import CodeVerifier
from truegold.verifiers.sandbox import close_all, sandbox
from truegold.verifiers.sandbox.errors import TruegoldError

SETS = ("humaneval", "mbpp", "codecontests")
SAID_EVERY = 50


def vet_all(problems: Sequence[Problem], jobs: int) -> list[Vetted]:
    """Vet the suites of problems, several at a time, in their order."""
    vetted_problems: list[Vetted] = []
    with ThreadPoolExecutor(jobs) as pool:
        for vetted in pool.map(vet_problem, problems):
            vetted_problems.append(vetted)
            if len(vetted_problems) % SAID_EVERY == 0:
                say(f"{vetted.problem.set_name}: {len(vetted_problems)} of {len(problems)} vetted")
    return vetted_problems


def some(records: Sequence[Record], limit: int | None) -> list[Record]:
    """At most so many, chosen by a hash."""
    if limit is None:
        return list(records)
    return sorted(records, key=lambda record: hashlib.sha256(str(record["task_id"]).encode()).digest())[:limit]


def measure(arguments: argparse.Namespace) -> dict[str, Any]:
    """All numbers, as `--json` writes them."""
    records, _ = code_rows.load(arguments.data)
    missing = [f"Left out: {code_rows.FILES[name]} is not there." for name in arguments.only if name not in records]
    measurements: dict[str, Any] = {
        "machine": machine(),
        "tier": str(sandbox().tier),
        "version": CodeVerifier().version,
        "limit": arguments.limit,
        "missing": missing,
        "seconds": {},
        "sets": {},
    }
    vetting = partial(vet_all, jobs=arguments.jobs)
    parts: dict[str, Callable[[list[Record]], dict[str, Any]]] = {
        "humaneval": lambda rows: summary(vetting(humaneval(rows, records))),
        "mbpp": lambda rows: summary(vetting(mbpp(rows))),
        "codecontests": lambda rows: code_vet_contests.measure(rows, vetting, arguments.jobs, say),
    }
    for name in [name for name in SETS if name in arguments.only and name in records]:
        began = time.monotonic()
        measurements["sets"][name] = parts[name](some(records[name], arguments.limit))
        measurements["seconds"][name] = round(time.monotonic() - began)
        close_all()
    return measurements


def main() -> None:
    """Vet the sets that the command line names, and write it down."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, metavar="DATA_DIR")
    parser.add_argument("--json", type=Path, help="write every number to this file")
    parser.add_argument("--write", type=Path, help="write the tables into this Markdown file")
    parser.add_argument("--only", nargs="+", default=list(SETS), choices=SETS, metavar="SET", help=", ".join(SETS))
    parser.add_argument("--jobs", type=int, default=2, help="suites vetted at a time (default 2)")
    parser.add_argument("--limit", type=int, help="at most so many problems of each set, chosen by a hash")
    arguments = parser.parse_args()
    if not arguments.data.is_dir():
        sys.exit(f"{arguments.data} is not a folder. Give the folder that holds humaneval.jsonl, mbpp.jsonl and so on.")
    try:
        measurements = measure(arguments)
    except TruegoldError as error:
        sys.exit(str(error))
    publish(measurements, report(measurements), arguments.json, arguments.write, "Vetting test suites")


if __name__ == "__main__":
    main()
