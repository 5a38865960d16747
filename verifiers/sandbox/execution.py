"""Defines the programs and jobs that a sandbox runs, their limits, and the results of runs.

    Limits(cpu_s=2)              two seconds of CPU time; all other limits have their default
    Limits(cpu_s=2, own_s=2)     two seconds for CPU time and waiting together
    Limits(memory_mb=0)          ValueError: memory_mb must be a whole number from 4 to 1048576, got 0

A row may set limits in its tests: `"limits": {"cpu_s": 2, "memory_mb": 512}`. The kernel enforces some limits
(`inside/confine/confinement.py`). A supervisor ends programs that exceed the others (`inside/confine/supervise.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

BOX_MB = 64
"""Megabytes that a program may write to its working folder."""

CPU_S_BOUNDS = (0.01, 3_600.0)
"""The lowest and the highest time limit, in seconds. A typing error such as 10000000 would hold a worker for months."""

_BOUNDS: dict[str, tuple[float, float]] = {
    **dict.fromkeys(("cpu_s", "compile_cpu_s", "own_s", "busy_s"), CPU_S_BOUNDS),
    "memory_mb": (4, 2**20),
    "output_mb": (1e-6, 1_024.0),  # The output is held in memory while it is compared.
    "threads": (1, 4_096),
}
"""The lowest and the highest value of each limit."""
_WHOLE = ("memory_mb", "threads")


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one run. Raises ValueError if one is out of its bounds."""

    cpu_s: float = 10.0
    """Maximum CPU time, in seconds. It is the main limit, since wall time would change verdicts on a busy machine."""
    memory_mb: int = 1024
    """Maximum resident memory of all processes of the program, in MiB."""
    output_mb: float = 16.0
    """Maximum output in MiB, for stdout and for stderr each."""
    compile_cpu_s: float = 60.0
    """CPU seconds for compiling."""
    threads: int = 128
    """Threads and processes at one time."""
    own_s: float | None = None
    """Maximum of CPU time and waiting together, in seconds (`Execution.own_s`). If None, `cpu_s` limits the CPU time,
    and `pool.IDLE_S` limits the waiting."""
    busy_s: float | None = None
    """Maximum time that the program queues for a core, in seconds. A run that queues longer raises MachineBusy. If
    None, `pool.WALL_FACTOR` limits the wall time."""

    def __post_init__(self) -> None:
        for name, (low, high) in _BOUNDS.items():
            value = getattr(self, name)
            if value is None and name in ("own_s", "busy_s"):
                continue
            is_whole = name in _WHOLE
            is_number = isinstance(value, int if is_whole else int | float) and not isinstance(value, bool)
            if not is_number or not low <= value <= high:
                kind = "a whole number" if is_whole else "a number"
                raise ValueError(f"{name} must be {kind} from {low:g} to {high:.7g}, got {repr(value)[:60]}")


class Tier(StrEnum):
    """The confinement of a program."""

    FULL = "full"
    """Separate namespaces (user, mount, pid, network, IPC, UTS), Landlock if the kernel has it, seccomp, limits."""
    CONTAINER = "container"
    """Landlock, seccomp, limits and a private folder, for machines without namespaces, such as most containers."""
    WEAK = "weak"
    """Limits only: a program can read and send all that the user can. Used only on request."""


class ProgramEnd(StrEnum):
    """The way in which a program ended."""

    EXITED = "exited"
    SIGNALLED = "signalled"
    CPU_LIMIT = "cpu_limit"
    WALL_LIMIT = "wall_limit"
    MEMORY_LIMIT = "memory_limit"
    OUTPUT_LIMIT = "output_limit"


@dataclass(frozen=True, slots=True)
class Execution:
    """One run of a program."""

    end: ProgramEnd
    status: int
    """The exit code, or the number of the signal."""
    stdout: bytes
    stderr: bytes
    """The beginning of the output to stderr."""
    cpu_s: float | None
    """CPU seconds. None if the back end does not measure them."""
    wall_s: float
    idle_s: float | None = None
    """Seconds in which the program waited, asleep or for input. None if the back end does not measure them."""
    peak_mb: float | None = None
    result: bytes = b""
    """Results of the job other than its output: lines of JSON, or files."""

    @property
    def own_s(self) -> float:
        """The time that a program needs on an idle machine: CPU time and waiting, or wall time if these are unknown."""
        return self.wall_s if self.cpu_s is None else self.cpu_s + (self.idle_s or 0.0)

    @property
    def ok(self) -> bool:
        """Whether the program exited with status 0."""
        return self.end is ProgramEnd.EXITED and self.status == 0


@dataclass(frozen=True, slots=True)
class Program:
    """A program in source form."""

    language: str
    source: str
    files: Mapping[str, bytes] = field(default_factory=dict)
    """Files in the program's working folder."""
    reads_once: bool = False
    """Whether stdin is a pipe, which can be read only once. By default it is a file."""


@dataclass(frozen=True, slots=True)
class Job:
    """The work of one process in the sandbox."""

    role: str
    """The role that handles the payload; `inside/roles.py` lists the roles."""
    payload: bytes
    limits: Limits
    stdin: bytes = b""
    native: bool = False
    """Whether the job starts other programs, such as compilers."""
    warm: Sequence[str] = ()
    """Modules that the job's program imports. They are loaded once, before a process is forked for each job."""
    result_bytes: int = 0
    """Maximum size of the job's results, in bytes. With 0, it is the size of files that a program may write."""


class SandboxError(Exception):
    """The infrastructure failed, which is never the program's fault. There is no verdict on the program."""


class MachineBusy(SandboxError):
    """A program got too little time on a core. Trying again would not help."""

    def __init__(self, message: str, execution: Execution | None = None) -> None:
        super().__init__(message)
        self.execution = execution
        """The run of the program up to the error."""


class Prepared(Protocol):
    """A program that is ready to run, any number of times."""

    compiled: Execution | None
    """The run of the compiler, or None if nothing was compiled. After a failed run, `run` must not be called."""

    def run(self, stdin: bytes) -> Execution:
        """Run the program on an input. Raises SandboxError."""
        ...
