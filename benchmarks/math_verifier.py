"""Compares the verifier `math` with other graders: errors, speed, capability probes, hostile strings.

    python benchmarks/math_verifier.py DATA_DIR [--peer-python PATH] [--peers NAME ...] [--limit N]
                                       [--no-hostile] [--work DIR] [--json FILE] [--write PAGE.md]

DATA_DIR has pairs.jsonl, responses.jsonl and hard_all_peers_wrong.jsonl; missing files are reported and skipped. Every
grader (peer) that is installed for this interpreter, or for the one given with --peer-python, judges the same rows in
the same order, each in a child process, one after another. Verdicts are saved at once. So the same command continues
after a kill, and does not repeat verdicts of the same versions.

Peers need other versions of antlr than truegold, so they have a separate virtual environment; the tables begin with the
commands that create it. `math_rows.py` has the rows that count, `math_counts.py` the counts, `math_peers/` the peers.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

from math_counts import summary
from math_peers import ADAPTERS, TRUEGOLD, hostile
from math_peers.streams import PeerFailed, Runner, find, verdicts
from math_rows import PROBES, Row, load_sets, stratified
from math_tables import report
from publishing import publish, say

LIMITED = ("pairs", "responses")


def machine() -> str:
    """Return the cores and the processor of this machine."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{os.cpu_count()} CPU cores" + (f" ({models[0]})" if models else "")


def judge_sets(runner: Runner, sets: dict[str, list[Row]], work: Path) -> dict[str, Any]:
    """One peer's counts on every set."""
    counts: dict[str, Any] = {"versions": runner.versions}
    for name, rows in sets.items():
        if not {row.kind for row in rows} <= set(runner.kinds):
            continue
        records = verdicts(runner, [row.task() for row in rows], work)
        counts[name] = summary(list(zip(rows, records, strict=True)))
        if name == "probes":
            counts[name]["scores"] = {row.key: record["score"] for row, record in zip(rows, records, strict=True)}
        main, speed = counts[name]["main"], counts[name]["speed"]
        errors = f"FN {main['fn']}/{main['positives']} FP {main['fp']}/{main['negatives']}"
        say(f"{runner.name} {name}: {errors} unjudged {main['unjudged']}, {speed.get('per_cpu_s', 0):,.0f} per CPU-s")
    return counts


def measure(arguments: argparse.Namespace) -> dict[str, Any]:
    """All numbers, as `--json` writes them."""
    sets, missing = load_sets(arguments.data)
    if arguments.limit:
        sets = {name: stratified(rows, arguments.limit) if name in LIMITED else rows for name, rows in sets.items()}
    for line in missing:
        say(line)
    pythons = [sys.executable, *([arguments.peer_python] if arguments.peer_python else [])]
    peers: dict[str, Any] = {}
    not_run: dict[str, str] = {}
    for name in [name for name in ADAPTERS if name in arguments.peers]:
        runner = find(name, ADAPTERS[name], pythons)
        if isinstance(runner, str):
            not_run[name] = runner
            say(f"{name} is left out: {runner}")
            continue
        try:
            peers[name] = judge_sets(runner, sets, arguments.work)
        except PeerFailed as error:
            not_run[name] = str(error).rpartition("\n")[2]
            say(f"{name} does not start:\n{error}")
    return {
        "machine": machine(),
        "limit": arguments.limit,
        "missing": [f"Left out: {line}." for line in missing],
        "sets": {name: len(rows) for name, rows in sets.items()},
        "peers": peers,
        "not_run": not_run,
        "probes": [json.loads(line) for line in PROBES.read_text().splitlines()],
        "hostile": hostile.measure_all(sys.executable) if TRUEGOLD in peers and not arguments.no_hostile else None,
    }


def main() -> None:
    """Measure the graders that can be run, and write it down."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, metavar="DATA_DIR")
    parser.add_argument("--peers", nargs="+", default=list(ADAPTERS), choices=list(ADAPTERS), metavar="NAME")
    parser.add_argument("--peer-python", help="the interpreter of the peers' virtual environment")
    parser.add_argument("--limit", type=int, help="so many pairs and so many responses, of each corpus its share")
    parser.add_argument("--no-hostile", action="store_true", help="leave out the hostile strings")
    parser.add_argument("--work", type=Path, default=Path("runs/math_verifier"), help="where verdicts are kept")
    parser.add_argument("--json", type=Path, help="write every number to this file")
    parser.add_argument("--write", type=Path, help="write the tables into this Markdown file")
    arguments = parser.parse_args()
    if not arguments.data.is_dir():
        sys.exit(f"{arguments.data} is not a folder. Give the folder that holds pairs.jsonl and responses.jsonl.")
    measurements = measure(arguments)
    if not measurements["peers"]:
        sys.exit("no peer could be run")
    publish(measurements, report(measurements), arguments.json, arguments.write, "Math verifier")


if __name__ == "__main__":
    main()
