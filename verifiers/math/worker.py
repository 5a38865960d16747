"""Compares trees with sympy in a child process, which is killed after a deadline.

sympy can take hours or all memory for an integral, a limit or an infinite sum, and Python cannot interrupt it from
within. So a comparison runs in a child (`_child.py`) with limits on CPU time and memory. A deadline in wall time is
long enough for busy machines. The child receives trees, never text.

The child starts with the first comparison, lives as long as this process, and is replaced when it dies. Threads take
turns, and a forked process starts another child. Not covered: several comparisons at a time. For these, `verify_batch`
starts several processes.
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
"""The least CPU time of one comparison, in seconds. `verifier` adds what is left of a verdict's budget."""

DEADLINE_S = 10.0
"""Wall time of one comparison, in seconds, after which the child is killed. It is long enough for a busy machine."""

START_S = 90.0
"""Wall time for the child to import sympy, in seconds. It is long enough for a busy machine."""

_ATTEMPTS = 2
"""Maximum number of attempts for one question. The second attempt uses a new child: the old one may lack memory."""


class ChildWorker:
    """Asks a child process one question at a time. The child starts with the first question and is replaced if it dies.

    Threads take turns. A forked process starts another child.
    """

    def __init__(self, module: str, title: str, needs: tuple[str, str]) -> None:
        """title: the child's name in errors; needs: the message and the hint for a package that the child lacks."""
        self._module, self._title, self._needs = module, title, needs
        self._lock = threading.Lock()
        self.child: ChildProcess | None = None
        atexit.register(self.stop)
        os.register_at_fork(after_in_child=self._forget)

    def ask(self, question: Mapping[str, Any], deadline_s: float) -> dict[str, Any]:
        """Return the child's reply.

        Raises DeadlinePassed, ChildDied after the last attempt, and SetupError if the child does not start.
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
                    # After an interruption, the next reply of this child would answer the interrupted question.
                    self._stop()
                    raise
                else:
                    return reply
        raise AssertionError("the last attempt returns or raises")

    def stop(self) -> None:
        """End the child now. The next question starts another one."""
        with self._lock:
            self._stop()

    def _running_child(self) -> ChildProcess:
        """Return the child, after starting it if necessary. Raises SetupError."""
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
        # After a fork, the old child belongs to the parent, and a thread of the parent may hold the old lock forever.
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
    """MATCH, MISMATCH, or the reason why the comparison failed."""
    evidence: Mapping[str, Any] = field(default_factory=dict)


def might_know(gold: Node, answer: Node) -> bool:
    """Tell whether gold needs sympy, and sympy can evaluate both sides."""
    only_values = all(isinstance(part, VALUES) for tree in (gold, answer) for part in walk(tree))
    return only_values and is_unfinished(gold) and not any(map(_has_terms, (*walk(gold), *walk(answer))))


def _has_terms(node: Node) -> bool:
    """Tell whether a node is a sum of terms a_n, which sympy would take for a constant."""
    return isinstance(node, Big) and any("_" in name and node.variable in name for name in symbols(node.body))


def is_unfinished(node: Node) -> bool:
    """Tell whether a tree has an integral, a limit or a long sum."""
    return any(isinstance(part, Big) and _is_slow(part) for part in walk(node))


def compare(gold: Node, answer: Node, cpu_s: float = CPU_S, deadline_s: float = DEADLINE_S) -> SympyReply:
    """Compare two trees of values. A comparison that fails gives a reply with the reason, not an exception."""
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
