"""What a forked process can be asked to do with its payload, by name.

main, script      run a program as `python program.py` would
to_end            the same, and say a word where it comes to its end
native            run a compiler or a program of another language
calls             make calls of a program's functions and hand back what each returned
serve, tests      the two partners of a test session (`test_session`): the solution and its tests
one_process       run a program and its tests in one process
"""

from __future__ import annotations

from collections.abc import Callable

from ..test_session import run_serve, run_tests
from .calls import run_calls
from .native import run_native
from .one_process import run_in_one_process
from .script import run_main, run_script, run_to_end

ROLES: dict[str, Callable[[bytes], None]] = {
    "main": run_main,
    "script": run_script,
    "to_end": run_to_end,
    "native": run_native,
    "calls": run_calls,
    "serve": run_serve,
    "tests": run_tests,
    "one_process": run_in_one_process,
}
