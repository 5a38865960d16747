"""What a perfect response would look like to a verifier: gold must pass it before anything is trained on the row.

    math,  gold "\\frac12"                      ->  "\\boxed{\\frac12}"
    code,  no gold, solution "print(1)"         ->  the solution in a code block
    exact, no gold                              ->  None

A verifier may define `gold_response(gold, solution) -> str | None`. For one that does not, such as a plain function,
the gold answer itself is the response. None means that a perfect response cannot be made up.

A verifier that judges rows without a gold answer, such as programs by their tests, says `judges_solutions = True`. Its
`gold_response` is then called with None for gold where a row has a solution only; that of other verifiers always gets a
text for gold.
"""

from __future__ import annotations

from truegold.verifiers.verdict import Verifier


def gold_response(verifier: Verifier, gold: str | None, solution: str | None = None) -> str | None:
    """Return the response that must earn the full score from `verifier`; None where none can be made up."""
    if gold is None and (solution is None or not judges_solutions(verifier)):
        return None
    make_response = getattr(verifier, "gold_response", None)
    if make_response is None:
        return gold
    response: str | None = make_response(gold, solution)
    return response


def judges_solutions(verifier: Verifier) -> bool:
    """Return whether a solution alone makes a perfect response, without a gold answer."""
    return getattr(verifier, "judges_solutions", False) is True
