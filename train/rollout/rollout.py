"""Rollouts: vLLM beside the trainer or a vLLM server, its weights updated after every step and checked by a probe."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from truegold.pipeline.engines.base import Completion, SamplingParams, sample_seed
from truegold.pipeline.engines.chat import ChatEncoder
from truegold.pipeline.rows import Row
from truegold.train.model.engine import TrainingEngine
from truegold.train.rollout.engines import RolloutEngine
from truegold.train.rollout.mismatch import Mismatch
from truegold.train.rollout.probe import Probe


@dataclass
class Rollout:
    """Samples with the weights of the training engine and keeps the two in step. version: of the weights."""

    engine: RolloutEngine
    encoder: ChatEncoder
    trainer: TrainingEngine
    seed: int
    probe: Probe
    version: int = 0

    def sample(
        self, rows: Sequence[Row], sampling: Sequence[SamplingParams], where: tuple[int, Sequence[int]], size: int
    ) -> tuple[list[tuple[int, ...]], list[list[Completion]]]:
        """The prompt's ids and `size` completions of each row by its sampling, in order. where: the step, and each
        row's place in it.

        A seed depends on run, step, the row and its place in the step, and the completion's number alone.
        """
        step, places = where
        prompts = [tuple(self.encoder.encode(row["prompt"])) for row in rows]
        seeds = [
            sample_seed(self.seed, step, place, row["id"], number)
            for place, row in zip(places, rows, strict=True)
            for number in range(size)
        ]
        each = [own for own in sampling for _ in range(size)]
        repeated = [prompt for prompt in prompts for _ in range(size)]
        flat = self.engine.generate(repeated, each, seeds) if prompts else []
        return prompts, [flat[at : at + size] for at in range(0, len(flat), size)]

    def sync(self, version: int) -> Mismatch:
        """Give the sampling engine the trainer's weights, and probe. Raises GuardError where the engines disagree."""
        self.engine.update_weights(self.trainer.named_tensors(), version)
        self.version = version
        return self.probe.check(version)
