"""Calls a function for each of many tasks in worker processes, and yields the results in the order of the tasks."""

from __future__ import annotations

import os
import pickle
import signal
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

from truegold.verifiers import SetupError
from truegold.verifiers.sandbox.child_process import die_with_process

T = TypeVar("T")
R = TypeVar("R")


class WorkerKilled(SetupError):
    """A worker process was killed by a signal."""


@dataclass(frozen=True)
class Whereabouts:
    """The module path and the working directory of a process. Import strings and relative paths depend on them."""

    path: tuple[str, ...]
    """The folders in which modules are searched (`sys.path`)."""
    folder: str
    """The working directory."""

    @classmethod
    def here(cls) -> Whereabouts:
        """Return the whereabouts of this process."""
        return cls(tuple(sys.path), str(Path.cwd()))

    def enter(self) -> None:
        """Set the module path and working directory of this process to these. They may come from another machine.

        Raises SetupError if this machine does not have the working directory.
        """
        sys.path[:] = dict.fromkeys((*self.path, *sys.path))
        try:
            os.chdir(self.folder)
        except OSError as error:
            raise SetupError(
                f"{self.folder} is not on the machine {os.uname().nodename} ({error.strerror}).",
                "Every machine has to see the working directory and the run's folder under the same paths.",
            ) from error


@dataclass(frozen=True)
class _Job:
    """The data that every worker needs to call the function."""

    function: bytes
    """The pickled function."""
    parent: int
    """The id of the parent process. Workers end with it."""
    whereabouts: Whereabouts
    """The whereabouts of the parent process."""


def map_in_workers(function: Callable[[T], R], tasks: Iterable[T], workers: int) -> Iterator[tuple[T, R]]:
    """Yield each task with its result, in the order of the tasks. Function, tasks and results must be picklable.

    Tasks are taken from the iterable as workers become free. Raises WorkerKilled if a worker is killed.
    """
    from joblib import Parallel, delayed
    from joblib.externals.loky import get_reusable_executor
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    job = _Job(pickle.dumps(function), os.getpid(), Whereabouts.here())
    submitted: deque[T] = deque()

    def calls() -> Iterator[Any]:
        for task in tasks:
            submitted.append(task)
            yield delayed(_call)(job, task)

    pool = Parallel(workers, return_as="generator", pre_dispatch="2 * n_jobs", batch_size=1)
    try:
        for returned in pool(calls()):
            yield submitted.popleft(), returned
    except TerminatedWorkerError as error:
        raise WorkerKilled(
            "A worker process was killed, perhaps for lack of memory.",
            "Set `workers` lower; with 1, no worker is started.",
        ) from error
    finally:
        # End the workers now. By default, they stay for minutes, with some 200 MB each.
        get_reusable_executor().shutdown(wait=False, kill_workers=True)


def _call(job: _Job, task: Any) -> Any:
    return _function(job)(task)


@lru_cache(maxsize=1)
def _function(job: _Job) -> Callable[[Any], Any]:
    """Return the function to call. The first call in a worker process also prepares the process."""
    die_with_process(job.parent)
    # The parent handles Ctrl-C, and ends its workers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    job.whereabouts.enter()
    function: Callable[[Any], Any] = pickle.loads(job.function)
    return function
