"""Moments of a training run, as a trainer's process writes them and the benchmark reads them: one JSON line each."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

from math_peers.cpu import live_children_s

LOADED, STEP = "loaded", "step"


def cpu_s() -> float:
    """Return user and system seconds of this process and all that it has started, also of what still runs."""
    return sum(os.times()[:4]) + live_children_s(os.getpid())


def peak_rss_mb() -> float:
    """Return the most that this process has held so far (VmHWM)."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    return 0.0


class Marks:
    """Writes marks. The facts of a mark belong to the time since the mark before."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "marks.jsonl"
        self._path.write_text("")

    def write(self, mark: str, **facts: Any) -> None:
        """Write a mark with the time, the CPU seconds and the memory so far."""
        now = {"mark": mark, "at": time.monotonic(), "cpu_s": cpu_s(), "peak_rss_mb": peak_rss_mb()}
        with self._path.open("a") as out:
            out.write(json.dumps(now | facts) + "\n")


def read_marks(folder: Path) -> list[dict[str, Any]]:
    """Return all marks in `folder`."""
    return [json.loads(line) for line in (folder / "marks.jsonl").read_text().splitlines()]
