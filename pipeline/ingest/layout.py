"""What a preset makes of a source's shape: which column is which, who judges, and what else to make of a record.

    Layout(Columns(prompt=ColumnSpec(column="question"), gold=ColumnSpec(column="answer", extract="after ####")))

is GSM8K's. Layouts of programs have a `derive`, since their tests and solutions take several columns together.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from truegold.pipeline.config.sources import Columns

Values = Mapping[str, Any]
Samples = Sequence[Values]


@dataclass(frozen=True, slots=True)
class Derived:
    """What a preset makes out of several columns of a record."""

    verifier_args: Mapping[str, Any]
    solution: str | None = None
    prompt: str | None = None


@dataclass(frozen=True, slots=True)
class Layout:
    """Which column is which, who judges, and what else to make of a record.

    uses: columns that `derive` reads, which therefore do not go into `meta`.
    """

    columns: Columns
    domain: str = "math"
    verifier: str = "math"
    derive: Callable[[Values], Derived] | None = None
    uses: frozenset[str] = frozenset()
