"""Distilled positives in training: weights that are what they claim to be, and groups whose own statistics stay."""

from __future__ import annotations

import ast
import itertools
import json
import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch
from numbered_rows import make_row
from pydantic import ValidationError
from real_data import real_data
from torch import Tensor

from truegold.pipeline.config.engines import ChatConfig
from truegold.pipeline.engines.chat import ByteEncoder
from truegold.pipeline.tables.rows import write_rows
from truegold.synth.records import DISTILLED_SCHEMA
from truegold.train.config.models import SftConfig
from truegold.train.config.objective import DistilledConfig, MaskConfig, ObjectiveConfig
from truegold.train.grpo.groups import StepCompletion
from truegold.train.grpo.self_distillation import Distilled, join, load_distilled, relative_advantage, self_teachers
from truegold.train.grpo.update import PreparedBatch, StepLoss, WeighedBatch
from truegold.train.model.segment import DistilledPositive, Segment, collate
from truegold.train.objective import Totals, distillation_weights, ppo_clip, self_distillation
from truegold.train.sft import distilled_weights, negative_log_likelihood

ROOT = Path(__file__).parents[2]
NO_CAP = math.inf


def test_weights_are_those_of_the_shared_fixture() -> None:
    fixture = json.loads(real_data("train/loss_fixture.json").read_text())
    inputs = {name: torch.tensor(value, dtype=torch.float64) for name, value in fixture["inputs"].items()}
    expected = fixture["expected"]["context_distillation_weight"]
    assert expected
    for name, values in expected.items():
        kind, _, cap = name.partition("_cap_")
        made = distillation_weights(
            inputs["old_logp"], inputs["rollout_logp"], inputs["mask"], cast("Any", kind), float(cap or 1)
        )
        wanted = torch.tensor(values, dtype=torch.float64)
        assert torch.allclose(made.expand_as(wanted) if made.dim() else made, wanted, atol=1e-6), name


# A model of two tokens, of which two are sampled: all four outputs can be counted.

OUTPUTS = list(itertools.product((0, 1), repeat=2))
REWARD = {(0, 0): 0.0, (0, 1): 0.0, (1, 0): 0.3, (1, 1): 1.0}
CONTEXT = torch.tensor([[0.2, 0.8], [0.5, 0.5], [0.1, 0.9]], dtype=torch.float64).log()
"""With the context: the first token, the second after 0, the second after 1."""


def bare_logits() -> Tensor:
    """Without it, the right output 1, 1 is unlikely."""
    return torch.tensor([[1.0, -1.0], [0.0, 0.3], [0.8, -0.4]], dtype=torch.float64, requires_grad=True)


def logprobs(table: Tensor, output: tuple[int, int]) -> Tensor:
    """Return the log-probability of each of an output's tokens."""
    first, second = output
    return torch.stack([table[0, first], table[1 + first, second]])


def true_gradient() -> Tensor:
    logits = bare_logits()
    table = logits.log_softmax(1)
    expected = sum(logprobs(table, output).sum().exp() * REWARD[output] for output in OUTPUTS)
    assert isinstance(expected, Tensor)
    return torch.autograd.grad(expected, logits)[0]


def distilled_gradient(kind: str, cap: float, *, old_has_context: bool = False) -> Tensor:
    """Return the expected gradient of the first step on outputs that were sampled with the context."""
    logits = bare_logits()
    table, mask = logits.log_softmax(1), torch.ones(1, 2, dtype=torch.float64)
    total = torch.zeros((), dtype=torch.float64)
    for output in OUTPUTS:
        current, conditioned = logprobs(table, output)[None], logprobs(CONTEXT, output)[None]
        bare = current.detach()
        old = conditioned if old_has_context else bare
        weight = distillation_weights(bare, conditioned, mask, cast("Any", kind), cap)
        advantage = torch.tensor([REWARD[output]], dtype=torch.float64)
        loss = ppo_clip(current, old, advantage, mask, low=1.0, high=1e9).loss
        total = total - conditioned.sum().exp() * (weight * loss).sum()
    return torch.autograd.grad(total, logits)[0]


def test_the_weight_of_the_whole_output_without_a_cap_is_unbiased() -> None:
    assert torch.allclose(distilled_gradient("sequence", NO_CAP), true_gradient(), atol=1e-12)


