"""The tables of synthesis: positives on bare prompts, and every attempt that led to them.

    prompt      "Tom has 12 apples ..."                      what training sees: the problem alone
    output_ids  "12+9=21, 21-5=16 \\boxed{16}"               sampled with a reflection in the prompt
    context_logprobs   log p(output | prompt, context)       of the engine that sampled it
    bare_logprobs      log p(output | prompt)                of the same engine, for the guards alone

Training computes the second anew with its own forward pass: an old policy of another engine, or one that has seen the
context, makes every importance ratio wrong (docs/explain/distillation.md).
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
    """The problem as its row has it."""
    prompt_ids: Int32List
    """The bare prompt, chat template and special tokens included."""
    completion: str
    output_ids: Int32List
    temperature: float
    """The temperature at which it was sampled."""
    context_logprobs: Float32List
    """Log-probabilities of each output token with the context, as sampled, temperature applied."""
    bare_logprobs: Float32List
    """Log-probabilities of each output token after the bare prompt, at temperature 1."""
    token_weight: float
    """The mean over tokens of min(1, p(token | prompt) / p(token | prompt, context))."""
    sequence_weight: float
    """min(1, p(output | prompt) / p(output | prompt, context))."""
    geometric_weight: float
    """exp of the mean log ratio, at most 1. All three are the engine's, at temperature 1."""
    strategy: str
    strategy_version: str
    uses_gold: bool
    """Whether the model was shown the gold."""
    trust: float
    """The weight in training compared with others."""
    attempt: Int32
    """Its number among the row's attempts."""
    pass_rate: float
    """The row's expected pass rate on the bare prompt, from the profile."""
    leaks: str
    """A JSON object: what the guards measured."""
    chain: str
    """A JSON list: each attempt that led here, the first one first, with strategy, completion, answer, reason,
    feedback and reflection."""


class AttemptRow(RowReference):
    """A row of `attempts.parquet`: one attempt, right or wrong."""

    attempt: Int32
    """Its number among the row's attempts, from 0 in the order in which they were made."""
    parent: Annotated[int | None, pa.int32()]
    """The attempt that it goes on from; None for a failed sample of the profile or the bare prompt."""
    strategy: str
    context: str
    """The prompt that the model got in place of the problem; empty where the bare prompt was used."""
    reflection: str | None
    feedback: str | None
    completion: str
    tokens: Int32
    """Sampled tokens, the reflection's included."""
    temperature: float
    score: float | None
    reason: str
    extracted: str | None
    kept: bool
    """Whether it is a positive that training gets."""
    dropped: str | None
    """Why a right one is not."""
    difficulty: str
    """The profile's difficulty of the row: dead, hard, useful, ..."""


DISTILLED_SCHEMA = arrow_schema(DistilledRow)
ATTEMPT_SCHEMA = arrow_schema(AttemptRow)


@dataclass(frozen=True)
class Weights:
    """p(output | prompt) / p(output | prompt, context), in three ways (docs/explain/distillation.md)."""

    token: float
    sequence: float
    geometric: float


def weigh(bare: Sequence[float], conditioned: Sequence[float]) -> Weights:
    """Return an output's weights from the log-probabilities of its tokens; 1 where it has none."""
    ratios = [left - right for left, right in zip(bare, conditioned, strict=True)]
    if not ratios:
        return Weights(1.0, 1.0, 1.0)
    return Weights(
        math.fsum(math.exp(min(ratio, 0.0)) for ratio in ratios) / len(ratios),
        math.exp(min(math.fsum(ratios), 0.0)),
        math.exp(min(math.fsum(ratios) / len(ratios), 0.0)),
    )
