"""Defines detectors. A detector examines one row and returns findings, without changing or dropping the row.

For the row `{"prompt": "Prove that 12+8 is even.", "gold": "20", ...}` the built-in detector `proof` returns

    [Finding(reason="proof", confidence=0.9, evidence={"asks": "Prove that"})]

Your own detector is any object with `name`, `version` and `detect(row)`; the decorator makes one from a function:

    from truegold.pipeline.rules import Finding, detector

    @detector("shouting", version="1")
    def shouting(row):
        return [Finding("shouting", 0.8, {})] if row["prompt"].isupper() else []

The configuration names your detector by its import string: `my_pkg.checks:shouting` or `checks.py:shouting`.

The built-in rules have their lists of words in `patterns.toml`, and build patterns from them with `any_of`.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any, Protocol

from truegold.pipeline.tables.rows import Row
from truegold.pipeline.text.prose import may_be_in

PATTERNS: Mapping[str, Any] = tomllib.loads(files(__package__).joinpath("patterns.toml").read_text("utf-8"))
"""The word lists and patterns of the built-in rules, by name."""


@dataclass(frozen=True)
class Finding:
    """A finding about a row. Raises ValueError if the confidence is not in [0, 1]."""

    reason: str
    """The code of the reason. Reports count findings by it."""
    confidence: float = 0.5
    """The author's estimate of the share of such findings that are right. For built-in rules, the measured precision
    replaces it (`truegold.pipeline.tables.measured_flags`)."""
    evidence: Mapping[str, Any] = field(default_factory=dict)
    """Facts for a reviewer, as JSON values."""
    suggestion: str | None = None
    """A better gold, if the rule knows one."""
    blocks: bool = True
    """True if the row waits for a reviewer. If false, the finding is only reported."""

    def __post_init__(self) -> None:
        if not 0.0 <= self.confidence <= 1.0:
            raise ValueError(f"confidence must lie in [0, 1], got {self.confidence!r}")


class Detector(Protocol):
    """An object that examines rows one at a time."""

    @property
    def name(self) -> str:
        """The detector's name in configurations, flags and reports."""

    @property
    def version(self) -> str:
        """The version. It must change whenever a finding could change, because cache keys contain it."""

    def detect(self, row: Row) -> list[Finding]:
        """Return the findings about the row, without changing it."""


@dataclass(frozen=True)
class FunctionDetector:
    """A detector that calls a plain function."""

    name: str
    version: str
    function: Callable[[Row], list[Finding]]
    languages: tuple[str, ...] | None = None
    """The languages of the function's word lists, or None if it has none."""

    def detect(self, row: Row) -> list[Finding]:
        """Return the findings of the function, or none if the prompt is in another language."""
        findings = self.function(row)
        return findings if self.languages is None or not findings or may_be_in(row["prompt"], self.languages) else []


def detector(
    name: str, *, version: str, languages: tuple[str, ...] | None = None
) -> Callable[[Callable[[Row], list[Finding]]], FunctionDetector]:
    """Make a detector from a function of a row that returns findings.

    `languages` are ISO 639-1 codes, such as ("en", "zh"), for a rule with word lists. Prompts in other languages then
    have no findings.
    """

    def wrap(function: Callable[[Row], list[Finding]]) -> FunctionDetector:
        return FunctionDetector(name, version, function, languages)

    return wrap


def any_of(name: str) -> str:
    """Return a pattern group of all entries of a list: `any_of("vague_counts")` is `(?:some|several|...)`."""
    group = "|".join(PATTERNS[name])
    return f"(?:{re.sub('@([a-z_]+)@', lambda inner: any_of(inner[1]), group)})"
