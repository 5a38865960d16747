"""Runs Math-Verify in a child process: reads `{"gold", "response"}` and replies with the fields of a verdict.

Math-Verify's own timeouts need a signal and are off. Instead, the parent process kills this process after a deadline.
Memory is limited, because a tower of powers could fill it.
"""

from __future__ import annotations

import logging
from typing import Any

from truegold.verifiers.sandbox.child_process import Conversation, limit_memory
from truegold.verifiers.verdict import Reason

MAX_BYTES = 4 * 2**30
"""The memory limit of this process in bytes."""
SHOWN_CHARS = 500


def main() -> None:
    """Judge responses until the parent closes the connection."""
    with Conversation() as conversation:
        import math_verify

        logging.disable(logging.CRITICAL)
        limit_memory(MAX_BYTES)
        conversation.reply({"ready": True})
        for request in conversation.requests():
            conversation.reply(_judge(math_verify, request["gold"], request["response"]))


def _judge(math_verify: Any, gold: str, response: str) -> dict[str, Any]:
    framed = gold if "\\boxed" in gold or "$" in gold else f"\\boxed{{{gold}}}"
    try:
        parsed_gold = math_verify.parse(framed, parsing_timeout=None)
        answer = math_verify.parse(response, parsing_timeout=None)
        evidence = {"gold": _shown(parsed_gold), "answer": _shown(answer)}
        if not parsed_gold:
            return _reply(None, Reason.GOLD_UNPARSED, None, evidence)
        if not answer:
            return _reply(0.0, Reason.NO_ANSWER, None, evidence)
        matches = bool(math_verify.verify(parsed_gold, answer, timeout_seconds=None))
    except MemoryError:
        return _reply(None, Reason.LIMIT, None, {"error": "Math-Verify ran out of memory"})
    except Exception as error:
        return _reply(None, Reason.VERIFIER_ERROR, None, {"error": f"{type(error).__name__}: {error}"[:SHOWN_CHARS]})
    extracted = str(answer[-1])[:SHOWN_CHARS]
    return _reply(float(matches), Reason.MATCH if matches else Reason.MISMATCH, extracted, evidence)


def _shown(parsed: list[Any]) -> list[str]:
    return [str(part)[:SHOWN_CHARS] for part in parsed]


def _reply(score: float | None, reason: Reason, extracted: str | None, evidence: dict[str, Any]) -> dict[str, Any]:
    return {"score": score, "reason": reason, "extracted": extracted, "evidence": evidence}


if __name__ == "__main__":
    main()
