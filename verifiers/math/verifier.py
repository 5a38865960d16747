"""The verifier `math`: what a response commits to, compared with gold by the ladder of `ladder.py`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar

from truegold.verifiers.extract import committed_answer
from truegold.verifiers.math.budget import Budget
from truegold.verifiers.math.ladder import compare_texts, holds_several_answers
from truegold.verifiers.math.policy import Policy, parse_policy
from truegold.verifiers.options import BadOption
from truegold.verifiers.sandbox.errors import ConfigError
from truegold.verifiers.verdict import NO_INFO, Reason, Verdict

RESPONSES = Policy(percent="either")
"""The default for whole responses: a percent sign behind the very number that gold is counts as a unit."""

_PERCENT = re.compile(r"percent|per cent|%|％|百分|procent|prozent|pourcent|porcent|процент", re.IGNORECASE)


_ORDER = re.compile(
    r"\b(?:arrange|order|sort|rank)\b(?=[^.?!]{0,200}\b(?:from|in|to|by)\b)|\b(?:ascending|descending)\b"
    r"|\b(?:in|from) (?:\w+ ){0,2}(?:increasing|decreasing|least|greatest|smallest|largest|shortest|longest)\b"
    r"|从[小大高低长短]到|按.{0,12}(?:顺序|排列)",
    re.IGNORECASE,
)
_NO_ORDER = re.compile(
    r"\border(?:ed)? (?:pairs?|triples?|quadruples?|tuples?|of)\b|\bin order (?:to|that|for)\b", re.IGNORECASE
)
_RATIO = re.compile(r"\bratios?\b|\bproportions?\b|\bodds\b|\bscale\b|比", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class MathVerifier:
    """The verifier of mathematical answers.

    The default policy is that of `equivalent` but for percentages: `25%` answers a gold of 25. Where the problem is
    known and speaks of no percentage, it does not.
    """

    options: ClassVar[tuple[str, ...]] = tuple(option.name for option in fields(Policy))

    policy: Policy = field(default=RESPONSES)
    """The policy of every row; a row's `info` may set the same options otherwise."""
    name: str = "math"
    version: str = "8"

    def __call__(
        self,
        response: str,
        gold: str | None,
        *,
        problem: str | None = None,
        info: Mapping[str, Any] = NO_INFO,
    ) -> Verdict:
        """Return the verdict on the answer that the response commits to; a wrong option in `info` gives no score."""
        try:
            policy = parse_policy({**self.policy.changed_options(), **info}) if info else self.policy
        except ConfigError as error:
            return Verdict(None, Reason.VERIFIER_ERROR, evidence={"error": str(error)})
        if problem:
            policy = _policy_for(problem, policy, info)
        with Budget():
            committed = committed_answer(response, several=holds_several_answers(gold))
            if committed is None:
                return compare_texts("", gold, policy)
            verdict = compare_texts(committed.text, gold, policy, boxed=committed.form == "boxed")
        return replace(verdict, evidence={**verdict.evidence, "form": committed.form})

    def check_options(self, info: Mapping[str, Any]) -> None:
        """Raise BadOption for a value that means nothing."""
        try:
            parse_policy(info)
        except ConfigError as error:
            raise BadOption(error.message) from error

    def gold_response(self, gold: str, solution: str | None) -> str | None:
        r"""Return a perfect response for `gold`: gold in a `\boxed`."""
        return f"\\boxed{{{gold}}}"


def _policy_for(problem: str, policy: Policy, info: Mapping[str, Any]) -> Policy:
    """Return the policy with what the problem says of percentages, ratios and orders, where the row says nothing."""
    if policy.percent == "either" and "percent" not in info and not _PERCENT.search(problem):
        policy = replace(policy, percent="value")
    if policy.colon == "auto" and _RATIO.search(problem):
        policy = replace(policy, colon="ratio")
    if policy.order == "auto" and _ORDER.search(_NO_ORDER.sub(" ", problem)):
        policy = replace(policy, order="ordered")
    return policy
