"""A mathematical answer: what the response commits to, compared with gold by the ladder of `ladder.py`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from truegold.verifiers.errors import ConfigError
from truegold.verifiers.extract import committed_answer
from truegold.verifiers.math.ladder import judge, wants_several
from truegold.verifiers.math.policy import Policy, policy_of
from truegold.verifiers.verdict import Reason, Verdict

_NO_INFO: Mapping[str, Any] = {}
RESPONSES = Policy(percent="either")
"""The default for whole responses: a percent sign behind the very number that gold is counts as a unit."""

_PERCENT = re.compile(r"percent|per cent|%|％|百分|procent|prozent|pourcent|porcent|процент", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class MathVerifier:
    """Verifier `math`. `policy` holds for every row; `info` may set the fields of `Policy` for one.

    The default policy is that of `equivalent` but for one thing: `25%` answers a gold of 25. Where the problem is known
    and speaks of no percentage, it does not.
    """

    policy: Policy = field(default=RESPONSES)
    name: str = "math"
    version: str = "2"

    def __call__(
        self,
        response: str,
        gold: str | None,
        *,
        problem: str | None = None,
        info: Mapping[str, Any] = _NO_INFO,
    ) -> Verdict:
        try:
            policy = policy_of({**self.policy.changed(), **info}) if info else self.policy
        except ConfigError as error:
            return Verdict(None, Reason.VERIFIER_ERROR, evidence={"error": str(error)})
        if policy.percent == "either" and "percent" not in info and problem and not _PERCENT.search(problem):
            policy = replace(policy, percent="value")
        found = committed_answer(response, several=wants_several(gold))
        if found is None:
            return judge(gold, "", policy)
        verdict = judge(gold, found.text, policy, boxed=found.form == "boxed")
        return replace(verdict, evidence={**verdict.evidence, "form": found.form})

    def gold_response(self, gold: str, solution: str | None) -> str | None:
        return f"\\boxed{{{gold}}}"
