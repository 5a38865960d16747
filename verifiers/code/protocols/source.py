"""The program under test, and what is run before it in its namespace."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from truegold.verifiers.sandbox.inside.confine.preload import warm_modules


@dataclass(frozen=True, slots=True)
class Source:
    """A Python program with its prelude."""

    program: str
    """What the response gave."""
    prelude: str = ""
    """Imports, classes and helpers that the problem provides."""

    def fields(self) -> dict[str, Any]:
        """Return what a job's request says of it."""
        return {"program": self.program, "prelude": self.prelude}

    @property
    def warm(self) -> tuple[str, ...]:
        """The packages that it imports and that the zygote may import for all jobs."""
        return warm_modules(f"{self.prelude}\n{self.program}")
