"""What suspicion is computed from: labelled items, and the answers that systems gave to them.

    Item("17", gold="18", prompt="Janet's ducks lay 16 eggs ...")
    Sample("17", system="model-a", answer="26")                          an answer that was extracted before
    Sample("17", system="model-a", response="So it is \\boxed{26}.")     a whole response

Several samples of one system for one item are repeated draws. A sample that a verifier has judged before brings its
`score`, and is not judged again.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_CLOSED = re.compile(r"\s*(?:\(?[A-Za-z]\)?[.:]?|yes|no|true|false|是|否|对|错)\s*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Item:
    """One labelled problem."""

    id: str
    """The name by which samples know the item."""
    gold: str | None
    """The label; None where there is none to suspect."""
    prompt: str | None = None
    """Optional; prompt and solution serve only as a weak guess at the item's difficulty."""
    solution: str | None = None
    """A worked solution; optional, like the prompt."""
    verifier: str = "math"
    """The verifier that decides whether a sample gives the label."""
    verifier_args: str = "{}"
    """A JSON object, as in the canonical row."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One answer of one system to one item: the extracted `answer`, or the whole `response`."""

    id: str
    """The item's."""
    system: str
    """The model or the person that answered."""
    answer: str | None = None
    """The answer, where it was extracted before."""
    response: str | None = None
    """The whole response, where the verifier is to extract the answer."""
    score: float | None = None
    """The score of an earlier verdict in [0, 1]; None where the verifier could not judge."""
    judged: bool = False
    """Whether there was an earlier verdict."""
    step: int | None = None
    """The step of the system's training at which it was drawn."""


def has_open_answer(item: Item) -> bool:
    """Whether the answer is not one of a few, where independent errors would agree by chance."""
    return item.verifier != "choice" and item.gold is not None and not _CLOSED.fullmatch(item.gold)
