"""Reader of training logs: files of trainers and trackers, and saved terminal output. The formats:

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
"""The largest number in single precision. Larger numbers are read as infinite."""
MOST_STEP = 10**15
"""The largest number that is read as a step."""
LONGEST_CELL = 2**31 - 1
"""The largest number of characters in a cell of a table, which may have completions next to metrics."""
csv.field_size_limit(LONGEST_CELL)
Entry = dict[str, float]
"""The numbers of one entry by column."""

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
"""Columns that count steps, the most reliable first."""
CHART = re.compile(r"(?P<run>.+)(?: - |: )(?P<metric>(?:(?! - |: ).)+?)(?P<edge>(?:__| )(?:MIN|MAX)|)")
"""A column of a chart exported from wandb: `my-run - train/reward__MIN`."""
DECIMAL = r"-?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|-?(?:nan|NaN|inf|Infinity)"
"""A number: `0.5`, `-1e-3`, `nan`."""
LONGEST_NAME, LONGEST_PART = 200, 400
"""The largest numbers of characters of a name and of a part between bars, so that very long lines are skipped fast."""
VERL_LINE = re.compile(r"\bstep:(\d{1,15}) - (.+)")
"""A line of verl's console: `step:1 - actor/entropy:0.5 - ...`."""
VERL_PAIR = re.compile(rf"(.{{1,{LONGEST_NAME}}}?):(?:np\.\w{{1,20}}\()?({DECIMAL})\)?")
"""A metric in such a line: `actor/entropy:0.5` or `actor/entropy:np.float64(0.5)`."""
PRINTED_DICT = re.compile(r"\{'[^{}]+\}")
"""A dict that TRL prints: `{'loss': 0.01, 'reward': 0.4}`."""
PRINTED_PAIR = re.compile(rf"'([^']+)': '?({DECIMAL})'?(?=[,}}])")
"""A metric in such a dict: `'loss': 0.01`."""
BAR_LINE = re.compile(r"\bStep (\d{1,15}) +\|(.+)")
"""A line of prime-rl's console: `Step 1 | 12s | Loss 0.01 | ...`."""
BAR_PAIR = re.compile(rf"\s*([A-Z][\w. ]*?):? +({DECIMAL})\s*%?\s*")
"""A metric in such a line: `Loss 0.01`."""
ROUNDED_ZERO = re.compile(r":-?0\.0{1,3}(?= - |\s*$)")
"""A zero in verl's console before July 2025, which rounded to three digits: `:0.000`."""
LONG_NUMBER = re.compile(r":-?\d+\.\d{4}|\de-\d")
"""A number in verl's console that is not rounded: `:0.0123`, `1e-6`."""
PATTERNS = ("*.jsonl", "*.csv", "**/events.out.tfevents.*")
"""Patterns of files in a folder that may be logs of trainers other than truegold and TRL."""


@dataclass
class LogEntries:
    """The entries of one log file, in their order."""

    form: str
    """The format of the file: `JSON Lines`, `CSV`, `console` and so on."""
    entries: list[tuple[int, Entry]] = field(default_factory=list)
    """The step and the numbers of each entry."""
    texts: set[str] = field(default_factory=set)
    """Columns with values that are not numbers."""
    notes: list[str] = field(default_factory=list)
    """Notes on parts of the file that could not be read."""
    has_steps: bool = True
    """Whether every entry names its step."""
    is_rounded: bool = False
    """Whether numbers are rounded, so that 0.000 may be a small number."""


def read_entries(path: Path) -> LogEntries:
    """Return the entries of a log. Raises InputError if the file is not a log or cannot be read."""
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
        raise InputError(f"{path} has no metrics of steps.", "Give a JSON, CSV or console log of a training.")
    return entries


