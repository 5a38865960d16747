"""Does the work of a forked process. A job names the role that handles its payload:

main, script      run a Python program, as the command `python program.py` does
native            run a compiler or a program of another language
calls             call functions of a program and return their results
serve, tests      the two processes of a test session (`test_session`): the solution and its tests
one_process       run a program and its tests in one process (`test_code`)

`main` and `script` run the program on real files, with `__name__ == "__main__"`. `exit()`, threads and `atexit` work,
and files are flushed when they are dropped. The interpreter is not shut down afterwards.

`calls` loads the program, makes calls and writes a line for each result:

    {"prelude": "", "program": "def add(a, b): return a + b", "codecs": {},
     "functions": ["add"], "calls": [[0, [1, 2], {}]]}

    {"loaded": true}          or {"load_error": [type, message, line]} and nothing else
    {"r": 3}                  or {"raised": [type, message, line]}, one for each call, in order

Expected results never come here. A line is written as soon as its call is over, so that a later crash or hang loses no
result. A missing function gives a line {"missing": name}, and a NameError for each call of it. With `"in_place": 0` the
result is the first argument after the call. Coroutines are run to their end, and iterators are read to their end.
`codecs` names classes whose objects may be sent, with their attributes: {"ListNode": ["val", "next"]}.

`native` writes files into the working folder, runs one command there, and returns the files that the command made. Both
the payload and the result are a line of JSON with the names and sizes of files, followed by the contents of the files:

    {"files": [["main.cpp", 812]], "argv": ["/usr/bin/g++", "-o", "main", "main.cpp"], "collect": ["main"]}\\n<contents>

The command is a child of this process. As the first process of the pid namespace, this process also reaps the processes
that the command leaves behind.
"""

from __future__ import annotations

import atexit
import builtins
import fcntl
import gc
import json
import linecache
import os
import signal
import stat
import sys
import threading
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from importlib import import_module
from types import CoroutineType, ModuleType

from .confine import kernel
from .preload import ANY_PACKAGE, PLAIN, PYTEST
from .program import NotDefined, class_finder, describe_error, hide_frames, load, look_up, run_coroutine
from .wire.decoding import Decoder
from .wire.encoding import (
    MAX_ENCODED,
    PARTNER,
    RESULT,
    encode,
    from_json,
    to_json,
    write_all,
    write_result,
    write_result_line,
)
from .wire.value_types import KNOWN_CODECS, ResultTooLarge, Value

FILE_NAME = "solution.py"


def run_main(payload: bytes) -> None:
    """Run the source code that is the payload, in UTF-8."""
    os._exit(_run(payload.decode("utf-8", "surrogatepass"), []))


def run_script(payload: bytes) -> None:
    """Run a program with arguments: `{"source": "...", "arguments": [], "files": {}, "pipes_stdin": false}`."""
    request = json.loads(payload)
    for name, text in request["files"].items():
        with open(name, "w", encoding="utf-8", errors="surrogatepass", newline="") as file:
            file.write(text)
    if request["pipes_stdin"]:
        _make_stdin_a_pipe()
    os._exit(_run(request["source"], request["arguments"]))


def _run(source: str, arguments: list[str]) -> int:
    module = ModuleType("__main__")
    module.__file__ = FILE_NAME
    module.__builtins__ = builtins  # type: ignore[attr-defined]
    sys.modules["__main__"] = module
    sys.argv = [FILE_NAME, *arguments]
    linecache.cache[FILE_NAME] = (partial(str, source),)
    status = _execute(source, module.__dict__)
    del module  # As in Python, the program's names live until sys.modules drops the module.
    return _finish(status)


def _execute(source: str, namespace: dict[str, Value]) -> int:
    """Run source in a namespace and return the exit status that Python would return."""
    hide_frames()
    try:
        exec(compile(source, FILE_NAME, "exec", dont_inherit=True), namespace)
    except SystemExit as leaving:
        return _exit_status(leaving.code)
    except BaseException as error:
        _print_error(error)
        return 1
    return 0


def _finish(status: int) -> int:
    """Do what Python does at exit: wait for threads, run exit functions, drop the program, flush files.

    Return the exit status, which is 120 if flushing failed.
    """
    try:
        if threading.active_count() > 1:
            threading._shutdown()  # type: ignore[attr-defined]
        if atexit._ncallbacks():
            atexit._run_exitfuncs()
    except BaseException as error:
        _print_error(error)
    is_flushed = _flush()
    # Dropping the program's names flushes files that replaced stdout or were never closed.
    sys.stdin, sys.stdout, sys.stderr = sys.__stdin__, sys.__stdout__, sys.__stderr__
    sys.modules.pop("__main__", None)
    # A collection of generation 2 touches pages all over the interpreter. Most programs have no such old objects.
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
        os.write(2, b"the program failed, and so did printing its traceback\n")


def _flush() -> bool:
    is_flushed = True
    for stream in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__):
        try:
            if stream is not None and not stream.closed:
                stream.flush()
        except BaseException:
            is_flushed = False
    return is_flushed


