"""From rewards to optimizer steps: what each completion weighs, how a batch is cut, and what is left out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from truegold.train.config.models import OptimizerConfig
from truegold.train.config.objective import ClipConfig, MaskConfig, ObjectiveConfig
from truegold.train.grpo.update import PreparedBatch, StepLoss, Updater, WeighedBatch, resolve_loss, weigh_segments
from truegold.train.model.distributed import init_distributed
from truegold.train.model.engine import TrainingEngine
from truegold.train.model.segment import Segment, collate
from truegold.train.objective import Totals
from truegold.verifiers import ConfigError

pytestmark = [pytest.mark.real, pytest.mark.filterwarnings("default")]


@pytest.fixture(scope="module", autouse=True)
def group_of_one() -> None:
    init_distributed()


def segment(reward: float | None, group: int = 0, length: int = 4, truncated: bool = False) -> Segment:
    return Segment(
        (1, 2), tuple(range(5, 5 + length)), reward=reward, right=reward == 1.0, group=group, truncated=truncated
    )


def weighed(segments: list[Segment], kind: str = "dr_grpo", **settings: object) -> list[float]:
    config = ObjectiveConfig.model_validate({"masks": {"truncated": False}, **settings})
    return [round(value, 6) for value in weigh_segments(segments, config, [kind] * len(segments)).advantages.tolist()]


def test_a_completion_that_could_not_be_judged_leaves_its_group() -> None:
    assert weighed([segment(1.0), segment(None), segment(0.0)]) == [0.5, 0.0, -0.5]


def test_truncated_completions_count_for_the_others_and_are_not_trained_on() -> None:
    advantages = weighed([segment(1.0), segment(0.0), segment(0.0, truncated=True)], masks={})
    assert advantages == pytest.approx([2 / 3, -1 / 3, 0.0], abs=1e-6)


def test_completions_far_longer_than_the_others_can_be_left_out() -> None:
    batch = [segment(float(index % 2), group=index // 2) for index in range(10)]
    batch[3] = segment(1.0, group=1, length=400)
    assert weighed(batch, masks={"truncated": False, "outliers": True})[3] == 0.0
    assert weighed(batch)[3] == 0.5


def test_positives_are_weighted_up_by_what_the_masks_leave() -> None:
    batch = [segment(1.0, length=2), segment(0.0, length=8), segment(0.0, length=8, truncated=True)]
    # Without the truncated one: 2/3 x 2 tokens against 1/3 x 8; the floor 1 asks for twice the positive weight.
    assert weighed(batch, masks={}, positives={"floor": 1.0}) == pytest.approx([4 / 3, -1 / 3, 0.0], abs=1e-6)
    by_samples = weighed(batch, masks={}, positives={"floor": 1.0, "unit": "samples"})
    assert by_samples == pytest.approx([2 / 3, -1 / 3, 0.0], abs=1e-6)
    # The floor is measured against negatives as they are weighted: 4/3 against 8/3 x .1 needs no more.
    lowered = weighed(batch, masks={}, positives={"floor": 1.0, "negative_weight": 0.1})
    assert lowered == pytest.approx([2 / 3, -1 / 30, 0.0], abs=1e-6)
    assert weighed(batch, positives={"negative_weight": 0.5}) == pytest.approx([2 / 3, -1 / 6, -1 / 6], abs=1e-6)


def test_groups_of_different_kinds_are_compared_each_by_its_own() -> None:
    batch = [segment(1.0), segment(0.0), segment(1.0, 1), segment(0.0, 1), segment(0.0, 1), segment(0.0, 1)]
    config = ObjectiveConfig(masks=MaskConfig(truncated=False))
    advantages = weigh_segments(batch, config, ["dr_grpo"] * 2 + ["maxrl"] * 4).advantages.tolist()
    assert advantages == pytest.approx([0.5, -0.5, 3.0, -1.0, -1.0, -1.0])


@pytest.mark.parametrize("aggregation", ["token", "sequence", "constant"])
def test_micro_batches_add_up_to_the_whole_batch(aggregation: str) -> None:
    segments = [segment(0.0, length=length) for length in (3, 7, 1, 5)]
    advantages = torch.tensor([1.0, -0.5, 0.7, -1.2])
    draw = torch.Generator().manual_seed(0)
    current = [-torch.rand(len(segment.output_ids), generator=draw) for segment in segments]
    config = ObjectiveConfig.model_validate({"loss": "ppo", "aggregation": aggregation, "kl": {"weight": 0.1}})
    old, reference = ([values + 0.2 * torch.randn_like(values) for values in current] for _ in range(2))
    totals = Totals(16, 4)

    def loss(parts: list[list[int]]) -> float:
        step = StepLoss(config, 8, totals, advantages, PreparedBatch(float("-inf"), old, reference))
        total = 0.0
        for part in parts:
            batch = collate([[segments[i]] for i in part], pad_id=0)
            padded = torch.zeros_like(batch.mask)
            for row, index in enumerate(part):
                padded[row, : len(current[index])] = current[index]
            total += float(step(padded, torch.zeros_like(padded), batch, part)[0])
        return total

    assert loss([[1], [3, 0], [2]]) == pytest.approx(loss([[0, 1, 2, 3]]), abs=1e-6)


def updater(model: Path, **settings: object) -> Updater:
    optimizer = OptimizerConfig(lr=1e-3, dtype="float32", micro_batch_tokens=64)
    engine = TrainingEngine(model, optimizer, pad_id=0, seed=0)
    config = ObjectiveConfig.model_validate({"loss": "ppo", "corrections": [], "minibatches": 1, **settings})
    return Updater(engine, config, max_tokens=8, total=100)


def all_trained(*advantages: float) -> WeighedBatch:
    return WeighedBatch(torch.tensor(advantages), torch.ones(len(advantages), dtype=torch.bool), {})


@pytest.mark.parametrize("loss", ["ppo", "gspo", "cispo", "topr"])
def test_it_is_measured_which_way_right_and_wrong_completions_are_pushed(tiny_model: Path, loss: str) -> None:
    batch = [segment(1.0, 0, 3), segment(0.0, 0, 6), segment(1.0, 1, 5), segment(0.0, 1, 2)]
    update = updater(tiny_model, loss=loss)
    (forward,) = update.train_on(batch, all_trained(1.0, -1.0, 1.0, -1.0), "0")
    assert 1.5 < forward["push_gap"] < 2.5
    (backward,) = update.train_on(batch, all_trained(-1.0, 1.0, -1.0, 1.0), "0")
    assert -2.5 < backward["push_gap"] < -1.5
    (one_kind,) = update.train_on(batch[1::2], all_trained(-1.0, -1.0), "0")
    assert "push_gap" not in one_kind and "push_size" not in one_kind


def test_the_first_step_on_a_batch_is_on_policy_and_later_ones_are_not(tiny_model: Path) -> None:
    segments = [segment(1.0, length=length) for length in (3, 6, 4, 8)]
    steps = updater(tiny_model, num_iterations=2).train_on(segments, all_trained(1.0, -1.0, 0.5, -0.5), "seed")
    assert len(steps) == 2
    assert steps[0]["ratio"] == pytest.approx(1.0, abs=1e-5)
    assert steps[1]["ratio"] != pytest.approx(1.0, abs=1e-4)


def test_every_iteration_goes_through_the_whole_batch_in_minibatches(tiny_model: Path) -> None:
    made = updater(tiny_model, num_iterations=2, minibatches=3)
    seen: list[int] = []
    take = made.engine.update

    def counted(segments: list[Segment], *rest: object) -> dict[str, float]:
        seen.extend(len(segment.output_ids) for segment in segments)
        return take(segments, *rest)  # type: ignore[arg-type]

    made.engine.update = counted  # type: ignore[method-assign, assignment]
    segments = [segment(1.0, length=length) for length in range(1, 8)]
    steps = made.train_on(segments, all_trained(*[1.0] * 7), "seed")
    assert (len(steps), made.steps) == (6, 6)
    assert sorted(seen[:7]) == sorted(seen[7:]) == list(range(1, 8))


@pytest.mark.parametrize("aggregation", ["token", "sequence", "constant"])
def test_what_is_not_trained_on_still_counts_in_the_denominators(tiny_model: Path, aggregation: str) -> None:
    batch = [segment(1.0, length=4), segment(0.0, length=4), segment(0.0, length=8, truncated=True)]
    alone = WeighedBatch(torch.tensor([1.0, -0.5, 0.0]), torch.tensor([True, True, False]), {})
    with_all = WeighedBatch(alone.advantages, torch.ones(3, dtype=torch.bool), {})
    losses = []
    for weighed_so in (alone, with_all):
        made = updater(tiny_model, aggregation=aggregation)
        (step,) = made.train_on(batch, weighed_so, "seed")
        losses.append(step["loss"])
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)
    assert losses[0] == pytest.approx(-0.5 * {"token": 4 / 16, "sequence": 1 / 3, "constant": 4 / (8 * 3)}[aggregation])


def test_minibatches_weigh_a_token_as_the_whole_batch_does(tiny_model: Path) -> None:
    batch = [segment(1.0, length=length) for length in (2, 4, 6, 8)]
    made = updater(tiny_model, minibatches=4, clip={"high": 10.0})
    steps = made.train_on(batch, all_trained(*[1.0] * 4), "seed")
    # Each step has the tokens of one completion, and a quarter of all 20 as its denominator.
    assert sorted(round(-step["loss"] * 5 / step["ratio"], 3) for step in steps) == [2.0, 4.0, 6.0, 8.0]


def test_the_penalty_on_leaving_the_reference_reaches_completions_without_an_advantage() -> None:
    batch = [segment(0.5), segment(1.0), segment(0.0), segment(None)]

    def trained(**settings: object) -> list[bool]:
        config = ObjectiveConfig.model_validate(settings)
        flags: list[bool] = weigh_segments(batch, config, ["dr_grpo"] * 4).trained.tolist()
        return flags

    assert trained() == [False, True, True, False]
    assert trained(kl={"weight": 0.01}) == [True, True, True, False]


def test_training_on_the_highest_entropies_leaves_the_other_tokens_out(tiny_model: Path) -> None:
    segments = [segment(1.0, length=10) for _ in range(4)]
    (step,) = updater(tiny_model, masks={"top_entropy": 0.25}).train_on(segments, all_trained(*[1.0] * 4), "seed")
    assert step["kept_tokens"] == pytest.approx(0.25, abs=0.11)  # Alike segments have alike entropies.


def test_tokens_of_high_covariance_are_left_out_or_pulled_back(tiny_model: Path) -> None:
    segments = [segment(1.0, length=10), segment(0.0, 0, 10)]
    advantages = all_trained(1.0, -1.0)
    clip = {"kind": "clip", "share": 0.25, "low": -50.0, "high": 50.0}
    (step,) = updater(tiny_model, covariance=clip).train_on(segments, advantages, "seed")
    assert step["kept_tokens"] == pytest.approx(0.75)
    plain, pulled = (
        updater(tiny_model, num_iterations=2, **settings).train_on(segments, advantages, "seed")
        for settings in ({}, {"covariance": {"kind": "kl", "share": 0.5, "weight": 10.0}})
    )
    assert pulled[0]["loss"] == pytest.approx(plain[0]["loss"], abs=1e-6)
    assert pulled[1]["loss"] > plain[1]["loss"]
    with pytest.raises(ValueError, match="kind kl pulls back to the old policy"):
        ObjectiveConfig.model_validate({"covariance": {"kind": "kl"}})


@pytest.mark.parametrize(
    ("model", "loss"),
    [
        (SimpleNamespace(num_experts=8), "gspo"),
        (SimpleNamespace(text_config=SimpleNamespace(n_routed_experts=64)), "gspo"),
        (SimpleNamespace(num_local_experts=1), "ppo"),
        (SimpleNamespace(hidden_size=64), "ppo"),
    ],
)
def test_gspo_is_the_default_of_mixtures_of_experts(model: object, loss: str) -> None:
    assert resolve_loss(ObjectiveConfig(), model).loss == loss
    assert resolve_loss(ObjectiveConfig(loss="cispo"), model).loss == "cispo"


def test_settings_that_do_not_go_with_a_mixture_of_experts_are_told_before_training() -> None:
    with pytest.raises(ConfigError, match=r"clip\.dual belongs to the loss ppo"):
        resolve_loss(ObjectiveConfig(clip=ClipConfig(dual=3.0)), SimpleNamespace(num_experts=8))


def test_segments_of_another_temperature_are_measured_at_it(tiny_model: Path) -> None:
    engine = updater(tiny_model).engine
    warm_segment = segment(1.0)
    warm, cold = engine.logprobs([warm_segment, replace(warm_segment, temperature=0.5)])
    assert not torch.allclose(warm, cold)


class RecordingEngine:
    """Notes what each step's weights are relative to, and trains nothing."""

    def __init__(self) -> None:
        self.totals_of_steps: list[Totals] = []

    def totals(self, segments: list[Segment]) -> Totals:
        return Totals(float(sum(len(segment.output_ids) for segment in segments)), float(len(segments)))

    def update(self, segments: list[Segment], loss: StepLoss, step: int, steps: int) -> dict[str, float]:
        self.totals_of_steps.append(loss.totals)
        return {}


