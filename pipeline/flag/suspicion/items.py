"""What suspicion is computed from: labelled items, and the answers that systems gave to them.

    Item("17", gold="18", prompt="Janet's ducks lay 16 eggs ...")
    Sample("17", system="model-a", answer="26")          an answer that somebody has extracted
    Sample("17", system="model-a", response="So it is \\boxed{26}.")     a whole response

Several samples of one system for one item are repeated draws of it. A sample that a verifier has judged before says so
in `score`; nothing is judged twice then.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Item:
    """One labelled problem. prompt and solution are optional and serve only as a weak guess at its difficulty."""

    id: str
    gold: str | None
    prompt: str | None = None
    solution: str | None = None
    verifier: str = "math"
    verifier_args: str = "{}"
    """A JSON object, as in the canonical row."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One answer of one system to one item: the extracted `answer`, or the whole `response`.

    score: the verdict of an earlier judgement in [0, 1] (`judged` is then true); None means "could not judge".
    """

    id: str
    system: str
    answer: str | None = None
    response: str | None = None
    score: float | None = None
    judged: bool = False
