"""Whether what a function returned is what was expected.

    values_equal([1, {"a": 0.5}], (1, {"a": 0.5000001}))     None: equal
    values_equal([1, [2, 3]], [1, [2, 4]])                   [1][1]: expected 3, got 4
    values_equal("1", 1)                                     expected '1', got 1
    call_checker_of({"type": "values", "unordered": True})([[1, 2], [3]], [[3], [1, 2]])      None

Values are equal as in Python (`1 == 1.0 == True`), with three differences: where a float is expected, a number within
`abs_tol` (1e-6) or `rel_tol` (1e-9, because a large float often stands for a count) will do; nan equals nan; lists,
tuples, deques, arrays and ranges with equal items are alike. Elements of sets and keys of dicts are compared exactly.
An iterator is no list, and an object of an unknown class equals nothing.

    values       as above           strict       types have to be the same: 1, 1.0 and True differ, so do [1] and (1,)
    unordered    the items of the list may come in any order; a set will do as well

Options of `values`: `abs_tol`, `rel_tol`, `strict`, `unordered` (of the outermost list), `unordered_inner` (of every
list), `any_of` (expected is a list of acceptable answers). Not covered: unordered items with floats so close to each
other that rounding changes their order.
"""

from __future__ import annotations

import array
import math
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from truegold.verifiers.code.bad_suite import BadSuite, shown
from truegold.verifiers.code.inside.wire import Array, Instance, Iterated, Opaque
from truegold.verifiers.code.unordered import sort_key

"""(expected, got) -> None where equal, else one line that says where they differ."""

MAX_REASON_CHARS = 200
MAX_SHOWN = 60
MAX_PATH = 80

_SHORT: Mapping[str, Mapping[str, Any]] = {
    "values": {},
    "strict": {"strict": True},
    "unordered": {"unordered": True},
}
_SWITCHES = ("strict", "unordered", "unordered_inner", "any_of")
_TOLERANCES = ("abs_tol", "rel_tol")
_SEQUENCES = (list, tuple, deque, array.array, range, Array)
_NUMBERS = (bool, int, float, complex)


def values_equal(
    expected: Any, got: Any, *, abs_tol: float = 1e-6, rel_tol: float = 1e-9, sequences_alike: bool = True
) -> str | None:
    """None where equal, else the path to the first difference and what it is."""
    return ValueChecker(abs_tol, rel_tol, sequences_alike=sequences_alike)(expected, got)


def call_checker_of(spec: str | Mapping[str, Any] | None = None) -> ValueChecker:
    """Raises `BadSuite`."""
    options = _read(spec or "values", "checker")
    strict = options.pop("strict", False)
    return ValueChecker(**options, strict=strict, sequences_alike=not strict)


def check_call_spec(spec: object, where: str) -> None:
    """Raises `BadSuite` where spec is no checker. where: how messages name it."""
    _read(spec, where)


def _read(spec: object, where: str) -> dict[str, Any]:
    given: Mapping[Any, Any] = {"type": spec} if isinstance(spec, str) else spec if isinstance(spec, Mapping) else {}
    kind = given.get("type", "values") if given else None
    if not isinstance(kind, str) or kind not in _SHORT:
        raise BadSuite(f"{where} must be one of {', '.join(_SHORT)}, got {shown(spec if kind is None else kind)}")
    options = {**_SHORT[kind], **{key: value for key, value in given.items() if key != "type"}}
    for key, value in options.items():
        if key in _SWITCHES:
            if not isinstance(value, bool):
                raise BadSuite(f"{where}.{key} must be true or false, got {shown(value)}")
        elif key in _TOLERANCES:
            if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= 1e9:
                raise BadSuite(f"{where}.{key} must be a number from 0 to 1000000000, got {shown(value)}")
        else:
            raise BadSuite(f"{where}.{str(key)[:60]} is no option; there are {', '.join(_TOLERANCES + _SWITCHES)}")
    return options