def test_a_step_is_as_small_as_the_share_of_groups_that_teach() -> None:
    segments = [segment(1.0), segment(0.0)]
    batch = WeighedBatch(torch.tensor([0.5, -0.5]), torch.tensor([True, True]), {})
    engine = RecordingEngine()
    updater = Updater(engine, ObjectiveConfig(), 8, 1)  # type: ignore[arg-type]
    for share in (1.0, 0.25):
        updater.train_on(segments, batch, "0", share_entered=share)
    whole, quarter = engine.totals_of_steps
    assert (whole.tokens, whole.sequences) == (8, 2)
    assert (quarter.tokens, quarter.sequences) == (32, 8)


def test_the_effective_batch_is_told() -> None:
    even = [segment(float(index % 2), index // 2) for index in range(8)]
    lopsided = [segment(1.0, length=1), segment(0.0, length=1), segment(1.0, 1, length=90), segment(0.0, 1, length=90)]
    sizes = [
        weigh_segments(batch, ObjectiveConfig(), ["dr_grpo"] * len(batch)).metrics["effective_completions"]
        for batch in (even, lopsided)
    ]
    assert sizes == pytest.approx([8.0, 2.04], abs=0.01)


def test_a_distilled_member_is_pushed_up_and_changes_no_denominator(tiny_model: Path) -> None:
    sampled = [segment(1.0, length=4), segment(0.0, length=4)]
    member = Segment((1, 2), (9, 10, 11), (-0.1, -0.1, -0.1), origin="reflection", reward=1.0, right=True)
    alone = updater(tiny_model, distilled={"weight": "none"})
    (first,) = alone.train_on(sampled, all_trained(1.0, -1.0), "seed")
    joined = updater(tiny_model, distilled={"weight": "none"})
    before = float(joined.engine.logprobs([member])[0].sum())
    is_distilled = torch.tensor([False, False, True])
    weighed = WeighedBatch(torch.tensor([1.0, -1.0, 0.5]), torch.ones(3, dtype=torch.bool), {}, is_distilled)
    (both,) = joined.train_on([*sampled, member], weighed, "seed")
    # The first step's ratio is 1: the member adds its advantage times its share of the eight sampled tokens.
    assert both["loss"] - first["loss"] == pytest.approx(-0.5 * 3 / 8, abs=1e-5)
    for _ in range(3):
        joined.train_on([*sampled, member], weighed, "seed")
    assert float(joined.engine.logprobs([member])[0].sum()) > before


def test_self_distillation_draws_the_policy_to_what_it_does_with_the_context(tiny_model: Path) -> None:
    made = updater(tiny_model, self_distillation={"weight": 1.0})
    sampled = [segment(1.0, length=4), segment(0.0, length=4)]
    teacher = Segment((7, 8, 9, 3), sampled[1].output_ids)

    def gap() -> float:
        bare, conditioned = made.engine.logprobs([sampled[1], teacher])
        return float((bare - conditioned).abs().mean())

    before = gap()
    batch = replace(all_trained(0.0, 0.0), teachers=[None, teacher])
    (step,) = made.train_on(sampled, batch, "seed")
    bare, conditioned = updater(tiny_model).engine.logprobs([sampled[1], teacher])
    assert step["teacher_gap"] == pytest.approx(float((bare - conditioned).sum()) / 8, abs=1e-4)
    for _ in range(5):
        # The teacher stays what it was, as the samples do.
        made.train_on(sampled, batch, "seed")
    assert gap() < before
