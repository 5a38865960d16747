"""How many processes are worth starting."""

from __future__ import annotations

import os


def usable_cores() -> int:
    """Return how many cores this process may use, which a container may limit below those of the machine."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
