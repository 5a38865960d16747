"""The codec: what crosses the border between processes arrives exactly, with its types, its sharing and its cycles."""

import array
import collections
import datetime
import decimal
import fractions
import json
import math
import subprocess
import sys
import time
from typing import Any

import numpy
import pytest
from codec_trips import same, travelled
from hypothesis import given, settings
from hypothesis import strategies as st
from property_tests import examples

from truegold.verifiers.sandbox.inside.wire.decoding import Decoder
from truegold.verifiers.sandbox.inside.wire.encoding import Encoder, encode, from_json, to_json
from truegold.verifiers.sandbox.inside.wire.value_types import Array, Instance, Iterated, Opaque

HASHABLE = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.integers(0, 99).map(lambda more: 10**4300 + more),
        st.floats(),
        st.text(),
        st.text(st.characters(categories=["Cs", "Lu"])),
        st.binary(),
        st.complex_numbers(),
        st.just(...),
        st.builds(range, st.integers(-99, 99), st.integers(-99, 99), st.integers(1, 9)),
        st.decimals(allow_nan=False),
        st.fractions(),
        st.datetimes(timezones=st.none() | st.just(datetime.UTC)).map(lambda time: time.replace(fold=0)),
        st.dates(),
        st.times().map(lambda time: time.replace(fold=0)),
        st.timedeltas(),
    ),
    lambda parts: st.lists(parts, max_size=4).map(tuple) | st.frozensets(parts, max_size=4),
    max_leaves=8,
)
VALUES = st.recursive(
    st.one_of(
        HASHABLE,
        st.binary().map(bytearray),
        st.builds(slice, st.integers(), st.none() | st.integers(), st.none()),
        st.lists(st.integers(-9, 9)).map(lambda numbers: array.array("i", numbers)),
        st.lists(st.floats(width=32), max_size=4).map(lambda numbers: array.array("d", numbers)),
    ),
    lambda parts: st.one_of(
        st.lists(parts, max_size=4),
        st.lists(parts, max_size=4).map(tuple),
        st.sets(HASHABLE, max_size=4),
        st.dictionaries(HASHABLE, parts, max_size=4),
        st.dictionaries(st.text(max_size=2) | st.just("$"), parts, max_size=4),
        st.dictionaries(HASHABLE, parts, max_size=3).map(collections.OrderedDict),
        st.dictionaries(HASHABLE, parts, max_size=3).map(lambda made: collections.defaultdict(None, made)),
        st.dictionaries(HASHABLE, st.integers(), max_size=3).map(collections.Counter),
        st.lists(parts, max_size=3).map(collections.deque),
        st.lists(parts, max_size=3).map(lambda elements: collections.deque(elements, maxlen=3)),
    ),
    max_leaves=12,
)


@given(VALUES)
@settings(max_examples=examples(400), deadline=None)
def test_values_arrive_equal_and_of_the_same_types(value: Any) -> None:
    assert same(travelled(value), value)


@given(st.lists(st.integers() | st.floats() | st.booleans() | st.none()) | st.lists(st.text()))
@settings(deadline=None)
def test_flat_lists_arrive_as_they_were(value: list[Any]) -> None:
    assert same(travelled(value), value)


@pytest.mark.parametrize("value", [0, True, None, 2.5, "é", [1, [2.5, "x"]], {"a": [1], "b": {"c": None}}])
def test_what_json_can_say_stands_in_it_as_it_is(value: object) -> None:
    assert json.loads(to_json(encode(value))) == value


@pytest.mark.parametrize(
    "value", [iter([1, 2]), (x for x in [1, 2]), map(int, "12"), zip([1], [2], strict=True), {1: 2}.keys()]
)
def test_iterators_are_read_and_are_not_lists(value: Any) -> None:
    got = travelled(value)
    assert isinstance(got, Iterated)
    assert got != got.elements


class ListNode:
    def __init__(self, val: Any = 0, next: Any = None) -> None:
        self.val = val
        self.next = next


class TreeNode:
    __slots__ = ("left", "right", "val")

    def __init__(self, val: Any = 0, left: Any = None, right: Any = None) -> None:
        self.val, self.left, self.right = val, left, right


def chain(length: int) -> Any:
    head = None
    for value in reversed(range(length)):
        head = ListNode(value, head)
    return head


