"""Kills a run with SIGKILL at random moments, reruns it until it completes, and compares it with an undisturbed one.

    python benchmarks/kill_resume.py CONFIG.yaml [--kills 10] [--seed 0] [--set FIELD=VALUE ...]
    python benchmarks/kill_resume.py CONFIG.yaml --endings SIGTERM:group SIGINT:launcher full --moments update sync ...

Prints the time of each kill and the stages that were finished. Fails if a finished stage runs again, or if the final
tables and weights differ; only times in the stage records may differ.

With `--endings` the training is ended in other ways, at each moment in `kill_moments.py`: by a signal to the process
`launcher`, `trainer` or to their `group`; by a full disk (`full`); or by a full GPU (`no room`, torch's error). Printed
is a table of the ending, the number of finished steps from which the next start continues, and whether metrics,
completions and weights then equal those of an undisturbed run. The disk is a tmpfs, which needs root.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kill_moments import FILLER, FULL, MOMENTS, PLANTED

from truegold.pipeline.running.disk import read_whole_lines

TRUEGOLD = [sys.executable, "-P", "-m", "truegold.flows.cli", "run"]


def start(
    arguments: argparse.Namespace, name: str, runs: Path | None = None, planted: Mapping[str, str] | None = None
) -> subprocess.Popen[str]:
    """Start a run of the configuration under a name, in a separate folder of runs, with a planted ending."""
    overrides = [f"name={name}", *arguments.set, *([] if runs is None else [f"runs_dir={runs}"])]
    command = [
        *TRUEGOLD,
        arguments.config,
        "--engine",
        arguments.engine,
        *(part for value in overrides for part in ("--set", value)),
    ]
    environment = dict(os.environ)
    if planted is not None:
        (folder := Path(planted["note"]).with_suffix(".path")).mkdir()
        (folder / "sitecustomize.py").write_text("import kill_moments\n\nkill_moments.plant()\n")
        path = [str(folder), str(Path(__file__).parent), environment.get("PYTHONPATH", "")]
        environment |= {PLANTED: json.dumps(dict(planted)), "PYTHONPATH": os.pathsep.join(path)}
    return subprocess.Popen(
        command,
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
        env=environment,
    )


def finished_stages(run_dir: Path) -> dict[str, float]:
    """Finished stages and when their records were written."""
    return {path.parent.name: path.stat().st_mtime for path in run_dir.glob("*/stage.json")}


def outputs(run_dir: Path) -> dict[str, str]:
    """Digest of every output that must not depend on when a run was killed, by stage and file."""
    digests = {}
    for record in sorted(run_dir.glob("*/stage.json")):
        stage = record.parent.name
        for name, entry in json.loads(record.read_text())["outputs"].items():
            timed = name.endswith("metrics.jsonl") or "tensorboard/" in name or "checkpoints/" in name
            if stage != "report" and not timed:
                digests[f"{stage}/{name}"] = entry["digest"]
    return digests


SHOWN = 8
"""So many of the differences are named."""
TIMED = ("seconds", "tokens_per", "trainer_waiting", "sampler_starved", "environment_wait")
"""Metrics that differ from run to run begin with one of these."""


def trained(stage: Path) -> dict[str, Any]:
    """Return what a training has written that depends on nothing but its seed: metrics and tables of completions."""
    import polars as pl

    metrics = {
        f"{name} of step {line['step']}": value
        for line in read_whole_lines(stage / "metrics.jsonl")
        for name, value in line.items()
        if not name.startswith(TIMED)
    }
    tables = {path.name: pl.read_parquet(path) for path in sorted((stage / "completions").glob("*.parquet"))}
    weights = {path.name: path.read_bytes() for path in stage.glob("checkpoint/*.safetensors")}
    return {**metrics, **weights, **{name: table.to_dicts() for name, table in tables.items()}}


@dataclass
class Ended:
    """The ending of a training, and its remaining state."""

    exit_code: int
    line: str
    seconds: float
    """From the ending to the last process's end."""
    saved_s: float
    """From the ending to the checkpoint; below 0 where it was there before."""
    finished: int
    """Steps in the metrics."""
    taken_up: int
    """The step of the checkpoint that counts; -1 without one."""
    alarm: str
    """The last alarm's guard."""
    has_report: bool

    def row(self, differing: list[str]) -> str:
        """Return the columns of the table."""
        more = ["..."] * (len(differing) > SHOWN)
        same = "as undisturbed" if not differing else "differs: " + ", ".join([*differing[:SHOWN], *more])
        report = "yes" if self.has_report else "no"
        columns = (
            self.exit_code,
            f"{self.seconds:.1f}",
            f"{self.saved_s:.1f}",
            self.finished,
            self.taken_up,
            self.alarm,
            report,
            same,
        )
        return " | ".join(map(str, (*columns, self.line)))


HEADER = (
    "ending",
    "moment",
    "exit",
    "s",
    "saved after s",
    "finished",
    "goes on from",
    "alarm",
    "report",
    "afterwards",
    "line",
)


@contextmanager
def folder_of_runs(base: Path, case: Path, ending: str, room_mb: float) -> Iterator[Path]:
    """Yield a folder with the run up to the training, on a separate disk if the disk is to be filled."""
    case.mkdir(parents=True)
    if ending == FULL:
        taken = sum(path.stat().st_size for path in base.rglob("*") if path.is_file()) / 2**20
        size = f"size={int(taken * 1.3 + room_mb)}m"
        subprocess.run(["mount", "-t", "tmpfs", "-o", size, "tmpfs", str(case)], check=True)
    try:
        shutil.copytree(base, case / "run", symlinks=True)
        yield case
    finally:
        if ending == FULL:
            subprocess.run(["umount", "-l", str(case)], check=True)
        else:
            shutil.rmtree(case)


