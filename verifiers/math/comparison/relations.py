"""Compares relations: labelled values, equations, inequalities, chains of equal values.

    Gold           Answer        Result
    x = 5          5             the same: a label may be left out
    x = 5          y = 5         different: these are two lines
    f(n) = n^2     f(x) = x^2    the same function
    2x = 4y        x - 2y = 0    the same equation
    xy = 12        12/x          the same: the answer is solved for y
    42             6*7 = 42      the same: both sides of the equation are 42

6 = 5 is two answers, even if one of them is right.
"""

from __future__ import annotations

from gmpy2 import mpq

from truegold.verifiers.math import tree
from truegold.verifiers.math.comparison.formulas import same_formulas
from truegold.verifiers.math.comparison.labels import along_axis, contradict
from truegold.verifiers.math.comparison.lists import MIRRORED, TURNED, Comparison, aligned, elementwise, named_elements
from truegold.verifiers.math.comparison.single_values import is_approximately
from truegold.verifiers.math.identity import proportional, same_value, sign_of_ratio
from truegold.verifiers.math.policy import OTHER_STRUCTURE, Sameness

_UPWARD = {">": "<", ">=": "<="}
"""Maps a relation to the one that holds after both sides are negated."""
_NO_DERIVATIVE = str.maketrans("", "", "'\u0307\u0308")
"""Removes the primes and dots of derivatives."""
_EXPRESSIONS_WITH_VALUE = (tree.Mul, tree.Ratio, tree.Sym, tree.FunctionCall, tree.Pow)
"""Types of the left side of an equation that states a value, as in `AB = 3`."""


def same_relations(comparer: Comparison, gold: tree.Node, answer: tree.Node) -> Sameness:
    """Compare two sides, at least one of which is a relation. Raises TooLarge."""
    if (named := _same_named(comparer, gold, answer)) is not None:
        return named
    if isinstance(gold, tree.Chain) and isinstance(answer, tree.Chain):
        return _same_two_relations(comparer, gold, answer)
    if isinstance(gold, tree.Chain):
        return _same_relation_and_value(comparer, gold, answer)
    return _same_value_and_relation(comparer, gold, answer) if isinstance(answer, tree.Chain) else OTHER_STRUCTURE


def _same_named(comparer: Comparison, gold: tree.Node, answer: tree.Node) -> Sameness | None:
    """Compare several named values at once. Return None if neither side names several values.

    (x, y) = (2, 5) and (y, x) = (5, 2)    the values are compared by name
    x = y = z = 1 and (1, 1, 1)            the values are compared in order
    """
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


def _same_two_relations(comparer: Comparison, gold: tree.Chain, answer: tree.Chain) -> Sameness:
    """Compare the values of two equations such as `A = 5` and `B = 5`, or two other relations as statements."""
    (gold_label, gold_value), (answer_label, answer_value) = tree.labelled(gold), tree.labelled(answer)
    are_of_sets = type(gold.parts[0]) is type(answer.parts[0]) and isinstance(gold.parts[0], (tree.SetOps, tree.Add))
    if gold_value is None or answer_value is None or are_of_sets or _are_different_lines(gold_label, answer_label):
        return _same_statements(comparer, gold, answer)
    if contradict(gold.parts[0], answer.parts[0]):
        return OTHER_STRUCTURE
    if gold_label == answer_label or tree.COORDINATES.isdisjoint((gold_label, answer_label)):
        answer_value = _with_argument_of_gold(gold, answer, answer_value)
    outcome = comparer.same(gold_value, answer_value)
    if not outcome.same and isinstance(gold_value, tree.VALUES) and isinstance(answer_value, tree.VALUES):
        (gold_name, answer_name) = gold.parts[0], answer.parts[0]
        gold_value = along_axis(gold_name, gold_value, answer_name) or gold_value
        outcome = comparer.same(gold_value, along_axis(answer_name, answer_value, gold_name) or answer_value)
    if not outcome.same and tree.ANY_LABEL in (gold_label, answer_label):
        statement = _same_statements(comparer, gold, answer)
        outcome = statement if statement.same else outcome
    if not outcome.same and gold.operators == answer.operators == ("=",):
        turned = elementwise(comparer, gold.parts, answer.parts[::-1])
        return turned if turned.same else outcome
    return outcome


def _are_different_lines(gold_label: str | None, answer_label: str | None) -> bool:
    """Tell whether two labels must not be ignored: coordinates (x = 5, y = 5), derivatives, the vectors AB and BA."""
    if gold_label == answer_label or gold_label is None or answer_label is None:
        return False
    is_turned = tree.VECTOR_MARK in gold_label and sorted(gold_label) == sorted(answer_label)
    if gold_label.translate(_NO_DERIVATIVE) == answer_label.translate(_NO_DERIVATIVE):
        return True
    return is_turned or {gold_label, answer_label} <= tree.COORDINATES


