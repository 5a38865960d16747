"""Processes tables part by part on all cores. Each worker process reads and writes the files of its parts.

    @stage_function(version=6)
    def clean(inputs, config, out_dir, progress):
        parts = split_inputs(inputs, out_dir)
        reports = run_parts(PartWork("truegold.pipeline.clean.stage:clean_part", config), parts, progress, "cleaning")
        return sum_reports(reports)

    def clean_part(part: Part, config: CleanConfig, shared: object, progress: Progress) -> StageReport

When a part is done, it gets a marker: `scratch/done/00017.json` in the stage's folder, with the part's report and the
sizes of its files. After a kill, the work continues with the parts that have no marker. A marker is valid only for the
same function, settings and input files.

The result must not depend on the division into parts. A stage therefore finds facts about all rows first, and passes
them to every part (`PartWork.shared`). Decisions that need all parts are made afterwards.

A runner is a function that does the work on parts. `run_locally` uses processes of this machine. `set_runner` sets
another one, such as for Ray or Slurm. A stage names its own runner (`run_here`) if it has resources that cannot be sent
to other processes.
"""

from __future__ import annotations

import pkgutil
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from threading import Event, Thread
from typing import IO, Any

import orjson
import pyarrow.parquet as pq
from pydantic import BaseModel

from truegold.pipeline.running.disk import digest_json, make_room, part_path, table_parts, write_whole
from truegold.pipeline.running.progress import NullProgress, Progress
from truegold.pipeline.running.stage import SCRATCH, StageReport
from truegold.pipeline.running.workers import WorkerKilled, map_in_workers
from truegold.verifiers.sandbox.child_process import usable_cores

DONE = "done"
"""The folder of markers in a stage's scratch folder."""
FEWEST_ROWS = 4_000
"""Workers are started for at least this number of rows. Starting them takes longer for fewer rows than it saves."""
FOLLOW_EVERY_S = 0.5
"""The interval between reports of progress, in seconds."""
WORKERS = "workers"
"""The setting with the number of workers. It does not affect the output, so keys leave it out."""


@dataclass(frozen=True)
class PartWork:
    """The work to do on every part of a stage."""

    fn: str
    """The import string of the function to call. Its arguments are a part, `config`, `shared` and the progress."""
    config: BaseModel
    """The stage's settings."""
    shared: Any = None
    """Facts about all rows together, as data for JSON."""

    def key(self, part: Part) -> str:
        """Return the key of a part's marker, a digest of the work and of the sizes and times of the input files."""
        return digest_json([self._key, {name: _stamp(path) for name, path in part.inputs.items()}])

    @cached_property
    def _key(self) -> str:
        return digest_json([self.fn, self.config.model_dump(mode="json", exclude={WORKERS}), self.shared])


@dataclass(frozen=True)
class Part:
    """One part of a stage's tables: the same part of every table that the stage reads and writes."""

    index: int
    """The number of the part, from 0."""
    parts: int
    """The number of parts."""
    inputs: Mapping[str, Path]
    """The files of this part, by the names of the stage's inputs. The rows come first."""
    out_dir: Path
    """The stage's folder."""

    def output(self, name: str) -> Path:
        """Return the path to which this part of an output table is written."""
        table = self.out_dir / name
        make_room(table, self.parts)
        return part_path(table, self.index, self.parts)

    def count_rows(self) -> int:
        """Return the number of rows of the part."""
        return int(pq.read_metadata(next(iter(self.inputs.values()))).num_rows)

    @property
    def scratch(self) -> Path:
        """The folder for temporary files of the work on this part."""
        folder = self.out_dir / SCRATCH / f"{self.index:05d}"
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    @property
    def counter(self) -> Path:
        """A file in which a worker counts finished rows: the number is the size of the file in bytes."""
        return self.scratch / "rows"

    def commit(self, key: str, report: StageReport) -> None:
        """Mark the part as done."""
        sizes = {table.name: self._size(table.name) for table in self.out_dir.glob("*.parquet")}
        files = {name: size for name, size in sizes.items() if size is not None}
        self._marker.parent.mkdir(parents=True, exist_ok=True)
        write_whole(self._marker, orjson.dumps({"key": key, "files": files, "report": report}))

    def finished(self, key: str) -> StageReport | None:
        """Return the part's report if it is done and its files are unchanged, else None."""
        if not self._marker.exists():
            return None
        marker = orjson.loads(self._marker.read_bytes())
        if marker["key"] != key or any(self._size(name) != size for name, size in marker["files"].items()):
            return None
        return StageReport(**marker["report"])

    @property
    def _marker(self) -> Path:
        return self.out_dir / SCRATCH / DONE / f"{self.index:05d}.json"

    def _size(self, name: str) -> int | None:
        path = part_path(self.out_dir / name, self.index, self.parts)
        return path.stat().st_size if path.is_file() else None


def _stamp(path: Path) -> list[int]:
    stat = path.stat()
    return [stat.st_size, stat.st_mtime_ns]


Runner = Callable[[PartWork, Sequence[Part], Progress], None]
"""A function that does the work on parts, and returns when each part has its marker."""
_RUNNER: ContextVar[Runner] = ContextVar("runner")


@contextmanager
def set_runner(runner: Runner) -> Iterator[None]:
    """Within this context, `run_parts` uses `runner` for stages that do not name a runner."""
    token = _RUNNER.set(runner)
    try:
        yield
    finally:
        _RUNNER.reset(token)


