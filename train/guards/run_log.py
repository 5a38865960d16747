"""Reader of the metrics of a run of truegold or another trainer, under the names that the guards use.

    log = read_log(Path("trl-run"))
    log.trainer                 TRL
    log.lines[0]                (1, {"reward": 1.03, "accuracy": 0.37, "pass_rate": 0.37, "zero_std": 0.03, ...})
    log.columns["accuracy"]     rewards/accuracy_reward/mean
    log.unread                  ["num_tokens", "step_time", ...]

The reward is a sum of terms. The accuracy is the term with a name like `accuracy` or `correct`. If all values of the
accuracy are between 0 and 1, it is also the pass rate. `metric_names.toml` has the names of metrics in the logs of each
trainer. Logs are files of trainers and trackers, or saved terminal output:

format               example
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
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from itertools import islice
from pathlib import Path
from typing import Any

from truegold.train.guards.trends import Move, measure_move
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
"""The largest lengths of a name, and of the text between two bars. They keep very long lines fast to skip."""
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
"""A zero in verl's console before July 2025, which shows three decimals: `:0.000`."""
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
    """Return the entries of a text that is a JSON value or JSON Lines. Return None for other texts."""
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
    """Return the entries of records. The step of an entry without one is its index or, in CSV, the previous entry's
    step."""
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
    """Yield the columns and numbers of a record. Names of nested objects are joined by a slash: {"actor": {"kl": 1}} ->
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
    """Return the entries of a table. It may be a chart that was exported from wandb. Raises InputError for several
    runs, or for columns with the same name and different cells."""
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


ALARMS = "alarms.jsonl"
"""The file, in the stage's folder, with every alarm and its action."""

Metrics = dict[str, float | None]
"""The metrics of one step, by the guards' names."""

METRIC_NAMES: Mapping[str, Mapping[str, Any]] = tomllib.loads(
    files("truegold.train.guards").joinpath("metric_names.toml").read_text("utf-8")
)
"""Patterns of the names of metrics in the logs of each trainer, with the guards' names for them."""
OWN_METRICS = ("pass_rate", "heldout_pass_rate")
"""Names of metrics that only truegold writes."""
ACCURACY_WORDS = {"accuracy", "acc", "correct", "correctness", "truegold"}
"""Words that mark a term as the accuracy, like the name `score`."""
OTHER_WORDS = {
    "format",
    "xml",
    "tag",
    "tags",
    "structure",
    "length",
    "style",
    "language",
    "think",
    "thinking",
    "penalty",
}
"""Words that mark a term as something other than the accuracy."""
EMPTY_WORDS = {"reward", "rewards", "func", "fn", "mean", "avg"}
"""Words that are ignored in the name of a term: `score_reward_func` is `score`."""
WIDEST = 0.55
"""The largest standard deviation of rewards that are only 0 or 1, in groups of eight or more."""
GENERIC = {"reward", "loss", "grad_norm", "learning_rate", "lr", "kl", "entropy", "epoch"}
"""Columns that several trainers write."""
FEWEST_NAMES = 3
"""A log without steps is read only if at least this number of its columns are known metrics."""
FILLED = 4
"""A row of NaN with at least this number of columns was filled up by a tracker, and is left out (`_without_blanks`)."""
MOST_REPEATS = 4
"""The largest number of lines of one step. A log with more lines has one for each rollout."""


@dataclass(frozen=True)
class RunLog:
    """The metrics of a finished run."""

    trainer: str
    """The program that wrote the log: `truegold`, `TRL`, `verl` and so on."""
    path: Path
    """The file that was read."""
    lines: list[tuple[int, Metrics]]
    """Steps with their metrics, by the guards' names, in order."""
    columns: dict[str, str] = field(default_factory=dict)
    """The column of each metric, by the guards' name of the metric."""
    unread: list[str] = field(default_factory=list)
    """Columns with unknown names."""
    notes: list[str] = field(default_factory=list)
    """Notes on parts of the log that could not be read or were changed."""
    returns: list[tuple[int, int]] = field(default_factory=list)
    """Places where the log goes back to an earlier step: the last step before, and the next step."""
    is_rounded: bool = False
    """Whether numbers are rounded, so that 0 may be a small number."""

    def series(self, metric: str) -> tuple[list[int], list[float]]:
        """Return the steps in which a metric is finite, and its values in these steps."""
        points = [(step, value) for step, metrics in self.lines if (value := metrics.get(metric)) is not None]
        points = [(step, value) for step, value in points if math.isfinite(value)]
        return [step for step, _ in points], [value for _, value in points]


