"""Tables of synthesis: positives (right completions to train on), and all attempts that led to them.

    prompt      "Tom has 12 apples ..."                      the problem alone, which training sees
    output_ids  "12+9=21, 21-5=16 \\boxed{16}"               sampled with a reflection in the prompt
    context_logprobs   log p(output | prompt, context)       of the engine that sampled it
    bare_logprobs      log p(output | prompt)                of the same engine, for the guards alone

Training computes log p(output | prompt) again in its own forward pass. Log-probabilities of another engine, or with the
context, would make every importance ratio wrong (docs/explain/distillation.md).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import pyarrow as pa

from truegold.pipeline.tables.rows import Float32List, Int32, Int32List, RowReference, arrow_schema

DISTILLED_FILE = "distilled.parquet"
ATTEMPTS_FILE = "attempts.parquet"


class DistilledRow(RowReference):
    """A row of `distilled.parquet`: one verified positive."""

    prompt: str
    """The problem's text in its row."""
    prompt_ids: Int32List
    """The tokens of the bare prompt, with chat template and special tokens."""
    completion: str
    output_ids: Int32List
    temperature: float
    """The temperature at which it was sampled."""
    context_logprobs: Float32List
    """Log-probabilities of the output tokens with the context, at the sampling temperature."""
    bare_logprobs: Float32List
    """Log-probabilities of the output tokens after the bare prompt, at temperature 1."""
    token_weight: float
    """The mean over tokens of min(1, p(token | prompt) / p(token | prompt, context))."""
    sequence_weight: float
    """min(1, p(output | prompt) / p(output | prompt, context))."""
    geometric_weight: float
    """exp of the mean log ratio, at most 1. All three weights use the sampling engine's probabilities at temperature
    1."""
    strategy: str
    strategy_version: str
    uses_gold: bool
    """Whether the model was shown the gold."""
    trust: float
    """The weight in training compared with other positives."""
    attempt: Int32
    """Its number among the row's attempts."""
    pass_rate: float
    """The row's expected pass rate on the bare prompt, from the profile."""
    leaks: str
    """A JSON object with the measurements of the guards."""
    chain: str
    """A JSON list of the attempts that led to it, the first one first, with strategy, completion, answer, reason,
    feedback and reflection."""


class AttemptRow(RowReference):
    """A row of `attempts.parquet`: one attempt, right or wrong."""

    attempt: Int32
    """Its number among the row's attempts, from 0 in the order in which they were made."""
    parent: Annotated[int | None, pa.int32()]
    """The number of the attempt that it continues, or None if it continues a sample of the profile or no attempt."""
    strategy: str
    context: str
    """The prompt that replaced the problem, or an empty text for the bare prompt."""
    reflection: str | None
    feedback: str | None
    completion: str
    tokens: Int32
    """Sampled tokens, including those of the reflection."""
    temperature: float
    score: float | None
    reason: str
    extracted: str | None
    kept: bool
    """Whether it became a positive."""
    dropped: str | None
    """The reason that a right attempt did not become a positive."""
    difficulty: str
    """The profile's difficulty of the row: dead, hard, useful, ..."""


DISTILLED_SCHEMA = arrow_schema(DistilledRow)
ATTEMPT_SCHEMA = arrow_schema(AttemptRow)


@dataclass(frozen=True)
class Weights:
    """p(output | prompt) / p(output | prompt, context), averaged in three ways (docs/explain/distillation.md)."""

    token: float
    sequence: float
    geometric: float


def weigh(bare: Sequence[float], conditioned: Sequence[float]) -> Weights:
    """Return the weights of an output, from the log-probabilities of its tokens. Without tokens they are 1."""
    ratios = [left - right for left, right in zip(bare, conditioned, strict=True)]
    if not ratios:
        return Weights(1.0, 1.0, 1.0)
    return Weights(
        math.fsum(math.exp(min(ratio, 0.0)) for ratio in ratios) / len(ratios),
        math.exp(min(math.fsum(ratios), 0.0)),
        math.exp(min(math.fsum(ratios) / len(ratios), 0.0)),
    )
