"""Roles `main`, `script` and `to_end`: run a Python program as `python program.py` would, on real files, to its end.

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
from typing import Any, NamedTuple

from ..wire.lines import write_result_line

FILE_NAME = "solution.py"


def run_main(payload: bytes) -> None:
    """Run the source that is the payload, in UTF-8."""
    os._exit(_run(payload.decode("utf-8", "surrogatepass"), []).status)


def run_script(payload: bytes) -> None:
    """Run a program with arguments and files: the payload is JSON, `{"source", "arguments": [...], "files": {...}}`."""
    request = json.loads(payload)
    for name, text in request["files"].items():
        with open(name, "w", encoding="utf-8", errors="surrogatepass", newline="") as file:
            file.write(text)
    os._exit(_run(request["source"], request["arguments"]).status)


def run_to_end(payload: bytes) -> None:
    """Run a program and write a word to its results where it comes to its end; the payload is `{"source", "word"}`.

    While the program runs, the word is on the interpreter's evaluation stack only: no variable, constant or container
    that a program could walk to holds it. (A program that reads its raw memory can find it.)
    """
    request = json.loads(payload)
    del payload
    os._exit(_write_word(request.pop("word"), _run(request["source"], [])))


def _write_word(word: str, ending: _Ending) -> int:
    if ending.is_last_line:
        write_result_line(word.encode())
    return ending.status


class _Ending(NamedTuple):
    """How a program ended."""

    status: int
    """The exit status that Python would give."""
    is_last_line: bool
    """Whether it came to its last line, and did not leave before by itself or by an error."""


def _run(source: str, arguments: list[str]) -> _Ending:
    module = ModuleType("__main__")
    module.__file__ = FILE_NAME
    module.__builtins__ = builtins  # type: ignore[attr-defined]
    sys.modules["__main__"] = module
    sys.argv = [FILE_NAME, *arguments]
    linecache.cache[FILE_NAME] = (partial(str, source),)
    ending = _execute(source, module.__dict__)
    del module  # The program's names live as long as sys.modules knows it, as at the real end.
    return ending._replace(status=_finish(ending.status))


def _execute(source: str, namespace: dict[str, Any]) -> _Ending:
    """Run source in a namespace and return how it ended."""
    try:
        exec(compile(source, FILE_NAME, "exec", dont_inherit=True), namespace)
    except SystemExit as leaving:
        return _Ending(_exit_status(leaving.code), False)
    except BaseException as error:
        _print_error(error)
        return _Ending(1, False)
    return _Ending(0, True)


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
    # A whole collection touches pages all over the interpreter, and most programs have nothing that is so old.
    gc.collect(2 if gc.get_objects(generation=2) else 1)
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
