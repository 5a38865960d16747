"""Decides when the solution's own code may answer an operator on its objects, such as `==`, and with what.

    add(1, 2) == P(3)            answered: both sides are of a class whose name is in the test code
    P(3) == 3                    not answered: only data can equal plain data
    S([1, 2]) == [1, 2]          if a class is derived from list, the list in the object is compared
    add(1, 2) == add(2, 1)       not answered if the test code does not name their class
    sorted(make())               answered: the order alone proves nothing
    make(1) < make(2)            not answered: here the answer would be the verdict

A class that the test code names is under test, with its operators. If an object of the class equals a word that no test
has given to the object, the class's answers on equality are no longer trusted.

A call may return an object where the test code expects a number. The test code would then pass the expected number to
this object:

    abs(v.norm() - 5) < 1e-9     v.norm() returns an object whose `-` is always 0.0

So an operator on such an object and plain data has to give an object again, or else the test fails. Objects that the
test code made may compute data, but not by subtraction. The reason is a test such as `abs(Area(1) - 3.14) < 0.01`: it
expects a function `Area`, where a program may define a class.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Mapping
from opcode import opmap
from typing import Protocol

from ..wire.value_types import Value

EQUALITY = ("eq", "ne")
ORDER = ("lt", "le", "gt", "ge")
_ARITHMETIC = "add sub mul truediv floordiv mod pow matmul lshift rshift and_ or_ xor".split()
_IN_PLACE = ["i" + name.rstrip("_") for name in _ARITHMETIC]
_UNARY = "neg pos invert abs round index".split()

OPERATORS: Mapping[str, Callable[..., Value]] = {
    **{
        name: getattr(operator, name)
        for name in (*EQUALITY, *ORDER, *_ARITHMETIC, *_IN_PLACE, *_UNARY)
        if name != "round"
    },
    **{"round": round, "divmod": divmod, "hash": hash, "bool": bool},
}
"""Operations that the solution's process performs for the test code, by name."""

_SUBTRACTIONS = ("sub", "isub")
_UNLIKELY = "a word that no object has been given"
"""A value to which only objects that equal everything are equal."""
_COMPARISON = opmap["COMPARE_OP"]
"""The bytecode instruction of a comparison."""


class _Asking(Protocol):
    """The part of the session that operators need."""

    def ask_operator(self, name: str, operands: tuple[Value, ...]) -> Value: ...
    def data_of(self, handle: int) -> Value: ...


CLASS_HANDLE = "_truegold_class_handle"
"""The attribute of a proxy class, exceptions included, that holds the handle of the solution's class."""


