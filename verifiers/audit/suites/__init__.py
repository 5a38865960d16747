"""Vets test suites: do they accept right programs and refuse wrong ones?"""

from truegold.verifiers.audit.suites.findings import Finding, Outcome, Severity, VetReason
from truegold.verifiers.audit.suites.options import VetOptions
from truegold.verifiers.audit.suites.vetting import Vetting, vet

__all__ = ["Finding", "Outcome", "Severity", "VetOptions", "VetReason", "Vetting", "vet"]
