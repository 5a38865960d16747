"""Supervises the processes of one job and ends them at their limits.

The main limit is on the CPU time of all processes of the job, including ended ones. Waiting has a separate limit. Time
counts as waiting while all processes of the job sleep, and those of its partner, if two jobs run together. A process
that queues for a core does not sleep. So results are the same on a busy machine. Memory is checked every `TICK_S`
seconds. Between two checks, the limit on the address space stops growth.
"""

from __future__ import annotations

import contextlib
import os
import resource
import select
import signal
import time
from collections.abc import Callable, Sequence
from typing import TypedDict

TICK_S = 0.02
"""Seconds between two checks of the limits."""

LEAVES_CORE_S = 0.1
"""Number of seconds of waiting after which a job gives its core to another job."""

TICKS_PER_S = os.sysconf("SC_CLK_TCK")
"""The unit of CPU times in /proc, in ticks per second."""

MAX_ORPHANS = 10_000
"""Maximum number of processes that are killed after a job, since a job may fork faster than they are killed."""

BLOCK_BYTES = 512
"""The size of a block of a file."""
ENTRY_BYTES = 2**16
"""Bytes that count for each file or folder in a box (the working folder of a job), in addition to its blocks. So 1,024
empty files count as 64 MiB."""

MAX_FOLDERS = 200
"""Maximum number of folders of a box that are measured. A box with more folders has the size `ENDLESS`."""

ENDLESS = 2**50
"""The size of a folder that cannot be measured."""

PAGE_BYTES = resource.getpagesize()


class JobLimits(TypedDict):
    """Limits of a job (`sandbox/execution.py`).

    idle_s: the longest waiting time. own_s: the longest sum of CPU time and waiting time. wall_s: the longest time from
    start to end. A job reaches this limit only if the machine is busy or waiting cannot be measured.
    """

    cpu_s: float
    idle_s: float
    own_s: float
    wall_s: float
    memory_bytes: int
    output_bytes: int
    files_bytes: int
    threads: int


class JobReport(TypedDict):
    """The end of a job and the resources that it used."""

    ended_by: str | None
    code: int
    cpu_s: float
    wall_s: float
    idle_s: float
    peak_mb: float


class Watched:
    """A supervised process, and later its report."""

    def __init__(self, pid: int, limits: JobLimits, native: bool = False) -> None:
        self.pid = pid
        self.limits = limits
        self.native = native
        """Whether the process starts further processes, which count towards its limits."""
        self.handle = -1
        self.started = self.looked = time.monotonic()
        """`started` is the time of the start, `looked` the time of the last check of the limits."""
        self.idle_s = 0.0
        """The waiting time so far: seconds in which all processes of the jobs that run together slept."""
        self.cpu_s = 0.0
        """The job's CPU time at the last check. For a killed job, later measures lack the processes that it started."""
        self.ended_by: str | None = None
        """The reason why the supervisor ended the process, or None: the name of a limit (as in `execution.ProgramEnd`),
        `busy` if the machine was too busy, or `partner` if the other job had ended."""
        self.report: JobReport | None = None
        """The report on the process, or None while it runs."""

    @property
    def running(self) -> bool:
        """Whether the process runs, or has ended and still has to be reaped."""
        return self.report is None


