"""How many files of the product a step of the trainer enters: a reader's trip through it."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import pytest
from tiny_trainer import make_trainer
from trips import files_entered

pytestmark = [pytest.mark.real, pytest.mark.filterwarnings("default")]


def test_a_step_enters_few_files(tiny_model: Path, tmp_path: Path) -> None:
    trainer = make_trainer(tiny_model, tmp_path)
    steps = count()
    trainer.step(next(steps))
    entered = files_entered(lambda: trainer.step(next(steps)))
    trainer.groups.close()
    assert len(entered) <= 31, "\n".join(entered)
