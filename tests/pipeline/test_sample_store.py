"""The store of samples: lines that become parts, found by their index, and none lost to a kill in between."""

from __future__ import annotations

from pathlib import Path

import pytest

from truegold.pipeline.engines.base import Completion
from truegold.pipeline.profile import sample_parts, sample_store
from truegold.pipeline.profile.sample_parts import SampleParts
from truegold.pipeline.profile.sample_store import SampleStore, prompt_key
from truegold.pipeline.running.record_log import RecordLog
from truegold.verifiers import SetupError

PART = 7
EACH = 3


@pytest.fixture(autouse=True)
def _small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sample_store, "PART_SAMPLES", PART)
    monkeypatch.setattr(sample_parts, "GROUP_ROWS", 3)


def key(number: int) -> tuple[str, int]:
    return prompt_key([number // EACH]), number % EACH


def completion(number: int) -> Completion:
    ids = tuple(range(number % 5))
    logprobs = tuple(-0.5 * token for token in ids) if number % 2 else ()
    return Completion(ids, logprobs, "length" if number % 4 else "stop", (), None if number % 3 else number)


def opened(folder: Path) -> SampleStore:
    return SampleStore(folder, {"model": "m"})


def fill(folder: Path, numbers: range) -> None:
    store = opened(folder)
    for number in numbers:
        store.add(*key(number), completion(number))
    store.close()


def check(folder: Path, count: int, *, missing: range = range(0)) -> None:
    """Fail unless the store has the first `count` samples as they were added."""
    store = opened(folder)
    for number in range(count):
        assert (key(number) in store) == (number not in missing)
        if number not in missing:
            assert store.read(*key(number)) == completion(number)
    assert key(count) not in store
    store.close()


def files(folder: Path, pattern: str) -> list[Path]:
    return sorted(folder.glob(f"*/{pattern}"))


@pytest.mark.parametrize("count", [0, 1, PART - 1, PART, 10 * PART + 2])
def test_what_was_added_is_read_again_by_this_process_and_the_next(tmp_path: Path, count: int) -> None:
    store = opened(tmp_path)
    for number in range(count):
        store.add(*key(number), completion(number))
        assert store.read(*key(number // 2)) == completion(number // 2)
    store.close()
    assert len(files(tmp_path, "part-*.parquet")) == count // PART
    # Of 2 ^ n parts of one size there are n + 1 indexes at most.
    assert len(files(tmp_path, "index-*.bin")) <= 4
    check(tmp_path, count)


def test_a_sample_that_is_kept_is_not_added_again(tmp_path: Path) -> None:
    fill(tmp_path, range(PART + 1))
    store = opened(tmp_path)
    for number in (0, PART):
        with pytest.raises(ValueError, match="is stored already"):
            store.add(*key(number), completion(number))


def test_a_store_of_lines_alone_becomes_one_of_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(sample_store, "PART_SAMPLES", 10**6)
        fill(tmp_path, range(20))
        fill(tmp_path, range(20, 40))
    assert len(files(tmp_path, "*.jsonl")) == 2
    check(tmp_path, 40)
    assert len(files(tmp_path, "part-*.parquet")) == 6
    assert not files(tmp_path, "*.jsonl")
    check(tmp_path, 40)


class Killed(Exception):
    """Stands for a kill: nothing after it is run."""


@pytest.mark.parametrize(
    ("owner", "method"),
    [(SampleParts, "_make_index"), (SampleParts, "_merge"), (SampleStore, "_make_part"), (RecordLog, "clear")],
)
def test_a_kill_while_a_part_is_made_loses_no_sample(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, owner: type, method: str
) -> None:
    def killed(*_: object) -> None:
        raise Killed

    store = opened(tmp_path)
    numbers = iter(range(100))
    with monkeypatch.context() as patch:
        patch.setattr(owner, method, killed)
        with pytest.raises(Killed):
            for number in numbers:
                store.add(*key(number), completion(number))
    store.close()
    added = next(numbers)
    assert added % PART == 0
    check(tmp_path, added)


@pytest.mark.parametrize("left", [0, 1, 2])
def test_indexes_that_are_gone_are_made_again(tmp_path: Path, left: int) -> None:
    fill(tmp_path, range(6 * PART + 2))
    indexes = files(tmp_path, "index-*.bin")
    for index in indexes[left:]:
        index.unlink()
    check(tmp_path, 6 * PART + 2)


@pytest.mark.parametrize("gone", [0, 3, 5])
def test_samples_of_a_part_that_was_deleted_can_be_added_again(tmp_path: Path, gone: int) -> None:
    fill(tmp_path, range(6 * PART))
    files(tmp_path, "part-*.parquet")[gone].unlink()
    missing = range(gone * PART, (gone + 1) * PART)
    check(tmp_path, 6 * PART, missing=missing)
    check(tmp_path, 6 * PART, missing=missing)
    fill(tmp_path, missing)
    check(tmp_path, 6 * PART)


def test_a_part_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    fill(tmp_path, range(PART))
    (part,) = files(tmp_path, "part-*.parquet")
    part.write_bytes(part.read_bytes()[:-9])
    with pytest.raises(SetupError, match=r"part-000000.parquet cannot be read") as caught:
        opened(tmp_path).read(*key(0))
    assert "Delete it" in str(caught.value.hint)
