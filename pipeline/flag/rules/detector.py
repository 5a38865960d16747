"""Detectors: each looks at one row and reports what is suspicious. It never changes or drops anything.

For the row `{"prompt": "Prove that 12+8 is even.", "gold": "20", ...}` the built-in `proof` detector returns

    [Finding(reason="proof", confidence=0.9, evidence={"asks": "Prove that"})]

A detector of your own is any object with `name`, `version` and `detect(row)`; the decorator makes one of a function:

    from truegold.pipeline.rules import Finding, detector

    @detector("shouting", version="1")
    def shouting(row):
        return [Finding("shouting", 0.8, {})] if row["prompt"].isupper() else []

The configuration names it by where it lies: `my_pkg.checks:shouting` or `checks.py:shouting`.

The built-in rules keep their lists of words in `patterns.toml`, and build patterns of them with `any_of`.
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
"""The lists of words and patterns of the built-in rules, by name."""


@dataclass(frozen=True)
class Finding:
    """One suspicion about a row. Raises ValueError if the confidence is not a probability."""

    reason: str
    """A code that reports count by."""
    confidence: float = 0.5
    """The author's estimate, in [0, 1], of how often such a finding is right; built-in rules have it measured
    (`truegold.pipeline.tables.ledger`)."""
    evidence: Mapping[str, Any] = field(default_factory=dict)
    """Facts that a reviewer needs to see; JSON-able."""
    suggestion: str | None = None
    """A better gold, where the rule knows one."""
    blocks: bool = True
    """Whether the row waits for a reviewer; a finding that does not block is only reported."""

    def __post_init__(self) -> None:
        if not 0.0 <= self.confidence <= 1.0:
            raise ValueError(f"confidence must lie in [0, 1], got {self.confidence!r}")


class Detector(Protocol):
    """Looks at one row."""

    @property
    def name(self) -> str:
        """The name that configurations, flags and reports know the detector by."""

    @property
    def version(self) -> str:
        """A text that changes whenever a finding could change, so that caches notice."""

    def detect(self, row: Row) -> list[Finding]:
        """Return what is suspicious about the row; the row itself must not change."""


@dataclass(frozen=True)
class FunctionDetector:
    """A detector made of a plain function."""

    name: str
    version: str
    function: Callable[[Row], list[Finding]]
    languages: tuple[str, ...] | None = None
    """The languages of its words, or None if it needs none."""

    def detect(self, row: Row) -> list[Finding]:
        """Return the findings of the function; none for a prompt in a language that it cannot read."""
        findings = self.function(row)
        return findings if self.languages is None or not findings or may_be_in(row["prompt"], self.languages) else []


def detector(
    name: str, *, version: str, languages: tuple[str, ...] | None = None
) -> Callable[[Callable[[Row], list[Finding]]], FunctionDetector]:
    """Make a detector of a function from a row to its findings.

    `languages` are ISO 639-1 codes, such as ("en", "zh"), for a rule that goes by words: of prompts that are in another
    language it says nothing.
    """

    def wrap(function: Callable[[Row], list[Finding]]) -> FunctionDetector:
        return FunctionDetector(name, version, function, languages)

    return wrap


def any_of(name: str) -> str:
    """Return a group that matches every entry of a list: `any_of("vague_counts")` is `(?:some|several|...)`."""
    group = "|".join(PATTERNS[name])
    return f"(?:{re.sub('@([a-z_]+)@', lambda inner: any_of(inner[1]), group)})"
