"""The codec against harm: objects that lie, values too large or too deep, and data that nobody encoded."""

import collections
import datetime
import enum
import itertools
import json
import subprocess
import sys
from typing import Any

import pytest
from codec_trips import same, travelled
from hypothesis import given, settings
from hypothesis import strategies as st
from property_tests import examples
from tables import rows

from truegold.verifiers.sandbox.inside.wire import encoding
from truegold.verifiers.sandbox.inside.wire.decoding import MAX_COMPARED, MAX_RANGE, decode
from truegold.verifiers.sandbox.inside.wire.encoding import MAX_DEPTH, MAX_ITERATED, encode, from_json
from truegold.verifiers.sandbox.inside.wire.value_types import (
    FORMS,
    Array,
    Iterated,
    Opaque,
    ResultTooLarge,
    Undecodable,
)

MERSENNE = 2**61 - 1
"""Integers that differ by it have the same hash."""


class Liar:
    """Equal to everything."""

    def __eq__(self, other: object) -> bool:
        return True

    def __ne__(self, other: object) -> bool:
        return False

    __hash__ = object.__hash__


class LyingInt(int):
    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = int.__hash__

    def __index__(self) -> int:
        return 99

    def __repr__(self) -> str:
        return "99"


class LyingStr(str):
    __slots__ = ()

    def __str__(self) -> str:
        return "other"

    def encode(self, *args: Any) -> bytes:
        return b"other"


class LyingList(list[Any]):
    def __iter__(self) -> Any:
        return iter([99])

    def __len__(self) -> int:
        return 1


class LyingDict(dict[Any, Any]):
    def items(self) -> Any:
        return {99: 99}.items()


class Colour(enum.IntEnum):
    RED = 1


@rows(
    "value, plain",
    [
        (LyingInt(7), 7),
        (LyingStr("true"), "true"),
        (LyingList([1, 2]), [1, 2]),
        (LyingDict({1: 2}), {1: 2}),
        (Colour.RED, 1),
        (type("F", (float,), {"__float__": lambda self: 9.0})(0.5), 0.5),
        (type("S", (set,), {"__iter__": lambda self: iter([9])})({1}), {1}),
        (type("B", (bytes,), {"__bytes__": lambda self: b"9"})(b"a"), b"a"),
        (type("D", (datetime.datetime,), {"isoformat": lambda self: "x"})(2020, 1, 2), datetime.datetime(2020, 1, 2)),
        (collections.namedtuple("P", "x y")(1, 2), (1, 2)),
    ],
)
def test_objects_of_subclasses_are_the_data_of_the_builtin_type(value: object, plain: object) -> None:
    assert same(travelled(value), plain)


@pytest.mark.parametrize("value", [Liar(), object(), int, len, Liar, NotImplemented, ValueError("x")])
def test_other_objects_are_equal_to_nothing(value: object) -> None:
    got = travelled(value)
    assert isinstance(got, Opaque)
    assert got != got
    assert not any(got == other for other in (0, None, True, "", [], value, Liar, LyingInt(1)))


def test_an_opaque_value_in_a_list_keeps_the_rest() -> None:
    rest, opaque = travelled([1, Liar()])
    assert rest == 1
    assert opaque.type_name == "Liar"


def test_an_endless_iterator_is_too_large() -> None:
    with pytest.raises(ResultTooLarge, match="more than"):
        encode(itertools.count())
    assert len(encode(iter(range(MAX_ITERATED)))["v"]) == MAX_ITERATED


@pytest.mark.parametrize(
    "value",
    [
        [0] * 10**7,
        "x" * 10**7,
        b"x" * 10**7,
        [[1] * 1000] * 10**5,
        1 << 2**23,
        {"k": ["x" * 10**6] * 100},
        list(itertools.accumulate(range(40), lambda inner, _: [inner, inner])),
    ],
    ids=["list", "text", "bytes", "nested", "integer", "dict", "doubling"],
)
def test_large_values_are_noticed_before_they_are_built(value: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoding, "MAX_ENCODED", 2**20)
    with pytest.raises(ResultTooLarge):
        encode(value)


def nested(depth: int) -> list[Any]:
    made: list[Any] = []
    for _ in range(depth):
        made = [made]
    return made


def test_nesting_is_kept_up_to_a_bound_and_opaque_beyond() -> None:
    assert travelled(nested(MAX_DEPTH)) == nested(MAX_DEPTH)
    inner = travelled(nested(100_000))
    for _ in range(MAX_DEPTH + 1):
        (inner,) = inner
    assert isinstance(inner, Opaque)


def test_a_list_within_itself_is_cut() -> None:
    loop: list[Any] = [1]
    loop.append(loop)
    assert travelled(loop)[:1] == [1]


TAGS = (
    "tuple set frozenset dict Counter OrderedDict defaultdict bytes bytearray str int float complex range slice deque"
    " array Decimal date datetime time Fraction timedelta ndarray scalar iterator graph node opaque known ellipsis"
).split()
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 10**6) | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda parts: st.one_of(
        st.lists(parts, max_size=4),
        st.dictionaries(st.text(max_size=2), parts, max_size=3),
        st.fixed_dictionaries({"$": st.sampled_from(TAGS) | parts, "v": parts}),
        st.fixed_dictionaries(
            {"$": st.sampled_from(TAGS), "v": parts, "nodes": parts, "of": parts, "names": parts, "shape": parts}
            | {"dtype": st.sampled_from(["int8", "str", "object"]) | parts}
        ),
    ),
    max_leaves=10,
)