def test_a_long_chain_of_objects_arrives() -> None:
    assert travelled(chain(3000)) == travelled(chain(3000))
    assert travelled(chain(3000)) != travelled(chain(2999))
    got = travelled(chain(100_000))
    values = []
    while got is not None:
        values.append(got.fields["val"])
        got = got.fields["next"]
    assert values == list(range(100_000))


def test_sharing_and_cycles_of_objects_are_kept() -> None:
    leaf = TreeNode(1)
    got = travelled(TreeNode(0, leaf, leaf))
    assert got.fields["left"] is got.fields["right"]
    ring = ListNode(1)
    ring.next = ring
    got = travelled([ring, 5])[0]
    assert got.fields["next"] is got


def test_cycles_are_compared_by_what_one_can_follow() -> None:
    short, long = ListNode(1), ListNode(1, ListNode(1))
    short.next = short
    long.next.next = long
    assert travelled(short) == travelled(long)
    long.next.val = 2
    assert travelled(short) != travelled(long)


def test_classes_are_declared_by_name_and_fields() -> None:
    class Point:
        def __init__(self, x: int, y: int) -> None:
            self.x, self.y = x, y

        def __getattribute__(self, name: str) -> Any:
            return 99

    codecs = {"Point": ["x", "y"]}
    got = travelled({"at": Point(1, 2)}, codecs)["at"]
    assert isinstance(got, Instance)
    assert (got.class_name, got.fields) == ("Point", {"x": 1, "y": 2})
    assert isinstance(travelled(Point(1, 2)), Opaque)
    assert travelled(got, codecs) == got


def test_objects_are_made_of_the_class_where_the_process_has_it() -> None:
    data = encode([chain(2)])
    (head,) = Decoder(classes={"ListNode": ListNode}.__getitem__).decode(data)
    assert isinstance(head, ListNode)
    assert (head.val, head.next.val, head.next.next) == (0, 1, None)


def test_mutable_objects_are_met_in_the_same_order_on_both_sides() -> None:
    inner = [1]
    value = ({"a": inner}, inner, {2}, collections.deque([[3]]), bytearray(b"4"), chain(2), {(5,): [6]})
    encoder = Encoder(track=True)
    decoder = Decoder(track=True)
    got = decoder.decode(from_json(to_json(encoder.encode(value))))
    assert got[0]["a"] is got[1]
    assert [type(met).__name__.replace("Instance", "ListNode") for met in decoder.tracked] == [
        type(met).__name__ for met in encoder.tracked
    ]


def test_numpy_arrays_and_numbers() -> None:
    assert travelled(numpy.array([[1, 2], [3, 4]])) == Array("int64", (2, 2), [[1, 2], [3, 4]])
    assert travelled(numpy.array(5.0)) == Array("float64", (), 5.0)
    assert travelled(numpy.array(["a"])) == Array("str", (1,), ["a"])
    assert travelled(numpy.zeros((2, 0))) == Array("float64", (2, 0), [[], []])
    assert same(travelled([numpy.float64(0.5), numpy.int8(3), numpy.bool_(True)]), [0.5, 3, True])
    assert math.isnan(travelled(numpy.float32("nan")))
    assert isinstance(travelled(numpy.array([object()])).elements[0], Opaque)
    array_of = travelled(Array("int64", (2,), [1, 2]))
    assert array_of == Array("int64", (2,), [1, 2])


def test_numpy_is_not_loaded_by_those_who_have_none() -> None:
    code = (
        "import sys; from truegold.verifiers.sandbox.inside.wire.decoding import decode;"
        "decode({'$': 'ndarray', 'dtype': 'int64', 'shape': [1], 'v': [1]}); assert 'numpy' not in sys.modules"
    )
    subprocess.run([sys.executable, "-P", "-c", code], check=True)


@pytest.mark.parametrize(
    "value",
    [
        {2**n for n in range(1000)},
        {(x, y) for x in range(-50, 50) for y in range(-50, 50)},
        dict.fromkeys(range(10**4)),
        {-1: 0, -2: 1},
    ],
)
def test_honest_collections_are_not_taken_for_an_attack(value: object) -> None:
    assert travelled(value) == value


def test_nothing_is_taken_from_a_type_that_is_no_number() -> None:
    made = travelled([decimal.Decimal("1.50"), fractions.Fraction(2, 4), time.gmtime(0)])
    assert same(made[:2], [decimal.Decimal("1.50"), fractions.Fraction(1, 2)])
    assert made[2] == tuple(time.gmtime(0))
