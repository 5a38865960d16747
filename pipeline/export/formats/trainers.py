"""Records for trainers: TRL, verl, OpenRLHF and open-instruct, and the plain rows that `datasets` reads."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from truegold.pipeline.export.formats.base import (
    SPLIT_NAMES,
    ExportRecord,
    ExportRow,
    Format,
    Message,
    dataset_of,
    load_with_datasets,
)
from truegold.pipeline.tables.rows import dump_json


class TrlRecord(ExportRecord):
    """A record for TRL."""

    prompt: str | list[Message]
    solution: str
    answer: str
    id: str
    verifier: str
    verifier_args: str


def make_trl_record(row: ExportRow, index: int) -> Mapping[str, Any]:
    """Return a conversation and columns that every reward function gets as lists.

        {"prompt": [{"role": "user", "content": "Natalia sold ..."}], "solution": "\\\\boxed{72}", "answer": "72",
         "id": ..., "verifier": "math", "verifier_args": "{}", "license": "mit", "origin": "openai/gsm8k", ...}

    `solution` is a response that earns the full score, in the form that TRL's own `accuracy_reward` parses; worked
    solutions stand in `truegold`. `pass_rate`, `posterior_a` and `posterior_b` are there for the sampler
    (`train.rollout.trl_sampler`). Source: TRL's docs/source/dataset_formats.md and trainer/grpo_trainer.py.
    """
    return {
        "prompt": row.messages,
        "solution": row.perfect_response,
        "answer": row.row["gold"] or "",
        "id": row.row["id"],
        **row.verifier_columns,
        **row.provenance._asdict(),
        **{name: row.row.get(name) for name in ("pass_rate", "posterior_a", "posterior_b")},
        "truegold": row.carried,
    }


def load_with_trl(path: Path) -> int:
    """Load a split as TRL's scripts do, and see that its trainers take it for conversations."""
    from trl import is_conversational

    with dataset_of(path) as dataset:
        if len(dataset) and not is_conversational(dataset[0]):
            raise ValueError("TRL does not take the prompts for conversations")
        return len(dataset)


class RewardModel(BaseModel):
    """How a row for verl is judged."""

    model_config = ConfigDict(strict=True)

    style: Literal["rule", "model"]
    ground_truth: str


class ExtraInfo(BaseModel):
    """What verl's reward function gets beside the ground truth."""

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


def make_verl_record(row: ExportRow, index: int) -> Mapping[str, Any]:
    """Return a conversation, a ground truth and a struct of further information.

        {"data_source": "gsm8k_train.jsonl", "prompt": [{"role": "user", "content": "Natalia sold ..."}],
         "ability": "math", "reward_model": {"style": "rule", "ground_truth": "72"},
         "extra_info": {"split": "train", "index": 0, "id": "9f0c...", "verifier": "math", ..., "truegold": "{...}"}}

    `extra_info` has one structure for all rows, as tables need, so that what differs from row to row is JSON text. The
    ground truth of a program is its verifier's arguments. `compute_score.py` beside the data is what
    `reward.custom_reward_function.path` names: verl itself knows no other data sources than its own. Source: verl's
    examples/data_preprocess/gsm8k.py and utils/dataset/rl_dataset.py.
    """
    return {
        "data_source": row.row["source"],
        "prompt": row.messages,
        "ability": row.row["domain"],
        "reward_model": {"style": "rule", "ground_truth": row.ground_truth},
        "extra_info": {
            "split": SPLIT_NAMES[row.row["split"]],
            "index": index,
            "id": row.row["id"],
            **row.verifier_columns,
            "question": row.row["prompt"],
            **row.source_columns,
        },
    }


def load_with_verl(path: Path) -> int:
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


class OpenRlhfRecord(ExportRecord):
    """A record for OpenRLHF."""

    input: str | list[Message]
    label: str
    datasource: str


