"""The verifier `math_verify` judges with the package Math-Verify, which other trainers use.

    verify("so \\\\boxed{0.5}", "1/2", verifier="math_verify").score     1.0
    truegold rescore logs --data set --verifier math_verify --verifier math --out rescored

Math-Verify limits its work only by a signal, which works only in the main thread. It therefore runs in a child process
with a deadline. If the deadline passes, there is no score, and the reason is `timeout`.

Gold is parsed as `\\\\boxed{gold}` unless it has a box or dollar signs. If gold cannot be parsed, there is no score,
and the reason is `gold_unparsed`. If the response cannot be parsed, the score is 0. Otherwise Math-Verify decides.
Needs `truegold[math-verify]`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, ClassVar

from truegold.verifiers.math.worker import ChildWorker
from truegold.verifiers.options import AnswerVerifier, BadOption
from truegold.verifiers.sandbox.child_process import ChildDied, DeadlinePassed
from truegold.verifiers.sandbox.errors import SetupError
from truegold.verifiers.verdict import Reason, Verdict

DEADLINE_S = 10.0
"""The default of `deadline_s`, in seconds. Math-Verify itself allows 5 s each for parsing and comparing."""
MAX_CHARS = 1_000_000
"""Maximum number of characters. With a longer gold there is no score; for a longer response the score is 0."""
_NEEDS = ("The verifier math_verify needs the package math-verify", "pip install 'truegold[math-verify]'")
"""The error for a missing package, and the command that installs it."""
_worker = ChildWorker("truegold.verifiers.math_verify._child", "Math-Verify's process", _NEEDS)


@dataclass(frozen=True, slots=True)
class MathVerifyVerifier(AnswerVerifier):
    """Judges by Math-Verify. Setting in `info`: `deadline_s` (seconds for a verdict, default 10)."""

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
        return _ask(gold, response, float(deadline_s))

    def gold_response(self, gold: str, solution: str | None) -> str | None:
        r"""Return gold in a `\boxed`."""
        return gold if "\\boxed" in gold else f"\\boxed{{{gold.strip().strip('$')}}}"


def _ask(gold: str, response: str, deadline_s: float) -> Verdict:
    """Return Math-Verify's verdict. Raises SetupError if it is not installed or its process does not start."""
    if _worker.child is None and find_spec("math_verify") is None:
        raise SetupError(f"{_NEEDS[0]}.", _NEEDS[1])
    try:
        reply = _worker.ask({"gold": gold, "response": response}, deadline_s)
    except DeadlinePassed:
        return Verdict(None, Reason.TIMEOUT, evidence={"deadline_s": deadline_s})
    except ChildDied as error:
        return Verdict(None, Reason.LIMIT, evidence={"error": f"Math-Verify's process {error}, two times in a row"})
    return Verdict(reply["score"], Reason(reply["reason"]), reply["extracted"], reply["evidence"])
