"""What a trainer holds between its steps is what the plan of memory says, on one rank and on two over gloo.

Tensors are counted by their storages. The model is SmolLM2's shape with fewer layers and a smaller vocabulary.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from transformers import AutoConfig, LlamaConfig, LlamaForCausalLM

from tests.real.ranks_worker import Case, train
from tests.real.test_ranks import run_in_two_processes
from truegold.train.config.models import OptimizerConfig
from truegold.train.model.distributed import init_distributed
from truegold.train.model.memory_plan import ModelShape, standing

pytestmark = [pytest.mark.real, pytest.mark.filterwarnings("default")]

ALONE = {"float32, alone": ("float32", 1), "bfloat16, alone": ("bfloat16", 1)}
BESIDE = {"float32, ZeRO 1": ("float32", 1), "float32, ZeRO 2": ("float32", 2), "bfloat16, ZeRO 1": ("bfloat16", 1)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("memory")
    torch.manual_seed(0)
    config = LlamaConfig(
        **{"vocab_size": 256, "hidden_size": 576, "intermediate_size": 1536, "num_hidden_layers": 1},
        **{"num_attention_heads": 9, "num_key_value_heads": 3, "max_position_embeddings": 64},
        tie_word_embeddings=True,
    )
    LlamaForCausalLM(config).save_pretrained(folder / "model")

    def case(name: str, dtype: str, zero_stage: int) -> Case:
        return replace(
            Case(str(folder / "model"), str(folder / f"{name}.pt"), steps=2), dtype=dtype, zero_stage=zero_stage
        )

    run_in_two_processes([case(name, *settings) for name, settings in BESIDE.items()], folder)
    init_distributed()
    for name, settings in ALONE.items():
        train(case(name, *settings))
    return folder


@pytest.mark.parametrize("name", [*ALONE, *BESIDE])
def test_a_trainer_holds_what_the_plan_says(name: str, folder: Path) -> None:
    dtype, stage = (ALONE | BESIDE)[name]
    config = OptimizerConfig.model_validate({"dtype": dtype, "zero_stage": stage})
    shape = ModelShape.from_architecture(AutoConfig.from_pretrained(str(folder / "model")))
    planned = standing(shape, config, 2 if name in BESIDE else 1)
    held = json.loads((folder / f"{name}.json").read_text())["held"]
    assert held == pytest.approx(sum(planned.values()), rel=0.01)
