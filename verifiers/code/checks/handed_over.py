"""Lists, dicts and sets that test code has handed to the solution, which may have changed them since.

values = [3, 1, 2]
assert candidate(values) == [1, 2, 3]      hand_over([values])
assert values == [3, 1, 2]                 touch(values): True, nobody here knows what it holds now
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from truegold.verifiers.code.checks.terms import SCALARS, CannotLower

_MUTABLE = (list, dict, set, bytearray)


class HandedOver:
    """The identities of such objects; whoever reads the test code keeps the objects alive."""

    def __init__(self) -> None:
        self._ids: set[int] = set()

    def hand_over(self, values: list[Any], step: Callable[[int], None]) -> None:
        """Remember values that are handed over.

        Raises `CannotLower` where the solution would get one object in several places: a copy is not the same.
        """
        identities = [identity for value in values for identity in _mutables(value, step)]
        if len(identities) != len(set(identities)) or not self._ids.isdisjoint(identities):
            raise CannotLower("one list in several places")
        self._ids.update(identities)

    def touch(self, value: Any, step: Callable[[int], None]) -> bool:
        """Whether any part of a value was handed over."""
        return bool(self._ids) and not self._ids.isdisjoint(_mutables(value, step))


def _mutables(value: Any, step: Callable[[int], None]) -> Iterator[int]:
    """Yield the identities of the mutable parts of a value."""
    pending = [value]
    while pending:
        each = pending.pop()
        if type(each) in SCALARS:
            continue
        step(len(each))
        if isinstance(each, _MUTABLE):
            yield id(each)
        parts = [*each.keys(), *each.values()] if isinstance(each, dict) else list(each)
        if not set(map(type, parts)) <= SCALARS:
            pending += parts
