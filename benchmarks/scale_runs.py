"""Curates the same rows in several ways, and compares rows, order, ledgers, flags and counts of the results by digests.

    python benchmarks/scale_runs.py FOLDER --data DATA_DIR                      1, 2 and 7 parts, at each of the sites
    python benchmarks/scale_runs.py FOLDER --data DATA_DIR --kills 10           killed ten times, 7 parts
    python benchmarks/scale_runs.py FOLDER --rows 200000 --sites local ray --parts 40      made-up rows, with memory

    local    processes of this machine
    ray      two nodes on this machine, of which the first to work on `clean` is taken away
    slurm    a Slurm of this machine, of whose first array the last task is cancelled
    s3       data and run are at an S3 server of this machine (moto)

DATA_DIR has the files of `curation_corpora.py`, from which rows are drawn; every tenth row is a copy, dirty or without
a usable gold. Without DATA_DIR, problems are generated (`scale_stages.py`). A kill is a SIGKILL to the whole process
group. Its moment is drawn from the time of an undisturbed run: the kill comes when the same number of parts and stages
are finished, and the same time after the last of them. Reported are the parts that were interrupted, which are done
again. It is an error if a finished part is written again. Existing runs are not repeated.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Thread
from typing import Any

import orjson
from curation_corpora import CORPORA
from scale_stages import evaluation_set, held, records, write_lines

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "tests"))

from curated_runs import run_digests, written_parts  # noqa: E402
from s3_server import s3_server  # noqa: E402
from slurm_machine import slurm_machine  # noqa: E402

SITES = ("local", "ray", "slurm", "s3")
LOOK_EVERY_S = 0.25
AT_WORK = re.compile(rb"^[a-z_]+ +(?!from the cache| )", re.MULTILINE)
"""What a run prints when it begins or ends a stage that it does not take from an earlier start."""
DIRTY = (
    lambda row, other: other,
    lambda row, other: {**row, "question": f"<p>{row['question']}</p>&nbsp; "},
    lambda row, other: {**row, "answer": "see the picture"},
    lambda row, other: {**row, "question": "x"},
    lambda row, other: {**row, "answer": other["answer"]},
)


def varied(data: Path, count: int) -> Iterator[dict[str, Any]]:
    """Yield so many rows of all corpora."""
    draw, drawn = random.Random(1), []
    for name, read in sorted(CORPORA.values(), key=lambda corpus: corpus[0]):
        for line in (data / "curation" / f"{name}.jsonl").open(encoding="utf-8"):
            fields = read(json.loads(line))
            if fields is not None and fields[0]:
                drawn.append(dict(zip(("question", "answer", "solution"), fields, strict=True)))
    draw.shuffle(drawn)
    for index, row in enumerate(drawn[:count]):
        yield DIRTY[index // 10 % len(DIRTY)](row, drawn[index // 2]) if index % 10 == 9 else row


def write_rows(folder: Path, data: Path | None, count: int) -> None:
    """Write the rows, and the evaluation set that they are compared with."""
    folder.mkdir(parents=True)
    write_lines(folder / "rows.jsonl", records(count) if data is None else varied(data, count))
    evaluation = folder / "evaluation.jsonl"
    if data is None:
        write_lines(evaluation, evaluation_set())
    else:
        evaluation.write_bytes((data / "curation" / "math500.jsonl").read_bytes())


@dataclass
class Curation:
    """One way to curate the rows of a folder."""

    folder: Path
    name: str
    part_rows: int
    settings: list[str] = field(default_factory=list)
    runner: str = "local"
    variables: Mapping[str, str] = field(default_factory=dict)
    address: str | None = None
    """The place of data and runs, where that is none of this machine."""
    helpers: list[int] = field(default_factory=list)
    """The processes that do work for it and that it has not started."""

    @property
    def run_dir(self) -> Path:
        """Where the run lies on this machine."""
        return self.folder / "runs" / self.name

    @property
    def log(self) -> Path:
        """The file with what its processes have printed."""
        return self.folder / f"{self.name}.log"

    def start(self) -> subprocess.Popen[str]:
        """Start the run in a new process group."""
        site = self.address or str(self.folder)
        settings = [
            f"runs_dir={site}/runs",
            f"name={self.name}",
            f"parts.rows={self.part_rows}",
            f"decontaminate.against=['{self.folder / 'evaluation.jsonl'}']",
            *self.settings,
        ]
        command = [sys.executable, "-P", "-m", "truegold.flows.cli", "curate", f"{site}/rows.jsonl"]
        command += ["--engine", "local", "--runner", self.runner]
        command += [part for setting in settings for part in ("--set", setting)]
        with self.log.open("a") as log:
            return subprocess.Popen(
                command,
                cwd=self.folder,
                env={**os.environ, **self.variables},
                text=True,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def finish(self, process: subprocess.Popen[str]) -> None:
        """Wait until a process of the run has ended well."""
        if process.wait():
            sys.exit(self.log.read_text()[-3_000:])

    def stage_under_way(self) -> str:
        """Return the name of the stage that is worked on; before the first and after the last the empty text."""
        folders = [path.name for path in self.run_dir.glob(".partial/*-*")]
        return folders[-1].rpartition("-")[0] if folders else ""


@contextmanager
def watched(run: Curation, process: subprocess.Popen[str]) -> Iterator[dict[str, dict[str, int]]]:
    """Yield the peak of the run's processes by stage, in bytes, which is filled as long as this lasts."""
    peaks: dict[str, dict[str, int]] = {}
    ended = Event()

    def watch() -> None:
        while not ended.wait(LOOK_EVERY_S):
            stage = peaks.setdefault(run.stage_under_way() or "between", {"VmRSS": 0, "RssAnon": 0})
            for kind in stage:
                stage[kind] = max(stage[kind], sum(held(kind, str(pid)) for pid in (process.pid, *run.helpers)))

    watcher = Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield peaks
    finally:
        ended.set()
        watcher.join()


