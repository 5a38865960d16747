"""Kills a profile with SIGKILL at random moments until it is done, and compares it with an undisturbed profile.

    python benchmarks/profile_kills.py RUN [--rows 1024] [--kills 10] [--seed 0]

RUN is the folder of a profiled run. Its rows, model, chat and engine are used, with 4 to 16 samples per problem. A kill
comes when a random share of the samples' bytes is written, uniform between 0 and 1.1. Shares above 1 are up to a second
later, while the tables are written. (Random times would mostly hit the loading of vLLM.) The benchmark fails if a
sample is lost or drawn twice, or if a table differs.
"""

from __future__ import annotations

import argparse
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import polars as pl
from profile_sampling import settings, some_rows

from truegold.pipeline.profile.stage import profile
from truegold.pipeline.running.progress import NullProgress
from truegold.pipeline.running.record_log import RecordLog

AFTERWARDS = 0.1
TABLES = ("samples", "profile", "flags", "suspicion", "rows")


def start(run: Path, folder: Path) -> subprocess.Popen[bytes]:
    """Start or continue the profile of a folder in a separate process."""
    with (folder / "log").open("ab") as log:
        return subprocess.Popen([sys.executable, __file__, str(run), f"--child={folder}"], stdout=log, stderr=log)


def drawn(folder: Path) -> list[tuple[str, int]]:
    """Return prompt and number of every sample that was ever written."""
    return [
        (record["prompt"], record["sample"])
        for log in sorted((folder / "store").glob("*"))
        for _, record in RecordLog(log).scan()
    ]


def differing_tables(calm: Path, killed: Path) -> list[str]:
    """Return the names of the tables that are not the same."""
    return [
        name
        for name in TABLES
        if not pl.read_parquet(calm / "out" / f"{name}.parquet").equals(
            pl.read_parquet(killed / "out" / f"{name}.parquet")
        )
    ]


def written(folder: Path) -> int:
    """Return the bytes of the samples that are on disk."""
    return sum(path.stat().st_size for path in (folder / "store").glob("*/*.jsonl"))


def finish(run: Path, folder: Path) -> float:
    """Let the profile of a folder run to its end; return the seconds."""
    began = time.monotonic()
    if start(run, folder).wait():
        sys.exit((folder / "log").read_text(errors="replace")[-3000:])
    return time.monotonic() - began


def compare(run: Path, rows: int, kills: int, draw: random.Random, work: Path) -> bool:
    """Profile in peace and with kills; print what happened, and return whether all is the same."""
    calm, killed = work / "calm", work / "killed"
    for folder in (calm, killed):
        (folder / "out").mkdir(parents=True)
        some_rows(run, rows, folder)
    duration = finish(run, calm)
    print(f"in peace: {duration:.0f} s, {len(drawn(calm)):,} samples", flush=True)
    for kill, share in enumerate(sorted(draw.uniform(0, 1 + AFTERWARDS) for _ in range(kills)), 1):
        child = start(run, killed)
        while child.poll() is None and written(killed) < min(share, 1) * written(calm):
            time.sleep(0.002)
        time.sleep(max(0.0, share - 1) / AFTERWARDS)
        child.send_signal(signal.SIGKILL)
        child.wait()
        print(f"kill {kill} at {share:.3f}: {len(drawn(killed)):,} samples so far", flush=True)
    finish(run, killed)
    ever, peaceful = drawn(killed), drawn(calm)
    lost, doubled = set(peaceful) - set(ever), len(ever) - len(set(ever))
    different = differing_tables(calm, killed)
    print(f"{len(lost)} samples lost, {doubled} doubled, {len(set(ever) - set(peaceful))} drawn besides")
    print(f"tables that differ: {', '.join(different) or 'none'} of {', '.join(TABLES)}")
    return not lost and not doubled and not different


def main() -> None:
    """Run the comparison, or one profile of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--rows", type=int, default=1024)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child is not None:
        config, model = settings(arguments.run, samples=16, first_samples=4)
        inputs = {"rows": arguments.child / "rows.parquet", "model": model, "store": arguments.child / "store"}
        profile(inputs, config, arguments.child / "out", NullProgress())
        return
    with tempfile.TemporaryDirectory() as work:
        draw = random.Random(arguments.seed)
        sys.exit(not compare(arguments.run, arguments.rows, arguments.kills, draw, Path(work)))


if __name__ == "__main__":
    main()