def read_log(path: Path) -> RunLog:
    """Return the metrics of a run. The names of the metrics determine the trainer.

    path: a run's folder or a file of metrics. Raises InputError if there are no known metrics.
    """
    file = _find_file(path)
    if file.name == ALARMS:
        return RunLog("truegold", file, [])
    log = read_entries(file)
    steps = [step for step, _ in log.entries]
    if steps[0] > steps[-1] and steps == sorted(steps, reverse=True):
        # Some tables begin with the newest step.
        log.entries.reverse()
    columns = {name: None for _, entry in log.entries for name in entry}
    if any(name in columns for name in OWN_METRICS) and log.has_steps:
        merged, returns = _merge(log.entries)
        return RunLog("truegold", file, _with_shares(merged), notes=log.notes, returns=returns)
    trainer = max(METRIC_NAMES, key=lambda name: len(_known(name, columns)))
    known = _known(trainer, columns)
    if not known or (not log.has_steps and len(known) < FEWEST_NAMES):
        names = ", ".join(METRIC_NAMES)
        raise InputError(f"{file} has no metrics of truegold, {names}.", "Give a run's folder or its metrics file.")
    return _foreign(file, "unknown trainer" if known.keys() <= GENERIC else trainer, log, known)


def _find_file(path: Path) -> Path:
    """Return `path` if it is a file, else the newest file with metrics in the folder `path`."""
    if path.is_file():
        return path
    choices = (
        # A run may have a finished training and a newer, failed one.
        ("metrics.jsonl", "train/metrics.jsonl", ".partial/train-*/metrics.jsonl"),
        ("trainer_state.json", "checkpoint-*/trainer_state.json"),
        # A training that ended before its first step has only alarms.
        (ALARMS, f".partial/train-*/{ALARMS}"),
    )
    for patterns in choices:
        files = [file for pattern in patterns for file in path.glob(pattern)]
        if files:
            return max(files, key=lambda file: file.stat().st_mtime)
    for pattern in PATTERNS:
        files = sorted(path.glob(pattern))
        if len(files) > 1 and not pattern.startswith("**"):
            raise InputError(
                f"{path} has {len(files)} files that may be logs.", f"Give one of them, such as {files[0]}."
            )
        if files:
            return max(files, key=lambda file: file.stat().st_mtime)
    raise InputError(f"{path} has no metrics of a training.", "Give a run's folder or its metrics file.")


@cache
def _patterns(trainer: str) -> tuple[tuple[re.Pattern[str], tuple[str, ...]], ...]:
    table = METRIC_NAMES[trainer]
    return tuple((re.compile(table["prefix"] + name), tuple(meanings)) for name, meanings in table["names"].items())


def _known(trainer: str, columns: Iterable[str]) -> dict[str, dict[str, str]]:
    """Return the known columns of a trainer, each with the guards' names of its metrics.

    If several columns have one metric, the first one in the trainer's table is used.
    """
    known: dict[str, dict[str, str]] = {}
    ranks: dict[str, int] = {}
    for column in columns:
        for rank, (pattern, names) in enumerate(_patterns(trainer)):
            if (match := pattern.fullmatch(column)) is None:
                continue
            meanings = {name.format(*match.groups()): column for name in names}
            known[column] = meanings
            ranks[column] = rank
            break
    taken: dict[str, dict[str, str]] = {}
    best: dict[str, int] = {}
    for column in sorted(known, key=lambda name: ranks[name]):
        taken[column] = {name: column for name in known[column] if name not in best}
        best |= dict.fromkeys(taken[column], ranks[column])
    return taken


