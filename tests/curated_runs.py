"""Runs of curation in processes of their own: what they write, by digests, and when they wrote the parts of it."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import orjson

from truegold.pipeline.running.stage import load_record
from truegold.pipeline.tables.rows import read_rows

NAMES = ("Tom", "Ann", "Bela", "Chen", "Dora", "Emil", "Fumi")
NOUNS = ("apples", "stamps", "shells", "pens", "books")
RUN = Path("runs/p")
"""The folder of a run, in that of its problems."""


def write_problems(folder: Path, count: int = 3_000) -> Path:
    """Write so many problems, some of which are dropped, edited, flagged, or copies of others."""

    def ask(number: int) -> str:
        name, noun = NAMES[number % 7], NOUNS[number // 7 % 5]
        bought = f"{number % 97 + 2} {noun} &amp; buys {number // 97 + 9} more"
        return f"  {name} has {bought}.  How many {noun} has {name} in week {number} now?"

    with (folder / "p.jsonl").open("w") as file:
        for number in range(count):
            question, answer = ask(number), str(number % 97 + 2 + number // 97 + 9)
            if number % 13 == 0:
                answer = "see picture"
            if number % 17 == 0:
                question = (
                    f"Prove that {number % 97} + {number // 97} is less than {number + 1_000}, whatever Tom says."
                )
            if number % 19 == 0:
                question = "x"
            if number % 23 == 0 and number:
                question = ask(number - 1)
            file.write(json.dumps({"question": question, "answer": answer}) + "\n")
    return folder


def start_curation(folder: Path, *options: str, runner: str = "local") -> subprocess.Popen[str]:
    """Start to curate the problems of a folder in parts of 150 rows."""
    command = [sys.executable, "-P", "-m", "truegold.flows.cli", "curate", "p.jsonl", "--engine", "local"]
    settings = ["--runner", runner, "--set", "parts.rows=150", *options]
    return subprocess.Popen([*command, *settings], cwd=folder, text=True, stderr=subprocess.PIPE)


def finish(process: subprocess.Popen[str]) -> str:
    """Wait for the end of a process that does well, and return what it has told."""
    told = process.communicate(timeout=500)[1]
    assert process.returncode == 0, told
    return told


def run_digests(run_dir: Path) -> dict[str, str]:
    """Return the digest of each table of a run, of its rows in their order however they are cut, and of the counts of
    each stage."""
    digests = {}
    for folder in sorted(path.parent for path in run_dir.glob("*/stage.json") if path.parent.name != "report"):
        record = load_record(folder)
        assert record is not None
        counted = [record["report"][name] for name in ("rows_in", "rows_out", "counts")]
        digests[folder.name] = hashlib.sha256(orjson.dumps(counted, option=orjson.OPT_SORT_KEYS)).hexdigest()
        for table in sorted(folder.glob("*.parquet")):
            content = hashlib.sha256()
            for row in read_rows(table):
                content.update(json.dumps(row, sort_keys=True, default=str).encode() + b"\n")
            digests[f"{folder.name}/{table.name}"] = content.hexdigest()
    return digests


def written_parts(run_dir: Path) -> Mapping[str, int]:
    """Return when the rows of each finished part of each stage were written."""
    markers = run_dir.glob(".partial/*/scratch/done/*.json")
    unfinished = [marker.parents[2] / "rows.parquet" / f"part-{marker.stem}.parquet" for marker in markers]
    finished = [record.parent / "rows.parquet" for record in run_dir.glob("*/stage.json")]
    paths = [*unfinished, *(part for table in finished if table.is_dir() for part in table.iterdir())]
    stages = {path: path.parents[1].name.partition("-")[0] for path in paths}
    return {f"{stages[path]} {path.name}": path.stat().st_mtime_ns for path in paths if path.exists()}


def wait_for_part(run_dir: Path, earlier: int, process: subprocess.Popen[str] | subprocess.Popen[bytes]) -> None:
    """Wait until a further part is done, or the process has ended."""
    deadline = time.monotonic() + 300
    while len(written_parts(run_dir)) <= earlier and process.poll() is None:
        assert time.monotonic() < deadline, "no further part was done"
        time.sleep(0.02)


def kill_after_part(run_dir: Path, process: subprocess.Popen[str], pause: float) -> None:
    """Kill a process a while after a further part was done; those that were done before must stay as they are."""
    before = written_parts(run_dir)
    wait_for_part(run_dir, len(before), process)
    time.sleep(pause)
    process.kill()
    process.communicate()
    after = written_parts(run_dir)
    assert {part: after.get(part) for part in before} == before
