"""Rollouts: vLLM beside the trainer, its weights updated after every step and checked by a probe.

The probe lets the engine continue a few fixed prompts and compares the log-probabilities it reports with the training
engine's for the same tokens. It catches what comparing weights cannot: a stale packed `lm_head`, a prefix cache from
older weights, a temperature applied on one side only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from truegold.pipeline.engines.base import Completion, SamplingParams, sample_seed
from truegold.pipeline.engines.chat import ChatEncoder
from truegold.pipeline.engines.vllm_local import VllmEngine
from truegold.pipeline.rows import Row
from truegold.train.engine import TrainingEngine
from truegold.train.grpo_config import GrpoConfig
from truegold.train.mismatch import Mismatch, mismatch
from truegold.train.segment import Segment, collate
from truegold.verifiers import GuardError

MAX_ABS = {"float32": 1e-3, "bfloat16": 0.1}
"""Mean |delta log p| between the engines above which a probe fails. Measured noise: 1e-7 in float32 and 0.04 in
bfloat16; a stale output head gives 0.035 and a stale prefix cache 0.06 in float32, a forgotten temperature 0.2."""

FLOOR_FACTOR = 4.0
"""A probe also fails at so many times the noise of the first one, where both engines held the weights just loaded."""

MIN_FLOOR = {"float32": 1e-4, "bfloat16": 0.02}
"""The noise is taken to be at least this: a probe of 64 tokens scatters."""


@dataclass
class Rollout:
    """Samples with the weights of the training engine and keeps the two in step."""

    engine: VllmEngine
    encoder: ChatEncoder
    trainer: TrainingEngine
    config: GrpoConfig
    probe_prompts: Sequence[Sequence[int]]
    version: int = 0
    floor: float | None = None

    def sample(
        self,
        rows: Sequence[Row],
        temperatures: Sequence[float],
        where: tuple[int, Sequence[int]],
        size: int,
        top_p: float = 1.0,
    ) -> list[list[Completion]]:
        """`size` completions of each row at its temperature, in order. where: the step, and each row's place in it.

        A seed depends on run, step, the row and its place in the step, and the completion's number alone.
        """
        config, (step, places) = self.config, where
        prompts = [self.encoder.encode(row["prompt"]) for row in rows for _ in range(size)]
        seeds = [
            sample_seed(config.seed, step, place, row["id"], number)
            for place, row in zip(places, rows, strict=True)
            for number in range(size)
        ]
        sampling = [
            SamplingParams(temperature, top_p, config.max_tokens, self.encoder.stop_token_ids)
            for temperature in temperatures
            for _ in range(size)
        ]
        flat = self.engine.generate(prompts, sampling, seeds) if prompts else []
        return [flat[at : at + size] for at in range(0, len(flat), size)]

    def sync(self, version: int) -> Mismatch:
        """Give the sampling engine the trainer's weights, and probe. Raises GuardError where the engines disagree."""
        self.engine.update_weights(self.trainer.named_tensors(), version)
        self.version = version
        return self.probe()

    def probe(self) -> Mismatch:
        """Compare the two engines on a few tokens. Raises GuardError beyond the expected mismatch."""
        config = self.config
        temperature = config.temperature_of(self.version, None)
        sampling = [SamplingParams(temperature, 1.0, config.probe_tokens)] * len(self.probe_prompts)
        seeds = [sample_seed(config.seed, "probe", number) for number in range(len(self.probe_prompts))]
        completions = self.engine.generate(self.probe_prompts, sampling, seeds)
        segments = [
            Segment(tuple(prompt), completion.token_ids, completion.logprobs, temperature=temperature)
            for prompt, completion in zip(self.probe_prompts, completions, strict=True)
        ]
        found = self.compare(segments)
        dtype = config.optimizer.dtype
        if self.floor is None:
            self.floor = max(found.mean_abs, MIN_FLOOR[dtype])
        limit = min(MAX_ABS[dtype], FLOOR_FACTOR * self.floor)
        if found.mean_abs > limit:
            raise GuardError(
                f"At weights version {self.version} the sampling and the training engine disagree: mean |Δ log p| is "
                f"{found.mean_abs:.2g} over {found.tokens} probe tokens, the limit {limit:.2g}.",
                "A sync that left some weights stale, or different temperatures, are the usual causes.",
            )
        return found

    def compare(self, segments: Sequence[Segment]) -> Mismatch:
        """The training engine's log-probabilities against the ones the segments were sampled with."""
        own = self.trainer.logprobs(segments)
        batch = collate(segments, pad_id=0)
        other = batch.rollout.clone()
        for place, logprobs in enumerate(own):
            other[place, : len(logprobs)] = logprobs
        return mismatch(batch.rollout, other, batch.mask)
