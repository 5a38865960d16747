"""Watch the processes of one job and end them at their limits.

CPU time decides. Waiting is bounded apart from it, and only waiting counts: time in which a process could have run and
the machine was busy with others does not, so that verdicts are the same on a loaded machine. Memory is looked at in
passing; the address-space limit is what stops a sudden gigabyte.
"""

from __future__ import annotations

import os
import resource
import select
import signal
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

TICK_S = 0.02
"""How often limits are looked at once a job has run for as long."""

WALL_FACTOR = 20.0
"""A job ends after so many times its CPU and waiting limits, whatever it did: the last resort on a machine where the
time spent waiting for a core cannot be read."""

MAX_ORPHANS = 10_000
"""Stops a job that multiplies faster than it is killed from keeping its seat for ever."""

BLOCK_BYTES, ENTRY_BYTES = 512, 2**16
"""An entry counts as 64 KB whatever is in it, so that a thousand of them are the limit as elsewhere."""

MAX_FOLDERS = 200
ENDLESS = 2**50

PAGE_BYTES = resource.getpagesize()


@dataclass
class Watched:
    """One process under watch, and what became of it."""

    pid: int
    limits: Mapping[str, Any]
    native: bool = False
    """It starts further processes, and they all count."""
    handle: int = -1
    started: float = field(default_factory=time.monotonic)
    ended_by: str | None = None
    """cpu, wall, memory, tasks, files or partner, where it was ended from here."""
    report: dict[str, Any] | None = None

    @property
    def running(self) -> bool:
        return self.report is None


class Supervisor:
    """Knows how to look at processes.

    proc: a descriptor of a /proc that shows them, or None. boxes: working folders whose size nothing else limits.
    groups: whether a job's processes have to be ended as a process group and counted, because no namespace and no limit
    of the kernel does.
    """

    def __init__(self, proc: int | None, boxes: Sequence[str] = (), groups: bool = False) -> None:
        self._proc = proc
        self._boxes = boxes
        self._groups = groups

    def watch(self, jobs: Sequence[Watched]) -> None:
        """Return when all have ended and are reaped. The last is what matters: when it ends, so do the others."""
        poll = select.poll()
        for job in jobs:
            job.handle = os.pidfd_open(job.pid)
            poll.register(job.handle, select.POLLIN)
        try:
            while any(job.running for job in jobs):
                ended = {descriptor for descriptor, _ in poll.poll(TICK_S * 1000)}
                for at, job in enumerate(jobs):
                    if job.running and job.handle in ended:
                        poll.unregister(job.handle)
                        self._reap(job)
                    elif job.running:
                        job.ended_by = job.ended_by or self._excess(job, at)
                        if job.ended_by:
                            self._end(job)
                if not jobs[-1].running:
                    for job in jobs[:-1]:
                        if job.running and job.ended_by is None:
                            job.ended_by = "partner"
                            self._end(job)
        finally:
            for job in jobs:
                os.close(job.handle)

    def _end(self, job: Watched) -> None:
        if self._groups:
            kill_group(job.pid)
        kill(job.pid)

    def _excess(self, job: Watched, seat: int) -> str | None:
        """The limit that a running job is beyond."""
        limits, waited = job.limits, time.monotonic() - job.started
        # What a job's processes leave behind becomes this process's child, where no namespace takes it along.
        pids = self._family(os.getpid())[1:] if job.native else [job.pid]
        cpu_s = sum(map(cpu_seconds, pids))
        if cpu_s > limits["cpu_s"]:
            return "cpu"
        if waited - cpu_s > limits["idle_s"] and self._is_idle(pids, waited, cpu_s, limits):
            return "wall"
        if self._resident_bytes(pids) > limits["memory_bytes"]:
            return "memory"
        if self._groups and not job.native and self._tasks(pids) > limits["threads"] + 1:
            return "tasks"
        if self._boxes and _box_bytes(self._boxes[seat]) > limits["files_bytes"]:
            return "files"
        return None

    def _reap(self, job: Watched) -> None:
        _, status, used = os.wait4(job.pid, 0)
        code = os.waitstatus_to_exitcode(status)
        cpu_s = used.ru_utime + used.ru_stime
        ended_by = job.ended_by
        if ended_by is None and cpu_s > job.limits["cpu_s"]:
            ended_by = "cpu"
        if ended_by is None and code == -signal.SIGXFSZ:
            ended_by = "output"
        job.report = {
            "ended_by": ended_by,
            "code": code,
            "cpu_s": round(cpu_s, 6),
            "wall_s": round(time.monotonic() - job.started, 6),
            "peak_mb": used.ru_maxrss / 1024,
        }

    def _family(self, pid: int) -> list[int]:
        """A process and all that come from it, as far as they can be seen."""
        found = [pid]
        if self._proc is None:
            return found
        for parent in found:  # grows on the way
            try:
                found += map(int, _text(self._proc, f"{parent}/task/{parent}/children").split())
            except (OSError, ValueError):
                continue
        return found

    def _run_delay_s(self, pids: Sequence[int]) -> float | None:
        """Seconds that these processes stood in line for a core: of each the thread that stood longest."""
        if self._proc is None:
            return None
        total = 0
        try:
            for pid in pids:
                tasks = _names(self._proc, f"{pid}/task")
                total += max(int(_text(self._proc, f"{pid}/task/{task}/schedstat").split()[1]) for task in tasks)
        except (OSError, ValueError, IndexError):
            return None
        return total / 1e9

    def _resident_bytes(self, pids: Sequence[int]) -> int:
        if self._proc is None:
            return 0
        total = 0
        for pid in pids:
            try:
                total += int(_text(self._proc, f"{pid}/statm").split()[1]) * PAGE_BYTES
            except (OSError, ValueError, IndexError):
                continue
        return total

    def _is_idle(self, pids: Sequence[int], waited: float, cpu_s: float, limits: Mapping[str, Any]) -> bool:
        delayed = self._run_delay_s(pids)
        if delayed is not None and waited - cpu_s - delayed > limits["idle_s"]:
            return True
        return bool(waited > WALL_FACTOR * (limits["cpu_s"] + limits["idle_s"]))

    def _tasks(self, pids: Sequence[int]) -> int:
        if self._proc is None:
            return 0
        total = 0
        for pid in pids:
            try:
                total += len(_names(self._proc, f"{pid}/task"))
            except OSError:
                continue
        return total