def test_self_distillation_has_the_gradient_of_the_divergence_at_each_position() -> None:
    logits = bare_logits()
    table = logits.log_softmax(1)
    divergence = torch.zeros((), dtype=torch.float64)
    sampled = torch.zeros((), dtype=torch.float64)
    for row, prefix_share in ((0, torch.tensor(1.0)), (1, table[0, 0].exp()), (2, table[0, 1].exp())):
        divergence = divergence + prefix_share.detach() * (table[row].exp() * (table[row] - CONTEXT[row])).sum()
    for output in OUTPUTS:
        current, teacher = logprobs(table, output)[None], logprobs(CONTEXT, output)[None]
        loss = self_distillation(current, teacher, current.detach(), max_gap=100.0)
        sampled = sampled + current.detach().sum().exp() * loss.sum()
    expected, gradient = (torch.autograd.grad(value, logits, retain_graph=True)[0] for value in (divergence, sampled))
    assert torch.allclose(gradient, expected, atol=1e-12)


def test_self_distillation_is_bounded_and_leaves_segments_without_a_teacher_alone() -> None:
    current = torch.tensor([[-1.0, -1.0, -1.0], [-1.0, -1.0, -1.0]], requires_grad=True)
    teacher = torch.tensor([[-3.0, -90.0, -0.5], [float("nan")] * 3])
    old = torch.tensor([[-1.0, -1.0, -1.5], [-1.0, -1.0, -1.0]])
    self_distillation(current, teacher, old, max_gap=5.0).sum().backward()
    # The third token is sqrt(e) times as likely as it was when it was sampled.
    assert torch.allclose(current.grad, torch.tensor([[2.0, 5.0, -0.5 * math.exp(0.5)], [0.0, 0.0, 0.0]]))


@pytest.mark.parametrize("kind", ["token", "prefix", "geometric", "none"])
def test_the_other_weights_are_biased_as_the_docs_say(kind: str) -> None:
    assert not torch.allclose(distilled_gradient(kind, NO_CAP), true_gradient(), atol=1e-2)


def test_log_probabilities_with_the_context_as_the_old_policy_are_biased_and_shrink_positives() -> None:
    mistaken = distilled_gradient("none", NO_CAP, old_has_context=True)
    assert not torch.allclose(mistaken, true_gradient(), atol=1e-2)
    # It leaves exp(l - a) of a token that the context made likely, without anybody having asked for it.
    right = distilled_gradient("none", NO_CAP)
    assert float(mistaken.norm()) < 0.6 * float(right.norm())


# Members of groups.


def completion(number: int, right: bool, group: int, reward: float | None = 0.0) -> StepCompletion:
    segment = Segment((1, 2), (3, 4), (-0.5, -0.5), reward=reward, right=right, group=group)
    return StepCompletion({**make_row(number), "pass_rate": 0.02}, segment, cast("Any", SimpleNamespace()))


def positive(number: int, trust: float = 1.0, output: int = 7) -> DistilledPositive:
    row = make_row(number)
    segment = Segment((1, 2), (output, 8, 9), (-0.1, -0.2, -0.3), origin="reflection", reward=1.0, right=True)
    return DistilledPositive((row["id"], row["source"], row["source_row"]), segment, trust)


def group_of(right: int, size: int = 8, number: int = 1, group: int = 0) -> list[StepCompletion]:
    return [completion(number, index < right, group) for index in range(size)]


def test_the_advantage_is_measured_against_sampled_members_alone() -> None:
    segments = [done.segment for done in group_of(2)]
    spread = math.sqrt((2 * 0.75**2 + 6 * 0.25**2) / 7)
    assert relative_advantage(segments, 99.0) == pytest.approx(0.75 / (spread + 1e-4))
    assert relative_advantage([done.segment for done in group_of(0)], 2.0) == 2.0
    assert relative_advantage([done.segment for done in group_of(8)], 2.0) == 0.0
    unjudged = [completion(1, False, 0, reward=None).segment]
    assert relative_advantage(unjudged, 2.0) == 0.0


def test_lambda_falls_to_nothing_as_the_pass_rate_rises() -> None:
    joining = Distilled([positive(1)], DistilledConfig(strength=0.5, zero_at=0.5, max_advantage=2.0))
    strengths = [joining.strength(rate) for rate in (0.0, 0.25, 0.5, 0.9)]
    assert strengths == [0.5, 0.25, 0.0, 0.0]
    (member,) = joining.members(group_of(0), {0: 0.25}, step=0)
    assert (member.advantage, member.segment.group) == (0.5, 0)
    assert joining.members(group_of(0), {0: 0.5}, step=0) == []
    assert joining.members(group_of(0, number=2), {0: 0.0}, step=0) == []


