"""Compares the tree of an answer with the tree of gold.

`dispatch` chooses the module for the shapes of the two sides: `lists` (also tuples and matrices), `sets`, `relations`
(equations and labels), or `single_values` (values, units, words). An ambiguous side, such as (1, 2), is read as a pair
or an interval, like the other side.
"""

from truegold.verifiers.math.comparison.dispatch import compare

__all__ = ["compare"]
