"""Shares sandboxes among all threads of a process. A sandbox runs as many jobs at a time as there are cores.

    box = sandbox()                                   the strongest tier that this machine allows
    box.run(Job("main", payload, Limits()))           an Execution
    box.run_pair(solution, tests)                     two processes that talk to each other

A zygote is a process that has loaded all modules and forks a copy of itself for each job. A job that waits, asleep or
for input, gives its core to a job in another zygote. If the sandbox of a job fails, the job is tried once more in a new
sandbox. If the new sandbox fails too, SandboxError is raised, and there is no verdict on the program.

Tiers (`execution.Tier`) without mount namespaces have working folders on the disk. A process locks each of its folders.
A folder without a lock thus belongs to a killed process, and the next process removes it.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import json
import os
import re
import sys
import tempfile
import threading
import time
import warnings
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TypedDict

from truegold.verifiers.sandbox.child_process import ChildDied, ChildProcess, DeadlinePassed, usable_cores
from truegold.verifiers.sandbox.errors import ConfigError, SetupError
from truegold.verifiers.sandbox.execution import (
    BOX_MB,
    Execution,
    Job,
    Limits,
    MachineBusy,
    ProgramEnd,
    SandboxError,
    Tier,
)
from truegold.verifiers.sandbox.inside.confine.supervise import JobLimits, JobReport
from truegold.verifiers.sandbox.inside.confine.view import empty_folder
from truegold.verifiers.sandbox.inside.preload import ANY_PACKAGE, LOADED_WHEN_NAMED, PACKAGES, PLAIN, PYTEST

VARIABLE = "TRUEGOLD_SANDBOX"
"""The environment variable that selects a tier, such as `weak` on a machine that allows no other."""

IDLE_S = 5.0
"""Maximum time that a program waits, asleep or for input, in seconds, unless `own_s` is set. Stops `sleep(10**6)`."""
WALL_FACTOR = 20.0
"""Maximum wall time, as a multiple of the time that a program may take on an idle machine."""
ATTEMPTS = 2
"""Number of attempts to run a job before SandboxError is raised."""
START_S = 120.0
"""Maximum time that a zygote takes to start on a busy machine, in seconds."""
GRACE_S = 60.0
"""After the time limits of its jobs, a zygote has this many seconds to reply. Then it is taken as dead."""
STDERR_BYTES = 2**14
"""Maximum number of bytes of a program's stderr that are kept."""
RESULT_BYTES = 256 * 2**20
"""Maximum number of bytes of a job's results that are read."""
MAX_JOBS = 2
"""Maximum number of jobs of a zygote at one time: one job or a pair."""
FOLDER_PREFIX = "truegold-box-"
JUST_MADE_S = 60.0
"""Seconds for which a new folder is left alone, because its process may still be about to lock it."""
TESTS = "tests"
"""The group of zygotes for jobs that run test code and need no packages."""
_LIGHT_PACKAGES = frozenset({"numpy", PYTEST})
"""Packages that programs get in zygotes without the other packages."""
PLAIN_ROLES = frozenset({"main", "script", "native", "calls"})
"""Roles of jobs (`inside/roles.py`) that zygotes of the group `plain` can run."""
JOBS_PER_CORE = 4
"""Number of zygotes for each core, so that other jobs can run while some wait."""

_FAILURES = (ChildDied, DeadlinePassed, OSError, ValueError)
"""Errors that mean that the process of a zygote failed."""
_FILES_PER_JOB = 5
"""Descriptors of a job: payload, stdin, stdout, stderr, result."""

_IMPORT = re.compile(r"^[ \t]*(?:from[ \t]+(\w+)|import[ \t]+([^#;\n]+))", re.MULTILINE)
_SCIPY_STATS = re.compile(r"\bscipy\.stats\b|\bscipy[ \t]+import\b[^#;\n]*\bstats\b")
_AUTOMATIC_TIERS = (Tier.FULL, Tier.CONTAINER)
"""Tiers that are chosen without a request, the strongest first."""

