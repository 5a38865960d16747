"""The symbolic rung, from outside: one child process that runs math-verify, and is killed when it takes too long.

sympy can spend hours, or all memory, on a line of text, and Python offers no way to stop it from within. So a
comparison runs in a child (`_child.py`) with an address-space limit, and the deadline is kept here. The child starts
with the first comparison, lives as long as this process, and is replaced when it dies. Threads take turns; a forked
process gets a child of its own. Not covered: several comparisons at a time in one process (`verify_batch`).
"""

from __future__ import annotations

import atexit
import os
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from truegold.verifiers._process import ChildDied, ChildProcess, DeadlinePassed
from truegold.verifiers.errors import SetupError
from truegold.verifiers.verdict import Reason

DEADLINE_S = 3.0
"""For one comparison. Stops `9^{9^{9^9}}` and its kin."""

START_S = 90.0
"""For the child's first import of sympy, on a machine that is busy with other things."""

_CHILD_MODULE = "truegold.verifiers.math._child"
_ATTEMPTS = 2
"""A child may die of what an earlier comparison left in its memory: the second attempt starts with a fresh one."""


@dataclass(frozen=True, slots=True)
class Reply:
    """reason: MATCH or MISMATCH, or why there is neither."""

    reason: Reason
    evidence: Mapping[str, Any] = field(default_factory=dict)


class Worker:
    """The handle of this process's child."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.child: ChildProcess | None = None

    def compare(self, gold: str, answer: str, deadline_s: float) -> Reply:
        how = ""
        with self.lock:
            for _ in range(_ATTEMPTS):
                child = self._running()
                try:
                    deadline = time.monotonic() + deadline_s
                    child.send({"gold": gold, "answer": answer}, deadline)
                    reply = child.receive(deadline)
                except DeadlinePassed:
                    self._stop()
                    return Reply(Reason.TIMEOUT, {"deadline_s": deadline_s})
                except ChildDied as error:
                    self._stop()
                    how = str(error)
                except BaseException:  # interrupted half-way: the next reply would be the answer to this question
                    self._stop()
                    raise
                else:
                    return Reply(Reason(reply["reason"]), reply["evidence"])
        return Reply(Reason.LIMIT, {"error": f"the symbolic worker {how}, twice"})

    def stop(self) -> None:
        with self.lock:
            self._stop()

    def _running(self) -> ChildProcess:
        if self.child is None:
            child = ChildProcess(_CHILD_MODULE, quiet=True)
            try:
                ready = child.receive(time.monotonic() + START_S)
            except (ChildDied, DeadlinePassed) as error:
                child.kill()
                raise SetupError(
                    f"the symbolic worker of the math verifier did not start ({error or 'no answer in time'}).",
                    f"See why: python -m {_CHILD_MODULE} < /dev/null",
                ) from error
            except BaseException:
                child.kill()
                raise
            if "error" in ready:
                child.kill()
                raise SetupError(
                    f"the math verifier needs math-verify for symbolic answers: {ready['error']}.",
                    "pip install 'math-verify>=0.9,<1'",
                )
            self.child = child
        return self.child

    def _stop(self) -> None:
        if self.child is not None:
            self.child.kill()
            self.child = None


_worker = Worker()


def compare(gold: str, answer: str, deadline_s: float = DEADLINE_S) -> Reply:
    """Are two LaTeX texts the same mathematically? Never raises for what they say."""
    return _worker.compare(gold, answer, deadline_s)


def stop() -> None:
    """End the child now, rather than with this process."""
    _worker.stop()


def _after_fork() -> None:
    global _worker  # noqa: PLW0603
    _worker = Worker()  # the old lock may be held by a thread that is not here; its child belongs to the parent


atexit.register(stop)
os.register_at_fork(after_in_child=_after_fork)
