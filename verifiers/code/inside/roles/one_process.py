"""Role `one_process`: the program and its tests in one namespace of one process. Weak.

    {"prelude": "", "program": "def add(a, b): ...", "kind": "unittest", "code": "...", "entry_point": "add",
     "stop_first": true, "seed": 17, "nonce": "6f1c..."}

For test code that cannot be apart from the solution (`isolation.py`). The lines are those of `report.py`, and at the
end, where every test passed, {"nonce": ...}: a program that ends the process before that, by `sys.exit` or worse, has
not passed.

What it does not stop: the program shares its process with the tests and can search it. It can override what they use
and answer comparisons. Replacing assertions and builtins is noticed (`untouched.py`), unless it is undone in time; the
nonce is kept in two halves where walking frames does not lead, so that no object holds it before the end.
"""

from __future__ import annotations

import builtins
import math
import os
import unittest
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from ..program import Missing, entry, load, told
from ..test_code.report import Alone, Report, Stop
from ..test_code.running import fresh_randomness, run_code
from ..test_code.statements import plan
from ..wire import from_json
from ..wire.lines import write


def run_in_one_process(payload: bytes) -> None:
    request = from_json(payload, len(payload))
    del payload
    halves = _halves(request.pop("nonce").encode())
    next(halves[0]), next(halves[1])
    untouched = Untouched()
    report = Report(Alone(), request["stop_first"])
    try:
        planned = plan(request["code"])
    except (SyntaxError, ValueError) as error:
        write({"bad_suite": told(error)[:2]})
        return
    try:
        namespace = load(request["prelude"], request["program"])
        fresh_randomness(request["seed"])
        candidate = _candidate(namespace, request["entry_point"])
    except BaseException as error:
        write({"not_loaded": told(error)[:2]})
        report.total = max(len(planned.units), 1)
        report.done()
        return
    run_code(planned, request["code"], namespace, candidate, report, request["kind"] == "unittest")
    if (changed := untouched.broken()) is not None:
        with suppress(Stop):
            report.total += 1
            report.failure("the run", None, f"the program replaced {changed}")
    report.done()
    if report.clean and 0 < report.total == report.passed:
        pairs = zip(*map(next, halves), strict=True)
        write({"nonce": bytes(one ^ other for one, other in pairs).decode()})


def _candidate(namespace: dict[str, Any], entry_point: str | None) -> Any:
    if entry_point is None:
        return None
    try:
        return namespace.setdefault("candidate", entry(namespace, entry_point))
    except Missing as error:
        raise NameError(str(error)) from None


def _halves(secret: bytes) -> tuple[Iterator[bytes], Iterator[bytes]]:
    """Two that give the secret only together."""
    pad = os.urandom(len(secret))
    return _kept(pad), _kept(bytes(one ^ other for one, other in zip(pad, secret, strict=True)))


def _kept(half: bytes) -> Iterator[bytes]:
    yield b""
    yield half


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
