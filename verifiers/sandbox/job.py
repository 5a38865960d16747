"""What is asked of the sandbox: a role to play in a process of its own, under limits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from truegold.verifiers.sandbox.limits import BOX_MB, IDLE_S, MB, Limits


@dataclass(frozen=True, slots=True)
class Job:
    """One process."""

    role: str
    """What it does with its payload; `inside/roles/` lists the roles."""
    payload: bytes
    limits: Limits
    stdin: bytes = b""
    native: bool = False
    """It starts other programs: compilers, other languages."""
    warm: Sequence[str] = ()
    """Packages that its program imports; the zygote imports them once for all jobs."""
    result_bytes: int = 0
    """What its results may take up, where that is more than a program may write elsewhere."""

    def request(self) -> dict[str, Any]:
        """Return what the zygote is told about the job; its payload and streams go as files."""
        limits = {
            "cpu_s": self.limits.cpu_s,
            "idle_s": IDLE_S,
            "memory_bytes": int(self.limits.memory_mb * MB),
            "output_bytes": max(int(self.limits.output_mb * MB), _round_up(self.result_bytes)),
            "files_bytes": BOX_MB * MB,
            "threads": self.limits.threads,
        }
        return {"role": self.role, "limits": limits, "native": self.native, "payload_bytes": len(self.payload)}


def _round_up(size: int) -> int:
    """Round to a power of two: a zygote prepares, and keeps, the steps for each set of limits that it has met."""
    return 1 << size.bit_length() if size > BOX_MB * MB else 0
