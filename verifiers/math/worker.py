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
from truegold.verifiers.math.tree import VALUES, Add, Big, Const, FunctionCall, Mul, Node, Num, Pow, Sym, symbols, walk
from truegold.verifiers.sandbox.child_process import (
    ChildDied,
    ChildProcess,
    DeadlinePassed,
    describe_start,
    python_module,
)
from truegold.verifiers.sandbox.errors import SetupError
from truegold.verifiers.verdict import Reason

CPU_S = 0.05
"""CPU time for one comparison, to which comes what is left of the verdict's budget. Stops integrals without an end."""

DEADLINE_S = 10.0
"""How long one comparison may take until its child is killed, on a machine that is busy with other things."""

START_S = 90.0
"""How long the child may take to import sympy, on a machine that is busy with other things."""

_ATTEMPTS = 2
"""A child may die of what an earlier question left in its memory: the second attempt starts with a fresh one."""


class ChildWorker:
    """Asks a child process one question at a time. The child starts with the first one and is replaced when it dies.

    Threads take turns; a forked process gets a child of its own.
    """

    def __init__(self, module: str, title: str, needs: tuple[str, str]) -> None:
        """title: what an error calls the child; needs: what it says of a package that the child lacks, and a hint."""
        self._module, self._title, self._needs = module, title, needs
        self._lock = threading.Lock()
        self.child: ChildProcess | None = None
        atexit.register(self.stop)
        os.register_at_fork(after_in_child=self._forget)

    def ask(self, question: Mapping[str, Any], deadline_s: float) -> dict[str, Any]:
        """Return the child's reply.

        Raises DeadlinePassed, ChildDied after the last attempt, and SetupError where the child does not start.
        """
        with self._lock:
            for attempt in range(1, _ATTEMPTS + 1):
                child = self._running_child()
                try:
                    deadline = time.monotonic() + deadline_s
                    child.send(question, deadline)
                    reply: dict[str, Any] = child.receive(deadline)
                except ChildDied:
                    self._stop()
                    if attempt == _ATTEMPTS:
                        raise
                except BaseException:
                    # After an interruption half-way, the next reply would be the answer to this question.
                    self._stop()
                    raise
                else:
                    return reply
        raise AssertionError("the last attempt returns or raises")

    def stop(self) -> None:
        """End the child now rather than with this process; the next question starts another."""
        with self._lock:
            self._stop()

    def _running_child(self) -> ChildProcess:
        if self.child is None:
            child = ChildProcess(python_module(self._module), quiet=True)
            try:
                ready = child.receive(time.monotonic() + START_S)
                if "error" in ready:
                    raise SetupError(f"{self._needs[0]}: {ready['error']}.", self._needs[1])
            except (ChildDied, DeadlinePassed) as error:
                child.kill()
                raise SetupError(
                    f"{self._title} did not start: {describe_start(self._module, error)}.",
                    f"See why: python -m {self._module} < /dev/null",
                ) from error
            except BaseException:
                child.kill()
                raise
            self.child = child
        return self.child

    def _stop(self) -> None:
        if self.child is not None:
            self.child.kill()
            self.child = None

    def _forget(self) -> None:
        # After a fork, a thread that does not exist here may hold the old lock, and the old child is the parent's.
        self._lock = threading.Lock()
        self.child = None


_worker = ChildWorker(
    "truegold.verifiers.math._child",
    "the symbolic worker of the math verifier",
    ("the math verifier needs sympy for integrals and limits", "pip install 'sympy>=1.13,<2'"),
)
stop = _worker.stop


@dataclass(frozen=True, slots=True)
class SympyReply:
    """The result of the child's comparison."""

    reason: Reason
    """MATCH or MISMATCH, or why there is neither."""
    evidence: Mapping[str, Any] = field(default_factory=dict)


def might_know(gold: Node, answer: Node) -> bool:
    """Tell whether gold holds something that only sympy can work out, and neither side something that it cannot."""
    only_values = all(isinstance(part, VALUES) for tree in (gold, answer) for part in walk(tree))
    return only_values and is_unfinished(gold) and not any(map(_has_terms, (*walk(gold), *walk(answer))))


def _has_terms(node: Node) -> bool:
    """Tell whether a sum is one of a_n, which would be a constant without its index."""
    return isinstance(node, Big) and any("_" in name and node.variable in name for name in symbols(node.body))


def is_unfinished(node: Node) -> bool:
    """Tell whether an integral, a limit or a long sum is left to be worked out."""
    return any(isinstance(part, Big) and _is_slow(part) for part in walk(node))


def compare(gold: Node, answer: Node, cpu_s: float = CPU_S, deadline_s: float = DEADLINE_S) -> SympyReply:
    """Compare two trees of values. The outcome is a reply for all trees, and never an exception."""
    try:
        reply = _worker.ask({"gold": encode(gold), "answer": encode(answer), "cpu_s": cpu_s}, deadline_s)
    except DeadlinePassed:
        return SympyReply(Reason.TIMEOUT, {"deadline_s": deadline_s})
    except ChildDied as error:
        return SympyReply(Reason.LIMIT, {"error": f"the symbolic worker {error}, twice"})
    return SympyReply(Reason(reply["reason"]), reply["evidence"])


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
        case FunctionCall(name, args, applied):
            return ["apply" if applied else "call", name, *map(encode, args)]
        case Big(kind, variable, low, high, body):
            bounds = [None if bound is None else encode(bound) for bound in (low, high)]
            return ["big", kind, variable, *bounds, encode(body)]
    raise TypeError(f"{type(node).__name__} is not a value")
