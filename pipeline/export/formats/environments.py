"""Records for environments and evaluations: verifiers (Prime Intellect) and prime-rl, inspect, NeMo-Gym."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from truegold.pipeline.export.formats.base import ExportRecord, ExportRow, Format, Message


class TasksetRecord(ExportRecord):
    """A record of the data of a package for verifiers."""

    id: str
    prompt: str | list[Message]
    gold: str | None
    verifier: str
    verifier_args: str


def make_taskset_record(row: ExportRow, index: int) -> Mapping[str, Any]:
    """Return a task's data, a line of `NAME/train.jsonl` in a small package that has its taskset and its reward.

        OUT/pyproject.toml
        OUT/NAME/__init__.py      exports the taskset, as verifiers' loader wants it
        OUT/NAME/taskset.py       tasks, the reward by truegold, and the check that gold earns it
        OUT/NAME/train.jsonl      {"id": "9f0c...", "prompt": "Natalia sold ...", "gold": "72", "verifier": "math", ...}

    `pip install OUT` makes it known as the taskset NAME. Source: verifiers' v1/taskset.py, v1/task.py,
    v1/utils/loaders.py.
    """
    return {
        "id": row.row["id"],
        "prompt": row.prompt,
        "gold": row.row["gold"],
        **row.verifier_columns,
        "solution": row.row["solution"],
        **row.source_columns,
    }


def load_with_verifiers(path: Path) -> int:
    """Load the package's taskset by verifiers' own loader, and count the tasks of the split."""
    from verifiers.v1.utils.loaders import load_taskset, taskset_config_type

    name = path.parent.name
    sys.path.insert(0, str(path.parents[1]))
    try:
        config = taskset_config_type(name)(id=name, split=path.stem)
        return sum(1 for _ in load_taskset(config))
    finally:
        sys.path.remove(str(path.parents[1]))
        for module in [module for module in sys.modules if module.partition(".")[0] == name]:
            del sys.modules[module]


class InspectRecord(ExportRecord):
    """A record for inspect."""

    input: str | list[Message]
    target: str | list[str]
    id: str
    metadata: dict[str, Any]


def make_inspect_record(row: ExportRow, index: int) -> Mapping[str, Any]:
    """Return a sample, whose target may be several accepted answers.

        {"input": "Natalia sold ...", "target": "72", "id": "9f0c...", "metadata": {"verifier": "math", ...}}
        {"input": "...", "target": ["1/2", "0.5"], ...}

    Read it with `json_dataset("train.jsonl")` and score it with `truegold.verifiers.adapters.inspect.verified`. Source:
    inspect_ai's dataset/_dataset.py and dataset/_util.py.
    """
    return {
        "input": row.prompt,
        "target": list(row.golds) if len(row.golds) > 1 else row.ground_truth,
        "id": row.row["id"],
        "metadata": {**row.verifier_columns, **row.source_columns},
    }


def load_with_inspect(path: Path) -> int:
    """Read a split by inspect's own reader of samples."""
    from inspect_ai.dataset import json_dataset

    return len(json_dataset(str(path)))


class CreateParams(BaseModel):
    """The request that a rollout of NeMo-Gym begins with."""

    model_config = ConfigDict(strict=True, extra="allow")

    input: str | list[Message]


class NemoGymRecord(ExportRecord):
    """A record for NeMo-Gym."""

    responses_create_params: CreateParams
    question: str
    expected_answer: str


def make_nemo_gym_record(row: ExportRow, index: int) -> Mapping[str, Any]:
    """Return a request to the Responses API, with what the resources server verifies by.

        {"responses_create_params": {"input": [{"role": "user", "content": "Natalia sold ..."}]},
         "question": "Natalia sold ...", "expected_answer": "72", "id": "9f0c...", "verifier_metadata": {...}, ...}

    `question` and `expected_answer` are those of its `math_with_judge` server. Source: NeMo-Gym's
    resources_servers/math_with_judge/app.py and its example data.
    """
    return {
        "responses_create_params": {"input": row.messages},
        "question": row.row["prompt"],
        "expected_answer": row.ground_truth,
        "id": row.row["id"],
        "verifier_metadata": row.verifier_columns,
        **row.source_columns,
    }


_PACKAGE = {
    "pyproject.toml": "taskset_pyproject.toml.txt",
    "$NAME/__init__.py": "taskset_init.py.txt",
    "$NAME/taskset.py": "taskset.py.txt",
}
_TITLE = "Prime Intellect's verifiers and prime-rl"
VERIFIERS = Format(
    "verifiers",
    _TITLE,
    "jsonl",
    make_taskset_record,
    TasksetRecord,
    "verifiers",
    load_with_verifiers,
    _PACKAGE,
    "$NAME",
)
INSPECT = Format("inspect", "inspect", "jsonl", make_inspect_record, InspectRecord, "inspect_ai", load_with_inspect)
NEMO_GYM = Format("nemo-gym", "NeMo-Gym", "jsonl", make_nemo_gym_record, NemoGymRecord)
