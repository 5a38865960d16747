"""Compares relations: labelled values, equations, inequalities, chains of equal values.

    x = 5 and 5                  the same: the label is understood
    x = 5 and y = 5              different: of coordinates, the label says which line is meant
    f(n) = n^2 and f(x) = x^2    the same function
    2x = 4y and x - 2y = 0       the same equation
    xy = 12 and 12/x             the same: the letter that the answer leaves out is understood
    6*7 = 42 and 42              the same: one answer said twice

6 = 5 is two answers, even where one of them is right.
"""

from __future__ import annotations

from gmpy2 import mpq

from truegold.verifiers.math import tree
from truegold.verifiers.math.comparison.lists import TURNED, Comparison, aligned, elementwise, named_elements
from truegold.verifiers.math.comparison.single_values import is_approximately
from truegold.verifiers.math.identity import proportional, same_value, sign_of_ratio
from truegold.verifiers.math.policy import OTHER_STRUCTURE, Sameness

_UPWARD = {">": "<", ">=": "<="}


def same_relations(comparer: Comparison, gold: tree.Node, answer: tree.Node) -> Sameness:
    """Compare two sides of which at least one is a relation. Raises TooLarge."""
    if (named := _same_named(comparer, gold, answer)) is not None:
        return named
    (gold_label, gold_value), (answer_label, answer_value) = tree.labelled(gold), tree.labelled(answer)
    both_relations = isinstance(gold, tree.Chain) and isinstance(answer, tree.Chain)
    both_labelled = gold_label is not None and answer_label is not None
    labels = {gold_label, answer_label}
    has_coordinate = both_labelled and gold_label != answer_label and bool(labels & tree.COORDINATES)
    are_lines = has_coordinate and labels <= tree.COORDINATES
    if gold_value is not None and answer_value is not None and not are_lines:
        if isinstance(gold, tree.Chain) and isinstance(answer, tree.Chain) and not has_coordinate:
            answer_value = _with_argument_of_gold(gold, answer, answer_value)
        outcome = comparer.same(gold_value, answer_value)
        if outcome.same or not both_relations or both_labelled:
            return outcome
    if both_relations:
        return _same_equation(comparer, gold, answer)
    if isinstance(gold, tree.Chain) and gold.operators[0] == "=":
        if (stated_value := _value_of_expression(gold, answer)) is not None:
            return _same_stated(comparer, gold, stated_value, answer)
        if isinstance(gold.parts[0], tree.Ratio) and gold.operators == ("=",):
            return comparer.same(gold.parts[1], answer)
    return same_throughout(comparer, gold, answer)


def _same_named(comparer: Comparison, gold: tree.Node, answer: tree.Node) -> Sameness | None:
    """Compare (x, y) = (2, 5) with y = 5, x = 2 written alike, and x = y = z = 1 with a tuple."""
    gold_parts, answer_parts = _named(gold), _named(answer)
    if gold_parts is None and answer_parts is None:
        return None
    gold_parts = gold_parts or (list(gold.elements) if isinstance(gold, tree.Group) else None)
    answer_parts = answer_parts or (list(answer.elements) if isinstance(answer, tree.Group) else None)
    if gold_parts is None or answer_parts is None or len(gold_parts) != len(answer_parts):
        return None
    return elementwise(comparer, *aligned(gold_parts, answer_parts)[:2])


def _named(node: tree.Node) -> list[tree.Node] | None:
    return named_elements(node) if isinstance(node, tree.Chain) else None


def _with_argument_of_gold(gold: tree.Chain, answer: tree.Chain, answer_value: tree.Node) -> tree.Node:
    """Return n^2 for the value of f(x)=x^2 where gold is f(n)=n^2."""
    gold_argument, answer_argument = tree.argument_of(gold), tree.argument_of(answer)
    if gold_argument is None or answer_argument is None or gold_argument == answer_argument:
        return answer_value
    if gold_argument in tree.symbols(answer_value):
        return answer_value
    return tree.renamed(answer_value, {answer_argument: gold_argument})


def _same_stated(comparer: Comparison, gold: tree.Chain, stated_value: tree.Node, answer: tree.Node) -> Sameness:
    r"""Compare a bare value with `AB \cdot CD = 3`; `12/x` with `xy = 12`."""
    if tree.labelled(gold)[0] is None and _is_solution(gold, answer):
        return Sameness(True, "sampled")
    return OTHER_STRUCTURE if tree.symbols(stated_value) else comparer.same(stated_value, answer)


def _is_solution(gold: tree.Chain, answer: tree.Node) -> bool:
    """Tell whether `12/x` is what `xy = 12` says of the letter that the answer leaves out."""
    if len(gold.parts) != 2 or not all(isinstance(side, tree.VALUES) for side in (*gold.parts, answer)):
        return False
    gold_names, answer_names = tree.symbols(gold), tree.symbols(answer)
    if not answer_names or not answer_names < gold_names or len(gold_names - answer_names) != 1:
        return False
    (name,) = gold_names - answer_names
    return _solves(tree.Chain((tree.Sym(name), answer), ("=",)), _difference(gold))