def run_calls(payload: bytes) -> None:
    """Make the calls of the payload, a line of JSON, and write their results."""
    request = from_json(payload, len(payload))
    codecs = {**KNOWN_CODECS, **request["codecs"]}
    try:
        namespace = load(request["prelude"], request["program"])
    except BaseException as error:
        write_result({"load_error": describe_error(error)})
        return
    write_result_line(b'{"loaded":true}')
    find_class = class_finder(namespace, codecs)
    has_tags = b'"$"' in payload
    names, in_place = request["functions"], request.get("in_place", -1)
    functions: list[Callable[..., Value] | None] = [None] * len(names)
    for index, args, kwargs in request["calls"]:
        try:
            decoded_args = Decoder(codecs, find_class).decode(args) if has_tags else args
            decoded_kwargs = Decoder(codecs, find_class).decode(kwargs) if has_tags else kwargs
            function = functions[index]
            if function is None:
                function = functions[index] = _find_function(namespace, names[index])
            result = function(*decoded_args, **decoded_kwargs)
            if type(result) is CoroutineType:
                result = run_coroutine(result)
            if in_place >= 0:
                result = [*decoded_args, *decoded_kwargs.values()][in_place]
            line = to_json(encode(result, codecs))
            if len(line) > MAX_ENCODED:
                raise ResultTooLarge(f"the result takes {len(line)} bytes, the limit is {MAX_ENCODED}")
            write_result_line(b'{"r":%b}' % line)
        except BaseException as error:
            write_result({"raised": describe_error(error)})


def _find_function(namespace: dict[str, Value], expression: str) -> Callable[..., Value]:
    try:
        function: Callable[..., Value] = look_up(namespace, expression)
    except NotDefined as missing:
        write_result({"missing": expression})
        reason = str(missing)

        def function(*args: Value, **kwargs: Value) -> Value:
            raise NameError(reason)

    return function


NOT_STARTED = 127
"""The exit status of a command that could not be started, as in shells."""

MAX_COLLECTED_BYTES = 64 * 2**20
"""Maximum size of a file that is returned, in bytes. Stops a huge binary from filling the parent's memory."""

PIPED_BYTES = 4096
"""Number of bytes that every pipe can hold. Most pipes can be enlarged to a megabyte."""


def run_native(payload: bytes) -> None:
    """Run the command of the payload and exit with its status."""
    head, _, contents = payload.partition(b"\n")
    request = json.loads(head)
    _write_files(request["files"], contents)
    box = os.getcwd()
    if request["pipes_stdin"]:
        _make_stdin_a_pipe()
    code = _run_command(request["argv"], {**request["env"], "TMPDIR": box, "HOME": box})
    if code == 0 and request["collect"]:
        _hand_back(request["collect"])
    if code < 0:
        # Shells report a signal in this way. The first process of a namespace cannot end itself by a signal.
        os._exit(128 - code)
    os._exit(code)


def _write_files(files: list[list[Value]], contents: bytes) -> None:
    start = 0
    for name, size in files:
        if folder := os.path.dirname(name):
            os.makedirs(folder, exist_ok=True)
        with open(name, "wb", opener=partial(os.open, mode=0o700)) as file:
            file.write(memoryview(contents)[start : start + size])
        start += size


def _make_stdin_a_pipe() -> None:
    """Replace a file as stdin by a pipe, which can be read only once. Input too long for a pipe stays a file."""
    if not stat.S_ISREG(os.fstat(0).st_mode):
        return
    reading, writing = os.pipe()
    size = os.fstat(0).st_size
    if size > PIPED_BYTES:
        try:
            fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, size)
        except OSError:
            return
    write_all(writing, memoryview(os.read(0, size)))
    os.close(writing)
    os.dup2(reading, 0)
    os.close(reading)


def _run_command(argv: list[str], environment: dict[str, str]) -> int:
    child = kernel.fork()
    if child == 0:
        try:
            os.closerange(RESULT, PARTNER + 1)
            signal.signal(signal.SIGPIPE, signal.SIG_DFL)
            os.execve(argv[0], argv, environment)
        except OSError as error:
            os.write(2, f"{argv[0]}: {error}\n".encode())
        finally:
            os._exit(NOT_STARTED)
    while True:
        ended, status = os.waitpid(-1, 0)
        if ended == child:
            return os.waitstatus_to_exitcode(status)


def _hand_back(names: list[str]) -> None:
    """Return the files with these names. `*.class` stands for all files with that ending."""
    endings = tuple(name[1:] for name in names if name.startswith("*"))
    made = [path for path in sorted(os.listdir()) if path in names or path.endswith(endings)]
    contents = {path: _read(path) for path in made}
    files = [[name, len(content)] for name, content in contents.items()]
    write_all(RESULT, memoryview(b"".join([json.dumps({"files": files}).encode(), b"\n", *contents.values()])))


def _read(name: str) -> bytes:
    if os.path.getsize(name) > MAX_COLLECTED_BYTES:
        sys.exit(f"{name} is too large")
    with open(name, "rb") as file:
        return file.read()


Role = Callable[[bytes], None]
"""Handles a payload in a forked process."""

_OWN_ROLES: Mapping[str, Role] = {"main": run_main, "script": run_script, "native": run_native, "calls": run_calls}
"""Roles that need no further modules."""
_LOADED_ROLES = {
    "serve": ("test_session.serve", "run_serve"),
    "tests": ("test_session.tests", "run_tests"),
    "one_process": ("test_code.test_run", "run_in_one_process"),
}
"""The module and function of each role that is loaded only in zygotes that need it."""


def roles_of(group: str) -> dict[str, Role]:
    """Return the roles that a group of zygotes can run (`pool.group_of`). More loaded roles would make jobs slower."""
    if group == PLAIN:
        return dict(_OWN_ROLES)
    package = __name__.rpartition(".")[0]
    if PYTEST in group or group == ANY_PACKAGE:
        with suppress(ImportError):  # If pytest is missing, tests that need it report that.
            import_module(f"{package}.test_code.pytest_run").session()
    loaded = {
        role: getattr(import_module(f"{package}.{module}"), function)
        for role, (module, function) in _LOADED_ROLES.items()
    }
    return {**_OWN_ROLES, **loaded}
