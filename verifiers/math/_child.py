"""The symbolic rung, inside its child process (`worker.py` starts it, and keeps the deadline).

One JSON line in, `{"gold", "answer"}`; one out, `{"reason", "evidence"}`. Running out of memory or stack ends the
process: what such a failure leaves behind is not to be trusted with the next comparison.
"""

from __future__ import annotations

import logging
import os
from typing import Any

from truegold.verifiers._serve import Conversation, limit_memory
from truegold.verifiers.verdict import Reason

MAX_MEMORY_BYTES = 2 << 30
"""Address space of the child. Stops expressions that expand until the machine swaps."""

FLOAT_DECIMALS = 12
"""Decimals that have to agree where sympy holds a float. math-verify's own 6 would take 3.141593 for pi."""

PROBE_DIGITS = 30
"""To how many digits two numbers are worked out before they are believed to be equal."""

MAX_SHOWN_CHARS = 200
_EXIT_EXHAUSTED = 3


def main() -> None:
    with Conversation() as conversation:
        _serve(conversation)


def _serve(conversation: Conversation) -> None:
    limit_memory(MAX_MEMORY_BYTES)
    logging.disable(logging.CRITICAL)  # math-verify warns that nobody keeps a deadline; the parent does
    try:
        import math_verify  # noqa: F401
    except ImportError as error:
        conversation.reply({"error": str(error)})
        return
    conversation.reply({"ready": True})
    for request in conversation.requests():
        try:
            reply = compare(request["gold"], request["answer"])
        except (MemoryError, RecursionError):
            os._exit(_EXIT_EXHAUSTED)
        conversation.reply(reply)


def compare(gold: str, answer: str) -> dict[str, Any]:
    import math_verify

    wanted, offered = _parse(gold), _parse(answer)
    evidence = {"gold": _shown(wanted), "answer": _shown(offered)}
    if not wanted:
        return {"reason": Reason.GOLD_UNPARSED, "evidence": evidence}
    if not offered:
        return {"reason": Reason.ANSWER_UNPARSED, "evidence": evidence}
    try:
        same = math_verify.verify(
            wanted, offered, float_rounding=FLOAT_DECIMALS, timeout_seconds=None, raise_on_error=True
        ) and not _differ_in_scale(wanted[0], offered[0])
    except (MemoryError, RecursionError):
        raise
    except Exception as error:  # sympy gives up on the pair in many ways; both were read, and nothing shows them equal
        same = False
        evidence["error"] = f"{type(error).__name__}: {error}"[:MAX_SHOWN_CHARS]
    return {"reason": Reason.MATCH if same else Reason.MISMATCH, "evidence": evidence}


def _differ_in_scale(wanted: Any, offered: Any) -> bool:
    """math-verify takes any two tiny numbers for equal: it rounds their difference to zero (2^{-99} and 2^{-98})."""
    if not (getattr(wanted, "is_number", False) and getattr(offered, "is_number", False)):
        return False
    a, b = wanted.evalf(PROBE_DIGITS), offered.evalf(PROBE_DIGITS)
    return bool(abs(a - b) > max(abs(a), abs(b)) * 10**-FLOAT_DECIMALS)


def _parse(text: str) -> list[Any]:
    import math_verify

    try:
        parsed = math_verify.parse(
            f"${text.replace('$', ' ')}$",
            extraction_config=[math_verify.LatexExtractionConfig()],
            fallback_mode="no_fallback",
            parsing_timeout=None,
            raise_on_error=True,
        )
    except (MemoryError, RecursionError):
        raise
    except Exception:  # of whatever kind: the text is no mathematics to it
        return []
    return list(parsed)


def _shown(parsed: list[Any]) -> str | None:
    return str(parsed[0])[:MAX_SHOWN_CHARS] if parsed else None


if __name__ == "__main__":
    main()
