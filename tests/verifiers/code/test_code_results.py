"""Results of calls: what reads as expected counts as that, and lines that were cut otherwise do not."""

import pytest

from truegold.verifiers.code.outcomes import Raised
from truegold.verifiers.code.protocols.python_tests import ExpectedResults, NotReturned, read_results
from truegold.verifiers.sandbox.execution import Execution, Limits, ProgramEnd


def read_outcomes(lines, expected, call_count=None):
    text = b"".join(line + b"\n" for line in [b'{"loaded":true}', *lines])
    execution = Execution(ProgramEnd.EXITED, 0, b"", b"", 0.0, 0.0, result=text)
    return read_results(execution, call_count or len(expected), {}, Limits(), ExpectedResults(expected)).outcomes


def test_results_that_read_as_expected_are_the_expected_ones():
    expected = [1, "a,b", [1.5, None], {"k": [True]}]
    lines = [b'{"r":1}', b'{"r":"a,b"}', b'{"r":[1.5,null]}', b'{"r":{"k":[true]}}']
    assert all(got is value for got, value in zip(read_outcomes(lines, expected), expected, strict=True))


def test_one_other_result_is_read_as_it_is():
    assert read_outcomes([b'{"r":1}', b'{"r":2.0}', b'{"r":3}'], [1, 2, 3]) == [1, 2.0, 3]
    assert type(read_outcomes([b'{"r":1}', b'{"r":2.0}'], [1, 2])[1]) is float
    assert read_outcomes([b'{"r":1}', b'{"r":4}'], [1, 2]) == [1, 4]


def test_a_call_that_raised_or_is_missing_is_never_the_expected_value():
    got = read_outcomes([b'{"r":1}', b'{"raised":["ValueError","no",3]}'], [1, 2])
    assert got[0] == 1 and isinstance(got[1], Raised)
    assert isinstance(read_outcomes([b'{"r":1}'], [1, 2])[1], NotReturned)


@pytest.mark.parametrize(
    "lines",
    [
        [b'{"r":1,2}', b"", b""],
        [b'{"r":[1}', b'{"r":2],3}'],
        [b"", b'{"r":1,2}'],
        [b'{"r":1}{"r":2}'],
    ],
)
def test_lines_that_are_no_results_pay_nothing_they_do_not_say(lines):
    expected = [1, 2, 3]
    assert read_outcomes(lines, expected, call_count=3) != expected


def test_room_grows_with_what_is_expected():
    small, large = ExpectedResults([1]), ExpectedResults([["x" * 1000] * 1000])
    assert large.max_bytes > 2_000_000 and large.max_parts > 2_000 > small.max_bytes
