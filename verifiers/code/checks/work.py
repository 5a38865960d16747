"""What evaluating checks may cost: every step is charged with the size of what it looks at and makes.

    work = Work()
    work.spend([1] * 1000)            a thousand items are looked at
    work.made([1] * 1000)             the same list, and it was made
    work.round()                      one round of a comprehension

`all(r.count(x) == 1 for x in r)` is nothing for a list of ten and hours for one of a million, and how long the list is
decides the solution. What is beyond the budget raises `Refused`: the tests then run in a process of their own, which
has limits.
"""

from __future__ import annotations

import array
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from truegold.verifiers.code.checks.operations import Refused
from truegold.verifiers.code.inside.wire import Array, Instance, Iterated

MAX_WORK = 10_000_000
"""About a second: a unit is 100 ns at most, mostly much less."""

MAX_CPU_S = 1.5
"""Stops what costs more than its size says, such as the digits of large integers. Apart from such values the sizes
decide, which are the same on every machine."""

STEP = 3
ROUND = 30
PER_NODE = 10
"""Units for an operation, a round of a loop, and an object of a class."""

_LOOKS_BETWEEN_CLOCKS = 64
_LARGE = 1000
_KEPT_FROM = 64
_SCALARS = frozenset({bool, int, float, complex, type(None), type(...), range})
_ITEMS = frozenset({list, tuple, set, frozenset, deque, array.array})
_TEXTS = frozenset({str, bytes, bytearray})
_HASHED = frozenset({set, frozenset, dict, range})
_FOLLOWED = frozenset({Instance, list, tuple})


class Work:
    """The budget of all checks of one program."""

    __slots__ = ("_known", "_left", "_looks", "_until")

    def __init__(self, most: int = MAX_WORK) -> None:
        self._left = most
        self._looks = 0
        self._until: float | None = None
        self._known: dict[int, tuple[Any, int]] = {}

    def round(self) -> None:
        self._take(ROUND)

    def spend(self, value: Any) -> None:
        """For an operation that looks at all of a value, or makes it."""
        kind = type(value)
        if kind is int:
            self._take(STEP + (value.bit_length() >> 10))
        elif kind in _SCALARS:
            self._take(STEP)
        elif kind in _TEXTS:
            self._take(STEP + (len(value) >> 4))
        else:
            self._take(STEP + self._weight(value))

    def step(self) -> None:
        """For an operation that takes as long for any value."""
        self._take(STEP)

    def made(self, value: Any) -> Any:
        """value, paid for as something new: its parts are not."""
        kind = type(value)
        if kind in _TEXTS:
            self._take(len(value) >> 4)
        elif kind in _ITEMS or kind is dict:
            self._take(len(value))
        return value

    def _take(self, units: int) -> None:
        self._left -= units
        self._looks += 1
        if self._left < 0:
            raise Refused("a long evaluation")
        if units >= _LARGE or self._looks % _LOOKS_BETWEEN_CLOCKS == 0:
            now = time.thread_time()
            if self._until is None:
                self._until = now + MAX_CPU_S
            elif now > self._until:
                raise Refused("a long evaluation")

    def _weight(self, value: Any) -> int:
        known = self._known.get(id(value))
        if known is not None:
            return known[1]
        total = 0
        pending = [value]
        while pending:
            each = pending.pop()
            kind = type(each)
            if kind in _ITEMS:
                total += len(each) + _add_parts(each, pending)
            elif kind is dict:
                total += 2 * len(each) + _add_parts(each, pending) + _add_parts(each.values(), pending)
            elif kind in _TEXTS:
                total += 1 + (len(each) >> 4)
            elif kind is Iterated or kind is Array:
                pending.append(each.elements)
            elif kind is Instance:
                # Once more for each time that it stands somewhere: comparing follows it to its end each time.
                total += _nodes(each, self._left - total)
            else:
                total += 1
            if total > self._left:
                raise Refused("a large value")
        if total >= _KEPT_FROM:
            self._known[id(value)] = (value, total)  # which keeps the value alive, and so its id its own
        return total


Charge = Callable[[Work, Sequence[Any]], None]
"""What an operation on these values costs."""


def whole(work: Work, values: Sequence[Any]) -> None:
    """For operations that may look at all of each value."""
    for value in values:
        work.spend(value)


def quick(work: Work, values: Sequence[Any]) -> None:
    """For `len`, `isinstance` and such."""
    work.step()


def indexed(work: Work, values: Sequence[Any]) -> None:
    """For `container[key]`."""
    key = values[1]
    work.spend(key) if type(key) is not slice else work.step()


def searched(work: Work, values: Sequence[Any]) -> None:
    """For `item in container`."""
    item, container = values
    work.spend(item)
    work.step() if type(container) in _HASHED else work.spend(container)


def _add_parts(parts: Iterable[Any], pending: list[Any]) -> int:
    """Those that have a size are left for later; of the others there are as many as their container has."""
    if not set(map(type, parts)) <= _SCALARS:
        before = len(pending)
        pending += [part for part in parts if type(part) not in _SCALARS]
        return len(pending) - before
    return 0


def _nodes(start: Instance, most: int) -> int:
    """Units for all that an object leads to, each object once."""
    met = {id(start)}
    pending: list[Any] = [start]
    total = 0
    while pending and total <= most:
        each = pending.pop()
        parts = each.fields.values() if type(each) is Instance else each
        total += PER_NODE + len(parts)
        for part in parts:
            if type(part) in _FOLLOWED and id(part) not in met:
                met.add(id(part))
                pending.append(part)
    return total