def _with_argument_of_gold(gold: tree.Chain, answer: tree.Chain, answer_value: tree.Node) -> tree.Node:
    """Return the value of the answer with gold's argument: n^2 for f(x) = x^2, if gold is f(n) = n^2."""
    gold_argument, answer_argument = tree.argument_of(gold), tree.argument_of(answer)
    if gold_argument is None or answer_argument is None or gold_argument in tree.symbols(answer_value):
        return answer_value
    return tree.renamed(answer_value, {answer_argument: gold_argument})


def _same_relation_and_value(comparer: Comparison, gold: tree.Chain, answer: tree.Node) -> Sameness:
    r"""Compare `x = 5` with 5, `AB \cdot CD = 3` with 3, `xy = 12` with 12/x."""
    if (gold_value := tree.labelled(gold)[1]) is not None:
        return comparer.same(gold_value, answer)
    if gold.operators == ("propto",) and isinstance(gold.parts[1], tree.VALUES) and isinstance(answer, tree.VALUES):
        return proportional(gold.parts[1], answer)
    if gold.operators != ("=",):
        return OTHER_STRUCTURE
    left, right = gold.parts
    if isinstance(answer, tree.VALUES) and _has_one_constant_side(left, right):
        if _is_solution(gold, answer):
            return Sameness(True, "sampled")
        return OTHER_STRUCTURE if tree.symbols(right) else comparer.same(right, answer)
    # The left side of `AB : CD = 2 : 3` may be left out although it is not a label, and so may an integral.
    return comparer.same(right, answer) if isinstance(left, (tree.Ratio, tree.Big)) else OTHER_STRUCTURE


def _has_one_constant_side(left: tree.Node, right: tree.Node) -> bool:
    r"""Tell whether an equation states a value, as `AB \cdot CD = 3` does, but not x + y = 3."""
    constant_sides = [side for side in (left, right) if not isinstance(side, tree.VALUES) or not tree.symbols(side)]
    return len(constant_sides) == 1 and isinstance(left, _EXPRESSIONS_WITH_VALUE)


def _is_solution(gold: tree.Chain, answer: tree.Node) -> bool:
    """Tell whether the answer solves gold for one letter, which the answer lacks: 12/x solves `xy = 12` for y."""
    if not all(isinstance(side, tree.VALUES) for side in (*gold.parts, answer)):
        return False
    gold_names, answer_names = tree.symbols(gold), tree.symbols(answer)
    if not answer_names or not answer_names < gold_names or len(gold_names - answer_names) != 1:
        return False
    (name,) = gold_names - answer_names
    return _solves(tree.Chain((tree.Sym(name), answer), ("=",)), _difference(gold))


def _same_value_and_relation(comparer: Comparison, gold: tree.Node, answer: tree.Chain) -> Sameness:
    """Compare a value with a relation: 5 with `x = 5` and `m + n = 5`, and 42 with `6*7 = 42`."""
    if (answer_value := tree.labelled(answer)[1]) is not None:
        return comparer.same(gold, answer_value)
    if _names_value(answer) and not tree.symbols(gold):
        parts, operators = answer.parts[1:], answer.operators[1:]
        return comparer.same(gold, tree.Chain(parts, operators) if operators else parts[0])
    return same_throughout(comparer, gold, answer)


def _names_value(answer: tree.Chain) -> bool:
    """Tell whether the left side of an equation only names a value: `xy`, `m + n`, `[ABC]`, `2x`.

    x + 5 = 5, x^2 - 5x + 6 = 0    no: the equations are not solved
    -x = 5                         no: the value of x is -5
    """
    label, value = answer.parts[0], answer.parts[1]
    if set(answer.operators) != {"="} or not tree.symbols(label) or tree.symbols_of(answer.parts[1:]):
        return False
    if any(isinstance(part, tree.Num) and part.value < 0 for part in _factors(label)):
        return False
    return not (isinstance(label, tree.Add) and (value == tree.ZERO or not all(map(tree.symbols, label.terms))))


def _factors(node: tree.Node) -> tuple[tree.Node, ...]:
    """Return the factors of a product, in which the first factor may be a product too: -1, A and B of -AB."""
    if not isinstance(node, tree.Mul):
        return (node,)
    first, *rest = node.factors
    return (*_factors(first), *rest)