def split_inputs(inputs: Mapping[str, Path], out_dir: Path, *further: str) -> list[Part]:
    """Return the parts of a stage, which are the parts of its input `rows`.

    `further` are names of other inputs that are divided in the same way. Missing inputs are left out. Raises ValueError
    for an input with a different number of parts.
    """
    files = {name: table_parts(inputs[name]) for name in ("rows", *further) if name in inputs}
    count = len(files["rows"])
    for name, paths in files.items():
        if len(paths) != count:
            raise ValueError(f"{inputs[name]} has {len(paths)} parts, and {inputs['rows']} has {count}")
    return [
        Part(index, count, {name: paths[index] for name, paths in files.items()}, out_dir) for index in range(count)
    ]


def run_parts(
    work: PartWork, parts: Sequence[Part], progress: Progress, label: str, runner: Runner | None = None
) -> list[StageReport]:
    """Do the work on the unfinished parts, and return the reports of all parts in order."""
    missing = unfinished(work, parts)
    progress.start(label, sum(part.count_rows() for part in parts))
    if missing:
        waiting = {part.index for part in missing}
        progress.advance(sum(part.count_rows() for part in parts if part.index not in waiting))
        (runner or _RUNNER.get(run_locally))(work, missing, progress)
    reports = [part.finished(work.key(part)) for part in parts]
    if (undone := reports.count(None)) > 0:
        raise RuntimeError(f"{undone} of {len(parts)} parts of {work.fn} have no marker after their work")
    return [report for report in reports if report is not None]


def unfinished(work: PartWork, parts: Iterable[Part]) -> list[Part]:
    """Return the parts without a valid marker of this work."""
    return [part for part in parts if part.finished(work.key(part)) is None]


def run_locally(work: PartWork, parts: Sequence[Part], progress: Progress) -> None:
    """Do the work in `workers` processes of this machine. For few rows or a single part, this process does the work.

    If a worker was killed, its parts are retried once, with verifiers in separate processes (`workers` set to 2). Then
    a row that kills its process loses only its verdict. Raises WorkerKilled if the retry fails, too.
    """
    workers = getattr(work.config, WORKERS, 1) or usable_cores()
    if workers == 1 or len(parts) == 1 or sum(part.count_rows() for part in parts) < FEWEST_ROWS:
        run_here(work, parts, progress)
        return
    for inner_workers in (1, 2):
        config = work.config.model_copy(update={WORKERS: inner_workers})
        task = partial(_run_counted, PartWork(work.fn, config, work.shared))
        missing = unfinished(work, parts)
        try:
            with _followed(missing, progress):
                deque(map_in_workers(task, missing, min(workers, len(missing))), maxlen=0)
        except WorkerKilled:
            if inner_workers == 2:
                raise
        else:
            return


def _run_counted(work: PartWork, part: Part) -> None:
    """Do the work on one part in a worker, and count its rows in a file."""
    with part.counter.open("wb", buffering=0) as file:
        run_part(work, part, _CountingFile(file))


class _CountingFile(NullProgress):
    """A progress that writes one byte for each row to a file. Other processes read the progress from the file's
    size."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def advance(self, steps: int = 1, detail: str = "", total: int | None = None) -> None:
        """Count `steps` more rows."""
        self._file.write(bytes(steps))


@contextmanager
def _followed(parts: Sequence[Part], progress: Progress) -> Iterator[None]:
    """Within this context, report the rows that the workers count."""
    ended = Event()
    counters = [part.counter for part in parts]
    for counter in counters:
        counter.unlink(missing_ok=True)

    def follow() -> None:
        reported = 0
        while True:
            is_last = ended.wait(FOLLOW_EVERY_S)
            rows = sum(counter.stat().st_size for counter in counters if counter.exists())
            if rows > reported:
                progress.advance(rows - reported)
                reported = rows
            if is_last:
                return

    follower = Thread(target=follow, daemon=True)
    follower.start()
    try:
        yield
    finally:
        ended.set()
        follower.join()


def run_here(work: PartWork, parts: Sequence[Part], progress: Progress, **resources: Any) -> None:
    """Do the work in this process. `resources`, such as a model, are passed to the function as further arguments."""
    for part in parts:
        run_part(work, part, progress=_OneBar(progress), **resources)


def run_part(work: PartWork, part: Part, progress: Progress, **resources: Any) -> None:
    """Do the work on one part, and mark it as done."""
    function: Callable[..., StageReport] = pkgutil.resolve_name(work.fn)
    key = work.key(part)
    part.commit(key, function(part, work.config, work.shared, progress, **resources))


class _OneBar(NullProgress):
    """A progress that counts the rows of all parts in one bar. Other calls have no effect."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress

    def advance(self, steps: int = 1, detail: str = "", total: int | None = None) -> None:
        """Count `steps` more rows."""
        self._progress.advance(steps, detail)


def sum_reports(reports: Iterable[StageReport], facts: Mapping[str, Any] | None = None) -> StageReport:
    """Return the report of a stage: the sums of the rows and counts of its parts, and its own facts."""
    rows_in = rows_out = 0
    counts: Counter[str] = Counter()
    for report in reports:
        rows_in += report.rows_in
        rows_out += report.rows_out
        counts.update(report.counts)
    return StageReport(rows_in, rows_out, dict(counts), facts or {})