_INSIDE = Path(__file__).resolve().parent / "inside"
_PACKAGE = "_truegold_inside"
_BOOT = f"""
import json, sys
package = type(sys)({_PACKAGE!r})
package.__path__ = [sys.argv[1]]
sys.modules[{_PACKAGE!r}] = package
from {_PACKAGE}.confine.zygote import main
from {_PACKAGE}.roles import roles_of
main(json.loads(sys.argv[2]), roles_of)
"""
"""The program of a zygote: loads the folder `inside` as a package and starts it."""
_ENVIRONMENT = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "HOME": "/tmp",
    "USER": "solution",  # For tiers in which the program sees the machine's own list of users.
    "LANG": "C.UTF-8",
    "LC_ALL": "C.UTF-8",
    "PYTHONDONTWRITEBYTECODE": "1",
    # Threads of these libraries would keep the zygote from entering namespaces.
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "MALLOC_ARENA_MAX": "2",
}
"""The environment of a program, except its hash seed. It holds no tokens and no keys."""

_LIMIT_ENDS = {"busy": ProgramEnd.WALL_LIMIT, **{str(end): end for end in ProgramEnd if end.endswith("limit")}}
"""The end of a program, by the supervisor's name of the limit that it exceeded."""


class ZygoteReply(TypedDict, total=False):
    """A message of a zygote. While jobs wait, it may send `waiting` before the message with `jobs`."""

    ready: bool
    jobs: list[JobReport]
    waiting: bool
    failed: str
    trouble: str
    bug: str


class TierNotPossible(SandboxError):
    """This machine does not allow the tier. The text says which step failed."""


@dataclass(frozen=True, slots=True)
class Kind:
    """The properties by which sandboxes differ."""

    tier: Tier | None = None
    """The tier, or None for the strongest that this machine allows."""
    python: str = sys.executable
    """The interpreter whose packages programs may use."""
    hash_seed: int = 0
    """PYTHONHASHSEED of the programs."""
    expose: tuple[str, ...] = ()
    """Folders that programs may read, in addition to the system's."""


last_run = threading.local()
"""Thread-local: `own_s` is the time of this thread's last program (`Execution.own_s`), for reports of costs."""


class Stop:
    """Ends jobs from another thread: the jobs of all threads that have set `STOP` to this object."""

    def __init__(self) -> None:
        self.is_set = False
        self._lock = threading.Lock()
        self._at_work: set[ZygoteClient] = set()

    def set(self) -> None:
        """End all running jobs of these threads. No further job starts."""
        with self._lock:
            self.is_set = True
            for client in self._at_work:
                client.kill()

    @contextlib.contextmanager
    def watching(self, client: ZygoteClient) -> Iterator[None]:
        """Register a client that `set` ends. Raises SandboxError if `set` was called before."""
        with self._lock:
            if self.is_set:
                raise SandboxError("the client of this job has disconnected")
            self._at_work.add(client)
        try:
            yield
        finally:
            with self._lock:
                self._at_work.discard(client)


STOP: ContextVar[Stop | None] = ContextVar("stop", default=None)
"""The switch that ends the jobs of the current context."""


