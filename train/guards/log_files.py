"""Reads the entries of a training's log from the file that a trainer, a tracker or a terminal has left.

trainer_state.json   {"log_history": [{"step": 1, "loss": 0.01, ...}, ...]}
JSON Lines           {"step": 1, "reward": 0.4}, or verl's {"step": 1, "data": {"actor/entropy": 0.5, ...}}
JSON                 an array of such objects
CSV, TSV             step,train/reward,...; also wandb's charts: "Step","run - reward","run - reward__MIN",...
console              {'loss': 0.01, 'reward': 0.4}; step:1 - actor/entropy:0.5 - ...; Step 1 | 12s | Loss 0.01 | ...
TensorBoard          events.out.tfevents.*
"""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from truegold.verifiers import InputError, SetupError

LARGEST = 3.4e38
"""In single precision."""
MOST_STEP = 10**15
LONGEST_CELL = 2**31 - 1
"""Characters of a cell in a table: the texts of completions may stand next to the metrics."""
csv.field_size_limit(LONGEST_CELL)
Entry = dict[str, float]
"""Maps the name of a column to the number in this entry."""

STEP_NAMES = (
    *(
        "train/global_step",
        "training/global_step",
        "training_step",
        "step",
        "global_step",
        "Step",
        "trainer/global_step",
    ),
    *("eval/global_step", "_step"),
)
"""Columns that count steps, the surest first."""
CHART = re.compile(r"(?P<run>.+)(?: - |: )(?P<metric>(?:(?! - |: ).)+?)(?P<edge>(?:__| )(?:MIN|MAX)|)")
"""A column of a chart that was exported from wandb."""
DECIMAL = r"-?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|-?(?:nan|NaN|inf|Infinity)"
LONGEST_NAME, LONGEST_PART = 200, 400
"""Characters: a line of one million without a name is passed in no time."""
VERL_LINE = re.compile(r"\bstep:(\d{1,15}) - (.+)")
VERL_PAIR = re.compile(rf"(.{{1,{LONGEST_NAME}}}?):(?:np\.\w{{1,20}}\()?({DECIMAL})\)?")
PRINTED_DICT = re.compile(r"\{'[^{}]+\}")
PRINTED_PAIR = re.compile(rf"'([^']+)': '?({DECIMAL})'?(?=[,}}])")
BAR_LINE = re.compile(r"\bStep (\d{1,15}) +\|(.+)")
BAR_PAIR = re.compile(rf"\s*([A-Z][\w. ]*?):? +({DECIMAL})\s*%?\s*")
ROUNDED_ZERO = re.compile(r":-?0\.0{1,3}(?= - |\s*$)")
"""A zero of verl's console before July 2025, which had three digits."""
LONG_NUMBER = re.compile(r":-?\d+\.\d{4}|\de-\d")
PATTERNS = ("*.jsonl", "*.csv", "**/events.out.tfevents.*")
"""Files of a folder that may be logs, of other trainers than truegold and TRL."""


@dataclass
class LogEntries:
    """The entries of one file in their order."""

    form: str
    """Its kind: `JSON Lines`, `CSV`, `console` and so on."""
    entries: list[tuple[int, Entry]] = field(default_factory=list)
    """Steps with their numbers."""
    texts: set[str] = field(default_factory=set)
    """Columns with something else than a number."""
    notes: list[str] = field(default_factory=list)
    """Notes on parts of the file that could not be read."""
    has_steps: bool = True
    """Whether every entry names its step."""
    is_rounded: bool = False
    """Whether 0.000 may stand for a small number."""


def read_entries(path: Path) -> LogEntries:
    """Return the entries of a log. Raises InputError if it is not a log or cannot be read."""
    if ".tfevents." in path.name:
        return _read_events(path)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read as text: {error}.", "Give a JSON, CSV or console log.") from error
    start = text.lstrip()[:1]
    entries = _read_json(text) if start in ("{", "[") else None
    if entries is None and (delimiter := _delimiter(text)) is not None:
        entries = _read_table(path, text, delimiter)
    if entries is None:
        entries = _read_console(text)
    if not entries.entries:
        raise InputError(f"{path} holds no metrics of steps.", "Give a JSON, CSV or console log of a training.")
    return entries


