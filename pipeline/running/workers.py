"""Calls a function in worker processes, a task at a time; what it returns comes in the order of the tasks."""

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
    """A worker process has died of a signal."""


@dataclass(frozen=True)
class Whereabouts:
    """The state of a process that import strings and relative paths depend on."""

    path: tuple[str, ...]
    """The folders in which modules are searched for."""
    folder: str
    """The working directory."""

    @classmethod
    def here(cls) -> Whereabouts:
        """Return those of this process."""
        return cls(tuple(sys.path), str(Path.cwd()))

    def enter(self) -> None:
        """Have import strings and paths mean in this process, which may be on another machine, what they mean there.

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
    """The settings that every worker has to know."""

    function: bytes
    """The pickled function."""
    parent: int
    """The id of this process, with which the workers end."""
    whereabouts: Whereabouts
    """Those of this process."""


def map_in_workers(function: Callable[[T], R], tasks: Iterable[T], workers: int) -> Iterator[tuple[T, R]]:
    """Yield each task with what the function returns for it; function, tasks and returned values have to be picklable.

    Tasks are taken from the iterable as workers come free. Raises WorkerKilled if a worker is killed.
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
            "A worker process was killed, perhaps for want of memory.", "Set the stage's `workers` lower; 1 needs none."
        ) from error
    finally:
        # Each worker would keep some 200 MB for minutes.
        get_reusable_executor().shutdown(wait=False, kill_workers=True)


def _call(job: _Job, task: Any) -> Any:
    return _function(job)(task)


@lru_cache(maxsize=1)
def _function(job: _Job) -> Callable[[Any], Any]:
    """Prepare this process, once, and return the function that it calls."""
    die_with_process(job.parent)
    # Ctrl-C reaches the parent, who ends its workers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    job.whereabouts.enter()
    function: Callable[[Any], Any] = pickle.loads(job.function)
    return function
