"""The verifiers on every CPython that is found here beside this one, as GPU images ship them."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from house import ROOT
from tables import is_full_run
from wheels import build_wheel

VERSIONS = ("3.12", "3.13", "3.14")
TEST_PACKAGES = ("hypothesis", "numpy", "pandas", "pytest", "pytest-timeout", "pytest-xdist", "sortedcontainers")

pytestmark = [
    pytest.mark.wheel,
    pytest.mark.skipif(not is_full_run(), reason="it takes minutes: make test-all runs it"),
    pytest.mark.timeout(3600),
]


def interpreter_of(version: str) -> str | None:
    """Return the path of a CPython of this version; None where there is none that runs."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    candidates = [shutil.which(f"python{version}"), *map(str, sorted(pyenv.glob(f"{version}.*/bin/python")))]
    ask = "import sys; print('%d.%d' % sys.version_info[:2])"
    for path in filter(None, candidates):
        completed = subprocess.run([path, "-c", ask], capture_output=True, text=True, check=False)
        if completed.stdout.strip() == version:
            return path
    return None


@pytest.mark.parametrize("version", VERSIONS)
def test_the_verifiers_pass_their_tests(version: str, tmp_path: Path) -> None:
    python = interpreter_of(version)
    if python is None:
        pytest.skip(f"there is no CPython {version} here")
    wheel = build_wheel(tmp_path)
    subprocess.run([python, "-m", "venv", tmp_path / "venv"], check=True)
    programs = tmp_path / "venv" / "bin"
    install = [programs / "python", "-m", "pip", "install", "--quiet", f"{wheel}[curate]", *TEST_PACKAGES]
    installed = subprocess.run(install, capture_output=True, text=True, check=False)
    if installed.returncode != 0:
        pytest.skip(f"the packages cannot be installed: {installed.stderr[-300:]}")
    environment = {name: value for name, value in os.environ.items() if name not in ("TRUEGOLD_ALL", "PYTHONPATH")}
    environment["PATH"] = f"{programs}:{environment['PATH']}"
    command = [programs / "python", "-P", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "2", "tests/verifiers"]
    completed = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert completed.returncode == 0, completed.stdout[-5000:]
