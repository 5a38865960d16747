"""Rewards in the calling conventions of other trainers: by keyword, by position, one by one, in threads, pickled."""

from __future__ import annotations

import asyncio
import json
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from types import SimpleNamespace
from typing import Any

import pytest

from truegold.verifiers import Item, Reason, Verdict
from truegold.verifiers.adapters import nemo_gym, open_instruct, openrlhf, prime, verl
from truegold.verifiers.adapters.row_truth import RowTruth, truth_of
from truegold.verifiers.adapters.scoring import Scorer, last_text, masked_share, record_of
from truegold.verifiers.adapters.trl import TruegoldReward, truegold
from truegold.verifiers.sandbox.errors import ConfigError

RIGHT, WRONG = "so it is \\boxed{0.5}", "so it is \\boxed{5}"
UNREADABLE = "\\frac{1"
"""A gold that cannot be read, so that no response can be judged."""
PROGRAM = {"verifier": "code", "verifier_args": json.dumps({"tests": ["assert add(1, 2) == 3"]})}


def carried(gold: str | None = "1/2", **fields: Any) -> str:
    """Return what an exported record carries."""
    return json.dumps({"gold": gold, "verifier": "math", "verifier_args": "{}", **fields})


def test_trl_gets_a_reward_for_each_completion_and_none_where_there_is_no_verdict() -> None:
    logged: dict[str, Any] = {}
    rewards = TruegoldReward()(
        prompts=["What is one half?"] * 3,
        completions=[[{"role": "assistant", "content": text}] for text in (RIGHT, WRONG, RIGHT)],
        completion_ids=[[1], [2], [3]],
        truegold=[carried(), carried(), carried(UNREADABLE)],
        trainer_state=SimpleNamespace(),
        log_extra=logged.__setitem__,
        log_metric=logged.__setitem__,
    )
    assert rewards == [1.0, 0.0, None]
    assert logged["truegold_reason"] == ["match", "mismatch", "gold_unparsed"]
    assert logged["truegold/masked_share"] == pytest.approx(1 / 3)


def test_trl_reads_golds_of_sets_that_truegold_has_not_exported() -> None:
    for column in ("answer", "ground_truth", "solution"):
        assert truegold(prompts=["?"] * 2, completions=[RIGHT, WRONG], **{column: ["1/2", "$\\frac{1}{2}$"]}) == [1, 0]


def test_what_becomes_of_none_is_said_explicitly() -> None:
    arguments = {"prompts": ["?"], "completions": [RIGHT], "answer": [UNREADABLE]}
    assert TruegoldReward()(**arguments) == [None]
    assert TruegoldReward(unjudged=-1.0)(**arguments) == [-1.0]
    with pytest.raises(ConfigError, match="unjudged must be a number or None; this is str 'zero'"):
        TruegoldReward(unjudged="zero")  # type: ignore[arg-type]


def test_a_reward_is_pickled_by_its_settings_and_has_a_name() -> None:
    reward = TruegoldReward(verifier="numeric", unjudged=0.25)
    reward(prompts=["?"], completions=[RIGHT], answer=["0.5"])
    copy = pickle.loads(pickle.dumps(reward))
    assert (copy.__name__, copy.verifier, copy.unjudged) == ("truegold", "numeric", 0.25)
    assert copy(prompts=["?"], completions=[RIGHT], answer=["0.5"]) == [1.0]


def test_a_misspelt_verifier_is_told_before_training() -> None:
    with pytest.raises(ConfigError, match="there is no verifier 'mth'"):
        TruegoldReward(verifier="mth")


def test_verl_gets_the_same_keys_for_every_sample_from_any_thread() -> None:
    """verl calls it by keyword in the threads of its executor, and takes the keys of the first sample for all."""
    calls = [(RIGHT, "1/2"), (WRONG, "1/2"), ("", "1/2"), (RIGHT, UNREADABLE), ("x" * 200_000, "1/2")]
    info = {"split": "train", "index": 0, "num_turns": None, "rollout_reward_scores": {}}

    def call(response: str, gold: str) -> dict[str, Any]:
        return verl.compute_score(data_source="x", solution_str=response, ground_truth=gold, extra_info=info)

    with ThreadPoolExecutor(8) as threads:
        scores = [future.result() for future in [threads.submit(call, *arguments) for arguments in calls * 20]]
    assert len({tuple(score) for score in scores}) == 1
    assert [score["score"] for score in scores] == [1.0, 0.0, 0.0, 0.0, 0.0] * 20
    assert [score["judged"] for score in scores[:5]] == [1.0, 1.0, 1.0, 0.0, 1.0]
    assert not any(value is None for score in scores for value in score.values())


