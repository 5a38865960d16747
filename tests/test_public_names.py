"""Every name of every `__all__` is there, and stands there once."""

from __future__ import annotations

import importlib

import pytest
from house import module_name, source_files

DOORS = [
    module_name(path).removesuffix(".__init__")
    for path in source_files()
    if path.name == "__init__.py" and "__all__" in path.read_text()
]


@pytest.mark.parametrize("package", DOORS)
def test_public_names_exist(package: str) -> None:
    module = importlib.import_module(package)
    assert len(set(module.__all__)) == len(module.__all__)
    for name in module.__all__:
        assert hasattr(module, name)