@given(JSON)
@settings(max_examples=examples(600), deadline=None)
def test_data_that_nobody_encoded_is_a_value_or_undecodable(data: Any) -> None:
    try:
        value = decode(data)
    except Undecodable:
        return
    travelled(value)
    assert parts_types(value) <= {*(form.kind for form in FORMS.values()), bool, type(None), Array, Iterated}


def parts_types(value: Any) -> set[type]:
    """Return the types of a value and all in it."""
    kinds, waiting = set(), [value]
    while waiting:
        part = waiting.pop()
        kinds.add(type(part))
        if isinstance(part, dict):
            waiting += [*part, *part.values()]
        elif isinstance(part, list | tuple | set | frozenset | collections.deque):
            waiting += part
    return kinds


@given(st.binary() | st.text().map(str.encode))
@settings(deadline=None)
def test_bytes_that_are_no_line_are_undecodable(line: bytes) -> None:
    try:
        json.loads(line.decode("ascii"))
    except ValueError:
        with pytest.raises(Undecodable):
            from_json(line)


@rows(
    "data",
    [
        {"$": "set", "v": [[1]]},
        {"$": "set", "v": "ab"},
        {"$": "list", "v": {"a": 1}},
        {"$": "bytes", "v": [97]},
        {"$": "bytearray", "v": [97]},
        {"$": "deque", "v": ["x", 1]},
        {"$": "array", "v": ["i", "x"]},
        {"$": "array", "v": "ix"},
        {"$": "dict", "v": [[[{"$": "tuple", "v": []}], 1]]},
        {"$": "tuple", "v": None, "names": ["x"]},
        {"$": "dict", "v": [[[], 1]]},
        {"$": "dict", "v": [1]},
        {"$": "int", "v": "12"},
        {"$": "int", "v": "0x" + "f" * 2**21},
        {"$": "float", "v": "1e5"},
        {"$": "complex", "v": [1, 2]},
        {"$": "bytes", "v": "?"},
        {"$": "Decimal", "v": "1e999999999"},
        {"$": "Decimal", "v": "sNaN"},
        {"$": "Fraction", "v": [1, 0]},
        {"$": "node", "v": 0},
        {"$": "known", "v": 0},
        {"$": "graph", "nodes": [["Unknown", []]], "v": 1},
        {"$": "graph", "nodes": [["ListNode", [1]]], "v": 1},
        {"$": "ndarray", "dtype": "void", "shape": [1], "v": [1]},
        {"$": "ndarray", "dtype": "int64", "shape": [3], "v": [1]},
        {"$": "ndarray", "dtype": "int64", "shape": [10**12, 0], "v": []},
        {"$": "pickle", "v": "gASVAAAA"},
        {"$": ["tuple"], "v": []},
        {"$": None},
        {"$": "set", "v": [MERSENNE * n for n in range(int((2 * MAX_COMPARED) ** 0.5) + 9)]},
        [{"$": "dict", "v": [[(MERSENNE * n), 0] for n in range(300)]} for _ in range(99)],
        {"$": "set", "v": [{"$": "tuple", "v": [0, MERSENNE * n]} for n in range(99)]},
    ],
)
def test_data_made_to_do_harm_is_undecodable(data: object) -> None:
    with pytest.raises(Undecodable):
        decode(data)


def test_a_huge_range_is_opaque() -> None:
    assert isinstance(travelled(range(10**18)), Opaque)
    assert travelled(range(MAX_RANGE)) == range(MAX_RANGE)


@pytest.mark.parametrize("line", [b"[" * 10**6, b'{"a":' * 10**6, b"NaN", b"Infinity", b"[-Infinity]", b"1 2", b""])
def test_lines_made_to_do_harm_are_undecodable(line: bytes) -> None:
    with pytest.raises(Undecodable):
        from_json(line)


def test_deep_lines_are_undecodable_whatever_the_recursion_limit() -> None:
    code = (
        "import sys; from truegold.verifiers.sandbox.inside.wire.encoding import *; sys.setrecursionlimit(10**6)\n"
        "try: from_json(b'[' * 10**6)\n"
        "except Undecodable: print('refused')\n"
        "assert from_json(b'[\"' + b'[' * 2000 + b'\"]') == ['[' * 2000]"
    )
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "refused\n"


def test_long_integers_are_refused_where_their_limit_was_lifted() -> None:
    limit = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(0)
    try:
        assert from_json(b"9" * 4300) == 10**4300 - 1
        with pytest.raises(Undecodable, match="digits"):
            from_json(b"9" * 10**6)
    finally:
        sys.set_int_max_str_digits(limit)


def test_a_line_has_a_limit() -> None:
    assert from_json(b"[1]", 3) == [1]
    with pytest.raises(Undecodable, match="limit"):
        from_json(b"[11]", 3)