def test_verl_reads_what_the_export_put_into_extra_info() -> None:
    info = {"split": "train", "index": 0, "truegold": carried(None, **PROGRAM)}
    program = "```python\ndef add(a, b):\n    return a + b\n```"
    assert verl.compute_score("x", program, "ignored", extra_info=info)["score"] == 1.0
    assert verl.compute_score("x", program.replace("+", "-"), "ignored", extra_info=info)["score"] == 0.0
    assert verl.compute_score("x", RIGHT, UNREADABLE, unjudged=-1.0)["score"] == -1.0


CHATS = {
    "chatml": ("<|im_start|>user\nWhat?<|im_end|>\n<|im_start|>assistant\n", "<|im_end|>\n<|endoftext|><|endoftext|>"),
    "llama3": (
        "<|begin_of_text|><|start_header_id|>user<|end_header_id|>\n\nWhat?<|eot_id|><|start_header_id|>assistant"
        "<|end_header_id|>\n\n",
        "<|eot_id|>",
    ),
    "gemma": ("<bos><start_of_turn>user\nWhat?<end_of_turn>\n<start_of_turn>model\n", "<end_of_turn>\n<eos>"),
    "deepseek": ("<｜begin▁of▁sentence｜><｜User｜>What?<｜Assistant｜>", "<｜end▁of▁sentence｜>"),
    "mistral": ("<s>[INST] What? [/INST]", "</s>"),
}


@pytest.mark.parametrize("chat", CHATS)
@pytest.mark.parametrize("prompt_survives", [True, False])
def test_openrlhf_responses_are_cut_out_of_queries_with_special_tokens(chat: str, prompt_survives: bool) -> None:
    before, after = CHATS[chat]
    response = "a < b, |x|, <think>hm</think> and [INST-like] so \\boxed{0.5}"
    prompt = before if prompt_survives else before.replace("What?", "What ?")
    assert openrlhf.response_in(before + response + after, prompt) == response


def test_openrlhf_gets_tensors_for_a_batch_of_one_by_position_in_a_thread() -> None:
    before, after = CHATS["chatml"]
    label = json.dumps({"gold": "1/2", "verifier": "math", "verifier_args": "{}", "problem": "What?"})

    async def call(response: str, label: str) -> dict[str, Any]:
        return await asyncio.to_thread(openrlhf.reward_func, [before + response + after], [before], [label])

    async def main() -> list[dict[str, Any]]:
        return await asyncio.gather(call(RIGHT, label), call(WRONG, label), call(RIGHT, "1/2"), call(RIGHT, UNREADABLE))

    scored = asyncio.run(main())
    assert [entry["rewards"].tolist() for entry in scored] == [[1.0], [0.0], [1.0], [0.0]]
    assert [entry["extra_logs"]["judged"].tolist() for entry in scored] == [[1.0], [1.0], [1.0], [0.0]]
    assert scored[3]["extra_logs"]["masked_share"].item() == 1.0 and len({tuple(entry) for entry in scored}) == 1


def test_open_instruct_finds_the_verifier_by_subclass_and_calls_it_with_positions() -> None:
    """Its own package is not installed here: what it derives from follows open-instruct's source."""
    (made,) = [subclass() for subclass in open_instruct.VerifierFunction.__subclasses__()]
    assert made.name == "truegold" and made.weight == 1.0
    assert made([1, 2], RIGHT, carried(), "What is one half?").score == 1.0
    assert made([1, 2], WRONG, [carried()]).score == 0.0
    assert made(tokenized_prediction=[], prediction=RIGHT, label=UNREADABLE).reasoning == "gold_unparsed"
    assert made.masked_share() == pytest.approx(1 / 3)


def test_prime_scores_traces_and_checks_golds() -> None:
    data = SimpleNamespace(gold="1/2", verifier="math", verifier_args="{}", prompt="What?", solution=None)
    assert asyncio.run(prime.score_trace(data, SimpleNamespace(last_reply=RIGHT))) == {"correct": 1.0}
    assert asyncio.run(prime.gold_passes(data)) is True
    with pytest.raises(prime.RolloutNotJudged, match="gold_unparsed"):
        asyncio.run(
            prime.score_trace(SimpleNamespace(**{**vars(data), "gold": UNREADABLE}), SimpleNamespace(last_reply=RIGHT))
        )


