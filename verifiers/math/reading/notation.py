"""How ambiguous notation is read: one choice for each ambiguity."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Notation:
    group_digits: bool = True
    """1,234 is one number."""
    tight: bool = False
    """1/2x is 1/(2x)."""
    letter_units: bool = False
    """5m is five metres."""
    mixed: bool = True
    """2\\frac13 is two and a third; where not, it is two thirds."""


USUAL = Notation()