def _foreign(file: Path, trainer: str, log: LogEntries, known: Mapping[str, Mapping[str, str]]) -> RunLog:
    translated = [
        (step, {name: value for column, value in entry.items() for name in known.get(column, ())})
        for step, entry in log.entries
    ]
    if max(_repeats(translated).values(), default=0) > MOST_REPEATS:
        raise InputError(
            f"{file} has many lines for each step, so it is not a log of metrics.", "Give the log of the training."
        )
    merged, returns = _merge(_without_blanks([(step, entry) for step, entry in translated if entry]))
    columns = {name: column for meanings in known.values() for name, column in meanings.items()}
    columns |= _add_accuracy(merged, columns) | _add_heldout(merged, columns)
    for _, metrics in merged:
        _derive(metrics)
    unread = {name for _, entry in log.entries for name in entry} - set(known) | log.texts
    return RunLog(trainer, file, merged, columns, sorted(unread), log.notes, returns, log.is_rounded)


def _repeats(translated: Iterable[tuple[int, Entry]]) -> dict[tuple[int, str], int]:
    """Return the number of lines with a loss or a reward, by step and name."""
    counts: dict[tuple[int, str], int] = {}
    for step, entry in translated:
        for name in {"reward", "loss"} & entry.keys():
            counts[step, name] = counts.get((step, name), 0) + 1
    return counts


def _without_blanks(entries: Sequence[tuple[int, Entry]]) -> Iterator[tuple[int, Entry]]:
    """Yield the entries without rows that a tracker filled up with NaN, for example the row of an evaluation.

    A row of NaN counts as filled up if it has a held-out metric, or if rows with numbers follow. Its held-out metrics
    are kept. Other rows of NaN are the metrics of a training that diverged.
    """
    is_blank = []
    for _, entry in entries:
        values = [value for name, value in entry.items() if not name.startswith("heldout/")]
        is_blank.append(len(values) > 0 and all(map(math.isnan, values)))
    last = max((index for index, blank in enumerate(is_blank) if not blank), default=-1)
    for index, (step, entry) in enumerate(entries):
        heldout = {name: value for name, value in entry.items() if name.startswith("heldout/")}
        if not is_blank[index] or (not heldout and (index > last or len(entry) < FILLED)):
            yield step, entry
        elif heldout:
            yield step, heldout


def _merge(
    steps: Iterable[tuple[int, Mapping[str, float | None]]],
) -> tuple[list[tuple[int, Metrics]], list[tuple[int, int]]]:
    """Return the steps in order, with the lines of each step merged, and the places where the log goes back.

    If a resumed run repeats steps, the later lines replace the earlier ones. Steps with a NaN or infinite metric get
    the metric `not_finite`.
    """
    merged: dict[int, Metrics] = {}
    latest: dict[str, int] = {}
    returns: list[tuple[int, int]] = []
    for step, metrics in steps:
        back = [
            last
            for name in ("reward", "loss", "pass_rate")
            if name in metrics and step < (last := latest.get(name, step))
        ]
        if back:
            returns.append((max(back), step))
            merged = {past: values for past, values in merged.items() if past < step}
            latest = {}
        latest |= dict.fromkeys(metrics, step)
        merged.setdefault(step, {}).update(metrics)
    for metrics in merged.values():
        watched = [value for name, value in metrics.items() if name in ("loss", "grad_norm", "kl", "entropy", "reward")]
        if any(value is not None and not math.isfinite(value) for value in watched):
            metrics["not_finite"] = 1.0
    return sorted(merged.items()), returns


def _with_shares(merged: list[tuple[int, Metrics]]) -> list[tuple[int, Metrics]]:
    """Add `zero_std`, the share of groups without advantages, to truegold's metrics."""
    for _, metrics in merged:
        teaching = metrics.get("groups_teaching")
        if teaching is not None:
            metrics["zero_std"] = 1.0 - teaching
    return merged