def test_positives_of_a_row_take_turns_and_weigh_by_their_trust() -> None:
    joining = Distilled([positive(1, output=7), positive(1, trust=0.3, output=6)], DistilledConfig(strength=1.0))
    first, second = (joining.members(group_of(0), {0: 0.0}, step)[0] for step in (0, 1))
    assert (first.segment.output_ids[0], second.segment.output_ids[0]) == (7, 6)
    assert second.advantage == pytest.approx(0.3 * first.advantage)
    both = Distilled([positive(1), positive(1, output=6)], DistilledConfig(per_group=3))
    assert len(both.members(group_of(0), {0: 0.0}, 0)) == 2


def test_positives_of_other_prompts_are_left_out_and_counted(tmp_path: Path) -> None:
    encoder, rows = ByteEncoder(ChatConfig()), [make_row(1), make_row(2)]

    def record(number: int, prompt_ids: list[int]) -> dict[str, Any]:
        row = make_row(number)
        empty = dict.fromkeys(DISTILLED_SCHEMA.names)
        known = {"output_ids": [1, 2], "context_logprobs": [-1.0, -1.0], "temperature": 1.0, "trust": 1.0}
        return {
            **empty,
            **{name: row[name] for name in ("id", "source", "source_row")},
            **known,
            "prompt_ids": prompt_ids,
        }

    records = [record(1, encoder.encode(rows[0]["prompt"])), record(2, [5]), record(3, [5])]
    write_rows(tmp_path / "distilled.parquet", records, DISTILLED_SCHEMA)
    kept, skipped = load_distilled(tmp_path / "distilled.parquet", encoder, rows, ObjectiveConfig())
    assert skipped == {"skip:distilled_other_prompt": 1, "skip:distilled_of_no_row": 1}
    assert kept is not None
    assert len(kept.members(group_of(0), {0: 0.0}, 0)) == 1
    assert load_distilled(None, encoder, rows, ObjectiveConfig()) == (None, {})


# The loss.


def loss_of(
    config: ObjectiveConfig, segments: list[Segment], advantages: list[float], joined: int
) -> tuple[float, dict[str, Tensor]]:
    """Return a step's loss where the last `joined` segments are distilled; every log-probability is -1 or so."""
    batch = collate([[segment] for segment in segments], pad_id=0)
    current = -1.0 * batch.mask
    is_distilled = torch.zeros(len(segments), dtype=torch.bool)
    is_distilled[len(segments) - joined :] = True
    totals = Totals(4.0, 2.0)
    step = StepLoss(
        config, 8, totals, torch.tensor(advantages), PreparedBatch(float("-inf"), None, None), None, 0.0, is_distilled
    )
    loss, reported = step(current, torch.zeros_like(current), batch, list(range(len(segments))))
    return float(loss), reported


def settings(**distilled: Any) -> ObjectiveConfig:
    return ObjectiveConfig(
        loss="ppo", aggregation="token", masks=MaskConfig(truncated=False), distilled=DistilledConfig(**distilled)
    )


SAMPLED = [Segment((1,), (2, 3), (-1.0, -1.0)), Segment((1,), (4, 5), (-1.0, -1.0))]


@pytest.mark.parametrize(
    ("weight", "factor"),
    [
        ("none", 1.0),
        ("token", (math.exp(-0.5) + 1.0) / 2),
        ("sequence", math.exp(-0.3)),
        ("geometric", math.exp(-0.15)),
        ("prefix", (math.exp(-0.5) + math.exp(-0.3)) / 2),
    ],
)
def test_a_distilled_segment_is_weighed_by_its_own_weight_and_no_correction(weight: str, factor: float) -> None:
    member = Segment((1,), (6, 7), (-0.5, -1.2), origin="reflection")
    alone, _ = loss_of(settings(weight=weight), SAMPLED, [1.0, -1.0], joined=0)
    both, reported = loss_of(settings(weight=weight), [*SAMPLED, member], [1.0, -1.0, 0.8], joined=1)
    # Two tokens, each a quarter of the sampled ones, on the first step with the ratio 1.
    assert both - alone == pytest.approx(-0.8 * factor * 2 / 4, abs=1e-6)
    assert float(reported["mismatch_abs"]) == pytest.approx(0.0, abs=1e-6)
    assert float(reported["distilled_weight"]) == pytest.approx(2 * factor, abs=1e-5)


def test_shaping_takes_the_place_of_weight_and_clip() -> None:
    member = Segment((1,), (6, 7), (-0.5, -1.2), origin="reflection")
    alone, _ = loss_of(settings(weight="shaped"), SAMPLED, [1.0, -1.0], joined=0)
    both, _ = loss_of(settings(weight="shaped"), [*SAMPLED, member], [1.0, -1.0, 0.8], joined=1)
    probability = math.exp(-1.0)
    assert both - alone == pytest.approx(-0.8 * probability / (probability + 0.1) * 2 / 4, abs=1e-6)


