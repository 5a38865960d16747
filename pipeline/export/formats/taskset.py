"""verifiers (Prime Intellect) and prime-rl: a small package with a taskset, its data and its reward.

    OUT/pyproject.toml
    OUT/NAME/__init__.py      exports the taskset, as verifiers' loader wants it
    OUT/NAME/taskset.py       tasks, the reward by truegold, and the check that gold earns it
    OUT/NAME/train.jsonl      {"id": "9f0c...", "prompt": "Natalia sold ...", "gold": "72", "verifier": "math", ...}

`pip install OUT` makes it known as the taskset NAME. Source: verifiers' v1/taskset.py, v1/task.py, v1/utils/loaders.py.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from truegold.pipeline.export.formats.base import ExportRecord, ExportRow, Format, Message

PYPROJECT = """\
[build-system]
requires = ["setuptools>=70"]
build-backend = "setuptools.build_meta"

[project]
name = "$NAME"
version = "0.1.0"
dependencies = ["truegold", "verifiers>=0.4"]

[tool.setuptools]
packages = ["$NAME"]

[tool.setuptools.package-data]
"*" = ["*.jsonl"]
"""

INIT = """\
from $NAME.taskset import CuratedTaskset

__all__ = ["CuratedTaskset"]
"""

TASKSET = '''\
"""A set that truegold has curated, judged by the verifier that each row names."""

import json
from collections.abc import Iterable
from pathlib import Path

import verifiers.v1 as vf

from truegold.verifiers.adapters.prime import gold_passes, score_trace


class CuratedData(vf.TaskData):
    gold: str | None = None
    verifier: str = "math"
    verifier_args: str = "{}"
    solution: str | None = None
    license: str | None = None
    origin: str = ""
    truegold: str = ""


class CuratedTask(vf.Task[CuratedData, vf.State, vf.TaskConfig]):
    @vf.reward(weight=1.0)
    async def correct(self, trace) -> dict:
        return await score_trace(self.data, trace)

    async def validate(self, runtime) -> bool | None:
        return await gold_passes(self.data)


class CuratedConfig(vf.TasksetConfig):
    split: str = "train"


class CuratedTaskset(vf.Taskset[CuratedTask, CuratedConfig]):
    def load(self) -> Iterable[CuratedTask]:
        path = Path(__file__).parent / f"{self.config.split}.jsonl"
        with path.open(encoding="utf-8") as lines:
            for line in lines:
                yield CuratedTask(CuratedData(**json.loads(line)), self.config.task)
'''


class TasksetRecord(ExportRecord):
    """A record of the package's data."""

    id: str
    prompt: str | list[Message]
    gold: str | None
    verifier: str
    verifier_args: str


def make_record(row: ExportRow, index: int) -> Mapping[str, Any]:
    """Return a row's record."""
    return {
        "id": row.row["id"],
        "prompt": row.messages if row.system else row.row["prompt"],
        "gold": row.row["gold"],
        "verifier": row.row["verifier"],
        "verifier_args": row.row["verifier_args"],
        "solution": row.row["solution"],
        "license": row.provenance.license,
        "origin": row.provenance.origin,
        "truegold": row.carried,
    }


def load(path: Path) -> int:
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


VERIFIERS = Format(
    "verifiers",
    "Prime Intellect's verifiers and prime-rl",
    "jsonl",
    make_record,
    TasksetRecord,
    "verifiers",
    load,
    companions={"pyproject.toml": PYPROJECT, "$NAME/__init__.py": INIT, "$NAME/taskset.py": TASKSET},
    data_dir="$NAME",
)
