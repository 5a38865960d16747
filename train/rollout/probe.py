"""After each weight sync: do the engine that samples and the one that trains give the same log-probabilities, and if
not, why?

The probe lets the sampling engine continue a few fixed prompts and compares the log-probabilities it reports with the
training engine's for the same tokens. It catches what comparing weights cannot. Where the two disagree beyond rounding,
the known causes are tried one after another, and the error names the one that explains it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

from truegold.pipeline.engines.base import SamplingParams, sample_seed
from truegold.train.config.grpo import GrpoConfig
from truegold.train.guards.table import PROBE
from truegold.train.model.distributed import all_max
from truegold.train.model.engine import TrainingEngine
from truegold.train.model.segment import Segment, collate
from truegold.train.rollout.engines import RolloutEngine
from truegold.train.rollout.mismatch import Mismatch, mismatch
from truegold.verifiers import GuardError

MAX_ABS = {"float32": 1e-3, "bfloat16": 0.1}
"""Mean |delta log p| between the engines above which a probe fails. Measured noise: 1e-7 in float32 and 0.04 in
bfloat16; a stale output head gives 0.035 and a stale prefix cache 0.06 in float32, a forgotten temperature 0.2."""

FLOOR_FACTOR = 4.0
"""A probe also fails at so many times the noise of the first one, where both engines held the weights just loaded."""

MIN_FLOOR = {"float32": 1e-4, "bfloat16": 0.02}
"""The noise is taken to be at least this: a probe of 64 tokens scatters."""

SAME_DISTANCE = 1e-6
"""Distances that differ by less than this share do not depend on what was tried."""
TEMPERATURES = tuple(step / 20 for step in range(2, 41))
"""Tried in search of the one that the sampling engine really uses."""

VECTOR_TOLERANCE = {"float32": 1e-5, "bfloat16": 1e-2}
"""The largest difference between norms or biases of the two engines that rounding explains."""

HEAD_TOLERANCE = {"float32": 1e-3, "bfloat16": 0.05}
"""The largest difference between the logits of the two output heads for the same hidden states, relative to the
largest logit."""

NOT_ARRIVING = (
    "Cause: stale weights. Norms and biases of the sampling engine are others than the trainer's, also after all "
    "weights have been sent again: they do not arrive.",
    "Look at what hands the weights over: another copy of the model takes them, or an older one is sent.",
)
UNEXPLAINED = (
    "Neither another temperature, nor the output head, the prefix cache or sending the weights again explains it.",
    "Another dtype or quantization, another rope scaling, or model code that differs between vLLM and transformers are "
    "the usual causes: compare the two on one prompt.",
)
"""Causes with their remedies."""


@dataclass
class Probe:
    """Compares the two engines on a few fixed prompts."""

    engine: RolloutEngine
    trainer: TrainingEngine
    config: GrpoConfig
    prompts: Sequence[Sequence[int]]
    """Token ids, long enough to fill a block of the prefix cache."""
    floor: float | None = None
    """The noise of the first probe; it has to be restored on resume."""

    def check(self, version: int) -> Mismatch:
        """Compare the engines; every rank calls it. Raises GuardError with the cause where those of any rank
        disagree, unless `guards.off` has the probe."""
        distance = self._measure_mismatch(self._sample(version))
        if PROBE in self.config.guards.off:
            return distance
        if not math.isfinite(distance.mean_abs):
            raise GuardError(
                f"At weights version {version} log-probabilities are not finite: the weights of one of the engines are "
                "spoilt.",
                "Go on from an earlier checkpoint, with a lower learning rate.",
                PROBE,
            )
        if self.floor is None:
            self.floor = max(distance.mean_abs, MIN_FLOOR[self.config.optimizer.dtype])
        limit = self._limit()
        if distance.mean_abs > limit:
            cause, remedy = self._explain(version, distance.mean_abs)
            raise GuardError(
                f"At weights version {version} the sampling and the training engine disagree: mean |Δ log p| is "
                f"{distance.mean_abs:.2g} over {distance.tokens} probe tokens, the limit {limit:.2g}. {cause}",
                remedy,
                PROBE,
            )
        return distance

    def _limit(self) -> float:
        max_abs = MAX_ABS[self.config.optimizer.dtype]
        return max_abs if self.floor is None else min(max_abs, FLOOR_FACTOR * self.floor)

    def _sample(self, version: int) -> list[Segment]:
        """Let the sampling engine continue the prompts at the temperature that it is meant to have."""
        temperature = self.config.sampling.temperature_for(version, None)
        sampling = [SamplingParams(temperature, 1.0, self.config.probe.tokens)] * len(self.prompts)
        seeds = [sample_seed(self.config.seed, "probe", index) for index in range(len(self.prompts))]
        return [
            Segment(tuple(prompt), done.token_ids, done.logprobs, temperature=temperature)
            for prompt, done in zip(self.prompts, self.engine.generate(self.prompts, sampling, seeds), strict=True)
        ]

    def _measure_mismatch(self, segments: Sequence[Segment]) -> Mismatch:
        """Compare the training engine's log-probabilities with those the segments were sampled with; mean_abs is the
        worst rank's."""
        batch = collate([[segment] for segment in segments], pad_id=0)
        trainer_logprobs = batch.rollout_logprobs.clone()
        for row, logprobs in enumerate(self.trainer.logprobs(segments)):
            trainer_logprobs[row, : len(logprobs)] = logprobs
        distance = mismatch(batch.rollout_logprobs, trainer_logprobs, batch.mask)
        # A maximum over ranks may pass over NaN.
        return replace(distance, mean_abs=all_max(float("inf") if math.isnan(distance.mean_abs) else distance.mean_abs))

    def _explain(self, version: int, mean_abs: float) -> tuple[str, str]:
        """Return what explains a disagreement of `mean_abs`, and what to do about it."""
        limit = self._limit()
        segments = self._sample(version)
        assumed = segments[0].temperature
        distances = {
            temperature: self._measure_mismatch([replace(segment, temperature=temperature) for segment in segments])
            for temperature in TEMPERATURES
        }
        best = min(distances, key=lambda temperature: distances[temperature].mean_abs)
        if best != assumed and distances[best].mean_abs < max(limit, mean_abs / 4):
            return (
                f"Cause: temperature. The sampling engine's log-probabilities are those of temperature {best:g}, the "
                f"trainer's are at {assumed:g}.",
                "Sample and train at one temperature, and let vLLM report processed log-probabilities.",
            )
        apart = [distance.mean_abs for distance in distances.values()]
        if max(apart) - min(apart) < SAME_DISTANCE * max(apart):
            return (
                "Cause: temperature. The trainer's log-probabilities are the same at every temperature: it does not "
                "divide by it.",
                "Divide the logits by each completion's temperature before the log-softmax.",
            )
        vector_difference = all_max(self._vector_difference())
        if vector_difference == 0 and all_max(self._head_difference()) > HEAD_TOLERANCE[self.config.optimizer.dtype]:
            return (
                "Cause: stale output head. For the same hidden states the sampling engine's lm_head gives other logits "
                "than the trainer's: the sync left it as it was.",
                "Hand over lm_head.weight at each sync, also where it is tied to the embedding.",
            )
        self.engine.forget_prefixes()
        if self._measure_mismatch(self._sample(version)).mean_abs <= limit:
            return (
                "Cause: stale prefix cache. With an empty prefix cache the two agree: cached prompts were computed "
                "with older weights.",
                "Reset the prefix cache, or change its salt, at each sync.",
            )
        self.engine.update_weights(self.trainer.named_tensors(), version)
        self.engine.forget_prefixes()
        if self._measure_mismatch(self._sample(version)).mean_abs <= limit:
            return (
                "Cause: stale weights. Once all weights are sent again the two agree: the last sync did not happen, or "
                "not all of it.",
                "Sync after every update, all tensors by their Hugging Face names.",
            )
        vector_difference = all_max(self._vector_difference())
        return NOT_ARRIVING if vector_difference > VECTOR_TOLERANCE[self.config.optimizer.dtype] else UNEXPLAINED

    def _vector_difference(self) -> float:
        """Return the largest difference between the one-dimensional weights (norms, biases) that both engines hold."""
        engine_vectors = self.engine.vectors()
        largest = 0.0
        for name, tensor in self.trainer.named_tensors():
            vector = engine_vectors.get(name)
            if vector is not None and tensor.shape == vector.shape:
                largest = max(largest, float((tensor.cpu().float() - vector.cpu().float()).abs().max()))
        return largest

    def _head_difference(self) -> float:
        """Return the largest difference between the logits of the two output heads for the same hidden states, relative
        to the largest logit; 0 where the engine does not show its head."""
        weight = self.trainer.causal_lm.get_output_embeddings().weight
        with self.trainer.whole(weight):
            hidden = torch.randn(4, weight.shape[1], generator=torch.Generator().manual_seed(0)).to(weight)
            trainer_logits = self.trainer.logits(hidden).float().cpu()
        engine_logits = self.engine.head_logits(hidden)
        if engine_logits is None:
            return 0.0
        columns = min(trainer_logits.shape[1], engine_logits.shape[1])
        difference = (trainer_logits[:, :columns] - engine_logits[:, :columns].float().cpu()).abs().max()
        return float(difference / trainer_logits.abs().max().clamp(min=1e-9))
