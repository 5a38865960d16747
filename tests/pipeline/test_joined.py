"""One posterior a row: votes, wordings, doubts, rules and an asked model joined, and what may be dropped by it."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from property_tests import examples
from suspicion_world import assessed, world
from tables import rows

from truegold.pipeline.config.stages import Fault
from truegold.pipeline.suspicion.answer_classes import LabelledProblem, Sample
from truegold.pipeline.suspicion.assess import assess
from truegold.pipeline.suspicion.doubts import MOST_EACH, DoubtCounter, finds_lacking
from truegold.pipeline.suspicion.joined import (
    LEAST_SOUND,
    NOTHING_ELSE,
    UNKNOWN_MODEL,
    AskedVerdict,
    Claim,
    IllPosedShares,
    IllPosedTotal,
    OtherEvidence,
    Shares,
    SuspicionTier,
    Witnesses,
    choose_tier,
    claim_fault,
    counted_parts,
    join,
    rule_ratio,
    shares_of,
    weigh_verdicts,
)
from truegold.pipeline.suspicion.votes import VoteCounter
from truegold.pipeline.tables.measured_flags import ILL_POSED_RULES, MEASURED
from truegold.pipeline.tables.reasons import AskedModel

FAULT = str(Fault.MISSING_CONDITION)
DEFAULT_SHARES = IllPosedShares()
"""The shares of a file about which nothing is known: a twentieth of its rows is ill-posed."""


def asked(ratio=None, at_least=None, verdict=FAULT):
    """Return a verdict of an asked model; a fault where none is named."""
    outcome = "faulty" if verdict in set(Fault) else verdict
    return AskedVerdict(outcome, verdict, ratio, at_least)


SOUND = asked(0.1, 0.08, "sound")
KNOWN = AskedModel(0.05, {"faulty": 180, "sound": 20}, {"faulty": 20, "sound": 180})
"""A model that was measured on 400 known problems, and finds nine tenths of the ill-posed ones."""


def joined(votes=None, other=NOTHING_ELSE, wording=0.0, prior=DEFAULT_SHARES):
    """Return the posterior of a row of a source that nothing else is known of."""
    return join(votes, wording, other, "file", prior)


def test_one_source_makes_of_the_prior_what_it_is_worth():
    by_model = joined(other=OtherEvidence(asked=asked(19.0, 10.0)))
    assert by_model.ill_posed == pytest.approx(0.5)  # 19 times 1:19.
    assert (by_model.suspicion, by_model.log_odds) == (by_model.ill_posed, {"prior": -2.94, "model": 2.94})
    by_rule = joined(other=OtherEvidence(rules=frozenset({"missing_quantity"})))
    assert by_rule.ill_posed == pytest.approx(53 / 70)  # 52 of 68 were right, and of a uniform prior one of two.
    assert joined(wording=0.5).ill_posed == pytest.approx(0.5)
    silent = joined(other=OtherEvidence(asked=asked(0.1, 0.08, "sound")))
    assert silent.ill_posed == pytest.approx(0.1 / 19 / (1 + 0.1 / 19), rel=1e-5)


def test_votes_alone_say_what_they_said_before():
    votes = shares_of(0.8, 0.75)
    assert votes == pytest.approx((0.2, 0.2, 0.6))
    for prior in (DEFAULT_SHARES, IllPosedShares(0.3)):
        alone = joined(votes, prior=prior)
        assert (alone.suspicion, alone.ill_posed, alone.label_wrong) == pytest.approx((0.8, 0.2, 0.6))
    by_habit = joined(votes, wording=0.5)
    assert by_habit.suspicion == pytest.approx(0.9)  # Either of two independent faults.
    assert by_habit.ill_posed == pytest.approx(0.6)
    assert by_habit.label_wrong == pytest.approx(0.3)


def test_sources_that_agree_count_the_strongest_in_full_and_the_others_two_thirds():
    both = joined(other=OtherEvidence(frozenset({"missing_quantity"}), asked(4.0, 2.0)))
    log_odds = math.log(53 / 17) + 2 / 3 * math.log(4)
    assert both.ill_posed == pytest.approx(1 / (1 + math.exp(-log_odds)), rel=1e-5)
    assert both.log_odds == {"prior": -2.94, "rules": 4.08, "model": 0.92}
    assert sum(both.log_odds.values()) == pytest.approx(log_odds, abs=0.02)
    against = joined(Shares(0.5, 0.5, 0.0), OtherEvidence(asked=SOUND))
    assert against.ill_posed == pytest.approx(1 / 11, rel=1e-5)  # Of either sign there is one: both count in full.
    votes, model = Shares(0.5, 0.3, 0.2), OtherEvidence(asked=asked(5.0, 3.0))
    text = math.log(0.6) + math.log(19)
    odds = math.exp(text - math.log(19) + 2 / 3 * math.log(5))
    assert joined(votes, model).shares == pytest.approx([1 / (1.4 + odds), odds / (1.4 + odds), 0.4 / (1.4 + odds)])


def test_of_several_rules_the_surest_counts():
    surest = max(ILL_POSED_RULES, key=rule_ratio)
    one, two = (joined(other=OtherEvidence(rules=frozenset(rules))) for rules in ([surest], sorted(ILL_POSED_RULES)))
    assert one == two
    assert min(rule_ratio(rule) for rule in ILL_POSED_RULES if MEASURED[rule].is_on) >= 18.99
    assert set(MEASURED) >= ILL_POSED_RULES


def test_where_nothing_was_looked_at_nothing_is_said():
    assert joined() is None
    assert joined(other=OtherEvidence(asked=asked())) is None, "it says nothing"
    problems = [LabelledProblem(name, "7") for name in "abc"]
    others = {"b": OtherEvidence(asked=asked(verdict="sound")), "c": OtherEvidence(frozenset({"missing_quantity"}))}
    _, assessments = assess(problems, VoteCounter(problems).count(), others, KNOWN)
    silent, sound, ruled = assessments
    assert (silent.suspicion, silent.ill_posed, silent.label_wrong, silent.tier) == (None, None, None, "keep")
    assert sound.suspicion < 0.04 and sound.label_wrong is None and sound.tier == "keep"
    assert ruled.suspicion > 0.5 and ruled.label_wrong is None and ruled.tier == "review"
    assert (sound.is_measured, ruled.is_measured) == (True, False)


def weigh(verdicts, votes=(), model=UNKNOWN_MODEL, sources=None):
    """Return the verdicts on numbered rows with their worth, and the expected shares."""
    rows = {str(row): verdict for row, verdict in enumerate(verdicts)}
    by_votes = {str(row): shares_of(share, 0.0) for row, share in enumerate(votes)}
    named = {row: sources[int(row)] if sources else "file" for row in rows}
    total = IllPosedTotal(sum(votes), len(votes))
    weighed, expected = weigh_verdicts(rows, named, by_votes, model, total)
    return list(weighed.values()), expected


def test_an_asked_model_that_was_not_measured_is_believed_a_little():
    verdicts = [asked(), *(asked(verdict=name) for name in ("sound", "undecided", str(Fault.GOLD_OF_OTHER_KIND)))]
    (fault, sound, undecided, of_gold), expected = weigh(verdicts)
    # Ten of 20 ill-posed problems and two of 20 sound ones are taken to be accused, with half a problem more each.
    assert fault.ratio == pytest.approx(10.5 / 2.5)
    assert sound.ratio == pytest.approx(10.5 / 18.5)
    assert undecided.ratio is None and of_gold.ratio is None
    assert expected == IllPosedShares(0.05, {})
    result = joined(other=OtherEvidence(asked=fault))
    assert result.ill_posed == pytest.approx(4.2 / 19 / (1 + 4.2 / 19), rel=1e-5)
    claim = Claim(claim_fault(None, Witnesses(), fault, "file", DEFAULT_SHARES), 0.0, fault.claimed_log_ratio > 0)
    assert claim == Claim(pytest.approx(0.05), 0.0, False)
    assert choose_tier(result.suspicion, claim, Witnesses(), is_open=True) == "review"


def test_known_problems_measure_a_model_and_its_silence_clears_little():
    (fault, sound, *_), _ = weigh([asked(), *[asked(verdict="sound")] * 9], model=KNOWN)
    assert fault.ratio == pytest.approx(180.5 / 20.5, rel=0.05)
    assert fault.at_least < fault.ratio and fault.claimed_log_ratio == math.log(fault.at_least)
    assert sound.ratio == LEAST_SOUND == pytest.approx(5 / 9)
    (gold,), _ = weigh([asked(verdict=str(Fault.GOLD_OF_OTHER_KIND))], model=KNOWN)
    assert gold.ratio is None and gold.claimed_log_ratio == 0.0


def test_the_file_shows_how_seldom_a_model_accuses_sound_rows():
    rows = [asked()] * 20 + [asked(verdict="sound")] * 980
    votes = [0.6] * 20 + [0.03] * 980
    for model in (KNOWN, UNKNOWN_MODEL):
        with_votes, expected = weigh(rows, votes, model)
        assert with_votes[0].ratio > 40
        assert expected.by_source["file"] == pytest.approx(expected.of_file)
    assert weigh(rows, (), KNOWN)[0][0].ratio > weigh(rows[:20], (), KNOWN)[0][0].ratio
    # Of a model that nothing has measured the number of its findings tells nothing.
    assert weigh(rows)[0][0].ratio == pytest.approx(4.2)
    # A model that accuses what votes find sound is worth nothing.
    at_random = [asked() if row % 5 == 0 else asked(verdict="sound") for row in range(1000)]
    assert weigh(at_random, [0.001] * 900 + [0.9] * 100, KNOWN)[0][0].ratio < 2


def test_a_source_whose_verdicts_show_many_faults_has_a_share_of_its_own():
    half = [asked(), asked(verdict="sound")] * 500
    few = [asked()] + [asked(verdict="sound")] * 999
    _, expected = weigh([*half, *few], model=KNOWN, sources=["bad"] * 1000 + ["good"] * 1000)
    assert expected.of_file == expected.by_source["good"] == 0.05
    assert expected.by_source["bad"] > 0.3
    mixed, expected = weigh([*half, *few], model=KNOWN, sources=["bad"] * 1000 + ["good"] * 1000)
    faulty, sound = (join(None, 0.0, OtherEvidence(asked=verdict), "bad", expected).suspicion for verdict in mixed[:2])
    assert faulty > 0.8 and sound < 0.15, "a source of many faults is no reason to suspect its other rows"
    _, expected = weigh([], [0.5] * 20)
    assert expected == IllPosedShares(pytest.approx(0.275), {})  # Twenty rows of each.


LOG = st.floats(-8, 8).map(lambda value: round(value, 3))
PROBABILITY = st.floats(0.001, 0.999)


@settings(max_examples=examples(300))
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


@settings(max_examples=examples(300))
@given(
    rules=st.frozensets(st.sampled_from(sorted(ILL_POSED_RULES))),
    wording=st.sampled_from([0.0, 0.5]),
    doubts=st.floats(0, 20),
    outcome=st.sampled_from(["none", "faulty", "sound"]),
    ratio=st.floats(0.01, 1e6),
    is_open=st.booleans(),
)
def test_rules_wordings_doubts_and_an_unmeasured_model_drop_nothing(rules, wording, doubts, outcome, ratio, is_open):
    verdict = None if outcome == "none" else asked(ratio, verdict=FAULT if outcome == "faulty" else outcome)
    result = joined(None, OtherEvidence(rules, verdict, (doubts, 3, 4)), wording)
    claim = Claim(claim_fault(None, Witnesses(), verdict, "file", DEFAULT_SHARES), 0.0, False)
    suspicion = 0.0 if result is None else result.suspicion
    assert choose_tier(suspicion, claim, Witnesses(), is_open=is_open) != "drop"


def test_a_row_that_a_rule_alone_flags_is_never_dropped_in_any_file():
    problems, samples = world()
    told = {problem.id: OtherEvidence(ILL_POSED_RULES) for problem in problems}
    counter = VoteCounter(problems)
    counter.add(sample for sample in samples if sample.system < "s10")
    _, assessments = assess(problems, counter.count(), told)
    assert {entry.tier for entry in assessments} == {SuspicionTier.REVIEW, SuspicionTier.KEEP}
    _, without = assessed(problems, [sample for sample in samples if sample.system < "s10"])
    assert all(entry.tier is not SuspicionTier.DROP for entry in without.values())


FEW, MANY = Witnesses(2, 2.0), Witnesses(20, 12.0)
STRONG = Witnesses(20, 12.0, strong=8, strong_independent=5.0, strong_share=0.2)
SPLIT = Witnesses(20, 12.0, strong=8, strong_independent=5.0, strong_share=0.4)


@rows(
    "votes, verdict, witnesses, tier",
    [
        # Without enough witnesses votes drop nothing, whatever they say.
        (shares_of(0.99, 0.9), None, FEW, "review"),
        (shares_of(0.99, 0.9), asked(30.0, 20.0), FEW, "review"),
        # The model's word is taken at its lower end: .05 and 400 are .954.
        (None, asked(900.0, 400.0), Witnesses(), "drop"),
        (None, asked(900.0, 300.0), Witnesses(), "review"),
        (None, asked(900.0, 400.0, "undecided"), Witnesses(), "review"),
        # Weak systems: how surely the label is outvoted, and the model beside it.
        (shares_of(0.96, 0.9), None, MANY, "drop"),
        (shares_of(0.9, 0.1), None, MANY, "review"),
        (shares_of(0.9, 0.1), asked(30.0, 10.0), MANY, "drop"),
        (shares_of(0.9, 0.1), asked(30.0, 0.9), MANY, "review"),
        (shares_of(0.9, 0.1), asked(30.0), MANY, "review"),
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
def test_what_is_dropped(votes, verdict, witnesses, tier):
    claim = Claim(
        claim_fault(votes, witnesses, verdict, "file", DEFAULT_SHARES),
        0.0,
        bool(verdict and verdict.claimed_log_ratio > 0),
    )
    assert choose_tier(0.9, claim, witnesses, is_open=True) == tier


@pytest.mark.parametrize(
    ("suspicion", "denied", "witnesses", "is_open", "tier"),
    [
        (0.2, 0.0, Witnesses(8, 6.0), True, "review"),
        (0.2, 0.0, Witnesses(8, 6.0), False, "keep"),
        (1.0, 0.89, Witnesses(8, 6.0), False, "review"),
        (1.0, 0.91, Witnesses(8, 6.0), False, "drop"),
        (0.99, 1.0, Witnesses(8, 1.5), False, "review"),
    ],
)
def test_tiers_of_letters_go_by_what_the_file_shows(suspicion, denied, witnesses, is_open, tier):
    assert choose_tier(suspicion, Claim(0.05, denied, by_model=False), witnesses, is_open=is_open) == tier


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
    assert Witnesses(20, 12.0, strong, independent, share).deny_label is denies


@rows(
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
    rows = list(said)
    counter = DoubtCounter({row: number for number, row in enumerate(rows)})
    samples = [Sample(row, system, doubts=doubts) for row, told in said.items() for system, doubts in told]
    assert list(counter.watch(samples)) == samples
    return {rows[number]: ratio for number, ratio in counter.log_ratios().items()}


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
    other = OtherEvidence(frozenset({"missing_quantity"}), asked(), (1.5, 3, 20))
    _, assessments = assess(problems, counter.count(), {"0": other}, KNOWN)
    first = next(assessments)
    assert set(first.evidence["log_odds"]) == {"prior", "samples", "rules", "model", "doubts"}
    assert first.evidence["asked"] == {"verdict": FAULT, "ratio": pytest.approx(180.5 / 20.5, rel=0.05)}
    assert (first.evidence["rules"], first.evidence["doubts"]) == (["missing_quantity"], [3, 20])
    assert "asked" not in next(assessments).evidence
    json.dumps(first.evidence)
