"""The order of the tests on the real stack."""

from __future__ import annotations

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests of vLLM in this process last: closing it ends the process's group of ranks, on which DeepSpeed relies."""
    items.sort(key=lambda item: item.path.name == "test_vllm_engine.py")
