"""What guards rest on in the real trainer: a step that is not finite is not taken, a run can return to a checkpoint,
and clipping is put down to what caused it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from truegold.train.config.models import OptimizerConfig
from truegold.train.config.objective import ObjectiveConfig
from truegold.train.grpo.update import Updater, WeighedBatch
from truegold.train.model.distributed import init_distributed
from truegold.train.model.engine import NotFiniteError, TrainingEngine
from truegold.train.model.segment import Segment, SegmentBatch
from truegold.train.objective.weights import CAUSES

pytestmark = [pytest.mark.real, pytest.mark.filterwarnings("default")]


@pytest.fixture(scope="module", autouse=True)
def group_of_one() -> None:
    init_distributed()


def engine(model: Path, rate: float = 1e-3, dtype: str = "float32", **settings: Any) -> TrainingEngine:
    config = OptimizerConfig.model_validate({"lr": rate, "dtype": dtype, "micro_batch_tokens": 64, **settings})
    return TrainingEngine(model, config, pad_id=0, seed=0)


SEGMENTS = [
    Segment((1, 2, 3 + index), tuple(5 + (7 * index + 3 * position) % 200 for position in range(12)), group=index // 2)
    for index in range(8)
]


def minus_mean(
    logprobs: Tensor, entropy: Tensor, batch: SegmentBatch, indices: list[int]
) -> tuple[Tensor, dict[str, Tensor]]:
    return -(logprobs * batch.mask).mean(), {}


def nan_loss(
    logprobs: Tensor, entropy: Tensor, batch: SegmentBatch, indices: list[int]
) -> tuple[Tensor, dict[str, Tensor]]:
    return logprobs.mean() * float("nan"), {}


def nan_gradient(
    logprobs: Tensor, entropy: Tensor, batch: SegmentBatch, indices: list[int]
) -> tuple[Tensor, dict[str, Tensor]]:
    return (logprobs * 0.0).sum().sqrt(), {}


@pytest.mark.parametrize(
    ("dtype", "settings"),
    [
        ("float32", {}),
        ("bfloat16", {}),
        # Here DeepSpeed keeps the sum of gradients of the step that it did not take.
        ("bfloat16", {"zero_stage": 2, "offload": True}),
    ],
)
def test_a_step_that_is_not_finite_is_not_taken_and_the_next_one_is(
    tiny_model: Path, dtype: str, settings: dict[str, Any]
) -> None:
    trainer = engine(tiny_model, dtype=dtype, **settings)
    before = torch.cat(trainer.logprobs(SEGMENTS))
    for loss, spoilt in ((nan_loss, "loss"), (nan_gradient, "gradient")):
        with pytest.raises(NotFiniteError, match=f"The {spoilt} of optimizer step 3 is not finite"):
            trainer.update(SEGMENTS, loss, 3, 10)
        assert torch.equal(torch.cat(trainer.logprobs(SEGMENTS)), before)
    trainer.update(SEGMENTS, minus_mean, 4, 10)
    after = torch.cat(trainer.logprobs(SEGMENTS))
    assert after.isfinite().all()
    assert not torch.equal(after, before)


def test_a_run_returns_to_a_checkpoint_with_its_optimizer_at_a_lower_rate(tiny_model: Path, tmp_path: Path) -> None:
    trainer = engine(tiny_model)
    trainer.update(SEGMENTS, minus_mean, 0, 10)
    trainer.save(tmp_path, 1, {})
    trainer.update(SEGMENTS, minus_mean, 1, 10)
    expected = torch.cat(trainer.logprobs(SEGMENTS))
    trainer.save(tmp_path, 2, {}, kept=[1])
    trainer.return_to(tmp_path, 1)
    trainer.update(SEGMENTS, minus_mean, 1, 10)
    torch.testing.assert_close(torch.cat(trainer.logprobs(SEGMENTS)), expected, atol=1e-6, rtol=0)
    assert [path.name for path in tmp_path.glob("step-*")] == ["step-000001"]
    trainer.rate_factor = 0.25
    assert trainer.update(SEGMENTS, minus_mean, 2, 10)["lr"] == pytest.approx(0.25e-3)


@pytest.mark.parametrize("cause", CAUSES)
def test_clipping_is_put_down_to_the_cause_that_was_injected(tiny_model: Path, cause: str) -> None:
    trainer = engine(tiny_model, rate=2e-2 if cause == "update" else 1e-5)
    iterations = 4 if cause == "update" else 2
    config = ObjectiveConfig.model_validate({"loss": "ppo", "corrections": [], "num_iterations": iterations})
    updater = Updater(trainer, config, max_tokens=12, total=100, engine_difference=1e-4)
    sampled = trainer.logprobs(SEGMENTS)
    draw = torch.Generator().manual_seed(0)
    noise = 0.5 if cause == "engine" else 1e-5
    segments = [
        replace(segment, rollout_logprobs=tuple((logprobs + noise * torch.randn(12, generator=draw)).tolist()))
        for segment, logprobs in zip(SEGMENTS, sampled, strict=True)
    ]
    if cause == "staleness":
        # The weights move on, and the completions of before are trained on.
        stepping = engine(tiny_model, rate=2e-2)
        stepping.update(SEGMENTS, minus_mean, 0, 10)
        updater.engine = stepping
        stepping.rate_factor = 1e-4
    advantages = torch.tensor([1.0, -1.0] * 4)
    weighed = WeighedBatch(advantages, torch.ones(8, dtype=torch.bool), {})
    steps = updater.train_on(segments, weighed, "seed", version=int(cause == "staleness"))
    sums = {name: sum(step[name] for step in steps) for name in ("clip_share", *(f"clip_{name}" for name in CAUSES))}
    assert sums["clip_share"] > 0.05
    assert sums[f"clip_{cause}"] > 0.9 * sums["clip_share"]
    assert sum(sums[f"clip_{name}"] for name in CAUSES) == pytest.approx(sums["clip_share"], rel=1e-4)