class Sandbox:
    """Runs jobs, each in its own process. It can be used from any number of threads."""

    def __init__(self, kind: Kind, tier: Tier, jobs_at_once: int) -> None:
        self.tier = tier
        self.stronger_tier: Tier | None = None
        """A stronger tier that this machine allows but that is not used."""
        self._kind = kind
        self._jobs_at_once = jobs_at_once
        self._make_groups()

    def run(self, job: Job) -> Execution:
        """Run a job and return its result. Raises SandboxError if the sandbox failed."""
        return self._run([job], False)[0]

    def run_pair(self, solution: Job, tests: Job, piped: bool = False) -> tuple[Execution, Execution]:
        """Run two jobs at the same time, connected by a socket. When `tests` ends, both end.

        piped: whether pipes connect them instead. Each then reads on stdin what the other one prints.
        """
        solution_execution, tests_execution = self._run([solution, tests], piped)
        return solution_execution, tests_execution

    def close(self) -> None:
        """End all processes of the sandbox. The sandbox can be used again."""
        for zygote in list(self._clients):
            zygote.stop()

    def pids(self) -> list[int]:
        """Return the process ids of the running zygotes."""
        return [zygote.pid for zygote in list(self._clients) if zygote.pid is not None]

    def folders(self) -> list[str]:
        """Return the working folders on disk. The tier `full` has none."""
        return [folder.path for zygote in list(self._clients) for folder in zygote.folders]

    def find_obstacle(self) -> str | None:
        """Run an empty program. Return the reason that it could not run, or None if it ran."""
        try:
            self.run(Job("main", b"", Limits()))
        except SandboxError as error:
            return str(error)
        return None

    def forget(self) -> None:
        """Drop all zygotes without ending them. In a forked copy of this process, they belong to the original."""
        for zygote in list(self._clients):
            zygote.forget()
        self._make_groups()

    def _make_groups(self) -> None:
        self._free: dict[str, deque[ZygoteClient]] = {}
        self._clients: list[ZygoteClient] = []
        self._lock = threading.Lock()
        self._cores = threading.Semaphore(self._jobs_at_once)
        self._running_jobs = threading.Semaphore(self._jobs_at_once * JOBS_PER_CORE)
        self._asking = 0
        """The number of threads with a waiting or running job."""

    def _run(self, jobs: list[Job], piped: bool) -> list[Execution]:
        free = self._free_zygotes(group_of([job.role for job in jobs], [name for job in jobs for name in job.warm]))
        with self._lock:
            self._asking += 1
        try:
            with self._running_jobs, contextlib.ExitStack() as core:
                core.enter_context(self._cores)
                zygote = free.pop()  # It is never empty, because there is a zygote for each job that may run.
                try:
                    return self._run_in(zygote, jobs, piped, core.close)
                finally:
                    self._end_surplus(zygote)
                    # Running zygotes are used first.
                    (free.append if zygote.pid is not None else free.appendleft)(zygote)
        finally:
            with self._lock:
                self._asking -= 1

    def _end_surplus(self, zygote: ZygoteClient) -> None:
        """End a zygote that was started because the others waited, if no job needs it any more."""
        with self._lock:
            running = sum(client.pid is not None and client.group == zygote.group for client in self._clients)
            is_surplus = running > max(self._jobs_at_once, self._asking - 1)
        if is_surplus:
            zygote.stop()

    def _run_in(
        self, zygote: ZygoteClient, jobs: list[Job], piped: bool, leave_core: Callable[[], None]
    ) -> list[Execution]:
        """Run the jobs in a zygote. If the sandbox fails, run them once more."""
        stop = STOP.get()
        for attempt in range(ATTEMPTS):
            try:
                zygote.start()
                with stop.watching(zygote) if stop is not None else contextlib.nullcontext():
                    return zygote.run(jobs, piped, leave_core)
            except (TierNotPossible, MachineBusy):
                raise
            except SandboxError:
                if attempt == ATTEMPTS - 1 or (stop is not None and stop.is_set):
                    raise
        raise AssertionError("the last attempt returns or raises")

    def _free_zygotes(self, group: str) -> deque[ZygoteClient]:
        """Return the idle zygotes of a group (`group_of`)."""
        with self._lock:
            if group not in self._free:
                clients = [
                    ZygoteClient(self.tier, self._kind, group) for _ in range(self._jobs_at_once * JOBS_PER_CORE)
                ]
                self._clients += clients
                self._free[group] = deque(clients)
            return self._free[group]


def warm_modules(source: str) -> tuple[str, ...]:
    """Return the modules that a program imports and that a zygote should load before the program starts."""
    names: set[str] = set()
    for origin, listed in _IMPORT.findall(source):
        names.update([origin] if origin else re.findall(r"(?:^|,)\s*(\w+)", listed))
    if "scipy" in names and _SCIPY_STATS.search(source):  # Loading it takes half a second.
        names.add("scipy.stats")
    return tuple(sorted(names & (LOADED_WHEN_NAMED | PACKAGES)))


def group_of(roles: Iterable[str], warm: Iterable[str]) -> str:
    """Return the group of zygotes for jobs with these roles and modules."""
    packages = PACKAGES.intersection(warm)
    if packages:
        return "+".join(sorted(packages)) if packages <= _LIGHT_PACKAGES else ANY_PACKAGE
    return PLAIN if PLAIN_ROLES.issuperset(roles) else TESTS


