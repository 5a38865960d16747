"""Environments of their own for packages whose pins contradict truegold's, with what is installed here behind them.

They are made once in the folder `TRUEGOLD_ENVIRONMENTS`, else for the tests of one run. Where the package index cannot
be reached the test is skipped, and says so.
"""

from __future__ import annotations

import json
import os
import subprocess
import sysconfig
import tempfile
import venv
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from house import ROOT

REQUIREMENTS = {
    "verl": (
        *("--no-deps", "verl>=0.9", "omegaconf", "tensordict", "hydra-core", "codetiming", "orjson", "pyvers"),
        # What hydra and omegaconf are pinned to; there is a later one behind it.
        "antlr4-python3-runtime==4.9.3",
    ),
    "openrlhf": ("--no-deps", "openrlhf>=0.11", "pylatexenc", "loguru"),
    "inspect": ("inspect-ai>=0.3.285",),
    "verifiers": ("verifiers>=0.4",),
    "rubric": ("verifiers<0.4",),
    "skyrl": ("skyrl-gym>=0.4",),
}
"""What is installed into each; their further requirements are taken from this environment where that is enough."""


@cache
def _folder() -> Path:
    named = os.environ.get("TRUEGOLD_ENVIRONMENTS")
    return Path(named) if named else Path(tempfile.mkdtemp(prefix="truegold-environments-"))


@cache
def python_with(name: str) -> Path:
    """Return the interpreter of the environment, which is made where it is not there yet."""
    folder = _folder() / name
    python = folder / "bin" / "python"
    ready = folder / ".ready"
    if not ready.exists():
        venv.create(folder, with_pip=True, symlinks=True)
        site = next(folder.glob("lib/python*/site-packages"))
        command = [str(python), "-m", "pip", "install", "--quiet", *REQUIREMENTS[name]]
        # What is installed here comes behind its packages; for the installer too, so that nothing large comes twice.
        (site / "zz_truegold.pth").write_text(f"{sysconfig.get_paths()['purelib']}\n")
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=550)
        if done.returncode:
            pytest.skip(f"{name} cannot be installed: {done.stderr.strip().splitlines()[-1:]}")
        ready.touch()
    return python


def run_in(name: str, script: str, *arguments: str, cwd: Path) -> Any:
    """Run a script in the environment, and return what its last line says as JSON."""
    link = cwd / "path" / "truegold"
    if not link.exists():
        link.parent.mkdir()
        link.symlink_to(ROOT)
    environment = {**os.environ, "PYTHONPATH": str(link.parent)}
    command = [str(python_with(name)), "-P", "-c", script, *arguments]
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False, timeout=550)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.strip().splitlines()[-1])
