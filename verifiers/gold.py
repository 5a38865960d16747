"""How a perfect response would look to a verifier: gold must pass its own verifier before anything is trained on it.

A verifier may define `gold_response(gold, solution) -> str | None`. For one that does not, such as a plain function,
the gold answer itself is the response. None means that a perfect response cannot be made up.
"""

from __future__ import annotations

from truegold.verifiers.verdict import Verifier


def gold_response(verifier: Verifier, gold: str | None, solution: str | None = None) -> str | None:
    """The response that must earn the full score from `verifier`."""
    if gold is None:
        return None
    own = getattr(verifier, "gold_response", None)
    if own is None:
        return gold
    response: str | None = own(gold, solution)
    return response