def _read_json(text: str) -> LogEntries | None:
    """Return the entries of one JSON value or of JSON Lines, or None if it is neither."""
    lines = [line for line in text.splitlines() if line.strip()]
    records, broken = [], []
    for line_number, line in enumerate(lines, 1):
        try:
            records.append(json.loads(line))
        except (ValueError, RecursionError):
            broken.append(line_number)
            if len(broken) > max(1, len(lines) // 10):
                break
    if not broken and len(records) > 1 and all(isinstance(record, dict) for record in records):
        return _entries_of(records, "JSON Lines")
    try:
        whole = json.loads(text)
    except (ValueError, RecursionError):
        # A trainer that was killed has half a line at the end.
        if len(broken) > max(1, len(lines) // 10) or not records:
            return None
        log = _entries_of(records, "JSON Lines")
        log.notes.append(f"{len(broken)} of {len(lines)} lines are no JSON and were left out, the first is {broken[0]}")
        return log
    if isinstance(whole, dict) and isinstance(whole.get("log_history"), list):
        return _entries_of(whole["log_history"], "trainer_state.json")
    return _entries_of(whole if isinstance(whole, list) else [whole], "JSON")


def _entries_of(records: Iterable[Any], form: str) -> LogEntries:
    log = LogEntries(form)
    step, endless = 0, 0
    for index, record in enumerate(record for record in records if isinstance(record, dict)):
        entry = dict(_numbers(record, log.texts))
        log.has_steps = log.has_steps and (not entry or any(name in entry for name in STEP_NAMES))
        endless += any(abs(entry.get(name, 0.0)) > MOST_STEP for name in STEP_NAMES)
        step = _step_of(entry, step if form == "CSV" and index else index)
        if len(entry) > 0:
            log.entries.append((step, entry))
    if endless:
        log.notes.append(f"{endless} entries have a step beyond {MOST_STEP:.0e} and are counted by their order")
    return log


def _numbers(record: Mapping[str, Any], texts: set[str], prefix: str = "") -> Iterator[tuple[str, float]]:
    """Yield the numbers of a record, those of objects within by a name with a slash."""
    for name, value in record.items():
        column = f"{prefix}{name}"
        if isinstance(value, dict):
            yield from _numbers(value, texts, prefix if name == "data" else f"{column}/")
        elif (known := to_number(value)) is not None:
            yield column, known
        elif value not in (None, "", True, False):
            texts.add(column)


def to_number(value: object) -> float | None:
    """Return a number as it stands in a log, also one that is written as a text or is not finite; None for all else."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        return to_float(value)
    except ValueError:
        return None


def to_float(value: float | str) -> float:
    """Return a number; what single precision cannot hold is infinite, as it was in the training."""
    known = float(value) if isinstance(value, str) else value
    if abs(known) > LARGEST:
        return math.inf if known > 0 else -math.inf
    return float(known)


def _step_of(entry: Entry, otherwise: int) -> int:
    """Take the columns that count steps out of an entry, and return the step of the surest one."""
    steps = [entry.pop(name) for name in STEP_NAMES if name in entry]
    known = [step for step in steps if abs(step) <= MOST_STEP]
    return int(known[0]) if known else otherwise


def _delimiter(text: str) -> str | None:
    """Return the separator between the columns of a table, or None if the text is not a table."""
    lines = [line for line in text.splitlines() if line.strip()]
    if len(lines) < 2:
        return None
    for delimiter in (",", "\t", ";"):
        # A cell of the first row may have several lines.
        header, row = [*islice(csv.reader(lines, delimiter=delimiter), 2), []][:2]
        has_names = len(header) > 1 and not any(to_number(name) is not None for name in header if name)
        if has_names and len(header) == len(row) and any(to_number(cell) is not None for cell in row):
            return delimiter
    return None


def _read_table(path: Path, text: str, delimiter: str) -> LogEntries:
    header, *table = [row for row in csv.reader(text.splitlines(), delimiter=delimiter) if row]
    columns = [name for name in dict.fromkeys(header) if name]
    unlike = [
        name
        for name in columns
        if header.count(name) > 1
        and any(len({cell for title, cell in zip(header, row, strict=False) if title == name}) > 1 for row in table)
    ]
    if unlike:
        names = ", ".join(unlike[:5])
        raise InputError(
            f"{path} has several columns of one name, with unlike cells: {names}.", "Rename or remove them."
        )
    rows = [dict(zip(header, row, strict=False)) for row in table]
    charts = {name: match for name in columns if (match := CHART.fullmatch(name))}
    if charts and all(name in charts or name in STEP_NAMES or "Time" in name for name in columns):
        runs = sorted({match["run"] for match in charts.values()})
        if len(runs) > 1:
            names = ", ".join(runs[:5])
            raise InputError(f"{path} holds {len(runs)} runs ({names}).", "Export the chart of a single run.")
        renamed = {name: match["metric"] for name, match in charts.items() if not match["edge"]}
        rows = [
            {renamed.get(name, name): cell for name, cell in row.items() if name not in charts or name in renamed}
            for row in rows
        ]
    return _entries_of([{name: cell for name, cell in row.items() if name} for row in rows], "CSV")


def _read_console(text: str) -> LogEntries:
    """Return the entries of a terminal's output: what verl, TRL and prime-rl print for each step."""
    log = LogEntries("console")
    printed = 0
    for line in text.splitlines():
        if match := VERL_LINE.search(line):
            named = [pair for part in match[2].split(" - ") if (pair := VERL_PAIR.match(part.lstrip()))]
            entry = {pair[1]: to_float(pair[2]) for pair in named}
            log.is_rounded = log.is_rounded or bool(ROUNDED_ZERO.search(line) and not LONG_NUMBER.search(line))
            step = int(match[1])
        elif match := BAR_LINE.search(line):
            parts = [part.strip() for part in match[2].split("|") if len(part) <= LONGEST_PART]
            pairs = [pair for part in parts if (pair := BAR_PAIR.fullmatch(part))]
            entry = {f"console/{pair[1]}": to_float(pair[2]) for pair in pairs}
            step, log.is_rounded = int(match[1]), True
        elif match := PRINTED_DICT.search(line):
            entry = {name: to_float(shown) for name, shown in PRINTED_PAIR.findall(match[0])}
            is_summary = "train_runtime" in entry
            printed += not is_summary and not any(name.startswith("eval_") for name in entry)
            step = _step_of(entry, printed)
            entry = {} if is_summary else entry
        else:
            continue
        if entry:
            log.entries.append((step, entry))
    return log


def _read_events(path: Path) -> LogEntries:
    """Return the scalars of a TensorBoard file."""
    try:
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    except ImportError as error:
        raise SetupError(f"{path} is read by tensorboard.", "pip install 'truegold[train]'") from error
    events = EventAccumulator(str(path), size_guidance={"scalars": 0, "tensors": 0})
    events.Reload()
    log = LogEntries("TensorBoard")
    entries: dict[int, Entry] = {}
    for name in events.Tags()["scalars"]:
        for event in events.Scalars(name):
            entries.setdefault(int(event.step), {})[name] = float(event.value)
    log.entries = sorted(entries.items())
    if not log.entries:
        raise InputError(f"{path} holds no scalars.", "Give the file of the training itself.")
    return log
