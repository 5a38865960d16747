"""The DeepSpeed engine takes the same steps as plain torch, however a batch is cut, and resumes exactly."""

from __future__ import annotations

import json
import random
import resource
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from architectures import tiny_causal_lm
from deepspeed.utils import safe_get_full_grad, z3_leaf_module
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, AutoTokenizer

from truegold.train.config.models import LoraConfig, OptimizerConfig
from truegold.train.model.distributed import deepspeed_config
from truegold.train.model.engine import (
    NoRoomError,
    TrainingEngine,
    gather_experts_together,
)
from truegold.train.model.saved_states import ROOM, checkpoint_steps, step_folder
from truegold.train.model.segment import Segment
from truegold.train.sft import negative_log_likelihood
from truegold.verifiers import ConfigError, SetupError

pytestmark = [pytest.mark.real, pytest.mark.filterwarnings("default")]

LR = 1e-3


def some_segments(count: int, seed: int) -> list[Segment]:
    draw = random.Random(seed)
    return [
        Segment(
            tuple(draw.randrange(5, 256) for _ in range(draw.randrange(1, 12))),
            tuple(draw.randrange(5, 256) for _ in range(draw.randrange(1, 20))),
        )
        for _ in range(count)
    ]


def test_a_checkpoint_whose_sampling_settings_contradict_each_other_is_exported_with_them(
    tiny_model: Path, tmp_path: Path
) -> None:
    # Many published ones do: transformers loads such settings with a warning and refuses to save them.
    model = tmp_path / "model"
    shutil.copytree(tiny_model, model)
    settings = {"temperature": 0.6, "top_p": 0.9, "do_sample": False, "eos_token_id": 1}
    (model / "generation_config.json").write_text(json.dumps(settings))
    engine = TrainingEngine(model, OptimizerConfig(dtype="float32"), pad_id=0, seed=0)
    engine.export(tmp_path / "out", AutoTokenizer.from_pretrained(str(tiny_model)))
    assert json.loads((tmp_path / "out" / "generation_config.json").read_text()) == settings
    exported, expected = (load_file(folder / "model.safetensors") for folder in (tmp_path / "out", tiny_model))
    assert exported.keys() == expected.keys()
    assert all(torch.equal(exported[name], expected[name]) for name in expected)


def test_logprobs_are_the_models_own_where_it_transforms_its_logits(tmp_path: Path) -> None:
    causal_lm = tiny_causal_lm("gemma2")
    causal_lm.save_pretrained(str(tmp_path))
    engine = TrainingEngine(tmp_path, OptimizerConfig(dtype="float32"), pad_id=0, seed=0)
    segment = Segment((5, 6, 7), (8, 9, 10, 11))
    logits = causal_lm(torch.tensor([segment.prompt_ids + segment.output_ids])).logits[0, 2:-1]
    expected = logits.log_softmax(-1).gather(1, torch.tensor(segment.output_ids).unsqueeze(1)).squeeze(1)
    assert torch.allclose(engine.logprobs([segment])[0], expected, atol=1e-4)
    hidden = torch.randn(3, 64, generator=torch.Generator().manual_seed(0))
    assert engine.logits(hidden).abs().max() <= causal_lm.config.final_logit_softcapping


def test_bfloat16_is_never_trained_by_the_optimizer_of_stage_0() -> None:
    stages = [
        deepspeed_config(OptimizerConfig.model_validate({"dtype": dtype, "zero_stage": 0}), 2)["zero_optimization"]
        for dtype in ("bfloat16", "float32")
    ]
    assert stages == [{"stage": 1}, {"stage": 0}]


def take_step(engine: TrainingEngine, batch: list[Segment], step: int) -> None:
    engine.update(batch, negative_log_likelihood(engine.totals(batch)), step, 100)


def plain_torch_weights(model: Path, batches: list[list[Segment]]) -> dict[str, torch.Tensor]:
    """The same steps written out by hand: one padded-free forward a segment, full logits, torch's AdamW."""
    reference = AutoModelForCausalLM.from_pretrained(str(model), dtype=torch.float32)
    optimizer = torch.optim.AdamW(reference.parameters(), lr=LR, betas=(0.9, 0.95), weight_decay=0.0)
    for batch in batches:
        optimizer.zero_grad()
        tokens = sum(len(segment.output_ids) for segment in batch)
        for segment in batch:
            ids = torch.tensor([segment.prompt_ids + segment.output_ids])
            logprobs = reference(ids).logits[0, len(segment.prompt_ids) - 1 : -1].log_softmax(-1)
            targets = torch.tensor(segment.output_ids).unsqueeze(1)
            (-logprobs.gather(1, targets).sum() / tokens).backward()
        torch.nn.utils.clip_grad_norm_(reference.parameters(), 1.0)
        optimizer.step()
    return {name: value.detach() for name, value in reference.named_parameters()}


