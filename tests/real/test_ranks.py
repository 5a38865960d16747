"""Two processes over gloo train as one does, a resumed run as an undisturbed one, and each holds what was planned."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoConfig, LlamaConfig, LlamaForCausalLM

from tests.real.ranks_worker import Case, train
from truegold.pipeline.running.isolation import free_port
from truegold.train.config.models import OptimizerConfig
from truegold.train.model import policy
from truegold.train.model.distributed import init_distributed
from truegold.train.model.memory_plan import ModelShape, standing

pytestmark = [pytest.mark.real, pytest.mark.filterwarnings("default")]

WORKER = Path(__file__).with_name("ranks_worker.py")
HEADS = ("tied", "untied")
HELD_ALONE = {"held, float32": ("float32", 1), "held, bfloat16": ("bfloat16", 1)}
HELD_BY_TWO = {
    "held, float32, zero 1": ("float32", 1),
    "held, float32, zero 2": ("float32", 2),
    "held, bfloat16, zero 1": ("bfloat16", 1),
}


def run_in_two_processes(cases: Sequence[Case], folder: Path) -> None:
    """Train `cases` one after the other in one group of processes, since starting them takes longer than training."""
    ranks, port = 2, str(free_port())
    paths = folder / "cases.json"
    paths.write_text(json.dumps([asdict(case) for case in cases]))
    # What a rank says goes to a file: a pipe that is not read would stop it.
    logs = [folder / f"rank-{rank}.log" for rank in range(ranks)]
    processes = []
    for rank, log in enumerate(logs):
        variables = {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(ranks), "OMP_NUM_THREADS": "1"}
        variables |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
        with log.open("wb") as output:
            processes.append(
                subprocess.Popen(
                    [sys.executable, str(WORKER), str(paths)],
                    env=os.environ | variables,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                )
            )
    for process, log in zip(processes, logs, strict=True):
        assert process.wait(timeout=480) == 0, log.read_text()


@dataclass(frozen=True)
class Trained:
    """The folder of the weights that every case ended with."""

    folder: Path

    def weights(self, name: str) -> dict[str, torch.Tensor]:
        loaded: dict[str, torch.Tensor] = torch.load(self.folder / f"{name}.pt")
        return loaded

    def told(self, name: str) -> dict[str, Any]:
        """What rank 0 wrote of the run: "ranks", the "first" step it took, steps "discarded" over all ranks."""
        told: dict[str, Any] = json.loads((self.folder / f"{name}.json").read_text())
        return told

    def assert_same(self, name: str, expected: str) -> None:
        # Six AdamW steps at 1e-3 move a weight by up to 6e-3; sums in another order change it by 1e-6.
        expected_weights = self.weights(expected)
        for key, value in self.weights(name).items():
            torch.testing.assert_close(
                value, expected_weights[key], atol=2e-5, rtol=0, msg=lambda text, key=key: f"{key}: {text}"
            )


@pytest.fixture(scope="module")
def trained(tiny_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Trained:
    folder = tmp_path_factory.mktemp("ranks")
    tiny = Case(str(tiny_model), out="")
    one_rank = {
        "untrained": replace(tiny, steps=0),
        "alone": tiny,
        # One rank has the same micro-batches as two, which decide what is rounded.
        "bfloat16 alone": replace(tiny, dtype="bfloat16", share="one"),
        "adapters alone": replace(tiny, lora=True),
        "left out": replace(tiny, left_out=1),
        "NaN alone": replace(tiny, spoilt=1),
        "NaN in bfloat16 alone": replace(tiny, spoilt=1, dtype="bfloat16"),
        "alone, rested": replace(tiny, rests=True),
    }
    two_ranks = {
        "zero 2": replace(tiny, zero_stage=2),
        "zero 3": replace(tiny, zero_stage=3, reference=True),
        "zero 3, one holds all": replace(tiny, zero_stage=3, share="one"),
        "bfloat16": replace(tiny, dtype="bfloat16", share="one"),
        "NaN, zero 2": replace(tiny, zero_stage=2, spoilt=1),
        "NaN, zero 3": replace(tiny, zero_stage=3, spoilt=1),
        "zero 2, rested": replace(tiny, zero_stage=2, rests=True),
        "zero 3, rested": replace(tiny, zero_stage=3, rests=True),
        "bfloat16, rested": replace(tiny, dtype="bfloat16", share="one", rests=True),
        "cut": replace(tiny, zero_stage=2, steps=2, checkpoints=str(folder / "checkpoints")),
    }
    for stage in (1, 2, 3):
        two_ranks[f"packed, zero {stage}"] = replace(tiny, zero_stage=stage, packed=True)
        two_ranks[f"packed adapters, zero {stage}"] = replace(tiny, zero_stage=stage, packed=True, lora=True)
    for stage in (2, 3):
        saved = {"steps": 2, "back": 1, "checkpoints": str(folder / f"returned {stage}")}
        two_ranks[f"returned, zero {stage}"] = replace(tiny, zero_stage=stage, **saved)
    one_rank["one step"] = replace(tiny, steps=1)
    for head in HEADS:
        model = sharded_head(folder / head, tied=head == "tied")
        one_rank[f"{head} alone"] = Case(str(model), out="", steps=2)
        two_ranks[head] = Case(str(model), out="", steps=2, zero_stage=3, logit_chunk=4 * 2048)
    smol = Case(str(smollm2_layer(folder / "smol")), out="", steps=2)
    for cases, held in ((one_rank, HELD_ALONE), (two_ranks, HELD_BY_TWO)):
        cases |= {name: replace(smol, dtype=dtype, zero_stage=stage) for name, (dtype, stage) in held.items()}
    two_ranks["resumed"] = replace(two_ranks["cut"], steps=tiny.steps)
    run_in_two_processes([replace(case, out=str(folder / f"{name}.pt")) for name, case in two_ranks.items()], folder)
    init_distributed()
    usual_chunk = policy.LOGIT_CHUNK["cpu"]
    for name, case in one_rank.items():
        train(replace(case, out=str(folder / f"{name}.pt")))
    policy.LOGIT_CHUNK["cpu"] = usual_chunk
    return Trained(folder)


def sharded_head(folder: Path, tied: bool) -> Path:
    """Make a model whose output head is large enough for ZeRO 3 to shard, and for several chunks of logits."""
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=2048,
        hidden_size=64,
        intermediate_size=64,
        num_hidden_layers=1,
        num_attention_heads=2,
        max_position_embeddings=64,
        tie_word_embeddings=tied,
    )
    LlamaForCausalLM(config).save_pretrained(folder)
    return folder


def smollm2_layer(folder: Path) -> Path:
    """Make a model of SmolLM2's shape with one layer and a small vocabulary."""
    torch.manual_seed(0)
    config = LlamaConfig(
        **{"vocab_size": 256, "hidden_size": 576, "intermediate_size": 1536, "num_hidden_layers": 1},
        **{"num_attention_heads": 9, "num_key_value_heads": 3, "max_position_embeddings": 64},
        tie_word_embeddings=True,
    )
    LlamaForCausalLM(config).save_pretrained(folder)
    return folder


