"""Composed rewards: what is judged, what is measured, and what a configuration may say."""

from __future__ import annotations

import json
import pickle
from contextlib import closing
from pathlib import Path

import polars as pl
import pytest
from chat_server import ChatServer
from pydantic import ValidationError

from truegold.pipeline.config.engines import ChatConfig
from truegold.pipeline.engines.base import Completion
from truegold.pipeline.engines.chat import ByteEncoder
from truegold.pipeline.judge.audit import JudgeAudit, write_audit
from truegold.pipeline.tables.rows import Row
from truegold.train.config.grpo import GrpoConfig, RewardConfig
from truegold.train.grpo.batch_metrics import diversity_metrics, reward_metrics
from truegold.train.grpo.groups import CompletionScorer, StepCompletion, strip_texts, write_completions
from truegold.train.model.segment import Segment
from truegold.verifiers import ConfigError, GuardError, Reason

ENCODER = ByteEncoder(ChatConfig())

TERMS = [
    {"name": "format", "verifier": "format", "weight": 0.1, "args": {"answer": "box"}},
    {"name": "correct"},
    {"name": "length", "verifier": "length", "offset": -1, "args": {"max": 60, "buffer": 20}, "gate": "correct"},
]
SHAPED = RewardConfig.model_validate({"terms": TERMS})
GOOD = "<think>2+2</think>\\boxed{4}"


def row(index: int, gold: str | None = "4", verifier: str = "math") -> Row:
    return {
        "id": str(index),
        "source": "sums",
        "prompt": f"What is 2+2? ({index})",
        "gold": gold,
        "verifier": verifier,
        "verifier_args": "{}",
    }


def completion(text: str) -> Completion:
    ids = tuple(ENCODER.encode_completion(text))
    return Completion(ids, (-0.5,) * len(ids), "stop")


def scored(config: RewardConfig, rows: list[Row], groups: list[list[str]]) -> list[StepCompletion]:
    sampled = [[completion(text) for text in group] for group in groups]
    with closing(CompletionScorer(config, ENCODER)) as scorer:
        scores = iter(scorer.score(rows, sampled))
    return [
        StepCompletion(
            rows[group],
            Segment((1,), done.token_ids, done.logprobs, reward=(score := next(scores)).reward.value, group=group),
            score,
        )
        for group, members in enumerate(sampled)
        for done in members
    ]


def test_a_verifier_that_refuses_unknown_options_is_not_handed_the_length() -> None:
    config = RewardConfig.model_validate({"terms": [{"name": "correct"}, {"name": "again", "verifier": "math"}]})
    (score,) = CompletionScorer(config, ENCODER).score([row(0)], [[completion("\\boxed{4}")]])
    assert [verdict.score for verdict in score.verdicts] == [1.0, 1.0]


def test_an_audited_second_opinion_pays_unread_answers_and_nothing_else(tmp_path: Path) -> None:
    unread, other = "Together seventy-two dollars it is.", "Together seventy-three dollars it is."
    server = ChatServer(lambda messages: "SAME" if "seventy-two" in messages[-1]["content"] else "DIFFERENT")
    engine = {"type": "chat", "base_url": server.url, "model": "m"}
    opinion = {"model": {"name": "small", "engine": engine}, "audit": str(tmp_path / "audit.json")}
    config = RewardConfig.model_validate({"second_opinion": opinion})
    assert config.second_opinion is not None
    texts = [unread, other, "\\boxed{73}", "\\boxed{72}", "I do not know.", "It is seventy-two or more: \\boxed{5}"]
    with pytest.raises(ConfigError, match="is not an audit of a second opinion"):
        scored(config, [row(0, "72")], [texts])
    write_audit(JudgeAudit(unread=200, hostile=100), config.second_opinion, ["math"], "responses", tmp_path)
    completions = scored(config, [row(0, "72")], [texts])
    assert [done.score.reward.value for done in completions] == [1.0, 0.0, 0.0, 1.0, 0.0, 0.0]
    assert completions[0].score.correct.evidence["raised_from"] == "unread"
    metrics = reward_metrics([strip_texts(done) for done in completions], config.composition)
    assert (metrics["raised"], metrics["unread"]) == (1 / 6, 1 / 6)
    # Evaluations are by rules alone, and verifiers that the audit was not about are not raised.
    with closing(CompletionScorer(config, ENCODER)) as scorer:
        (score,) = scorer.score([row(0, "72")], [[completion(unread)]], correctness_only=True)
        (numeric,) = scorer.score([row(0, "72", "numeric")], [[completion(unread)]])
    assert (score.reward.value, numeric.reward.value, numeric.correct.reason) == (0.0, 0.0, Reason.UNREAD)
    assert len(server.bodies) == 4
    server.stop()


