"""The command line inside of the test's own process, which saves the seconds that importing everything again takes."""

from __future__ import annotations

import contextlib
import io
import subprocess
import sys
import traceback
from pathlib import Path
from unittest.mock import patch

from truegold.flows.cli import main


def run_command(*arguments: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Return what the command ended with, and what it printed, as a process of its own would."""
    argv = ["truegold", *map(str, arguments)]
    printed, errors, code = io.StringIO(), io.StringIO(), 0
    with (
        contextlib.chdir(cwd),
        patch.object(sys, "argv", argv),
        contextlib.redirect_stdout(printed),
        contextlib.redirect_stderr(errors),
    ):
        try:
            main()
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
        except Exception:
            traceback.print_exc()
            code = 1
    return subprocess.CompletedProcess(argv, code, printed.getvalue(), errors.getvalue())
