"""Prints to the terminal: progress bars with an ETA where there is one, plain lines elsewhere."""

from __future__ import annotations

import time
from types import TracebackType

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

output = Console(highlight=False)
"""Standard output, where commands print what they were asked for."""
errors = Console(stderr=True, highlight=False)
"""Standard error, for progress and errors."""

PLAIN_EVERY_SECONDS = 15.0
"""Without a terminal a progress line is printed every this many seconds."""


def print_line(text: str, console: Console = output) -> None:
    """Print a line as it is: markup in it has no effect, and it is not broken."""
    console.print(text, markup=False, soft_wrap=True)


class Terminal:
    """Draws one stage's progress at a time; it is a `truegold.pipeline.running.progress.Progress`."""

    def __init__(self, console: Console | None = None) -> None:
        self.console = console or errors
        self._stage = ""
        self._bars: Progress | None = None
        self._task: TaskID | None = None
        self._label = ""
        self._total: int | None = None
        self._done = 0
        self._began = self._last_line = time.monotonic()

    def stage(self, name: str) -> Terminal:
        """Draw for stage `name` from now on; use the result as a context manager."""
        self._stage = name
        return self

    def __enter__(self) -> Terminal:
        if self.console.is_terminal:
            self._bars = Progress(
                SpinnerColumn(),
                TextColumn("{task.fields[stage]:<13} {task.description}"),
                BarColumn(bar_width=24),
                MofNCompleteColumn(),
                TimeElapsedColumn(),
                TextColumn("eta"),
                TimeRemainingColumn(),
                TextColumn("{task.fields[detail]}"),
                console=self.console,
                transient=True,
            )
            self._bars.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if self._bars is not None:
            self._bars.stop()
        self._bars = self._task = None

    def start(self, label: str, total: int | None = None) -> None:
        """Begin a bar, or print the step's name."""
        self._label, self._total, self._done = label, total, 0
        self._began = self._last_line = time.monotonic()
        if self._bars is None:
            self._print(f"{label} ({total:,})" if total else label)
            return
        if self._task is not None:
            self._bars.remove_task(self._task)
        self._task = self._bars.add_task(label, total=total, stage=self._stage, detail="")

    def advance(self, steps: int = 1, detail: str = "") -> None:
        """Move the bar, or print a line every so often."""
        self._done += steps
        if self._bars is not None and self._task is not None:
            self._bars.update(self._task, advance=steps, detail=detail)
        elif time.monotonic() - self._last_line >= PLAIN_EVERY_SECONDS:
            self._last_line = time.monotonic()
            total = f"/{self._total:,}" if self._total else ""
            self._print(f"{self._label} {self._done:,}{total}{self._eta()} {detail}".rstrip())

    def note(self, text: str) -> None:
        """Print a line."""
        self._print(text)

    def _eta(self) -> str:
        if not self._total or not self._done:
            return ""
        left = (time.monotonic() - self._began) * (self._total - self._done) / self._done
        return f", about {left:.0f} s left"

    def _print(self, text: str) -> None:
        self.console.print(f"{self._stage:<13} {text}", markup=False, highlight=False, soft_wrap=True)
