"""Every step's completions as Parquet, with verdict, reward, advantage, weights version: what the model saw itself do.

`score`, `reason` and `extracted` are of the verdict on correctness; `reward` is the composed one, and `reward_terms`
(JSON) has each term's score, reason and what it added. An episode of several segments has a line for each (`turn`).
`versions` has the version of the weights and the tokens of each stretch of what was sampled: more than one where
weights arrived meanwhile; `version` is the oldest.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from truegold.pipeline.engines.chat import PromptEncoder
from truegold.pipeline.tables.rows import write_rows
from truegold.train.grpo.rewards import StepCompletion, terms_json
from truegold.train.model.segment import Segment
from truegold.verifiers import Term

COMPLETION_SCHEMA = pa.schema(
    [
        ("step", pa.int32()),
        ("id", pa.string()),
        ("group", pa.int32()),
        ("turn", pa.int32()),
        ("origin", pa.string()),
        ("version", pa.int32()),
        ("versions", pa.list_(pa.struct([("version", pa.int32()), ("tokens", pa.int32())]))),
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


def write_completions(
    out_dir: Path,
    step: int,
    completions: Sequence[StepCompletion],
    terms: Sequence[Term],
    encoder: PromptEncoder,
    rank: int = 0,
) -> None:
    """Write completions/step-NNNNNN.parquet, or step-NNNNNN.rank-R.parquet of another rank than the first: each has its
    own, since to send them all to one would cost more than the step's other messages together."""
    folder = out_dir / "completions"
    folder.mkdir(exist_ok=True)
    records = (
        _record(step, completion, segment, terms, encoder)
        for completion in completions
        for segment in completion.parts or (completion.segment,)
    )
    suffix = f".rank-{rank}" if rank else ""
    write_rows(folder / f"step-{step:06d}{suffix}.parquet", records, COMPLETION_SCHEMA)


def _record(
    step: int, completion: StepCompletion, segment: Segment, terms: Sequence[Term], encoder: PromptEncoder
) -> dict[str, Any]:
    row, correct = completion.row, completion.score.correct
    return {
        "step": step,
        "id": row["id"],
        "group": segment.group,
        "turn": segment.turn,
        "origin": segment.origin,
        "version": segment.version,
        "versions": [{"version": version, "tokens": tokens} for version, tokens in segment.stretches],
        "prompt": row["prompt"],
        "gold": row["gold"],
        "completion": encoder.decode(segment.output_ids),
        "token_ids": list(segment.output_ids),
        "rollout_logprobs": list(segment.rollout_logprobs),
        "temperature": segment.temperature,
        "truncated": segment.truncated,
        "score": correct.score,
        "reason": str(correct.reason),
        "extracted": correct.extracted,
        "reward": completion.score.reward.value,
        "reward_terms": terms_json(completion.score, terms),
        "advantage": completion.advantage,
        "trained": completion.trained,
    }
