"""What evaluating checks may cost: every step is charged with the size of what it looks at and makes.

    work = Work()
    work.spend([1] * 1000)            a thousand items are looked at
    work.spend_new([1] * 1000)        the same list was made
    work.spend_round()                one round of a comprehension

`all(r.count(x) == 1 for x in r)` takes no time for a list of ten and hours for one of a million, and the solution
decides how long the list is. What is beyond the budget raises `Refused`: the tests then run in a sandboxed process,
which has limits.
"""

from __future__ import annotations

import array
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from truegold.verifiers.code.checks.operations import Refused
from truegold.verifiers.sandbox.inside.wire import Array, Instance, Iterated

MAX_WORK = 10_000_000
"""Units that take about a second: one is 100 ns at most, mostly much less."""

MAX_CPU_S = 1.5
"""Stops what costs more than its size says, such as the digits of large integers. Apart from such values the sizes
decide, which are the same on every machine."""

STEP = 3
"""Units for an operation."""

ROUND = 30
"""Units for a round of a loop."""

PER_NODE = 10
"""Units for an object of a class."""

_CHARGES_BETWEEN_CLOCKS = 64
"""The clock is looked at after so many charges, and at each large one."""

_LARGE_CHARGE = 1000
"""A charge of this many units is large."""

_KEPT_FROM = 64
"""The weight of a value is kept from this many units on."""

_SCALARS = frozenset({bool, int, float, complex, type(None), type(...), range})
_COLLECTIONS = frozenset({list, tuple, set, frozenset, deque, array.array})
_TEXTS = frozenset({str, bytes, bytearray})
_HASHED = frozenset({set, frozenset, dict, range})
_FOLLOWED = frozenset({Instance, list, tuple})


class Work:
    """The budget of all checks of one program."""

    __slots__ = ("_charges", "_deadline", "_known", "_units_left")

    def __init__(self, max_units: int = MAX_WORK) -> None:
        self._units_left = max_units
        self._charges = 0
        self._deadline: float | None = None
        self._known: dict[int, tuple[Any, int]] = {}

    def spend_round(self) -> None:
        """Pay for one round of a loop."""
        self._take(ROUND)

    def spend(self, value: Any) -> None:
        """Pay for an operation that looks at all of a value."""
        value_type = type(value)
        if value_type is int:
            self._take(STEP + (value.bit_length() >> 10))
        elif value_type in _SCALARS:
            self._take(STEP)
        elif value_type in _TEXTS:
            self._take(STEP + (len(value) >> 4))
        else:
            self._take(STEP + self._weight(value))

    def spend_step(self) -> None:
        """Pay for an operation that takes as long for any value."""
        self._take(STEP)

    def spend_new(self, value: Any) -> None:
        """Pay for a value that was made; its parts existed before."""
        value_type = type(value)
        if value_type in _TEXTS:
            self._take(len(value) >> 4)
        elif value_type in _COLLECTIONS or value_type is dict:
            self._take(len(value))

    def _take(self, units: int) -> None:
        self._units_left -= units
        self._charges += 1
        if self._units_left < 0:
            raise Refused("a long evaluation")
        if units >= _LARGE_CHARGE or self._charges % _CHARGES_BETWEEN_CLOCKS == 0:
            now = time.thread_time()
            if self._deadline is None:
                self._deadline = now + MAX_CPU_S
            elif now > self._deadline:
                raise Refused("a long evaluation")

    def _weight(self, value: Any) -> int:
        known = self._known.get(id(value))
        if known is not None:
            return known[1]
        total = 0
        pending = [value]
        while pending:
            part = pending.pop()
            part_type = type(part)
            if part_type in _COLLECTIONS:
                total += len(part) + _add_parts(part, pending)
            elif part_type is dict:
                total += 2 * len(part) + _add_parts(part, pending) + _add_parts(part.values(), pending)
            elif part_type in _TEXTS:
                total += 1 + (len(part) >> 4)
            elif part_type is Iterated or part_type is Array:
                pending.append(part.elements)
            elif part_type is Instance:
                # An object counts each time that it stands somewhere, since comparing follows it to its end each time.
                total += _instance_units(part, self._units_left - total)
            else:
                total += 1
            if total > self._units_left:
                raise Refused("a large value")
        if total >= _KEPT_FROM:
            # Keeping the value alive keeps its id from being given to another one.
            self._known[id(value)] = (value, total)
        return total


Charge = Callable[[Work, Sequence[Any]], None]
"""Pays for an operation on these values."""


def charge_all(work: Work, values: Sequence[Any]) -> None:
    """Pay for an operation that may look at all of each value."""
    for value in values:
        work.spend(value)


def charge_step(work: Work, values: Sequence[Any]) -> None:
    """Pay for `len`, `isinstance` and such."""
    work.spend_step()


def charge_index(work: Work, values: Sequence[Any]) -> None:
    """Pay for `container[key]`."""
    key = values[1]
    work.spend(key) if type(key) is not slice else work.spend_step()


def charge_search(work: Work, values: Sequence[Any]) -> None:
    """Pay for `item in container`."""
    item, container = values
    work.spend(item)
    work.spend_step() if type(container) in _HASHED else work.spend(container)


def _add_parts(parts: Iterable[Any], pending: list[Any]) -> int:
    """Leave parts that have a size for later and return their number; the others count with their container."""
    if not set(map(type, parts)) <= _SCALARS:
        before = len(pending)
        pending += [part for part in parts if type(part) not in _SCALARS]
        return len(pending) - before
    return 0


def _instance_units(start: Instance, max_units: int) -> int:
    """Return the units for all that an object leads to, each object once."""
    visited_ids = {id(start)}
    pending: list[Any] = [start]
    total = 0
    while pending and total <= max_units:
        value = pending.pop()
        parts = value.fields.values() if type(value) is Instance else value
        total += PER_NODE + len(parts)
        for part in parts:
            if type(part) in _FOLLOWED and id(part) not in visited_ids:
                visited_ids.add(id(part))
                pending.append(part)
    return total