@pytest.mark.parametrize("zero_stage", [0, 1, 2, 3])
def test_steps_equal_plain_torch_whatever_the_micro_batches(tiny_model: Path, zero_stage: int) -> None:
    batches = [some_segments(7, seed) for seed in range(3)]
    expected = plain_torch_weights(tiny_model, batches)
    config = OptimizerConfig(lr=LR, dtype="float32", zero_stage=zero_stage, micro_batch_tokens=64)
    engine = TrainingEngine(tiny_model, config, pad_id=0, seed=0)
    for step, batch in enumerate(batches):
        take_step(engine, batch, step)
    trained = {name: tensor.clone() for name, tensor in engine.named_tensors()}
    for name, value in expected.items():
        torch.testing.assert_close(trained[name], value, atol=2e-5, rtol=1e-4)


def test_an_engine_can_be_made_after_vllm_destroyed_all_groups_of_the_process(tiny_model: Path) -> None:
    config = OptimizerConfig(lr=LR, dtype="float32")
    batch = some_segments(5, 0)
    before = TrainingEngine(tiny_model, config, pad_id=0, seed=0)
    take_step(before, batch, 0)
    torch.distributed.destroy_process_group()  # as vLLM does when an engine of this process is closed
    after = TrainingEngine(tiny_model, config, pad_id=0, seed=0)
    take_step(after, batch, 0)
    expected = dict(before.named_tensors())
    for name, tensor in after.named_tensors():
        torch.testing.assert_close(tensor, expected[name])


def test_packed_steps_equal_padded_ones(tiny_model: Path) -> None:
    batches = [some_segments(9, seed) for seed in range(3)]
    expected = plain_torch_weights(tiny_model, batches)
    config = OptimizerConfig(lr=LR, dtype="float32", micro_batch_tokens=64)
    engine = TrainingEngine(tiny_model, config, pad_id=0, seed=0)
    assert engine.pack()
    for step, batch in enumerate(batches):
        take_step(engine, batch, step)
    for name, tensor in engine.named_tensors():
        if name in expected:
            torch.testing.assert_close(tensor, expected[name], atol=2e-5, rtol=1e-4)


