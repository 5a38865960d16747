"""The files of decisions: what a crash, two writers and a merge leave of them, and what an undo takes back."""

from __future__ import annotations

import json
import multiprocessing
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from truegold.pipeline.review import decisions as module
from truegold.pipeline.review.decisions import Decision, append_decision, load_decisions

NOON = "2026-02-03T12:00:00Z"


def decide(folder: Path, row: str, word: str, minute: int = 0, reviewer: str = "ada", **more: object) -> Path:
    """Append a decision that was made so many minutes past noon."""
    moment = f"2026-02-03T12:{minute:02}:00Z"
    line = {"id": row, "decision": word, "reviewer": reviewer, "at": moment, **more}
    return append_decision(folder, Decision.model_validate(line))


def words(folder: Path, row: str = "a") -> list[str]:
    """Return what stands about a row."""
    return [str(decision.decision) for decision in load_decisions(folder).get(row, [])]


def test_an_undo_takes_back_what_its_reviewer_decided_last_about_that_row(tmp_path):
    decide(tmp_path, "a", "keep", 1)
    decide(tmp_path, "a", "drop", 2)
    decide(tmp_path, "b", "drop", 3)
    decide(tmp_path, "a", "unsure", 3, reviewer="bob")
    decide(tmp_path, "a", "undo", 4)
    assert words(tmp_path) == ["keep", "unsure"]
    decide(tmp_path, "a", "undo", 5)
    assert (words(tmp_path), words(tmp_path, "b")) == (["unsure"], ["drop"])
    decide(tmp_path, "a", "undo", 6)
    assert words(tmp_path) == ["unsure"]
    assert len((tmp_path / "ada.jsonl").read_text().splitlines()) == 6


def test_lines_put_together_by_a_merge_say_the_same(tmp_path):
    path = decide(tmp_path, "a", "keep", 1)
    decide(tmp_path, "a", "drop", 2)
    decide(tmp_path, "a", "undo", 3)
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join([*lines[1:], *lines]))
    assert words(tmp_path) == ["keep"]


def test_a_line_has_nothing_that_was_not_said(tmp_path):
    path = decide(tmp_path, "a", "fix", gold="16", note="12+4", seen="51b7", drawn="random:7", blind=True)
    decide(tmp_path, "b", "keep")
    first, second = map(json.loads, path.read_text().splitlines())
    assert first == {
        **{"id": "a", "seen": "51b7", "decision": "fix", "gold": "16", "note": "12+4", "drawn": "random:7"},
        **{"blind": True, "reviewer": "ada", "at": NOON},
    }
    assert second == {"id": "b", "decision": "keep", "reviewer": "ada", "at": NOON}


@given(cut=st.integers(1, 90))
def test_a_line_that_a_crash_cut_short_costs_nothing_else(cut, tmp_path_factory):
    folder = tmp_path_factory.mktemp("cut")
    decide(folder, "a", "keep")
    path = decide(folder, "b", "drop")
    whole = path.read_bytes()
    last = whole.splitlines(keepends=True)[-1]
    path.write_bytes(whole[: len(whole) - min(cut, len(last))])
    survives = cut == 1  # Only the end of the line is missing.
    assert (words(folder), words(folder, "b")) == (["keep"], ["drop"] if survives else [])
    decide(folder, "c", "keep")
    assert (words(folder), words(folder, "b"), words(folder, "c")) == (
        ["keep"],
        ["drop"] if survives else [],
        ["keep"],
    )
    for line in path.read_text().splitlines():
        json.loads(line)


def test_a_file_of_nothing_but_a_cut_line_takes_the_next_one(tmp_path):
    (tmp_path / "ada.jsonl").write_bytes(b'{"id": "a", "deci' + b"x" * 200_000)
    assert words(tmp_path) == []
    decide(tmp_path, "b", "keep")
    assert words(tmp_path, "b") == ["keep"]


def test_a_line_that_does_not_fit_on_the_disk_leaves_no_part_of_itself(tmp_path, monkeypatch):
    path = decide(tmp_path, "a", "keep")
    before = path.read_bytes()
    real_write = os.write

    def write_some(descriptor: int, line: bytes) -> int:
        if line.startswith(b'{"id"'):
            return real_write(descriptor, line[:9])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(module.os, "write", write_some)
    with pytest.raises(OSError, match="No space left"):
        decide(tmp_path, "b", "drop")
    assert path.read_bytes() == before


def test_the_line_is_on_the_disk_before_the_call_returns(tmp_path, monkeypatch):
    synced: list[str] = []
    real_sync = os.fsync

    def note_sync(descriptor: int) -> None:
        path = Path(f"/proc/self/fd/{descriptor}").readlink()
        synced.append(path.name if path.is_dir() else path.read_text())
        real_sync(descriptor)

    monkeypatch.setattr(module.os, "fsync", note_sync)
    decide(tmp_path / "decisions", "a", "keep")
    assert '"decision":"keep"' in synced[0]
    assert synced[1:] == ["decisions", tmp_path.name], "a new file outlives a loss of power only with its folder"


def _write_many(folder: Path, writer: int) -> None:
    for index in range(40):
        decide(folder, f"{writer}-{index}", "keep", note="x" * 5_000)


def test_two_processes_that_write_at_once_corrupt_nothing(tmp_path):
    context = multiprocessing.get_context("fork")
    writers = [context.Process(target=_write_many, args=(tmp_path, writer)) for writer in range(3)]
    for process in writers:
        process.start()
    for process in writers:
        process.join()
    expected = {f"{writer}-{index}" for writer in range(3) for index in range(40)}
    assert load_decisions(tmp_path).keys() == expected


@pytest.mark.parametrize(
    "change",
    [{"reviewer": "x" * 61}, {"reviewer": "a\x1b[31m"}, {"reviewer": " "}, {"drawn": "lucky"}, {"gold": "x" * 20_001}],
)
def test_what_is_no_decision_is_refused_before_it_is_written(change, tmp_path):
    line = {"id": "a", "decision": "fix", "gold": "1", "reviewer": "ada", "at": NOON, **change}
    with pytest.raises(ValueError, match="validation error"):
        Decision.model_validate(line)


def test_the_longest_name_of_a_reviewer_is_a_file(tmp_path):
    decide(tmp_path, "a", "keep", reviewer="𠀀" * 60)
    assert words(tmp_path) == ["keep"]
