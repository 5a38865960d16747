"""Every step's completions as Parquet, with verdict, reward, advantage, weights version: what the model saw itself do.

`score`, `reason` and `extracted` are of the verdict on correctness; `reward` is the composed one, and `reward_terms`
(JSON) has each term's score, reason and what it added.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from torch import Tensor

from truegold.pipeline.engines.chat import PromptEncoder
from truegold.pipeline.rows import Row, write_rows
from truegold.train.rewards import Scored, terms_json
from truegold.train.segment import Segment
from truegold.verifiers import Term

COMPLETION_SCHEMA = pa.schema(
    [
        ("step", pa.int32()),
        ("id", pa.string()),
        ("version", pa.int32()),
        ("prompt", pa.string()),
        ("gold", pa.string()),
        ("completion", pa.string()),
        ("token_ids", pa.list_(pa.int32())),
        ("rollout_logprobs", pa.list_(pa.float32())),
        ("temperature", pa.float64()),
        ("truncated", pa.bool_()),
        ("score", pa.float64()),
        ("reason", pa.string()),
        ("extracted", pa.string()),
        ("reward", pa.float64()),
        ("reward_terms", pa.string()),
        ("advantage", pa.float64()),
        ("trained", pa.bool_()),
    ]
)


@dataclass(frozen=True)
class CompletionTable:
    """One step's completions, field by field in the same order; a segment's `group` is the place of its row in
    `rows`."""

    rows: Sequence[Row]
    segments: Sequence[Segment]
    scored: Sequence[Scored]
    terms: Sequence[Term]
    advantages: Tensor
    trained: Tensor


def write_completions(out_dir: Path, step: int, table: CompletionTable, encoder: PromptEncoder) -> None:
    """Write completions/step-NNNNNN.parquet."""
    folder = out_dir / "completions"
    folder.mkdir(exist_ok=True)
    records = (
        {
            "step": step,
            "id": table.rows[segment.group]["id"],
            "version": segment.version,
            "prompt": table.rows[segment.group]["prompt"],
            "gold": table.rows[segment.group]["gold"],
            "completion": encoder.decode(segment.output_ids),
            "token_ids": list(segment.output_ids),
            "rollout_logprobs": list(segment.rollout_logprobs),
            "temperature": segment.temperature,
            "truncated": segment.truncated,
            "score": one.correct.score,
            "reason": str(one.correct.reason),
            "extracted": one.correct.extracted,
            "reward": one.reward.value,
            "reward_terms": terms_json(one, table.terms),
            "advantage": float(advantage),
            "trained": bool(used),
        }
        for segment, one, advantage, used in zip(
            table.segments, table.scored, table.advantages, table.trained, strict=True
        )
    )
    write_rows(folder / f"step-{step:06d}.parquet", records, COMPLETION_SCHEMA)
