"""verl (and forks of it): Parquet with a conversation, a ground truth and a struct of further information.

    {"data_source": "gsm8k_train.jsonl", "prompt": [{"role": "user", "content": "Natalia sold ..."}], "ability": "math",
     "reward_model": {"style": "rule", "ground_truth": "72"},
     "extra_info": {"split": "train", "index": 0, "id": "9f0c...", "verifier": "math", ..., "truegold": "{...}"}}

`extra_info` has one structure for all rows, as tables need, so that what differs from row to row is JSON text. The
ground truth of a program is its verifier's arguments. `compute_score.py` beside the data is what
`reward.custom_reward_function.path` names: verl itself knows no other data sources than its own. Source: verl's
examples/data_preprocess/gsm8k.py and utils/dataset/rl_dataset.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from truegold.pipeline.export.formats.base import SPLIT_NAMES, ExportRecord, ExportRow, Format, Message

COMPUTE_SCORE = '''"""The reward of this set: reward.custom_reward_function.path=compute_score.py"""

from truegold.verifiers.adapters.verl import compute_score

__all__ = ["compute_score"]
'''


class RewardModel(BaseModel):
    """How a row is judged."""

    model_config = ConfigDict(strict=True)

    style: Literal["rule", "model"]
    ground_truth: str


class ExtraInfo(BaseModel):
    """What the reward function gets beside the ground truth."""

    model_config = ConfigDict(strict=True, extra="allow")

    split: str
    index: int


class VerlRecord(ExportRecord):
    """A record for verl."""

    data_source: str
    prompt: list[Message]
    ability: str
    reward_model: RewardModel
    extra_info: ExtraInfo


def make_record(row: ExportRow, index: int) -> Mapping[str, Any]:
    """Return a row's record."""
    return {
        "data_source": row.row["source"],
        "prompt": row.messages,
        "ability": row.row["domain"],
        "reward_model": {"style": "rule", "ground_truth": row.ground_truth},
        "extra_info": {
            "split": SPLIT_NAMES[row.row["split"]],
            "index": index,
            "id": row.row["id"],
            "verifier": row.row["verifier"],
            "verifier_args": row.row["verifier_args"],
            "question": row.row["prompt"],
            "license": row.provenance.license,
            "origin": row.provenance.origin,
            "truegold": row.carried,
        },
    }


def load(path: Path) -> int:
    """Read a split by verl's own dataset class, row by row."""
    from omegaconf import OmegaConf
    from verl.utils.dataset.rl_dataset import RLHFDataset

    # A tokenizer is asked for the lengths of prompts alone, which are not looked at here.
    settings = OmegaConf.create({"filter_overlong_prompts": False, "cache_dir": str(path.parent / ".verl")})
    loaded = RLHFDataset(str(path), None, settings)
    for index in range(len(loaded)):
        record = loaded[index]
        if not record["raw_prompt"] or not isinstance(record["reward_model"]["ground_truth"], str):
            raise ValueError(f"verl reads no prompt or no ground truth in row {index + 1}")
    return len(loaded)


VERL = Format(
    "verl",
    "verl",
    "parquet",
    make_record,
    VerlRecord,
    "verl",
    load,
    companions={"compute_score.py": COMPUTE_SCORE},
)
