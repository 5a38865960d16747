"""Defines programs and jobs, which a sandbox runs, and the results of running them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from truegold.verifiers.sandbox.limits import Limits


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
        """The time that the program needs on an idle machine: CPU time and waiting. Without CPU time: wall time."""
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
    """Whether the program gets a pipe as stdin, which can be read only once, and not a file."""


@dataclass(frozen=True, slots=True)
class Job:
    """The work of one process in the sandbox."""

    role: str
    """The role that handles the payload; `inside/roles.py` lists the roles."""
    payload: bytes
    limits: Limits
    stdin: bytes = b""
    native: bool = False
    """Whether it starts other programs, such as compilers."""
    warm: Sequence[str] = ()
    """Modules that its program imports. The zygote imports them once for all jobs."""
    result_bytes: int = 0
    """Maximum number of bytes of the job's results, if more than a program may write to files; else 0."""


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
