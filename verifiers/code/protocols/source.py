"""The program under test, and what is run before it in its namespace."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from truegold.verifiers.code.inside.confine.preload import warm_modules


@dataclass(frozen=True, slots=True)
class Source:
    """program: what the response gave. prelude: imports, classes and helpers that the problem provides."""

    program: str
    prelude: str = ""

    def fields(self) -> dict[str, Any]:
        return {"program": self.program, "prelude": self.prelude}

    @property
    def warm(self) -> tuple[str, ...]:
        return warm_modules(f"{self.prelude}\n{self.program}".encode("utf-8", "replace"))
