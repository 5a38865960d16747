"""Property tests: the same examples every time in the short run, and a line that keeps what fails in the long one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FAILING = """
import property_tests
from hypothesis import given, strategies as st

property_tests.load_profile()
drawn = []

@given(records=st.lists(st.integers()), name=st.text())
def test_small(tmp_path_factory, records, name):
    drawn.append((records, name))
    assert sum(records) < 100

@given(data=st.data())
def test_within(data):
    assert data.draw(st.integers()) < 5

def test_what_was_drawn():
    print("DRAWN", hash(tuple(map(repr, drawn))))
"""


def run_short(folder: Path, **variables: str) -> str:
    (folder / "conftest.py").write_text((ROOT / "tests" / "conftest.py").read_text())
    (folder / "test_failing.py").write_text(FAILING)
    environment = {"PYTHONPATH": str(ROOT / "tests"), "PATH": "/usr/bin:/bin", "PYTHONHASHSEED": "0", **variables}
    command = [sys.executable, "-m", "pytest", "-q", "-s", "-p", "no:cacheprovider", "--rootdir", str(folder), "."]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False).stdout


@pytest.mark.parametrize("variables", [{}, {"TRUEGOLD_ALL": "1"}])
def test_a_failure_prints_the_line_that_keeps_its_example(tmp_path: Path, variables: dict[str, str]) -> None:
    printed = run_short(tmp_path, **variables)
    assert "2 failed, 1 passed" in printed
    assert "@example(records=[100], name='')" in printed
    assert "this example cannot be written as @example" in printed
    assert ("@reproduce_failure" in printed.replace("take the @reproduce_failure", "")) == bool(variables)


def test_the_short_run_draws_the_same_examples_every_time(tmp_path: Path) -> None:
    drawn = [[line for line in run_short(tmp_path).splitlines() if "DRAWN" in line] for _ in range(2)]
    assert drawn[0] == drawn[1] and len(drawn[0]) == 1
