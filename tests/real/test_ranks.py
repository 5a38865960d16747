"""Two processes over gloo train as one does, whoever holds the segments, and a resumed run as an undisturbed one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from truegold.train.model.distributed import free_port

pytestmark = [pytest.mark.real, pytest.mark.filterwarnings("default")]

WORKER = Path(__file__).with_name("ranks_worker.py")
STEPS = 5


def run(ranks: int, *arguments: object, **environment: str) -> None:
    port = str(free_port())
    processes = [
        subprocess.Popen(
            [sys.executable, str(WORKER), *map(str, arguments)],
            env=os.environ
            | environment
            | {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(ranks), "OMP_NUM_THREADS": "1"}
            | {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for rank in range(ranks)
    ]
    for process in processes:
        output, _ = process.communicate(timeout=240)
        assert process.returncode == 0, output


@pytest.fixture(scope="module")
def alone(tiny_model: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, torch.Tensor]:
    """The weights after five rollout batches in one process."""
    out = tmp_path_factory.mktemp("alone") / "weights.pt"
    run(1, tiny_model, "float32", 1, STEPS, "even", out)
    weights: dict[str, torch.Tensor] = torch.load(out)
    return weights


def assert_same(weights_path: Path, expected: dict[str, torch.Tensor]) -> None:
    # Ten AdamW steps at 1e-3 move a weight by up to 1e-2; sums in another order change it by 1e-6.
    for name, value in torch.load(weights_path).items():
        torch.testing.assert_close(
            value, expected[name], atol=2e-5, rtol=0, msg=lambda text, name=name: f"{name}: {text}"
        )


@pytest.mark.parametrize(("zero_stage", "share"), [(2, "even"), (3, "even"), (3, "one")])
def test_two_ranks_end_with_the_weights_of_one(
    zero_stage: int, share: str, tiny_model: Path, tmp_path: Path, alone: dict[str, torch.Tensor]
) -> None:
    out = tmp_path / "weights.pt"
    run(2, tiny_model, "float32", zero_stage, STEPS, share, out)
    assert json.loads(out.with_suffix(".json").read_text())["ranks"] == 2.0
    assert_same(out, alone)


@pytest.fixture(scope="module", params=[True, False], ids=["tied", "untied"])
def sharded_head(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model whose output head is large enough for ZeRO 3 to shard, and for several chunks of logits."""
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=2048,
        hidden_size=64,
        intermediate_size=64,
        num_hidden_layers=1,
        num_attention_heads=2,
        max_position_embeddings=64,
        tie_word_embeddings=request.param,
    )
    folder = tmp_path_factory.mktemp("sharded")
    LlamaForCausalLM(config).save_pretrained(folder)
    return folder


def test_ranks_with_different_numbers_of_chunks_of_logits_do_not_wait_for_each_other(
    sharded_head: Path, tmp_path: Path
) -> None:
    one_rank, two_ranks = tmp_path / "one_rank.pt", tmp_path / "two_ranks.pt"
    chunk = {"LOGIT_CHUNK": str(4 * 2048)}
    run(1, sharded_head, "float32", 1, 2, "even", one_rank)
    run(2, sharded_head, "float32", 3, 2, "even", two_ranks, **chunk)
    assert_same(two_ranks, torch.load(one_rank))


def test_two_ranks_in_bfloat16_end_with_the_weights_of_one(tiny_model: Path, tmp_path: Path) -> None:
    outs = [tmp_path / f"{ranks}.pt" for ranks in (1, 2)]
    for ranks, out in enumerate(outs, 1):
        # One rank has the same micro-batches as two, which decide what is rounded.
        run(ranks, tiny_model, "bfloat16", 1, STEPS, "one", out)
    assert_same(outs[1], torch.load(outs[0]))


def test_training_moves_the_weights(alone: dict[str, torch.Tensor], tiny_model: Path, tmp_path: Path) -> None:
    out = tmp_path / "weights.pt"
    run(1, tiny_model, "float32", 1, 0, "even", out)
    before = torch.load(out)
    assert max(float((alone[name] - before[name]).abs().max()) for name in before) > 2e-3


def test_a_run_of_two_ranks_that_was_cut_ends_with_the_same_weights(
    tiny_model: Path, tmp_path: Path, alone: dict[str, torch.Tensor]
) -> None:
    out, checkpoints = tmp_path / "weights.pt", tmp_path / "checkpoints"
    run(2, tiny_model, "float32", 2, 3, "even", out, checkpoints)
    run(2, tiny_model, "float32", 2, STEPS, "even", out, checkpoints)
    assert json.loads(out.with_suffix(".json").read_text())["first"] == 3
    assert_same(out, alone)
