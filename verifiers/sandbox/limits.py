"""Defines the limits of a program under test. A row may set some of them; all programs share the others.

    Limits(cpu_s=2)              two seconds of CPU time, and the default for all other limits
    Limits(cpu_s=2, own_s=2)     two seconds for CPU time and waiting together
    Limits(memory_mb=0)          ValueError: memory_mb must be a whole number from 4 to 1048576, got 0

A row sets limits by `"limits": {"cpu_s": 2, "memory_mb": 512}` in its tests. The kernel enforces some limits
(`inside/confine/confinement.py`). A supervisor ends programs that exceed the rest (`inside/confine/supervise.py`).
"""

from __future__ import annotations

from dataclasses import dataclass

IDLE_S = 5.0
"""Maximum time that a program waits, asleep or for input, in seconds, unless `own_s` is set. Stops `sleep(10**6)`."""

WALL_FACTOR = 20.0
"""Maximum wall time, as a multiple of the time that a program may take on an idle machine."""

BOX_MB = 64
"""Megabytes that a program may write to its working folder."""

COMPILE_MEMORY_MB = 2048
"""Memory that a compiler may use, even if the compiled program may use less."""

COMPILE_OUTPUT_MB = 64.0
"""Megabytes that a compiler may write."""

MB = 2**20

CPU_S_BOUNDS = (0.01, 3_600.0)
"""The range of a time limit. Stops a typing error such as 10000000 from holding a worker for months."""

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
    """MiB that the program may write to stdout, and as much again to stderr."""
    compile_cpu_s: float = 60.0
    """CPU seconds for compiling."""
    threads: int = 128
    """Threads and processes at one time."""
    own_s: float | None = None
    """Seconds of CPU time and waiting together (`Execution.own_s`). None: `cpu_s`, and `IDLE_S` more for waiting."""
    busy_s: float | None = None
    """Maximum time that the program queues for a core, in seconds. A run that queues longer is undecided. None:
    `WALL_FACTOR` bounds the wall time."""

    @property
    def longest_own_s(self) -> float:
        """Maximum CPU time and waiting together, in seconds."""
        return self.cpu_s + IDLE_S if self.own_s is None else self.own_s

    @property
    def longest_wall_s(self) -> float:
        """Maximum wall time, in seconds."""
        return WALL_FACTOR * self.longest_own_s if self.busy_s is None else self.longest_own_s + self.busy_s

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
