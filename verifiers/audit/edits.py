"""Edits of a gold answer that change its meaning: `edits("5")` yields `6`, `-5`, `5 \\text{ or } 6`, `6=5`, ...

A verifier that accepts one of them has made a false positive. Those marked `policy` are nearly right, and a grader may
fairly accept them, such as 3.46 for 2 sqrt 3. The rules stand in `edits_values.py` (another value) and
`edits_structures.py` (more, fewer or other parts). Not covered: golds of no certain form (`reading.py`).
"""

from __future__ import annotations

from collections.abc import Iterator

from truegold.verifiers.audit import edits_structures, edits_values  # noqa: F401 - the rules
from truegold.verifiers.audit.reading import form_of
from truegold.verifiers.audit.values import neighbour
from truegold.verifiers.audit.variants import EDITS, Variant


def edits(gold: str) -> Iterator[Variant]:
    """Wrong answers close to `gold`, each text once, in a fixed order."""
    return EDITS.variants(gold)


def wrong_answer(gold: str) -> str | None:
    """A single, ordinary wrong answer of the same form; None where the form of `gold` is not certain."""
    form = form_of(gold)
    return None if form is None else neighbour(form)
