"""Roles `main` and `script`: run a Python program as `python program.py` would, on real files, to its real end.

The program runs at module level, with `__name__ == "__main__"`. `exit()`, `sys.exit`, threads, `atexit` and files that
are flushed only when they are dropped all work. The interpreter is not taken down afterwards: the process just ends.
"""

from __future__ import annotations

import atexit
import builtins
import gc
import json
import linecache
import os
import sys
import threading
import traceback
from functools import partial
from types import ModuleType
from typing import Any

FILE_NAME = "solution.py"


def run_main(payload: bytes) -> None:
    """Run the source that is the payload, in UTF-8."""
    _run(payload.decode("utf-8", "surrogatepass"), [])


def run_script(payload: bytes) -> None:
    """Run a program with arguments and files: the payload is JSON, `{"source", "arguments": [...], "files": {...}}`."""
    request = json.loads(payload)
    for name, text in request["files"].items():
        with open(name, "w", encoding="utf-8", errors="surrogatepass", newline="") as file:
            file.write(text)
    _run(request["source"], request["arguments"])


def _run(source: str, arguments: list[str]) -> None:
    module = ModuleType("__main__")
    module.__file__ = FILE_NAME
    module.__builtins__ = builtins  # type: ignore[attr-defined]
    sys.modules["__main__"] = module
    sys.argv = [FILE_NAME, *arguments]
    linecache.cache[FILE_NAME] = (partial(str, source),)
    status = _execute(source, module.__dict__)
    del module  # The program's names live as long as sys.modules knows it, as at the real end.
    os._exit(_finish(status))


def _execute(source: str, namespace: dict[str, Any]) -> int:
    """Run source in a namespace and return the exit status that Python would give."""
    try:
        exec(compile(source, FILE_NAME, "exec", dont_inherit=True), namespace)
    except SystemExit as leaving:
        return _exit_status(leaving.code)
    except BaseException as error:
        _print_error(error)
        return 1
    return 0


def _finish(status: int) -> int:
    """Do what Python does at its end: wait for threads, run exit functions, drop the program, flush files."""
    try:
        if threading.active_count() > 1:
            threading._shutdown()  # type: ignore[attr-defined]
        if atexit._ncallbacks():
            atexit._run_exitfuncs()
    except BaseException as error:
        _print_error(error)
    is_flushed = _flush()
    # A file that a program put in the place of stdout is flushed when it is dropped, and so are those it never closed.
    # Their methods may need the program's names, which go in the same collection and not before.
    sys.stdin, sys.stdout, sys.stderr = sys.__stdin__, sys.__stdout__, sys.__stderr__
    sys.modules.pop("__main__", None)
    gc.collect()
    return status if _flush() and is_flushed else status or 120


def _exit_status(code: object) -> int:
    if code is None:
        return 0
    if isinstance(code, int):
        return code & 0xFF
    print(code, file=sys.stderr)
    return 1


def _print_error(error: BaseException) -> None:
    try:
        below_execute = error.__traceback__.tb_next if error.__traceback__ else None
        traceback.print_exception(type(error), error, below_execute)
    except BaseException:
        os.write(2, b"the program failed, and showing how failed as well\n")


def _flush() -> bool:
    is_flushed = True
    for stream in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__):
        try:
            if stream is not None and not stream.closed:
                stream.flush()
        except BaseException:
            is_flushed = False
    return is_flushed
