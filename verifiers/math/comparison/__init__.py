"""Compares two trees: is the answer the same as gold?

`dispatch` finds out which shape the two sides have, and the other modules compare the shapes: `lists` (tuples and
matrices too), `sets`, `relations` (equations, labels), `single_values` (values, units, words). What either side leaves
open (a bracket that may be a pair or an interval, a label, a unit), the other side decides; where a policy says so,
gold's form decides.
"""

from truegold.verifiers.math.comparison.dispatch import compare

__all__ = ["compare"]