class ZygoteClient:
    """The client of one zygote: starts it, sends it jobs, and reads their results. One thread at a time may use it.

    After a `SandboxError`, which is never the program's fault, the zygote has ended. The next use starts a new one.
    """

    def __init__(self, tier: Tier, kind: Kind, group: str) -> None:
        self.folders: list[WorkFolder] = []
        self.group = group
        self._tier = tier
        self._kind = kind
        self._child: ChildProcess | None = None

    @property
    def pid(self) -> int | None:
        """The zygote's process id, or None if it does not run."""
        return self._child.pid if self._child else None

    def run(self, jobs: Sequence[Job], piped: bool, leave_core: Callable[[], None]) -> list[Execution]:
        """Run the jobs and return the execution of each. Raises SandboxError if the sandbox failed.

        piped: whether each of two jobs reads what the other one prints. leave_core: called once the jobs have waited
        for a while.
        """
        descriptors: list[int] = []
        try:
            for job in jobs:
                descriptors += map(_anonymous_file, (job.payload, job.stdin, b"", b"", b""))
            reply = self._ask(jobs, descriptors, piped)
            if "waiting" in reply:
                leave_core()
                reply = self._receive(jobs)
            reports = reply["jobs"]
            last_run.own_s = reports[0]["cpu_s"] + reports[0]["idle_s"]
            streams = [
                descriptors[start : start + _FILES_PER_JOB] for start in range(0, len(descriptors), _FILES_PER_JOB)
            ]
            executions = list(map(_execution, jobs, reports, streams))
            for report, execution in zip(reports, executions, strict=True):
                if report["ended_by"] == "busy":
                    cores = f"in {execution.wall_s:.1f} s the program was on a core for {execution.cpu_s:.1f} s"
                    raise MachineBusy(f"the machine is too busy: {cores}", execution)
            return executions
        except (*_FAILURES, KeyError) as error:
            self.stop()
            raise SandboxError(f"the sandbox process failed: {type(error).__name__}: {error}") from error
        finally:
            for descriptor in descriptors:
                os.close(descriptor)

    def start(self) -> None:
        """Start the zygote unless it runs. Raises TierNotPossible if this machine does not allow its tier."""
        if self._child is not None:
            return
        if self._tier is not Tier.FULL:
            remove_abandoned()
            self.folders = [WorkFolder() for _ in range(MAX_JOBS)]
        options = {
            "tier": str(self._tier),
            "boxes": [folder.path for folder in self.folders],
            "expose": list(self._kind.expose),
            "group": self.group,
        }
        command = [self._kind.python, "-s", "-c", _BOOT, str(_INSIDE), json.dumps(options)]
        environment = {**_ENVIRONMENT, "PYTHONHASHSEED": str(self._kind.hash_seed)}
        self._child = ChildProcess(command, quiet=True, environment=environment)
        try:
            greeting = self._receive(())
        except _FAILURES as error:
            self.stop()
            raise SandboxError(f"the sandbox process did not start: {type(error).__name__}: {error}") from error
        if "failed" in greeting:
            self.stop()
            raise TierNotPossible(greeting["failed"])

    def kill(self) -> None:
        """End the zygote and its jobs. Any thread may call this; the thread that uses the zygote gets an error."""
        if (child := self._child) is not None:
            child.interrupt()

    def stop(self) -> None:
        """End the zygote and remove its folders."""
        if self._child is not None:
            self._child.kill()
        for folder in self.folders:
            folder.remove()
        self.forget()

    def forget(self) -> None:
        """Drop the zygote without ending it. In a forked copy of this process, it belongs to the original."""
        for folder in self.folders:
            folder.forget()
        self._child, self.folders = None, []

    def _ask(self, jobs: Sequence[Job], descriptors: list[int], piped: bool) -> ZygoteReply:
        assert self._child is not None
        warm = sorted({name for job in jobs for name in job.warm})
        request = {"jobs": [describe_job(job) for job in jobs], "warm": warm, "piped": piped}
        self._child.send(request, time.monotonic() + GRACE_S, descriptors)
        return self._receive(jobs)

    def _receive(self, jobs: Sequence[Job]) -> ZygoteReply:
        """Return the zygote's next message. Without jobs, this is the message on its start."""
        assert self._child is not None
        patience_s = max((_longest_s(job.limits)[1] + GRACE_S for job in jobs), default=START_S)
        reply: ZygoteReply = self._child.receive(time.monotonic() + patience_s)
        if "bug" in reply:
            raise RuntimeError(f"the sandbox process failed:\n{reply['bug']}")
        if "trouble" in reply:
            raise OSError(reply["trouble"])
        return reply


