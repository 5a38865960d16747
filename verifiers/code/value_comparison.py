"""Compares the value that a function returned with the expected value.

    ValueChecker()([1, {"a": 0.5}], (1, {"a": 0.5000001}))     None: no difference
    ValueChecker()([1, [2, 3]], [1, [2, 4]])                   [1][1]: expected 3, got 4
    ValueChecker()("1", 1)                                     expected '1', got 1
    call_checker_of({"type": "values", "unordered": True})([[1, 2], [3]], [[3], [1, 2]])      None

Values are compared with `==` of Python (`1 == 1.0 == True`), with three exceptions. If a float is expected, a number
within `abs_tol` (1e-6, less for small numbers) or `rel_tol` (1e-9) is equal. nan equals nan. Lists, tuples, deques,
arrays and ranges with equal items are equal. Elements of sets and keys of dicts are compared exactly. An iterator does
not equal a list, and an object of an unknown class does not equal any value.

    values       Compares as described above.
    strict       Types must be the same: 1, 1.0 and True differ, and so do [1] and (1,).
    unordered    The items of the outermost list may be in any order. The program may return a set of them.

Further options: `abs_tol`, `rel_tol`, `unordered_inner` (the items of every list may be in any order), and `any_of`
(the expected value is a list of accepted answers). Not covered: unordered items with floats so close to each other
that rounding changes their order.

Data sets write linked lists and binary trees as lists of values:

    to_nodes([1, 2], "ListNode")            nodes: an Instance of ListNode with val 1, whose next has val 2
    to_values(nodes)                        [1, 2]
    to_values(tree)                         [1, None, 2]: level by level, without missing nodes at the end
"""

from __future__ import annotations

import array
import math
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from truegold.verifiers.code import outcomes
from truegold.verifiers.code.outcomes import SHOWN_VALUE_CHARS, BadSuite, shown
from truegold.verifiers.code.output_comparison import MAX_REASON_CHARS, absolute_error
from truegold.verifiers.sandbox.inside.wire.value_types import Array, Instance, Iterated, Opaque, Value

MAX_PATH = 80
"""Maximum number of characters of the path to a difference."""

MAX_DEPTH = 200
"""Maximum depth of values that are sorted, since deeper recursion overflows the stack."""

_PRESETS: Mapping[str, Mapping[str, Value]] = {
    "values": {},
    "strict": {"strict": True},
    "unordered": {"unordered": True},
}
_SWITCHES = ("strict", "unordered", "unordered_inner", "any_of")
_TOLERANCES = ("abs_tol", "rel_tol")
_BUILTIN_SEQUENCES = (list, tuple, deque, array.array, range)
_SEQUENCES = (*_BUILTIN_SEQUENCES, Array)
_NUMBERS = (bool, int, float, complex)


def call_checker_of(spec: str | Mapping[str, Value] | None = None) -> ValueChecker:
    """Return the checker for a type or an object. Raises `BadSuite` for an invalid one."""
    options = read_call_spec(spec or "values", "checker")
    strict = options.pop("strict", False)
    return ValueChecker(**options, strict=strict, sequences_alike=not strict)


def read_call_spec(spec: object, field: str) -> dict[str, Value]:
    """Return the options of a checker. Raises `BadSuite` for an invalid `spec`. field: the name of `spec` in errors."""
    _, options = outcomes.checker_options(spec, field, _PRESETS, "values")
    for key, value in options.items():
        if key in _SWITCHES:
            outcomes.require_switch(value, f"{field}.{key}")
        elif key in _TOLERANCES:
            outcomes.require_tolerance(value, f"{field}.{key}")
        else:
            raise BadSuite(f"{field}.{str(key)[:60]} is not an option; there are {', '.join(_TOLERANCES + _SWITCHES)}")
    return options


