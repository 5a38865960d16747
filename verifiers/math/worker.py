"""The symbolic rung, from outside: one child process that runs sympy and is killed when it takes too long.

Trees reach the child, never text: integrals, limits and sums without end. sympy can spend hours or all memory on one of
them, and Python offers no way to stop it from within. So a comparison runs in a child (`_child.py`) with limits on its
CPU time and memory, and a deadline is kept here, for a machine that is busy with other things. The child starts with
the first comparison, lives as long as this process, and is replaced when it dies. Threads take turns; a forked process
gets a child of its own. Not covered: several comparisons at a time, for which `verify_batch` has several processes.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from truegold.verifiers.math.balls import MAX_SUM_TERMS
from truegold.verifiers.math.exact import rational
from truegold.verifiers.math.tree import VALUES, Add, Big, Call, Const, Mul, Node, Num, Pow, Sym, walk
from truegold.verifiers.sandbox.child_process import ChildDied, ChildProcess, DeadlinePassed, describe_start
from truegold.verifiers.sandbox.errors import SetupError
from truegold.verifiers.verdict import Reason

CPU_S = 0.05
"""CPU time for one comparison, to which comes what is left of the verdict's budget. Stops integrals without an end."""

DEADLINE_S = 10.0
"""How long one comparison may take until its child is killed, on a machine that is busy with other things."""

START_S = 90.0
"""How long the child may take to import sympy, on a machine that is busy with other things."""

_CHILD_MODULE = "truegold.verifiers.math._child"
_ATTEMPTS = 2
"""A child may die of what an earlier comparison left in its memory: the second attempt starts with a fresh one."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What the child found out."""

    reason: Reason
    """MATCH or MISMATCH, or why there is neither."""
    evidence: Mapping[str, Any] = field(default_factory=dict)


class Worker:
    """The handle of this process's child."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.child: ChildProcess | None = None

    def compare(self, gold: list[Any], answer: list[Any], cpu_s: float, deadline_s: float) -> Reply:
        """Compare two encoded trees. Raises SetupError where the child does not start."""
        cause = ""
        with self.lock:
            for _ in range(_ATTEMPTS):
                child = self._running_child()
                try:
                    deadline = time.monotonic() + deadline_s
                    child.send({"gold": gold, "answer": answer, "cpu_s": cpu_s}, deadline)
                    reply = child.receive(deadline)
                except DeadlinePassed:
                    self._stop()
                    return Reply(Reason.TIMEOUT, {"deadline_s": deadline_s})
                except ChildDied as error:
                    self._stop()
                    cause = str(error)
                except BaseException:
                    # After an interruption half-way, the next reply would be the answer to this question.
                    self._stop()
                    raise
                else:
                    return Reply(Reason(reply["reason"]), reply["evidence"])
        return Reply(Reason.LIMIT, {"error": f"the symbolic worker {cause}, twice"})

    def stop(self) -> None:
        """End the child; the next comparison starts another."""
        with self.lock:
            self._stop()

    def _running_child(self) -> ChildProcess:
        if self.child is None:
            child = ChildProcess(_CHILD_MODULE, quiet=True)
            try:
                ready = child.receive(time.monotonic() + START_S)
            except (ChildDied, DeadlinePassed) as error:
                child.kill()
                raise SetupError(
                    f"the symbolic worker of the math verifier did not start: {describe_start(_CHILD_MODULE, error)}.",
                    f"See why: python -m {_CHILD_MODULE} < /dev/null",
                ) from error
            except BaseException:
                child.kill()
                raise
            if "error" in ready:
                child.kill()
                raise SetupError(
                    f"the math verifier needs sympy for integrals and limits: {ready['error']}.",
                    "pip install 'sympy>=1.13,<2'",
                )
            self.child = child
        return self.child

    def _stop(self) -> None:
        if self.child is not None:
            self.child.kill()
            self.child = None


_worker = Worker()


def might_know(gold: Node, answer: Node) -> bool:
    """Tell whether gold holds something that only sympy can work out, and neither side something that it cannot."""
    only_values = all(isinstance(part, VALUES) for tree in (gold, answer) for part in walk(tree))
    return only_values and is_unfinished(gold)


def is_unfinished(node: Node) -> bool:
    """Tell whether an integral, a limit or a long sum is left to be worked out."""
    return any(isinstance(part, Big) and _is_slow(part) for part in walk(node))


def compare(gold: Node, answer: Node, cpu_s: float = CPU_S, deadline_s: float = DEADLINE_S) -> Reply:
    """Compare two trees of values; whatever they hold, the outcome is a reply and no exception."""
    return _worker.compare(encode(gold), encode(answer), cpu_s, deadline_s)


def _is_slow(node: Big) -> bool:
    if node.kind not in ("sum", "prod"):
        return True
    low, high = (rational(bound) if bound is not None else None for bound in (node.low, node.high))
    return low is None or high is None or high - low >= MAX_SUM_TERMS


def encode(node: Node) -> list[Any]:
    """Return a tree of values as JSON. Raises TypeError for any other tree."""
    match node:
        case Num(value):
            return ["num", str(value.numerator), str(value.denominator)]
        case Const(name) | Sym(name):
            return [type(node).__name__.lower(), name]
        case Add(parts) | Mul(parts):
            return [type(node).__name__.lower(), *map(encode, parts)]
        case Pow(base, exponent):
            return ["pow", encode(base), encode(exponent)]
        case Call(name, args, applied):
            return ["apply" if applied else "call", name, *map(encode, args)]
        case Big(kind, variable, low, high, body):
            bounds = [None if bound is None else encode(bound) for bound in (low, high)]
            return ["big", kind, variable, *bounds, encode(body)]
    raise TypeError(f"{type(node).__name__} is no value")


def stop() -> None:
    """End the child now rather than with this process."""
    _worker.stop()


def _after_fork() -> None:
    global _worker  # noqa: PLW0603
    # A thread that does not exist here may hold the old lock, and the old child belongs to the parent.
    _worker = Worker()


atexit.register(stop)
os.register_at_fork(after_in_child=_after_fork)
