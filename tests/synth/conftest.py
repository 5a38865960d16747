"""The world of the synthesis tests."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # `synth_world`, which several files here share

from synth_world import World, make_world


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Hard problems that never pass and useful ones that do, profiled and selected."""
    return make_world(tmp_path)
