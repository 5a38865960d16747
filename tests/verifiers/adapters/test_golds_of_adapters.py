"""Gold in a trainer's row: one rule for all adapters. Lists are accepted golds, and objects are no gold."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from itertools import product
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tables import rows

import truegold.verifiers as tv
from truegold.verifiers.adapters import nemo_gym, openrlhf, prime, verl
from truegold.verifiers.adapters.open_instruct import TruegoldVerifier
from truegold.verifiers.adapters.trl import TruegoldReward
from truegold.verifiers.gold import BadGold, golds_in
from truegold.verifiers.sandbox.errors import ConfigError

GOLDS: dict[str, tuple[Any, list[str]]] = {
    "a text": ("72", ["72"]),
    "a text that looks like a list": ("[1, 2]", ["[1, 2]"]),
    "a text that looks like an object": ('{"answer": 72}', ['{"answer": 72}']),
    "a whole number": (72, ["72"]),
    "a float": (0.5, ["0.5"]),
    "a list of one": (["72"], ["72"]),
    "a list": (["72", "seventy-two"], ["72", "seventy-two"]),
    "a tuple": (("72", 73), ["72", "73"]),
    "a list of numbers": ([72, 0.5], ["72", "0.5"]),
    "a list of lists of one": ([["72"], ["73"]], ["72", "73"]),
    "a list in a list in a list": ([[["72", "73"]]], ["72", "73"]),
    "the same twice": (["72", "72"], ["72"]),
    "blanks among them": (["", None, " ", "72"], ["72"]),
    "an array of texts": (np.array(["72", "73"]), ["72", "73"]),
    "an array of objects": (np.array(["72", 73], dtype=object), ["72", "73"]),
    "an array of float32": (np.array([0.1, 72], dtype=np.float32), ["0.1", "72.0"]),
    "an array without axes": (np.array(72), ["72"]),
    "a text of numpy": (np.str_("72"), ["72"]),
    "a number of numpy": (np.int64(72), ["72"]),
    "a float32 of numpy": (np.float32(0.1), ["0.1"]),
    "None": (None, []),
    "not a number": (float("nan"), []),
    "an empty list": ([], []),
    "an empty array": (np.array([]), []),
    "a list of None": ([None], []),
    "a list of an empty list": ([[]], []),
}
OBJECTS: dict[str, Any] = {
    "an object": {"answer": "72"},
    "a list of objects": [{"answer": "72"}],
    "an object among texts": ["72", {"answer": "73"}],
    "lists of several": [["1", "2"], ["3", "4"]],
    "bytes": b"72",
    "a set": SimpleNamespace(answer="72"),
    "an array of rows": np.array([["1", "2"], ["3", "4"]]),
}


@rows("name", GOLDS)
def test_golds_in_what_stands_there(name: str) -> None:
    value, golds = GOLDS[name]
    assert golds_in(value) == golds


@pytest.mark.parametrize("name", OBJECTS)
def test_what_is_no_gold_is_told(name: str) -> None:
    with pytest.raises(BadGold, match=r"^gold must be a "):
        golds_in(OBJECTS[name])


def test_tensors_are_numbers_as_they_are_printed() -> None:
    torch = pytest.importorskip("torch")
    assert golds_in(torch.tensor(72)) == golds_in(torch.tensor([72])) == ["72"]
    assert golds_in(torch.tensor([0.1, 0.2], dtype=torch.float32)) == ["0.1", "0.2"]
    assert golds_in(torch.tensor(0.5, dtype=torch.bfloat16, requires_grad=True)) == ["0.5"]


def by_call(response: str, gold: Any) -> float | None:
    return tv.verify(response, gold=gold).score


def by_item(response: str, gold: Any) -> float | None:
    (verdict,) = tv.verify_batch([tv.Item(response, gold)])
    return verdict.score


def by_item_in_a_process(response: str, gold: Any) -> float | None:
    (verdict,) = tv.verify_batch([tv.Item(response, gold)], workers=2)
    return verdict.score


def by_trl(response: str, gold: Any) -> float | None:
    (reward,) = TruegoldReward()(prompts=["?"], completions=[response], answer=[gold])
    return reward


def by_verl(response: str, gold: Any) -> float | None:
    scored = verl.compute_score("x", response, gold, {})
    return scored["score"] if scored["judged"] else None


def by_openrlhf(response: str, gold: Any) -> float | None:
    pytest.importorskip("torch")
    scored = openrlhf.reward_func(["?" + response], ["?"], [gold])
    return float(scored["rewards"][0]) if scored["extra_logs"]["judged"][0] else None


def by_open_instruct(response: str, gold: Any) -> float | None:
    judge = TruegoldVerifier()
    scored = judge([], response, gold, "?").score
    return float(scored) if judge.judged else None


def by_nemo_gym(response: str, gold: Any) -> float | None:
    message = {"type": "message", "content": [{"type": "output_text", "text": response}]}
    fields = asyncio.run(nemo_gym.verify_fields({"response": {"output": [message]}, "expected_answer": gold}))
    return float(fields["reward"]) if fields["judged"] else None


def by_prime(response: str, gold: Any) -> float | None:
    data = SimpleNamespace(gold=gold, verifier="math", verifier_args="{}", prompt="?", solution=None)
    return asyncio.run(prime.judge(data, response)).score


CALLERS: list[Callable[[str, Any], float | None]] = [
    *(by_call, by_item, by_trl, by_verl, by_openrlhf, by_open_instruct, by_nemo_gym, by_prime),
]


@rows("caller, name", product(CALLERS, [name for name, (_, golds) in GOLDS.items() if "72" in golds]))
def test_any_accepted_gold_is_right_and_everything_else_wrong(caller: Callable[..., Any], name: str) -> None:
    value, golds = GOLDS[name]
    for gold in golds:
        assert caller(f"\\boxed{{{gold}}}", value) == 1.0
    if "seventy-two" not in golds:
        assert caller("\\boxed{9}", value) == 0.0


@rows("caller, name", product(CALLERS, [name for name, (_, golds) in GOLDS.items() if not golds]))
def test_a_row_without_gold_has_no_score(caller: Callable[..., Any], name: str) -> None:
    assert caller("\\boxed{72}", GOLDS[name][0]) is None


@rows("caller, name", product(CALLERS[1:], OBJECTS))
def test_a_gold_that_is_not_understood_is_no_zero(caller: Callable[..., Any], name: str) -> None:
    assert caller("\\boxed{72}", OBJECTS[name]) is None


def test_processes_are_handed_the_same_golds() -> None:
    assert by_item_in_a_process("\\boxed{73}", np.array([72, 73])) == 1.0
    assert by_item_in_a_process("\\boxed{73}", {"answer": 73}) is None


def test_the_verdict_says_what_stood_in_place_of_gold() -> None:
    (verdict,) = tv.verify_batch([tv.Item("\\boxed{72}", {"answer": "72"})])
    assert verdict.reason is tv.Reason.GOLD_UNPARSED
    assert (
        verdict.evidence["error"] == "gold must be a text, a number or a list of these; this is dict {'answer': '72'}"
    )
    with pytest.raises(ConfigError, match="this is dict"):
        tv.verify("\\boxed{72}", gold={"answer": "72"})


def test_programs_need_no_gold_and_are_judged_whatever_stands_there() -> None:
    program = "```python\ndef add(a, b):\n    return a + b\n```"
    row = tv.Item(program, {"inputs": []}, "code", {"tests": ["assert add(1, 2) == 3"]})
    assert [verdict.score for verdict in tv.verify_batch([row])] == [1.0]


def test_accepted_golds_of_both_kinds_count() -> None:
    assert tv.verify("\\boxed{3}", gold=["1", "2"], other_golds=["3"]).evidence["golds"] == 3
    row = tv.Item("\\boxed{3}", ["1", "2"], "math", '{"other_golds": ["3"], "units": "strict"}')
    assert json.loads(row.verifier_args) == {"other_golds": ["2", "3"], "units": "strict"}


@pytest.mark.parametrize(("answer", "score"), [("AC", 1.0), ("A, C", 1.0), ("A", 0.0), ("C", 0.0), ("ABC", 0.0)])
def test_options_that_have_to_be_chosen_together_are_one_gold(answer: str, score: float) -> None:
    response = f"\\boxed{{{answer}}}"
    assert tv.verify(response, gold=["A", "C"], verifier="choice", multiple=True).score == score
    row = tv.Item(response, ["A", "C"], "choice", '{"multiple": true}')
    assert [verdict.score for verdict in tv.verify_batch([row])] == [score]


@pytest.mark.parametrize("arguments", ["[]", "{", '{"other_golds": "7"}'])
def test_arguments_that_cannot_take_more_golds_are_told(arguments: str) -> None:
    (verdict,) = tv.verify_batch([tv.Item("\\boxed{9}", ["1", "2"], "math", arguments)])
    assert verdict.score is None and verdict.reason is tv.Reason.VERIFIER_ERROR


def test_trl_takes_columns_of_any_kind() -> None:
    torch = pytest.importorskip("torch")
    arguments = {"prompts": ["?"] * 2, "completions": ["\\boxed{1}", "\\boxed{4}"]}
    for column in (np.array(["1", "3"]), torch.tensor([1, 3]), ("1", "3"), np.array([1, 3], dtype=object)):
        assert TruegoldReward()(**arguments, answer=column) == [1.0, 0.0]


@pytest.mark.parametrize("gold", ["12", 12, 12.0, np.array("12"), np.int64(12), np.str_("12")])
def test_one_gold_is_that_of_all_completions(gold: Any) -> None:
    arguments = {"prompts": ["?"] * 2, "completions": ["\\boxed{12}", "\\boxed{1}"]}
    assert TruegoldReward()(**arguments, answer=gold) == [1.0, 0.0]


@rows(
    "column, says",
    [
        ({"answer": ["1"]}, "'answer' of the batch is 1 entries; there are 2 completions"),
        ({"answer": ["1"] * 3}, "'answer' of the batch is 3 entries"),
        ({"answer": []}, "'answer' of the batch is 0 entries"),
        ({"solution": None}, "'solution' of the batch is NoneType None"),
        ({"ground_truth": {"a": 1, "b": 2}}, "'ground_truth' of the batch is dict"),
        ({"answer": np.array(["1"] * 3)}, "'answer' of the batch is 3 entries"),
        ({"answer": ["1", "2"], "verifier": ["math"]}, "'verifier' of the batch is 1 entries"),
        ({"answer": ["1", "2"], "prompts": ["?"]}, "'prompts' of the batch is 1 entries"),
    ],
)
def test_trl_is_told_of_a_column_of_another_length_than_the_batch(column: dict[str, Any], says: str) -> None:
    arguments = {"prompts": ["?"] * 2, "completions": ["\\boxed{1}"] * 2, **column}
    with pytest.raises(ConfigError, match=says):
        TruegoldReward()(**arguments)


def test_trl_counts_what_is_no_gold() -> None:
    logged: dict[str, Any] = {}
    rewards = TruegoldReward()(
        prompts=["?"] * 2,
        completions=["\\boxed{1}"] * 2,
        answer=[{"answer": 1}, "1"],
        trainer_state=SimpleNamespace(),
        environments=None,
        log_extra=logged.__setitem__,
        log_metric=logged.__setitem__,
    )
    assert rewards == [None, 1.0] and logged["truegold/masked_share"] == 0.5
    assert logged["truegold_reason"] == ["gold_unparsed", "match"]


@pytest.mark.parametrize("label", ["{1, 2}", "{", '{"a": 1}', "{1}"])
def test_a_label_that_begins_like_json_and_is_none_is_gold(label: str) -> None:
    assert TruegoldVerifier()([], f"\\boxed{{{label}}}", label).reasoning != "verifier_error"


def test_open_instruct_hands_each_pair_of_its_lists_alone() -> None:
    """ground_truth_utils.py: `for gt, ds in zip(ground_truth_list, dataset_list)`, so that a label is one entry."""
    ground_truths, datasets = [["1", "one"], "2"], ["truegold", "truegold"]
    judge = TruegoldVerifier()
    pairs = zip(ground_truths, datasets, strict=True)
    assert [judge([], "\\boxed{1}", truth).score for truth, _ in pairs] == [1.0, 0.0]


def test_item_verifier_object_is_told() -> None:
    @tv.verifier
    def lenient(response: str, gold: str) -> float:
        return 1.0

    for named in (lenient, tv.resolve("math"), len, None, 3):
        with pytest.raises(ConfigError, match=r"The name of a verifier is needed; this is .*Pass its import string"):
            tv.Item("\\boxed{1}", "1", verifier=named)  # type: ignore[arg-type]
        if callable(named):
            with pytest.raises(ConfigError, match=r"verifier must be a text or None; .*Pass its import string"):
                TruegoldReward(verifier=named)  # type: ignore[arg-type]


@pytest.mark.parametrize("response", [[{"role": "assistant", "content": "7"}], {"content": "7"}, ("7",)])
def test_messages_as_response_are_told(response: Any) -> None:
    with pytest.raises(
        ConfigError, match=r"for messages, the text of the last one: response=messages\[-1\]\['content'\]"
    ):
        tv.verify(response, gold="7")


def test_a_gold_that_is_none_names_other_golds() -> None:
    with pytest.raises(ConfigError, match=r"a list of lists .* or gold=\.\.\. with other_golds="):
        tv.verify("\\boxed{1}", gold=["1", ["2", "3"]])