def _longest_s(limits: Limits) -> tuple[float, float]:
    """Return two limits in seconds: on CPU time and waiting together, and on wall time."""
    own_s = limits.cpu_s + IDLE_S if limits.own_s is None else limits.own_s
    return own_s, WALL_FACTOR * own_s if limits.busy_s is None else own_s + limits.busy_s


def describe_job(job: Job) -> dict[str, object]:
    """Return the description of a job for the zygote. The payload and streams are passed as descriptors."""
    own_s, wall_s = _longest_s(job.limits)
    limits: JobLimits = {
        "cpu_s": job.limits.cpu_s,
        "idle_s": IDLE_S if job.limits.own_s is None else job.limits.own_s,
        "own_s": own_s,
        "wall_s": wall_s,
        "memory_bytes": int(job.limits.memory_mb * 2**20),
        "output_bytes": max(int(job.limits.output_mb * 2**20), _round_up(job.result_bytes)),
        "files_bytes": BOX_MB * 2**20,
        "threads": job.limits.threads,
    }
    return {"role": job.role, "limits": limits, "native": job.native, "payload_bytes": len(job.payload)}


def _round_up(size: int) -> int:
    """Round a large size up to a power of two, and a small one to 0. Then few sets of limits have to be prepared."""
    return 1 << size.bit_length() if size > BOX_MB * 2**20 else 0


def _execution(job: Job, report: JobReport, descriptors: Sequence[int]) -> Execution:
    _, _, stdout, stderr, result = descriptors
    code, max_bytes = report["code"], int(job.limits.output_mb * 2**20)
    longest = max(os.fstat(stdout).st_size, os.fstat(stderr).st_size)
    if (limit := _LIMIT_ENDS.get(report["ended_by"] or "")) is not None:
        end = limit
    elif (
        longest >= max_bytes
    ):  # SIGXFSZ, the signal for too much output, does not end the first process of a pid namespace.
        end = ProgramEnd.OUTPUT_LIMIT
    else:
        end = ProgramEnd.SIGNALLED if code < 0 else ProgramEnd.EXITED
    return Execution(
        end=end,
        status=abs(code),
        stdout=_read_file(stdout, max_bytes),
        stderr=_read_file(stderr, STDERR_BYTES),
        cpu_s=report["cpu_s"],
        wall_s=report["wall_s"],
        idle_s=report["idle_s"],
        peak_mb=report["peak_mb"],
        result=_read_file(result, RESULT_BYTES),
    )


def _anonymous_file(content: bytes) -> int:
    """Return the descriptor of a file in memory. Unlike a pipe, it is never full."""
    descriptor = os.memfd_create("truegold", os.MFD_CLOEXEC)
    # The file's position stays at the start, for the process that reads it.
    if os.pwrite(descriptor, content, 0) != len(content):
        raise OSError(f"no memory for a file of {len(content)} bytes")
    return descriptor


def _read_file(descriptor: int, max_bytes: int) -> bytes:
    """Return the first `max_bytes` of a file."""
    return os.pread(descriptor, min(os.fstat(descriptor).st_size, max_bytes), 0)


class WorkFolder:
    """A working folder on disk, locked by this process."""

    def __init__(self) -> None:
        self.path = tempfile.mkdtemp(prefix=f"{FOLDER_PREFIX}{os.getpid()}-")
        self._lock = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
        fcntl.flock(self._lock, fcntl.LOCK_EX)

    def remove(self) -> None:
        """Remove the folder with its content."""
        _remove_folder(self.path)

    def forget(self) -> None:
        """Close this copy of the lock. In a forked copy of this process the folder belongs to the original."""
        os.close(self._lock)


