"""The child's side of a process that answers JSON lines (`child_process.py` is the parent's).

The conversation has pipes to itself: what a verifier prints goes to stderr, and what it reads from stdin is empty, so
that neither can break into it. The process ends when its parent ends or closes the pipe.
"""

from __future__ import annotations

import json
import os
import resource
import signal
from collections.abc import Iterator
from typing import Any, BinaryIO, Self

from truegold.verifiers.sandbox.processes.lifetime import die_with_parent


class Conversation:
    """The requests of the parent, and the replies to them."""

    def __init__(self) -> None:
        die_with_parent()
        # A crash is an ordinary event here, which leaves no core file.
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        # The parent handles Ctrl-C, and ends its children itself.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
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
        """Yield every request until the parent hangs up."""
        for line in self._in:
            yield json.loads(line)

    def reply(self, message: object) -> None:
        """Write one line; what JSON does not know is written as its repr()."""
        unsent = memoryview(json.dumps(message, default=repr).encode() + b"\n")
        try:
            while unsent:
                unsent = unsent[self._out.write(unsent) or 0 :]
        except BrokenPipeError:
            # The parent is gone, and with it whoever could use a reply.
            os._exit(0)


def limit_memory(max_bytes: int) -> None:
    """Limit the address space of this process; beyond it, allocations raise MemoryError."""
    resource.setrlimit(resource.RLIMIT_AS, (max_bytes, max_bytes))
