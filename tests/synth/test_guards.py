"""Leaks that were planted are caught, in whatever words; what a model writes without any context passes.

`data/leaks.jsonl` has outputs with a leak planted, all written by hand; `data/README.md` says how. The guards were made
on the half with an even hash; the other half is only reported on.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from real_data import real_data
from tables import rows

from truegold.synth.config import LeakConfig
from truegold.synth.leaks import Habits, LeakReason, LeakReport, Sources, check_output, find_denial, is_near_copy
from truegold.synth.records import Weights, weigh

LEAKS = [json.loads(line) for line in (Path(__file__).parents[1] / "data" / "leaks.jsonl").read_text().splitlines()]
PROBLEM = "Tom has 12 apples. He buys 9 more and gives away 5. How many apples does Tom have now?"
GUIDANCE = (
    "Its final answer was read as 26, which is not right.\nThe apples that were given away must be taken off the total."
)
ATTEMPT = "12+9=21, 21+5=26 \\boxed{26}"
SAME = Weights(1.0, 1.0, 1.0)


def check(
    output: str, problem: str = PROBLEM, answer: str | None = "16", weights: Weights = SAME, guidance: str = GUIDANCE
) -> LeakReport:
    sources = Sources(problem, guidance, ATTEMPT, "26")
    return check_output(output, sources, answer, weights, LeakConfig(), Habits(), is_program=False)


def is_caught(leak: dict[str, Any]) -> bool:
    sources = Sources(leak["problem"], leak["guidance"], leak["attempt"], leak.get("failed"))
    report = check_output(leak["output"], sources, leak["answer"], SAME, LeakConfig(), Habits(), is_program=False)
    return bool(report.reasons)


@pytest.mark.parametrize(("half", "least"), [(0, 0.95), (1, 0.93)])
def test_planted_leaks_are_caught(half: int, least: float) -> None:
    planted = [leak for leak in LEAKS if leak["way"] not in ("clean", "opening") and "," not in leak["way"]]
    leaks = [leak for leak in planted if hashlib.sha256(leak["output"].encode()).digest()[0] % 2 == half]
    assert len({leak["way"] for leak in leaks}) >= 7
    assert sum(map(is_caught, leaks)) >= least * len(leaks)


def test_wordings_that_were_written_last_are_caught_less_often() -> None:
    last = [leak for leak in LEAKS if "last wordings" in leak["way"]]
    assert sum(map(is_caught, last)) >= 0.65 * len(last)


@pytest.mark.parametrize("way", ["made on", "reported"])
def test_the_failed_answer_denied_and_talk_of_what_was_before_are_caught(way: str) -> None:
    leaks = [leak for leak in LEAKS if leak["way"] == f"denies or alludes, {way}"]
    assert len(leaks) == 25
    assert sum(map(is_caught, leaks)) >= 20


def test_what_chat_and_thinking_models_begin_with_is_no_leak() -> None:
    openings = [leak for leak in LEAKS if leak["way"] == "opening"]
    assert len(openings) == 30
    assert sum(map(is_caught, openings)) <= 1


@rows(
    "output, words",
    [
        ("Not 26: 12+9=21, 21-5=16.", "not 26"),
        ("26 would be right if he kept the 5. 12+9=21, 21-5=16.", "26 would be"),
        ("26 apples leave the 5 out. 12+9=21, 21-5=16.", "26 apples"),
        ("12+9=21, 21-5=16 rather than 26.", "rather than 26"),
        ("不能只算到26，还要减去5。12+9=21，21-5=16。", "不能只算到26"),
        # Its own 26, which it takes back.
        ("12+9=21, 21+5=26. No, that is not 26 apples: 21-5=16.", None),
        ("First he has 12+9=21. With 5 less that is 16, and 26 cannot be.", "26 cannot"),
        ("12+9=21, 21-5=16, which is 10 less than he would have with 26.", None),
        ("26. First add 12 and 9: 12+9=21, 21-5=16.", None),
    ],
)
def test_the_answer_of_the_failed_attempt_is_no_start(output: str, words: str | None) -> None:
    assert find_denial(output, PROBLEM, "26", "16") == words


def test_a_number_of_the_problem_an_option_and_the_answer_itself_may_be_denied() -> None:
    assert find_denial("Not 12 but 12+9=21.", PROBLEM, "12", "21") is None
    assert find_denial("Not B, since 12+9=21.", PROBLEM, "B", "A") is None
    assert find_denial("Not 16.0 but 16.", PROBLEM, "16", "16") is None


@pytest.mark.parametrize(
    "opening",
    [
        "Il ne faut pas oublier que les pommes qui ont été données doivent être soustraites du total à la fin.",
        "Сначала надо вычесть яблоки.",
        "最后要减去苹果。",
    ],
)
def test_a_sentence_in_another_language_is_caught(opening: str) -> None:
    assert LeakReason.OTHER_LANGUAGE in check(f"{opening} 12+9=21, 21-5=16.").reasons


def test_comments_of_a_program_are_read_too() -> None:
    program = "def f(x):\n    # fixed: the previous version added 1\n    return x"
    sources = Sources("Write a function that returns its argument.", "It passes 0 of 3 tests.", "", None)
    report = check_output(program, sources, program, SAME, LeakConfig(), Habits(), is_program=True)
    assert LeakReason.MENTIONS_ATTEMPT in report.reasons
    plain = "def f(x):\n    # the argument itself\n    return x"
    assert check_output(plain, sources, plain, SAME, LeakConfig(), Habits(), is_program=True).reasons == ()


def test_the_outputs_without_what_was_planted_pass() -> None:
    clean = [leak for leak in LEAKS if leak["way"] == "clean"]
    assert clean
    assert not any(map(is_caught, clean))


@pytest.mark.parametrize(
    ("output", "reason"),
    [
        ("As the hint says, 12+9=21, 21-5=16.", LeakReason.MENTIONS_ADVICE),
        ("12+9=21, 21-5=16, unlike in my previous attempt.", LeakReason.MENTIONS_ATTEMPT),
        ("这次重新计算：12+9=21，21-5=16。", LeakReason.MENTIONS_ATTEMPT),
        ("The apples that were given away must be taken off the total. 12+9=21, 21-5=16.", LeakReason.QUOTES),
        ("送出的苹果必须从总数里减去。12+9=21, 21-5=16.", LeakReason.OTHER_LANGUAGE),
        ("The answer is 16, because 12+9=21 and 21-5=16.", LeakReason.ANSWER_FIRST),
        ("We have to arrive at 16: 12+9=21, 21-5=16.", LeakReason.ANSWER_FIRST),
    ],
)
def test_a_leak_has_the_reason_of_its_kind(output: str, reason: LeakReason) -> None:
    assert reason in check(output).reasons


@pytest.mark.parametrize(
    "output",
    [
        "12+9=21, 21-5=16. \\boxed{16}",
        "12+9=20. Wait, that is wrong: 12+9=21. So 21-5=16.",
        "We are told that Tom has 12 apples. 12+9=21, and 21-5=16.",
        "First he has 12+9=21 apples. Then he gives away 5, so he has 21-5=16 apples left. The answer is 16.",
        "16",
    ],
)
def test_what_needs_no_context_passes(output: str) -> None:
    assert check(output).reasons == ()


def test_words_of_the_problem_are_no_mention() -> None:
    problem = "A waiter gets a tip of 15% on a bill of 40 dollars, as suggested by the card. How much is it?"
    assert check("With the tip of 15% it is 0.15*40=6.", problem, "6").reasons == ()
    assert LeakReason.MENTIONS_ADVICE in check("With the tip of 15% it is 0.15*40=6.", "How much?", "6").reasons


def test_an_output_that_only_the_context_explains_is_implausible() -> None:
    assert check("12+9=21, 21-5=16.", weights=Weights(0.2, 1e-9, 0.1)).reasons == (LeakReason.IMPLAUSIBLE,)


def test_weights_by_hand() -> None:
    weights = weigh([-1.0, -2.0], [-0.5, -3.0])
    assert weights.token == pytest.approx((0.60653066 + 1) / 2)
    assert weights.sequence == 1.0
    assert weigh([-2.0, -2.0], [-1.0, -1.0]).sequence == pytest.approx(0.13533528)
    assert weigh([-2.0, -2.0], [-1.0, -1.0]).geometric == pytest.approx(0.36787944)
    assert weigh([], []) == SAME


def test_near_copies_differ_by_little() -> None:
    text = "First 12+9=21, then 21-5=16, so Tom has 16 apples in the end."
    assert is_near_copy(text.replace("First", "first"), [text], 0.9)
    assert not is_near_copy("Of 12 apples he keeps 12-5=7; with 9 more it is 16.", [text], 0.9)


def lines_of(name: str) -> list[str]:
    return real_data(name).read_text(encoding="utf-8").splitlines()


def test_real_solutions_written_without_any_context_pass() -> None:
    """Guidance is the gold's own worked solution, which says much the same as any right solution does."""
    golds = {row["id"]: row for row in map(json.loads, lines_of("curation/gsm8k_platinum.jsonl"))}
    traces = [json.loads(line) for line in lines_of("curation/gsm8k_example_traces.jsonl")]
    outcomes: Counter[bool] = Counter()
    for trace in traces[::8]:
        gold = golds.get(trace["id"])
        for output in trace["traces"].values() if gold is not None else ():
            assert gold is not None
            report = check(output, gold["question"], gold["gold_original"], guidance=gold["gold_solution"])
            outcomes[bool(report.reasons)] += 1
    assert outcomes[True] <= 0.05 * outcomes.total()
