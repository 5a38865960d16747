"""`truegold demo`: curation needs the light packages alone, and the whole demo says what it needs."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from truegold.flows.cli.run_commands import DEMO, HEAVY

WITHOUT_HEAVY = f"""
import importlib.util, sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {(*HEAVY, "datasets", "ray", "accelerate", "peft")!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

real = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name in {HEAVY!r} else real(name, *rest)
sys.meta_path.insert(0, Absent())
from truegold.flows.cli.app import main
main()
"""


def demo(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-P", "-c", WITHOUT_HEAVY, "demo", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)


def test_the_quick_demo_curates_without_torch_in_under_a_minute(tmp_path: Path) -> None:
    began = time.monotonic()
    done = demo(tmp_path, "--quick")
    assert done.returncode == 0, done.stderr
    assert time.monotonic() - began < 60
    page = (tmp_path / "runs" / "demo-quick" / "report" / "index.html").read_text()
    assert "exact_duplicate" in page
    again = demo(tmp_path, "--quick")
    assert "nothing to do" in again.stderr


def test_the_whole_demo_names_what_is_missing_before_it_starts(tmp_path: Path) -> None:
    done = demo(tmp_path)
    assert done.returncode == 4
    assert "needs torch, vllm, deepspeed, transformers" in done.stderr
    assert "truegold demo --quick" in done.stderr
    assert not (tmp_path / "runs").exists()


def test_the_demo_is_that_of_make_demo() -> None:
    assert (Path(__file__).parents[2] / "examples" / "demo.yaml").read_bytes() == DEMO.read_bytes()
