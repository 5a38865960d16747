"""How ambiguous notation is read: one choice for each ambiguity."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Notation:
    """One reading of all that is ambiguous; the defaults are the usual one."""

    group_digits: bool = True
    """`1,234` is one number rather than a list of two."""
    tight_products: bool = False
    """`1/2x` is 1/(2x) rather than x/2."""
    letter_units: bool = False
    """`5m` is five metres rather than a product."""
    mixed_numbers: bool = True
    """`2\\frac13` is two and a third rather than two thirds."""


USUAL = Notation()
