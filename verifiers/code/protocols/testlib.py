"""Finds testlib.h, the header that most checkers and interactors in C++ use, and reads its exit codes.

    with_header("#include <testlib.h>\\nint main(...", {})    the source with `#include "testlib.h"`, and this file
    read_exit(0, "ok 3 numbers")                             Opinion(1.0)
    read_exit(1, "wrong answer 2nd numbers differ")          Opinion(0.0, "wrong answer 2nd numbers differ")
    read_exit(7, "points 40 two of five", full_points=100)   Opinion(0.4, "points 40 two of five")
    read_exit(3, "FAIL the jury has no answer")              raises JuryFailed

Exit codes of testlib: 0 right, 1 wrong, 2 and 8 the output has the wrong format, 4 the output has extra text, 3 a fault
of the jury, 7 points. A checker that gives a percentage (`_pc`) has an exit code that depends on it, so that the
percentage is read from the message.

The header is not part of truegold. It is taken from the files of the suite, from the path in `TRUEGOLD_TESTLIB`, or
from the package `rbx-cp` (extra `contest`).
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from truegold.verifiers.code.outcomes import Opinion, last_line

HEADER = "testlib.h"
PATH_VARIABLE = "TRUEGOLD_TESTLIB"
"""The environment variable with the path of testlib.h."""
_PACKAGE, _FILE = "rbx-cp", "rbx/resources/predownloaded/testlib.h"

_OK, _FAIL, _POINTS = 0, 3, 7
_REFUSALS = {1, 2, 4, 8}
_INCLUDE = re.compile(r"""^[ \t]*#[ \t]*include[ \t]*[<"](?:[^<>"\n]*/)?testlib\.h[>"]""", re.MULTILINE)
"""`#include "testlib.h"`, `#include <testlib.h>` or `# include "../common/testlib.h"`."""

_STATED_POINTS = re.compile(r"\bpoints\s+(\d+(?:\.\d+)?)")
"""The 40 of "points 40 two of five"."""

_STATED_SHARE = re.compile(r"\bpartially correct \((\d{1,3})\)")
"""The 50 of "partially correct (50) half"."""


class JuryFailed(Exception):
    """Raised if a checker reports that the jury's answer, the input or the checker itself is at fault."""


class HeaderMissing(Exception):
    """Raised if testlib.h is not installed; the text says how to get it."""


@cache
def header() -> bytes:
    """Return the text of testlib.h, from `TRUEGOLD_TESTLIB` or else from the package rbx-cp. Raises HeaderMissing."""
    remedy = f"pip install 'truegold[contest]', name the file in {PATH_VARIABLE}, or put it in the suite's files"
    if path := os.environ.get(PATH_VARIABLE):
        try:
            return Path(path).read_bytes()
        except OSError as error:
            why = f"{PATH_VARIABLE} is {path!r}, which cannot be read ({error.strerror})"
            raise HeaderMissing(f"{why}; {remedy}") from None
    try:
        return Path(str(distribution(_PACKAGE).locate_file(_FILE))).read_bytes()
    except (PackageNotFoundError, OSError):
        raise HeaderMissing(f"{HEADER} is not installed: {remedy}") from None


def uses_testlib(source: str) -> bool:
    """Return whether a program includes testlib.h, by any path."""
    return _INCLUDE.search(source) is not None


def with_header(source: str, extra: Mapping[str, bytes]) -> tuple[str, dict[str, bytes]]:
    """Return the source and the files for compiling it: the extra files, and testlib.h if the source includes it.

    A testlib.h among the extra files is used first. Raises HeaderMissing.
    """
    if not uses_testlib(source):
        return source, dict(extra)
    files = dict(extra) if HEADER in extra else {HEADER: header(), **extra}
    return _INCLUDE.sub(f'#include "{HEADER}"', source), files


def read_exit(status: int, message: str, full_points: float = 1.0) -> Opinion | None:
    """Return the judgement for an exit status and message of testlib, or None for an unknown status.

    full_points: the points of a right answer. Raises JuryFailed for a fault of the jury.
    """
    if (hundredths := _STATED_SHARE.search(message)) is not None and status == int(hundredths[1]):
        return _partial(int(hundredths[1]) / 100, message)
    if status == _OK:
        return Opinion(1.0)
    if status == _FAIL:
        raise JuryFailed(message)
    if status in _REFUSALS:
        return Opinion(0.0, last_line(message))
    points = _STATED_POINTS.search(message) if status == _POINTS else None
    return None if points is None else _partial(float(points[1]) / full_points, message)


def _partial(share: float, message: str) -> Opinion:
    share = min(max(share, 0.0), 1.0)
    return Opinion(share, last_line(message) if share < 1.0 else None)
