"""Defines the tables of synthesis: `distilled.parquet` with right completions to train on (positives), and
`attempts.parquet` with all attempts.

    column of a positive    content
    prompt                  "Tom has 12 apples ...": the problem alone, which training sees
    output_ids              "12+9=21, 21-5=16 \\boxed{16}": sampled with a reflection in the prompt (the context)
    context_logprobs        log p(output | prompt, context), of the engine that sampled the output
    bare_logprobs           log p(output | prompt), of the same engine, only for the guards (`leaks`)

Training computes log p(output | prompt) again in its own forward pass. Log-probabilities of another engine make
importance ratios wrong (docs/explain/distillation.md).
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
    """The text of the problem."""
    prompt_ids: Int32List
    """The tokens of the prompt without context, with chat template and special tokens."""
    completion: str
    output_ids: Int32List
    temperature: float
    """The temperature at which the output was sampled."""
    context_logprobs: Float32List
    """The log-probabilities of the output tokens with the context, at the sampling temperature."""
    bare_logprobs: Float32List
    """The log-probabilities of the output tokens without the context, at temperature 1."""
    token_weight: float
    """The mean over tokens of min(1, p(token | prompt) / p(token | prompt, context))."""
    sequence_weight: float
    """min(1, p(output | prompt) / p(output | prompt, context))."""
    geometric_weight: float
    """exp of the mean over tokens of log p(token | prompt) - log p(token | prompt, context), at most 1. The three
    weights use the probabilities of the sampling engine at temperature 1."""
    strategy: str
    strategy_version: str
    uses_gold: bool
    """Whether the model was shown the gold."""
    trust: float
    """The weight in training, compared with other positives."""
    attempt: Int32
    """The number of the attempt among those at its row."""
    pass_rate: float
    """The expected pass rate of the row, from the profile."""
    leaks: str
    """A JSON object with the measurements of the guards."""
    chain: str
    """A JSON list of the attempts that led to this one, in order, each with strategy, completion, answer, reason,
    feedback and reflection."""


class AttemptRow(RowReference):
    """A row of `attempts.parquet`: one attempt, right or wrong."""

    attempt: Int32
    """The number of the attempt among those at its row, from 0, in the order in which they were made."""
    parent: Annotated[int | None, pa.int32()]
    """The number of the attempt that this one continues. Null if it continues a sample of the profile, or nothing."""
    strategy: str
    context: str
    """The text that replaced the problem in the prompt, or an empty text."""
    reflection: str | None
    feedback: str | None
    completion: str
    tokens: Int32
    """The number of sampled tokens, including those of the reflection."""
    temperature: float
    score: float | None
    reason: str
    extracted: str | None
    kept: bool
    """Whether the attempt became a positive."""
    dropped: str | None
    """The reason why a right attempt did not become a positive."""
    difficulty: str
    """The most probable band of the row's pass rate: dead, hard, useful, ..."""


DISTILLED_SCHEMA = arrow_schema(DistilledRow)
ATTEMPT_SCHEMA = arrow_schema(AttemptRow)


@dataclass(frozen=True)
class Weights:
    """p(output | prompt) / p(output | prompt, context), averaged in three ways (`DistilledRow`)."""

    token: float
    sequence: float
    geometric: float


def weigh(bare: Sequence[float], conditioned: Sequence[float]) -> Weights:
    """Return the weights of an output, given the log-probabilities of its tokens without and with the context.

    An output without tokens has weights of 1.
    """
    ratios = [left - right for left, right in zip(bare, conditioned, strict=True)]
    if not ratios:
        return Weights(1.0, 1.0, 1.0)
    return Weights(
        math.fsum(math.exp(min(ratio, 0.0)) for ratio in ratios) / len(ratios),
        math.exp(min(math.fsum(ratios), 0.0)),
        math.exp(min(math.fsum(ratios) / len(ratios), 0.0)),
    )
