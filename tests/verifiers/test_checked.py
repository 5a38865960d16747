"""A wrong argument of a public function is one line that names it, says what it must be, and what to type."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import truegold.verifiers as tv
from truegold.verifiers.adapters.openrlhf import reward_func
from truegold.verifiers.adapters.scoring import Scorer
from truegold.verifiers.adapters.trl import TruegoldReward
from truegold.verifiers.adapters.verl import compute_score

RIGHT = tv.Verdict(1.0, tv.Reason.MATCH)
ROW = tv.Item("5", "5")


@pytest.mark.parametrize(
    ("call", "line"),
    [
        (lambda: tv.verify(5, gold="5"), "response must be a text; this is int 5. Type response='5'."),
        (lambda: tv.verify(None, gold="5"), "Pass an empty text for a missing one."),
        (lambda: tv.verify([{"content": "5"}], gold="5"), "the text of the last one: response=messages[-1]['content']"),
        (lambda: tv.verify("5", gold="5", problem=["x"]), "problem must be a text or None; this is list ['x']."),
        (
            lambda: tv.verify("5", gold="5", verifier=None),
            "verifier must be a text or a Verifier; this is NoneType None.",
        ),
        (lambda: tv.verify("5", gold="5", verifier=len), "Make the function a verifier: @verifier."),
        (lambda: tv.equivalent(5, gold="5"), "equivalent: answer must be a text; this is int 5."),
        (lambda: tv.verify_batch(ROW), "rows must be a list of Item; this is Item"),
        (lambda: tv.verify_batch(ROW), "Put it into a list: rows=[...]."),
        (lambda: tv.verify_batch([0]), "rows[0] must be an Item; this is int 0."),
        (
            lambda: tv.verify_batch([ROW, ("5", "5")]),
            "rows[1] must be an Item; this is tuple ('5', '5'). Type Item(...).",
        ),
        (
            lambda: tv.verify_batch([ROW], workers="4"),
            "workers must be a whole number; this is str '4'. Type workers=4.",
        ),
        (lambda: tv.verify_batch([ROW], workers=True), "workers must be a whole number; this is bool True."),
        (lambda: tv.verify_batch([ROW], max_timeout=0.1), "no argument 'max_timeout'. Did you mean 'max_timeouts'?"),
        (lambda: tv.verify_batch([ROW], max_timeouts=5), "max_timeouts is a share from 0 to 1."),
        (lambda: tv.BatchVerifier("4"), "BatchVerifier: workers must be a whole number; this is str '4'."),
        (lambda: tv.Term("c", weight="1"), "Term: weight must be a number; this is str '1'. Type weight=1."),
        (lambda: tv.Term("c", weigth=1), "Did you mean 'weight'?"),
        (
            lambda: tv.compose([{"name": "c"}], [RIGHT]),
            "terms[0] must be a Term; this is dict {'name': 'c'}. Type Term(",
        ),
        (lambda: tv.compose([tv.Term("c")], [1.0]), "verdicts[0] must be a Verdict; this is float 1.0."),
        (lambda: tv.compose([tv.Term("c")], [RIGHT], clip=(1.0, 0.0)), "the lower and the upper bound"),
        (lambda: tv.verifier(version=1), "verifier: version must be a text; this is int 1. Type version='1'."),
        (lambda: tv.gold_response("math", "5"), "verifier must be a Verifier; this is str 'math'. Type resolve(NAME)."),
        (lambda: tv.committed_answer(None), "committed_answer: response must be a text; this is NoneType."),
        (lambda: Scorer(workers="2"), "Scorer: workers must be a whole number; this is str '2'."),
        (lambda: TruegoldReward(unjudgd=0), "TruegoldReward has no argument 'unjudgd'. Did you mean 'unjudged'?"),
        (lambda: TruegoldReward()("a", "b"), "TruegoldReward: completions must be a list; this is str 'b'."),
        (
            lambda: TruegoldReward()(["a"], [5], answer=["5"]),
            "A completion must be a text or a list of messages; this is i",
        ),
        (
            lambda: TruegoldReward()([3], ["5"], answer=["5"]),
            "A prompt must be a text or a list of messages; this is int 3",
        ),
        (
            lambda: compute_score("gsm8k", "5", "5", unjudged="0"),
            "compute_score: unjudged must be a number; this is str",
        ),
        (lambda: reward_func("q", ["p"], ["5"]), "reward_func: queries must be a list of texts; this is str 'q'."),
    ],
)
def test_a_wrong_argument_is_named_with_what_to_type(call: Callable[[], Any], line: str) -> None:
    with pytest.raises(tv.ConfigError) as caught:
        call()
    assert line in str(caught.value)


def test_numbers_of_numpy_and_columns_of_tables_are_right() -> None:
    assert [verdict.passed for verdict in tv.verify_batch(iter([ROW]), workers=np.int64(1))] == [True]
    rewards = TruegoldReward(unjudged=np.float32(0))(np.array(["a"]), np.array(["5"]), answer=np.array(["5"]))
    assert rewards == [1.0]


def test_a_row_is_data_and_its_type_raises_nothing() -> None:
    (verdict,) = tv.verify_batch([tv.Item(5, "5")])  # type: ignore[arg-type]
    assert verdict.score is None


def test_an_error_inside_of_a_function_stays_what_it_is() -> None:
    @tv.verifier
    def broken(response: str, gold: str) -> float:
        raise TypeError("of the verifier")

    assert tv.verify("5", gold="5", verifier=broken).evidence["error"] == "TypeError: of the verifier"


def test_verdicts_of_a_batch_have_no_index() -> None:
    with pytest.raises(TypeError, match=r"list\(verify_batch\(rows\)\)\[0\]"):
        tv.verify_batch([ROW])[0]  # type: ignore[index]


def test_a_checked_function_shows_its_own_signature() -> None:
    assert list(inspect.signature(tv.verify_batch).parameters)[:2] == ["rows", "workers"]
