"""TRL (`GRPOTrainer`, `RLOOTrainer`): a conversation and columns that every reward function gets as lists.

    {"prompt": [{"role": "user", "content": "Natalia sold ..."}], "solution": "\\\\boxed{72}", "answer": "72",
     "id": ..., "verifier": "math", "verifier_args": "{}", "license": "mit", "origin": "openai/gsm8k", "truegold": ...}

`solution` is a response that earns the full score, in the form that TRL's own `accuracy_reward` parses; worked
solutions stand in `truegold`. `pass_rate`, `posterior_a` and `posterior_b` are there for the sampler
(`train.rollout.trl_sampler`). Source: TRL's docs/source/dataset_formats.md and trainer/grpo_trainer.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from truegold.pipeline.export.formats.base import ExportRecord, ExportRow, Format, Message


class TrlRecord(ExportRecord):
    """A record for TRL."""

    prompt: str | list[Message]
    solution: str
    answer: str
    id: str
    verifier: str
    verifier_args: str


def make_record(row: ExportRow, index: int) -> Mapping[str, Any]:
    """Return a row's record."""
    return {
        "prompt": row.messages,
        "solution": row.perfect_response,
        "answer": row.row["gold"] or "",
        "id": row.row["id"],
        "verifier": row.row["verifier"],
        "verifier_args": row.row["verifier_args"],
        "license": row.provenance.license,
        "origin": row.provenance.origin,
        "pass_rate": row.row.get("pass_rate"),
        "posterior_a": row.row.get("posterior_a"),
        "posterior_b": row.row.get("posterior_b"),
        "truegold": row.carried,
    }


def load(path: Path) -> int:
    """Load a split as TRL's scripts do, and see that its trainers take it for conversations."""
    import tempfile

    import datasets
    from trl import is_conversational

    with tempfile.TemporaryDirectory(prefix="truegold-") as cache:
        loaded = datasets.load_dataset("parquet", data_files=str(path), split="train", cache_dir=cache)
        if len(loaded) and not is_conversational(loaded[0]):
            raise ValueError("TRL does not take the prompts for conversations")
        return len(loaded)


TRL = Format("trl", "TRL's GRPOTrainer", "parquet", make_record, TrlRecord, "trl", load)
