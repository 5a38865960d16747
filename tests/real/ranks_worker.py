"""One rank of `test_ranks`: trains on its share of fixed rollout batches, case by case, and writes the weights.

    ranks_worker.py CASES

CASES: the path of a JSON list of the fields of `Case`.
"""

from __future__ import annotations

import gc
import json
import random
import sys
from dataclasses import dataclass
from pathlib import Path

import torch
from transformers import AutoTokenizer

from truegold.train.config.models import OptimizerConfig
from truegold.train.config.objective import ObjectiveConfig, PositivesConfig
from truegold.train.grpo.update import Updater, weigh_segments
from truegold.train.model import policy
from truegold.train.model.distributed import all_max, all_sum, init_distributed
from truegold.train.model.engine import NotFiniteError, TrainingEngine
from truegold.train.model.policy import FrozenPolicy
from truegold.train.model.segment import Segment
from truegold.train.model.step_effects import compare_weights


@dataclass(frozen=True)
class Case:
    """One training."""

    model: str
    """The folder of the checkpoint it starts from."""
    out: str
    """The file of the weights it ends with; a `.json` beside it tells of the run."""
    dtype: str = "float32"
    zero_stage: int = 1
    steps: int = 3
    share: str = "even"
    """"even" gives each rank every other group, "one" gives all to rank 0."""
    checkpoints: str | None = None
    """The folder to save to after each step, and to go on from."""
    logit_chunk: int = policy.LOGIT_CHUNK["cpu"]
    spoilt: int | None = None
    """The step in which an advantage of the last rank is NaN."""
    back: int | None = None
    """The step whose weights it returns to at the end."""
    left_out: int | None = None
    """The step that is not trained on."""
    packed: bool = False
    lora: bool = False
    reference: bool = False
    """Whether the reference of the KL penalty is compared with the policy before it is trained."""
    rests: bool = False
    """Whether the optimizer's states are elsewhere between steps."""


def held_bytes() -> int:
    """Return the bytes of all tensors made since `gc.freeze`, those that share a storage once."""
    gc.collect()
    # Other kinds of tensors, such as torch.compile's, have no memory of their own.
    plain = [each for each in gc.get_objects() if type(each) in {torch.Tensor, torch.nn.Parameter}]
    tensors = [each for each in plain if each.device.type == "cpu"]
    tensors += [each.grad for each in tensors if each.is_leaf and each.grad is not None]
    storages = {storage.data_ptr(): storage.nbytes() for storage in (each.untyped_storage() for each in tensors)}
    return sum(storages.values())


def rollout_batch(step: int) -> list[Segment]:
    """Four groups of four, of mixed rewards and very different lengths."""
    draw = random.Random(step)
    return [
        Segment(
            tuple(draw.randrange(5, 256) for _ in range(4 + group)),
            tuple(draw.randrange(5, 256) for _ in range(draw.randrange(1, 24))),
            reward=float(draw.random() < 0.4),
            group=group,
        )
        for group in range(4)
        for _ in range(4)
    ]


def ranks_drifted(engine: TrainingEngine) -> float:
    """Return how many ranks hold other weights than the first."""
    state = engine.weights_state()
    return compare_weights(state, state, [], is_whole=engine.is_whole)["ranks_drifted"]


def train(case: Case) -> None:
    policy.LOGIT_CHUNK["cpu"] = case.logit_chunk
    optimizer = OptimizerConfig.model_validate(
        {"lr": 1e-3, "dtype": case.dtype, "zero_stage": case.zero_stage, "micro_batch_tokens": 96}
        | ({"lora": {"rank": 4, "alpha": 8}} if case.lora else {})
    )
    gc.freeze()  # To go through every object of the process would take longer than the training.
    engine = TrainingEngine(Path(case.model), optimizer, pad_id=0, seed=0)
    assert not case.packed or engine.pack()
    rank, world = torch.distributed.get_rank(), torch.distributed.get_world_size()
    config = ObjectiveConfig(
        advantage="batch_std", loss="ppo", corrections=(), num_iterations=2, positives=PositivesConfig(floor=1.0)
    )
    updater = Updater(engine, config, max_tokens=32, total=100)
    first = discarded = released = 0
    apart = 0.0
    if case.reference:
        # Ranks have different numbers of micro-batches.
        probe = rollout_batch(0)[: 16 if rank == 0 else 1]
        expected = torch.cat(engine.logprobs(probe))
        frozen = FrozenPolicy(Path(case.model), optimizer, engine.device)
        apart = all_max(float((torch.cat(frozen.logprobs(probe)) - expected).abs().max()))
    checkpoints = Path(case.checkpoints) if case.checkpoints else None
    if case.back is not None:
        engine.tokenizer = AutoTokenizer.from_pretrained(case.model)
    if checkpoints is not None and (resumed := engine.load(checkpoints)):
        first, state = resumed
        updater.steps = state["steps"]
    for step in range(first, case.steps):
        batch = rollout_batch(step)
        if case.share == "even":
            local_segments = [segment for segment in batch if segment.group % world == rank]
        else:
            local_segments = batch if rank == 0 else []
        weighed = weigh_segments(local_segments, config, [config.advantage] * len(local_segments))
        if step == case.spoilt and rank == world - 1:
            weighed.advantages[0] = float("nan")
        if step != case.left_out:
            try:
                updater.train_on(local_segments, weighed, seed=str(step))
            except NotFiniteError:
                discarded += 1
        if case.rests:
            released = held_bytes()
            engine.release_states()
            released -= held_bytes()
        if checkpoints is not None:
            engine.save(checkpoints, step + 1, {"steps": updater.steps}, kept=[case.back or 0])
    if checkpoints is not None and case.back is not None:
        engine.return_to(checkpoints, case.back)
    held = held_bytes()
    weights = {name: tensor.clone() for name, tensor in engine.named_tensors()}
    drifted = [ranks_drifted(engine)]
    if rank == world - 1:
        with torch.no_grad():
            next(engine.causal_lm.parameters()).add_(1e-3)
    drifted.append(ranks_drifted(engine))
    total, all_discarded = all_sum(1.0, discarded)
    if rank == 0:
        torch.save(weights, case.out)
        Path(case.out).with_suffix(".json").write_text(
            json.dumps(
                {
                    "ranks": total,
                    "first": first,
                    "discarded": all_discarded,
                    "held": held,
                    "released": released,
                    "apart": apart,
                    "drifted": drifted,
                }
            )
        )


if __name__ == "__main__":
    init_distributed()
    for fields in json.loads(Path(sys.argv[1]).read_text()):
        train(Case(**fields))