@pytest.mark.parametrize("case", ["zero 2", "zero 3", "zero 3, one holds all"])
def test_two_ranks_end_with_the_weights_of_one(case: str, trained: Trained) -> None:
    assert trained.told(case)["ranks"] == 2.0
    trained.assert_same(case, "alone")


@pytest.mark.parametrize("stage", [1, 2, 3])
def test_two_ranks_that_pack_end_with_the_weights_of_one_that_does_not(stage: int, trained: Trained) -> None:
    trained.assert_same(f"packed, zero {stage}", "alone")
    trained.assert_same(f"packed adapters, zero {stage}", "adapters alone")


@pytest.mark.parametrize("head", HEADS)
def test_ranks_with_different_numbers_of_chunks_of_logits_do_not_wait_for_each_other(
    head: str, trained: Trained
) -> None:
    trained.assert_same(head, f"{head} alone")


@pytest.mark.parametrize("stage", [2, 3])
def test_two_ranks_return_to_weights_alone(stage: int, trained: Trained) -> None:
    trained.assert_same(f"returned, zero {stage}", "one step")


def test_two_ranks_in_bfloat16_end_with_the_weights_of_one(trained: Trained) -> None:
    trained.assert_same("bfloat16", "bfloat16 alone")


@pytest.mark.parametrize("case", ["alone", "zero 2", "zero 3", "bfloat16"])
def test_states_that_were_away_between_steps_are_the_same_bit_for_bit(case: str, trained: Trained) -> None:
    rested, expected = trained.weights(f"{case}, rested"), trained.weights(case)
    assert all(torch.equal(rested[name], weight) for name, weight in expected.items())
    ranks = trained.told(case)["ranks"]
    # Both moments, at ZeRO 1 to 3 the float32 copy, and what ZeRO 1 in bfloat16 and ZeRO 3 add gradients up in.
    width = {"alone": 8, "zero 2": 12 / ranks, "zero 3": 16 / ranks, "bfloat16": 12 / ranks + 4}[case]
    parameters = sum(weight.numel() for name, weight in expected.items() if name != "lm_head.weight")
    assert trained.told(f"{case}, rested")["released"] >= 0.98 * width * parameters


