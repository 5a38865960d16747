"""Vets test suites: checks that they accept right programs and refuse wrong ones."""

from truegold.verifiers.audit.suites.vet_state import (
    Severity,
    SuiteFinding,
    SuiteOutcome,
    VetOptions,
    VetReason,
    add_cases,
)
from truegold.verifiers.audit.suites.vetting import PROPOSED, Vetting, vet

__all__ = [
    "PROPOSED",
    "Severity",
    "SuiteFinding",
    "SuiteOutcome",
    "VetOptions",
    "VetReason",
    "Vetting",
    "add_cases",
    "vet",
]
