"""Vets test suites: checks that they accept right programs and refuse wrong ones."""

from truegold.verifiers.audit.suites.case_changes import ChangedTests, change_cases, forms_of_change, with_numbers
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
    "ChangedTests",
    "Severity",
    "SuiteFinding",
    "SuiteOutcome",
    "VetOptions",
    "VetReason",
    "Vetting",
    "add_cases",
    "change_cases",
    "forms_of_change",
    "vet",
    "with_numbers",
]
