"""Kills an asynchronous training with SIGKILL at random moments until it is done, and reads the ledger of its groups.

    python benchmarks/asynchronous_kills.py runs/demo [--steps 24] [--kills 10] [--seed 0]

RUN_DIR is a run of the demo, at least up to the stage select. Each kill comes at a random time after a random step. The
benchmark fails if a group ended twice, if a requested group neither ended nor was running at the end, or if a step has
no groups.
"""

from __future__ import annotations

import argparse
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import torch
from asynchronous import plan_training

from truegold.pipeline.config.base import LaunchConfig
from truegold.pipeline.running.disk import read_whole_lines
from truegold.pipeline.running.isolation import call_isolated
from truegold.pipeline.running.progress import NullProgress
from truegold.train.model.saved_states import TRAINER_STATE, step_folder

MOMENT_S = 1.5
"""A kill comes up to so many seconds after the step."""


def train(run: Path, folder: Path, steps: int) -> None:
    """Train in a folder, or go on."""
    settings = {
        "asynchronous": {"max_staleness": 2, "order": "fresh", "in_flight": True},
        "steps": steps,
        "checkpoint_every": 3,
        "evaluation.every": 0,
    }
    inputs, config = plan_training(run, settings)
    out = folder / "out"
    out.mkdir(exist_ok=True)
    fn = "truegold.train.grpo:grpo"
    call_isolated(fn, inputs, config, out, NullProgress(), folder / "log", LaunchConfig(), folder / "scratch")


def steps_taken(folder: Path) -> int:
    """Return how many steps are in the metrics."""
    metrics = folder / "out" / "metrics.jsonl"
    return len(read_whole_lines(metrics)) if metrics.exists() else 0


def read_ledger(folder: Path, steps: int) -> bool:
    """Print what became of the groups; return whether each ended once and none is lost."""
    records = read_whole_lines(folder / "out" / "groups.jsonl")
    ends = Counter(record["group"] for record in records)
    twice = [group for group, count in ends.items() if count > 1]
    checkpoint = step_folder(folder / "out" / "checkpoints", steps)
    state = torch.load(checkpoint / TRAINER_STATE, weights_only=False)["state"]
    pending = {group for group, *_ in state["pending_groups"]}
    lost = sorted(set(range(state["next_group"])) - set(ends) - pending)
    by_step = Counter(record["step"] for record in records if record["event"] != "stale")
    steps_missing = [step for step in range(steps) if not by_step[step]]
    print(f"{state['next_group']} groups were asked for, {len(pending)} are under way, {len(records)} ended:")
    print(dict(Counter(record["event"] for record in records)))
    print(f"ended twice: {twice}; lost: {lost}; steps without groups: {steps_missing}")
    return not (twice or lost or steps_missing or pending & set(ends))


def main() -> None:
    """Kill, go on, and read."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, metavar="RUN_DIR")
    parser.add_argument("--steps", type=int, default=24)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        train(arguments.run.resolve(), arguments.child, arguments.steps)
        return
    draw = random.Random(arguments.seed)
    with tempfile.TemporaryDirectory(prefix="truegold-kills-") as name:
        folder = Path(name)
        command = [sys.executable, __file__, str(arguments.run.resolve())]
        command += [f"--steps={arguments.steps}", f"--child={folder}"]
        for kill, step in enumerate(sorted(draw.randrange(arguments.steps) for _ in range(arguments.kills)), 1):
            process = subprocess.Popen(command, start_new_session=True, stderr=subprocess.DEVNULL)
            while steps_taken(folder) <= step and process.poll() is None:
                time.sleep(0.05)
            time.sleep(draw.uniform(0, MOMENT_S))
            process.send_signal(signal.SIGKILL)
            process.wait()
            print(f"kill {kill}: after {steps_taken(folder)} steps", flush=True)
        if subprocess.run(command, check=False).returncode:
            sys.exit((folder / "log").read_text(errors="replace")[-3000:])
        sys.exit(not read_ledger(folder, arguments.steps))


if __name__ == "__main__":
    main()
