"""One posterior a row: votes, wordings, doubts, rules and an asked model joined, and what may be dropped by it."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from suspicion_world import assessed, world

from truegold.pipeline.config.stages import Fault
from truegold.pipeline.suspicion.answer_classes import LabelledProblem, Sample
from truegold.pipeline.suspicion.assess import assess
from truegold.pipeline.suspicion.doubts import MOST_EACH, DoubtCounter, finds_lacking
from truegold.pipeline.suspicion.joined import (
    NOTHING_ELSE,
    AskedVerdict,
    Claim,
    Heard,
    IllPosedShares,
    OtherEvidence,
    Shares,
    SuspicionTier,
    choose_tier,
    claim_fault,
    counted_parts,
    expected_shares,
    join,
    rule_ratio,
    shares_of,
)
from truegold.pipeline.suspicion.votes import VoteCounter
from truegold.pipeline.tables.measured_flags import ILL_POSED_RULES, MEASURED

FAULT = str(Fault.MISSING_CONDITION)
NOBODY = IllPosedShares()
"""A file of which nothing is known: a twentieth of its rows is ill-posed."""


def asked(ratio=None, at_least=None, verdict=FAULT):
    """Return a verdict of an asked model; a fault where none is named."""
    outcome = "faulty" if verdict in set(Fault) else verdict
    return AskedVerdict(outcome, verdict, ratio, at_least)


SOUND = asked(0.1, 0.08, "sound")


def joined(votes=None, other=NOTHING_ELSE, wording=0.0, prior=NOBODY):
    """Return the posterior of a row of a source that nothing else is known of."""
    return join(votes, wording, other, "file", prior)


def test_one_source_makes_of_the_prior_what_it_is_worth():
    by_model = joined(other=OtherEvidence(asked=asked(19.0, 10.0)))
    assert by_model.ill_posed == pytest.approx(0.5)  # 19 times 1:19.
    assert (by_model.suspicion, by_model.log_odds) == (by_model.ill_posed, {"prior": -2.94, "model": 2.94})
    by_rule = joined(other=OtherEvidence(rules=frozenset({"no_question"})))
    assert by_rule.ill_posed == pytest.approx(15 / 26)  # 14 of 24 were right, and of a uniform prior one of two.
    assert joined(wording=0.5).ill_posed == pytest.approx(0.5)
    silent = joined(other=OtherEvidence(asked=asked(0.1, 0.08, "sound")))
    assert silent.ill_posed == pytest.approx(0.1 / 19 / (1 + 0.1 / 19), rel=1e-5)


def test_votes_alone_say_what_they_said_before():
    votes = shares_of(0.8, 0.75)
    assert votes == pytest.approx((0.2, 0.2, 0.6))
    for prior in (NOBODY, IllPosedShares(0.3)):
        alone = joined(votes, prior=prior)
        assert (alone.suspicion, alone.ill_posed, alone.label_wrong) == pytest.approx((0.8, 0.2, 0.6))
    by_habit = joined(votes, wording=0.5)
    assert by_habit.suspicion == pytest.approx(0.9)  # Either of two independent faults.
    assert by_habit.ill_posed == pytest.approx(0.6)
    assert by_habit.label_wrong == pytest.approx(0.3)


def test_sources_that_agree_count_the_strongest_in_full_and_the_others_two_thirds():
    both = joined(other=OtherEvidence(frozenset({"no_question"}), asked(4.0, 2.0)))
    log_odds = math.log(15 / 11) + 2 / 3 * math.log(4)
    assert both.ill_posed == pytest.approx(1 / (1 + math.exp(-log_odds)), rel=1e-5)
    assert both.log_odds == {"prior": -2.94, "rules": 3.25, "model": 0.92}
    assert sum(both.log_odds.values()) == pytest.approx(log_odds, abs=0.02)
    against = joined(Shares(0.5, 0.5, 0.0), OtherEvidence(asked=SOUND))
    assert against.ill_posed == pytest.approx(1 / 11, rel=1e-5)  # Of either sign there is one: both count in full.
    votes, model = Shares(0.5, 0.3, 0.2), OtherEvidence(asked=asked(5.0, 3.0))
    text = math.log(0.6) + math.log(19)
    odds = math.exp(text - math.log(19) + 2 / 3 * math.log(5))
    assert joined(votes, model).shares == pytest.approx([1 / (1.4 + odds), odds / (1.4 + odds), 0.4 / (1.4 + odds)])


def test_of_several_rules_the_surest_counts():
    one, two = (
        joined(other=OtherEvidence(rules=frozenset(rules))) for rules in (["missing_figure"], sorted(ILL_POSED_RULES))
    )
    assert one == two
    assert {rule: rule_ratio(rule) > 19 for rule in ILL_POSED_RULES} == dict.fromkeys(ILL_POSED_RULES, True)
    assert set(MEASURED) >= ILL_POSED_RULES


def test_where_nothing_was_looked_at_nothing_is_said():
    assert joined() is None
    for verdict in ("undecided", "refuted", str(Fault.GOLD_OF_OTHER_KIND)):
        assert joined(other=OtherEvidence(asked=asked(verdict=verdict))) is None, "nothing was measured of it"
    assert joined(other=OtherEvidence(asked=asked(1.5, 0.7, "undecided"))) is not None
    problems = [LabelledProblem(name, "7") for name in "abc"]
    told = {"b": OtherEvidence(asked=SOUND), "c": OtherEvidence(frozenset({"no_question"}))}
    _, assessments = assess(problems, VoteCounter(problems).count(), told)
    silent, sound, ruled = assessments
    assert (silent.suspicion, silent.ill_posed, silent.label_wrong, silent.tier) == (None, None, None, "keep")
    assert sound.suspicion < 0.01 and sound.label_wrong is None and sound.tier == "keep"
    assert ruled.suspicion > 0.5 and ruled.label_wrong is None and ruled.tier == "review"
    assert (sound.is_measured, ruled.is_measured) == (True, False)


def test_an_asked_model_that_was_not_measured_is_believed_a_little():
    fault = joined(other=OtherEvidence(asked=asked()))
    assert fault.ill_posed == pytest.approx(5 / 19 / (1 + 5 / 19), rel=1e-5)
    assert joined(other=OtherEvidence(asked=asked(verdict="sound"))).ill_posed < 0.05
    heard = Claim(claim_fault(None, Heard(), asked(), "file", NOBODY), 0.0, asked().claimed_log_ratio() > 0)
    assert heard == Claim(pytest.approx(0.05), 0.0, False)
    assert choose_tier(fault.suspicion, heard, Heard(), is_open=True) == "review"


def test_a_source_whose_verdicts_show_many_faults_has_a_share_of_its_own():
    half = [("bad", asked(20.0, 10.0)), ("bad", SOUND)] * 500
    few = [("good", asked(20.0, 10.0))] + [("good", SOUND)] * 999
    shares = expected_shares([], [*half, *few, ("unmeasured", asked()), ("other", None)], 0.05)
    assert shares.of_file == 0.05
    assert set(shares.by_source) == {"bad", "good"}
    # The likeliest share s solves .5 * 19 / (1 + 19 s) = .5 * .9 / (1 - .9 s).
    assert shares.by_source["bad"] == pytest.approx(0.53, abs=0.02)
    assert shares.by_source["good"] < 0.01
    assert expected_shares([Shares(0.5, 0.5, 0.0)] * 20, [], 0.05).of_file == pytest.approx(0.275)  # 20 rows of each.


LOG = st.floats(-8, 8).map(lambda value: round(value, 3))
PROBABILITY = st.floats(0.001, 0.999)


@settings(max_examples=300)
@given(
    votes=st.none() | st.tuples(PROBABILITY, PROBABILITY).map(lambda pair: shares_of(*pair)),
    wording=st.sampled_from([0.0, 0.12, 0.5]),
    rules=st.frozensets(st.sampled_from(sorted(ILL_POSED_RULES)), min_size=1),
    doubts=st.floats(0.01, 4.0),
    logs=st.tuples(LOG, LOG).map(sorted),
)
def test_the_posterior_rises_with_each_source(votes, wording, rules, doubts, logs):
    def suspicion(**changes):
        known = {"rules": frozenset(), "doubts": (0.0, 0, 0), "asked": asked(math.exp(logs[0]), 0.1)} | changes
        result = joined(votes, OtherEvidence(**known), wording)
        return result.shares.ill_posed, result.suspicion

    less = suspicion()
    assert suspicion(rules=rules) >= less
    assert suspicion(doubts=(doubts, 2, 4)) >= less
    assert suspicion(asked=asked(math.exp(logs[1]), 0.1)) >= less
    if votes is not None:
        more = joined(Shares(votes.sound / 2, votes.ill_posed + votes.sound / 2, votes.mislabeled), wording=wording)
        assert more.shares.ill_posed >= joined(votes, wording=wording).shares.ill_posed


@given(st.lists(LOG, min_size=1, max_size=5), st.randoms())
def test_the_order_of_sources_changes_nothing_and_one_more_takes_nothing_away(logs, random):
    def total(values):
        return sum(part * value for part, value in zip(counted_parts(values), values, strict=True))

    shuffled = random.sample(logs, len(logs))
    assert total(shuffled) == pytest.approx(total(logs), abs=1e-9)
    assert total([*logs, 0.0]) == pytest.approx(total(logs))
    assert total([*logs, 1.0]) >= total(logs)


@settings(max_examples=300)
@given(
    rules=st.frozensets(st.sampled_from(sorted(ILL_POSED_RULES))),
    wording=st.sampled_from([0.0, 0.5]),
    doubts=st.floats(0, 20),
    outcome=st.sampled_from(["none", "faulty", "sound"]),
    is_open=st.booleans(),
)
def test_rules_wordings_doubts_and_an_unmeasured_model_drop_nothing(rules, wording, doubts, outcome, is_open):
    verdict = None if outcome == "none" else asked(verdict=FAULT if outcome == "faulty" else outcome)
    result = joined(None, OtherEvidence(rules, verdict, (doubts, 3, 4)), wording)
    claim = Claim(claim_fault(None, Heard(), verdict, "file", NOBODY), 0.0, False)
    suspicion = 0.0 if result is None else result.suspicion
    assert choose_tier(suspicion, claim, Heard(), is_open=is_open) != "drop"


def test_a_row_that_a_rule_alone_flags_is_never_dropped_in_any_file():
    problems, samples = world()
    told = {problem.id: OtherEvidence(ILL_POSED_RULES) for problem in problems}
    counter = VoteCounter(problems)
    counter.add(sample for sample in samples if sample.system < "s10")
    _, assessments = assess(problems, counter.count(), told)
    assert {entry.tier for entry in assessments} == {SuspicionTier.REVIEW, SuspicionTier.KEEP}
    _, without = assessed(problems, [sample for sample in samples if sample.system < "s10"])
    assert all(entry.tier is not SuspicionTier.DROP for entry in without.values())


FEW, MANY = Heard(2, 2.0), Heard(20, 12.0)
STRONG = Heard(20, 12.0, strong=8, strong_independent=5.0, strong_share=0.2)
SPLIT = Heard(20, 12.0, strong=8, strong_independent=5.0, strong_share=0.4)


@pytest.mark.parametrize(
    ("votes", "verdict", "heard", "tier"),
    [
        # Without enough witnesses votes drop nothing, whatever they say.
        (shares_of(0.99, 0.9), None, FEW, "review"),
        (shares_of(0.99, 0.9), asked(30.0, 20.0), FEW, "review"),
        # The model's word is taken at its lower end: .05 and 400 are .954.
        (None, asked(900.0, 400.0), Heard(), "drop"),
        (None, asked(900.0, 300.0), Heard(), "review"),
        (None, asked(900.0, 400.0, "undecided"), Heard(), "review"),
        # Weak systems: how surely the label is outvoted, and the model beside it.
        (shares_of(0.96, 0.9), None, MANY, "drop"),
        (shares_of(0.9, 0.1), None, MANY, "review"),
        (shares_of(0.9, 0.1), asked(30.0, 10.0), MANY, "drop"),
        (shares_of(0.9, 0.1), asked(30.0, 0.9), MANY, "review"),
        (shares_of(0.9, 0.1), asked(), MANY, "review"),
        (shares_of(0.96, 0.1), SOUND, MANY, "review"),
        # Strong systems that deny the label, or split.
        (shares_of(0.7, 0.5), None, STRONG, "drop"),
        (shares_of(0.5, 0.5), None, STRONG, "review"),
        (shares_of(0.5, 0.5), asked(30.0, 10.0), STRONG, "drop"),
        (shares_of(0.7, 0.1), SOUND, STRONG, "review"),
        (shares_of(0.7, 0.5), None, SPLIT, "review"),
        (shares_of(0.7, 0.5), asked(30.0, 10.0), SPLIT, "review"),
        (shares_of(0.9, 0.1), asked(30.0, 10.0), SPLIT, "drop"),
    ],
)
def test_what_is_dropped(votes, verdict, heard, tier):
    claim = Claim(
        claim_fault(votes, heard, verdict, "file", NOBODY), 0.0, bool(verdict and verdict.claimed_log_ratio() > 0)
    )
    assert choose_tier(0.9, claim, heard, is_open=True) == tier


@pytest.mark.parametrize(
    ("suspicion", "denied", "heard", "is_open", "tier"),
    [
        (0.2, 0.0, Heard(8, 6.0), True, "review"),
        (0.2, 0.0, Heard(8, 6.0), False, "keep"),
        (1.0, 0.89, Heard(8, 6.0), False, "review"),
        (1.0, 0.91, Heard(8, 6.0), False, "drop"),
        (0.99, 1.0, Heard(8, 1.5), False, "review"),
    ],
)
def test_tiers_of_letters_go_by_what_the_file_shows(suspicion, denied, heard, is_open, tier):
    assert choose_tier(suspicion, Claim(0.05, denied, by_model=False), heard, is_open=is_open) == tier


@pytest.mark.parametrize(
    ("strong", "independent", "share", "denies"),
    [
        (8, 5.0, 0.2, True),
        (8, 5.0, 0.4, False),
        (4, 3.0, 0.25, False),
        (4, 3.0, 0.0, True),
        (28, 12.0, 9 / 28, True),
        # Two strong systems, or four copies of one, are too few to go by.
        (2, 2.0, 0.0, False),
        (4, 1.0, 0.0, False),
    ],
)
def test_strong_systems_deny_a_label(strong, independent, share, denies):
    assert Heard(20, 12.0, strong, independent, share).deny_label is denies


@pytest.mark.parametrize(
    "response",
    [
        "The total cannot be determined.",
        "We can't tell how many are left.",
        "There is not enough information to say.",
        "More information is needed.",
        "The problem does not say how long it took.",
        "The question is ambiguous: more than what?",
        "Could you please provide the price of a pen?",
        "Assuming that each box holds ten, it is \\boxed{30}.",
        "We have to assume a price.",
        "由于没有给出单价，无法确定总价。",
        "条件不足，请补充说明。",
        "题目没有给出人数。",
    ],
)
def test_a_response_that_finds_its_problem_lacking_is_known(response):
    assert finds_lacking(response)


@pytest.mark.parametrize(
    "response",
    [
        "Let x be the price, and assume x > 0. So it is \\boxed{4}.",
        "He cannot buy more than 3 pens.",
        "We need 4 more details of the fence, so 4 + 2 = 6.",
        "She does not say goodbye.",
        "Suppose n is even. Then n = 2k.",
        "假设有x个苹果，则x=3。",
        "",
    ],
)
def test_a_step_of_a_solution_is_no_doubt(response):
    assert not finds_lacking(response)


def doubt_ratios(said):
    """Return the ratios of rows by what systems said of them, `{row: [(system, doubts), ...]}`."""
    counter = DoubtCounter(said)
    samples = [Sample(row, system, doubts=doubts) for row, told in said.items() for system, doubts in told]
    assert list(counter.watch(samples)) == samples
    return counter.log_ratios()


def test_doubts_count_against_the_systems_own_habits_and_one_alone_counts_nothing():
    systems = [f"s{n}" for n in range(4)]
    quiet = {str(row): [(system, False) for system in systems] for row in range(50)}
    ratios = doubt_ratios(quiet | {"one": [("s0", True), ("s1", False)], "two": [("s0", True), ("s1", True)]})
    assert ratios["one"] == (0.0, 1, 2)
    assert ratios["two"] == (pytest.approx(math.log(MOST_EACH)), 2, 2)
    assert set(ratios) == {"one", "two"}
    # Eight samples of one system are worth 8 / 4.5.
    again = doubt_ratios(quiet | {"two": [("s0", True)] * 8})
    assert again["two"][0] == pytest.approx(math.log(MOST_EACH) * (8 / 4.5 - 1))
    habit = doubt_ratios({row: [(system, True) for system, _ in told] for row, told in quiet.items()})
    assert {ratio for ratio, _, _ in habit.values()} == {0.0}
    assert doubt_ratios({}) == doubt_ratios(quiet) == {}


def test_the_evidence_of_a_row_says_what_each_source_adds():
    problems, samples = world()
    counter = VoteCounter(problems)
    counter.add(samples)
    other = OtherEvidence(frozenset({"truncated_text"}), asked(8.0, 5.0), (1.5, 3, 20))
    _, assessments = assess(problems, counter.count(), {"0": other})
    first = next(assessments)
    assert set(first.evidence["log_odds"]) == {"prior", "samples", "rules", "model", "doubts"}
    assert first.evidence["asked"] == {"verdict": FAULT, "ratio": 8.0}
    assert (first.evidence["rules"], first.evidence["doubts"]) == (["truncated_text"], [3, 20])
    assert "asked" not in next(assessments).evidence
    json.dumps(first.evidence)
