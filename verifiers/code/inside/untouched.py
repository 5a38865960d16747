"""Whether what tests are made of is still what it was: `TestCase.assertEqual`, `all`, `isinstance` ...

    untouched = Untouched()
    unittest.TestCase.assertEqual = lambda *args: None
    untouched.broken()                                   "TestCase.assertEqual"

For tests in the solution's own process, where a program can replace any of it. One that undoes this at the right
moment, or replaces something else, is not found.
"""

from __future__ import annotations

import builtins
import math
import unittest
from typing import Any

_PLACES: dict[str, Any] = {
    "TestCase": unittest.TestCase,
    "TestResult": unittest.TestResult,
    "AssertRaisesContext": unittest.case._AssertRaisesContext,
    "math": math,
}
_FREE = frozenset({"print", "input", "open", "exit", "quit", "help", "_", "copyright", "credits", "license"})
"""What programs and tests replace for honest ends."""


class Untouched:
    def __init__(self) -> None:
        self._before = _everything()

    def broken(self) -> str | None:
        """The first thing that is another one now."""
        now = _everything()
        return next((name for name, it in self._before.items() if now.get(name) != it), None)


def _everything() -> dict[str, tuple[int, int]]:
    found = {
        f"{place}.{name}": _identity(value)
        for place, owner in _PLACES.items()
        for name, value in vars(owner).items()
        if callable(value)
    }
    found |= {name: _identity(value) for name, value in vars(builtins).items() if name not in _FREE and callable(value)}
    return found


def _identity(value: Any) -> tuple[int, int]:
    return id(value), id(getattr(value, "__code__", None))