def remove_abandoned() -> None:
    """Remove the working folders of processes that have ended, which are no longer locked."""
    for path in Path(tempfile.gettempdir()).glob(f"{FOLDER_PREFIX}*"):
        with contextlib.suppress(OSError):
            if time.time() - path.stat().st_mtime < JUST_MADE_S:
                continue
            handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _remove_folder(str(path))
            finally:
                os.close(handle)


def _remove_folder(path: str) -> None:
    empty_folder(path)
    with contextlib.suppress(OSError):
        Path(path).rmdir()


_SHARED: dict[Kind, Sandbox] = {}
_LOCK = threading.Lock()


def sandbox(kind: Kind | None = None) -> Sandbox:
    """Return the shared sandbox of a kind. Raises SetupError with the reasons if the machine allows no such tier."""
    kind = kind or Kind()
    with _LOCK:
        if kind not in _SHARED:
            _SHARED[kind] = _open(kind)
        return _SHARED[kind]


def close_all() -> None:
    """End every shared sandbox of this process."""
    with _LOCK:
        shared = list(_SHARED.values())
        _SHARED.clear()
    for box in shared:
        box.close()


def possible_tiers(python: str = sys.executable) -> dict[Tier, str | None]:
    """Return for each tier the reason that this machine does not allow it, or None if it does."""
    return {tier: _find_obstacle(tier, Kind(python=python)) for tier in Tier}


def _find_obstacle(tier: Tier, kind: Kind) -> str | None:
    """Return the reason that this machine does not allow a tier, or None if it does."""
    with contextlib.closing(Sandbox(kind, tier, 1)) as box:
        return box.find_obstacle()


def _tier_from_environment() -> Tier | None:
    """Return the tier that `TRUEGOLD_SANDBOX` selects, or None. Raises ConfigError for an unknown tier."""
    name = os.environ.get(VARIABLE, "").strip() or "auto"
    if name not in (*Tier, "auto"):
        raise ConfigError(f"{VARIABLE}={name} is not a tier.", f"It may be {', '.join(Tier)} or auto.")
    return None if name == "auto" else Tier(name)


def _open(kind: Kind) -> Sandbox:
    requested_tier = kind.tier or _tier_from_environment()
    reasons: list[str] = []
    for tier in (requested_tier,) if requested_tier else _AUTOMATIC_TIERS:
        box = Sandbox(kind, tier, usable_cores())
        if (obstacle := box.find_obstacle()) is None:
            above = _AUTOMATIC_TIERS[: _AUTOMATIC_TIERS.index(tier)] if tier in _AUTOMATIC_TIERS else _AUTOMATIC_TIERS
            box.stronger_tier = next(filter(_machine_allows, above), None)
            if box.stronger_tier is not None:
                why = f"{VARIABLE} or the verifier asks for it" if requested_tier else "; ".join(reasons)
                message = f"Programs run in the tier {tier}, though this machine allows {box.stronger_tier}: {why}."
                warnings.warn(message, stacklevel=2)
            _LIVE.add(box)
            return box
        reasons.append(f"{tier}: {obstacle}")
    raise SetupError(
        f"this machine allows no sandbox for programs ({'; '.join(reasons)}).",
        "See `truegold doctor`; a container may need `--security-opt seccomp=unconfined`. TRUEGOLD_SANDBOX=weak runs "
        "them with resource limits only: for programs that you trust.",
    )


@cache
def _machine_allows(tier: Tier) -> bool:
    """Return whether programs of the plain interpreter, without toolchains and packages, can run in a tier."""
    return _find_obstacle(tier, Kind(python=getattr(sys, "_base_executable", None) or sys.executable)) is None


_LIVE: weakref.WeakSet[Sandbox] = weakref.WeakSet()


def _after_fork() -> None:
    global _LOCK  # noqa: PLW0603
    _LOCK = threading.Lock()
    for box in list(_LIVE):
        box.forget()


os.register_at_fork(after_in_child=_after_fork)
atexit.register(close_all)