# Places


@contextmanager
def undisturbed(run: Curation) -> Iterator[Callable[[], None]]:
    """Yield what does nothing to a run."""
    yield lambda: None


@contextmanager
def on_ray(run: Curation) -> Iterator[Callable[[], None]]:
    """Run on a Ray cluster of two nodes. The yielded function removes a node that is working."""
    command = [sys.executable, ROOT / "tests" / "ray_nodes.py"]
    program = subprocess.Popen(command, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert program.stdin is not None and program.stdout is not None
    run.runner, run.helpers = "ray", [program.pid]
    run.settings.append(f"run.ray.address={program.stdout.readline().strip()}")

    def lose() -> None:
        assert program.stdin is not None and program.stdout is not None
        wait_until(lambda: run.stage_under_way() == "clean")
        program.stdin.write("lose\n")
        program.stdin.flush()
        print(f"  a node {program.stdout.readline().strip()} in {run.stage_under_way()}", flush=True)

    try:
        yield lose
    finally:
        program.communicate(timeout=120)


@contextmanager
def on_slurm(run: Curation) -> Iterator[Callable[[], None]]:
    """Run on a Slurm of this machine. The yielded function cancels the last task of its first array."""
    with slurm_machine(run.folder / f"{run.name}-slurm") as variables:
        run.runner, run.variables = "slurm", variables
        run.settings.append("run.slurm.tasks=2")

        def cancel() -> None:
            jobs = run.run_dir / ".partial"
            wait_until(lambda: any(jobs.glob("clean-*/scratch/slurm/job")))
            array = next(jobs.glob("clean-*/scratch/slurm/job")).read_text()
            environment = {**os.environ, **variables}
            last = min(2, len(list((run.run_dir / "ingest" / "rows.parquet").glob("*")) or [1])) - 1
            subprocess.run(["scancel", f"{array}_{last}"], check=True, env=environment)
            print(f"  task {last} of the array {array} cancelled", flush=True)

        yield cancel


@contextmanager
def at_s3(run: Curation) -> Iterator[Callable[[], None]]:
    """Put data and runs at an S3 server; the run is read on a machine that has nothing of it."""
    import fsspec

    with s3_server() as variables:
        names = {"endpoint_url": "AWS_ENDPOINT_URL", "key": "AWS_ACCESS_KEY_ID", "secret": "AWS_SECRET_ACCESS_KEY"}
        fs = fsspec.filesystem("s3", **{name: variables[variable] for name, variable in names.items()})
        fs.mkdir("bucket")
        fs.put(str(run.folder / "rows.jsonl"), "bucket/rows.jsonl")
        run.address = "s3://bucket"
        run.variables = {**variables, "XDG_CACHE_HOME": str(run.folder / f"{run.name}-worker")}
        yield lambda: None
        cache = run.folder / f"{run.name}-reader"
        command = [sys.executable, "-P", "-m", "truegold.flows.cli", "report", f"s3://bucket/runs/{run.name}"]
        reader = {**os.environ, **variables, "XDG_CACHE_HOME": str(cache)}
        subprocess.run(command, check=True, env=reader, stdout=subprocess.DEVNULL)
        run.run_dir.parent.mkdir(exist_ok=True)
        next(cache.rglob("manifest.json")).parent.rename(run.run_dir)


DISTURBED = {"local": undisturbed, "ray": on_ray, "slurm": on_slurm, "s3": at_s3}


def wait_until(happens: Callable[[], bool]) -> None:
    """Wait until something happens."""
    while not happens():
        time.sleep(LOOK_EVERY_S)


def curate(run: Curation, site: str) -> None:
    """Curate the rows at a site, where that has not been done, and print what it took."""
    if (run.run_dir / "report" / "stage.json").exists():
        return
    with DISTURBED[site](run) as disturb:
        began = time.monotonic()
        process = run.start()
        with watched(run, process) as peaks:
            disturb()
            run.finish(process)
        seconds = time.monotonic() - began
    (run.folder / f"{run.name}.json").write_bytes(orjson.dumps({"seconds": seconds, "peaks": peaks}))


def compare(run: Curation, expected: Mapping[str, str]) -> list[str]:
    """Print how the run compares, and return the names of the tables that are not as expected."""
    digests = run_digests(run.run_dir)
    different = sorted(name for name in digests.keys() | expected if digests.get(name) != expected.get(name))
    same = "the same" if not different else f"differ: {', '.join(different)}"
    path = run.folder / f"{run.name}.json"
    cost = orjson.loads(path.read_bytes()) if path.exists() else {"seconds": float("nan"), "peaks": {}}
    print(f"{run.name:<12} {cost['seconds']:6.0f} s  {len(digests)} tables and counts, {same}", flush=True)
    peaks = (f"{stage} {peak['VmRSS'] >> 20:,} ({peak['RssAnon'] >> 20:,})" for stage, peak in cost["peaks"].items())
    print("  MB: " + ", ".join(peaks), flush=True)
    return different


# Kills


def finished_at(run: Curation) -> list[float]:
    """Return when each finished part and each finished stage of a run was written, in order."""
    stages = [record.stat().st_mtime for record in run.run_dir.glob("*/stage.json")]
    return sorted([*stages, *(moment / 1e9 for moment in written_parts(run.run_dir).values())])


def take_under_way(run: Curation) -> tuple[int, int]:
    """Return how many parts were under way when a run was killed, and how many of their rows were done."""
    parts = rows = 0
    for counter in run.run_dir.glob(".partial/*/scratch/*/rows"):
        if not (counter.parents[1] / "done" / f"{counter.parent.name}.json").exists():
            parts, rows = parts + 1, rows + counter.stat().st_size
        counter.unlink()  # So that it is not taken for the next kill's.
    return parts, rows


def kill_at_moments(run: Curation, calm: Curation, kills: int, draw: random.Random) -> None:
    """Kill a run again and again, and let it run to its end; exits where a finished part was written again."""
    events, seconds = finished_at(calm), orjson.loads((calm.folder / f"{calm.name}.json").read_bytes())["seconds"]
    began = events[-1] - seconds
    lost_parts = lost_rows = 0
    written: Mapping[str, int] = {}
    for kill, moment in enumerate(sorted(draw.uniform(0, seconds) for _ in range(kills)), 1):
        before = [began, *(event for event in events if event < began + moment)]
        printed = run.log.stat().st_size if run.log.exists() else 0
        process = run.start()
        while process.poll() is None and not (
            len(finished_at(run)) >= len(before) - 1 and AT_WORK.search(run.log.read_bytes()[printed:])
        ):
            time.sleep(LOOK_EVERY_S)
        time.sleep(began + moment - before[-1])
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        stage = run.stage_under_way() or "no stage"
        parts, rows = take_under_way(run)
        written = check_written(run, written)
        print(f"kill {kill} at {moment:.0f} s: {stage}, {parts} parts under way with {rows:,} rows done", flush=True)
        lost_parts, lost_rows = lost_parts + parts, lost_rows + rows
    run.finish(run.start())
    parts = len(check_written(run, written))
    print(f"{kills} kills: {lost_parts} parts, with {lost_rows:,} rows done, begun again; parts of all stages: {parts}")


def check_written(run: Curation, earlier: Mapping[str, int]) -> Mapping[str, int]:
    """Return when the parts of a run were written that are finished; exits where an earlier one has another time."""
    written = written_parts(run.run_dir)
    if again := [part for part, when in earlier.items() if written.get(part) != when]:
        sys.exit(f"finished parts were written again: {again}")
    return written


def main() -> None:
    """Curate in all ways, and compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--parts", type=int, nargs="+", default=[1, 2, 7])
    parser.add_argument("--sites", nargs="+", default=SITES, choices=SITES)
    parser.add_argument("--kills", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    folder = arguments.folder.absolute() / str(arguments.rows)
    if not folder.exists():
        write_rows(folder, arguments.data, arguments.rows)
    different: list[str] = []
    expected: dict[str, str] = {}
    ways = [(site, parts) for site in arguments.sites for parts in arguments.parts]
    for site, parts in ways if not arguments.kills else [("local", arguments.parts[-1])]:
        run = Curation(folder, f"{site}-{parts}", -(-arguments.rows // parts))
        curate(run, site)
        expected = expected or run_digests(run.run_dir)
        different += compare(run, expected)
    if arguments.kills:
        killed = Curation(folder, f"kills-{arguments.seed}", run.part_rows)
        kill_at_moments(killed, run, arguments.kills, random.Random(arguments.seed))
        different += compare(killed, expected)
    sys.exit(bool(different))


if __name__ == "__main__":
    main()
