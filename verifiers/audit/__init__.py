"""Audits a verifier: rules that make right and wrong answers, a check of its contract, and the card that says.

check("math")                       keeps it the contract of a verifier?
audit("math", golds)                how often does it err on these golds?
markdown(Card(report, ...))         the two as a page
rewrites(gold), edits(gold)         right answers respelled, wrong ones close by
gaming_cases(gold), HOSTILE         responses that must not pay, texts that must not crash
assert_contract("checks.py:mine")   the contract, as an assertion in the tests of your own verifier
"""

from truegold.verifiers.audit.audit_report import AuditReport, audit
from truegold.verifiers.audit.card import Card, as_json, markdown
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
