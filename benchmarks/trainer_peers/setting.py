"""What is trained: one setting, the same for all trainers."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

SEED = 0


@dataclass(frozen=True)
class Setting:
    """prompts, group: of one step. tokens: of every completion. steps: warm-up steps included."""

    prompts: int
    group: int
    tokens: int
    dtype: Literal["float32", "bfloat16"]
    steps: int
    lr: float = 1e-6

    @property
    def completions(self) -> int:
        """Of one step."""
        return self.prompts * self.group

    def save(self, folder: Path) -> None:
        (folder / "setting.json").write_text(json.dumps(asdict(self)))

    @classmethod
    def load(cls, folder: Path) -> Setting:
        return cls(**json.loads((folder / "setting.json").read_text()))


def load_problems(folder: Path) -> list[str]:
    """The problems in the order in which they are trained on."""
    return [json.loads(line) for line in (folder / "problems.jsonl").read_text().splitlines()]
