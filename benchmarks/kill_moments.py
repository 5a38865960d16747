"""Ends a training at a chosen moment, by a signal or a full disk, at the n-th call of a function.

`kill_resume.py` puts a `sitecustomize.py` that calls `plant` on the path of the run's processes. The environment
variable `PLANTED` has the moment, the ending, the target, and the folder for a note of the time.
"""

from __future__ import annotations

import importlib.abc
import importlib.util
import json
import os
import pkgutil
import signal
import sys
import time
from collections.abc import Sequence
from functools import wraps
from importlib.machinery import ModuleSpec
from pathlib import Path
from threading import Timer
from types import ModuleType
from typing import Any

PLANTED = "TRUEGOLD_KILL_AT"
FULL, NO_ROOM = "full", "no room"
"""Endings beside the signals: the disk of the run is full, the GPU is (torch's error, raised in an update)."""
FILLER = "filler"
"""A file that takes what the disk has left."""

MOMENTS: dict[str, tuple[str, str, int, float]] = {
    "start": ("truegold.train.grpo.start_checks", "read_training_rows", 1, 0.0),
    "loading": ("truegold.train.rollout.rollout", "build_rollout_engine", 1, 1.0),
    "rollout": ("truegold.train.rollout.rollout", "RolloutSampler.sample", 8, 0.05),
    "judging": ("truegold.train.grpo.groups", "CompletionScorer.score", 8, 0.0),
    "update": ("truegold.train.model.engine", "TrainingEngine.update", 13, 0.02),
    "second update": ("truegold.train.model.engine", "TrainingEngine.update", 14, 0.02),
    "sync": ("truegold.train.rollout.rollout", "RolloutSampler.sync", 8, 0.02),
    "completions": ("truegold.train.grpo.step", "write_completions", 7, 0.0),
    "evaluation": ("truegold.train.grpo.step", "Trainer.evaluate", 2, 0.05),
    "checkpoint": ("truegold.train.model.engine", "TrainingEngine.save", 3, 0.01),
    "export": ("truegold.train.model.engine", "TrainingEngine.export", 1, 0.0),
    "sampler": ("truegold.train.rollout.sampler_child", "SamplerChild._take", 20, 0.0),
    "micro-batch": ("truegold.train.model.engine", "TrainingEngine._batch_loss", 13, 0.0),
    "sft": ("truegold.train.model.engine", "TrainingEngine.update", 50, 0.02),
    "sft's checkpoint": ("truegold.train.model.engine", "TrainingEngine.save", 2, 0.01),
}
"""Module, function, which of its calls, and so many seconds behind it."""


class _Planter(importlib.abc.MetaPathFinder):
    """Wraps a function of a module once that is imported."""

    def __init__(self, module: str, function: str, call: int, delay: float, note: Path) -> None:
        self._module, self._function, self._call, self._delay, self._note = module, function, call, delay, note

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name != self._module:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        assert spec is not None and spec.loader is not None
        execute = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            execute(module)
            *holders, last = self._function.split(".")
            holder = pkgutil.resolve_name(":".join([name, ".".join(holders)])) if holders else module
            setattr(holder, last, self._wrap(getattr(holder, last)))

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec

    def _wrap(self, function: Any) -> Any:
        calls = 0

        @wraps(function)
        def counted(*arguments: Any, **named: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls == self._call and not self._note.exists():
                if self._delay:
                    Timer(self._delay, self._act).start()
                else:
                    self._act()
            return function(*arguments, **named)

        return counted

    def _act(self) -> None:
        planted = json.loads(os.environ[PLANTED])
        try:
            with self._note.open("x") as note:
                note.write(str(time.time()))
        except FileExistsError:  # Another rank was first.
            return
        if planted["ending"] == NO_ROOM:
            import torch

            raise torch.OutOfMemoryError("CUDA out of memory (planted).")
        if planted["ending"] == FULL:
            fill(Path(planted["disk"]))
            return
        signum = signal.Signals[planted["ending"]]
        if planted["target"] == "group":
            os.killpg(os.getpgid(0), signum)
        else:
            os.kill(os.getppid() if planted["target"] == "launcher" else os.getpid(), signum)


def fill(disk: Path) -> None:
    """Take what a disk has left."""
    with (disk / FILLER).open("wb", buffering=0) as file:
        for size in (2**20, 2**12, 1):
            try:
                while file.write(b"\0" * size):
                    pass
            except OSError:
                continue


def plant() -> None:
    """Plant what the environment says, if anything."""
    if PLANTED in os.environ:
        planted = json.loads(os.environ[PLANTED])
        sys.meta_path.insert(0, _Planter(*MOMENTS[planted["moment"]], Path(planted["note"])))
