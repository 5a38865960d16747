"""Tables of rows as one test each: `@rows("gold, answer", PAIRS)` where `parametrize` would make thousands of tests.

A test costs milliseconds in the worker and the controller of pytest, and a row of a table far less. Every row that
fails is reported at once as a subtest with its values, and those after it are tried too.
"""

from __future__ import annotations

import hashlib
import inspect
import os
from collections.abc import Callable, Iterable
from typing import Any

import pytest

SHARE = 10
"""One row in so many of a long table runs, unless TRUEGOLD_ALL is set (`make test-all`)."""


def is_in_the_tenth(name: str) -> bool:
    """Return whether a row of a long table runs in the short run too, which a hash of its name decides."""
    return hashlib.sha256(name.encode()).digest()[0] % SHARE == 0


def is_full_run() -> bool:
    """Return whether everything is to be tried: `make test-all`."""
    return bool(os.environ.get("TRUEGOLD_ALL"))


def crossed(first: Iterable[Any], second: Iterable[Any]) -> list[tuple[Any, Any]]:
    """Return all pairs; in `make test` those that hold each value of the longer once, and each of the shorter."""
    first, second = list(first), list(second)
    shorter = min(len(first), len(second))
    pairs = [(i, j) for i in range(len(first)) for j in range(len(second))]
    return [(first[i], second[j]) for i, j in pairs if is_full_run() or (i - j) % shorter == 0]


def rows(names: str, values: Iterable[Any], *, long: bool = False) -> Callable[[Callable[..., None]], Any]:
    """Make one test of a check that takes a row of the table as these arguments, and fixtures as the others.

    Of a table that is `long`, `make test` tries a tenth of the rows, the same ones every time.
    """
    columns = [name.strip() for name in names.split(",")]
    table = [dict(zip(columns, row if len(columns) > 1 else (row,), strict=True)) for row in values]
    if long and not is_full_run():
        table = [row for row in table if is_in_the_tenth(repr(row))]
    assert table, "a table without rows tests nothing"

    def decorate(check: Callable[..., None]) -> Any:
        def test(subtests: pytest.Subtests, **fixtures: Any) -> None:
            __tracebackhide__ = True
            for row in table:
                try:
                    check(**row, **fixtures)
                except (Exception, pytest.fail.Exception):
                    with subtests.test(**row):
                        raise

        parameters = inspect.signature(check).parameters.values()
        fixtures = [parameter for parameter in parameters if parameter.name not in columns]
        subtests = inspect.Parameter("subtests", inspect.Parameter.POSITIONAL_OR_KEYWORD)
        for name in ("__name__", "__qualname__", "__module__", "__doc__"):
            setattr(test, name, getattr(check, name))
        test.__signature__ = inspect.Signature([subtests, *fixtures])  # type: ignore[attr-defined]
        test.pytestmark = getattr(check, "pytestmark", [])  # type: ignore[attr-defined]
        return test

    return decorate