@dataclass(frozen=True, slots=True)
class ValueChecker:
    """Compares values without recursion, and stops at the first difference."""

    abs_tol: float | None = None
    """The absolute tolerance, or None for a tolerance that depends on the size of the number (`absolute_error`)."""
    rel_tol: float = 1e-9
    sequences_alike: bool = True
    """Whether lists, tuples, deques, arrays and ranges with equal items are equal."""
    strict: bool = False
    """Whether types have to be the same."""
    unordered: bool = False
    """Whether the items of the outermost list may come in any order."""
    unordered_inner: bool = False
    """Whether the items of every list may come in any order."""
    any_of: bool = False
    """Whether the expected value is a list of acceptable answers."""

    @property
    def accepts_equal(self) -> bool:
        """Whether the checker accepts all plain values that are equal in Python."""
        return not self.strict and not self.any_of

    def __call__(self, expected: Value, got: Value) -> str | None:
        if not self.any_of or not isinstance(expected, list):
            return self._compare(expected, got)
        differences = [self._compare(answer, got) for answer in expected]
        if None in differences:
            return None
        first = differences[0] if differences else None
        return f"not one of {len(expected)} accepted answers; the first: {first}"[:MAX_REASON_CHARS]

    def _compare(self, expected: Value, got: Value) -> str | None:
        pending: _Parts = [(None, expected, got)]
        while pending:
            path, expected, got = pending.pop()
            if type(expected) is type(got) and type(expected) in (int, str, bool, type(None)):
                if expected != got:
                    return _reason(path, _describe_difference(expected, got))
                continue
            difference_or_parts = self._step(path, expected, got)
            if isinstance(difference_or_parts, str):
                return _reason(path, difference_or_parts)
            pending.extend(difference_or_parts)
        return None

    def _step(self, path: _Path, expected: Value, got: Value) -> str | _Parts:
        """Return the difference in one line, or the parts to compare next, in reverse order."""
        if self.strict and type(expected) is not type(got):
            return f"expected {_kind(expected)}, got {_value_with_kind(got)}"
        if isinstance(expected, _SEQUENCES) and not isinstance(got, str | bytes):
            return self._compare_items(path, expected, got)
        if isinstance(expected, dict) and isinstance(got, dict):
            return _compare_keys(path, expected, got)
        if isinstance(expected, _NUMBERS) and isinstance(got, _NUMBERS):
            return [] if self._same_number(expected, got) else _describe_difference(expected, got)
        if isinstance(expected, Iterated) and isinstance(got, Iterated):
            return self._compare_items(path, expected.elements, got.elements)
        return [] if _are_equal(expected, got) else _describe_difference(expected, got)

    def _compare_items(self, path: _Path, expected: Value, got: Value) -> str | _Parts:
        if type(expected) is list and type(got) is list and not self.strict and _is_flat(expected) and expected == got:
            return []
        unordered = self.unordered_inner or (self.unordered and path is None)
        alike = isinstance(got, _SEQUENCES) if self.sequences_alike else type(expected) is type(got)
        if not alike and not (unordered and isinstance(got, set | frozenset)):
            return f"expected {_kind(expected)}, got {_value_with_kind(got)}"
        expected, got = _plain_sequence(expected), _plain_sequence(got)
        if not isinstance(expected, Sequence) or not isinstance(got, Sequence):
            return [] if expected == got else _describe_difference(expected, got)
        if len(expected) != len(got):
            return f"expected {len(expected)} items, got {len(got)}"
        if unordered:
            expected = sorted(expected, key=lambda item: _sort_key(item, self.unordered_inner))
            got = sorted(got, key=lambda item: _sort_key(item, self.unordered_inner))
        elif not self.strict and type(expected) is type(got) and _is_flat(expected) and expected == got:
            return []
        pairs = enumerate(zip(expected, got, strict=True))
        return [((path, index), expected_item, got_item) for index, (expected_item, got_item) in pairs][::-1]

    def _same_number(self, expected: Value, got: Value) -> bool:
        if expected == got or (expected != expected and got != got):  # noqa: PLR0124  (nan)
            return True
        if not isinstance(expected, float | complex):
            return False
        try:
            distance = abs(expected - got)
        except OverflowError:
            return False
        size = abs(expected)
        absolute = absolute_error(size) if self.abs_tol is None else self.abs_tol
        # The tolerance of an infinite number would be infinite.
        return math.isfinite(size) and distance <= max(absolute, self.rel_tol * size)


_Path = Value
"""The path to a value: the path to its container, and the index or key in the container. None for the whole value."""

_Parts = list[tuple[_Path, Value, Value]]
"""Parts to compare, each with its path, its expected value and its returned value."""


def _compare_keys(path: _Path, expected: dict[Value, Value], got: dict[Value, Value]) -> str | _Parts:
    for key in expected:
        if key not in got:
            return f"expected the key {shown_value(key)}, which is missing"
    for key in got:
        if key not in expected:
            return f"got the key {shown_value(key)}, which was not expected"
    return [((path, key), value, got[key]) for key, value in expected.items()][::-1]


def _is_flat(sequence: Sequence[Value]) -> bool:
    """Say whether all items are plain values, so that `==` can compare the sequences."""
    return set(map(type, sequence)) <= {int, str, bool, float, type(None)}


def _plain_sequence(value: Value) -> Value:
    if isinstance(value, Array):
        return value.elements
    return value if isinstance(value, list | tuple) else list(value)


def _sort_key(value: Value, inner: bool = False, depth: int = 0) -> tuple[Value, ...]:  # noqa: PLR0911  (One per type.)
    """Return a key that orders values of any types. Equal values have equal keys; 1, 1.0 and True are equal.

    inner: whether the order of items within lists is ignored too.
    """
    if value is None:
        return (0,)
    if isinstance(value, bool | int | float):
        return (1,) if isinstance(value, float) and math.isnan(value) else (2, value)
    if isinstance(value, str):
        return (3, value)
    if isinstance(value, bytes | bytearray):
        return (4, bytes(value))
    if depth > MAX_DEPTH:
        return (9,)
    if isinstance(value, Array):
        return _sort_key(value.elements, inner, depth + 1)
    if isinstance(value, _BUILTIN_SEQUENCES):
        keys = [_sort_key(item, inner, depth + 1) for item in value]
        return (5, len(keys), *(sorted(keys) if inner else keys))
    if isinstance(value, set | frozenset):
        return (6, len(value), *sorted(_sort_key(item, inner, depth + 1) for item in value))
    if isinstance(value, dict):
        pairs = [(_sort_key(key, inner, depth + 1), _sort_key(item, inner, depth + 1)) for key, item in value.items()]
        return (7, len(pairs), *sorted(pairs))
    if isinstance(value, complex):
        return (8, value.real, value.imag)
    return (9,)


