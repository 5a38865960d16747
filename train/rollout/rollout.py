"""Rollouts: vLLM beside the trainer or a vLLM server, its weights updated after every step and checked by a probe."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice

from truegold.pipeline.engines.base import Completion, SamplingParams, sample_seed
from truegold.pipeline.engines.chat import ChatEncoder
from truegold.pipeline.tables.rows import Row
from truegold.train.model.engine import TrainingEngine
from truegold.train.rollout.engines import RolloutEngine
from truegold.train.rollout.mismatch import Mismatch
from truegold.train.rollout.probe import Probe
from truegold.verifiers import GuardError, TruegoldError


@contextmanager
def engine_deaths_reported(step: int) -> Iterator[None]:
    """Turn what the sampling engine dies of into a GuardError that names the step; those of evaluations are below 0."""
    try:
        yield
    except TruegoldError:
        raise
    except Exception as error:
        reason = str(error).strip().split("\n", 1)[0][:200]
        moment = f"at step {step}" if step >= 0 else "in an evaluation"
        raise GuardError(
            f"The sampling engine died {moment}: {type(error).__name__}: {reason}",
            "The same command goes on from the last checkpoint; where it dies again, see the log of the stage.",
            "engine",
        ) from error


@dataclass
class Rollout:
    """Samples with the weights of the training engine and keeps the two in step."""

    engine: RolloutEngine
    encoder: ChatEncoder
    trainer: TrainingEngine
    seed: int
    probe: Probe
    version: int = 0
    """The version of the weights that the sampling engine has."""

    def sample(
        self,
        rows: Sequence[Row],
        sampling: Sequence[SamplingParams],
        step: int,
        groups: Sequence[int],
        size: int,
    ) -> tuple[list[tuple[int, ...]], list[list[Completion]]]:
        """Return each row's prompt ids and its group of completions, by the row's sampling, in order.

        groups: the number of each row's group in the step. size: the completions of each group. A seed depends on run,
        step, row, group and the completion's index in the group alone.
        """
        prompts = [tuple(self.encoder.encode(row["prompt"])) for row in rows]
        seeds = [
            sample_seed(self.seed, step, group, row["id"], index)
            for group, row in zip(groups, rows, strict=True)
            for index in range(size)
        ]
        repeated_sampling = [params for params in sampling for _ in range(size)]
        repeated_prompts = [prompt for prompt in prompts for _ in range(size)]
        with engine_deaths_reported(step):
            # Ranks may share an engine, so that one without rows asks it too.
            completions = iter(self.engine.generate(repeated_prompts, repeated_sampling, seeds))
        return prompts, [list(islice(completions, size)) for _ in rows]

    def sync(self, version: int) -> Mismatch:
        """Give the sampling engine the trainer's weights, and probe. Raises GuardError where the engines disagree."""
        self.send(version)
        return self.probe.check(version)

    def send(self, version: int) -> None:
        """Give the sampling engine the trainer's weights."""
        self.engine.update_weights(self.trainer.named_tensors(), version)
        self.version = version
