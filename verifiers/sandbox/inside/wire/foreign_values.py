"""Defines objects that stand for values whose type the decoding process does not have.

    Opaque("Fraction2")                a value that cannot be encoded; not equal to any value, not even to itself
    Iterated([1, 2, 3])                an iterator or a generator, read to its end
    Array("float64", (2, 2), [[..]])   an array of numpy, if numpy is not to be loaded
    Instance("ListNode", {...})        an object of a class whose fields are known, but which is not defined here

They are not dataclasses, because every sandboxed process would have to load `dataclasses` and its imports.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

Json = Any
"""A JSON value: None, a boolean, a number, a text, a list, or a dict with texts as keys."""

Value = Any
"""Any value of a program or of its tests."""

Codecs = Mapping[str, Sequence[str]]
"""Maps the name of a class to the attributes that make up an instance."""

KNOWN_CODECS: Codecs = {"ListNode": ("val", "next"), "TreeNode": ("val", "left", "right")}
"""Classes that collections of problems do not define, because everyone knows them."""


ARRAY_TIMES = re.compile(r"(datetime64|timedelta64)\[(Y|M|W|D|h|m|s|ms|us|ns)\]")
"""Names of dtypes for times: `datetime64[ns]`."""


class Undecodable(ValueError):
    """The data is not what an encoder writes: it is forged, cut off or too large."""


class ResultTooLarge(ValueError):
    """The value exceeds the limits of one result."""


class Opaque:
    """A value of which only the name of the type is known."""

    __slots__ = ("type_name",)

    def __init__(self, type_name: str) -> None:
        self.type_name = type_name

    def __eq__(self, other: object) -> bool:
        return False

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"<{self.type_name}>"


class Iterated:
    """The elements of an iterator. They do not equal a list: `f() == [1, 2]` is false for a generator."""

    __slots__ = ("elements", "kind")

    def __init__(self, elements: list[Any], kind: str = "iterator") -> None:
        self.elements = elements
        self.kind = kind
        """The name of the iterator's type."""

    def __eq__(self, other: object) -> bool:
        return self.elements == other.elements if type(other) is Iterated else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Iterated({self.elements!r}, {self.kind!r})"


class Array:
    """An array of numpy."""

    __slots__ = ("dtype", "elements", "shape")

    DTYPES = frozenset(
        "bool str object int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64"
        " complex128".split()
    )
    """The dtypes of arrays that can be encoded, in addition to times (`ARRAY_TIMES`), which are sent as integers."""

    def __init__(self, dtype: str, shape: tuple[int, ...], elements: Any) -> None:
        self.dtype = dtype
        """numpy's name of the dtype, or "str"."""
        self.shape = shape
        self.elements = elements
        """Nested lists, or one number if the shape is ()."""

    def __eq__(self, other: object) -> bool:
        return self._parts() == other._parts() if type(other) is Array else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Array({self.dtype!r}, {self.shape!r}, {self.elements!r})"

    def _parts(self) -> tuple[Any, ...]:
        return self.dtype, self.shape, self.elements


class Instance:
    """An object of a class that this process does not have."""

    __slots__ = ("class_name", "fields")

    def __init__(self, class_name: str, fields: dict[str, Any]) -> None:
        self.class_name = class_name
        self.fields = fields

    def __eq__(self, other: object) -> bool:
        return type(other) is Instance and _same_graphs(self, other)

    __hash__ = object.__hash__  # Members of sets are distinguished by identity, as plain objects are.

    def __repr__(self) -> str:
        return f"<{self.class_name}>"


def _same_graphs(left: Instance, right: Instance) -> bool:
    """Return whether two objects have equal fields, recursively and in cycles too (Hopcroft and Karp)."""
    groups: dict[int, int] = {}
    pending: list[tuple[Any, Any]] = [(left, right)]
    while pending:
        first, second = pending.pop()
        if type(first) is Instance and type(second) is Instance:
            first_group, second_group = _find_group(groups, id(first)), _find_group(groups, id(second))
            if first_group == second_group:
                continue
            groups[first_group] = second_group
            if first.class_name != second.class_name or first.fields.keys() != second.fields.keys():
                return False
            pending += [(value, second.fields[name]) for name, value in first.fields.items()]
        elif type(first) in (list, tuple) and type(first) is type(second):
            if len(first) != len(second):
                return False
            pending += zip(first, second, strict=True)
        elif first != second:
            return False
    return True


def _find_group(groups: dict[int, int], member: int) -> int:
    while (above := groups.get(member, member)) != member:
        groups[member] = groups.get(above, above)
        member = above
    return member
