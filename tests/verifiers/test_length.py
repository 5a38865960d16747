"""The soft overlong punishment."""

import pickle

from hypothesis import given
from hypothesis import strategies as st
from tables import rows

from truegold.verifiers import LengthVerifier, Reason, resolve
from truegold.verifiers.answers.format import punishment

judge = LengthVerifier()


def test_the_published_setting():
    """DAPO: 16,384 tokens and a buffer of 4,096 more."""
    points = {0: 0.0, 16_384: 0.0, 17_408: -0.25, 18_432: -0.5, 20_480: -1.0, 20_481: -1.0, 10**9: -1.0}
    assert {length: punishment(length, 20_480, 4_096) for length in points} == points
    verdict = judge("", None, info={"max": 20_480, "length": 18_432})
    assert (verdict.score, verdict.reason) == (0.5, Reason.PARTIAL)
    assert verdict.evidence == {"length": 18_432, "unit": "tokens", "max": 20_480, "buffer": 4_096}


@given(st.integers(1, 10**6), st.data())
def test_longer_is_never_better_and_the_score_stays_a_score(longest, data):
    buffer = data.draw(st.integers(0, longest))
    shorter, longer = sorted(data.draw(st.tuples(st.integers(0, 2 * longest), st.integers(0, 2 * longest))))
    scores = [judge("", None, info={"max": longest, "buffer": buffer, "length": n}).score for n in (shorter, longer)]
    assert 0.0 <= scores[1] <= scores[0] <= 1.0
    assert judge("", None, info={"max": longest, "buffer": buffer, "length": longest - buffer}).score == 1.0
    assert judge("", None, info={"max": longest, "buffer": buffer, "length": longest + 1}).score == 0.0


def test_without_a_buffer_the_end_is_hard():
    assert judge("", None, info={"max": 10, "buffer": 0, "length": 10}).reason is Reason.MATCH
    assert judge("", None, info={"max": 10, "buffer": 0, "length": 11}).reason is Reason.MISMATCH


def test_text_is_measured_where_no_length_is_given():
    assert judge("x" * 95, None, info={"max": 100, "buffer": 10}).score == 0.5
    assert judge("one two three", None, info={"max": 3, "buffer": 0, "unit": "words"}).passed
    assert judge("one two three four", None, info={"max": 3, "buffer": 0, "unit": "words"}).score == 0.0
    assert judge("x" * 50, None, info={"max": 100, "length": 7}).evidence["length"] == 7
    assert judge("x" * 50, None, info={"max": 100, "length": 7, "unit": "chars"}).evidence["length"] == 50


@rows(
    "info",
    [
        {},
        {"max": 0},
        {"max": "100"},
        {"max": True},
        {"max": 10, "buffer": 11},
        {"max": 10, "length": -1},
        {"max": 10, "unit": "pages"},
        {"max": 10, "unit": "tokens"},
    ],
)
def test_bad_options_are_no_verdict(info):
    verdict = judge("text", "gold", info=info)
    assert (verdict.score, verdict.reason) == (None, Reason.VERIFIER_ERROR)
    assert verdict.evidence["error"]


def test_it_is_a_built_in_that_travels():
    assert pickle.loads(pickle.dumps(resolve("length"))) == judge
