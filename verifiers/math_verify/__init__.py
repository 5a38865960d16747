"""The verifier `math_verify`: Hugging Face's Math-Verify by its name, in a process that can be killed."""

from truegold.verifiers.math_verify import MathVerifyVerifier

__all__ = ["MathVerifyVerifier"]
