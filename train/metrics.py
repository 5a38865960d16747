"""Training metrics: one JSON line a step and TensorBoard scalars, both cut back to the checkpoint on resume."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType


class MetricsLog:
    """Writes `metrics.jsonl` and `tensorboard/` in `folder`. `resume_at`: drop lines of this step and later ones."""

    def __init__(self, folder: Path, resume_at: int) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self._path = folder / "metrics.jsonl"
        kept = [line for line in read_metrics(self._path) if line["step"] < resume_at]
        self._path.write_text("".join(json.dumps(line) + "\n" for line in kept))
        self._file = self._path.open("a")
        board = folder / "tensorboard"
        if resume_at == 0:
            shutil.rmtree(board, ignore_errors=True)
        self._board = SummaryWriter(str(board), purge_step=resume_at)

    def write(self, step: int, metrics: Mapping[str, float | None]) -> None:
        """One step's scalars; None where a value does not exist for this step."""
        self._file.write(json.dumps({"step": step, **metrics}) + "\n")
        self._file.flush()
        for name, value in metrics.items():
            if value is not None:
                self._board.add_scalar(name, value, step)

    def __enter__(self) -> MetricsLog:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._file.close()
        self._board.close()


def read_metrics(path: Path) -> list[dict[str, float]]:
    """All whole lines of a metrics file; a line cut short by a kill is left out."""
    if not path.exists():
        return []
    lines = []
    for line in path.read_text().splitlines():
        try:
            lines.append(json.loads(line))
        except json.JSONDecodeError:
            break
    return lines
