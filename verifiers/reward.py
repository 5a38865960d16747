"""Reward composition: named terms, each a verifier's score with a weight, and gates between them.

    Term("format", "format", weight=0.1)
    Term("correct", gate="format")                                         counts only where the format is right
    Term("length", "length", offset=-1.0, args={"max": 512}, gate="correct")    DAPO's -1..0, for right answers only

    format 1, correct 1, length 0.25   ->   0.1 + 1 - 0.75 = 0.35
    format 0, correct 1, length 1      ->   0 + nothing + nothing = 0

A term adds `weight * (score + offset)`. With a `gate` it adds that only where the term of that name passed (score 1)
and counts itself; otherwise it adds 0 and its score does not matter. A score of None that matters, in a term with a
weight or in the gate of one, makes the reward None: it could not be judged, which is neither 0 nor what is left of the
sum. A term of weight 0 is measured and adds nothing. Not covered: judging (`verify_batch`), anything across the
completions of a group.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from truegold.verifiers.errors import ConfigError
from truegold.verifiers.registry import resolve
from truegold.verifiers.verdict import Verdict


@dataclass(frozen=True, slots=True)
class Term:
    """One term. `verifier` None is the verifier that the row itself names, with the row's own arguments."""

    name: str
    verifier: str | None = None
    weight: float = 1.0
    offset: float = 0.0
    args: Mapping[str, Any] = field(default_factory=dict)
    gate: str | None = None


@dataclass(frozen=True, slots=True)
class Reward:
    """value: the sum of the parts, clipped, or None where it could not be judged. parts: what each term adds, None
    where that is unknown. missing: the terms whose missing score made the value None."""

    value: float | None
    parts: Mapping[str, float | None]
    missing: tuple[str, ...] = ()


def compose(terms: Sequence[Term], verdicts: Sequence[Verdict], clip: tuple[float, float] | None = None) -> Reward:
    """One completion's reward from its verdicts, one for each term in order. The terms are sound (`problems`)."""
    scores = {term.name: verdict.score for term, verdict in zip(terms, verdicts, strict=True)}
    by_name = {term.name: term for term in terms}
    parts: dict[str, float | None] = {}
    missing: list[str] = []
    for term in terms:
        counted = _counts(term, by_name, scores)
        score = scores[term.name]
        if term.weight == 0.0 or counted is False:
            parts[term.name] = 0.0
        elif counted is None or score is None:
            parts[term.name] = None
            missing += _unknown(term, by_name, scores)
        else:
            parts[term.name] = term.weight * (score + term.offset)
    if missing:
        return Reward(None, parts, tuple(dict.fromkeys(missing)))
    value = sum(part for part in parts.values() if part is not None)
    return Reward(value if clip is None else min(max(value, clip[0]), clip[1]), parts)


def problems(terms: Sequence[Term]) -> list[str]:
    """Everything that is wrong with a composition, one line each; a misspelt verifier, for which nothing is judged
    later, included."""
    names = [term.name for term in terms]
    found = [] if terms else ["there are no terms"]
    found += [f"two terms are named {name!r}" for name in dict.fromkeys(names) if names.count(name) > 1]
    for term in terms:
        if not term.name.strip():
            found.append("a term has no name")
        if not (math.isfinite(term.weight) and math.isfinite(term.offset)):
            found.append(f"term {term.name!r}: weight and offset must be finite numbers")
        if term.gate is not None and term.gate not in names:
            found.append(f"term {term.name!r}: its gate {term.gate!r} is no term; there are {', '.join(names)}")
        if term.verifier is None and term.args:
            found.append(f"term {term.name!r}: args are for a verifier it names; the row's own takes the row's")
        if term.verifier is not None:
            try:
                resolve(term.verifier)
            except ConfigError as error:
                found.append(f"term {term.name!r}: {error}")
    return found + _cycles(terms)


def _counts(term: Term, by_name: Mapping[str, Term], scores: Mapping[str, float | None]) -> bool | None:
    """Whether the gates before `term` are open; None where a missing score leaves that unknown."""
    if term.gate is None:
        return True
    before = _counts(by_name[term.gate], by_name, scores)
    score = scores[term.gate]
    if before is False or (score is not None and score < 1.0):
        return False
    return None if before is None or score is None else True


def _unknown(term: Term, by_name: Mapping[str, Term], scores: Mapping[str, float | None]) -> list[str]:
    """The terms without a score on the way to `term`, itself included."""
    before = [] if term.gate is None else _unknown(by_name[term.gate], by_name, scores)
    return [*before, term.name] if scores[term.name] is None else before


def _cycles(terms: Sequence[Term]) -> list[str]:
    gates = {term.name: term.gate for term in terms}
    found = []
    reported: set[str] = set()
    for name in gates:
        path = [name]
        while (gate := gates.get(path[-1])) is not None and gate not in path:
            path.append(gate)
        if gate == name and name not in reported:
            reported |= set(path)
            found.append(f"the gates go in a circle: {' -> '.join([*path, name])}")
    return found
