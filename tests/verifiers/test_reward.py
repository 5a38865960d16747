"""Composing a reward of terms."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from truegold.verifiers import ConfigError, Reason, Term, Verdict, compose
from truegold.verifiers.reward import find_mistakes

FORMAT = Term("format", "format", weight=0.1)
CORRECT = Term("correct", gate="format")
LENGTH = Term("length", "length", offset=-1.0, args={"max": 512}, gate="correct")
THREE = (FORMAT, CORRECT, LENGTH)


def verdicts(*scores: float | None) -> list[Verdict]:
    return [Verdict(score, Reason.MATCH if score else Reason.MISMATCH) for score in scores]


@given(st.one_of(st.none(), st.floats(0, 1)))
def test_one_plain_term_is_the_score_itself(score):
    reward = compose([Term("correct")], verdicts(score))
    assert (reward.value, reward.parts) == (score, {"correct": score})


@pytest.mark.parametrize(
    ("given_verdicts", "message"),
    [
        ({"correct": verdicts(1.0)[0]}, "verdicts must be a list of Verdict; this is dict {'correct'"),
        ([1.0], "must be a Verdict; this is float 1.0"),
        (verdicts(1.0, 1.0), "1 terms and 2 verdicts"),
    ],
)
def test_verdicts_that_are_not_one_for_each_term_are_refused(given_verdicts, message):
    with pytest.raises(ConfigError, match=message):
        compose([Term("correct")], given_verdicts)


def test_weights_and_offsets():
    reward = compose(THREE, verdicts(1.0, 1.0, 0.25))
    assert reward.value == pytest.approx(0.1 + 1.0 - 0.75)
    assert reward.parts == {"format": 0.1, "correct": 1.0, "length": -0.75}
    assert reward.missing == ()


def test_a_gate_that_is_not_passed_closes_all_behind_it():
    assert compose(THREE, verdicts(0.0, 1.0, 0.0)).parts == {"format": 0.0, "correct": 0.0, "length": 0.0}
    assert compose(THREE, verdicts(1.0, 0.0, 0.0)).value == 0.1
    assert compose(THREE, verdicts(1.0, 0.5, 0.0)).parts["length"] == 0.0  # A part of the score is no pass.
    # A gate counts only where its own gate is open: right in bad form does not bring the length back in.
    length_first = (LENGTH, CORRECT, FORMAT)
    assert compose(length_first, verdicts(0.0, 1.0, 0.0)).value == 0.0


def test_what_could_not_be_judged_makes_the_reward_unknown_and_never_0():
    reward = compose(THREE, verdicts(1.0, None, 1.0))
    assert (reward.value, reward.missing) == (None, ("correct",))
    assert reward.parts == {"format": 0.1, "correct": None, "length": None}
    assert compose(THREE, verdicts(None, 1.0, 0.5)).missing == ("format",)
    assert compose(THREE, verdicts(None, None, None)).missing == ("format", "correct", "length")


def test_what_does_not_count_may_be_unknown():
    assert compose(THREE, verdicts(1.0, 0.0, None)).value == 0.1
    assert compose(THREE, verdicts(0.0, None, None)).value == 0.0
    watched = (Term("correct"), Term("style", "exact", weight=0.0))
    assert compose(watched, verdicts(1.0, None)).value == 1.0


def test_an_unknown_gate_of_weight_0_still_matters():
    terms = (Term("seen", "exact", weight=0.0), Term("correct", gate="seen"))
    reward = compose(terms, verdicts(None, 1.0))
    assert (reward.value, reward.missing) == (None, ("seen",))
    assert compose(terms, verdicts(1.0, 1.0)).value == 1.0


def test_the_sum_is_clipped_and_the_parts_are_not():
    reward = compose((Term("a"), Term("b", "exact", weight=-3.0)), verdicts(1.0, 1.0), clip=(-1.0, 1.0))
    assert (reward.value, reward.parts) == (-1.0, {"a": 1.0, "b": -3.0})


@given(
    st.lists(st.tuples(st.one_of(st.none(), st.sampled_from([0.0, 0.5, 1.0])), st.integers(-3, 3), st.integers(0, 9)))
)
def test_the_value_is_the_sum_of_the_parts_or_unknown_with_a_culprit(drawn_terms):
    terms = [Term("first")]
    for index, (_, weight, gate) in enumerate(drawn_terms):
        terms.append(Term(str(index), weight=float(weight), gate=terms[gate % len(terms)].name))
    scores = verdicts(1.0, *(score for score, _, _ in drawn_terms))
    reward = compose(terms, scores)
    assert (reward.value is None) == bool(reward.missing) == (None in reward.parts.values())
    if reward.value is not None:
        assert reward.value == pytest.approx(math.fsum(part for part in reward.parts.values() if part is not None))
    unjudged = {term.name for term, verdict in zip(terms, scores, strict=True) if verdict.score is None}
    assert set(reward.missing) <= unjudged


def test_a_sound_composition_has_no_mistakes():
    assert find_mistakes(THREE) == []
    assert find_mistakes([Term("correct"), Term("price", "numeric", args={"decimals": 2})]) == []


def test_every_mistake_is_told_at_once():
    mistakes = find_mistakes(
        [
            Term("a", "maths", gate="z"),
            Term("a", weight=math.inf),
            Term("b", gate="c"),
            Term("c", gate="b"),
            Term("d", gate="d"),
            Term("e", gate="c"),
            Term(" ", args={"x": 1}),
        ]
    )
    assert len(mistakes) == 8
    text = "\n".join(mistakes)
    for piece in (
        "two terms are named 'a'",
        "Did you mean 'math'?",
        "gate 'z' is not a term",
        "finite",
        "b -> c -> b",
        "d -> d",
        "a term has no name",
        "args need a verifier",
    ):
        assert piece in text
    assert find_mistakes([]) == ["there are no terms"]


@pytest.mark.parametrize(
    "term",
    [
        Term("length", "length", args={"maximum": 100}),
        Term("length", "length", gate="corect", args={"max": 100}),
        Term("correct", "length", args={"max": 100}),
        Term("length", "lenght", args={"max": 100}),
    ],
)
def test_a_mistake_in_a_term_is_an_error_where_it_is_composed(term):
    verdict = Verdict(1.0, Reason.MATCH)
    for _ in range(2):
        with pytest.raises(ConfigError):
            compose([Term("correct"), term], [verdict, verdict])
