"""A misspelt or senseless option is an error of the call that sets it; in a row of data it leaves that row unjudged."""

from __future__ import annotations

import json
import re
import time
import timeit
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tables import rows

import truegold.verifiers as tv
from truegold.verifiers.adapters.trl import TruegoldReward
from truegold.verifiers.registry import unknown_option
from truegold.verifiers.running.batch import ResolvedVerifiers

MISTAKES: dict[str, tuple[str, dict[str, Any], str]] = {
    "a letter left out": ("numeric", {"rel_tl": 0.1}, "numeric has no option 'rel_tl'; .*Did you mean 'rel_tol'"),
    "another word": ("numeric", {"precision": 2}, "numeric has no option 'precision'; its options are abs_tol"),
    "an option of another verifier": ("numeric", {"case_sensitive": True}, "The verifier exact has it"),
    "a plural": ("exact", {"case_sensitives": True}, "Did you mean 'case_sensitive'"),
    "a policy": ("math", {"tolerence": 0.1}, "math has no option 'tolerence'.*Did you mean 'tolerance'"),
    "a code option": ("code", {"rewards": "all", "tests": ["assert 1"]}, "Did you mean 'reward'"),
    "a pattern's": ("regex", {"patern": "a"}, "Did you mean 'pattern'"),
    "a choice's": ("choice", {"multiples": True}, "Did you mean 'multiple'"),
    "a format's": ("format", {"tag": ["think"]}, "Did you mean 'tags'"),
    "a text for a number": ("numeric", {"decimals": "two"}, "numeric: decimals must be a whole number"),
    "a number below nothing": ("numeric", {"abs_tol": -1}, "numeric: abs_tol must be a number, 0 or more"),
    "a text for a switch": ("exact", {"case_sensitive": "yes"}, "exact: case_sensitive must be true or false"),
    "a unit that is none": ("math", {"units": "metric"}, "math: .*units is 'metric'"),
    "a reward that is none": ("code", {"reward": "some", "tests": ["assert 1"]}, "code: reward must be one of all"),
    "a pattern that cannot be read": ("regex", {"pattern": "("}, "regex: "),
    "a length without its bound": ("length", {}, "length needs the option 'max'"),
    "golds in a text": ("math", {"other_golds": "7"}, "math: other_golds must be a list of texts"),
}
UNKNOWN = [
    *("a letter left out", "another word", "a plural", "a policy", "a code option", "a pattern's", "a choice's"),
    "a format's",
]


@rows("name", MISTAKES)
def test_a_call_is_told_of_its_mistake(name: str) -> None:
    verifier, options, says = MISTAKES[name]
    for spelling in (verifier, tv.resolve(verifier)):
        with pytest.raises(tv.ConfigError, match=says):
            tv.verify("3.14", gold="3.14", verifier=spelling, **options)


@rows("name", MISTAKES)
def test_an_item_made_with_a_mapping_is_told_of_its_mistake(name: str) -> None:
    verifier, options, says = MISTAKES[name]
    with pytest.raises(tv.ConfigError, match=says):
        tv.Item("3.14", "3.14", verifier, options)


@rows("name, workers", [*((name, 0) for name in UNKNOWN), (UNKNOWN[0], 2)])
def test_a_row_with_an_option_that_nobody_has_is_not_judged_and_says_so(name: str, workers: int) -> None:
    verifier, options, says = MISTAKES[name]
    rows = [tv.Item("\\boxed{3.14}", "3.14"), tv.Item("3.14", "3.14", verifier, json.dumps(options))]
    first, second = tv.verify_batch(rows, workers=workers)
    assert first.score == 1.0
    assert (second.score, second.reason) == (None, tv.Reason.VERIFIER_ERROR)
    assert re.search(says, second.evidence["error"])


