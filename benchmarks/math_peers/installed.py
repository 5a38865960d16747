"""Single files out of installed packages, without running the packages' `__init__`, which pull in whole trainers."""

from __future__ import annotations

import importlib
import importlib.machinery
import sys
import types
from importlib.metadata import distribution
from pathlib import Path
from typing import Any


def bare_package(name: str, package: str) -> None:
    """Makes `package` (dotted) importable as an empty package over the files that distribution `name` installed."""
    folder = Path(str(distribution(name).locate_file(package.replace(".", "/"))))
    module = types.ModuleType(package)
    module.__path__ = [str(folder)]
    module.__spec__ = importlib.machinery.ModuleSpec(package, None, is_package=True)
    sys.modules[package] = module


def load(name: str, module: str, *bare: str) -> Any:
    """Imports `module` of distribution `name` with its packages named in `bare` left empty."""
    for package in bare:
        bare_package(name, package)
    return importlib.import_module(module)
