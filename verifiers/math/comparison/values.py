"""Two expressions that each stand for one value: equal, equal when rounded, or equal but for `+ C`."""

from __future__ import annotations

from truegold.verifiers.math.comparison.outcome import ZERO, Outcome
from truegold.verifiers.math.comparison.rounding import agrees_when_rounded
from truegold.verifiers.math.evaluation.identity import same_value
from truegold.verifiers.math.labels import symbols_of
from truegold.verifiers.math.policy import Policy
from truegold.verifiers.math.substitute import renamed, substituted
from truegold.verifiers.math.tree import Add, Node, Sym, symbols

_INTEGRATION_LETTERS = "CcKk"


def same_values(gold: Node, answer: Node, policy: Policy) -> Outcome:
    found = same_value(gold, answer)
    if found.same:
        return Outcome(True, found.rung)
    if agrees_when_rounded(gold, answer, policy):
        return Outcome(True, "rounding")
    if found.same is False and isinstance(gold, Add):
        if policy.constant == "optional" and _same_but_constant(gold, answer):
            return Outcome(True, found.rung)
        renamed_answer = _with_constant_of(gold, answer)
        if renamed_answer is not None:
            return same_values(gold, renamed_answer, policy)
    return Outcome(found.same, found.rung)


def _with_constant_of(gold: Node, answer: Node) -> Node | None:
    """x^2+K for x^2+C: the answer with gold's name for the constant of integration."""
    wanted, offered = _added_constant(gold), _added_constant(answer)
    if wanted is None or offered is None or wanted == offered or offered in symbols(gold):
        return None
    return renamed(answer, {offered: wanted})


def _same_but_constant(gold: Node, answer: Node) -> bool:
    name = _added_constant(gold)
    if name is None or _added_constant(answer) is not None:
        return False
    return same_value(substituted(gold, name, ZERO), answer).same is True


def _added_constant(node: Node) -> str | None:
    """The C of x^2 + C."""
    if not isinstance(node, Add):
        return None
    names = [term.name for term in node.terms if isinstance(term, Sym) and term.name[0] in _INTEGRATION_LETTERS]
    if len(names) != 1:
        return None
    others = symbols_of(term for term in node.terms if not (isinstance(term, Sym) and term.name == names[0]))
    return None if names[0] in others else names[0]
