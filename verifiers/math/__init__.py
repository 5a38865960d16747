"""Is a mathematical answer right? A ladder from cheap and certain to slow and symbolic.

`equivalent(gold, answer)` compares two answers, `MathVerifier` judges whole responses. sympy is never imported into the
calling process: the symbolic rung runs in a child process that can be killed.
"""

from truegold.verifiers.math.ladder import equivalent
from truegold.verifiers.math.verifier import MathVerifier

__all__ = ["MathVerifier", "equivalent"]
