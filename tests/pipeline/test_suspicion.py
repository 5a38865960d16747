"""Tests of suspicion from samples: hard or mislabeled, how little one model knows, and the tiers."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from property_tests import examples
from suspicion_world import N_ITEMS, RATES, assessed, world
from tables import rows

from truegold.pipeline.suspicion.answer_classes import (
    AnswerForm,
    LabelledProblem,
    Sample,
    classify,
    differ_for_certain,
    has_open_answer,
    is_cut_short,
    key_of,
)
from truegold.pipeline.suspicion.assess import DURATION, MULTIPLE, SAME_SOURCE, several_readings, with_neighbours
from truegold.pipeline.suspicion.joined import SuspicionTier
from truegold.pipeline.suspicion.label_posterior import Population, pooled_fault
from truegold.pipeline.suspicion.rasch_model import fit as fit_ability
from truegold.pipeline.suspicion.votes import VoteCounter, split_by_step


def mislabeled(rate, rng):
    """The true answer is 9: able systems find it."""
    return "9" if rng.random() < rate else str(rng.integers(200, 400))


def hard(rate, rng):
    """The label is right, and only the strongest get it; errors scatter."""
    return "7" if rate > 0.9 else str(rng.integers(200, 400))


def trap(rate, rng):
    """The label is right; systems that are not strong fall for one wrong answer."""
    return "7" if rate > 0.8 else "9"


def ambiguous(rate, rng):
    """Both answers are right: able systems give either."""
    return "9" if rng.random() < 0.5 else "7"


def test_a_wrong_label_is_told_from_a_hard_item_and_from_a_trap():
    _, assessments = assessed(*world({0: mislabeled, 1: hard, 2: trap, 3: ambiguous}))
    assert assessments["0"].suspicion > 0.9
    assert assessments["0"].suggestion == "9"
    assert assessments["1"].suspicion < 0.2
    assert assessments["2"].suspicion < assessments["3"].suspicion < assessments["0"].suspicion
    assert assessments["1"].tier is not SuspicionTier.DROP
    assert assessments["2"].tier is not SuspicionTier.DROP


def test_intact_items_are_kept():
    _, assessments = assessed(*world())
    suspicions = np.array([entry.suspicion for entry in assessments.values()])
    assert np.mean([entry.tier is SuspicionTier.KEEP for entry in assessments.values()]) > 0.97
    assert suspicions.mean() < 0.05


def test_only_strong_witnesses_make_an_item_drop():
    special = {0: mislabeled}
    many_strong = {f"a{n}": 0.97 for n in range(9)} | RATES
    few_strong = {name: rate for name, rate in RATES.items() if rate < 0.85}
    _, assessments = assessed(*world(special, many_strong))
    assert assessments["0"].tier is SuspicionTier.DROP
    _, assessments = assessed(*world(special, few_strong))
    assert assessments["0"].tier is not SuspicionTier.DROP


def test_one_model_with_many_samples_never_drops_and_says_how_little_it_is():
    problems, once = world({0: lambda rate, rng: "9"}, {"only": 0.6})
    _, assessments = assessed(problems, [sample for sample in once for _ in range(8)])
    assert assessments["0"].tier is not SuspicionTier.DROP
    assert assessments["0"].evidence["systems"] == 1
    assert assessments["0"].evidence["samples"] == 8
    assert assessments["0"].evidence["independent"] == 1.0
    others = [entry.suspicion for key, entry in assessments.items() if entry.evidence["passes"]["strong"][0] == 8]
    assert assessments["0"].suspicion > max(others)


def test_abilities_are_found_in_order():
    fit, _ = assessed(*world())
    assert np.corrcoef(fit.ability.theta, list(RATES.values()))[0, 1] > 0.9
    assert np.all(np.diff(fit.ability.theta[::4]) > 0)


def test_the_order_of_samples_changes_nothing():
    problems, samples = world({0: mislabeled, 3: ambiguous})
    _, first = assessed(problems, samples)
    shuffled = [samples[index] for index in np.random.default_rng(1).permutation(len(samples))]
    _, second = assessed(problems, shuffled)
    assert first == second


def test_evidence_counts_what_was_given():
    problems = [LabelledProblem("a", "1/2"), LabelledProblem("b", "3")]
    answers = [("x", "0.5"), ("y", "\\frac12"), ("z", "5"), ("w", "5.0"), ("v", "8")]
    _, assessments = assessed(problems, [Sample("a", system, answer=answer) for system, answer in answers])
    evidence = assessments["a"].evidence
    assert evidence["alternative"] == "5"
    assert evidence["wrong_agreement"] == 0.6667
    assert evidence["entropy"] == 1.5219  # The shares are 0.4, 0.4 and 0.2.
    assert sum(n for _, n in evidence["passes"].values()) == 5
    assert sum(passed for passed, _ in evidence["passes"].values()) == 2
    assert assessments["b"].suspicion is None
    assert assessments["b"].tier is SuspicionTier.KEEP
    assert assessments["b"].evidence["samples"] == 0


def test_what_could_not_be_judged_is_counted_and_says_nothing():
    problems = [LabelledProblem("a", "7")]
    samples = [Sample("a", f"s{n}", answer="9", score=None, judged=True) for n in range(5)]
    _, assessments = assessed(problems, [*samples, Sample("a", "t", answer="7", score=1.0, judged=True)])
    assert assessments["a"].evidence["unjudged"] == 5
    assert assessments["a"].evidence["samples"] == 1
    assert assessments["a"].suspicion == pytest.approx(0.0, abs=1e-9)


def test_whole_responses_are_judged_and_their_answers_vote():
    problems = [LabelledProblem("a", "7")]
    responses = ["So it is \\boxed{9}.", "The answer is \\boxed{9.0}", "\\boxed{7}"]
    _, assessments = assessed(problems, [Sample("a", f"s{n}", response=text) for n, text in enumerate(responses)])
    assert assessments["a"].evidence["alternative"] in ("9", "9.0")
    assert assessments["a"].evidence["wrong_agreement"] == 1.0


@pytest.mark.parametrize(
    ("problems", "samples"),
    [([], []), ([LabelledProblem("a", "1")], []), ([LabelledProblem("a", None)], [Sample("a", "s", answer="1")])],
    ids=["nothing", "no samples", "no gold"],
)
def test_empty_inputs_give_no_suspicion(problems, samples):
    _, assessments = assessed(problems, samples)
    assert all(entry.suspicion is None and entry.tier is SuspicionTier.KEEP for entry in assessments.values())


def test_samples_of_unknown_items_are_counted():
    counter = VoteCounter([LabelledProblem("a", "1")])
    counter.add([Sample("z", "s", answer="1"), Sample("a", "s", answer=" "), Sample("a", "s", answer="1")])
    votes = counter.count()
    assert votes.unknown_items == 1
    assert votes.samples.sum() == 1


def test_a_second_count_does_not_double_the_answers():
    counter = VoteCounter([LabelledProblem("a", "1")])
    for samples in (1, 2):
        counter.add([Sample("a", "s", answer="1")])
        for _ in range(2):
            assert [entry.votes for entry in counter.answers(counter.count())] == [samples]


def test_answers_vote_by_meaning_and_each_pair_is_asked_within_a_budget():
    forms = [AnswerForm("0.5", 1), AnswerForm("3/4", 2), AnswerForm("0.75", 3), AnswerForm("x", 1)]
    assert classify(LabelledProblem("a", "1/2"), forms) == ([0, 1, 1, 2], ["0.75", "x"])
    many, _ = classify(LabelledProblem("a", "1/2"), [AnswerForm(f"{n}/7", 1) for n in range(2, 400)])
    assert len(many) == 398


@pytest.mark.parametrize(
    ("left", "right", "same", "differ"),
    [
        ("1,250", "1250", True, False),
        ("18.0", "18", True, False),
        ("18", "19", False, True),
        ("A", "(b)", False, True),
        ("1 1/2", "11/2", False, False),
        ("5²", "52", False, False),
        ("0.5", "1/2", False, False),
    ],
)
def test_what_is_certain_without_a_verifier(left, right, same, differ):
    assert (key_of(left) == key_of(right)) is same
    assert differ_for_certain(left, right) is differ


def test_letters_and_yes_no_are_closed():
    assert not has_open_answer(LabelledProblem("a", "C"))
    assert not has_open_answer(LabelledProblem("a", "Yes"))
    assert not has_open_answer(LabelledProblem("a", "4", verifier="choice"))
    assert has_open_answer(LabelledProblem("a", "18"))


@rows(
    "prompt, probability",
    [
        ("Kim is three times older than Leo.", MULTIPLE),
        ("She sold 2 times more cakes than he did.", MULTIPLE),
        ("Ten times fewer visitors came.", MULTIPLE),
        ("It uses 1.5 times less water.", MULTIPLE),
        ("Five times MORE ants than bees", MULTIPLE),
        ("He picked three times as many apples.", 0.0),
        ("She threw it two more times.", 0.0),
        ("He trains 3 times more often.", 0.0),
        ("Most times more people come.", 0.0),
        ("Kim is 3 years older than Leo.", 0.0),
        ("He reads 15 minutes a day and an hour on Sunday. How long does he read in all?", DURATION),
        ("A hose fills 20 gallons a minute. How much time does it take to fill 300 gallons?", DURATION),
        ("A hose fills 20 gallons a minute. How long, in hours, does it take to fill the pool?", 0.0),
        ("It takes 15 minutes a day. How long is that a week, in minutes?", 0.0),
        ("The rope was cut in half. How long is each piece?", 0.0),
        ("How many minutes does it take?", 0.0),
        ("小明的年龄是小红的3倍。", 0.0),
        ("", 0.0),
        (None, 0.0),
    ],
)
def test_wordings_with_several_readings(prompt, probability):
    assert several_readings(prompt) == probability


def test_a_wording_with_several_readings_goes_to_review_and_is_never_dropped_for_that():
    problems, samples = world({0: mislabeled})
    text = "Kim is three times older than Leo. How old is Kim?"
    problems[0], problems[1] = (LabelledProblem(str(index), "7", text) for index in range(2))
    before = assessed(*world({0: mislabeled}))[1]["0"]
    _, assessments = assessed(problems, samples)
    assert assessments["0"].tier is before.tier
    assert assessments["1"].tier is SuspicionTier.REVIEW
    assert assessments["1"].suspicion == pytest.approx(MULTIPLE, abs=0.1)
    assert assessments["1"].evidence["log_odds"]["wording"] > 2


def test_an_ill_posed_problem_is_told_from_a_mislabeled_and_from_a_hard_one():
    strong = {f"a{n}": 0.97 for n in range(12)} | RATES
    _, assessments = assessed(*world({0: mislabeled, 1: hard, 3: ambiguous}, strong))
    assert assessments["3"].ill_posed > 0.4
    assert assessments["0"].ill_posed < assessments["3"].ill_posed / 2
    assert assessments["1"].ill_posed < assessments["3"].ill_posed / 2
    assert assessments["0"].label_wrong > 0.5 > assessments["3"].label_wrong


def letters(share, systems, trapped=0.01, seed=0):
    """Questions with four options, answered by as many systems; a share of the labels is replaced.

    On `trapped` of them all systems choose one wrong option, and on as many all but one.
    """
    rng = np.random.default_rng(seed)
    problems, samples, wrong = [], [], set()
    for index in range(1500):
        label = "A"
        if rng.random() < share:
            label = rng.choice(list("BCD"))
            wrong.add(str(index))
        problems.append(LabelledProblem(str(index), label, verifier="choice"))
        trap, difficulty = rng.random(), rng.normal(0, 0.5)
        for system in range(systems):
            if trap < trapped or (trap < 2 * trapped and system):
                answer = "B"
            else:
                answer = "A" if rng.random() < 1 / (1 + np.exp(difficulty - 4.0)) else rng.choice(list("BCD"))
            samples.append(Sample(str(index), f"s{system:02d}", answer=answer))
    return problems, samples, wrong


@pytest.mark.parametrize(("share", "systems", "drops"), [(0.02, 10, False), (0.3, 10, True), (0.3, 2, False)])
def test_letters_are_dropped_where_the_file_shows_that_unanimous_systems_are_right(share, systems, drops):
    problems, samples, wrong = letters(share, systems)
    _, assessments = assessed(problems, samples)
    dropped = {key for key, entry in assessments.items() if entry.tier is SuspicionTier.DROP}
    assert len(dropped & wrong) >= (0.25 * len(wrong) if drops else 0)
    assert bool(dropped) is drops
    assert len(dropped - wrong) <= 0.05 * len(dropped)


def test_copies_of_one_model_drop_no_letters():
    problems, samples, _ = letters(0.0, 1, trapped=0.2)
    copies = [Sample(s.id, f"copy{n}", answer=s.answer) for s in samples for n in range(8)]
    _, assessments = assessed(problems, copies)
    assert all(entry.tier is not SuspicionTier.DROP for entry in assessments.values())


def noisy_world(share, systems=RATES, seed=3):
    """Items of which a share has its label replaced: the items, the samples, and which labels are wrong."""
    problems, samples = world(systems=systems, seed=seed)
    rng = np.random.default_rng(seed)
    wrong = {item.id for item in problems if rng.random() < share}
    return [LabelledProblem(item.id, "8" if item.id in wrong else "7") for item in problems], samples, wrong


@pytest.mark.parametrize("share", [0.05, 0.1, 0.3])
def test_strength_is_known_and_labels_are_dropped_however_noisy_the_labels_are(share):
    problems, samples, wrong = noisy_world(share)
    fit, assessments = assessed(problems, samples)
    dropped = {key for key, entry in assessments.items() if entry.tier is SuspicionTier.DROP}
    assert len(dropped - wrong) <= len(dropped) / 40
    assert len(dropped) >= len(wrong) / 2
    assert fit.agreement.max() < 1 - share / 2  # By the labels the best look weak.
    assert fit.strength.max() > 0.93
    assert fit.learnt.population.prior[-1] == pytest.approx(len(wrong) / len(problems), abs=0.03)


def test_weak_systems_alone_drop_no_right_label():
    weak = {name: rate for name, rate in RATES.items() if rate < 0.6}
    problems, samples, wrong = noisy_world(0.1, weak)
    _, assessments = assessed(problems, samples)
    assert {key for key, entry in assessments.items() if entry.tier is SuspicionTier.DROP} <= wrong


def test_systems_that_share_errors_count_for_fewer_and_copies_as_one():
    problems, samples = world()
    shared = [Sample(s.id, "twin", answer=s.answer) for s in samples if s.system == "s04"]
    fit, _ = assessed(problems, samples + shared)
    weights = dict(zip(sorted([*RATES, "twin"]), fit.learnt.system_weight, strict=True))
    assert weights["twin"] == weights["s04"] == pytest.approx(0.5, abs=0.02)
    assert min(weight for name, weight in weights.items() if name not in ("twin", "s04")) > 0.9
    one = [s for s in samples if s.system == "s06"]
    copies = [Sample(s.id, f"copy{n}", answer=s.answer) for s in one for n in range(8)]
    other = [s for s in samples if s.system == "s10"]
    fit, assessments = assessed(problems, copies + other)
    assert fit.learnt.system_weight[:8] == pytest.approx(1 / 8)
    assert all(entry.tier is not SuspicionTier.DROP for entry in assessments.values())


def test_near_copies_of_a_weak_model_do_not_outvote_labels_that_an_abler_stranger_agrees_with():
    problems, samples = world(systems=RATES | {"stranger": 0.97})
    rng = np.random.default_rng(0)
    weak = {s.id: s.answer for s in samples if s.system == "s06"}
    copies = [
        Sample(key, f"run{n}", answer=answer if rng.random() < 0.95 else str(rng.integers(300, 400)))
        for key, answer in weak.items()
        for n in range(8)
    ]
    stranger = [s for s in samples if s.system == "stranger"]
    fit, assessments = assessed(problems, copies + stranger)
    assert all(entry.tier is not SuspicionTier.DROP for entry in assessments.values())
    assert fit.wrong_labels < 0.06
    assert fit.strength[-1] > fit.strength[0]


@rows(
    "answer, gold",
    [
        ("1", "1,800"),
        ("800", "1800"),
        ("$1", "$1,800.00"),
        ("1,430", "1,430,000"),
        ("2", "2.75"),
        ("75", "2.75"),
        ("3", "3/4"),
        ("7", "7:30"),
        ("5", "5 feet 3 inches"),
    ],
)
def test_an_answer_that_extraction_cut_short_is_no_vote(answer, gold):
    assert is_cut_short(answer, gold)


@pytest.mark.parametrize(
    ("answer", "gold"),
    [("18", "180"), ("1800", "1"), ("106.12", "106"), ("8", "18"), ("27", "54"), ("1800", "1800.00"), ("x", "x+1")],
)
def test_another_answer_is_not_taken_for_a_cut_one(answer, gold):
    assert not is_cut_short(answer, gold)


@settings(max_examples=examples(200))
@given(st.text(max_size=30), st.text(max_size=30))
def test_any_texts_can_be_asked_whether_one_is_a_part(answer, gold):
    assert is_cut_short(answer, gold) in (True, False)


def test_an_item_whose_answers_look_cut_goes_to_review_and_says_so():
    problems, samples = world()
    problems[0] = LabelledProblem("0", "1,800")
    samples = [Sample("0", s.system, answer="1") if s.id == "0" else s for s in samples]
    _, assessments = assessed(problems, samples)
    assert assessments["0"].tier is SuspicionTier.REVIEW
    assert assessments["0"].evidence["cut_short"] == len(RATES)


def test_the_abler_systems_are_heard_apart_and_few_systems_are_read_once():
    everybody = {f"w{n:02d}": 0.5 for n in range(30)} | {f"s{n:02d}": 0.97 for n in range(20)}
    pooled = {}
    for name, systems in (("many", everybody), ("few", {f"s{n:02d}": 0.97 for n in range(20)})):
        problems, samples = world({0: trap, 1: mislabeled}, systems)
        counter = VoteCounter(problems)
        counter.add(samples)
        votes = counter.count()
        no_text = np.zeros((votes.n_items, 1))
        shape = (votes.n_items, len(votes.systems))
        right, seen = np.zeros(shape), np.zeros(shape)
        seen[votes.item, votes.system] = 1.0
        right[votes.item, votes.system] = votes.answer_class == 0
        ability = fit_ability(right, seen, no_text)
        fault = np.full(votes.n_items, 0.3)
        pooled[name] = pooled_fault(fault, votes, Population(ability), no_text)
    assert np.array_equal(pooled["few"], np.full(N_ITEMS, 0.3))
    assert pooled["many"][0] < 0.2  # The able systems all read the label.
    assert pooled["many"][1] > 0.6


def test_neighbours_raise_a_run_of_bad_labels_and_leave_an_even_file_alone():
    rng = np.random.default_rng(0)
    calm = rng.choice([0.01, 0.02, 0.6], size=1000, p=[0.6, 0.37, 0.03])
    left_alone, half_width = with_neighbours(calm)
    assert half_width == 0
    assert np.array_equal(left_alone, calm)
    run = calm.copy()
    run[400:430] = 0.9
    run[415] = 0.3
    suspicion, half_width = with_neighbours(run)
    assert half_width > 0
    assert suspicion[415] > 0.8
    assert suspicion[100] < 0.02


def test_the_rate_of_a_source_is_learnt_where_its_rows_are_scattered():
    rng = np.random.default_rng(0)
    sources = rng.choice(["clean", "noisy"], size=1000)
    rate = np.where(sources == "noisy", 0.4, 0.01)
    suspicions = np.where(rng.random(1000) < rate, 0.6, 0.03)
    suspicion, half_width = with_neighbours(suspicions, list(sources))
    assert half_width == SAME_SOURCE
    assert suspicion[(sources == "noisy") & (suspicions == 0.6)].min() > 0.7
    assert suspicion[(sources == "clean") & (suspicions == 0.6)].max() < 0.3
    even, half_width = with_neighbours(suspicions, list(rng.permutation(sources)))
    assert half_width == 0
    assert np.array_equal(even, suspicions)


@settings(max_examples=30)
@given(
    st.lists(
        st.tuples(st.integers(0, 4), st.sampled_from("abc"), st.sampled_from(["1", "2", "3", "x", "1/2", "是", ""])),
        max_size=40,
    )
)
def test_any_votes_give_probabilities(votes):
    problems = [LabelledProblem(str(index), "1") for index in range(5)]
    _, assessments = assessed(problems, [Sample(str(item), system, answer=answer) for item, system, answer in votes])
    for entry in assessments.values():
        assert entry.suspicion is None or 0.0 <= entry.suspicion <= 1.0
        json.dumps(entry.evidence)


def training(label_rises):
    """One policy at 40 steps, four samples an item; on item 0 the label rises or falls as it learns."""
    rng = np.random.default_rng(0)
    samples = []
    for index in range(60):
        for step in range(40):
            solves = rng.random() < 0.3 + 0.6 * step / 40
            if index == 0:
                answer = "7" if solves == label_rises else "9"
            else:
                answer = "7" if solves else str(rng.integers(100, 120))
            samples.append(Sample(str(index), "policy", answer=answer, step=step))
    return [LabelledProblem(str(index), "7") for index in range(60)], samples


def test_an_answer_that_rises_in_training_while_the_label_falls_is_suspicious():
    rising, falling = (assessed(*training(label_rises))[1]["0"] for label_rises in (True, False))
    assert falling.suspicion > 2 * rising.suspicion
    assert falling.evidence["history"]["label"][0] > falling.evidence["history"]["label"][1]
    assert falling.evidence["history"]["alternative"][1] > 0.6


def test_checkpoints_of_one_model_are_one_witness_with_abilities_of_their_own():
    fit, assessments = assessed(*training(label_rises=False))
    assert np.all(np.diff(fit.ability.theta) > 0)
    assert len(fit.ability.theta) == 4
    assert assessments["0"].evidence["systems"] == 1
    assert assessments["0"].tier is not SuspicionTier.DROP
    assert fit.wrong_labels is None


def test_steps_are_joined_into_checkpoints_of_about_equal_size():
    model = np.array([0] * 8 + [1] * 2, dtype=np.int32)
    step = np.array([0, 1, 2, 3, 4, 5, 6, 7, -1, -1], dtype=np.int32)
    names, family, system = split_by_step(["policy", "other"], model, step)
    assert names == ["other", "policy@0-1", "policy@2-3", "policy@4-5", "policy@6-7"]
    assert family.tolist() == [0, 1, 1, 1, 1]
    assert system.tolist() == [1, 1, 2, 2, 3, 3, 4, 4, 0, 0]
    one, _, _ = split_by_step(["policy"], model[:8] * 0, np.full(8, 20, dtype=np.int32))
    assert one == ["policy"]