@dataclass(frozen=True, slots=True)
class ValueChecker:
    """Compares without recursion, and stops at the first difference."""

    abs_tol: float = 1e-6
    rel_tol: float = 1e-9
    sequences_alike: bool = True
    strict: bool = False
    unordered: bool = False
    unordered_inner: bool = False
    any_of: bool = False

    @property
    def accepts_equal(self) -> bool:
        """Whether all plain data that Python calls equal passes."""
        return not self.strict and not self.any_of

    def __call__(self, expected: Any, got: Any) -> str | None:
        if not self.any_of or not isinstance(expected, list):
            return self._compare(expected, got)
        reason = None
        for answer in expected:
            found = self._compare(answer, got)
            if found is None:
                return None
            reason = reason or found
        return f"none of {len(expected)} accepted answers; the first: {reason}"[:MAX_REASON_CHARS]

    def _compare(self, expected: Any, got: Any) -> str | None:
        pending: _Parts = [(None, expected, got)]
        while pending:
            path, one, other = pending.pop()
            if type(one) is type(other) and type(one) in (int, str, bool, type(None)):
                if one != other:
                    return _reason(path, f"expected {shown_value(one)}, got {shown_value(other)}")
                continue
            found = self._step(path, one, other)
            if isinstance(found, str):
                return _reason(path, found)
            pending.extend(found)
        return None

    def _step(self, path: _Path, expected: Any, got: Any) -> str | _Parts:
        """What differs here, or the parts to compare next, the last of them first."""
        if self.strict and type(expected) is not type(got):
            return f"expected {_kind(expected)}, got {_named(got)}"
        if isinstance(expected, _SEQUENCES) and not isinstance(got, str | bytes):
            return self._items(path, expected, got)
        if isinstance(expected, dict) and isinstance(got, dict):
            return _values_of(path, expected, got)
        if isinstance(expected, _NUMBERS) and isinstance(got, _NUMBERS):
            return (
                [] if self._same_number(expected, got) else f"expected {shown_value(expected)}, got {shown_value(got)}"
            )
        if isinstance(expected, Iterated) and isinstance(got, Iterated):
            return self._items(path, expected.items, got.items)
        return [] if _equal(expected, got) else f"expected {shown_value(expected)}, got {shown_value(got)}"

    def _items(self, path: _Path, expected: Any, got: Any) -> str | _Parts:
        if type(expected) is list and type(got) is list and not self.strict and _flat(expected) and expected == got:
            return []
        unordered = self.unordered_inner or (self.unordered and path is None)
        alike = isinstance(got, _SEQUENCES) if self.sequences_alike else type(expected) is type(got)
        if not alike and not (unordered and isinstance(got, set | frozenset)):
            return f"expected {_kind(expected)}, got {_named(got)}"
        wanted, had = _plain_items(expected), _plain_items(got)
        if not isinstance(wanted, Sequence) or not isinstance(had, Sequence):
            return [] if wanted == had else f"expected {shown_value(wanted)}, got {shown_value(had)}"
        if len(wanted) != len(had):
            return f"expected {len(wanted)} items, got {len(had)}"
        if unordered:
            wanted = sorted(wanted, key=lambda item: sort_key(item, self.unordered_inner))
            had = sorted(had, key=lambda item: sort_key(item, self.unordered_inner))
        elif not self.strict and type(wanted) is type(had) and _flat(wanted) and wanted == had:
            return []
        return [((path, at), one, other) for at, (one, other) in enumerate(zip(wanted, had, strict=True))][::-1]

    def _same_number(self, expected: Any, got: Any) -> bool:
        if expected == got or (expected != expected and got != got):  # noqa: PLR0124  (nan)
            return True
        if not isinstance(expected, float | complex):
            return False
        try:
            apart = abs(expected - got)
        except OverflowError:
            return False
        # An infinite expected number makes an infinite tolerance.
        return math.isfinite(abs(expected)) and apart <= max(self.abs_tol, self.rel_tol * abs(expected))


_Path = Any
"""(the path to what holds it, the index or key), None for the whole value."""

_Parts = list[tuple[_Path, Any, Any]]
"""(path, expected, got)"""


def _values_of(path: _Path, expected: dict[Any, Any], got: dict[Any, Any]) -> str | _Parts:
    missing = next((key for key in expected if key not in got), _NOTHING)
    if missing is not _NOTHING:
        return f"expected the key {shown_value(missing)}, which is not there"
    added = next((key for key in got if key not in expected), _NOTHING)
    if added is not _NOTHING:
        return f"got the key {shown_value(added)}, which was not expected"
    return [((path, key), value, got[key]) for key, value in expected.items()][::-1]


_NOTHING = object()


def _flat(items: Sequence[Any]) -> bool:
    """Items of types that are compared by `==` alone."""
    return set(map(type, items)) <= {int, str, bool, float, type(None)}


def _plain_items(value: Any) -> Any:
    if isinstance(value, Array):
        return value.items
    return value if isinstance(value, list | tuple) else list(value)


def _equal(expected: Any, got: Any) -> bool:
    if isinstance(expected, Opaque) or isinstance(got, Opaque):
        return False
    if isinstance(expected, str) is not isinstance(got, str):
        return False
    try:
        return bool(expected == got)
    except (RecursionError, TypeError, ValueError, ArithmeticError):
        return False


def _reason(path: _Path, what: str) -> str:
    keys: list[Any] = []
    while path is not None:
        path, key = path
        keys.append(key)
    text = "".join(f"[{shown_value(key)}]" for key in keys[:-MAX_PATH:-1])
    text = text if len(text) <= MAX_PATH else f"{text[: MAX_PATH // 2]}...{text[-MAX_PATH // 2 :]}"
    return f"{text}: {what}"[:MAX_REASON_CHARS] if text else what[:MAX_REASON_CHARS]


def _named(value: Any) -> str:
    """A value with its kind."""
    kind, text = _kind(value), shown_value(value)
    return text if text.startswith(("a ", "an ", kind)) else f"{kind} {text}"


def _kind(value: Any) -> str:
    match value:
        case Opaque(type_name=name) | Instance(class_name=name):
            return f"an object of class {name[:MAX_SHOWN]}"
        case Iterated(kind=kind):
            return f"a {kind[:MAX_SHOWN]}"
        case Array():
            return "an array"
        case None:
            return "None"
    name = type(value).__name__
    return f"{'an' if name[0] in 'aeiou' else 'a'} {name}"


def shown_value(value: Any) -> str:
    """The beginning of a value. Never repr() of all of it: it may be as large as its author likes."""
    if isinstance(value, int) and value.bit_length() > 1_000:
        return f"a number of {value.bit_length()} bits"
    if isinstance(value, str | bytes):
        return repr(value[:MAX_SHOWN])[:MAX_SHOWN]
    if isinstance(value, _SEQUENCES) and not isinstance(value, Array):
        return _shown_items(value)
    if isinstance(value, set | frozenset | dict):
        return f"a {type(value).__name__} of {len(value)}"
    return repr(value)[:MAX_SHOWN] if isinstance(value, _NUMBERS) or value is None else _kind(value)


def _shown_items(value: Any) -> str:
    items: Iterator[Any] = iter(value[:8]) if not isinstance(value, deque) else iter(list(value)[:8])
    brackets = "()" if isinstance(value, tuple) else "[]"
    parts = [shown_value(item) if isinstance(item, str | int | float) or item is None else "..." for item in items]
    more = ", ..." if len(value) > 8 else ""
    text = f"{brackets[0]}{', '.join(parts)}{more}{brackets[1]}"
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}..."
