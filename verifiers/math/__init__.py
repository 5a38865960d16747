"""Judges mathematical answers: `equivalent` compares two, `MathVerifier` a response with its gold."""

from truegold.verifiers.math.policy import Policy
from truegold.verifiers.math.verifier import MathVerifier, equivalent

__all__ = ["MathVerifier", "Policy", "equivalent"]
