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

TEMPERATURES = tuple(step / 20 for step in range(2, 41))
"""Tried in search of the one that the sampling engine really uses."""

HEAD_TOLERANCE = {"float32": 1e-3, "bfloat16": 0.05}
"""The largest difference between the logits of the two output heads for the same hidden states, relative to the
largest logit."""


@dataclass
class Probe:
    """prompts: token ids, long enough to fill a block of the prefix cache. floor: the noise of the first probe; has to
    be restored on resume."""

    engine: RolloutEngine
    trainer: TrainingEngine
    config: GrpoConfig
    prompts: Sequence[Sequence[int]]
    floor: float | None = None

    def check(self, version: int) -> Mismatch:
        """Every rank calls it. Raises GuardError with the cause where the engines of any rank disagree."""
        found = self._mismatch(self._sampled(version))
        if not math.isfinite(found.mean_abs):
            raise GuardError(
                f"At weights version {version} log-probabilities are not finite: the weights of one of the engines are "
                "spoilt.",
                "Go on from an earlier checkpoint, with a lower learning rate.",
            )
        if self.floor is None:
            self.floor = max(found.mean_abs, MIN_FLOOR[self.config.optimizer.dtype])
        limit = self._limit()
        if found.mean_abs > limit:
            what, remedy = self._cause(version, found.mean_abs)
            raise GuardError(
                f"At weights version {version} the sampling and the training engine disagree: mean |Δ log p| is "
                f"{found.mean_abs:.2g} over {found.tokens} probe tokens, the limit {limit:.2g}. {what}",
                remedy,
            )
        return found

    def _limit(self) -> float:
        most = MAX_ABS[self.config.optimizer.dtype]
        return most if self.floor is None else min(most, FLOOR_FACTOR * self.floor)

    def _sampled(self, version: int) -> list[Segment]:
        """What the sampling engine makes of the prompts, as it should have."""
        temperature = self.config.temperature_of(version, None)
        sampling = [SamplingParams(temperature, 1.0, self.config.probe_tokens)] * len(self.prompts)
        seeds = [sample_seed(self.config.seed, "probe", number) for number in range(len(self.prompts))]
        return [
            Segment(tuple(prompt), done.token_ids, done.logprobs, temperature=temperature)
            for prompt, done in zip(self.prompts, self.engine.generate(self.prompts, sampling, seeds), strict=True)
        ]

    def _mismatch(self, segments: Sequence[Segment]) -> Mismatch:
        """The training engine's log-probabilities against those the segments were sampled with; the worst rank's."""
        own = self.trainer.logprobs(segments)
        batch = collate([[segment] for segment in segments], pad_id=0)
        other = batch.rollout.clone()
        for place, logprobs in enumerate(own):
            other[place, : len(logprobs)] = logprobs
        found = mismatch(batch.rollout, other, batch.mask)
        # A maximum over ranks may pass over NaN.
        return replace(found, mean_abs=all_max(float("inf") if math.isnan(found.mean_abs) else found.mean_abs))

    def _cause(self, version: int, seen: float) -> tuple[str, str]:
        """What explains the disagreement, and what to do about it."""
        limit = self._limit()
        segments = self._sampled(version)
        assumed = segments[0].temperature
        fits = {
            temperature: self._mismatch([replace(one, temperature=temperature) for one in segments]).mean_abs
            for temperature in TEMPERATURES
        }
        best = min(fits, key=lambda temperature: fits[temperature])
        if best != assumed and fits[best] < max(limit, seen / 4):
            return (
                f"Cause: temperature. The sampling engine's log-probabilities are those of temperature {best:g}, the "
                f"trainer's are at {assumed:g}.",
                "Sample and train at one temperature, and let vLLM report processed log-probabilities.",
            )
        body = all_max(self._body_difference())
        if body == 0 and all_max(self._head_difference()) > HEAD_TOLERANCE[self.config.optimizer.dtype]:
            return (
                "Cause: stale output head. For the same hidden states the sampling engine's lm_head gives other logits "
                "than the trainer's: the sync left it as it was.",
                "Hand over lm_head.weight at each sync, also where it is tied to the embedding.",
            )
        self.engine.forget_prefixes()
        if self._mismatch(self._sampled(version)).mean_abs <= limit:
            return (
                "Cause: stale prefix cache. With an empty prefix cache the two agree: cached prompts were computed "
                "with older weights.",
                "Reset the prefix cache, or change its salt, at each sync.",
            )
        self.engine.update_weights(self.trainer.named_tensors(), version)
        self.engine.forget_prefixes()
        if self._mismatch(self._sampled(version)).mean_abs <= limit:
            return (
                "Cause: stale weights. Once all weights are sent again the two agree: the last sync did not happen, or "
                "not all of it.",
                "Sync after every update, all tensors by their Hugging Face names.",
            )
        return (
            "Neither another temperature, nor the output head, the prefix cache or sending the weights again explains "
            "it.",
            "Another dtype or quantization, another rope scaling, or model code that differs between vLLM and "
            "transformers are the usual causes: compare the two on one prompt.",
        )

    def _body_difference(self) -> float:
        """Between the one-dimensional weights (norms, biases) that both engines hold under one name."""
        others = self.engine.vectors()
        found = 0.0
        for name, tensor in self.trainer.named_tensors():
            if name in others and tensor.shape == others[name].shape:
                found = max(found, float((tensor.cpu().float() - others[name].cpu().float()).abs().max()))
        return found

    def _head_difference(self) -> float:
        """Between the logits of the two output heads for the same hidden states, relative to the largest; 0 where the
        engine does not show its own."""
        weight = self.trainer.causal_lm.get_output_embeddings().weight
        with self.trainer.whole(weight):
            hidden = torch.randn(4, weight.shape[1], generator=torch.Generator().manual_seed(0)).to(weight)
            own = (hidden @ weight.detach().T).float().cpu()
        logits = self.engine.head_logits(hidden)
        if logits is None:
            return 0.0
        other = logits.float().cpu()
        columns = min(own.shape[1], other.shape[1])
        difference = (own[:, :columns] - other[:, :columns]).abs().max()
        return float(difference / own.abs().max().clamp(min=1e-9))
