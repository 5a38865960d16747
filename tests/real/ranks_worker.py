"""One rank of `test_ranks`: trains on its share of fixed rollout batches and writes the weights it ends with.

    ranks_worker.py MODEL DTYPE ZERO_STAGE STEPS SHARE OUT [CHECKPOINTS]

SHARE: "even" gives each rank every other segment, "one" gives all to rank 0. CHECKPOINTS: save after each step there,
and go on from what is there. LOGIT_CHUNK in the environment replaces `policy.LOGIT_CHUNK`.
"""

from __future__ import annotations

import json
import os
import random
import sys
from pathlib import Path

import torch

from truegold.train.config.models import OptimizerConfig
from truegold.train.config.objective import ObjectiveConfig, PositivesConfig
from truegold.train.grpo.update import Updater, weigh_segments
from truegold.train.model import policy
from truegold.train.model.distributed import all_sum
from truegold.train.model.engine import TrainingEngine
from truegold.train.model.segment import Segment


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


def main() -> None:
    model, dtype, zero_stage, steps, share, out = sys.argv[1:7]
    policy.LOGIT_CHUNK = int(os.environ.get("LOGIT_CHUNK", policy.LOGIT_CHUNK))
    checkpoints = Path(sys.argv[7]) if len(sys.argv) > 7 else None
    optimizer = OptimizerConfig.model_validate(
        {"lr": 1e-3, "dtype": dtype, "zero_stage": int(zero_stage), "micro_batch_tokens": 96}
    )
    engine = TrainingEngine(Path(model), optimizer, pad_id=0, seed=0)
    rank, world = torch.distributed.get_rank(), torch.distributed.get_world_size()
    config = ObjectiveConfig(
        advantage="batch_std", loss="ppo", corrections=(), num_iterations=2, positives=PositivesConfig(floor=1.0)
    )
    updater = Updater(engine, config, max_tokens=32, total=100)
    first = 0
    if checkpoints is not None and (resumed := engine.load(checkpoints)):
        first, state = resumed
        updater.steps = state["steps"]
    for step in range(first, int(steps)):
        batch = rollout_batch(step)
        if share == "even":
            local_segments = [segment for segment in batch if segment.group % world == rank]
        else:
            local_segments = batch if rank == 0 else []
        weighed = weigh_segments(local_segments, config, [config.advantage] * len(local_segments))
        updater.train_on(local_segments, weighed, seed=str(step))
        if checkpoints is not None:
            engine.save(checkpoints, step + 1, {"steps": updater.steps})
    weights = {name: tensor.clone() for name, tensor in engine.named_tensors()}
    (total,) = all_sum(1.0)
    if rank == 0:
        torch.save(weights, out)
        Path(out).with_suffix(".json").write_text(json.dumps({"ranks": total, "first": first}))


if __name__ == "__main__":
    main()
