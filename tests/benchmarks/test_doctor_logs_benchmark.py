"""The benchmark of the doctor of logs: one log of each kind, clean and faulty, in the files of five trainers."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from house import ROOT


@pytest.mark.long_run
def test_no_clean_log_is_accused_and_faults_are_named() -> None:
    command = [sys.executable, str(ROOT / "benchmarks" / "doctor_logs.py"), "--seeds", "1"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert re.search(r"^0 of \d+ are accused", done.stdout, re.MULTILINE)
    counts = re.search(r"^(\d+) of (\d+) are named", done.stdout, re.MULTILINE)
    assert counts is not None and int(counts[1]) >= int(counts[2]) - 1