@pytest.mark.parametrize("zero_stage", [1, 2, 3])
def test_bfloat16_gradients_of_micro_batches_add_up_in_float32(
    tiny_model: Path, zero_stage: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = OptimizerConfig(dtype="bfloat16", zero_stage=zero_stage, micro_batch_tokens=32)
    engine = TrainingEngine(tiny_model, config, pad_id=0, seed=0)
    step, gradients = engine._engine.step, []

    def watched() -> None:
        gradients.append(safe_get_full_grad(engine.causal_lm.model.norm.weight))
        step()

    monkeypatch.setattr(engine._engine, "step", watched)
    take_step(engine, some_segments(8, 0), 0)
    assert len(gradients) > 3
    assert not torch.equal(gradients[-1], gradients[-1].bfloat16().float())


@pytest.mark.parametrize(("dtype", "zero_stage"), [("float32", 2), ("bfloat16", 1)])
def test_a_resumed_engine_takes_the_same_steps(tiny_model: Path, tmp_path: Path, dtype: Any, zero_stage: Any) -> None:
    config = OptimizerConfig(lr=LR, dtype=dtype, zero_stage=zero_stage, warmup_steps=3)
    batches = [some_segments(5, seed) for seed in range(4)]
    straight = TrainingEngine(tiny_model, config, pad_id=0, seed=0)
    for step, batch in enumerate(batches):
        if step == 2:
            straight.save(tmp_path, step, {"note": "half-way"})
        take_step(straight, batch, step)
    resumed = TrainingEngine(tiny_model, config, pad_id=0, seed=1)
    taken_up = resumed.load(tmp_path)
    assert taken_up is not None
    step, state = taken_up
    assert (step, state) == (2, {"note": "half-way"})
    for step in (2, 3):
        take_step(resumed, batches[step], step)
    for (name, left), (_, right) in zip(straight.named_tensors(), resumed.named_tensors(), strict=True):
        assert torch.equal(left, right), name


def saves_weights(tiny_model: Path, **settings: Any) -> TrainingEngine:
    config = OptimizerConfig.model_validate({"lr": LR, **settings})
    engine = TrainingEngine(tiny_model, config, pad_id=0, seed=0)
    engine.tokenizer = AutoTokenizer.from_pretrained(str(tiny_model))
    return engine


def all_weights(engine: TrainingEngine) -> dict[str, torch.Tensor]:
    return {name: tensor.clone() for name, tensor in engine.named_tensors()}


def contents_of(folder: Path) -> dict[int, set[str]]:
    """The parts of each checkpoint."""
    parts = ("deepspeed", "model.safetensors", "tokenizer.json", "trainer_state.pt", "README.md")
    return {
        step: {part for part in parts if (step_folder(folder, step) / part).exists()}
        for step in checkpoint_steps(folder)
    }


WEIGHTS = {"model.safetensors", "tokenizer.json", "trainer_state.pt"}


@pytest.mark.parametrize(
    "settings",
    [
        {"dtype": "float32", "zero_stage": 0},
        {"dtype": "float32", "zero_stage": 3},
        {"dtype": "bfloat16", "zero_stage": 1},
        {"dtype": "bfloat16", "zero_stage": 2, "offload": True},
        {"dtype": "bfloat16", "zero_stage": 3},
    ],
)
def test_a_return_to_weights_alone_goes_on_as_a_training_that_begins_with_them(
    tiny_model: Path, tmp_path: Path, settings: dict[str, Any]
) -> None:
    engine = saves_weights(tiny_model, **settings)
    began = all_weights(engine)
    engine.save(tmp_path, 0, {"note": "start"})
    take_step(engine, some_segments(5, 0), 0)
    at_one = all_weights(engine)
    engine.save(tmp_path, 1, {"note": "first"}, kept=[0])
    take_step(engine, some_segments(5, 1), 1)
    engine.save(tmp_path, 2, {"note": "second"}, kept=[0, 1])
    assert contents_of(tmp_path) == {0: {"trainer_state.pt"}, 1: WEIGHTS, 2: WEIGHTS | {"deepspeed"}}
    loaded = AutoModelForCausalLM.from_pretrained(str(step_folder(tmp_path, 1)), dtype=settings["dtype"])
    assert all(torch.equal(value, at_one[name]) for name, value in loaded.named_parameters())
    for step, weights, model in ((1, at_one, step_folder(tmp_path, 1)), (0, began, tiny_model)):
        fresh = saves_weights(model, **settings)
        assert engine.return_to(tmp_path, step) == {"note": "first" if step else "start"}
        assert all(torch.equal(value, weights[name]) for name, value in all_weights(engine).items())
        for taken in range(2):
            for each in (engine, fresh):
                take_step(each, some_segments(5, 7 + taken), 3 + taken)
        expected = all_weights(fresh)
        assert all(torch.equal(value, expected[name]) for name, value in all_weights(engine).items())
        assert max(contents_of(tmp_path)) == step
    resumed = saves_weights(tiny_model, **settings)
    assert resumed.load(tmp_path) == (0, {"note": "start"})
    assert all(torch.equal(value, began[name]) for name, value in all_weights(resumed).items())


def test_a_killed_run_goes_on_from_the_newest_optimizer_and_takes_later_steps_again(
    tiny_model: Path, tmp_path: Path
) -> None:
    engine = saves_weights(tiny_model)
    for step in range(1, 4):
        take_step(engine, some_segments(5, step), step)
        engine.save(
            tmp_path,
            step,
            {"step": step},
            kept=[1],
            counts=step < 3,
            optimizer=step < 3,
            card="weights" if step == 1 else None,
        )
    assert contents_of(tmp_path) == {1: WEIGHTS | {"README.md"}, 2: WEIGHTS | {"deepspeed"}, 3: WEIGHTS}
    assert saves_weights(tiny_model).load(tmp_path) == (2, {"step": 2})
    assert checkpoint_steps(tmp_path) == [1, 2]


def test_adapters_are_saved_without_the_weights_that_stay_as_they_are(tiny_model: Path, tmp_path: Path) -> None:
    engine = saves_weights(tiny_model, dtype="float32", lora={"rank": 2, "alpha": 4})
    saved = []
    for step in range(3):
        engine.save(tmp_path, step, {}, kept=[0, 1], card="weights" if step == 2 else None)
        saved.append(all_weights(engine))
        take_step(engine, some_segments(5, step), step)
    assert contents_of(tmp_path) == {0: DEEPSPEED_ALONE, 1: DEEPSPEED_ALONE, 2: WEIGHTS | {"deepspeed", "README.md"}}
    size = sum(path.stat().st_size for path in (step_folder(tmp_path, 1) / "deepspeed").rglob("*.pt"))
    assert size <= engine.checkpoint_bytes() + ROOM < engine.weights_bytes() + ROOM
    for step in (2, 1, 0):
        engine.return_to(tmp_path, step)
        assert all(torch.equal(value, saved[step][name]) for name, value in all_weights(engine).items())
    resumed = saves_weights(tiny_model, dtype="float32", lora={"rank": 2, "alpha": 4})
    assert resumed.load(tmp_path) == (0, {})


DEEPSPEED_ALONE = {"deepspeed", "trainer_state.pt"}


@pytest.mark.parametrize("kind", ["limit_on_file_sizes", "full_disk"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_checkpoint_that_finds_no_room_leaves_the_one_before_and_a_line(
    tiny_model: Path, tmp_path: Path, kind: str, dtype: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = TrainingEngine(tiny_model, OptimizerConfig(lr=LR, dtype=dtype), pad_id=0, seed=0)
    take_step(engine, some_segments(3, 0), 0)
    engine.save(tmp_path, 1, {"note": "first"})
    largest = max(path.stat().st_size for path in tmp_path.rglob("*.pt"))
    written = sum(path.stat().st_size for path in tmp_path.rglob("*.pt"))
    assert written <= engine.checkpoint_bytes() + ROOM < 1.2 * written + ROOM
    take_step(engine, some_segments(3, 1), 1)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    if kind == "full_disk":
        usage = shutil.disk_usage(tmp_path)._replace(free=largest)
        monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    else:
        resource.setrlimit(resource.RLIMIT_FSIZE, (largest // 2, limits[1]))
    try:
        with pytest.raises(SetupError, match=r"of step 2 cannot be written: .*MB in .* continues from .* step 1\."):
            engine.save(tmp_path, 2, {"note": "second"})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        monkeypatch.undo()
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == ["step-000001"]
    assert engine.load(tmp_path) == (1, {"note": "first"})
    engine.save(tmp_path, 2, {"note": "second"})
    assert engine.load(tmp_path) == (2, {"note": "second"})


def test_a_full_gpu_is_one_line_and_the_next_start_halves_the_micro_batch(tiny_model: Path, tmp_path: Path) -> None:
    lines: list[str] = []
    config = OptimizerConfig(lr=LR, dtype="float32", micro_batch_tokens=64)
    segments = some_segments(6, 0)

    def full(*_: Any) -> Any:
        # A stand-in for a GPU.
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")

    for tokens, longest in ((64, 20), (32, 40)):
        engine = TrainingEngine(tiny_model, config, pad_id=0, seed=0, note=lines.append)
        engine.load(tmp_path)
        before = [tensor.clone() for _, tensor in engine.named_tensors()]
        advice = f"continues with {tokens // 2}" if longest < tokens else "which cannot be split"
        with pytest.raises(NoRoomError, match=rf"rank 0 has no memory left .*of {tokens} tokens.* {advice}"):
            engine.update([replace(segments[0], output_ids=(7,) * longest), *segments[1:]], full, 0, 5)
        engine.save(tmp_path, 0, {})
        assert all(
            torch.equal(*pair) for pair in zip(before, (each for _, each in engine.named_tensors()), strict=True)
        )
    assert lines == ["the GPU had no room for 64 tokens; a micro-batch now has 32"]
    smaller = TrainingEngine(tiny_model, config.model_copy(update={"micro_batch_tokens": 16}), pad_id=0, seed=0)
    smaller.load(tmp_path)
    assert smaller._config.micro_batch_tokens == 16


def test_experts_that_are_modules_are_gathered_together() -> None:
    class Layer(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.experts = torch.nn.ModuleList([torch.nn.Linear(2, 2)])

    model = torch.nn.Sequential(Layer(), torch.nn.Linear(2, 2))
    gather_experts_together(model)
    assert z3_leaf_module(model[0])
    assert not z3_leaf_module(model[1])
    gather_experts_together(torch.nn.Sequential(torch.nn.Linear(2, 2)))


def test_older_checkpoints_make_room_for_the_newest_one(
    tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines: list[str] = []
    engine = TrainingEngine(tiny_model, OptimizerConfig(dtype="float32"), pad_id=0, seed=0, note=lines.append)
    for step in (0, 1, 2):
        engine.save(tmp_path, step, {}, kept={0, 1, 2})
    room = 3 * engine.checkpoint_bytes()
    usage = shutil.disk_usage(tmp_path)
    # A stand-in for a disk on which two checkpoints lie.
    monkeypatch.setattr(
        shutil, "disk_usage", lambda path: usage._replace(free=ROOM + room - len(checkpoint_steps(path)) * room // 3)
    )
    engine.save(tmp_path, 3, {}, kept={0, 1, 2, 3})
    assert checkpoint_steps(tmp_path) == [1, 2, 3]
    assert "step 0 was removed" in "".join(lines)


def test_logprobs_are_at_each_segment_s_own_temperature(tiny_model: Path) -> None:
    engine = TrainingEngine(tiny_model, OptimizerConfig(dtype="float32"), pad_id=0, seed=0)
    segments = [replace(segment, temperature=0.4 + 0.2 * index) for index, segment in enumerate(some_segments(4, 0))]
    reference = AutoModelForCausalLM.from_pretrained(str(tiny_model), dtype=torch.float32)
    for segment, logprobs in zip(segments, engine.logprobs(segments), strict=True):
        ids = torch.tensor([segment.prompt_ids + segment.output_ids])
        with torch.no_grad():
            logits = reference(ids).logits[0, len(segment.prompt_ids) - 1 : -1] / segment.temperature
        expected = logits.log_softmax(-1).gather(1, torch.tensor(segment.output_ids).unsqueeze(1)).squeeze(1)
        torch.testing.assert_close(logprobs, expected, atol=1e-5, rtol=1e-5)


def test_export_is_a_checkpoint_that_transformers_loads(tiny_model: Path, tmp_path: Path) -> None:
    from truegold.pipeline.config.engines import ChatConfig
    from truegold.pipeline.engines.chat import load_encoder

    engine = TrainingEngine(tiny_model, OptimizerConfig(lr=LR, dtype="float32"), pad_id=0, seed=0)
    take_step(engine, some_segments(3, 0), 0)
    engine.export(tmp_path / "out", load_encoder(tiny_model, ChatConfig()).tokenizer)
    loaded = AutoModelForCausalLM.from_pretrained(str(tmp_path / "out"), dtype=torch.float32)
    weights = dict(loaded.named_parameters())
    for name, tensor in engine.named_tensors():
        if name in weights:
            assert torch.equal(weights[name], tensor), name
    assert load_encoder(tmp_path / "out", ChatConfig()).encode("What is 1+1?")


@pytest.mark.parametrize("zero_stage", [1, 3])
def test_lora_trains_adapters_alone_and_hands_over_merged_weights(tiny_model: Path, zero_stage: int) -> None:
    config = OptimizerConfig(lr=1e-2, dtype="float32", zero_stage=zero_stage, lora=LoraConfig(rank=4, alpha=8))
    engine = TrainingEngine(tiny_model, config, pad_id=0, seed=0)
    before = {name: tensor.clone() for name, tensor in engine.named_tensors()}
    untrained = AutoModelForCausalLM.from_pretrained(str(tiny_model), dtype=torch.float32).state_dict()
    assert set(before) == set(untrained)
    segments = some_segments(3, 0)
    for step in range(2):
        take_step(engine, segments, step)
    merged = {name: tensor.clone() for name, tensor in engine.named_tensors()}
    changed = {name.rsplit(".", 2)[-2] for name in merged if not torch.equal(merged[name], before[name])}
    assert changed == {"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"}
    reference = AutoModelForCausalLM.from_pretrained(str(tiny_model), dtype=torch.float32)
    reference.load_state_dict(merged)
    for segment, logprobs in zip(segments, engine.logprobs(segments), strict=True):
        ids = torch.tensor([segment.prompt_ids + segment.output_ids])
        with torch.no_grad():
            all_logprobs = reference(ids).logits[0, len(segment.prompt_ids) - 1 : -1].log_softmax(-1)
        expected = all_logprobs.gather(1, torch.tensor(segment.output_ids).unsqueeze(1)).squeeze(1)
        torch.testing.assert_close(logprobs, expected, atol=1e-4, rtol=1e-4)


def test_lora_targets_that_no_layer_has_are_told(tiny_model: Path) -> None:
    config = OptimizerConfig(dtype="float32", lora=LoraConfig(targets=("nothing_proj",)))
    with pytest.raises(ConfigError, match=r"optimizer.lora: .*nothing_proj"):
        TrainingEngine(tiny_model, config, pad_id=0, seed=0)