def test_a_reference_that_is_sharded_has_the_log_probabilities_of_the_policy_that_begins(trained: Trained) -> None:
    assert 0 <= trained.told("zero 3")["apart"] < 1e-5


@pytest.mark.parametrize(("case", "drifted"), [("zero 2", 1.0), ("bfloat16", 1.0), ("resumed", 1.0), ("zero 3", 0.0)])
def test_ranks_hold_the_same_bits_until_one_drifts(case: str, drifted: float, trained: Trained) -> None:
    # Under ZeRO 3 each rank holds a share of its own.
    assert trained.told(case)["drifted"] == [0.0, drifted]


def test_training_moves_the_weights(trained: Trained) -> None:
    before, after = trained.weights("untrained"), trained.weights("alone")
    assert max(float((after[name] - before[name]).abs().max()) for name in before) > 2e-3


def test_a_run_of_two_ranks_that_was_cut_ends_with_the_same_weights(trained: Trained) -> None:
    assert trained.told("resumed")["first"] == 2
    trained.assert_same("resumed", "alone")


@pytest.mark.parametrize("case", ["NaN alone", "NaN, zero 2", "NaN, zero 3"])
def test_nan_on_one_rank_keeps_every_rank_from_the_step(case: str, trained: Trained) -> None:
    assert trained.told(case)["discarded"] == trained.told(case)["ranks"]
    trained.assert_same(case, "left out")


def test_nan_in_bfloat16_leaves_weights_that_are_finite(trained: Trained) -> None:
    assert trained.told("NaN in bfloat16 alone")["discarded"] == 1
    assert all(bool(weight.isfinite().all()) for weight in trained.weights("NaN in bfloat16 alone").values())


@pytest.mark.parametrize("case", [*HELD_ALONE, *HELD_BY_TWO])
def test_a_trainer_holds_what_the_plan_of_memory_says(case: str, trained: Trained) -> None:
    dtype, stage = (HELD_ALONE | HELD_BY_TWO)[case]
    config = OptimizerConfig.model_validate({"dtype": dtype, "zero_stage": stage})
    shape = ModelShape.from_architecture(AutoConfig.from_pretrained(str(trained.folder / "smol")))
    planned = standing(shape, config, 2 if case in HELD_BY_TWO else 1)
    assert trained.told(case)["held"] == pytest.approx(sum(planned.values()), rel=0.01)