def end(arguments: argparse.Namespace, runs: Path, note: Path, ending: str, moment: str) -> Ended:
    """Run until the planted ending comes, and return how it ended."""
    kind, _, target = ending.partition(":")
    planted = {"moment": moment, "ending": kind, "target": target, "disk": str(runs), "note": str(note)}
    child = start(arguments, "run", runs, planted)
    _, output = child.communicate()
    came = float(note.read_text()) if note.exists() else float("nan")
    seconds = time.time() - came
    run = runs / "run"
    partial = next(iter(run.glob(f".partial/{arguments.stage}-*")), run / arguments.stage)
    alarms = read_whole_lines(partial / "alarms.jsonl")
    pointer = next(iter(partial.rglob("checkpoints/latest.json")), None)
    lines = output.strip().splitlines()
    return Ended(
        child.returncode,
        " ".join(lines[-2:]) if child.returncode == 4 else lines[-1],
        seconds,
        pointer.stat().st_mtime - came if pointer is not None else float("nan"),
        sum("loss" in line or "pass_rate" in line for line in read_whole_lines(partial / "metrics.jsonl")),
        json.loads(pointer.read_text())["step"] if pointer is not None else -1,
        alarms[-1]["guard"] if alarms else "none",
        (run / "report" / "index.html").exists(),
    )


def endings(arguments: argparse.Namespace) -> bool:
    """End trainings at all moments, let each go on, and print the table; return whether all is as undisturbed."""
    work = Path(arguments.runs_dir)
    base, calm = work / "base" / "run", work / "calm"
    if not (calm / "run" / arguments.stage / "stage.json").exists():
        child = start(arguments, "run", calm)
        _, output = child.communicate()
        if child.returncode:
            sys.exit(f"the undisturbed run failed:\n{output}")
    if not base.exists():
        shutil.copytree(calm / "run", base, symlinks=True)
        for stage in (arguments.stage, "report"):
            shutil.rmtree(base / stage, ignore_errors=True)
    expected, is_same = trained(calm / "run" / arguments.stage), True
    print(" | ".join(HEADER), flush=True)
    for ending in arguments.endings:
        for moment in arguments.moments:
            name = f"{ending}-{moment}".replace(":", "-").replace(" ", "-")
            (note := work / f"{name}.note").unlink(missing_ok=True)
            shutil.rmtree(note.with_suffix(".path"), ignore_errors=True)
            with folder_of_runs(base, work / name, ending, arguments.room_mb) as runs:
                ended = end(arguments, runs, note, ending, moment)
                (runs / FILLER).unlink(missing_ok=True)
                child = start(arguments, "run", runs)
                _, output = child.communicate()
                if child.returncode:
                    differing = [f"goes on with exit code {child.returncode}: {output.strip().splitlines()[-1]}"]
                else:
                    actual = trained(runs / "run" / arguments.stage)
                    differing = [key for key in expected | actual if expected.get(key) != actual.get(key)]
                print(f"{ending} | {moment} | {ended.row(differing)}", flush=True)
            is_same &= not differing
    return is_same


def main() -> None:
    """Run once in peace and once with kills, and compare the outputs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("config")
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--runs-dir", default="runs")
    parser.add_argument("--set", action="append", default=[])
    parser.add_argument("--endings", nargs="+", default=())
    parser.add_argument("--moments", nargs="+", default=("rollout", "update", "sync"), choices=MOMENTS)
    parser.add_argument("--engine", default="prefect", help="as the command's")
    parser.add_argument("--stage", default="train")
    parser.add_argument("--command", default="run", choices=("run", "train", "select"))
    parser.add_argument("--room-mb", type=float, default=200.0, help="of the disk that `full` fills")
    arguments = parser.parse_args()
    TRUEGOLD[-1] = arguments.command
    if arguments.endings:
        sys.exit(not endings(arguments))
    arguments.set.append(f"runs_dir={arguments.runs_dir}")
    calm, killed = (Path(arguments.runs_dir) / name for name in ("calm", "killed"))

    began = time.monotonic()
    undisturbed = start(arguments, "calm")
    _, output = undisturbed.communicate()
    if undisturbed.returncode:
        sys.exit(f"the undisturbed run failed:\n{output}")
    duration = time.monotonic() - began
    print(f"undisturbed run: {duration:.0f} s")

    draw = random.Random(arguments.seed)
    seen: dict[str, float] = {}
    for kill in range(arguments.kills):
        child = start(arguments, "killed")
        moment = draw.uniform(1, duration / 2)
        try:
            _, output = child.communicate(timeout=moment)
        except subprocess.TimeoutExpired:
            child.send_signal(signal.SIGKILL)
            child.communicate()
        now = finished_stages(killed)
        again = [stage for stage, when in seen.items() if now.get(stage) != when]
        if again:
            sys.exit(f"kill {kill + 1}: finished stages ran again: {again}")
        seen = now
        print(f"kill {kill + 1}: after {moment:.1f} s; finished: {', '.join(sorted(now)) or 'none'}", flush=True)
    last = start(arguments, "killed")
    _, output = last.communicate()
    if last.returncode:
        sys.exit(f"the last run failed:\n{output}")
    calm_outputs, killed_outputs = outputs(calm), outputs(killed)
    different = sorted(
        name
        for name in calm_outputs.keys() | killed_outputs.keys()
        if calm_outputs.get(name) != killed_outputs.get(name)
    )
    print(
        f"{len(calm_outputs)} output files compared, {len(different)} differ"
        + "".join(f"\n  {name}" for name in different)
    )
    sys.exit(bool(different))


if __name__ == "__main__":
    main()