def _are_equal(expected: Value, got: Value) -> bool:
    if isinstance(expected, Opaque) or isinstance(got, Opaque):
        return False
    if isinstance(expected, str) is not isinstance(got, str):
        return False
    try:
        return bool(expected == got)
    except (RecursionError, TypeError, ValueError, ArithmeticError):
        return False


def _describe_difference(expected: Value, got: Value) -> str:
    return f"expected {shown_value(expected)}, got {shown_value(got)}"


def _reason(path: _Path, difference: str) -> str:
    keys: list[Value] = []
    while path is not None:
        path, key = path
        keys.append(key)
    text = "".join(f"[{shown_value(key)}]" for key in keys[:-MAX_PATH:-1])
    text = text if len(text) <= MAX_PATH else f"{text[: MAX_PATH // 2]}...{text[-MAX_PATH // 2 :]}"
    return f"{text}: {difference}"[:MAX_REASON_CHARS] if text else difference[:MAX_REASON_CHARS]


def _value_with_kind(value: Value) -> str:
    kind, text = _kind(value), shown_value(value)
    return text if text.startswith(("a ", "an ", kind)) else f"{kind} {text}"


def _kind(value: Value) -> str:
    match value:
        case Opaque(type_name=name) | Instance(class_name=name):
            return f"an object of class {name[:SHOWN_VALUE_CHARS]}"
        case Iterated(kind=kind):
            return f"a {kind[:SHOWN_VALUE_CHARS]}"
        case Array():
            return "an array"
        case None:
            return "None"
    name = type(value).__name__
    return f"{'an' if name[0] in 'aeiou' else 'a'} {name}"


def shown_value(value: Value) -> str:
    """Return a short text for a value: its beginning, the first items of a list, or the class of an object."""
    if isinstance(value, _BUILTIN_SEQUENCES):
        return _shown_items(value)
    is_plain = value is None or isinstance(value, (*_NUMBERS, str, bytes, set, frozenset, dict))
    return shown(value) if is_plain else _kind(value)


def _shown_items(value: Value) -> str:
    brackets = "()" if isinstance(value, tuple) else "[]"
    first_items = islice(value, 8)
    parts = [shown_value(item) if isinstance(item, str | int | float | None) else "..." for item in first_items]
    more = ", ..." if len(value) > 8 else ""
    text = f"{brackets[0]}{', '.join(parts)}{more}{brackets[1]}"
    return text if len(text) <= SHOWN_VALUE_CHARS else f"{text[:SHOWN_VALUE_CHARS]}..."


MAX_NODES = 1_000_000
"""Maximum number of nodes that are read, since a linked list may be circular."""

_FIELDS = {"ListNode": {"val", "next"}, "TreeNode": {"val", "left", "right"}}


def to_nodes(value: Value, type_name: str) -> Value:
    """Return the nodes for a list of values if `type_name` is a type of nodes, else the value unchanged."""
    if type_name.endswith("[]") and isinstance(value, list):
        return [to_nodes(item, type_name.removesuffix("[]")) for item in value]
    if not isinstance(value, list):
        return value
    if type_name == "ListNode":
        head: Instance | None = None
        for item in reversed(value):
            head = Instance("ListNode", {"val": item, "next": head})
        return head
    return _to_tree(value) if type_name == "TreeNode" else value


def _to_tree(values: list[Value]) -> Instance | None:
    empty = {"left": None, "right": None}
    nodes = [None if item is None else Instance("TreeNode", {"val": item, **empty}) for item in values]
    children = iter(nodes[1:])
    for node in nodes:
        if node is not None:
            node.fields["left"] = next(children, None)
            node.fields["right"] = next(children, None)
    return nodes[0] if nodes else None


def to_values(value: Value) -> Value:
    """Return the list of values for nodes, also for nodes in a list; other values are returned unchanged."""
    if isinstance(value, list) and any(isinstance(item, Instance | list) for item in value):
        return [to_values(item) for item in value]
    if not isinstance(value, Instance) or set(value.fields) != _FIELDS.get(value.class_name):
        return value
    values: list[Value] = []
    is_list = value.class_name == "ListNode"
    pending: deque[Value] = deque([value])
    while pending and len(values) < MAX_NODES:
        node = pending.popleft()
        if isinstance(node, Instance):
            values.append(node.fields.get("val"))
            pending += [node.fields.get(name) for name in (["next"] if is_list else ["left", "right"])]
        elif not is_list:
            values.append(None)
    while not is_list and values and values[-1] is None:
        values.pop()
    return values
