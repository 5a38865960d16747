"""What is right: verdicts, the verifiers that give them, and the runner that applies them to many rows."""

from truegold.verifiers._judge import Item
from truegold.verifiers.batch import verify_batch
from truegold.verifiers.choice import ChoiceVerifier
from truegold.verifiers.decorator import verifier
from truegold.verifiers.errors import ConfigError, GuardError, InputError, SetupError, TruegoldError
from truegold.verifiers.exact import ExactVerifier
from truegold.verifiers.extract import committed_answer
from truegold.verifiers.gold import gold_response
from truegold.verifiers.math import MathVerifier, equivalent
from truegold.verifiers.registry import available, fingerprint, resolve
from truegold.verifiers.verdict import Reason, Verdict, Verifier

__all__ = [
    "ChoiceVerifier",
    "ConfigError",
    "ExactVerifier",
    "GuardError",
    "InputError",
    "Item",
    "MathVerifier",
    "Reason",
    "SetupError",
    "TruegoldError",
    "Verdict",
    "Verifier",
    "available",
    "committed_answer",
    "equivalent",
    "fingerprint",
    "gold_response",
    "resolve",
    "verifier",
    "verify_batch",
]