def test_a_term_that_a_model_grades_is_asked_of_right_answers_alone(tmp_path: Path) -> None:
    grades = {"two and two": "Clear.\nSCORE: 8", "see": "SCORE: 0/10", "pay me": "I would say 10."}
    server = ChatServer(lambda messages: next(said for text, said in grades.items() if text in messages[-1]["content"]))
    engine = {"type": "chat", "base_url": server.url, "model": "m"}
    judge = {"rubric": "Each step is explained.", "model": {"name": "small", "engine": engine}}
    terms = [{"name": "clear", "weight": 0.5, "gate": "correct", "judge": judge}, {"name": "correct"}]
    config = RewardConfig.model_validate({"terms": terms})
    texts = [
        f"{words} \\boxed{{{value}}}"
        for words, value in [("two and two", 4), ("see", 4), ("pay me", 4), ("two and two, and one", 5)]
    ]
    for _ in range(2):
        with closing(CompletionScorer(config, ENCODER, tmp_path)) as scorer:
            sampled = [completion(text) for text in texts]
            scores = scorer.score([row(0)], [sampled])
            (plain,) = scorer.score([row(0)], [sampled[:1]], correctness_only=True)
        assert [score.reward.value for score in scores] == [1.4, 1.0, None, 0.0]
        assert [score.correct.score for score in scores] == [1.0, 1.0, 1.0, 0.0]
        assert plain.reward.value == 1.0
    # The wrong answer was not asked about, evaluations ask nothing, and replies are kept.
    assert len(server.bodies) == 3
    assert scores[0].verdicts[0].evidence["judge"] == "small"
    assert "Each step is explained." in server.bodies[0]["messages"][-1]["content"]
    server.stop()


@pytest.mark.parametrize(
    ("term", "message"),
    [
        ({"name": "clear", "verifier": "format"}, "a term with a judge has no verifier"),
        ({"name": "clear", "args": {"max": 3}}, "no args"),
        ({"name": "clear", "gate": "right"}, "not a term"),
        ({"name": "correct"}, "two terms are named"),
    ],
)
def test_a_graded_term_that_cannot_be_is_refused(term: dict[str, object], message: str) -> None:
    engine = {"type": "chat", "base_url": "http://localhost:1", "model": "m"}
    judge = {"rubric": "Clear.", "model": {"name": "small", "engine": engine}}
    with pytest.raises(ValidationError, match=message):
        RewardConfig.model_validate({"terms": [{"name": "correct"}, {**term, "judge": judge}]})


def test_by_default_the_reward_is_the_score_of_the_row_s_own_verifier() -> None:
    rows = [row(0), row(1, "blue", "exact"), row(2, None)]
    completions = scored(RewardConfig(), rows, [["\\boxed{4}", "\\boxed{5}"], ["blue", "red"], ["\\boxed{4}"]])
    assert [completion.score.reward.value for completion in completions] == [1.0, 0.0, 1.0, 0.0, None]
    assert [completion.score.correct.score for completion in completions] == [1.0, 0.0, 1.0, 0.0, None]


def test_with_several_domains_each_has_its_share_its_rates_and_its_spread() -> None:
    rows: list[Row] = [
        {**row(0), "domain": "algebra", "pass_rate": 0.5},
        {**row(1), "domain": "counting", "pass_rate": 0.25},
    ]
    completions = scored(RewardConfig(), rows, [["\\boxed{4}", "\\boxed{5}"], ["\\boxed{4}"] * 2])
    completions[0].trained = completions[1].trained = True
    metrics = reward_metrics(completions, RewardConfig().composition)
    assert metrics["judged"] == 4
    of_algebra, of_counting = (
        {name.removesuffix(f"/{domain}"): value for name, value in metrics.items() if name.endswith(f"/{domain}")}
        for domain in ("algebra", "counting")
    )
    names = ("domain", "trained", "pass_rate", "profile_pass_rate", "reward_spread")
    assert of_algebra == dict(zip(names, (0.5, 1.0, 0.5, 0.5, 1.0), strict=True))
    assert of_counting == dict(zip(names, (0.5, 0.0, 1.0, 0.25, 0.0), strict=True))
    alone = reward_metrics(completions[:2], RewardConfig().composition)
    assert [name for name in alone if name.endswith("/algebra")] == ["domain/algebra"]


def test_terms_are_composed_and_length_counts_sampled_tokens() -> None:
    long = f"<think>{'x' * 27}</think>\\boxed{{4}}"
    assert len(completion(long).token_ids) == 52
    completions = scored(SHAPED, [row(0)], [[GOOD, long, "\\boxed{4}", "<think>x</think>\\boxed{5}"]])
    assert [completion.score.reward.value for completion in completions] == pytest.approx(
        [1.1, 1.1 - 12 / 20, 1.0, 0.1]
    )
    assert completions[1].score.verdicts[2].evidence["unit"] == "tokens"


