"""What names in test code stand for, and the calls that it makes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Scope = dict[str, Any]
"""A name stands for a `Constant`, `Returned`, `Target`, `MathName`, or for what expressions cannot use."""

UNUSABLE = object()
"""What a name stands for that is bound to something not understood."""


@dataclass(frozen=True, slots=True)
class Constant:
    """A value that is known."""

    value: Any


@dataclass(frozen=True, slots=True)
class Returned:
    """What a call returned."""

    index: int
    calls: int
    """The number of calls that had been made by then."""


@dataclass(frozen=True, slots=True)
class Target:
    """A function of the solution."""

    name: str


@dataclass(frozen=True, slots=True)
class MathName:
    """A name of the module `math`; with "" the module itself."""

    name: str


@dataclass(frozen=True, slots=True)
class Call:
    """One call of the solution."""

    function: str
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
