"""Fixtures for all tests: quiet, offline settings, and the real tiny model, made once."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

os.environ.setdefault("DO_NOT_TRACK", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

TEXTS = [
    {"prompt": f"What is {a}+{b}?", "completion": f"{a}+{b}={a + b} \\boxed{{{a + b}}}"}
    for a in range(9)
    for b in range(9)
]


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an untrained tiny checkpoint."""
    from truegold.pipeline.running.progress import NullProgress
    from truegold.train.config.models import TinyModel
    from truegold.train.model.checkpoints import build_tiny

    folder = tmp_path_factory.mktemp("tiny")
    texts = folder / "texts.jsonl"
    texts.write_text("".join(json.dumps(entry) + "\n" for entry in TEXTS))
    config = TinyModel(vocab_size=320, hidden_size=64, intermediate_size=96, heads=2)
    build_tiny({"texts": texts}, config, folder, NullProgress())
    return folder / "checkpoint"
