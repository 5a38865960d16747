"""Weights on their way to samplers: written once, removed by the last reader, or by the next training after a kill."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch

from truegold.train.rollout import weight_transfer
from truegold.train.rollout.weight_transfer import claim_folder, read_weights, release_weights, write_weights


def test_every_reader_finds_all_tensors_and_the_last_removes_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(weight_transfer, "SHARD_BYTES", 10)
    tensors = {name: torch.tensor([float(number), 0.5]) for number, name in enumerate("abc")}
    folder = tmp_path / "version-1"
    write_weights(iter(tensors.items()), folder, ["0", "1"])
    assert len(list(folder.glob("*.safetensors"))) == 2
    for reader in "01":
        loaded = dict(read_weights(folder))
        assert loaded.keys() == tensors.keys()
        assert all(torch.equal(loaded[name], tensors[name]) for name in tensors)
        release_weights(folder, reader)
    assert not folder.exists()


def test_what_a_killed_training_has_left_goes_and_what_is_in_use_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(weight_transfer, "SHARED_MEMORY", tmp_path)
    first, lock = claim_folder()
    (first / "model.safetensors").touch()
    monkeypatch.setattr(weight_transfer, "CLAIM_S", -1.0)
    second, other_lock = claim_folder()
    assert first.exists()
    # The kernel gives a process's locks back with its end.
    os.close(lock)
    third, _ = claim_folder()
    assert sorted(tmp_path.iterdir()) == sorted([second, third])
    os.close(other_lock)
