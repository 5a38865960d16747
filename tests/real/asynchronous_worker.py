"""The stage `train`, which also writes what only a rank itself knows: its weights at the end (`weights-RANK.pt`), and
where the feed and the groups on their way are at each checkpoint (`state-STEP-RANK`). Steps that `left_out.json` names
train nothing, as where a guard keeps them from the optimizer.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from truegold.pipeline.running.progress import Progress
from truegold.pipeline.running.stage import StageReport
from truegold.train.config.grpo import GrpoConfig
from truegold.train.grpo import grpo
from truegold.train.grpo.guard_actions import Responder
from truegold.train.model.distributed import rank
from truegold.train.model.engine import TrainingEngine

SAVE, EXPORT = TrainingEngine.save, TrainingEngine.export


def train(inputs: Mapping[str, Path], config: GrpoConfig, out_dir: Path, progress: Progress) -> StageReport:
    """Train as the stage does."""
    names_steps = out_dir / "left_out.json"
    left_out = json.loads(names_steps.read_text()) if names_steps.exists() else []
    may_train = Responder.may_train

    def may_train_in_others(responder: Responder, step: int, metrics: Any) -> bool:
        return may_train(responder, step, metrics) and step not in left_out

    Responder.may_train = may_train_in_others  # type: ignore[method-assign]

    def save(
        engine: TrainingEngine, folder: Path, step: int, state: Mapping[str, Any], *rest: Any, **named: Any
    ) -> None:
        known = {name: state[name] for name in ("feed", "pending_groups", "next_group", "pipeline_step")}
        (out_dir / f"state-{step}-{rank()}").write_bytes(pickle.dumps(known))
        SAVE(engine, folder, step, state, *rest, **named)

    def export(engine: TrainingEngine, folder: Path, tokenizer: Any) -> None:
        weights = {name: tensor.clone() for name, tensor in engine.named_tensors()}
        torch.save(weights, out_dir / f"weights-{rank()}.pt")
        EXPORT(engine, folder, tokenizer)

    TrainingEngine.save, TrainingEngine.export = save, export  # type: ignore[method-assign]
    return grpo(inputs, config, out_dir, progress)