SHARED: dict[str, tuple[str, Mapping[str, Any]]] = {
    "nothing": ("numeric", {}),
    "its own": ("numeric", {"rel_tol": 0.1, "decimals": None}),
    "those of another built-in verifier": ("numeric", {"case_sensitive": True, "max": 100, "tags": ["think"]}),
    "other golds": ("numeric", {"other_golds": ["7"]}),
    "a length that training adds": ("numeric", {"length": 7}),
    "a suite of code": ("exact", {"tests": [], "language": "python", "entry_point": "f", "limits": {}, "metadata": {}}),
    "the cases of a suite": ("exact", {"type": "stdio", "cases": [], "checker": "tokens"}),
}


@pytest.mark.parametrize("name", SHARED)
def test_a_row_may_hold_options_of_several_verifiers(name: str) -> None:
    verifier, options = SHARED[name]
    (verdict,) = tv.verify_batch([tv.Item("3.14", "3.14", verifier, json.dumps(options))])
    assert verdict.score == 1.0, verdict


OWN = """
from truegold.verifiers import verifier

@verifier(options=("strict",))
def declares(response, gold, *, info):
    return response == gold

@verifier
def declares_nothing(response, gold, *, info):
    return response == gold

def reads_none(response, gold):
    return response == gold
"""


@pytest.mark.parametrize(
    ("name", "options", "score"),
    [
        ("declares", {"strict": True}, 1.0),
        ("declares", {"strct": True}, None),
        ("declares", {"rel_tol": 0.1}, 1.0),
        ("declares_nothing", {"anything": 1}, 1.0),
        ("reads_none", {"anything": 1}, 1.0),
    ],
)
def test_rows_for_a_verifier_of_the_users(tmp_path: Path, name: str, options: Mapping[str, Any], score: float) -> None:
    (tmp_path / "checks.py").write_text(OWN)
    row = tv.Item("a", "a", f"{tmp_path / 'checks.py'}:{name}", json.dumps(options))
    assert ResolvedVerifiers().judge(row).verdict.score == score


def test_a_verifier_that_reads_no_option_is_handed_none_by_a_call() -> None:
    @tv.verifier
    def same(response: str, gold: str) -> bool:
        return response == gold

    assert tv.verify("a", "a", verifier=same).passed
    with pytest.raises(tv.ConfigError, match="same has no option 'strict'; it takes none"):
        tv.verify("a", "a", verifier=same, strict=True)


def test_a_policy_of_two_answers_is_checked_by_its_own_call() -> None:
    with pytest.raises(tv.ConfigError, match=r"'tolerence'.*did you mean 'tolerance'"):
        tv.equivalent("0.5", gold="1/2", tolerence=0.1)


def test_a_reward_takes_no_options_of_verifiers() -> None:
    with pytest.raises(tv.ConfigError, match="TruegoldReward has no argument 'rel_tol'"):
        TruegoldReward(verifier="numeric", rel_tol=0.1)  # type: ignore[call-arg]


def test_looking_at_the_names_costs_a_row_next_to_nothing() -> None:
    verifier, options = tv.resolve("numeric"), {"rel_tol": 0.1, "decimals": 2, "max": 7}
    spent = timeit.repeat(lambda: unknown_option(verifier, options), timer=time.thread_time, number=1000, repeat=5)
    assert min(spent) / 1000 < 20e-6


@pytest.mark.parametrize("score", [0.0, 0.5, 1.0, None])
def test_a_verdict_has_no_truth_value(score: float | None) -> None:
    verdict = tv.Verdict(score, tv.Reason.MISMATCH)
    tests = [bool, lambda v: v or None, lambda v: not v, lambda v: [v] if v else [], lambda v: any([v])]
    for test in [*tests, lambda v: list(filter(None, [v])), lambda v: all([v]), lambda v: v and 1]:
        with pytest.raises(TypeError, match=r"use verdict\.passed or verdict\.score"):
            test(verdict)
    assert verdict == tv.Verdict(score, tv.Reason.MISMATCH) and verdict is not None
