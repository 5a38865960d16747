"""Role `native`: puts files into the box, runs one command there, and hands back the files that it made.

    {"files": [["main.cpp", 812]], "argv": ["/usr/bin/g++", "-o", "main", "main.cpp"], "collect": ["main"]}\\n<contents>

The command runs in a process of its own below this one, which is the first of the pid namespace: it reaps what is left
behind, and the kernel treats signals to others in the ordinary way. The files come back on the result descriptor in the
same form. Nothing here knows compilers or languages (`sandbox/languages.py`).
"""

from __future__ import annotations

import json
import os
import signal
import sys
from typing import Any

from ..confine import kernel
from ..wire.lines import PARTNER, RESULT, write_all

NOT_STARTED = 127
"""The exit status of a command that could not be started, as shells have it."""

MAX_COLLECTED_BYTES = 64 * 2**20
"""Stops a program that blows up while it is compiled from filling the memory of the parent."""

MAX_PIPED_BYTES = 4096
"""What is handed over by a pipe, which takes so much without anybody reading."""


def run_native(payload: bytes) -> None:
    """Run the command; this process ends as the command did."""
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
        # Shells say it this way; the first process of a namespace cannot end itself by a signal.
        os._exit(128 - code)
    os._exit(code)


def _write_files(files: list[list[Any]], contents: bytes) -> None:
    start = 0
    for name, size in files:
        if folder := os.path.dirname(name):
            os.makedirs(folder, exist_ok=True)
        descriptor = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o700)
        try:
            write_all(descriptor, memoryview(contents)[start : start + size])
        finally:
            os.close(descriptor)
        start += size


def _make_stdin_a_pipe() -> None:
    """Put a pipe in the place of the file that stdin is, so that what is read of it is gone."""
    reading, writing = os.pipe()
    os.write(writing, os.read(0, MAX_PIPED_BYTES))
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
    contents = {name: _read(name) for name in _expand(names)}
    files = [[name, len(content)] for name, content in contents.items()]
    with open(RESULT, "wb", closefd=False) as result:
        result.write(json.dumps({"files": files}).encode() + b"\n")
        for content in contents.values():
            result.write(content)


def _expand(names: list[str]) -> list[str]:
    """Return the names that exist; `*.class` stands for every file that ends so."""
    expanded: list[str] = []
    for name in names:
        if name.startswith("*"):
            expanded += sorted(entry for entry in os.listdir(".") if entry.endswith(name[1:]))
        elif os.path.exists(name):
            expanded.append(name)
    return expanded


def _read(name: str) -> bytes:
    if os.path.getsize(name) > MAX_COLLECTED_BYTES:
        sys.exit(f"{name} is too large")
    with open(name, "rb") as file:
        return file.read()
