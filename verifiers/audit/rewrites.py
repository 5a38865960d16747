"""Respellings of a gold answer that keep its meaning: `rewrites("5")` yields `5.0`, `x=5`, `\\text{5}`, ...

A verifier that refuses one of them has made a false negative. Those marked `policy` keep the mathematical value, and
yet a grader may fairly refuse them, such as pi/6 for 30 degrees. The rules stand in the files `rewrites_*.py`: what
surrounds an answer, single numbers, numbers with a unit, structures. Not covered: golds of no certain form.
"""

from __future__ import annotations

from collections.abc import Iterator

from truegold.verifiers.audit import (  # noqa: F401 - the rules
    rewrites_markup,
    rewrites_measures,
    rewrites_numbers,
    rewrites_structures,
)
from truegold.verifiers.audit.variants import REWRITES, Variant


def rewrites(gold: str) -> Iterator[Variant]:
    """Respellings of `gold`, each text once, in a fixed order."""
    return REWRITES.variants(gold)