def test_members_stand_behind_the_sampled_ones_whose_advantages_stay() -> None:
    joining = Distilled([positive(1)], DistilledConfig())
    members = joining.members(group_of(0), {0: 0.0}, 0)
    weighed = WeighedBatch(torch.tensor([0.5, -0.5]), torch.tensor([True, False]), {})
    segments, batch = join(SAMPLED, weighed, members)
    assert batch.distilled is not None
    assert batch.advantages.tolist() == [0.5, -0.5, members[0].advantage]
    assert batch.trained.tolist() == [True, False, True]
    assert batch.distilled.tolist() == [False, False, True]
    assert segments[2].origin == "reflection"


# SFT.


def test_sft_weighs_tokens_by_the_models_own_log_probabilities_and_trust() -> None:
    segments = [Segment((1,), (6, 7), (-0.5, -1.2)), Segment((1,), (3,), (-2.0,))]
    engine = SimpleNamespace(logprobs=lambda given: [torch.full((len(each.output_ids),), -1.0) for each in given])
    weights = distilled_weights(cast("Any", engine), segments, [1.0, 0.3], SftConfig())
    assert weights[0].tolist() == pytest.approx([math.exp(-0.5), 1.0])
    assert weights[1].tolist() == pytest.approx([0.3])
    batch = collate([[segment] for segment in segments], pad_id=0)
    loss = negative_log_likelihood(Totals(3.0, 2.0), weights)
    value, _ = loss(-1.0 * batch.mask, torch.zeros_like(batch.mask), batch, [0, 1])
    assert float(value) == pytest.approx((math.exp(-0.5) + 1.0 + 0.3) / 3)
    unweighted, _ = negative_log_likelihood(Totals(3.0, 2.0))(-1.0 * batch.mask, batch.mask, batch, [0, 1])
    assert float(unweighted) == pytest.approx(1.0)


# The floors.


def test_training_knows_of_synthesis_its_record_and_nothing_else() -> None:
    imported = {
        node.module
        for path in (ROOT / "train").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom) and node.module is not None
        if node.module.startswith("truegold.synth")
    }
    assert imported == {"truegold.synth.records"}
    for path in (ROOT / "synth").rglob("*.py"):
        assert "truegold.train" not in path.read_text(), path


# The policy as its own teacher.


def right_group(encoder: ByteEncoder, texts: str, right: set[int]) -> list[StepCompletion]:
    """Return a group of completions of a letter each, those at the positions `right` being right."""
    group = []
    for index, text in enumerate(texts):
        segment = Segment((1,), tuple(encoder.encode_completion(text)), right=index in right, reward=0.0, group=4)
        group.append(StepCompletion(make_row(1), segment, cast("Any", None)))
    return group


def test_a_completion_is_judged_by_the_policy_that_sees_another_right_one_of_its_group() -> None:
    encoder = ByteEncoder(ChatConfig())
    group = right_group(encoder, "abcd", {1, 2})
    lonely = completion(1, True, group=5)
    teachers = self_teachers([*group, lonely], encoder, "{prompt} | {solution}", longest=1000)
    shown = [None if each is None else encoder.decode(each.prompt_ids).rpartition("| ")[2] for each in teachers]
    assert shown == ["b", "c", "b", "b", None]
    assert teachers[0] is not None
    assert teachers[0].output_ids == group[0].segment.output_ids
    prompt = make_row(1)["prompt"]
    assert encoder.decode(teachers[0].prompt_ids) == f"{prompt} | b"
    assert self_teachers(group, encoder, "{prompt} | {solution}", longest=len(prompt)) == [None] * 4


def test_completions_that_are_equal_are_told_apart_by_their_positions() -> None:
    encoder = ByteEncoder(ChatConfig())
    group = right_group(encoder, "aab", {0, 1, 2})
    assert group[0] == group[1]
    teachers = self_teachers(group, encoder, "{solution}", longest=1000)
    assert [encoder.decode(teacher.prompt_ids) for teacher in teachers if teacher is not None] == ["a", "b", "a"]


def test_a_template_without_the_solution_is_refused() -> None:
    with pytest.raises(ValidationError, match=r"the template lacks \{solution\}"):
        ObjectiveConfig.model_validate({"self_distillation": {"weight": 1.0, "template": "{prompt}"}})
