"""Prints to the terminal: progress bars with an ETA where there is one, plain lines elsewhere, and summaries."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
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

from truegold.pipeline.running.disk import write_whole

output = Console(highlight=False)
"""Standard output, where commands print what they were asked for."""
errors = Console(stderr=True, highlight=False)
"""Standard error, for progress and errors."""

PLAIN_EVERY_SECONDS = 15.0
"""Seconds between two progress lines without a terminal."""


PACE_SECONDS = 120.0
"""How long a pace is looked back on to say how long a step will go on."""

SECONDS_SHOWN, MINUTES_SHOWN, HOURS_SHOWN = 100, 90, 48
"""The numbers of seconds, minutes and hours from which a duration is told in minutes, in hours, in days."""

Table = tuple[Sequence[str], Sequence[Sequence[object]]]
"""The heads of columns, and the rows."""


def print_line(text: str, console: Console = output) -> None:
    """Print a line as it is: markup in it has no effect, and it is not broken."""
    console.print(text, markup=False, soft_wrap=True)


def describe_seconds(seconds: float) -> str:
    """Return a duration as a person says it: `40 s`, `12 min`, `3 h 20 min`, `2 days 4 h`."""
    minutes = round(seconds / 60)
    if seconds < SECONDS_SHOWN:
        return f"{max(1, round(seconds))} s"
    if minutes < MINUTES_SHOWN:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < HOURS_SHOWN:
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    days, hours = divmod(hours, 24)
    return f"{days} days {hours} h" if hours else f"{days} days"


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
        self._last_line = time.monotonic()
        self._pace: deque[tuple[float, int]] = deque()
        """Moments of the last minutes, with what was done by then."""

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
        self._last_line = time.monotonic()
        self._pace.clear()
        if self._bars is None:
            self._print(f"{label} ({total:,})" if total else label)
            return
        if self._task is not None:
            self._bars.remove_task(self._task)
        self._task = self._bars.add_task(label, total=total, stage=self._stage, detail="")

    def advance(self, steps: int = 1, detail: str = "", total: int | None = None) -> None:
        """Move the bar, or print a line every so often."""
        self._done += steps
        self._total = self._total if total is None else total
        self._note_pace()
        if self._bars is not None and self._task is not None:
            self._bars.update(self._task, advance=steps, total=self._total, detail=detail)
        elif time.monotonic() - self._last_line >= PLAIN_EVERY_SECONDS:
            self._last_line = time.monotonic()
            of_all = f"/{self._total:,}" if self._total else ""
            self._print(f"{self._label} {self._done:,}{of_all}{self._eta()} {detail}".rstrip())

    def tell(self, text: str) -> None:
        """Print a line that stands for itself, without the stage in front."""
        print_line(text, self.console)

    def note(self, text: str) -> None:
        """Print a line."""
        self._print(text)

    def _note_pace(self) -> None:
        now = time.monotonic()
        self._pace.append((now, self._done))
        while len(self._pace) > 2 and now - self._pace[1][0] > PACE_SECONDS:
            self._pace.popleft()

    def _eta(self) -> str:
        """Return how long it will go on at the pace of the last minutes; what was done at the very start may have come
        from an earlier try."""
        if not self._total or len(self._pace) < 2:
            return ""
        (began, before), (now, done) = self._pace[0], self._pace[-1]
        if done == before or self._done >= self._total:
            return ""
        return f", about {describe_seconds((now - began) * (self._total - self._done) / (done - before))} left"

    def _print(self, text: str) -> None:
        self.console.print(f"{self._stage:<13} {text}", markup=False, highlight=False, soft_wrap=True)


def write_summary(target: Path, title: str, lines: Sequence[str], tables: Mapping[str, Table]) -> Path:
    """Print a summary and write it as Markdown; return the file: `report.md` in a folder, else next to the file.

    Columns of numbers are set flush right.
    """
    page = [f"# {title}", "", *lines]
    for line in lines:
        print_line(line)
    for name, (heads, rows) in tables.items():
        if not rows:
            continue
        cells = [[_cell(value) for value in row] for row in rows]
        right = [all(not isinstance(row[column], str) for row in rows) for column in range(len(heads))]
        widths = [max(map(len, column)) for column in zip(heads, *cells, strict=True)]
        for row in [list(heads), *cells]:
            parts = [
                f"{text:>{width}}" if is_right else f"{text:<{width}}"
                for text, width, is_right in zip(row, widths, right, strict=True)
            ]
            print_line(f"  {'  '.join(parts)}".rstrip())
        page += ["", f"## {name}", "", _markdown_row(heads)]
        page += [_markdown_row(["--:" if is_right else "---" for is_right in right]), *map(_markdown_row, cells)]
    report = target / "report.md" if target.is_dir() else target.with_name(f"{target.name}.report.md")
    write_whole(report, ("\n".join(page) + "\n").encode())
    return report


def _cell(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)


def _markdown_row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(text.replace('|', chr(92) + '|') for text in cells)} |"
