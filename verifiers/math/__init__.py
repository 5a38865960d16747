"""Mathematical answers: are two of them the same?"""

from truegold.verifiers.math.ladder import equivalent
from truegold.verifiers.math.policy import Policy
from truegold.verifiers.math.verifier import MathVerifier

__all__ = ["MathVerifier", "Policy", "equivalent"]
