"""The plan of memory: what was measured on a GPU, what cannot fit, and the nearest settings that do.

What is exact of it, tests/real/test_ranks.py counts in trainers on the CPU.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from transformers import LlamaConfig, MixtralConfig, Qwen2Config

from truegold.train.config.grpo import GrpoConfig
from truegold.train.config.models import OptimizerConfig, PathModel, SmolLM2Model, TinyModel
from truegold.train.model.checkpoints import architecture_of
from truegold.train.model.memory_plan import (
    GB,
    ModelShape,
    check_disk,
    memory_lines,
    nearest,
    plan_memory,
    standing,
    updating,
    with_settings,
)
from truegold.verifiers import ConfigError

QWEN = {
    "0.5": Qwen2Config(
        **{"hidden_size": 896, "intermediate_size": 4864, "num_hidden_layers": 24, "num_attention_heads": 14},
        **{"num_key_value_heads": 2, "vocab_size": 151936, "tie_word_embeddings": True, "dtype": "bfloat16"},
    ),
    "1.5": Qwen2Config(
        **{"hidden_size": 1536, "intermediate_size": 8960, "num_hidden_layers": 28, "num_attention_heads": 12},
        **{"num_key_value_heads": 2, "vocab_size": 151936, "tie_word_embeddings": True, "dtype": "bfloat16"},
    ),
    "7": Qwen2Config(
        **{"hidden_size": 3584, "intermediate_size": 18944, "num_hidden_layers": 28, "num_attention_heads": 28},
        **{"num_key_value_heads": 4, "vocab_size": 152064, "tie_word_embeddings": False, "dtype": "bfloat16"},
    ),
}
CHECKPOINTING = {"gradient_checkpointing": True}
LORA = {"lora": {"rank": 32}}


@pytest.mark.parametrize(
    ("size", "settings", "tokens", "measured"),
    [
        ("0.5", {"zero_stage": 0, "dtype": "float32"}, 4096, 23.96),
        ("0.5", {"zero_stage": 0, "dtype": "float32", **CHECKPOINTING}, 4096, 8.95),
        ("0.5", {"zero_stage": 1}, 4096, 15.46),
        ("0.5", {"zero_stage": 1}, 16384, 32.49),
        ("1.5", {"zero_stage": 1}, 4096, 41.18),
        ("1.5", {"zero_stage": 1, **CHECKPOINTING}, 16384, 32.07),
        ("1.5", {"zero_stage": 2}, 4096, 39.67),
        ("1.5", {"zero_stage": 2, **CHECKPOINTING}, 4096, 29.72),
        ("1.5", {"zero_stage": 2, **CHECKPOINTING}, 16384, 32.12),
        ("1.5", {"zero_stage": 2, "offload": True}, 4096, 21.62),
        ("1.5", {"zero_stage": 3}, 4096, 41.32),
        ("1.5", {"zero_stage": 3, **CHECKPOINTING}, 4096, 31.99),
        ("1.5", {"zero_stage": 3, **CHECKPOINTING}, 16384, 32.20),
        ("1.5", {"zero_stage": 1, **LORA, **CHECKPOINTING}, 4096, 4.73),
        ("7", {"zero_stage": 1, **LORA}, 4096, 41.37),
        ("7", {"zero_stage": 1, **LORA, **CHECKPOINTING}, 16384, 24.85),
    ],
)
def test_peaks_that_were_measured_on_a_gpu_are_planned(
    size: str, settings: dict[str, Any], tokens: int, measured: float
) -> None:
    config = OptimizerConfig.model_validate({"micro_batch_tokens": tokens, **settings})
    planned = sum(updating(ModelShape.from_architecture(QWEN[size]), config, 1, 1).values()) / GB
    assert planned == pytest.approx(measured, rel=0.09)


@pytest.mark.parametrize(
    ("size", "settings", "measured"),
    [
        ("0.5", {"zero_stage": 0, "dtype": "float32"}, 5.93),
        ("0.5", {"zero_stage": 1}, 8.96),
        ("0.5", {"zero_stage": 2}, 6.92),
        ("1.5", {"zero_stage": 3}, 27.99),
    ],
)
def test_what_stands_between_steps_is_planned(size: str, settings: dict[str, Any], measured: float) -> None:
    config = OptimizerConfig.model_validate(settings)
    assert sum(standing(ModelShape.from_architecture(QWEN[size]), config, 1).values()) / GB == pytest.approx(
        measured, rel=0.01
    )


def test_shapes_are_those_of_the_models() -> None:
    assert ModelShape.from_architecture(QWEN["7"]).parameters == 7_615_616_512
    assert ModelShape.from_architecture(architecture_of(SmolLM2Model())).parameters == 134_515_008
    tiny = ModelShape.from_architecture(architecture_of(TinyModel()))
    assert tiny.layers == 2
    assert tiny.cached == 2 * 2 * 128
    experts = MixtralConfig(
        **{"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4},
        **{"num_key_value_heads": 2, "vocab_size": 512, "num_local_experts": 8, "num_experts_per_tok": 2},
    )
    assert ModelShape.from_architecture(experts).cached == 2 * 2 * 2 * 16
    assert ModelShape.from_architecture(experts).inner == 256


@pytest.mark.parametrize(
    ("size", "limit", "gpus", "settings", "expected"),
    [
        # The first that fits is the cheapest, and what fits needs nothing.
        ("0.5", 80, 1, {}, set()),
        ("1.5", 80, 1, {}, set()),
        ("1.5", 48, 1, {}, {"optimizer.micro_batch_tokens"}),
        ("1.5", 80, 1, {"engine": {"sleep": False}}, {"optimizer.micro_batch_tokens"}),
        ("7", 80, 8, {}, {"launch.ranks"}),
        ("7", 80, 1, {}, {"optimizer.offload", "optimizer.zero_stage"}),
        ("7", 24, 1, {}, None),
        ("7", 12, 8, {}, None),
        ("7", 80, 1, {"engine": {"type": "server", "url": "http://u", "weights_dir": "w"}}, {"optimizer.offload"}),
    ],
)
def test_the_nearest_settings_fit(
    size: str, limit: float, gpus: int, settings: dict[str, Any], expected: set[str] | None
) -> None:
    shape, config = ModelShape.from_architecture(QWEN[size]), GrpoConfig.model_validate(settings)
    assert plan_memory(shape, config, 1, limit * GB).fits == (expected == set())
    changes = nearest(shape, config, 1, limit * GB, gpus)
    if expected is None:
        assert changes is None
        return
    assert changes is not None
    assert expected <= changes.keys()
    assert plan_memory(shape, with_settings(config, changes), changes.get("launch.ranks", 1), limit * GB).fits


def test_a_set_limit_refuses_what_cannot_fit_and_says_what_would(tmp_path: Path) -> None:
    QWEN["1.5"].save_pretrained(tmp_path)
    model = PathModel(path=str(tmp_path))
    with pytest.raises(ConfigError) as refused:
        memory_lines(GrpoConfig.model_validate({"launch": {"gpu_gb": 48}}), model, [])
    assert "update    54.9 GB of 48.0: weights 3.09, gradients 6.17, optimizer 18.52, activations" in str(refused.value)
    assert "--set train.optimizer.micro_batch_tokens=4096" in str(refused.value)
    fitting = {"launch": {"gpu_gb": 80}}
    first, *lines = memory_lines(GrpoConfig.model_validate(fitting), model, [24.0])
    assert first == "memory    estimate for each GPU (1 in all), 1.54 B parameters"
    assert [line.split()[0] for line in lines] == ["loading", "rollout", "update", "cache", "host", "disk"]
    assert lines[1].endswith("weights 3.09, CUDA 1.00, vLLM 40.00")
    with pytest.raises(ConfigError, match="of 24"):
        memory_lines(GrpoConfig.model_validate({"optimizer": {"micro_batch_tokens": 2048}}), model, [24.0])


def test_a_cpu_has_a_plan_and_no_limit() -> None:
    lines = memory_lines(GrpoConfig.model_validate({"engine": {"max_model_len": 256}}), TinyModel(), [])
    assert lines[0] == "memory    estimate for each CPU process (1 in all), 0.00 B parameters"


SAVED = {"save_every": 20, "evaluation": {"every": 20}, "engine": {"max_model_len": 256}}


@pytest.mark.parametrize(
    ("free", "settings", "expected"),
    [
        (110, SAVED, None),
        (60, {}, None),
        # 43.2 + 12.3 + 18.5 + 3.1 GB, of which the last 3 of save_every and the one being written take 12.3.
        (72, SAVED, "train.save_total_limit=3$"),
        (66, SAVED, "train.save_total_limit=1$"),
        (60, SAVED, "train.save_every=0$"),
        (20, SAVED, "No setting makes it fit"),
        (20, {}, r"train.optimizer.lora=\{\}$"),
        (20, {"optimizer": {"lora": {}}}, None),
    ],
)
def test_a_disk_that_cannot_hold_the_checkpoints_is_refused_with_the_nearest_setting(
    free: float, settings: dict[str, Any], expected: str | None
) -> None:
    shape, config = ModelShape.from_architecture(QWEN["1.5"]), GrpoConfig.model_validate(settings)
    if expected is None:
        check_disk(shape, config, free * GB)
        return
    with pytest.raises(ConfigError, match=f"The disk has {free}.0 GB for checkpoints") as refused:
        check_disk(shape, config, free * GB)
    assert re.search(expected, str(refused.value))


def test_a_model_of_the_hub_that_is_not_there_is_no_reason_to_refuse(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "unheard_of"}')
    assert memory_lines(GrpoConfig(), PathModel(path=str(tmp_path)), []) == [
        "memory    unknown until the model is downloaded"
    ]


def test_ranks_share_what_zero_shards() -> None:
    shape = ModelShape.from_architecture(
        LlamaConfig(vocab_size=512, hidden_size=64, intermediate_size=128, num_hidden_layers=2)
    )
    count = shape.parameters
    for stage, width in ((1, 2 + 4 + 12 / 4), (2, 2 + 12 / 4), (3, (2 + 4 + 12) / 4)):
        parts = standing(shape, OptimizerConfig.model_validate({"zero_stage": stage}), 4)
        assert sum(parts.values()) - parts["buckets"] == pytest.approx(width * count)
