"""Audits verifiers: measures their errors on made answers, and checks that they keep the contract of `verdict`.

check("math")                       whether the verifier keeps the contract
audit("math", golds)                the verifier's error rates on these golds
markdown(Card(report, ...))         both results as a page
rewrites(gold), edits(gold)         right answers in other spellings, and slightly wrong answers
gaming_cases(gold), HOSTILE         responses that must not get the full score, and texts that must not crash a verifier
assert_contract("checks.py:mine")   an assertion of the contract, for the tests of your own verifier
"""

from truegold.verifiers.audit.audit_report import AuditReport, Card, as_json, audit, markdown
from truegold.verifiers.audit.contract import CheckResult, assert_contract, check
from truegold.verifiers.audit.made_answers import (
    HOSTILE,
    GamingCase,
    HostileCase,
    Variant,
    edits,
    gaming_cases,
    rewrites,
)

__all__ = [
    "HOSTILE", "AuditReport", "Card", "CheckResult", "GamingCase", "HostileCase", "Variant", "as_json",
    "assert_contract", "audit", "check", "edits", "gaming_cases", "markdown", "rewrites",
]  # fmt: skip
