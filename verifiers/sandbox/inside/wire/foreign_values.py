"""Stand in for values that have no builtin type in the process that decodes them.

    Opaque("Fraction2")                a value that has no form; equal to nothing, itself included
    Iterated([1, 2, 3])                an iterator or a generator, read to its end
    Array("float64", (2, 2), [[..]])   a numpy array, where numpy is not to be loaded
    Instance("ListNode", {...})        an object of a class whose fields are known, where the class is not

These are not dataclasses: every sandboxed process would carry along what those import.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

Json = Any
"""A value of JSON: None, booleans, numbers, texts, lists, and dicts with texts for keys."""

Value = Any
"""A value of a program or of its tests, which may be anything."""

Codecs = Mapping[str, Sequence[str]]
"""Maps the name of a class to the attributes that make up an instance."""

KNOWN_CODECS: Codecs = {"ListNode": ("val", "next"), "TreeNode": ("val", "left", "right")}
"""Classes that problem collections take for granted."""


ARRAY_TIMES = re.compile(r"(datetime64|timedelta64)\[(Y|M|W|D|h|m|s|ms|us|ns)\]")
"""numpy's names for the items of arrays of times."""


class Undecodable(ValueError):
    """The data is not what the encoder makes: forged, cut or too large."""


class ResultTooLarge(ValueError):
    """The value does not fit into the bounds of one result."""


class Opaque:
    """A value that only its type's name is known of."""

    __slots__ = ("type_name",)

    def __init__(self, type_name: str) -> None:
        self.type_name = type_name

    def __eq__(self, other: object) -> bool:
        return False

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"<{self.type_name}>"


class Iterated:
    """The elements that an iterator gave. They are not a list: `f() == [1, 2]` does not hold for a generator."""

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
    """An array of numpy's."""

    __slots__ = ("dtype", "elements", "shape")

    DTYPES = frozenset(
        "bool str object int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64"
        " complex128".split()
    )
    """numpy's names for the items of arrays that cross the border; times (`ARRAY_TIMES`) are sent as integers."""

    def __init__(self, dtype: str, shape: tuple[int, ...], elements: Any) -> None:
        self.dtype = dtype
        """numpy's name of the type, or "str"."""
        self.shape = shape
        self.elements = elements
        """Nested lists, or one number where the shape is ()."""

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

    __hash__ = object.__hash__  # Members of sets are told apart by identity, as plain objects are.

    def __repr__(self) -> str:
        return f"<{self.class_name}>"


def _same_graphs(left: Instance, right: Instance) -> bool:
    """Return whether no path of fields tells two apart, in cycles too, in a few steps (Hopcroft and Karp)."""
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
