"""Labels in front of values, equations, inequalities, chains of equal values.

x = 5 and 5                  the label is understood
x = 5 and y = 5              different: of coordinates, the label says which line is meant
f(n) = n^2 and f(x) = x^2    the same function
2x = 4y and x - 2y = 0       the same equation
6*7 = 42                     one answer said twice; 6 = 5 is two, whichever of them is right
"""

from __future__ import annotations

from gmpy2 import mpq

from truegold.verifiers.math.comparison.lists import elementwise
from truegold.verifiers.math.comparison.outcome import MINUS_ONE, OTHER_STRUCTURE, ZERO, Comparer, Outcome
from truegold.verifiers.math.evaluation.identity import proportional, same_value, sign_of_ratio
from truegold.verifiers.math.labels import argument_of, is_tuple_of_names, labelled
from truegold.verifiers.math.substitute import renamed, substituted
from truegold.verifiers.math.tree import (
    VALUES,
    Add,
    BareList,
    Call,
    Chain,
    Group,
    Matrix,
    Mul,
    Node,
    Num,
    Pow,
    Ratio,
    Sym,
    symbols,
)

COORDINATES = frozenset({"x", "y", "z"})
"""Labels that make an equation of a line out of a value: x=5 is not y=5."""

_REVERSED = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "=": "=", "!=": "!="}
_UPWARD = {">": "<", ">=": "<="}


def same_relation(within: Comparer, gold: Node, answer: Node) -> Outcome:
    """At least one side is a relation."""
    (label, value), (other, offered) = labelled(gold), labelled(answer)
    chains = isinstance(gold, Chain) and isinstance(answer, Chain)
    if value is not None and offered is not None:
        if label is not None and other is not None and label != other and {label, other} & COORDINATES:
            both = {label, other} <= COORDINATES
            return _same_equation(within, gold, answer) if both else within.same(value, offered)
        if isinstance(gold, Chain) and isinstance(answer, Chain):
            offered = _with_argument_of(gold, answer, offered)
        outcome = within.same(value, offered)
        if outcome.same or not chains or (label is not None and other is not None):
            return outcome
    if chains:
        return _same_equation(within, gold, answer)
    if isinstance(gold, Chain) and gold.operators[0] == "=":
        named = _value_of_expression(gold, answer)
        if named is not None:
            return OTHER_STRUCTURE if symbols(named) else within.same(named, answer)
        if isinstance(gold.parts[0], Ratio) and gold.operators == ("=",):
            return within.same(gold.parts[1], answer)
    return same_throughout(within, gold, answer)


def _with_argument_of(gold: Chain, answer: Chain, offered: Node) -> Node:
    """f(n)=n^2 is f(x)=x^2."""
    wanted, given = argument_of(gold), argument_of(answer)
    if wanted and given and wanted != given and wanted not in symbols(offered):
        return renamed(offered, {given: wanted})
    return offered


def _value_of_expression(gold: Chain, answer: Node) -> Node | None:
    """The 3 of `AB \\cdot CD = 3`, where the answer is a bare value."""
    if len(gold.parts) != 2 or not isinstance(answer, VALUES):
        return None
    sides = [part for part in gold.parts if not isinstance(part, VALUES) or not symbols(part)]
    return gold.parts[1] if len(sides) == 1 and isinstance(gold.parts[0], (Mul, Ratio, Sym, Call, Pow)) else None


def same_throughout(within: Comparer, gold: Node, answer: Node) -> Outcome:
    """Gold is no relation: each part of the answer must say the same; behind ~, parts are only near it."""
    if not isinstance(answer, Chain) or isinstance(gold, Chain):
        return OTHER_STRUCTURE
    parts = list(answer.parts)
    if "~" in answer.operators and set(answer.operators) <= {"=", "~"}:
        parts = parts[: answer.operators.index("~") + 1]
        if len(parts) == 1 and isinstance(parts[0], Sym):
            parts = list(answer.parts[1:])
        return within.same(gold, parts[0] if len(parts) == 1 else Chain(tuple(parts), ("=",) * (len(parts) - 1)))
    if set(answer.operators) != {"="}:
        return OTHER_STRUCTURE
    outcomes = [within.same(gold, part) for part in parts]
    if all(outcome.same for outcome in outcomes):
        return outcomes[0]
    return Outcome(False, "structure", hedged=any(outcome.same for outcome in outcomes))


def is_repeated_list(node: Chain) -> bool:
    """{1, 2} = {2, 1}"""
    parts = node.parts
    lists = set(node.operators) == {"="} and all(isinstance(part, (BareList, Group, Matrix)) for part in parts)
    return lists and not is_tuple_of_names(parts[0], parts[1])


def _same_equation(within: Comparer, gold: Node, answer: Node) -> Outcome:
    assert isinstance(gold, Chain) and isinstance(answer, Chain)
    simple = len(gold.operators) == len(answer.operators) == 1
    if not simple or not all(isinstance(part, VALUES) for part in (*gold.parts, *answer.parts)):
        return _same_chain(within, gold, answer)
    left, right = _difference(gold), _difference(answer)
    if gold.operators != ("=",) or answer.operators != ("=",):
        return _same_inequality(left, gold.operators[0], right, answer.operators[0])
    found = proportional(left, right)
    if found.same is False and (_solves(gold, right) or _solves(answer, left)):
        return Outcome(True, "sampled")
    return Outcome(found.same, found.rung)


def _difference(chain: Chain) -> Node:
    return Add((chain.parts[0], Mul((MINUS_ONE, chain.parts[1]))))


def _same_inequality(left: Node, first: str, right: Node, second: str) -> Outcome:
    """Differences of two sides and their relation to 0: one must be a positive multiple of the other."""
    if first in _UPWARD:
        left, first = Mul((MINUS_ONE, left)), _UPWARD[first]
    if second in _UPWARD:
        right, second = Mul((MINUS_ONE, right)), _UPWARD[second]
    if first != second:
        return OTHER_STRUCTURE
    found = proportional(left, right)
    if not found.same or first == "!=":
        return Outcome(found.same, found.rung)
    return Outcome(sign_of_ratio(left, right) == 1, "sampled")


def _solves(solved: Chain, difference: Node) -> bool:
    """y = f(x) puts the other equation's sides equal, and that one is linear in y."""
    label, value = labelled(solved)
    if label is None or value is None or not isinstance(value, VALUES) or label in symbols(value):
        return False
    if label not in symbols(difference):
        return False
    if same_value(substituted(difference, label, value), ZERO).same is not True:
        return False
    at = [substituted(difference, label, Num(mpq(n))) for n in (0, 1, 2)]
    curvature = Add((at[0], Mul((Num(mpq(-2)), at[1])), at[2]))
    return same_value(curvature, ZERO).same is True


def _same_chain(within: Comparer, gold: Chain, answer: Chain) -> Outcome:
    """1 < x < 2 as it is written, or from right to left."""
    if gold.operators == answer.operators:
        return elementwise(within, list(gold.parts), list(answer.parts))
    if [_REVERSED.get(operator) for operator in reversed(answer.operators)] == list(gold.operators):
        return elementwise(within, list(gold.parts), list(reversed(answer.parts)))
    return OTHER_STRUCTURE
