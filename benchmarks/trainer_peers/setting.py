"""What is trained: one setting, the same for all trainers."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

SEED = 0


@dataclass(frozen=True)
class Setting:
    """One setting of the comparison."""

    prompts: int
    """Prompts of one step."""
    group: int
    """Completions of one prompt."""
    tokens: int
    """Tokens of every completion."""
    dtype: Literal["float32", "bfloat16"]
    steps: int
    """Steps, warm-up steps included."""
    lr: float = 1e-6
    model: Literal["SmolLM2", "tiny"] = "SmolLM2"

    @property
    def completions(self) -> int:
        """Completions of one step."""
        return self.prompts * self.group

    def save(self, folder: Path) -> None:
        """Write setting.json."""
        (folder / "setting.json").write_text(json.dumps(asdict(self)))

    @classmethod
    def load(cls, folder: Path) -> Setting:
        """Read setting.json."""
        return cls(**json.loads((folder / "setting.json").read_text()))


def load_problems(folder: Path) -> list[str]:
    """Return the problems in the order in which they are trained on."""
    return [json.loads(line) for line in (folder / "problems.jsonl").read_text().splitlines()]
