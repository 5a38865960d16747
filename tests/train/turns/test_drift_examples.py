"""Examples of drift are written once, also where a run goes on from a checkpoint."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from numbered_rows import make_row

from truegold.train.grpo import dialogues
from truegold.train.grpo.dialogues import DRIFT_FILE, DialogueGroups
from truegold.train.turns.dialogue import Drift
from truegold.train.turns.episodes import Episode


@pytest.fixture
def this_rank(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """Which rank this process is."""
    number = {"rank": 0}
    monkeypatch.setattr(dialogues, "rank", lambda: number["rank"])
    return number


def play(folder: Path, *steps: int, resumed_at: int | None = None) -> list[int]:
    """Have new groups of dialogues keep an example of each step, and return the steps of all examples then.

    resumed_at: the step, and the version of the weights, of the checkpoint that the run goes on from.
    """
    anything: Any = None
    template: Any = SimpleNamespace(tokenizer=SimpleNamespace(convert_ids_to_tokens=lambda ids: [str(i) for i in ids]))
    made = DialogueGroups(anything, anything, anything, anything, 8, template, anything, anything, folder)
    dialogue: Any = SimpleNamespace(drifts=[Drift(1, (2, 3), (4,))])
    if resumed_at is not None:
        made.restore({"feed": {"step": resumed_at}, "weights_version": resumed_at})
    for step in steps:
        made._keep_examples([Episode(make_row(1), 0, 0, dialogue)], step)
    path = folder / DRIFT_FILE
    return [json.loads(line)["step"] for line in path.read_text().splitlines()] if path.exists() else []


def test_steps_that_are_played_again_are_cut(tmp_path: Path, this_rank: dict[str, int]) -> None:
    # Evaluations have negative numbers, of the weights' version.
    assert play(tmp_path, -1, 0, 1, -3, 2, 3) == [-1, 0, 1, -3, 2, 3]
    assert play(tmp_path, -3, 2, 3, 4, resumed_at=2) == [-1, 0, 1, -3, 2, 3, 4]
    assert play(tmp_path, 3, resumed_at=3) == [-1, 0, 1, -3, 2, 3]
    # A kill has cut the last line short.
    with (tmp_path / DRIFT_FILE).open("a") as file:
        file.write('{"step": 3, "id')
    assert play(tmp_path, 4, resumed_at=4) == [-1, 0, 1, -3, 2, 3, 4]


def test_other_ranks_leave_the_file_to_the_first(tmp_path: Path, this_rank: dict[str, int]) -> None:
    play(tmp_path, 0, 1)
    this_rank["rank"] = 1
    assert play(tmp_path, 0, 1) == [0, 1]
