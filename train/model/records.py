"""Distilled positives as training records: what synthesis hands over (`synth.records`), as segments.

A segment has the bare prompt, the sampled ids and, in place of rollout log-probabilities, those that the sampling
engine had with the context in the prompt. They are never an old policy: that is computed by the training engine's own
forward pass on the bare prompt, and the two together make the weight (`objective.distillation`).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from truegold.pipeline.tables.rows import RowKey, read_table, row_key
from truegold.synth.records import DistilledRow
from truegold.train.model.segment import Segment


@dataclass(frozen=True)
class DistilledPositive:
    """A positive to train on."""

    key: RowKey
    """The row that it answers."""
    segment: Segment
    trust: float
    """How much it weighs beside others, at most 1."""
    strategy: str
    """What it was made by."""


def read_distilled(path: Path) -> list[DistilledPositive]:
    """Return the positives of a table, in its order."""
    return [
        DistilledPositive(
            row_key(record),
            Segment(
                prompt_ids=tuple(record["prompt_ids"]),
                output_ids=tuple(record["output_ids"]),
                rollout_logprobs=tuple(record["context_logprobs"]),
                temperature=record["temperature"],
                origin="reflection",
                reward=1.0,
                right=True,
            ),
            record["trust"],
            record["strategy"],
        )
        for record in read_table(path, DistilledRow)
    ]
