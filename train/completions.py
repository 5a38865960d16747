"""Every step's completions as Parquet, with verdict, advantage and weights version: what the model saw itself do."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
from torch import Tensor

from truegold.pipeline.engines.chat import PromptEncoder
from truegold.pipeline.rows import Row, write_rows
from truegold.train.segment import Segment
from truegold.verifiers import Verdict

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
        ("advantage", pa.float64()),
        ("trained", pa.bool_()),
    ]
)


def write_completions(
    out_dir: Path,
    step: int,
    rows: Sequence[Row],
    segments: Sequence[Segment],
    verdicts: Sequence[Verdict],
    advantages: Tensor,
    trained: Tensor,
    encoder: PromptEncoder,
) -> None:
    """Write completions/step-NNNNNN.parquet; a segment's `group` is the place of its row in `rows`."""
    folder = out_dir / "completions"
    folder.mkdir(exist_ok=True)
    records = (
        {
            "step": step,
            "id": rows[segment.group]["id"],
            "version": segment.version,
            "prompt": rows[segment.group]["prompt"],
            "gold": rows[segment.group]["gold"],
            "completion": encoder.decode(segment.output_ids),
            "token_ids": list(segment.output_ids),
            "rollout_logprobs": list(segment.rollout_logprobs),
            "temperature": segment.temperature,
            "truncated": segment.truncated,
            "score": verdict.score,
            "reason": str(verdict.reason),
            "extracted": verdict.extracted,
            "advantage": float(advantage),
            "trained": bool(used),
        }
        for segment, verdict, advantage, used in zip(segments, verdicts, advantages, trained, strict=True)
    )
    write_rows(folder / f"step-{step:06d}.parquet", records, COMPLETION_SCHEMA)
