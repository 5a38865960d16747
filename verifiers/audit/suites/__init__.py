"""Vets test suites: do they accept right programs and refuse wrong ones?"""

from truegold.verifiers.audit.suites.vet_state import Severity, SuiteFinding, SuiteOutcome, VetOptions, VetReason
from truegold.verifiers.audit.suites.vetting import Vetting, vet

__all__ = ["Severity", "SuiteFinding", "SuiteOutcome", "VetOptions", "VetReason", "Vetting", "vet"]