def same_throughout(comparer: Comparison, gold: tree.Node, answer: tree.Chain) -> Sameness:
    """Compare a gold that is not a relation with each part of the answer: 42 with both sides of `6*7 = 42`."""
    operators = set(answer.operators)
    if "~" in operators and operators <= {"=", "~"}:
        return _same_before_approximation(comparer, gold, answer)
    if operators != {"="}:
        return OTHER_STRUCTURE
    outcomes = [comparer.same(gold, part) for part in answer.parts]
    if all(outcome.same for outcome in outcomes):
        return outcomes[0]
    return Sameness(False, "structure", hedged=any(outcome.same for outcome in outcomes))


def _same_before_approximation(comparer: Comparison, gold: tree.Node, answer: tree.Chain) -> Sameness:
    r"""Compare a gold with the exact part of an answer, before its first \approx.

    2*50\pi = 100\pi \approx 314    the exact part is 2*50\pi = 100\pi
    x \approx 314                   x is a label, so 314 is compared
    5 \approx 6                     wrong, because the two values differ
    """
    exact_count = answer.operators.index("~") + 1
    exact, approximations = answer.parts[:exact_count], answer.parts[exact_count:]
    if len(exact) == 1 and isinstance(exact[0], tree.Sym):
        exact = approximations
    elif any(is_approximately(exact[-1], part) is False for part in approximations):
        return Sameness(False, "structure", hedged=any(comparer.same(gold, part).same for part in answer.parts))
    return comparer.same(gold, exact[0] if len(exact) == 1 else tree.Chain(exact, ("=",) * (len(exact) - 1)))


def _same_statements(comparer: Comparison, gold: tree.Chain, answer: tree.Chain) -> Sameness:
    """Compare two equations, two inequalities, or two chains such as 1 < x < 2.

    2x = 4y        x - 2y = 0     the same: one is a multiple of the other
    x > 2          2 < x          the same
    cos(0) = 1     sin(0) = 0     different: equations without variables are compared part by part
    """
    sides = (*gold.parts, *answer.parts)
    are_numeric = {*gold.operators, *answer.operators} <= TURNED.keys() and tree.symbols_of(sides)
    have_two_sides = len(gold.parts) == len(answer.parts) == 2
    if not have_two_sides or not are_numeric or not all(isinstance(side, tree.VALUES) for side in sides):
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
    """Compare two inequalities `difference < 0`: one difference must be a positive multiple of the other."""
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
    """Tell whether an equation y = f(x) solves the other equation, `difference` = 0, which must be linear in y."""
    label, value = tree.labelled(solved)
    if label is None or not isinstance(value, tree.VALUES) or label in tree.symbols(value):
        return False
    if label not in tree.symbols(difference):
        return False
    is_solved = same_value(tree.substituted(difference, {label: value}), tree.ZERO).same is True
    # Any y solves y = y.
    is_solved = is_solved and not same_value(difference, tree.ZERO).same
    return is_solved and all(_is_straight(difference, label, start, step) for start, step in ((0, 1), (-7, 7)))


def _is_straight(expression: tree.Node, name: str, start: int, step: int) -> bool:
    """Tell whether an expression is linear in a variable at three equidistant points."""
    low, middle, high = (tree.substituted(expression, {name: tree.Num(mpq(start + i * step))}) for i in range(3))
    return same_value(tree.Add((low, tree.Mul((tree.Num(mpq(-2)), middle)), high)), tree.ZERO).same is True


def _same_chain(comparer: Comparison, gold: tree.Chain, answer: tree.Chain) -> Sameness:
    """Compare two chains such as 1 < x < 2 part by part, as written or from right to left."""
    if not tree.ARROWS.isdisjoint(gold.operators) and (outcome := same_formulas(gold, answer)) is not None:
        return outcome
    outcome = OTHER_STRUCTURE
    if gold.operators == answer.operators:
        outcome = elementwise(comparer, *map(_corners_in_order, (gold.parts, answer.parts)))
    if not outcome.same and [MIRRORED.get(operator) for operator in reversed(answer.operators)] == [*gold.operators]:
        outcome = elementwise(comparer, *map(_corners_in_order, (gold.parts, answer.parts[::-1])))
    return outcome


def _corners_in_order(parts: tuple[tree.Node, ...]) -> tuple[tree.Node, ...]:
    """Return similar triangles with their corners in alphabetical order: ABC and DEF for BCA and EFD.

    Corresponding corners stay in the same place.
    """
    names = [part.name if isinstance(part, tree.Sym) else "" for part in parts]
    if not all(name.startswith("triangle ") and len(name) == len(names[0]) for name in names):
        return parts
    columns = sorted(zip(*(name.removeprefix("triangle ") for name in names), strict=True))
    return tuple(tree.Sym(f"triangle {''.join(corners)}") for corners in zip(*columns, strict=True))
