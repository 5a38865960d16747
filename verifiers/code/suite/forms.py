"""Typed suites: the tests of one problem in one of five forms.

Suite(Stdio((StdioCase("1 2", "3"),)), "python", Limits())
Suite(Calls("add", (CallCase((1, 2), {}, 3),)), "python", Limits())
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from truegold.verifiers.code.drivers import Signature
from truegold.verifiers.code.drivers.signature import VOID
from truegold.verifiers.sandbox.limits import Limits

Codecs = Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class StdioCase:
    """What a program reads and ought to print."""

    input: str
    output: str
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class Stdio:
    """Tests of programs that read stdin and write stdout."""

    cases: tuple[StdioCase, ...]
    checker: str | Mapping[str, Any] = "tokens"
    """How outputs are compared, as `comparison.outputs.checker_of` takes it."""
    interactor: Mapping[str, Any] | None = None
    """The program that talks to the solution, where inputs are not read but asked for."""


class CallCase(NamedTuple):
    """A call and what it ought to return."""

    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    expected: Any
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class Calls:
    """Tests of a function: `entry_point(*args, **kwargs)` returns `expected`."""

    entry_point: str
    cases: tuple[CallCase, ...]
    checker: str | Mapping[str, Any] = "values"
    """How values are compared, as `comparison.values.call_checker_of` takes it."""
    prelude: str = ""
    """Python that is run before the program."""
    codecs: Codecs = field(default_factory=dict)
    """Classes of the problem whose objects travel, with the names of their attributes."""
    signature: Signature | None = None
    """What the suite states of the function's types."""
    in_place: int = -1
    """The argument whose change is the result; -1 where that is what the function returns."""
    plain_args: bool = field(default=False, compare=False)
    """Whether all arguments are known to be plain data (`inside/wire/plain.py`)."""
    plain_expected: bool = field(default=False, compare=False)
    """Whether all expected values are known to be plain data or tuples of it."""

    @property
    def returned_argument(self) -> int:
        """The argument whose change is the result, also where the signature says that nothing is returned."""
        returns_nothing = self.signature is not None and self.signature.returns == VOID
        return 0 if self.in_place < 0 and returns_nothing else self.in_place


@dataclass(frozen=True, slots=True)
class _CodeTests:
    code: str
    entry_point: str | None = None
    """The function or class under test, where the row names it."""
    prelude: str = ""
    """Python that is run before the program."""
    stub: str = ""
    """What a completion-style problem gives of the program."""
    codecs: Codecs = field(default_factory=dict)
    """Classes of the problem whose objects travel, with the names of their attributes."""


@dataclass(frozen=True, slots=True)
class Asserts(_CodeTests):
    """Python code that raises where the solution is wrong."""


@dataclass(frozen=True, slots=True)
class UnitTest(_CodeTests):
    """Python code with `unittest.TestCase` classes."""


@dataclass(frozen=True, slots=True)
class Inserted:
    """A test program in any language, into which the solution is put."""

    code: str
    marker: str = "#<INSERT>"
    """What the solution replaces in the code."""


@dataclass(frozen=True, slots=True)
class Suite:
    """The tests of one problem."""

    tests: Stdio | Calls | Asserts | UnitTest | Inserted
    language: str = "python"
    limits: Limits = field(default_factory=Limits)
