"""Verifier `math_verify`: Math-Verify as trainers use it, for whoever wants to see what another verifier would change.

    verify("so \\\\boxed{0.5}", "1/2", verifier="math_verify").score     1.0
    truegold rescore logs --data set --verifier math_verify --verifier math --out rescored

Math-Verify has no bound on its work but a signal, which works in no thread but the main one, so that it runs in a child
process with a deadline here: what takes longer is None with `timeout`. The other verdicts are its own: gold is parsed
as `\\\\boxed{gold}` unless it brings a box or dollars; a gold without a parse is None with `gold_unparsed`, a response
without one earns 0. Needs `truegold[math-verify]`.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, ClassVar

from truegold.verifiers.options import AnswerVerifier, BadOption
from truegold.verifiers.sandbox.child_process import ChildDied, ChildProcess, DeadlinePassed, describe_start
from truegold.verifiers.sandbox.errors import SetupError
from truegold.verifiers.verdict import Reason, Verdict

DEADLINE_S = 10.0
"""What one verdict may take, unless `deadline_s` says otherwise: Math-Verify's own are 5 s for each part."""
START_S = 90.0
"""How long the child may take to import sympy, on a machine that is busy with other things."""
MAX_CHARS = 1_000_000
"""A longer text is refused before it is sent."""
_CHILD_MODULE = "truegold.verifiers.math_verify._child"
_ATTEMPTS = 2
"""A child may die of what an earlier answer left in its memory: the second attempt starts with a fresh one."""


@dataclass(frozen=True, slots=True)
class MathVerifyVerifier(AnswerVerifier):
    """Verifier `math_verify`. Reads `info["deadline_s"]` (seconds, 10 if absent)."""

    options: ClassVar[tuple[str, ...]] = ("deadline_s",)

    name: str = "math_verify"
    version: str = "1"

    def _judge(self, response: str, gold: str | None, info: Mapping[str, Any]) -> Verdict:
        deadline_s = info.get("deadline_s", DEADLINE_S)
        if isinstance(deadline_s, bool) or not isinstance(deadline_s, int | float) or not 0 < deadline_s <= 3600:
            raise BadOption(f"deadline_s must be a number of seconds up to 3600, got {deadline_s!r:.60}")
        if gold is None or not gold.strip():
            return Verdict(None, Reason.GOLD_MISSING)
        if max(len(gold), len(response)) > MAX_CHARS:
            return Verdict(None if len(gold) > MAX_CHARS else 0.0, Reason.LIMIT, evidence={"limit": MAX_CHARS})
        return _worker.judge(gold, response, float(deadline_s))

    def gold_response(self, gold: str, solution: str | None) -> str | None:
        r"""Return gold in a `\boxed`."""
        return gold if "\\boxed" in gold else f"\\boxed{{{gold.strip().strip('$')}}}"


class _Worker:
    """The handle of this process's child. Threads take turns."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._child: ChildProcess | None = None

    def judge(self, gold: str, response: str, deadline_s: float) -> Verdict:
        """Return the verdict. Raises SetupError where Math-Verify is not installed or its child does not start."""
        cause = ""
        with self._lock:
            for _ in range(_ATTEMPTS):
                child = self._running_child()
                deadline = time.monotonic() + deadline_s
                try:
                    child.send({"gold": gold, "response": response}, deadline)
                    reply = child.receive(deadline)
                except DeadlinePassed:
                    self._stop()
                    return Verdict(None, Reason.TIMEOUT, evidence={"deadline_s": deadline_s})
                except ChildDied as error:
                    self._stop()
                    cause = str(error)
                except BaseException:
                    # After an interruption half-way, the next reply would be the answer to this question.
                    self._stop()
                    raise
                else:
                    return Verdict(reply["score"], Reason(reply["reason"]), reply["extracted"], reply["evidence"])
        return Verdict(None, Reason.LIMIT, evidence={"error": f"Math-Verify's process {cause}, twice"})

    def stop(self) -> None:
        """End the child; the next verdict starts another."""
        with self._lock:
            self._stop()

    def _running_child(self) -> ChildProcess:
        if self._child is not None:
            return self._child
        if find_spec("math_verify") is None:
            raise SetupError(
                "The verifier math_verify needs the package math-verify.", "pip install 'truegold[math-verify]'"
            )
        child = ChildProcess(_CHILD_MODULE, quiet=True)
        try:
            child.receive(time.monotonic() + START_S)
        except (ChildDied, DeadlinePassed) as error:
            child.kill()
            raise SetupError(
                f"Math-Verify's process did not start: {describe_start(_CHILD_MODULE, error)}.",
                f"See why: python -m {_CHILD_MODULE} < /dev/null",
            ) from error
        self._child = child
        return child

    def _stop(self) -> None:
        if self._child is not None:
            self._child.kill()
            self._child = None


_worker = _Worker()


def _stop() -> None:
    _worker.stop()


def _after_fork() -> None:
    global _worker  # noqa: PLW0603
    # The old child belongs to the parent, and a thread that does not exist here may hold the old lock.
    _worker = _Worker()


atexit.register(_stop)
os.register_at_fork(after_in_child=_after_fork)
