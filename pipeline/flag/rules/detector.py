"""What a detector is: it looks at one row and says what is suspicious about it. It never changes or drops anything.

The row `{"prompt": "Prove that 12+8 is even.", "gold": "20", ...}` makes the built-in `proof` detector answer

    [Finding(reason="proof", confidence=0.9, evidence={"asks": "Prove that"})]

A detector of your own is any object with `name`, `version` and `detect(row)`; the decorator makes one of a function:

    @detector("shouting", version="1")
    def shouting(row):
        return [Finding("shouting", 0.8, {})] if row["prompt"].isupper() else []

and is named in the configuration by where it lies: `my_pkg.checks:shouting` or `checks.py:shouting`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from truegold.pipeline.rows import Row


@dataclass(frozen=True)
class Finding:
    """One suspicion.

    reason: a code that reports count by. confidence: in [0, 1], the author's estimate of how often this is right.
    evidence: JSON-able, what a reviewer needs to see. suggestion: a better gold, where the rule knows one.
    blocks: whether the row waits for a reviewer; False only reports.
    """

    reason: str
    confidence: float
    evidence: Mapping[str, Any] = field(default_factory=dict)
    suggestion: str | None = None
    blocks: bool = True

    def __post_init__(self) -> None:
        if not 0.0 <= self.confidence <= 1.0:
            raise ValueError(f"confidence must lie in [0, 1], got {self.confidence!r}")


class Detector(Protocol):
    """Looks at one row. `version` changes whenever a finding could change, so that caches notice."""

    @property
    def name(self) -> str: ...

    @property
    def version(self) -> str: ...

    def detect(self, row: Row) -> list[Finding]: ...


@dataclass(frozen=True)
class FunctionDetector:
    """A detector made of a plain function."""

    name: str
    version: str
    function: Callable[[Row], list[Finding]]

    def detect(self, row: Row) -> list[Finding]:
        return self.function(row)


def detector(name: str, *, version: str) -> Callable[[Callable[[Row], list[Finding]]], FunctionDetector]:
    """Make a detector of a function from a row to its findings."""

    def wrap(function: Callable[[Row], list[Finding]]) -> FunctionDetector:
        return FunctionDetector(name, version, function)

    return wrap
