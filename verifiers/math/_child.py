"""The child process that compares trees with sympy. `worker.py` starts and stops it.

For each JSON line `{"gold", "answer", "cpu_s"}` with two trees, it prints a line `{"reason", "evidence"}`. Every node
is built by a named constructor of sympy. Text is never parsed or evaluated.

Each comparison runs in a fork of this process, which the kernel ends after its CPU time. So sympy is imported only
once, and no comparison can change a later one.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any, NoReturn

from truegold.verifiers.math.vocabulary import SYMPY_NAMES, WORDS
from truegold.verifiers.sandbox.child_process import Conversation, die_with_parent, limit_memory
from truegold.verifiers.verdict import Reason

MAX_MEMORY_BYTES = 64 << 20
"""Maximum memory of one comparison, in addition to sympy's own. Stops expressions that grow without end."""

PROBE_DIGITS = 40
"""The number of digits that are computed of two numbers, to compare them."""

MAX_SHOWN_CHARS = 200
_EXIT_EXHAUSTED = 3
"""The exit status of a fork that ran out of memory or stack."""


def main() -> None:
    """Answer requests until the parent closes the connection."""
    with Conversation() as conversation:
        try:
            _warm_up()
        except ImportError as error:
            conversation.reply({"error": str(error)})
            return
        conversation.reply({"ready": True})
        for request in conversation.requests():
            if (copy := os.fork()) == 0:
                _compare_in_copy(conversation, request)
            status = os.waitstatus_to_exitcode(os.waitpid(copy, 0)[1])
            if status == -signal.SIGPROF:
                conversation.reply({"reason": Reason.TIMEOUT, "evidence": {"cpu_s": request["cpu_s"]}})
            elif status != 0:
                conversation.reply({"reason": Reason.LIMIT, "evidence": {"error": _describe_end(status)}})


def _compare_in_copy(conversation: Conversation, request: dict[str, Any]) -> NoReturn:
    """Answer one request and end the process."""
    status = 1
    try:
        die_with_parent()
        signal.signal(signal.SIGPROF, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_PROF, request["cpu_s"])
        limit_memory(_address_space() + MAX_MEMORY_BYTES)
        conversation.reply(compare(request["gold"], request["answer"]))
        status = 0
    except (MemoryError, RecursionError):
        status = _EXIT_EXHAUSTED
    finally:
        os._exit(status)


def _describe_end(status: int) -> str:
    if status == _EXIT_EXHAUSTED:
        return "sympy ran out of memory or stack"
    return f"the symbolic worker ended by signal {-status}" if status < 0 else f"it exited with status {status}"


def _address_space() -> int:
    return int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")


def _warm_up() -> None:
    """Load sympy's lazy modules and fill its caches before the first comparison."""
    import sympy

    x, n = sympy.symbols("x n")
    sympy.integrate(x * sympy.exp(x), x)
    sympy.integrate(sympy.exp(-(x**2)), (x, 0, sympy.oo))
    sympy.integrate(sympy.sqrt(1 - x**2), (x, 0, 1))
    sympy.integrate(sympy.sin(x) ** 2, x)
    sympy.integrate(sympy.log(x) / (1 + x**2), x)
    sympy.limit(sympy.sin(x) / x, x, 0)
    sympy.simplify(sympy.summation(n**2, (n, 1, x)) - sympy.summation(1 / 2**n, (n, 0, sympy.oo)) + sympy.sqrt(x))


def compare(gold: list[Any], answer: list[Any]) -> dict[str, Any]:
    """Return the reason and the evidence of a comparison. Raises MemoryError and RecursionError."""
    try:
        gold_value, answer_value = _build(gold), _build(answer)
        same = _is_same(gold_value, answer_value)
    except (MemoryError, RecursionError):
        raise
    except Exception as error:
        # Any error of sympy means that the two were not shown to be equal.
        evidence = {"error": f"{type(error).__name__}: {error}"[:MAX_SHOWN_CHARS]}
        return {"reason": Reason.MISMATCH, "evidence": evidence}
    evidence = {"gold_value": str(gold_value)[:MAX_SHOWN_CHARS], "answer_value": str(answer_value)[:MAX_SHOWN_CHARS]}
    return {"reason": Reason.MATCH if same else Reason.MISMATCH, "evidence": evidence}


def _is_same(gold: Any, answer: Any) -> bool:
    """Tell whether two expressions of sympy are equal after evaluation."""
    import sympy

    gold, answer = gold.doit(), answer.doit()
    if gold == answer:
        return True
    if gold.is_number and answer.is_number:
        a, b = gold.evalf(PROBE_DIGITS), answer.evalf(PROBE_DIGITS)
        return bool(abs(a - b) <= max(abs(a), abs(b)) * 10 ** (5 - PROBE_DIGITS))
    if gold.has(sympy.Integral, sympy.Limit) != answer.has(sympy.Integral, sympy.Limit):
        return False
    return bool(sympy.simplify(gold - answer) == 0)


def _build(tree: list[Any]) -> Any:  # noqa: PLR0911, one for each kind of node
    """Return the expression of sympy for an encoded tree (`worker.encode`)."""
    import sympy

    kind, *rest = tree
    if kind == "num":
        return sympy.Rational(int(rest[0]), int(rest[1]))
    if kind == "const":
        return {"pi": sympy.pi, "e": sympy.E, "i": sympy.I, "inf": sympy.oo}[rest[0]]
    if kind == "sym":
        return sympy.Symbol(rest[0])
    if kind in ("add", "mul", "pow"):
        return {"add": sympy.Add, "mul": sympy.Mul, "pow": sympy.Pow}[kind](*map(_build, rest))
    if kind == "apply":
        return sympy.Function(rest[0])(*map(_build, rest[1:]))
    if kind == "call":
        return _build_call(rest[0], list(map(_build, rest[1:])))
    # "big": a sum, a product, an integral or a limit.
    return _build_big(*rest)


def _build_call(name: str, args: list[Any]) -> Any:
    import sympy

    if name == "degree":
        return args[0] * sympy.pi / 180
    if name not in WORDS["sympy"] and name not in SYMPY_NAMES:
        raise ValueError(f"no function {name}")
    return getattr(sympy, SYMPY_NAMES.get(name, name))(*args)


def _build_big(kind: str, variable: str, low: list[Any] | None, high: list[Any] | None, body: list[Any]) -> Any:
    import sympy

    symbol, summand = sympy.Symbol(variable), _build(body)
    bounds = [_build(bound) for bound in (low, high) if bound is not None]
    if kind == "lim":
        return sympy.Limit(summand, symbol, bounds[0], "+-" if bounds[0].is_finite else "-")
    constructor = {"sum": sympy.Sum, "prod": sympy.Product, "int": sympy.Integral}[kind]
    return constructor(summand, (symbol, *bounds)) if bounds else constructor(summand, symbol)


if __name__ == "__main__":
    main()
