"""Comparing what a function returned with what was expected."""

import math
from collections import deque

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tables import rows

from truegold.verifiers.code.outcomes import BadSuite
from truegold.verifiers.code.value_comparison import ValueChecker, call_checker_of, read_call_spec
from truegold.verifiers.sandbox.inside.wire.value_types import Array, Instance, Iterated, Opaque


def difference_of(expected, got, **options):
    """Return None where the values are equal, else the first difference."""
    return ValueChecker(**options)(expected, got)


@rows(
    "expected, got",
    [
        (1, 1.0),
        (True, 1),
        (0.5, 0.5000004),
        (2.0, 2),
        (-0.0, 0),
        (math.nan, math.nan),
        (math.inf, math.inf),
        ([1, (2, 3)], (1, [2, 3])),
        ([1, 2], deque([1, 2])),
        ([1, 2], Array("int64", (2,), [1, 2])),
        ([[1, 2], [3, 4]], Array("int64", (2, 2), [[1, 2], [3, 4]])),
        ({"a": [0.5]}, {"a": (0.50000001,)}),
        ({1, (2, 3)}, {(2, 3), 1}),
        (1 + 2j, 1 + 2.0000001j),
        (None, None),
        (10**400, 10**400),
        (b"ab", b"ab"),
    ],
)
def test_equal(expected, got):
    assert difference_of(expected, got) is None


@rows(
    "expected, got, reason",
    [
        (5, 7, "expected 5, got 7"),
        ("1", 1, "expected '1', got 1"),
        (1, "1", "expected 1, got '1'"),
        ([1, [2, 3]], [1, [2, 4]], "[1][1]: expected 3, got 4"),
        ({"a": {"b": 1}}, {"a": {"b": 2}}, "['a']['b']: expected 1, got 2"),
        ({"a": 1}, {}, "expected the key 'a', which is missing"),
        ({}, {"a": 1}, "got the key 'a', which was not expected"),
        ([1, 2], [1], "expected 2 items, got 1"),
        ([1, 2], {1, 2}, "expected a list, got a set of 2"),
        ([1, 2], "12", "expected [1, 2], got '12'"),
        ([1, 2], Iterated([1, 2], "generator"), "expected a list, got a generator"),
        ([1], Opaque("Foo"), "expected a list, got an object of class Foo"),
        (None, False, "expected None, got False"),
        (1, None, "expected 1, got None"),
        (3, 3.0000001, "expected 3, got 3.0000001"),
        (0.5, 0.51, "expected 0.5, got 0.51"),
        (1e300, 10**400, None),
        (math.inf, 1.0, "expected inf, got 1.0"),
        (1.0, math.inf, "expected 1.0, got inf"),
        (1.0, math.nan, "expected 1.0, got nan"),
        (123456789.0, 123456790.0, "expected 123456789.0, got 123456790.0"),
        ("a", b"a", "expected 'a', got b'a'"),
    ],
)
def test_different(expected, got, reason):
    difference = difference_of(expected, got)
    assert difference is not None
    assert reason is None or difference == reason


def test_an_unknown_object_equals_nothing():
    unknown_object = Opaque("T")
    assert difference_of(unknown_object, unknown_object) is not None
    assert difference_of([1], [unknown_object]) is not None


def test_objects_of_known_classes_are_compared_field_by_field():
    def node(value, following):
        return Instance("ListNode", {"val": value, "next": following})

    assert difference_of(node(1, node(2, None)), node(1, node(2, None))) is None
    assert difference_of(node(1, None), node(2, None)) is not None


def test_sequences_can_be_told_apart():
    assert difference_of([1], (1,), sequences_alike=False) is not None
    assert difference_of([1], [1], sequences_alike=False) is None


def test_nesting_of_a_hundred_thousand_lists():
    def nest(innermost):
        value = [innermost]
        for _ in range(100_000):
            value = [value]
        return value

    assert difference_of(nest(1), nest(1)) is None
    reason = difference_of(nest(1), nest(2))
    assert reason is not None
    assert reason.endswith("expected 1, got 2")
    assert len(reason) <= 200


