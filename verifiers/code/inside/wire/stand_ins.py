"""What stands in a decoding process for values that have no builtin type there.

    Opaque("Fraction2")                a value that could not be said; equal to nothing, itself included
    Iterated([1, 2, 3])                an iterator or a generator, read to its end
    Array("float64", (2, 2), [[..]])   a numpy array, where numpy is not to be loaded
    Instance("ListNode", {...})        an object of a class whose fields are known, where the class is not

Two `Instance`s are equal where they show the same fields however far one follows them, cycles included.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Codecs = Mapping[str, Sequence[str]]
"""Class name -> names of the attributes that make up an instance."""

KNOWN_CODECS: Codecs = {"ListNode": ("val", "next"), "TreeNode": ("val", "left", "right")}
"""Classes that problem collections take for granted."""


class Undecodable(ValueError):
    """The data is not what the encoder makes: forged, cut or too large."""


class ResultTooLarge(ValueError):
    """The value does not fit into the bounds of one result."""


class Opaque:
    """A value of which only its type's name is known."""

    __slots__ = ("type_name",)

    def __init__(self, type_name: str) -> None:
        self.type_name = type_name

    def __eq__(self, other: object) -> bool:
        return False

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"<{self.type_name}>"


@dataclass(slots=True)
class Iterated:
    """What an iterator gave. Not a list: `f() == [1, 2]` does not hold for a generator."""

    items: list[Any]
    kind: str = "iterator"

    def __eq__(self, other: object) -> bool:
        return type(other) is Iterated and self.items == other.items

    __hash__ = None  # type: ignore[assignment]


@dataclass(slots=True)
class Array:
    """dtype: numpy's name of it, or "str". items: nested lists, or one number where shape is ()."""

    dtype: str
    shape: tuple[int, ...]
    items: Any


class Instance:
    """An object of a class that this process does not have."""

    __slots__ = ("class_name", "fields")

    def __init__(self, class_name: str, fields: dict[str, Any]) -> None:
        self.class_name = class_name
        self.fields = fields

    def __eq__(self, other: object) -> bool:
        return type(other) is Instance and _same_graphs(self, other)

    __hash__ = object.__hash__  # members of sets are told apart by identity, as plain objects are

    def __repr__(self) -> str:
        return f"<{self.class_name}>"


def _same_graphs(left: Instance, right: Instance) -> bool:
    """Whether no path of fields tells the two apart (Hopcroft and Karp): without recursion, and in about as many steps
    as there are objects, which a pair of cycles of different lengths would otherwise multiply."""
    groups: dict[int, int] = {}
    pending: list[tuple[Any, Any]] = [(left, right)]
    while pending:
        one, other = pending.pop()
        if type(one) is Instance and type(other) is Instance:
            first, second = _group(groups, id(one)), _group(groups, id(other))
            if first == second:
                continue
            groups[first] = second
            if one.class_name != other.class_name or one.fields.keys() != other.fields.keys():
                return False
            pending += [(value, other.fields[name]) for name, value in one.fields.items()]
        elif type(one) in (list, tuple) and type(one) is type(other):
            if len(one) != len(other):
                return False
            pending += zip(one, other, strict=True)
        elif one != other:
            return False
    return True


def _group(groups: dict[int, int], member: int) -> int:
    while (above := groups.get(member, member)) != member:
        groups[member] = groups.get(above, above)
        member = above
    return member
