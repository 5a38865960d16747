"""Programs and jobs to run, and what became of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from truegold.verifiers.sandbox.limits import Limits


class Tier(StrEnum):
    """The confinement of a program."""

    FULL = "full"
    """Namespaces of its own (user, mount, pid, network, IPC, UTS), Landlock if there is one, seccomp, limits."""
    CONTAINER = "container"
    """Landlock, seccomp, limits and a private folder, for machines without namespaces, as in most containers."""
    WEAK = "weak"
    """Limits only: a program can read and send what the user can. Never chosen by itself."""


class ProgramEnd(StrEnum):
    """How a program came to its end."""

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
    """The exit code, or the signal's number."""
    stdout: bytes
    stderr: bytes
    """The beginning of its output to stderr."""
    cpu_s: float | None
    """None if the back end does not measure it."""
    wall_s: float
    idle_s: float | None = None
    """How long it waited while it could not run: asleep, or for input. None if the back end does not measure it."""
    peak_mb: float | None = None
    result: bytes = b""
    """Results of the job besides its output, as lines of JSON or files."""

    @property
    def own_s(self) -> float:
        """The time of the program alone, as on an idle machine: CPU time and waiting; else the time on the clock."""
        return self.wall_s if self.cpu_s is None else self.cpu_s + (self.idle_s or 0.0)

    @property
    def ok(self) -> bool:
        """Whether it exited with status 0."""
        return self.end is ProgramEnd.EXITED and self.status == 0


@dataclass(frozen=True, slots=True)
class Program:
    """A program in source form."""

    language: str
    source: str
    files: Mapping[str, bytes] = field(default_factory=dict)
    """Files in the program's working folder."""
    reads_once: bool = False
    """Whether its input is a pipe, which is empty once it is read, or else it is a file."""


@dataclass(frozen=True, slots=True)
class Job:
    """One process."""

    role: str
    """The role that handles the payload; `inside/roles.py` lists the roles."""
    payload: bytes
    limits: Limits
    stdin: bytes = b""
    native: bool = False
    """It starts other programs: compilers, other languages."""
    warm: Sequence[str] = ()
    """Packages that its program imports; the zygote imports them once for all jobs."""
    result_bytes: int = 0
    """Bytes of the job's results, where that is more than a program may write elsewhere."""


class SandboxError(Exception):
    """Trouble of the infrastructure, never the program's fault: no verdict follows from it."""


class MachineBusy(SandboxError):
    """A program got too little time on a core, which a second try would not change."""

    def __init__(self, message: str, execution: Execution | None = None) -> None:
        super().__init__(message)
        self.execution = execution
        """The run of the program until then."""


class Prepared(Protocol):
    """A program that is ready to run, any number of times."""

    compiled: Execution | None
    """None if nothing was compiled. Where it is not ok, `run` must not be called."""

    def run(self, stdin: bytes) -> Execution:
        """Run the program on an input. Raises SandboxError."""
        ...
