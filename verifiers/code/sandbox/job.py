"""What is asked of the sandbox: a role to play in a process of its own, under limits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from truegold.verifiers.code.limits import Limits

IDLE_S = 5.0
"""Seconds that a program may spend waiting, for input that never comes or asleep. Stops `sleep(10**6)`."""

BOX_MB = 64
"""What a program may write to its working folder."""

MB = 2**20


@dataclass(frozen=True, slots=True)
class Job:
    """One process. role: what it does with its payload (`inside/roles/`). warm: packages that its program imports."""

    role: str
    payload: bytes
    limits: Limits
    stdin: bytes = b""
    native: bool = False
    """It starts other programs: compilers, other languages."""
    warm: Sequence[str] = ()
    result_bytes: int = 0
    """What its results may take up, where that is more than a program may write elsewhere."""

    def request(self) -> dict[str, Any]:
        limits = {
            "cpu_s": self.limits.cpu_s,
            "idle_s": IDLE_S,
            "memory_bytes": int(self.limits.memory_mb * MB),
            "output_bytes": max(int(self.limits.output_mb * MB), _rounded(self.result_bytes)),
            "files_bytes": BOX_MB * MB,
            "threads": self.limits.threads,
        }
        return {"role": self.role, "limits": limits, "native": self.native, "payload_bytes": len(self.payload)}


def _rounded(size: int) -> int:
    """To a power of two: a zygote prepares, and keeps, the steps for each set of limits that it has met."""
    return 1 << size.bit_length() if size > BOX_MB * MB else 0