def test_reasons_are_short_and_do_not_print_large_numbers():
    assert len(difference_of(["x" * 10**6], ["y" * 10**6])) <= 200
    assert difference_of(1, 10**6000) == "expected 1, got a number of 19932 bits"
    assert len(difference_of({"k" * 10**6: 1}, {})) <= 200


@rows(
    "spec, expected, got, right",
    [
        (None, [1], (1,), True),
        ("values", 1, True, True),
        ("strict", 1, True, False),
        ("strict", [1, 2], [True, 2], False),
        ("strict", 1, 1.0, False),
        ("strict", [1], (1,), False),
        ("strict", [(1, 2.0)], [(1, 2.0)], True),
        (None, 0.0, 5e-7, False),
        (None, 5e-7, 0.0, False),
        (None, 6.67e-11, 0.0, False),
        (None, 0.0, 1e-10, True),
        (None, 1.2246467991473532e-16, 0.0, True),
        (None, 1000000000000000123, 1e18, False),
        (None, 0.5, 0.5000004, True),
        ({"type": "values", "abs_tol": 1e-6}, 0.0, 5e-7, True),
        ({"type": "values", "abs_tol": 0.1}, 1.0, 1.05, True),
        ({"abs_tol": 0, "rel_tol": 0}, 1.0, 1.0000001, False),
        ("unordered", [[1, 2], [3]], [[3], [1, 2]], True),
        ("unordered", [[1, 2], [3]], [[3], [2, 1]], False),
        ("unordered", [1, 2], {2, 1}, True),
        ("unordered", [1, 1, 2], [1, 2, 2], False),
        ("unordered", [0.5, 1.5], [1.5000001, 0.5], True),
        ("unordered", [None, "a", 1, (2,)], [(2,), 1, None, "a"], True),
        ({"unordered_inner": True}, [[1, 2], [3, [4, 5]]], [[[5, 4], 3], [2, 1]], True),
        ({"unordered_inner": True}, [[1, 2]], [[1, 3]], False),
        ({"any_of": True}, [[1, 2], [2, 1]], [2, 1], True),
        ({"any_of": True}, [[1, 2], [2, 1]], [1, 1], False),
        ({"any_of": True}, [], 1, False),
    ],
)
def test_specs(spec, expected, got, right):
    assert (call_checker_of(spec)(expected, got) is None) is right


def test_any_of_says_how_many_were_tried():
    assert call_checker_of({"any_of": True})([1, 2], 3) == "not one of 2 accepted answers; the first: expected 1, got 3"


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ("tokens", "checker must be one of values, strict, unordered, got 'tokens'"),
        ({"type": "values", "unordered": "yes"}, "checker.unordered must be true or false"),
        ({"type": "values", "rel_tol": "small"}, "checker.rel_tol must be a number"),
        ({"type": "values", "tolerance": 1}, "checker.tolerance is not an option"),
    ],
)
def test_a_bad_spec_is_told(spec, text):
    with pytest.raises(BadSuite) as caught:
        read_call_spec(spec, "checker")
    assert text in str(caught.value)


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.tuples(inner, inner)
        | st.dictionaries(st.integers() | st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=12,
)


@given(PLAIN)
def test_every_value_equals_itself(value):
    for spec in ("values", "strict", "unordered", {"unordered_inner": True}):
        assert call_checker_of(spec)(value, value) is None


@given(PLAIN, PLAIN)
def test_without_tolerance_equality_is_pythons(expected, got):
    differs = call_checker_of({"abs_tol": 0, "rel_tol": 0})
    if expected == got:
        assert differs(expected, got) is None
    elif isinstance(expected, bool | int | str) or expected is None:
        assert differs(expected, got) is not None


@given(st.lists(PLAIN, max_size=6), st.randoms(use_true_random=False))
def test_unordered_accepts_every_order(values, random):
    shuffled = values[:]
    random.shuffle(shuffled)
    assert call_checker_of({"unordered": True, "abs_tol": 0, "rel_tol": 0})(values, shuffled) is None
    assert call_checker_of("unordered")(values, [*shuffled, "more"]) is not None
