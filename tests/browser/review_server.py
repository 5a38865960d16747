"""The command `truegold review` in a process of its own, for the tests of its page."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

TOKEN = "a-token-of-the-tests"


class Server:
    """The command in a process, which can be killed and started again at the same port."""

    def __init__(self, run_dir: Path, decisions: Path, *options: str) -> None:
        self._command = [sys.executable, "-P", "-m", "truegold.flows.cli", "review", str(run_dir), "--reviewer", "ann"]
        self._command += ["--decisions", str(decisions), *options]
        self.decisions = decisions
        self.port = "0"
        self.start()

    def start(self) -> None:
        """Start it, and wait until it says its address."""
        environment = {**os.environ, "TRUEGOLD_REVIEW_TOKEN": TOKEN, "PYTHONUNBUFFERED": "1", "COLUMNS": "300"}
        self._process = subprocess.Popen(
            [*self._command, "--port", self.port], env=environment, stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if match := re.search(r"http://[^/]+:(\d+)/", line):
                self.port = match[1]
                return
        raise AssertionError("the server did not start")

    def kill(self) -> None:
        """Kill it at once."""
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()

    def address(self, query: str = "") -> str:
        """Return the address of the page of rows."""
        return f"http://127.0.0.1:{self.port}/?token={TOKEN}#rows{query}"

    def lines(self) -> list[dict[str, Any]]:
        """Return the decisions on the disk."""
        return [json.loads(line) for path in self.decisions.glob("*.jsonl") for line in path.read_text().splitlines()]