def _value_of_expression(gold: tree.Chain, answer: tree.Node) -> tree.Node | None:
    """Return the 3 of `AB \\cdot CD = 3`, where the answer is a bare value."""
    if len(gold.parts) != 2 or not isinstance(answer, tree.VALUES):
        return None
    constant_sides = [part for part in gold.parts if not isinstance(part, tree.VALUES) or not tree.symbols(part)]
    is_expression = isinstance(gold.parts[0], (tree.Mul, tree.Ratio, tree.Sym, tree.FunctionCall, tree.Pow))
    return gold.parts[1] if len(constant_sides) == 1 and is_expression else None


def same_throughout(comparer: Comparison, gold: tree.Node, answer: tree.Node) -> Sameness:
    """Compare a gold that is no relation with each part of the answer; behind ~, parts are only near it."""
    if not isinstance(answer, tree.Chain) or isinstance(gold, tree.Chain):
        return OTHER_STRUCTURE
    parts = list(answer.parts)
    if "~" in answer.operators and set(answer.operators) <= {"=", "~"}:
        parts = parts[: answer.operators.index("~") + 1]
        approximations = answer.parts[len(parts) :]
        is_label = len(parts) == 1 and isinstance(parts[0], tree.Sym)
        if any(is_approximately(parts[-1], part) is False for part in approximations) and not is_label:
            # 5 \\approx 6 says two things.
            return Sameness(False, "structure", hedged=any(comparer.same(gold, part).same for part in answer.parts))
        if is_label:
            parts = list(answer.parts[1:])
        return comparer.same(gold, parts[0] if len(parts) == 1 else tree.Chain(tuple(parts), ("=",) * (len(parts) - 1)))
    if set(answer.operators) != {"="}:
        return OTHER_STRUCTURE
    outcomes = [comparer.same(gold, part) for part in parts]
    if all(outcome.same for outcome in outcomes):
        return outcomes[0]
    return Sameness(False, "structure", hedged=any(outcome.same for outcome in outcomes))


def _same_equation(comparer: Comparison, gold: tree.Node, answer: tree.Node) -> Sameness:
    assert isinstance(gold, tree.Chain) and isinstance(answer, tree.Chain)
    single = len(gold.operators) == len(answer.operators) == 1
    if not single or not all(isinstance(part, tree.VALUES) for part in (*gold.parts, *answer.parts)):
        return _same_chain(comparer, gold, answer)
    if not (tree.symbols(gold) or tree.symbols(answer)):
        # Two equations that hold, as cos(0) = 1 and sin(0) = 0 do, are not the same one.
        return _same_chain(comparer, gold, answer)
    gold_difference, answer_difference = _difference(gold), _difference(answer)
    if gold.operators != ("=",) or answer.operators != ("=",):
        return _same_inequality(gold_difference, gold.operators[0], answer_difference, answer.operators[0])
    outcome = proportional(gold_difference, answer_difference)
    if outcome.same is False and (_solves(gold, answer_difference) or _solves(answer, gold_difference)):
        return Sameness(True, "sampled")
    return outcome


def _difference(chain: tree.Chain) -> tree.Node:
    return tree.Add((chain.parts[0], tree.Mul((tree.MINUS_ONE, chain.parts[1]))))


def _same_inequality(gold: tree.Node, gold_operator: str, answer: tree.Node, answer_operator: str) -> Sameness:
    """Compare how two differences relate to 0: one must be a positive multiple of the other."""
    if gold_operator in _UPWARD:
        gold, gold_operator = tree.Mul((tree.MINUS_ONE, gold)), _UPWARD[gold_operator]
    if answer_operator in _UPWARD:
        answer, answer_operator = tree.Mul((tree.MINUS_ONE, answer)), _UPWARD[answer_operator]
    if gold_operator != answer_operator:
        return OTHER_STRUCTURE
    outcome = proportional(gold, answer)
    if not outcome.same or gold_operator == "!=":
        return outcome
    return Sameness(sign_of_ratio(gold, answer) == 1, "sampled")


def _solves(solved: tree.Chain, difference: tree.Node) -> bool:
    """Tell whether y = f(x) makes the sides of the other equation equal, and that one is linear in y."""
    label, value = tree.labelled(solved)
    if label is None or value is None or not isinstance(value, tree.VALUES) or label in tree.symbols(value):
        return False
    if label not in tree.symbols(difference):
        return False
    if same_value(tree.substituted(difference, {label: value}), tree.ZERO).same is not True:
        return False
    return all(_is_straight(difference, label, start, step) for start, step in ((0, 1), (-7, 7)))


def _is_straight(expression: tree.Node, name: str, start: int, step: int) -> bool:
    """Tell whether an expression is linear in a variable, by three points of equal distance."""
    low, middle, high = (tree.substituted(expression, {name: tree.Num(mpq(start + i * step))}) for i in range(3))
    return same_value(tree.Add((low, tree.Mul((tree.Num(mpq(-2)), middle)), high)), tree.ZERO).same is True


def _same_chain(comparer: Comparison, gold: tree.Chain, answer: tree.Chain) -> Sameness:
    """Compare 1 < x < 2 as it is written, or from right to left."""
    if gold.operators == answer.operators:
        return elementwise(comparer, gold.parts, answer.parts)
    if [TURNED.get(operator) for operator in reversed(answer.operators)] == list(gold.operators):
        return elementwise(comparer, gold.parts, answer.parts[::-1])
    return OTHER_STRUCTURE