class Operators:
    """Applies operators to objects of the solution. remote_class: the class of their proxies."""

    def __init__(self, session: _Asking, remote_class: type) -> None:
        self._session = session
        self._remote_class = remote_class
        self.function_holders = {"Solution"}
        """Names of classes that only hold functions."""
        self._named_classes: dict[int, str] = {}
        """Classes that the test code asked for by a capitalised name: the name by handle."""
        self._made: dict[int, str] = {}
        """Objects that the test code made of such a class: the name of the class by handle."""
        self._returned: set[int] = set()
        """Handles of objects that came as answers and were not made by the test code."""
        self._marked: set[int] = set()
        """Handles of objects computed from a returned object and plain data."""
        self._honest: dict[type, bool] = {}
        """Classes whose objects do not equal everything."""

    def note_class(self, name: str, handle: int) -> None:
        """Note that the test code asked for a class by this name."""
        if name.lstrip("_")[:1].isupper():
            self._named_classes[handle] = name

    def note_call(self, callee: int, handle: int) -> None:
        """Note that a call by the test code returned this object."""
        if callee in self._named_classes:
            self._made[handle] = self._named_classes[callee]
            self._returned.discard(handle)

    def note_return(self, handle: int) -> None:
        """Note that an answer contained this object.

        If its class only holds functions, the object no longer counts as made by the test code, because the functions
        should return data. Methods of other classes may return their object, so that calls can be chained.
        """
        self._returned.add(handle)
        if self._made.get(handle) in self.function_holders:
            del self._made[handle]

    def made_by_tests(self, remote: Value) -> bool:
        """Return whether the test code made this object itself, from a class that it calls by a capitalised name."""
        return remote._truegold_handle in self._made

    def compare(self, name: str, left: Value, right: Value, by_tests: bool) -> Value:
        """Return the result of a comparison, or NotImplemented if the solution is not asked.

        by_tests: whether the comparison is written in Python code, and not made by a function such as `sorted`.
        """
        kinds = type(left), type(right)
        if not self._is_remote(right) or not (issubclass(*kinds) or issubclass(*kinds[::-1])):
            return self._compare_data(name, left, right)
        if not self._is_named(kinds[0]) and (name in EQUALITY or by_tests):
            return self._compare_data(name, left, right)
        holds = self._holds(name, left, right)
        if name in EQUALITY and holds is (name == "eq") and not (self._is_honest(left) and self._is_honest(right)):
            return name == "ne"
        return holds

    def hash(self, remote: Value) -> int:
        """Return the hash of an object."""
        if remote._truegold_base is not None:
            return hash(self._plain(remote))
        answer = self._session.ask_operator("hash", (remote,))
        return answer if type(answer) is int else 0

    def truth(self, remote: Value) -> bool:
        """Return the truth value of an object that the test code made. Other objects are true."""
        if not self.made_by_tests(remote):
            return True
        return self._session.ask_operator("bool", (remote,)) is True

    def compute(self, name: str, *operands: Value) -> Value:
        """Return the result of an arithmetic operator."""
        remotes = [each for each in operands if self._is_remote(each)]
        handles = [each._truegold_handle for each in remotes]
        made = self._made.keys() >= set(handles) and self._returned.isdisjoint(handles)
        if not all(self._is_named(type(each)) for each in remotes):
            if any(each._truegold_base is None for each in remotes):
                return NotImplemented
            return OPERATORS[name](*map(self._plain, operands))
        answer = self._session.ask_operator(name, operands)
        has_data = len(remotes) < len(operands)
        marked = (has_data and (not made or name in _SUBTRACTIONS)) or not self._marked.isdisjoint(handles)
        if self._is_remote(answer):
            if made and not marked:
                self._made.setdefault(answer._truegold_handle, self._made[handles[0]])
                self._returned.discard(answer._truegold_handle)
            elif marked:
                self._marked.add(answer._truegold_handle)
        elif marked:
            raise TypeError("an object that a call returned may not compute data from the value it is compared with")
        return answer

    def _compare_data(self, name: str, left: Value, right: Value) -> Value:
        if left._truegold_base is None or (self._is_remote(right) and right._truegold_base is None):
            return NotImplemented
        return OPERATORS[name](self._plain(left), self._plain(right))

    def _plain(self, value: Value) -> Value:
        return self._session.data_of(value._truegold_handle) if self._is_remote(value) else value

    def _is_named(self, kind: type) -> bool:
        """Return whether the test code has asked for this class, or one of its bases, by a capitalised name."""
        return any(vars(above).get(CLASS_HANDLE) in self._named_classes for above in kind.__mro__)

    def names_class(self, kind: type) -> bool:
        """Return whether the test code has asked for this class itself by a capitalised name."""
        return vars(kind).get(CLASS_HANDLE) in self._named_classes

    def _is_remote(self, value: Value) -> bool:
        return issubclass(type(value), self._remote_class)

    def _holds(self, name: str, *operands: Value) -> bool:
        answer = self._session.ask_operator(name, operands)
        return not self._is_remote(answer) and bool(answer)

    def _is_honest(self, remote: Value) -> bool:
        """Return whether an object does not equal everything."""
        kind = type(remote)
        if kind not in self._honest:
            try:
                self._honest[kind] = not self._holds("eq", remote, _UNLIKELY)
            except Exception:
                self._honest[kind] = True
        return self._honest[kind]


def _comparison(name: str) -> Callable[[Value, Value], Value]:
    def method(self: Value, other: Value) -> Value:
        frame = sys._getframe(1)
        by_tests = name in ORDER and frame.f_code.co_code[frame.f_lasti] == _COMPARISON
        return self._truegold_session.operators.compare(name, self, other, by_tests)

    return method


def _computation(name: str, reflected: bool = False) -> Callable[..., Value]:
    def method(self: Value, *others: Value) -> Value:
        operands = (*others, self) if reflected else (self, *others)
        return self._truegold_session.operators.compute(name, *operands)

    return method


def _dunder(name: str, prefix: str = "") -> str:
    return f"__{prefix}{name.rstrip('_')}__"


OPERATOR_METHODS: Mapping[str, Callable[..., Value]] = {
    **{_dunder(name): _comparison(name) for name in (*EQUALITY, *ORDER)},
    **{_dunder(name): _computation(name) for name in (*_ARITHMETIC, *_IN_PLACE, *_UNARY, "divmod")},
    **{_dunder(name, "r"): _computation(name, reflected=True) for name in (*_ARITHMETIC, "divmod")},
    "__hash__": lambda self: self._truegold_session.operators.hash(self),
    "__bool__": lambda self: self._truegold_session.operators.truth(self),
}
"""Special methods by which an object of the solution is an operand."""
