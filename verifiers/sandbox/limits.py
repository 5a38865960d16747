"""Sets what a program under test may use: the limits that a row may set, and those that all programs share.

    Limits(cpu_s=2)              two seconds of CPU time, the rest as usual
    Limits(cpu_s=2, own_s=2)     asleep or at work, two seconds
    Limits(memory_mb=0)          ValueError: memory_mb must be a whole number from 4 to 1048576, got 0

A row sets its own by `"limits": {"cpu_s": 2, "memory_mb": 512}` in its tests. `inside/confine/confinement.py` hands the
kernel those that it can enforce, and `inside/confine/supervise.py` ends what goes beyond the others.
"""

from __future__ import annotations

from dataclasses import dataclass

IDLE_S = 5.0
"""Seconds that a program may spend waiting, for input that never comes or asleep. Stops `sleep(10**6)`."""

WALL_FACTOR = 20.0
"""The clock may run this many times what a program may take by itself, so that the machine may be busy."""

BOX_MB = 64
"""Megabytes that a program may write to its working folder."""

COMPILE_MEMORY_MB = 2048
COMPILE_OUTPUT_MB = 64.0
"""A compiler may use so much, even where the program that it makes may not."""

MB = 2**20

CPU_S_BOUNDS = (0.01, 3_600.0)
"""Stops a typing error such as 10000000 from holding a worker for months."""

_BOUNDS: dict[str, tuple[float, float]] = {
    **dict.fromkeys(("cpu_s", "compile_cpu_s", "own_s", "busy_s"), CPU_S_BOUNDS),
    "memory_mb": (4, 2**20),
    "output_mb": (1e-6, 1_024.0),  # The output is held in memory while it is compared.
    "threads": (1, 4_096),
}
_WHOLE = ("memory_mb", "threads")


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one run. Raises ValueError if one is out of its bounds."""

    cpu_s: float = 10.0
    """CPU seconds. They decide, not the time on the clock, so that a busy machine gives the same verdicts."""
    memory_mb: int = 1024
    """Resident memory of all its processes."""
    output_mb: float = 16.0
    """Megabytes that the program may write to stdout, and the same to stderr."""
    compile_cpu_s: float = 60.0
    """CPU seconds for compiling, in languages that are compiled."""
    threads: int = 128
    """Threads and processes at one time."""
    own_s: float | None = None
    """Seconds that it may take by itself (`Execution.own_s`); without it `cpu_s`, and `IDLE_S` of waiting."""
    busy_s: float | None = None
    """Seconds besides in line for a core, then there is no verdict; without it `WALL_FACTOR` bounds the clock."""

    @property
    def longest_own_s(self) -> float:
        """Seconds that it may take by itself."""
        return self.cpu_s + IDLE_S if self.own_s is None else self.own_s

    @property
    def longest_wall_s(self) -> float:
        """Seconds on the clock that it may take."""
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