def test_the_pass_rate_is_about_correctness_whatever_the_reward() -> None:
    groups = [[GOOD, "\\boxed{4}"], ["\\boxed{5}", "<think>x</think>\\boxed{5}"]]
    metrics = reward_metrics(scored(SHAPED, [row(0), row(1)], groups), SHAPED.composition)
    assert metrics["pass_rate"] == 0.5
    assert (metrics["groups_all_right"], metrics["groups_all_wrong"]) == (0.5, 0.5)
    assert metrics["reward"] == pytest.approx((1.1 + 1.0 + 0.0 + 0.1) / 4)
    assert metrics["score/format"] == 0.5
    assert metrics["reward/format"] == pytest.approx(0.05)
    assert metrics["score/correct"] == metrics["reward/correct"] == 0.5
    assert (metrics["score/length"], metrics["reward/length"]) == (1.0, 0.0)


def test_what_could_not_be_judged_is_left_out_of_the_means_and_counted() -> None:
    config = RewardConfig()
    rows = [row(0), row(1, None)]
    metrics = reward_metrics(scored(config, rows, [[GOOD], [GOOD]]), config.composition)
    assert (metrics["pass_rate"], metrics["reward"], metrics["unjudged"]) == (1.0, 1.0, 0.5)
    assert (metrics["groups_all_right"], metrics["groups_all_wrong"]) == (0.5, 0.0)
    nothing = reward_metrics(scored(config, [row(0, None)], [[GOOD]]), config.composition)
    assert (nothing["pass_rate"], nothing["reward"], nothing["unjudged"]) == (None, None, 1.0)


def test_the_sum_is_clipped() -> None:
    config = RewardConfig.model_validate({"terms": TERMS, "clip": [0.0, 1.0]})
    completions = scored(config, [row(0)], [[GOOD]])
    assert completions[0].score.reward.value == 1.0


def test_completions_keep_every_term(tmp_path: Path) -> None:
    rows = [row(0), row(1, None)]
    completions = scored(SHAPED, rows, [[GOOD, "\\boxed{5}"], [GOOD]])
    write_completions(tmp_path, 7, completions, SHAPED.composition, ENCODER)
    table = pl.read_parquet(tmp_path / "completions" / "step-000007.parquet")
    assert table["score"].to_list() == [1.0, 0.0, None]
    assert table["reward"].to_list() == [pytest.approx(1.1), 0.0, None]
    terms = [json.loads(text) for text in table["reward_terms"]]
    assert terms[0]["correct"] == {"score": 1.0, "reason": "match", "added": 1.0}
    assert terms[1]["length"] == {"score": 1.0, "reason": "match", "added": 0.0}
    assert terms[2]["correct"] == {"score": None, "reason": "gold_missing", "added": None}


def test_every_mistake_in_the_reward_is_told_at_once() -> None:
    with pytest.raises(ValidationError) as caught:
        GrpoConfig.model_validate(
            {
                "reward": {
                    "terms": [
                        {"name": "a", "verifier": "maths"},
                        {"name": "a", "verifier": "exact", "gate": "b"},
                        {"name": "c", "verifier": "exact", "gate": "c"},
                    ],
                    "clip": [1.0, 0.0],
                },
                "steps": 0,
            }
        )
    message = str(caught.value)
    for piece in (
        "Did you mean 'math'?",
        "two terms are named 'a'",
        "its gate 'b' is not a term",
        "c -> c",
        "exactly one term must have neither `verifier` nor `judge`",
        "reward.clip",
        "steps",
    ):
        assert piece in message


@pytest.mark.parametrize("term", [{"name": "correct", "weight": float("inf")}, {"name": "correct", "points": 1}, {}])
def test_a_term_that_makes_no_sense_is_refused(term: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        RewardConfig.model_validate({"terms": [term]})


def test_a_verifier_that_hangs_stops_the_step_with_its_name(tmp_path: Path) -> None:
    verifier = tmp_path / "hanging.py"
    verifier.write_text("import time\n\ndef hang(response, gold):\n    time.sleep(60)\n")
    config = RewardConfig.model_validate(
        {"terms": [{"name": "correct"}, {"name": "hang", "verifier": f"{verifier}:hang"}], "deadline_s": 0.1}
    )
    rows = [row(index, gold=str(index)) for index in range(3)]
    with pytest.raises(GuardError, match=r"hanging\.py:hang hangs: 7 of 7 verdicts"):
        scored(config, rows, [["\\boxed{5}"] * 4] * 3)


def test_what_ranks_send_each_other_of_a_completion_is_small_and_tells_metrics_all_they_need() -> None:
    groups = [[GOOD, "\\boxed{5}"], [GOOD * 300, "no answer"]]
    completions = scored(SHAPED, [row(0), row(1)], groups)
    for completion in completions:
        completion.row["solution"] = "long" * 1000
    small = [strip_texts(completion) for completion in completions]
    assert reward_metrics(small, SHAPED.composition) == reward_metrics(completions, SHAPED.composition)
    assert diversity_metrics(small, []) == diversity_metrics(completions, [])
    assert max(len(pickle.dumps(completion)) for completion in small) < 1500
