"""The judge on the scripted engine: who is asked, who is not, and what becomes of the replies."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from pydantic import ValidationError

from truegold.pipeline.config.engines import ChatConfig
from truegold.pipeline.config.stages import JudgeConfig
from truegold.pipeline.engines.base import Completion, SamplingParams
from truegold.pipeline.engines.chat import ByteEncoder
from truegold.pipeline.engines.scripted import ScriptedEngine
from truegold.pipeline.judge.model import Judge
from truegold.verifiers import Item, Reason, Verdict, verify_batch

CONFIG = JudgeConfig(name="oracle", batch_size=2)
OPEN = Verdict(None, Reason.GOLD_UNPARSED, "3.2 km", {"gold": "two miles"})


class Recorder(ScriptedEngine):
    """The scripted engine, which remembers what it was asked."""

    def __init__(self, script: dict[str, list[str]], max_model_len: int = 2**20) -> None:
        self.encoder = ByteEncoder(ChatConfig())
        super().__init__(script, self.encoder, max_model_len)
        self.batches: list[list[str]] = []

    def generate(
        self, prompts: Sequence[Sequence[int]], sampling: SamplingParams, seeds: Sequence[int]
    ) -> list[Completion]:
        """Keep the prompts of the batch and answer it."""
        self.batches.append([self.encoder.decode(prompt) for prompt in prompts])
        return super().generate(prompts, sampling, seeds)


def ask(
    engine: Recorder, verdicts: Sequence[Verdict], config: JudgeConfig = CONFIG, gold: str | None = "two miles"
) -> list[Verdict]:
    """Judge verdicts on one response each, of the problems "How far is it? Case 0.", "Case 1." and so on."""
    responses = [
        Item("So it is \\boxed{3.2 km}.", gold, problem=f"How far is it? Case {case}.") for case in range(len(verdicts))
    ]
    return Judge(engine, engine.encoder, config)(responses, verdicts)


@pytest.mark.parametrize(
    ("replies", "score", "reason"),
    [
        (["Both 3.2 km.\nSAME", "SAME"], 1.0, Reason.MATCH),
        (["DIFFERENT", '{"verdict": "different"}'], 0.0, Reason.MISMATCH),
        (["SAME", "DIFFERENT"], None, Reason.GOLD_UNPARSED),
        (["SAME", "UNSURE"], None, Reason.GOLD_UNPARSED),
        (["I would say so.", "SAME"], None, Reason.GOLD_UNPARSED),
        (["", ""], None, Reason.GOLD_UNPARSED),
    ],
)
def test_a_verdict_needs_the_same_plain_word_in_both_orders(
    replies: list[str], score: float | None, reason: Reason
) -> None:
    (verdict,) = ask(Recorder({"Case 0.": replies}), [OPEN])
    assert (verdict.score, verdict.reason, verdict.extracted) == (score, reason, "3.2 km")
    assert verdict.evidence == {
        "gold": "two miles",
        "judge": "oracle",
        "unjudged_because": "gold_unparsed",
        "replies": replies,
    }


def test_a_reply_that_was_cut_off_says_nothing() -> None:
    engine = Recorder({"Case 0.": ["SAME"]})
    (verdict,) = ask(engine, [OPEN], JudgeConfig(name="oracle", max_tokens=4))
    assert verdict.score is None
    assert verdict.evidence["replies"] == [None, None]


def test_nothing_that_rules_judged_is_sent() -> None:
    engine = Recorder({"Case": ["SAME"]})
    ruled = [
        Verdict(1.0, Reason.MATCH, "5"),
        Verdict(0.0, Reason.MISMATCH, "5"),
        Verdict(0.0, Reason.HEDGED, "5 or 6"),
        Verdict(0.0, Reason.UNREAD, "?5"),
        Verdict(0.5, Reason.PARTIAL, "5"),
        # This reason is not among those that the judge is asked about.
        Verdict(None, Reason.VERIFIER_ERROR, "5"),
    ]
    assert ask(engine, ruled) == ruled
    assert engine.batches == []


@pytest.mark.parametrize("answer", ["{", "", "...", "x" * 301, "</answer></answer></answer>5"])
def test_what_is_not_worth_a_question_comes_back_as_it_was(answer: str) -> None:
    engine = Recorder({"Case": ["SAME"]})
    verdict = Verdict(None, Reason.GOLD_UNPARSED, answer)
    assert ask(engine, [verdict]) == [verdict]
    assert engine.batches == []


def test_without_gold_or_room_nobody_is_asked() -> None:
    assert ask(Recorder({"Case": ["SAME"]}), [OPEN], gold=None) == [OPEN]
    assert ask(Recorder({"Case": ["SAME"]}, max_model_len=100), [OPEN]) == [OPEN]


def test_the_answer_is_taken_from_the_response_where_the_verdict_has_none() -> None:
    engine = Recorder({"Case 0.": ["SAME"]})
    (verdict,) = ask(engine, [Verdict(None, Reason.GOLD_UNPARSED)])
    assert verdict.passed
    assert all("\n3.2 km\n" in prompt for prompt in engine.batches[0])


def test_rows_go_in_batches_and_keep_their_places() -> None:
    engine = Recorder({"Case 1.": ["SAME"], "Case 3.": ["DIFFERENT"], "Case 4.": ["SAME"]})
    match = Verdict(1.0, Reason.MATCH, "5")
    verdicts = ask(engine, [match, OPEN, match, OPEN, OPEN])
    assert [verdict.score for verdict in verdicts] == [1.0, 1.0, 1.0, 0.0, 1.0]
    assert [len(batch) for batch in engine.batches] == [4, 2]


def test_it_takes_the_verdicts_of_the_rules_as_they_come() -> None:
    responses = [
        Item("\\boxed{1/2}", "0.5", "numeric"),
        Item("\\boxed{1/3}", "0.5", "numeric"),
        Item("\\boxed{half}", "one half", "numeric", problem="What share?"),
    ]
    engine = Recorder({"What share?": ["SAME"]})
    verdicts = Judge(engine, engine.encoder, CONFIG)(responses, list(verify_batch(responses, workers=1)))
    assert [verdict.score for verdict in verdicts] == [1.0, 0.0, 1.0]
    assert ["judge" in verdict.evidence for verdict in verdicts] == [False, False, True]


def test_reasons_that_leave_nothing_to_compare_are_refused() -> None:
    with pytest.raises(ValidationError, match="nothing can be compared where the reason is gold_missing"):
        JudgeConfig(name="oracle", reasons=(Reason.GOLD_MISSING,))
