"""The child's side of a process that answers JSON lines (`child_process.py` is the parent's).

The protocol gets pipes of its own: whatever a verifier prints goes to stderr, whatever it reads from stdin is empty, so
neither can break into the conversation. The process ends when its parent ends or closes the pipe.
"""

from __future__ import annotations

import json
import os
import resource
import signal
from collections.abc import Iterator
from typing import Any, BinaryIO, Self

from truegold.verifiers.processes.lifetime import die_with_parent


class Conversation:
    """The two ends of the line to the parent."""

    def __init__(self) -> None:
        die_with_parent()
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a crash is an ordinary event here: no core files
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle; it ends its children itself
        self._in: BinaryIO = os.fdopen(os.dup(0), "rb")
        self._out: BinaryIO = os.fdopen(os.dup(1), "wb", buffering=0)
        empty = os.open(os.devnull, os.O_RDONLY)
        os.dup2(empty, 0)
        os.close(empty)
        os.dup2(2, 1)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._in.close()
        self._out.close()

    def requests(self) -> Iterator[Any]:
        """Every request until the parent hangs up."""
        for line in self._in:
            yield json.loads(line)

    def reply(self, message: object) -> None:
        left = memoryview(json.dumps(message, default=repr).encode() + b"\n")
        try:
            while left:
                left = left[self._out.write(left) or 0 :]
        except BrokenPipeError:  # nobody is left to answer to
            os._exit(0)


def limit_memory(max_bytes: int) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (max_bytes, max_bytes))