class Supervisor:
    """Checks the limits of processes and ends those that exceed one.

    proc: a descriptor of the folder /proc that shows these processes, or None if there is none. boxes: the working
    folders of the jobs, if the kernel does not limit their size. groups: whether jobs are ended and counted as process
    groups, because namespaces and kernel limits are not available.
    """

    def __init__(self, proc: int | None, boxes: Sequence[str] = (), groups: bool = False) -> None:
        self._proc = proc
        self._boxes = boxes
        self._groups = groups
        self._jobs: Sequence[Watched] = ()

    def watch(self, jobs: Sequence[Watched], leave_core: Callable[[], None]) -> None:
        """Supervise jobs until all have ended. When the last job of the list ends, the others are ended.

        leave_core: called once, if the jobs wait for longer than LEAVES_CORE_S.
        """
        self._jobs = jobs
        has_left = False
        poll = select.poll()
        for job in jobs:
            job.handle = os.pidfd_open(job.pid)
            poll.register(job.handle, select.POLLIN)
        try:
            while any(job.running for job in jobs):
                ended = {descriptor for descriptor, _ in poll.poll(TICK_S * 1000)}
                # An ended job may have run since the last check, so this time is not added to its waiting time.
                self._add_idle_time([job for job in jobs if job.running and job.handle not in ended])
                if not has_left and max(job.idle_s for job in jobs) > LEAVES_CORE_S:
                    has_left = True
                    leave_core()
                for seat, job in enumerate(jobs):
                    if job.running and job.handle in ended:
                        poll.unregister(job.handle)
                        self._reap(job)
                    elif job.running:
                        job.ended_by = job.ended_by or self._broken_limit(job, seat)
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

    def _add_idle_time(self, running: Sequence[Watched]) -> None:
        """Add the time since the last check to the waiting time, unless one of the jobs can run."""
        if self._proc is None or not running:
            return
        could_run = any(self._can_run(self._proc, self._processes(job)) for job in running)
        now = time.monotonic()
        for job in running:
            if not could_run:
                job.idle_s += now - job.looked
            job.looked = now

    def _processes(self, job: Watched) -> list[int]:
        if not job.native:
            return [job.pid]
        # Without a pid namespace, processes that a job leaves behind become children of this process.
        family = self._family(os.getpid())[1:]
        for partner in self._jobs:
            if partner is not job:
                family = [pid for pid in family if pid not in self._family(partner.pid)]
        return family

    def _broken_limit(self, job: Watched, seat: int) -> str | None:
        """Return the name of a limit that a running job has exceeded, or None."""
        limits, pids = job.limits, self._processes(job)
        cpu_s = sum(map(cpu_seconds, pids))
        if job.native:
            # The CPU time of ended children counts too.
            cpu_s += self._sum(pids, _reaped_ticks) / TICKS_PER_S
        job.cpu_s = cpu_s
        if cpu_s > limits["cpu_s"]:
            return "cpu_limit"
        runs_too_long = time.monotonic() - job.started > limits["wall_s"]
        waits_too_long = job.idle_s > limits["idle_s"] or cpu_s + job.idle_s > limits["own_s"]
        if waits_too_long or (runs_too_long and self._proc is None):
            return "wall_limit"
        if runs_too_long:  # The job exceeded no other limit, so it queued for a core on a busy machine.
            return "busy"
        has_too_many_tasks = self._groups and not job.native and self._sum(pids, _count_tasks) > limits["threads"] + 1
        if has_too_many_tasks or PAGE_BYTES * self._sum(pids, _resident_pages) > limits["memory_bytes"]:
            return "memory_limit"
        if self._boxes and _box_bytes(self._boxes[seat]) > limits["files_bytes"]:
            return "output_limit"
        return None

    def _reap(self, job: Watched) -> None:
        _, status, used = os.wait4(job.pid, 0)
        code = os.waitstatus_to_exitcode(status)
        cpu_s = max(used.ru_utime + used.ru_stime, 0.0 if job.ended_by is None else job.cpu_s)
        ended_by = job.ended_by
        if ended_by is None and cpu_s > job.limits["cpu_s"]:
            ended_by = "cpu_limit"
        if ended_by is None and code == -signal.SIGXFSZ:
            ended_by = "output_limit"
        job.report = {
            "ended_by": ended_by,
            "code": code,
            "cpu_s": round(cpu_s, 6),
            "wall_s": round(time.monotonic() - job.started, 6),
            "idle_s": round(job.idle_s, 6),
            "peak_mb": used.ru_maxrss / 1024,
        }

    def _family(self, pid: int) -> list[int]:
        """Return a process and all its visible descendants."""
        family = [pid]
        if self._proc is None:
            return family
        for parent in family:  # The list grows during the loop.
            with contextlib.suppress(OSError, ValueError):
                for task in _list_folder(self._proc, f"{parent}/task"):
                    family += map(int, _read_words(self._proc, f"{parent}/task/{task}/children"))
        return family

    @staticmethod
    def _can_run(proc: int, pids: Sequence[int]) -> bool:
        """Tell whether a thread of these processes runs or queues for a core."""
        for pid in pids:
            with contextlib.suppress(OSError, IndexError):
                for task in _list_folder(proc, f"{pid}/task"):
                    if _read_words(proc, f"{pid}/task/{task}/stat")[0] == "R":
                        return True
        return False

    def _sum(self, pids: Sequence[int], measure: Callable[[int, int], int]) -> int:
        """Return the sum of a measure from /proc over processes. Processes that cannot be read are left out."""
        if self._proc is None:
            return 0
        total = 0
        for pid in pids:
            with contextlib.suppress(OSError, ValueError, IndexError):
                total += measure(self._proc, pid)
        return total


def cpu_seconds(pid: int) -> float:
    """Return the CPU time of a process from its clock, whose id is derived from the pid (clock_gettime(2))."""
    try:
        return time.clock_gettime((~pid << 3) | 2)
    except OSError:
        return 0.0


def kill(pid: int) -> None:
    """Kill a process if it still exists."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def kill_group(leader: int) -> None:
    """Kill the remaining processes of a group."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)


def end_orphans() -> None:
    """Kill and reap the processes that a job left behind. They have become children of this process."""
    for _ in range(MAX_ORPHANS):
        try:
            with open(f"/proc/self/task/{os.getpid()}/children") as file:
                children = file.read().split()
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


def _list_folder(proc: int, path: str) -> list[str]:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY, dir_fd=proc)
    try:
        return os.listdir(descriptor)
    finally:
        os.close(descriptor)


def _read_words(proc: int, path: str) -> list[str]:
    """Return the words of a file. For `stat`, return the words after the name in brackets; the first is the state."""
    descriptor = os.open(path, os.O_RDONLY, dir_fd=proc)
    try:
        return os.read(descriptor, 4096).decode().rpartition(")")[2].split()
    finally:
        os.close(descriptor)


def _reaped_ticks(proc: int, pid: int) -> int:
    return sum(map(int, _read_words(proc, f"{pid}/stat")[13:15]))  # proc(5)


def _resident_pages(proc: int, pid: int) -> int:
    return int(_read_words(proc, f"{pid}/statm")[1])


def _count_tasks(proc: int, pid: int) -> int:
    return len(_list_folder(proc, f"{pid}/task"))


def _box_bytes(box: str) -> int:
    """Return the size of a working folder, or `ENDLESS` if it has too many files or cannot be read."""
    total = 0
    folders = [box]
    for visited, folder in enumerate(folders):  # The list grows during the loop.
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
        if visited > MAX_FOLDERS or total > ENDLESS:
            return ENDLESS
    return total
