"""Kills a run with SIGKILL at random moments, reruns it until it completes, and compares it with an undisturbed one.

    python benchmarks/kill_resume.py CONFIG.yaml [--kills 10] [--seed 0] [--set FIELD=VALUE ...]

Prints, for every kill, when it came and which stages were finished; fails where a finished stage runs again or the
final tables and weights differ. Times in the stage records are the only thing that may.
"""

from __future__ import annotations

import argparse
import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

TRUEGOLD = [sys.executable, "-P", "-m", "truegold.flows.cli", "run"]


def start(arguments: argparse.Namespace, name: str) -> subprocess.Popen[str]:
    """Start a run of the configuration under a name."""
    overrides = [f"name={name}", *arguments.set]
    command = [*TRUEGOLD, arguments.config, *(part for value in overrides for part in ("--set", value))]
    return subprocess.Popen(
        command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, start_new_session=True
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


def main() -> None:
    """Run once in peace and once with kills, and compare the outputs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("config")
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--runs-dir", default="runs")
    parser.add_argument("--set", action="append", default=[])
    arguments = parser.parse_args()
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
