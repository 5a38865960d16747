"""Composes a reward from named terms: verifiers' scores with weights, and perhaps with gates (terms that must pass).

    Term("format", "format", weight=0.1)
    Term("correct", gate="format")                                       counts only if the format is right
    Term("length", "length", offset=-1.0, args={"max": 512}, gate="correct")    DAPO's penalty from -1 to 0, gated

    format 1, correct 1, length 0.25   ->   0.1 + 1 - 0.75 = 0.35
    format 0, correct 1, length 1      ->   0 + 0 + 0 = 0, since both gates are shut

A term adds `weight * (score + offset)`. A term with a `gate` adds this only if the gate is open: the term of that name
has score 1, and its own gate is open too. A term with a shut gate adds 0, and its score is ignored. A term of weight 0
is measured and adds nothing.

A term with a weight needs a score, and so does each of its gates. If one of these scores is None and no gate is shut,
the whole reward is None, since a partial sum would be misleading.

Not covered: judging (see `verify_batch`), and rewards that depend on other completions of a group.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from truegold.verifiers.checked import checked_class, refuse
from truegold.verifiers.registry import find_option_mistakes
from truegold.verifiers.sandbox.errors import ConfigError
from truegold.verifiers.verdict import Verdict

MAX_CHECKED = 256
"""Maximum number of entries of `_CHECKED`."""

_CHECKED: set[str] = set()
"""The texts of terms in which `find_mistakes` found no mistake."""


@checked_class
@dataclass(frozen=True, slots=True)
class Term:
    """One term, which adds `weight * (score + offset)` where its gate is open."""

    name: str
    """The name of the term, which gates and `Reward.parts` refer to."""
    verifier: str | None = None
    """The name of a verifier; None for the verifier that each row names, with the row's arguments."""
    weight: float = 1.0
    """The factor of score plus offset; with 0 the score is measured but adds nothing."""
    offset: float = 0.0
    """The number that is added to the score; -1 turns a score into a penalty."""
    args: Mapping[str, Any] = field(default_factory=dict)
    """The arguments of `verifier`; without `verifier` they come from the row."""
    gate: str | None = None
    """The name of the term that has to pass, or None if this term always counts."""


@dataclass(frozen=True, slots=True)
class Reward:
    """The reward of one completion."""

    value: float | None
    """The clipped sum of the parts, or None if it could not be judged."""
    parts: Mapping[str, float | None]
    """Maps the name of each term to its contribution, or to None if that is unknown."""
    missing: tuple[str, ...] = ()
    """The names of the terms whose missing score made the value None."""


def compose(terms: Sequence[Term], verdicts: Sequence[Verdict], clip: tuple[float, float] | None = None) -> Reward:
    """Return the reward of one completion from its verdicts, one for each term in order.

    `clip` holds the lower and the upper bound of the sum. Raises ConfigError if the terms have mistakes
    (`find_mistakes`), or if there is not exactly one verdict for each term.
    """
    of_their_kinds = all(isinstance(term, Term) for term in terms) and all(
        isinstance(each, Verdict) for each in verdicts
    )
    if not of_their_kinds:
        refuse(compose, terms=terms, verdicts=verdicts)
    _check(terms)
    if clip is not None and not (len(clip) == 2 and clip[0] <= clip[1]):
        raise ConfigError(f"compose: clip is {clip!r}.", "It holds the lower and the upper bound, such as (-1, 1).")
    if len(verdicts) != len(terms):
        raise ConfigError(f"compose: there are {len(terms)} terms and {len(verdicts)} verdicts.", "Give one for each.")
    scores = {term.name: verdict.score for term, verdict in zip(terms, verdicts, strict=True)}
    by_name = {term.name: term for term in terms}
    parts: dict[str, float | None] = {}
    missing: list[str] = []
    for term in terms:
        counts = _gates_are_open(term, by_name, scores)
        score = scores[term.name]
        if term.weight == 0.0 or counts is False:
            parts[term.name] = 0.0
        elif counts is None or score is None:
            parts[term.name] = None
            missing += _unscored_terms(term, by_name, scores)
        else:
            parts[term.name] = term.weight * (score + term.offset)
    if missing:
        return Reward(None, parts, tuple(dict.fromkeys(missing)))
    value = sum(part for part in parts.values() if part is not None)
    return Reward(value if clip is None else min(max(value, clip[0]), clip[1]), parts)


def _check(terms: Sequence[Term]) -> None:
    """Raise ConfigError if the terms have mistakes. Terms are checked once, since all completions share them."""
    text = repr(terms)
    if text in _CHECKED:
        return
    if mistakes := find_mistakes(terms):
        raise ConfigError(f"compose: {mistakes[0].rstrip('.')}.", "Correct the terms.")
    if len(_CHECKED) >= MAX_CHECKED:
        _CHECKED.clear()
    _CHECKED.add(text)


def find_mistakes(terms: Sequence[Term]) -> list[str]:
    """Return one line for each mistake in the terms, including unknown verifiers and options."""
    names = [term.name for term in terms]
    mistakes = [] if terms else ["there are no terms"]
    mistakes += [f"two terms are named {name!r}" for name in dict.fromkeys(names) if names.count(name) > 1]
    for term in terms:
        if not term.name.strip():
            mistakes.append("a term has no name")
        if not (math.isfinite(term.weight) and math.isfinite(term.offset)):
            mistakes.append(f"term {term.name!r}: weight and offset must be finite numbers")
        if term.gate is not None and term.gate not in names:
            mistakes.append(f"term {term.name!r}: its gate {term.gate!r} is not a term; there are {', '.join(names)}")
        if term.verifier is None and term.args:
            mistakes.append(f"term {term.name!r}: args need a verifier; the row's verifier takes the row's arguments")
        if term.verifier is not None:
            try:
                wrong = find_option_mistakes(term.verifier, term.args)
            except ConfigError as error:
                wrong = [str(error)]
            mistakes += [f"term {term.name!r}: {mistake}" for mistake in wrong]
    return mistakes + _describe_circles(terms)


def _gates_are_open(term: Term, by_name: Mapping[str, Term], scores: Mapping[str, float | None]) -> bool | None:
    """Return whether all gates of `term` are open, or None if a missing score leaves that unknown."""
    if term.gate is None:
        return True
    gate_counts = _gates_are_open(by_name[term.gate], by_name, scores)
    gate_score = scores[term.gate]
    if gate_counts is False or (gate_score is not None and gate_score < 1.0):
        return False
    return None if gate_counts is None or gate_score is None else True


def _unscored_terms(term: Term, by_name: Mapping[str, Term], scores: Mapping[str, float | None]) -> list[str]:
    """Return the names of the terms without a score among `term` and the gates before it."""
    names = [] if term.gate is None else _unscored_terms(by_name[term.gate], by_name, scores)
    return [*names, term.name] if scores[term.name] is None else names


def _describe_circles(terms: Sequence[Term]) -> list[str]:
    gates = {term.name: term.gate for term in terms}
    circles = []
    reported: set[str] = set()
    for name in gates:
        path = [name]
        while (gate := gates.get(path[-1])) is not None and gate not in path:
            path.append(gate)
        if gate == name and name not in reported:
            reported |= set(path)
            circles.append(f"the gates go in a circle: {' -> '.join([*path, name])}")
    return circles
