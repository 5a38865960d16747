"""What all tests share: quiet, offline settings, a tenth of the long tables, and a real tiny model, made once."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import pytest
from hypothesis import settings

# How long an example takes says how busy the machine is, so none has a deadline.
settings.register_profile("untimed", deadline=None, max_examples=100 if os.environ.get("TRUEGOLD_ALL") else 40)
settings.load_profile("untimed")

os.environ.setdefault("DO_NOT_TRACK", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

TEXTS = [
    {"prompt": f"What is {a}+{b}?", "completion": f"{a}+{b}={a + b} \\boxed{{{a + b}}}"}
    for a in range(9)
    for b in range(9)
]

SHARE = 10
"""One row in so many of a long table runs, unless TRUEGOLD_ALL is set (`make test-all`)."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the tests marked `long_run`, and nine tenths of those marked `long_table`, the same ones every time."""
    if os.environ.get("TRUEGOLD_ALL"):
        return
    deselected = {
        item
        for item in items
        if item.get_closest_marker("long_run")
        or (item.get_closest_marker("long_table") and not is_in_the_tenth(item.nodeid))
    }
    if deselected:
        config.hook.pytest_deselected(items=list(deselected))
        items[:] = [item for item in items if item not in deselected]


def is_in_the_tenth(nodeid: str) -> bool:
    """Return whether a row of a long table runs in the short run too, which a hash of its name decides."""
    return hashlib.sha256(nodeid.encode()).digest()[0] % SHARE == 0


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
