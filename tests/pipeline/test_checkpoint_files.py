"""A folder that is not a whole checkpoint is refused before any stage runs, with the file that it lacks."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from truegold.pipeline.engines.checkpoint_files import check_checkpoint
from truegold.verifiers import SetupError


@pytest.fixture
def checkpoint(tiny_model: Path, tmp_path: Path) -> Path:
    shutil.copytree(tiny_model, tmp_path / "m")
    return tmp_path / "m"


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-100])


def list_shards(folder: Path) -> None:
    weights = {
        "a": "model-00001-of-00003.safetensors",
        "b": "model-00002-of-00003.safetensors",
        "c": "model.safetensors",
    }
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weights}))


def leave_only_an_adapter(folder: Path) -> None:
    (folder / "config.json").rename(folder / "adapter_config.json")


@pytest.mark.parametrize(
    ("damage", "line"),
    [
        (lambda folder: (folder / "config.json").unlink(), "m has no config.json. Give the folder of a whole"),
        (leave_only_an_adapter, "m is a LoRA adapter: it has no config.json. Merge the adapter"),
        (lambda folder: (folder / "config.json").write_text("{"), "config.json is not JSON"),
        (lambda folder: (folder / "config.json").write_text("[]"), "config.json is not a JSON object"),
        (lambda folder: (folder / "config.json").write_text("{}"), "its config.json names no model_type"),
        (lambda folder: (folder / "tokenizer.json").unlink(), "m has no tokenizer (tokenizer.json, "),
        (lambda folder: (folder / "model.safetensors").unlink(), "m has no weights (model*.safetensors, "),
        (lambda folder: cut(folder / "model.safetensors"), "model.safetensors is cut off or damaged"),
        (lambda folder: (folder / "model.safetensors").write_bytes(b""), "model.safetensors is empty"),
        (
            list_shards,
            "lacks model-00001-of-00003.safetensors and 1 more of 3 files of weights in model.safetensors.index",
        ),
        (
            lambda folder: (folder / "model.safetensors").write_text("version https://git-lfs.github.com/spec/v1\noid"),
            "model.safetensors is a pointer of git-lfs, not the file. Download it: git lfs pull",
        ),
    ],
)
def test_what_a_checkpoint_lacks_is_named(damage: Callable[[Path], object], line: str, checkpoint: Path) -> None:
    check_checkpoint(checkpoint, "model.path: m")
    damage(checkpoint)
    with pytest.raises(SetupError) as caught:
        check_checkpoint(checkpoint, "model.path: m")
    assert line in str(caught.value)


def test_a_served_model_needs_no_weights_here(checkpoint: Path) -> None:
    (checkpoint / "model.safetensors").unlink()
    check_checkpoint(checkpoint, "model.path: m", weights=False)
