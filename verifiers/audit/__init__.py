"""How good is a verifier? Rules that make right and wrong answers, a check of its contract, and the card that says.

    check("math")                       keeps it the contract of a verifier?
    audit("math", golds)                how often does it err on these golds?
    markdown(Card(report, ...))         the two as a page
    rewrites(gold), edits(gold)         right answers respelled, wrong ones close by
    gaming_cases(gold), HOSTILE         responses that must not pay, texts that must not crash

For the tests of your own verifier: `truegold.verifiers.audit.pytest_helper.assert_contract`.
"""

from truegold.verifiers.audit.card import Card, as_json, markdown
from truegold.verifiers.audit.contract import CheckResult, check
from truegold.verifiers.audit.gaming import GamingCase, gaming_cases
from truegold.verifiers.audit.hostile import HOSTILE, HostileCase
from truegold.verifiers.audit.measure import AuditReport, audit
from truegold.verifiers.audit.pytest_helper import assert_contract
from truegold.verifiers.audit.variants import Variant, edits, rewrites

__all__ = [
    "HOSTILE",
    "AuditReport",
    "Card",
    "CheckResult",
    "GamingCase",
    "HostileCase",
    "Variant",
    "as_json",
    "assert_contract",
    "audit",
    "check",
    "edits",
    "gaming_cases",
    "markdown",
    "rewrites",
]
