"""What a policy says of bare prompts is no leak, whatever it is; what it never says there is one."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import orjson
import polars as pl
from hypothesis import given
from hypothesis import strategies as st
from numbered_rows import plain_row
from synth_world import HARD, USEFUL, World
from tables import rows

from truegold.synth.config import LeakConfig
from truegold.synth.leaks import (
    FEWEST_SAMPLES,
    BareSample,
    Finding,
    Habits,
    LeakReason,
    Sources,
    check_output,
    find_in_bare,
    learn_habits,
    read_bare_samples,
)
from truegold.synth.records import Weights

PROBLEM = "Tom has 12 apples. He buys 9 more and gives away 5. How many apples does Tom have now?"
DERIVATION = "12+9=21, 21-5=16. \\boxed{16}"
PLAIN = f"First he has more. {DERIVATION}"
CONFIG = LeakConfig()
OPENINGS = (
    "As noted, what he gives away comes off.",
    "This time the apples are taken off.",
    "My previous attempt left something out.",
    "Second go:",
    "The user pointed out a slip.",
    "You were unhappy with that one.",
    "Sorry about that.",
    "这回记得减去送出的。",
)
"""Each is a leak where the policy does not say it anyway."""


@cache
def found_in(completion: str) -> set[Finding]:
    return find_in_bare(BareSample(plain_row(PROBLEM, "16"), completion, "16", (), (), False), CONFIG)


def habits_of(*completions: str) -> Habits:
    return learn_habits(list(map(found_in, completions)))


def reasons(output: str, habits: Habits, failed: str | None = "26") -> tuple[LeakReason, ...]:
    sources = Sources(PROBLEM, "Its final answer was read as 26, which is not right.", "", failed)
    return check_output(output, sources, "16", Weights(1, 1, 1), CONFIG, habits, is_program=False).reasons


@rows("opening", OPENINGS)
def test_an_opening_is_a_leak_until_the_policy_is_known_to_say_it(opening: str) -> None:
    output = f"{opening} {DERIVATION}"
    assert reasons(output, Habits())
    assert reasons(output, habits_of(*[PLAIN] * 400))
    said = [opening + " " + DERIVATION] * 20
    assert not [reason for reason in reasons(output, habits_of(*[PLAIN] * 380, *said)) if "mentions" in reason]


@given(
    opening=st.sampled_from(OPENINGS),
    others=st.lists(st.sampled_from([PLAIN, *OPENINGS]), min_size=FEWEST_SAMPLES, max_size=3 * FEWEST_SAMPLES),
)
def test_what_opens_one_in_twenty_bare_samples_drops_nothing(opening: str, others: list[str]) -> None:
    output = f"{opening} {DERIVATION}"
    bare = [*others, *[output] * (1 + len(others) // 19)]
    assert not [reason for reason in reasons(output, habits_of(*bare)) if "mentions" in reason]


@given(st.lists(st.sampled_from([PLAIN, *OPENINGS]), min_size=FEWEST_SAMPLES, max_size=4 * FEWEST_SAMPLES))
def test_of_the_bare_samples_themselves_next_to_none_is_dropped(begun: list[str]) -> None:
    bare = [f"{opening} {DERIVATION}" for opening in begun]
    habits = habits_of(*bare)
    dropped = sum(any("mentions" in reason for reason in reasons(text, habits)) for text in bare)
    # (.5 + dropped) / (100 + samples) is at most .02.
    assert dropped <= 0.02 * (100 + len(bare)) - 0.5


def test_one_phrase_of_a_pattern_leaves_the_others_leaks() -> None:
    habits = habits_of(*[PLAIN] * 380, *[f"My previous result is 21. {DERIVATION}"] * 20)
    assert reasons(f"My previous result is 21. {DERIVATION}", habits) == ()
    assert reasons(f"My previous attempt forgot the 5. {DERIVATION}", habits) == (LeakReason.MENTIONS_ATTEMPT,)
    # Numbers do not matter: what was said of 21 may be said of 7.
    assert habits_of(*[PLAIN] * 380, *[f"Attempt 2: {DERIVATION}"] * 20).facts()["phrases"] == {"attempt #": 20}


def test_few_samples_tell_no_habits() -> None:
    said = f"Second go: {DERIVATION}"
    habits = habits_of(*[said] * (FEWEST_SAMPLES - 1))
    assert habits == Habits(FEWEST_SAMPLES - 1)
    assert reasons(said, habits) == (LeakReason.MENTIONS_ATTEMPT,)


def test_a_policy_that_states_its_answers_first_may_do_so() -> None:
    first = f"The answer is 16, because {DERIVATION}"
    assert reasons(first, habits_of(*[PLAIN] * 97, *[first] * 3)) == (LeakReason.ANSWER_FIRST,)
    habits = habits_of(*[PLAIN] * 80, *[first] * 20)
    assert reasons(first, habits) == ()
    assert orjson.loads(orjson.dumps(habits.facts()))["rules"] == {"answer_first": 20}


def test_the_denied_answer_is_a_leak_in_any_policy() -> None:
    denied = f"26 is wrong. {DERIVATION}"
    habits = habits_of(*[denied] * 100)
    assert reasons(denied, habits) == (LeakReason.MENTIONS_ATTEMPT,)
    assert reasons(denied, habits, failed=None) == ()


def test_bare_samples_are_of_rows_that_training_may_see(world: World) -> None:
    samples = read_bare_samples({**world.inputs(), "store": Path("nowhere")})
    kept = pl.concat(
        [pl.read_parquet(world.inputs()[name], columns=["id"]) for name in ("hard", "selected", "reserve")]
    )
    assert {sample.row["id"] for sample in samples} == set(kept["id"])
    assert {sample.row["split"] for sample in samples} == {"train"}
    assert len(samples) == 4 * kept.height <= 4 * (HARD + USEFUL)