def test_nemo_gym_gets_the_fields_of_a_verify_response() -> None:
    message = {"type": "message", "content": [{"type": "output_text", "text": RIGHT}]}
    body = {
        "responses_create_params": {"input": []},
        "response": {"output": [{"type": "reasoning", "summary": [{"text": WRONG}]}, message]},
        "question": "What is one half?",
        "expected_answer": "1/2",
    }
    fields = asyncio.run(nemo_gym.verify_fields(body))
    assert (fields["reward"], fields["extracted_answer"], fields["judged"], fields["masked"]) == (1.0, "0.5", True, 0.0)
    unjudged = asyncio.run(nemo_gym.verify_fields({**body, "expected_answer": UNREADABLE}))
    assert (unjudged["reward"], unjudged["judged"], unjudged["masked"]) == (0.0, False, 1.0)


def test_a_large_batch_is_judged_by_processes() -> None:
    with closing(Scorer(workers=2)) as scorer:
        for _ in range(2):
            verdicts = scorer.judge([RowTruth("1/2").question(text) for text in [RIGHT, WRONG] * 40])
            assert [verdict.score for verdict in verdicts] == [1.0, 0.0] * 40
        assert scorer._processes._pool is not None


ELSEWHERE = """
import pickle, sys
scorer, questions = pickle.load(sys.stdin.buffer)
print([verdict.score for verdict in scorer.judge(questions)] == [1.0] * len(questions))
scorer.close()
"""


def test_a_scorer_that_was_sent_to_another_process_judges_there_too() -> None:
    scorer = Scorer(workers=2)
    questions = [RowTruth("1/2").question(RIGHT)] * 70
    try:
        assert [verdict.score for verdict in scorer.judge(questions)] == [1.0] * 70
        sent = pickle.dumps((scorer, questions))
    finally:
        scorer.close()
    done = subprocess.run(
        [sys.executable, "-P", "-c", ELSEWHERE], input=sent, capture_output=True, check=True, timeout=120
    )
    assert done.stdout == b"True\n"


def test_what_trainers_log_has_no_none_and_the_masked_share_counts_them() -> None:
    verdicts = [Verdict(None, Reason.TIMEOUT), Verdict(1.0, Reason.MATCH, "5")]
    assert [set(record_of(verdict)) for verdict in verdicts] == [
        {"score", "judged", "masked", "unread", "reason", "extracted"}
    ] * 2
    assert masked_share(verdicts) == 0.5 and masked_share([]) == 0.0


def test_the_last_assistant_message_is_the_response() -> None:
    turns = [{"role": "assistant", "content": WRONG}, {"role": "tool", "content": "5"}]
    assert last_text([*turns, {"role": "assistant", "content": [{"type": "text", "text": RIGHT}]}]) == RIGHT
    assert last_text([{"role": "assistant", "content": None}]) == last_text([]) == ""


def test_a_program_has_no_gold_even_if_its_solution_stands_there() -> None:
    assert truth_of({"truegold": carried(None, solution="def add(): ...", **PROGRAM), "answer": "x"}).gold is None


def test_trl_is_told_where_its_set_has_no_gold() -> None:
    with pytest.raises(ConfigError, match="The data set has no gold: its columns are question"):
        TruegoldReward()(prompts=["q"], completions=["\\boxed{4}"], question=["q"])
    assert TruegoldReward()(prompts=[], completions=[]) == []
    assert TruegoldReward("length", unjudged=0.0)(prompts=["q"], completions=["four"]) != [None]


def test_a_trainer_s_log_says_which_form_is_not_read(caplog: pytest.LogCaptureFixture) -> None:
    scorer = Scorer()
    questions = [Item(f"<total eggs={number}/>", str(number)) for number in range(100, 150)]
    assert {verdict.reason for verdict in scorer.judge(questions)} == {Reason.UNREAD}
    (line,) = [record.getMessage() for record in caplog.records if "not read" in record.getMessage()]
    assert "50 of 50 responses" in line and "<total eggs=" in line


def test_what_a_response_could_have_avoided_is_0_where_a_policy_learns(caplog: pytest.LogCaptureFixture) -> None:
    question = Item("\\boxed{5 frobs}", "5 glorps")
    assert [Scorer(trains=trains).judge([question])[0].score for trains in (True, False)] == [0.0, None]
    assert "score 0, since other responses to the row could be judged" in caplog.text
