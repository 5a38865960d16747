"""Prints progress and summaries. Progress is a bar in a terminal, and plain lines elsewhere."""

from __future__ import annotations

import re
import time
from collections import deque
from collections.abc import Collection, Mapping, Sequence
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
"""Standard output, for the results of commands."""
errors = Console(stderr=True, highlight=False)
"""Standard error, for progress and errors."""

PLAIN_EVERY_SECONDS = 15.0
"""Seconds between two progress lines without a terminal."""

PACE_SECONDS = 120.0
"""The remaining time of a step is computed from its speed in these last seconds."""

SECONDS_SHOWN, MINUTES_SHOWN, HOURS_SHOWN = 100, 90, 48
"""Durations are shown in seconds below 100 s, in minutes below 90 min, in hours below 48 h, else in days."""

SAID_TWICE = re.compile(r"(?P<setting>--set data\.\S+=(?P<value>\S+)), or (?P<option>--[a-z-]+) (?P=value)")
"""Advice with two spellings of one setting, of which a command understands one."""
COLUMN_OPTION = re.compile(r"--([a-z]+)-column ")
"""Advice to name a column by an option."""

Table = tuple[Sequence[str], Sequence[Sequence[object]]]
"""A table of a summary: the headings of its columns, and its rows."""


def print_line(text: str, console: Console = output) -> None:
    """Print a line without wrapping it, and without reading markup in it."""
    console.print(text, markup=False, soft_wrap=True)


def with_options_of(options: Collection[str], text: str) -> str:
    """Return advice in the spelling that a command with these options understands.

    For example, `--gold-column X` or `--set data.columns.gold=X`. Advice is unchanged if the command has neither.
    """
    has_set = "--set" in options

    def choose(match: re.Match[str]) -> str:
        if match["option"] in options:
            return match["option"] + " " + match["value"]
        return match["setting"] if has_set else match[0]

    def turn(match: re.Match[str]) -> str:
        is_known = f"--{match[1]}-column" in options or not has_set
        return match[0] if is_known else f"--set data.columns.{match[1]}="

    return COLUMN_OPTION.sub(turn, SAID_TWICE.sub(choose, text))


def describe_seconds(seconds: float) -> str:
    """Return a duration in words: `40 s`, `12 min`, `3 h 20 min`, `2 days 4 h`."""
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
    """Shows the progress of one stage at a time. It implements `truegold.pipeline.running.progress.Progress`."""

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
        """Times of the last two minutes, each with the steps done by then."""

    def stage(self, name: str) -> Terminal:
        """Return a context manager within which the progress of stage `name` is shown."""
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
        """Start the bar of a step, or print the name of the step."""
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
        """Move the bar. Without a terminal, print a line every PLAIN_EVERY_SECONDS."""
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
        """Print a line without the name of the stage."""
        print_line(text, self.console)

    def note(self, text: str) -> None:
        """Print a line that begins with the name of the stage."""
        self._print(text)

    def _note_pace(self) -> None:
        now = time.monotonic()
        self._pace.append((now, self._done))
        while len(self._pace) > 2 and now - self._pace[1][0] > PACE_SECONDS:
            self._pace.popleft()

    def _eta(self) -> str:
        """Return the remaining time at the speed of the last two minutes. The first step does not count, because it may
        include work of an earlier run."""
        if not self._total or len(self._pace) < 2:
            return ""
        (began, before), (now, done) = self._pace[0], self._pace[-1]
        if done == before or self._done >= self._total:
            return ""
        return f", about {describe_seconds((now - began) * (self._total - self._done) / (done - before))} left"

    def _print(self, text: str) -> None:
        self.console.print(f"{self._stage:<13} {text}", markup=False, highlight=False, soft_wrap=True)


def write_summary(target: Path, title: str, lines: Sequence[str], tables: Mapping[str, Table]) -> Path:
    """Print a summary, write it as Markdown, and return the path of the file.

    target: a folder, which gets `report.md`, or a file, which gets `NAME.report.md` next to it. Columns of numbers are
    aligned on the right.
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
