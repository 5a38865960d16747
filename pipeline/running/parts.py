"""Work on tables part by part: each part is read and written by the process that works on it, on all cores.

    @stage_function(version=6)
    def clean(inputs, config, out_dir, progress):
        parts = split_inputs(inputs, out_dir)
        reports = run_parts(PartWork("truegold.pipeline.clean.stage:clean_part", config), parts, progress, "cleaning")
        return sum_reports(reports)

    def clean_part(part: Part, config: CleanConfig, shared: object, progress: Progress) -> StageReport

A part is done when its marker is there: `scratch/done/00017.json` in the stage's folder, with the part's report and the
sizes of its files. Work that was killed goes on with the parts that have none, so that a kill costs the parts under
way. A marker counts for the very function, settings and input files that it was written for.

What a part's rows have to know of others is found before, and is the same for every part (`PartWork.shared`), or it is
counted by part and decided by the stage when all parts are done. So the tables are the same however they are cut.

A runner sees to it that markers come to be, wherever the work is done: it gets the work and the parts, both picklable,
and returns when they are done. `run_locally` has this machine's processes; `set_runner` names another one for all
stages, except for those that have a runner of their own, since what they work with cannot travel.
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

from truegold.pipeline.running.disk import digest_json, write_whole
from truegold.pipeline.running.part_files import make_room, part_path, table_parts
from truegold.pipeline.running.progress import NullProgress, Progress
from truegold.pipeline.running.stage import SCRATCH, StageReport
from truegold.pipeline.running.workers import WorkerKilled, map_in_workers
from truegold.verifiers.sandbox.child_process import usable_cores

DONE = "done"
"""The folder of markers in a stage's scratch folder."""
FEWEST_ROWS = 4_000
"""With fewer rows workers would cost more to start than they save."""
FOLLOW_EVERY_S = 0.5
"""How often workers are asked how far they are."""
WORKERS = "workers"
"""The setting of a stage that never decides its output."""


@dataclass(frozen=True)
class PartWork:
    """The work that is done on every part of a stage."""

    fn: str
    """The import string of a function of a part, the settings, what is shared, and a progress."""
    config: BaseModel
    """The stage's settings."""
    shared: Any = None
    """The findings about all rows together, as JSON can hold them."""

    def key(self, part: Part) -> str:
        """Return what the marker of a part has to name: work and input files, by size and time."""
        return digest_json([self._key, {name: _stamp(path) for name, path in part.inputs.items()}])

    @cached_property
    def _key(self) -> str:
        return digest_json([self.fn, self.config.model_dump(mode="json", exclude={WORKERS}), self.shared])


@dataclass(frozen=True)
class Part:
    """One part of a stage: the same place in all tables that it reads and writes."""

    index: int
    """Its place, from 0."""
    parts: int
    """How many there are."""
    inputs: Mapping[str, Path]
    """The part's files of the stage's inputs, the rows first."""
    out_dir: Path
    """The stage's folder."""

    def output(self, name: str) -> Path:
        """Return where the part of a table of the stage is written."""
        table = self.out_dir / name
        make_room(table, self.parts)
        return part_path(table, self.index, self.parts)

    def count_rows(self) -> int:
        """Return how many rows the part has, from the file's footer."""
        return int(pq.read_metadata(next(iter(self.inputs.values()))).num_rows)

    @property
    def scratch(self) -> Path:
        """The folder of files that only unfinished work on this part needs."""
        folder = self.out_dir / SCRATCH / f"{self.index:05d}"
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    @property
    def counter(self) -> Path:
        """The file in which a worker counts the rows that it has done."""
        return self.scratch / "rows"

    def commit(self, key: str, report: StageReport) -> None:
        """Mark the part as done."""
        sizes = {table.name: self._size(table.name) for table in self.out_dir.glob("*.parquet")}
        files = {name: size for name, size in sizes.items() if size is not None}
        self._marker.parent.mkdir(parents=True, exist_ok=True)
        write_whole(self._marker, orjson.dumps({"key": key, "files": files, "report": report}))

    def finished(self, key: str) -> StageReport | None:
        """Return the part's report where it is done and its files are as they were, else None."""
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
"""Does the work on parts, and returns when each has its marker."""
_RUNNER: ContextVar[Runner] = ContextVar("runner")


@contextmanager
def set_runner(runner: Runner) -> Iterator[None]:
    """Have `run_parts` use this runner while it lasts, where the stage names none."""
    token = _RUNNER.set(runner)
    try:
        yield
    finally:
        _RUNNER.reset(token)


def split_inputs(inputs: Mapping[str, Path], out_dir: Path, *further: str) -> list[Part]:
    """Return the parts of a stage: those of its input `rows`.

    The inputs `further` are cut in the same way; those that the stage does not have are left out. Raises ValueError if
    one is cut otherwise.
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
    """Do the work on the parts that are not done yet, and return the reports of all in their order."""
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
    """Return the parts without a marker of this work."""
    return [part for part in parts if part.finished(work.key(part)) is None]


def run_locally(work: PartWork, parts: Sequence[Part], progress: Progress) -> None:
    """Do the work in processes of this machine, as many as `workers` says; few rows or a single part are done here.

    A part that has killed its worker is tried once more. There `workers` is 2, so that verifiers get processes of their
    own: a row that no process survives then costs its own verdict only. Raises WorkerKilled if that does not help.
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
    """Do the work on one part in a worker, and have its rows counted in a file."""
    with part.counter.open("wb", buffering=0) as file:
        run_part(work, part, _CountingFile(file))


class _CountingFile(NullProgress):
    """A progress that other processes read off the size of a file: a byte is a row."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def advance(self, steps: int = 1, detail: str = "", total: int | None = None) -> None:
        """Count on."""
        self._file.write(bytes(steps))


@contextmanager
def _followed(parts: Sequence[Part], progress: Progress) -> Iterator[None]:
    """Report what workers count while it lasts."""
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
    """Do the work in this process; `resources` are arguments that no other process could have, such as a model."""
    for part in parts:
        run_part(work, part, progress=_OneBar(progress), **resources)


def run_part(work: PartWork, part: Part, progress: Progress, **resources: Any) -> None:
    """Do the work on one part, and mark it as done."""
    function: Callable[..., StageReport] = pkgutil.resolve_name(work.fn)
    key = work.key(part)
    part.commit(key, function(part, work.config, work.shared, progress, **resources))


class _OneBar(NullProgress):
    """A progress in which the steps of every part count as one step's."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress

    def advance(self, steps: int = 1, detail: str = "", total: int | None = None) -> None:
        """Count on."""
        self._progress.advance(steps, detail)


def sum_reports(reports: Iterable[StageReport], facts: Mapping[str, Any] | None = None) -> StageReport:
    """Return the report of a stage: rows and counts of its parts added up, and its facts."""
    rows_in = rows_out = 0
    counts: Counter[str] = Counter()
    for report in reports:
        rows_in += report.rows_in
        rows_out += report.rows_out
        counts.update(report.counts)
    return StageReport(rows_in, rows_out, dict(counts), facts or {})