def cpu_seconds(pid: int) -> float:
    """CPU time of a whole process, by its clock (clock_gettime(2): a process's clock id is made of its pid)."""
    try:
        return time.clock_gettime((~pid << 3) | 2)
    except OSError:
        return 0.0


def kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def kill_group(leader: int) -> None:
    try:
        os.killpg(leader, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return


def end_orphans() -> None:
    """Kill and reap what a job started and left behind; this process has made itself the parent of such."""
    for _ in range(MAX_ORPHANS):
        try:
            children = _text_at(f"/proc/self/task/{os.getpid()}/children").split()
        except OSError:
            children = []
        for child in children:
            kill(int(child))
        try:
            pid, _ = os.waitpid(-1, 0 if children else os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return


def _names(proc: int, path: str) -> list[str]:
    place = os.open(path, os.O_RDONLY | os.O_DIRECTORY, dir_fd=proc)
    try:
        return os.listdir(place)
    finally:
        os.close(place)


def _text(proc: int, path: str) -> str:
    place = os.open(path, os.O_RDONLY, dir_fd=proc)
    try:
        return os.read(place, 4096).decode()
    finally:
        os.close(place)


def _text_at(path: str) -> str:
    with open(path) as file:
        return file.read()


def _box_bytes(box: str) -> int:
    """What a working folder takes up; endless where it holds too many files, or folders that cannot be looked into."""
    total = 0
    folders = [box]
    for seen, folder in enumerate(folders):  # grows on the way
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    total += entry.stat(follow_symlinks=False).st_blocks * BLOCK_BYTES + ENTRY_BYTES
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(entry.path)
        except FileNotFoundError:
            continue
        except OSError:
            return ENDLESS
        if seen > MAX_FOLDERS or total > ENDLESS:
            return ENDLESS
    return total
