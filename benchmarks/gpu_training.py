"""Runs the trainer on one GPU and measures it: exactness, steps under DeepSpeed, memory, speed, noise of bfloat16.

    python benchmarks/gpu_training.py --out FOLDER [--fixture loss_fixture.json] [--parts NAME ...] [--sizes NAME ...]
                                      [--seconds N] [--patience N]

Writes FOLDER/figures.jsonl, one line for each number as soon as it is measured, and FOLDER/NAME.log for each part. Each
part is a separate process, so that the death of one does not affect the results of another. If a measurement raises an
error, its traceback is logged and the next measurement follows. All processes load their packages at the same time and
then wait for their turn:

    lane 1   exactness, steps, noise       correctness; few kernels, little memory
    lane 2   memory of each size           allocations of a process are counted apart from those of the others
    after    speed of each size            alone on the GPU

No weights are needed: models have Qwen2.5's configurations and random weights. Only `--parts vllm` uses a real vLLM
and trained models (`gpu_parts.vllm`). In the other parts `gpu_parts.steps.RandomSampler` stands in for vLLM: it draws
random token ids and computes their log-probabilities with a copy of the model, which it loads from the tensors that
the trainer sends. Trainer, DeepSpeed, weight sync and probe are the real ones.

Without a GPU everything runs on the CPU, with `--sizes tiny` in a minute.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from gpu_parts.figures import Figures

SIZES = ("1.5b", "0.5b", "3b")
ALONE = "speed"
"""Parts of this name run after all others, by themselves."""
CASES = (
    "train-float32",
    "train-bfloat16",
    "seeds-eager",
    "beside-0.5b",
    "beside-1.5b",
    "loss-0.5b",
    "seeds-graphs",
    "beside-3b",
    "loss-1.5b",
    "seeds-eager-v1",
    "train-bfloat16-graphs",
    "train-bfloat16-graphs-demo",
    "train-bfloat16-graphs-zero2",
    "train-bfloat16-graphs-zero3",
    "train-bfloat16-graphs-lora",
    "train-bfloat16-graphs-full",
    "train-bfloat16-graphs-again",
    "sft-bfloat16",
    "train-bfloat16-graphs-shop",
    "beside-0.5b-zero2",
    "beside-0.5b-zero3",
)
"""What the part `vllm` measures, in this order."""
LIMITS = {"exactness": 60.0, "steps": 110.0, "noise": 60.0, "memory": 150.0, "speed": 80.0, "vllm": 120.0}
"""Seconds after which a part is ended."""


@dataclass
class Part:
    """A process that has loaded its packages and waits for a line on its standard input."""

    name: str
    process: subprocess.Popen[bytes]

    def run(self, deadline: float, patience: float, figures: Figures) -> None:
        """Let it go, and wait until it ends or its time is over."""
        started = time.monotonic()
        seconds = min(LIMITS[self.name.split("-")[0]] * patience, deadline - started)
        assert self.process.stdin is not None
        if seconds <= 0:
            self.process.kill()
            figures.write("part", of=self.name, ended="not begun: no time was left")
            return
        try:
            self.process.stdin.write(b"go\n")
            self.process.stdin.close()
            code = self.process.wait(seconds)
            ended = f"exit code {code}"
        except subprocess.TimeoutExpired:
            self.process.kill()
            ended = f"killed after {seconds:.0f} s"
        except BrokenPipeError:
            ended = f"died while it was loading, exit code {self.process.wait()}"
        figures.write("part", of=self.name, ended=ended, seconds=round(time.monotonic() - started, 1))


def _start(name: str, arguments: argparse.Namespace) -> Part:
    command = [sys.executable, __file__, "--out", str(arguments.out), "--part", name]
    if arguments.fixture:
        command += ["--fixture", str(arguments.fixture)]
    with (arguments.out / f"{name}.log").open("wb") as log:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=log, stderr=subprocess.STDOUT)
    return Part(name, process)


def _run_lane(parts: Sequence[Part], deadline: float, patience: float, figures: Figures) -> None:
    for part in parts:
        part.run(deadline, patience, figures)


def _run_part(arguments: argparse.Namespace) -> None:
    """Do one part in this process, once the first line has come."""
    name, _, size = arguments.part.partition("-")
    module = import_module(f"gpu_parts.{name}")
    if not sys.stdin.readline():
        return
    figures = Figures(arguments.out, arguments.part)
    if name == "exactness":
        module.run(figures, arguments.fixture)
    elif size:
        module.run(figures, size)
    else:
        module.run(figures)


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--fixture", type=Path, help="the file of benchmarks/loss_fixture.py")
    parser.add_argument("--parts", nargs="+", default=["exactness", "steps", "noise", "memory", "speed"])
    parser.add_argument("--cases", nargs="+", default=list(CASES), help="of the part vllm")
    parser.add_argument("--sizes", nargs="+", default=list(SIZES))
    parser.add_argument("--seconds", type=float, default=420.0, help="after so many seconds everything is ended")
    parser.add_argument("--patience", type=float, default=1.0, help="the limits of the parts are multiplied by it")
    parser.add_argument("--part", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    arguments.out.mkdir(parents=True, exist_ok=True)
    if arguments.part:
        _run_part(arguments)
        return
    deadline = time.monotonic() + arguments.seconds
    figures = Figures(arguments.out, "driver")
    of_part = {"memory": arguments.sizes, ALONE: arguments.sizes, "vllm": arguments.cases}
    names = [
        name
        for part in arguments.parts
        for name in ([f"{part}-{size}" for size in of_part[part]] if part in of_part else [part])
    ]
    parts = [_start(name, arguments) for name in names]
    lanes = [
        [part for part in parts if not part.name.startswith(("memory", ALONE, "vllm"))],
        [part for part in parts if part.name.startswith("memory")],
    ]
    threads = [threading.Thread(target=_run_lane, args=(lane, deadline, arguments.patience, figures)) for lane in lanes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    alone = [part for part in parts if part.name.startswith((ALONE, "vllm"))]
    _run_lane(alone, deadline, arguments.patience, figures)
    lines = [json.loads(line) for line in figures.path.read_text().splitlines()]
    failed = [line for line in lines if "error" in line]
    for line in [*(line for line in lines if "error" not in line), *failed[:20]]:
        print(json.dumps({name: value for name, value in line.items() if name not in ("traceback", "at_s")})[:300])
    print(f"{len(lines)} figures, {len(failed)} errors")


if __name__ == "__main__":
    _main()
