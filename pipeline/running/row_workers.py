"""Maps a function over rows in worker processes; the rows keep their order."""

from __future__ import annotations

import os
import pickle
import signal
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from truegold.verifiers import SetupError
from truegold.verifiers.sandbox.child_process import die_with_process, usable_cores

T = TypeVar("T")
R = TypeVar("R")

CHUNK = 500
"""A worker takes this many rows at a time."""
FEWEST = 8 * CHUNK
"""With fewer rows workers would cost more to start than they save."""


@dataclass(frozen=True)
class _Job:
    """What every worker has to know. An import string means the same in a worker as here, since `path` and `folder`
    are the same."""

    make: bytes
    """The pickled function that makes the worker's function."""
    parent: int
    """The id of this process, with which the workers end."""
    path: tuple[str, ...]
    """Where modules are searched for."""
    folder: str
    """The working directory."""


def map_rows(
    rows: Iterable[T], total: int, make: Callable[[], Callable[[T], R]], workers: int = 0, chunk: int | None = None
) -> Iterator[tuple[T, R]]:
    """Yield each row with what the function that `make()` returns makes of it; both have to be picklable.

    `make` is called here as well, so that a mistake in the configuration shows before anything starts. `workers` is the
    number of processes; 0 takes one per core. A worker takes `chunk` rows at a time, without it CHUNK.
    Raises SetupError where a worker is killed.
    """
    work = make()
    workers = workers or usable_cores()
    fewest = FEWEST if chunk is None else 8 * chunk
    if workers == 1 or total < fewest:
        return ((row, work(row)) for row in rows)
    job = _Job(pickle.dumps(make), os.getpid(), tuple(sys.path), str(Path.cwd()))
    return _in_processes(rows, job, workers, chunk or CHUNK)


def _in_processes(rows: Iterable[T], job: _Job, workers: int, chunk_rows: int) -> Iterator[tuple[T, Any]]:
    from joblib import Parallel, delayed
    from joblib.externals.loky import get_reusable_executor
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    submitted: deque[Sequence[T]] = deque()

    def chunks() -> Iterator[Any]:
        remaining = iter(rows)
        while chunk := list(islice(remaining, chunk_rows)):
            submitted.append(chunk)
            yield delayed(_apply)(job, chunk)

    pool = Parallel(workers, return_as="generator", pre_dispatch="2 * n_jobs", batch_size=1)
    try:
        for outputs in pool(chunks()):
            yield from zip(submitted.popleft(), outputs, strict=True)
    except TerminatedWorkerError as error:
        raise SetupError(
            "A worker process was killed, perhaps for want of memory.", "Set the stage's `workers` lower; 1 needs none."
        ) from error
    finally:
        # Each worker would keep some 200 MB for minutes.
        get_reusable_executor().shutdown(wait=False, kill_workers=True)


def _apply(job: _Job, chunk: Sequence[Any]) -> list[Any]:
    work = _worker(job)
    return [work(row) for row in chunk]


@lru_cache(maxsize=1)
def _worker(job: _Job) -> Callable[[Any], Any]:
    """Make the worker's function, once in each process."""
    die_with_process(job.parent)
    # Ctrl-C reaches the parent, who ends its workers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.path[:] = job.path
    os.chdir(job.folder)
    make: Callable[[], Callable[[Any], Any]] = pickle.loads(job.make)
    return make()
