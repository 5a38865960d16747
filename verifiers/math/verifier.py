"""The verifier `math`: take the committed answer out of a response, compare it with gold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from truegold.verifiers.extract import committed_answer
from truegold.verifiers.math.ladder import MAX_DECIMALS, equivalent
from truegold.verifiers.verdict import Reason, Verdict

_NO_INFO: Mapping[str, Any] = {}


@dataclass(frozen=True, slots=True)
class MathVerifier:
    """Verifier `math`. Reads `info["decimals"]`: how many decimals have to agree (absent: all of them)."""

    name: str = "math"
    version: str = "1"

    def __call__(
        self,
        response: str,
        gold: str | None,
        *,
        problem: str | None = None,
        info: Mapping[str, Any] = _NO_INFO,
    ) -> Verdict:
        decimals = info.get("decimals")
        if not _is_decimals(decimals):
            error = f"decimals must be a whole number from 0 to {MAX_DECIMALS}, got {decimals!r}"
            return Verdict(None, Reason.VERIFIER_ERROR, evidence={"error": error})
        found = committed_answer(response)
        if found is None:
            return equivalent(gold, "", decimals=decimals)
        verdict = equivalent(gold, found.text, decimals=decimals)
        return replace(verdict, evidence={**verdict.evidence, "form": found.form})

    def gold_response(self, gold: str, solution: str | None) -> str | None:
        return f"\\boxed{{{gold}}}"


def _is_decimals(value: object) -> bool:
    if value is None:
        return True
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_DECIMALS
