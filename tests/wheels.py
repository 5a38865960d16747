"""A wheel of truegold, built from a copy of the tree: a build leaves folders behind."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from house import FLOORS, ROOT


def build_wheel(folder: Path) -> Path:
    """Build the wheel in an empty folder, without a package index, and return its path."""
    source = folder / "source"
    source.mkdir()
    for name in (*FLOORS, "src", "docs", "pyproject.toml", "README.md", "LICENSE", "NOTICE"):
        path = ROOT / name
        if path.is_dir():
            shutil.copytree(path, source / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(path, source / name)
    options = ["--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", folder]
    command = [sys.executable, "-m", "pip", "wheel", *options, source]
    subprocess.run(command, check=True, capture_output=True, text=True)
    return next(folder.glob("*.whl"))
