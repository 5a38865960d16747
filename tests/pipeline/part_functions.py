"""Work for worker processes, in a module that they can import."""

from __future__ import annotations

import os
import signal
from typing import Any

from truegold.pipeline.config.base import StageConfig
from truegold.pipeline.running.parts import Part
from truegold.pipeline.running.progress import Progress
from truegold.pipeline.running.stage import StageReport
from truegold.pipeline.tables.rows import read_rows, write_rows


class Config(StageConfig):
    """The settings of this work."""

    fails: int | None = None
    """The part that cannot be done."""
    workers: int = 0


def square(number: int) -> tuple[int, int]:
    """Return the square, and the process that has worked it out."""
    return number**2, os.getpid()


def fail_at_40(number: int) -> int:
    if number == 40:
        raise LookupError("no 40")
    return number


def die_at_30(number: int) -> None:
    if number == 30:
        os.kill(os.getpid(), signal.SIGKILL)


def copy_part(part: Part, config: Config, shared: Any, progress: Progress) -> StageReport:
    """Copy a part, and note that it was worked on."""
    with (part.out_dir / "calls.txt").open("a") as calls:
        calls.write(f"{part.index} {os.getpid()}\n")
    if part.index == config.fails:
        raise LookupError(f"part {part.index}")
    rows = write_rows(part.output("rows.parquet"), read_rows(part.inputs["rows"]))
    progress.advance(rows)
    return StageReport(rows, rows, {"copied": rows}, {"shared": shared})


def copy_again(part: Part, config: Config, shared: Any, progress: Progress) -> StageReport:
    """Do the same under another name."""
    return copy_part(part, config, shared, progress)


def die_at_first(part: Part, config: Config, shared: Any, progress: Progress) -> StageReport:
    """Copy a part; the first process to try part 1 is killed over it."""
    tried = part.out_dir / "tried"
    if part.index == 1 and not tried.exists():
        tried.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return copy_part(part, config, config.workers, progress)