def _read_json(text: str) -> LogEntries | None:
    """Return the entries of a JSON value or of JSON Lines, or None if the text is neither."""
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
        # A killed trainer leaves half a line at the end.
        if len(broken) > max(1, len(lines) // 10) or not records:
            return None
        log = _entries_of(records, "JSON Lines")
        log.notes.append(f"{len(broken)} of {len(lines)} lines are not JSON and were skipped, the first: {broken[0]}")
        return log
    if isinstance(whole, dict) and isinstance(whole.get("log_history"), list):
        return _entries_of(whole["log_history"], "trainer_state.json")
    return _entries_of(whole if isinstance(whole, list) else [whole], "JSON")


def _entries_of(records: Iterable[Any], form: str) -> LogEntries:
    """Return the entries of records. An entry without a step gets its index or, in CSV, the previous entry's step."""
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
        log.notes.append(f"{endless} entries have a step above {MOST_STEP:.0e}; their order is used instead")
    return log


def _numbers(record: Mapping[str, Any], texts: set[str], prefix: str = "") -> Iterator[tuple[str, float]]:
    """Yield the columns and numbers of a record. Nested objects are joined by a slash: {"actor": {"kl": 1}} ->
    `actor/kl`. The names of columns without numbers are added to `texts`."""
    for name, value in record.items():
        column = f"{prefix}{name}"
        if isinstance(value, dict):
            yield from _numbers(value, texts, prefix if name == "data" else f"{column}/")
        elif (known := to_number(value)) is not None:
            yield column, known
        elif value not in (None, "", True, False):
            texts.add(column)


def to_number(value: object) -> float | None:
    """Return a value of a log as a number, or None if it is not one. "0.5", NaN and infinity are numbers too."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        return to_float(value)
    except ValueError:
        return None


def to_float(value: float | str) -> float:
    """Return a number as a float. Numbers beyond single precision become infinite."""
    known = float(value) if isinstance(value, str) else value
    if abs(known) > LARGEST:
        return math.inf if known > 0 else -math.inf
    return float(known)


def _step_of(entry: Entry, otherwise: int) -> int:
    """Remove the columns that count steps from an entry, and return the step of the most reliable one.

    otherwise: the step that is returned if there is no such column.
    """
    steps = [entry.pop(name) for name in STEP_NAMES if name in entry]
    known = [step for step in steps if abs(step) <= MOST_STEP]
    return int(known[0]) if known else otherwise


def _delimiter(text: str) -> str | None:
    """Return the separator between the columns of a table, or None if the text is not a table."""
    lines = [line for line in text.splitlines() if line.strip()]
    if len(lines) < 2:
        return None
    for delimiter in (",", "\t", ";"):
        # csv.reader, because a cell of the first row may have several lines.
        header, row = [*islice(csv.reader(lines, delimiter=delimiter), 2), []][:2]
        has_names = len(header) > 1 and not any(to_number(name) is not None for name in header if name)
        if has_names and len(header) == len(row) and any(to_number(cell) is not None for cell in row):
            return delimiter
    return None


def _read_table(path: Path, text: str, delimiter: str) -> LogEntries:
    """Return the entries of a table, also of a chart that was exported from wandb. Raises InputError for several runs
    or for columns with the same name and different cells."""
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
            f"{path} has several columns with the same name and different cells: {names}.", "Rename or remove them."
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
    """Return the entries of saved terminal output of verl, TRL or prime-rl."""
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
        raise SetupError(f"To read {path}, install tensorboard.", "pip install 'truegold[train]'") from error
    events = EventAccumulator(str(path), size_guidance={"scalars": 0, "tensors": 0})
    events.Reload()
    log = LogEntries("TensorBoard")
    entries: dict[int, Entry] = {}
    for name in events.Tags()["scalars"]:
        for event in events.Scalars(name):
            entries.setdefault(int(event.step), {})[name] = float(event.value)
    log.entries = sorted(entries.items())
    if not log.entries:
        raise InputError(f"{path} has no scalars.", "Give the TensorBoard file with the training's metrics.")
    return log
