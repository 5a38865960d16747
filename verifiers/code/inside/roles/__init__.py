"""What a forked process can be asked to do, by name."""

from __future__ import annotations

from collections.abc import Callable

from ..test_session import run_serve, run_tests
from .calls import run_calls
from .native import run_native
from .one_process import run_in_one_process
from .script import run_main, run_script

ROLES: dict[str, Callable[[bytes], None]] = {
    "main": run_main,
    "script": run_script,
    "native": run_native,
    "calls": run_calls,
    "serve": run_serve,
    "tests": run_tests,
    "one_process": run_in_one_process,
}
