"""What a preset makes of a source's shape: which column is which, which verifier judges, and what else it derives.

    Layout(Columns(prompt=ColumnSpec(column="question"), gold=ColumnSpec(column="answer", extract="after ####")))

is that of GSM8K. Layouts of programs have a `derive`, since tests and solutions take several columns together.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from truegold.pipeline.config.sources import Columns

Values = Mapping[str, Any]
"""The values of one record by column."""
Samples = Sequence[Values]
"""The values of the records that are looked at to tell a source's shape."""


@dataclass(frozen=True, slots=True)
class Derived:
    """What a preset makes out of several columns of a record."""

    verifier_args: Mapping[str, Any]
    solution: str | None = None
    """The worked solution, where the layout names no column for it."""
    prompt: str | None = None
    """The prompt, in place of what the layout's column holds."""


@dataclass(frozen=True, slots=True)
class RowParts:
    """What a record says of its row beside the prompt."""

    id: str | None
    """The row's id, where an exported file carries it; None of any other file, and where it was edited since, so that
    it is another row now."""
    gold: str | None
    domain: str
    verifier: str
    verifier_args: Mapping[str, Any]
    solution: str | None
    split: str | None
    """train or heldout; None where the record says something else."""
    meta: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Layout:
    """How the records of one source are read."""

    columns: Columns
    """Which column is which."""
    domain: str = "math"
    """math, code, choice, ..."""
    verifier: str = "math"
    """The verifier of its rows."""
    derive: Callable[[Values], Derived] | None = None
    """The function that makes more of a record than single columns give; it raises `Unusable` where it cannot."""
    uses: frozenset[str] = frozenset()
    """The columns that `derive` reads, which therefore do not go into `meta`."""
    restore: Callable[[Values], RowParts] | None = None
    """What takes a whole row out of a file that truegold has exported (`carried`); nothing else is read then, but the
    prompt."""