def _add_accuracy(merged: Sequence[tuple[int, Metrics]], columns: Mapping[str, str]) -> dict[str, str]:
    """Add the accuracy to each step's metrics, also as pass rate if it is one. Return the used column."""
    terms = [name for name in columns if name.startswith("term/") and is_accuracy(name.removeprefix("term/"))]
    if not terms:
        return {}
    term = terms[0]
    values = [value for _, metrics in merged if (value := metrics.get(term)) is not None and math.isfinite(value)]
    deviations = [metrics.get("term_std/" + term.removeprefix("term/")) or 0.0 for _, metrics in merged]
    edges = [
        metrics.get(name) for name in ("reward_min", "reward_max") for _, metrics in merged if term == "term/score"
    ]
    in_range = all(0.0 <= value <= 1.0 for value in [*values, *(edge for edge in edges if edge is not None)])
    is_rate = in_range and max(deviations, default=0.0) <= WIDEST
    for _, metrics in merged:
        if (value := metrics.pop(term, None)) is not None:
            metrics["accuracy"] = value
            if is_rate:
                metrics["pass_rate"] = value
    return {"accuracy": columns[term]} | ({"pass_rate": columns[term]} if is_rate and values else {})


def is_accuracy(name: str) -> bool:
    """Return whether the name of a term means accuracy: `accuracy_reward`, `acc`, `correctness`, `score`."""
    words = set(re.findall(r"[a-z]+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).lower()))
    if words & OTHER_WORDS:
        return False
    return bool(words & ACCURACY_WORDS) or words - EMPTY_WORDS == {"score"}


def _add_heldout(merged: Sequence[tuple[int, Metrics]], columns: Mapping[str, str]) -> dict[str, str]:
    """Replace metrics of evaluations by `heldout_pass_rate`, their mean over the sets. Return the used columns."""
    names = [name for name in columns if name.startswith("heldout/")]
    totals = [name for name in names if name in ("heldout/reward", "heldout/scores")]
    rates = [name for name in names if name not in totals]
    accuracies = [name for name in rates if is_accuracy(name.removeprefix("heldout/"))]
    chosen = accuracies or ([] if totals else rates) or totals
    complete = max((sum(name in metrics for name in chosen) for _, metrics in merged), default=0)
    for _, metrics in merged:
        values = [value for name in chosen if (value := metrics.get(name)) is not None and math.isfinite(value)]
        for name in names:
            metrics.pop(name, None)
        if values and len(values) == complete:
            metrics["heldout_pass_rate"] = sum(values) / len(values)
    return {"heldout_pass_rate": ", ".join(columns[name] for name in chosen)} if chosen else {}


def _derive(metrics: Metrics) -> None:
    """Add metrics that other trainers log in another form: `zero_std` and `truncated`."""
    none, every = metrics.get("solved_none"), metrics.get("solved_all")
    if none is not None and every is not None:
        metrics["zero_std"] = none + every
    if (mixed := metrics.get("mixed_percent")) is not None:
        metrics["zero_std"] = 1.0 - mixed / 100.0
    if (ended := metrics.get("ended")) is not None:
        metrics["truncated"] = 1.0 - ended


def quality_of(log: RunLog) -> str:
    """Return the metric that best measures the quality of completions: the accuracy, else the reward."""
    names = {name for _, metrics in log.lines for name in metrics}
    return next((name for name in ("accuracy", "pass_rate", "reward") if name in names), "reward")


def move_of(log: RunLog, metric: str) -> Move | None:
    """Return the move of a metric over the run, or None if the metric has too few values."""
    return measure_move(*log.series(metric))


def improves(log: RunLog) -> bool:
    """Return whether the quality of completions rises over the run."""
    move = move_of(log, quality_of(log))
    return move is not None and move.is_up and move.change > 0.1 * max(abs(move.start), 0.1)


def steps_per_epoch(log: RunLog) -> int | None:
    """Return the number of steps of an epoch, or None if the log does not show a whole epoch."""
    steps, epochs = log.series("epoch")
    if len(steps) < 2 or epochs[-1] - epochs[0] < 1.0:
        return None
    return round((steps[-1] - steps[0]) / (epochs[-1] - epochs[0]))
