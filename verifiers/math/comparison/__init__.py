"""Two trees, one question: is the answer the same as gold?

Values go to `identity`, sets of numbers to `realset`; this package knows the shapes: lists, tuples, labels, equations,
matrices, units, words. What either side leaves open (a bracket that may be a pair or an interval, a label, a unit) the
other side decides; gold's form decides where a policy says so.
"""

from truegold.verifiers.math.comparison.outcome import Outcome
from truegold.verifiers.math.comparison.whole import compare

__all__ = ["Outcome", "compare"]