def make_openrlhf_record(row: ExportRow, index: int) -> Mapping[str, Any]:
    """Return an input, a label and a data source.

        {"input": [{"role": "user", "content": "Natalia sold ..."}], "label": "{\\"gold\\": \\"72\\", ...}",
         "datasource": "gsm8k_train.jsonl", "id": "9f0c...", "truegold": "{...}"}

    Nothing but the label reaches OpenRLHF's reward function, so that the label is JSON text with gold, verifier and
    arguments, which `truegold.verifiers.adapters.openrlhf` reads; `reward_func.py` beside the data is what
    `--reward.remote_url` (in older versions `--remote_rm_url`) names. Source: OpenRLHF's datasets/prompts_dataset.py
    and utils/agent.py.
    """
    label = {"gold": row.row["gold"], **row.verifier_columns, "problem": row.row["prompt"], "id": row.row["id"]}
    return {
        "input": row.messages,
        "label": dump_json(label),
        "datasource": row.row["source"],
        "id": row.row["id"],
        **row.source_columns,
    }


def load_with_openrlhf(path: Path) -> int:
    """Read a split by OpenRLHF's own dataset class."""
    from openrlhf.datasets.prompts_dataset import PromptDataset

    keys = {"input_key": "input", "label_key": "label", "apply_chat_template": False}
    # Releases before 0.11 have these settings at their root.
    arguments = SimpleNamespace(data=SimpleNamespace(**keys), **keys)
    strategy = SimpleNamespace(args=arguments, is_rank_0=lambda: False)
    with dataset_of(path) as dataset:
        return len(PromptDataset(dataset, None, strategy))


class OpenInstructRecord(ExportRecord):
    """A record for open-instruct."""

    messages: list[Message]
    ground_truth: str | list[str]
    dataset: str | list[str]


OPEN_INSTRUCT_VERIFIERS = {"math": "math", "numeric": "math", "exact": "string_matcher"}
"""What open-instruct calls a verifier that judges the same kind of answers."""


def make_open_instruct_record(row: ExportRow, index: int) -> Mapping[str, Any]:
    """Return messages, a ground truth and the name of who verifies it; the last two are lists of one in every row.

        {"messages": [{"role": "user", "content": "Natalia sold ..."}], "ground_truth": ["72"], "dataset": ["math"]}
        {"messages": [...], "ground_truth": ["{\\"gold\\": \\"1/2\\", ...}"], "dataset": ["truegold"], ...}

    Rewards of several ground truths are added there, so that golds which mean the same would pay twice, and its
    verifiers know no options. Rows with several accepted golds, with options, or with a verifier that open-instruct
    does not have are written with the row itself as ground truth, for `truegold.verifiers.adapters.open_instruct`,
    which registers as `truegold`. Source: open-instruct's dataset_transformation.py, ground_truth_utils.py.
    """
    known = OPEN_INSTRUCT_VERIFIERS.get(row.row["verifier"]) if len(row.golds) == 1 and not row.arguments else None
    return {
        "messages": row.messages,
        "ground_truth": [row.carried if known is None else row.golds[0]],
        "dataset": [known or "truegold"],
        "id": row.row["id"],
        **row.source_columns,
    }


class PlainRecord(ExportRecord):
    """A canonical row."""

    id: str
    prompt: str
    gold: str | None
    golds: list[str]
    verifier: str
    verifier_args: str
    license: str | None
    origin: str


def make_plain_record(row: ExportRow, index: int) -> Mapping[str, Any]:
    """Return the canonical row as it is, with licence, origin and flags in columns.

    {"prompt": "Natalia sold ...", "gold": "72", "golds": ["72"], "verifier": "math", ..., "truegold": "{...}"}
    """
    return {
        **row.row,
        "golds": list(row.golds),
        **row.provenance._asdict(),
        "flags": list(row.flags),
        "truegold": row.carried,
    }


TRL = Format("trl", "TRL's GRPOTrainer", "parquet", make_trl_record, TrlRecord, "trl", load_with_trl)
VERL = Format(
    "verl",
    "verl",
    "parquet",
    make_verl_record,
    VerlRecord,
    "verl",
    load_with_verl,
    {"compute_score.py": "verl_compute_score.py.txt"},
)
OPENRLHF = Format(
    "openrlhf",
    "OpenRLHF",
    "jsonl",
    make_openrlhf_record,
    OpenRlhfRecord,
    "openrlhf",
    load_with_openrlhf,
    {"reward_func.py": "openrlhf_reward_func.py.txt"},
)
OPEN_INSTRUCT = Format(
    "open-instruct",
    "open-instruct's RLVR",
    "parquet",
    make_open_instruct_record,
    OpenInstructRecord,
    "datasets",
    load_with_datasets,
)
HF = Format("hf", "Hugging Face datasets", "parquet", make_plain_record, PlainRecord, "datasets", load_with_datasets)
