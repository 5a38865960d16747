"""What guards rest on in the real trainer: a step that is not finite is not taken, a run can return to a checkpoint,
and clipping is put down to what caused it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch
from safetensors.torch import load_file, save_file
from tiny_trainer import TorchSampler, make_trainer
from torch import Tensor
from transformers import AutoTokenizer

from truegold.pipeline.config.engines import ChatConfig
from truegold.pipeline.engines.chat import load_encoder
from truegold.pipeline.running.progress import NullProgress
from truegold.pipeline.tables.rows import Row
from truegold.train.config.grpo import GrpoConfig
from truegold.train.config.models import OptimizerConfig
from truegold.train.config.objective import ObjectiveConfig
from truegold.train.grpo.guard_actions import Responder
from truegold.train.grpo.start_checks import check_exported
from truegold.train.grpo.step import Trainer
from truegold.train.grpo.update import Updater, WeighedBatch
from truegold.train.guards.table import STILL
from truegold.train.model.distributed import init_distributed
from truegold.train.model.engine import NotFiniteError, TrainingEngine
from truegold.train.model.segment import Segment, SegmentBatch
from truegold.train.model.step_effects import compare_weights
from truegold.train.objective import CAUSES
from truegold.verifiers import GuardError

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
    trainer.tokenizer = AutoTokenizer.from_pretrained(str(tiny_model))
    trainer.save(tmp_path, 2, {}, kept=[1], counts=False, optimizer=False)
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


class ShowingSampler(TorchSampler):
    """Shows its norms as vLLM does, and may hold another dtype or forget a layer."""

    dtype, forgotten = torch.float32, "nothing"

    def vectors(self) -> dict[str, Tensor]:
        return {name: value.to(self.dtype) for name, value in self._model.named_parameters() if value.dim() == 1}

    def update_weights(self, named_tensors: Iterator[tuple[str, Tensor]], version: int) -> None:
        kept = {name: value.to(self.dtype) for name, value in named_tensors if self.forgotten not in name}
        self._model.load_state_dict(kept, strict=False)


def probed(model: Path, folder: Path) -> tuple[Trainer, ShowingSampler]:
    trainer = make_trainer(model, folder, optimizer={"lr": 0.05, "dtype": "float32"})
    sampler = ShowingSampler(model)
    trainer.rollout.engine = sampler
    trainer.rollout.probe = replace(trainer.rollout.probe, engine=sampler, floor=None)
    for step in range(2):
        trainer.updater.engine.update(SEGMENTS, minus_mean, step, 10)
    return trainer, sampler


@pytest.mark.parametrize(
    ("forgotten", "cause"),
    [
        ("layers.1.", "weights of model.layers.1 do not arrive"),
        ("model.", "Norms and biases of the sampling engine differ"),
    ],
)
def test_a_layer_that_never_arrives_is_named(tiny_model: Path, tmp_path: Path, forgotten: str, cause: str) -> None:
    trainer, sampler = probed(tiny_model, tmp_path)
    sampler.forgotten = forgotten
    with pytest.raises(GuardError, match=cause):
        trainer.rollout.sync(1)


def test_a_matrix_that_is_never_handed_over_is_named(
    tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trainer, _ = probed(tiny_model, tmp_path)
    whole = TrainingEngine.named_tensors

    def without_a_matrix(self: TrainingEngine) -> Iterator[tuple[str, Tensor]]:
        return (pair for pair in whole(self) if "layers.0.mlp.down_proj" not in pair[0])

    monkeypatch.setattr(TrainingEngine, "named_tensors", without_a_matrix)
    with pytest.raises(GuardError, match=r"weights of model\.layers\.0 do not arrive"):
        trainer.rollout.sync(1)


def test_rounding_to_another_dtype_is_no_fault(tiny_model: Path, tmp_path: Path) -> None:
    trainer, sampler = probed(tiny_model, tmp_path)
    sampler.dtype = torch.bfloat16
    distance = trainer.rollout.sync(1)
    assert 1e-4 < distance.mean_abs < trainer.rollout.probe._limit()
    assert trainer.rollout.probe.dtype == "bfloat16"


def test_float32_on_a_gpu_may_differ_by_the_rounding_of_tf32(tiny_model: Path, tmp_path: Path) -> None:
    trainer, _ = probed(tiny_model, tmp_path)
    probe = trainer.rollout.probe
    on_gpu = replace(probe, trainer=cast(TrainingEngine, SimpleNamespace(device=torch.device("cuda"))), floor=1e-3)
    assert (probe.dtype, on_gpu.dtype) == ("float32", "tf32")
    # 9e-4 was measured with a real vLLM on an H100; a stale output head gives .035.
    assert probe._limit() <= 1e-3 < 2 * 9e-4 < on_gpu._limit() < 0.035


def test_weights_that_move_have_another_digest(tiny_model: Path) -> None:
    def moved(trainer: TrainingEngine, factor: float) -> float:
        trainer.rate_factor, before = factor, trainer.weights_state()
        updates = [trainer.update(SEGMENTS, minus_mean, 0, 10)]
        return compare_weights(before, trainer.weights_state(), updates, is_whole=True)["weights_moved"]

    trainer = engine(tiny_model)
    assert [moved(trainer, factor) for factor in (0.0, 1e-27)] == [0.0, 0.0]
    assert moved(trainer, 1e-3) > 0.1
    # What is below AdamW's epsilon hardly reaches the weights.
    assert 0.0 < moved(engine(tiny_model, max_grad_norm=1e-9), 1.0) < STILL


def test_weights_that_are_not_finite_are_counted(tiny_model: Path) -> None:
    trainer = engine(tiny_model)
    assert trainer.weights_state().spoilt == 0
    with torch.no_grad():
        trainer.causal_lm.get_input_embeddings().weight[200] = float("nan")
    assert trainer.weights_state().spoilt == 1


def zero_a_matrix(folder: Path) -> None:
    weights = load_file(folder / "model.safetensors")
    name = next(name for name in weights if "down_proj" in name)
    save_file({**weights, name: weights[name] * 0}, folder / "model.safetensors", {"format": "pt"})


def cut(folder: Path) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-1000])


def forget_a_layer(folder: Path) -> None:
    weights = {name: tensor for name, tensor in load_file(folder / "model.safetensors").items() if ".1." not in name}
    save_file(weights, folder / "model.safetensors", {"format": "pt"})


def change_template(folder: Path) -> None:
    path = folder / "chat_template.jinja"
    path.write_text(path.read_text() + " ")


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda folder: None, None),
        (zero_a_matrix, "down_proj.weight differ from the training's weights"),
        (cut, "cannot be loaded"),
        (forget_a_layer, "model.layers.1"),
        (lambda folder: (folder / "config.json").unlink(), "cannot be loaded"),
        (change_template, "chat template writes other prompts"),
        (lambda folder: (folder / "tokenizer.json").unlink(), "tokenizer"),
    ],
)
def test_an_export_that_is_not_the_policy_is_taken_away(
    tiny_model: Path, tmp_path: Path, spoil: Callable[[Path], None], reason: str | None
) -> None:
    trainer, folder, encoder = engine(tiny_model), tmp_path / "out", load_encoder(tiny_model, ChatConfig())
    trainer.update(SEGMENTS, minus_mean, 0, 10)
    trainer.export(folder, encoder.tokenizer)
    spoil(folder)
    row = cast("Row", {"prompt": "What is 1+2?", "context": None})
    with nullcontext() if reason is None else pytest.raises(GuardError, match=reason):
        check_exported(folder, trainer, ChatConfig(), [row], encoder)
    assert folder.exists() == (reason is None)


STEP: dict[str, float | None] = {"pass_rate": 0.3, "groups": 4.0, "groups_teaching": 0.5, "trained_completions": 8.0}
IDLE = STEP | {"groups_teaching": 0.0, "trained_completions": 0.0, "feed_expected_teaching": 0.1}


def responder(folder: Path) -> Responder:
    """Return a responder whose only checkpoint is that of step 0."""
    config = GrpoConfig.model_validate({"steps": 4})
    (folder / "checkpoints" / "step-000000").mkdir(parents=True)
    trainer = SimpleNamespace(config=config, out_dir=folder)
    held = SimpleNamespace(rate_factor=1.0, return_to=lambda checkpoints, step: {})
    return Responder(cast("Any", trainer), cast("Any", held), folder / "checkpoints", 0, NullProgress())


@pytest.mark.parametrize(
    ("steps", "guard"),
    [
        ([IDLE] * 4, "nothing_trained"),
        ([STEP, STEP, STEP, STEP | {"trained_completions": 0.0, "not_finite": 1.0}], "not_finite"),
    ],
)
def test_a_run_with_nothing_to_export_ends_in_an_error(
    tmp_path: Path, steps: list[dict[str, float | None]], guard: str
) -> None:
    watcher = responder(tmp_path)
    for step, metrics in enumerate(steps):
        watcher.respond(step, metrics)
    with pytest.raises(GuardError) as stopped:
        watcher.finish(len(steps), {})
    assert (stopped.value.guard, stopped.value.exit_code) == (guard, 5)


def test_a_run_that_ends_soon_after_a_return_to_its_start_has_nothing_to_export(tmp_path: Path) -> None:
    watcher = responder(tmp_path)
    for step in range(4):
        watcher.respond(step, STEP)
    watcher.finish(4, {})
    watcher._rolled_back = (2, 0, "truncated")
    with pytest.raises(GuardError, match="all training is lost"):
        watcher.finish(4, {})
