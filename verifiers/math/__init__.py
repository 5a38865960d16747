"""Mathematical answers: are two of them the same?"""

from truegold.verifiers.math.policy import Policy
from truegold.verifiers.math.verifier import MathVerifier, equivalent

__all__ = ["MathVerifier", "Policy", "equivalent"]
