"""Labels of values: the `x` of `x = 5`, the `|AB|` of `|AB| = 5`, the derivative of `\\frac{dN}{dt} = 3`."""

from __future__ import annotations

import re

from truegold.verifiers.math.tree import (
    VALUES,
    Add,
    Chain,
    FunctionCall,
    Group,
    Measure,
    Mul,
    Node,
    Num,
    Pow,
    Ratio,
    SetOf,
    SetOps,
    Sym,
    facts,
    show,
    symbols,
    symbols_of,
    walk,
)

COORDINATES = frozenset({"x", "y", "z"})
"""Labels that matter, because they make a value the equation of a line: x=5 is not y=5."""
ARROWS = frozenset({"=>", "to", "<=>"})
"""Relations between statements."""
ANY_LABEL = "?"
"""The label that `labelled` returns if the left side is an expression, as in `|AB| = 5`."""
_DERIVATIVE = re.compile(r"[d∂](?:\d|\^\(\d\))?(.+)/[d∂](.+)")
"""The name of a derivative: dN/dt."""


def label_of(node: Node) -> str | None:
    """Return the name before the equals sign: `x_1` of `x_1 = 5`, `f(2)` of `f(2) = 5`, `A - B` of `A - B = {5}`.

    Return None if the node is not such an equation.
    """
    if isinstance(node, Chain) and node.operators[0] == "=":
        first = node.parts[0]
        if isinstance(first, Sym):
            return first.name
        if isinstance(first, FunctionCall) and first.applied:
            values = [str(arg.value) for arg in first.args if isinstance(arg, Num)]
            return f"{first.name}({','.join(values)})" if values else first.name
        if _is_set(node.parts[1]) and isinstance(first, (SetOps, Add)) and symbols(first):
            return show(first)
    return None


def _is_set(node: Node) -> bool:
    return isinstance(node, SetOf) or (isinstance(node, Group) and node.opening == "{")


def labelled(node: Node) -> tuple[str | None, Node | None]:
    """Return the label and the value of `x = 5`.

    The label of a bare value is None. Both are None for an equation that does not state a value.
    """
    if not isinstance(node, Chain):
        return None, node
    if node.operators == ("to",) and isinstance(node.parts[0], (Sym, Ratio)):
        # x \\mapsto x + 1 states a function. The statement p \\to q and the limit x \\to 0 state no value.
        letters = symbols(node.parts[1])
        is_limit = facts(node.parts[1]).has_infinity or show(node.parts[1]) == "0"
        is_statement = is_limit or (bool(letters) and letters.isdisjoint(symbols(node.parts[0])))
        return (None, None) if is_statement else (ANY_LABEL, node.parts[1])
    if node.operators[0] != "=" or not ARROWS.isdisjoint(node.operators):
        return None, None
    first, rest = node.parts[0], node.parts[1:]
    if (label := label_of(node)) is None and (
        _is_label(first) or is_tuple_of_names(first, rest[0]) or (_is_commutator(first) and isinstance(rest[0], VALUES))
    ):
        label = ANY_LABEL
    if label is None or label in symbols_of(rest):
        return None, None
    return label, rest[0] if len(rest) == 1 else Chain(rest, node.operators[1:])


def with_given_value(node: Chain) -> Chain:
    r"""Return `T = 300` for `T \approx 300`, which states the value of a label. Other relations are returned unchanged.

    `ABC \sim DEF` (similar triangles) and `X \sim N(0, 1)` (a distribution) do not state a value.
    """
    if len(node.parts) != 2 or node.operators[0] not in ("~", "sim", "cong") or isinstance(node.parts[1], Sym):
        return node
    if node.operators[0] == "sim" and _may_be_distribution(node.parts[1]):
        return node
    equation = Chain(node.parts, ("=",))
    is_name = isinstance(node.parts[0], Sym) or node.operators == ("~",) or argument_of(node) is not None
    return equation if is_name and labelled(equation)[0] is not None else node


def _may_be_distribution(node: Node) -> bool:
    r"""Tell whether a node may be a distribution, such as N(0, 1) or P(\lambda)."""
    if isinstance(node, Mul) and len(node.factors) == 2:
        return show(node.factors[0])[0].isupper()
    return not isinstance(node, (*VALUES, Measure))


def is_tuple_of_names(first: Node, value: Node) -> bool:
    """Tell whether the two sides are a tuple of names and a tuple of values: `(x, y) = (8, -2)`."""
    return (
        isinstance(first, Group)
        and isinstance(value, Group)
        and len(first.elements) == len(value.elements)
        and all(isinstance(element, Sym) for element in first.elements)
        and not symbols(first) & symbols(value)
    )


def argument_of(node: Chain) -> str | None:
    """Return the x of `f(x) = ...`, or None if the left side is not a function of one variable."""
    first = node.parts[0]
    if isinstance(first, FunctionCall) and len(first.args) == 1 and isinstance(first.args[0], Sym):
        return first.args[0].name
    return None


def _is_label(node: Node) -> bool:  # noqa: PLR0911, one for each kind of label
    """Tell whether the node can be the label of a value: S(n), W(x), AB, |AB|, \\cos A, f^{-1}(x)."""
    if isinstance(node, FunctionCall):
        if node.name == "abs" and isinstance(node.args[0], Sym) and node.args[0].name in COORDINATES:
            # |x| = 3 is an equation for x, while |a| = 3 states the length of a vector.
            return False
        return bool(symbols(node)) and all(isinstance(arg, (Sym, Mul)) for arg in node.args)
    if isinstance(node, Mul) and len(node.factors) == 2 and isinstance(node.factors[0], Pow):
        base = node.factors[0].base
        return isinstance(base, Sym) and base.name in "fghFGH" and isinstance(node.factors[1], Sym)
    if isinstance(node, Mul) and len(node.factors) == 2 and isinstance(node.factors[1], Group):
        # \\Phi(x, y) names a function of two variables.
        name, names = node.factors
        return isinstance(name, Sym) and isinstance(names, Group) and all(isinstance(e, Sym) for e in names.elements)
    if derivative_of(node) is not None or (isinstance(node, Mul) and _is_difference(node)):
        return True
    if isinstance(node, (Mul, Ratio)):
        return bool(symbols(node)) and all(map(_is_part_of_segments, walk(node)))
    if isinstance(node, Pow) and isinstance(node.base, FunctionCall) and node.base.name == "abs":
        # |\\psi|^2 is the name of a density.
        return _is_label(node.base) and isinstance(node.exponent, Num)
    if isinstance(node, Pow):
        return isinstance(node.base, Sym) and isinstance(node.exponent, Sym) and node.exponent.name == "*"
    return isinstance(node, Sym)


def derivative_of(node: Node) -> tuple[str, str] | None:
    r"""Return the function and the variable of a derivative: N and t for \frac{dN}{dt}. Return None for other nodes."""
    if isinstance(node, Sym) and "/" in node.name and (match := _DERIVATIVE.fullmatch(node.name)) is not None:
        return match[1], match[2]
    return None


def _is_difference(node: Mul) -> bool:
    r"""Tell whether a product is \Delta E."""
    return len(node.factors) == 2 and all(isinstance(part, Sym) for part in node.factors) and show(node)[:6] == "Delta*"


def _is_commutator(node: Node) -> bool:
    r"""Tell whether brackets are [\hat x, \hat p]."""
    if not isinstance(node, Group) or (node.opening, node.closing) != ("[", "]"):
        return False
    return len(node.elements) == 2 and all(isinstance(part, Sym) for part in node.elements)


def _is_part_of_segments(part: Node) -> bool:
    """Tell whether a node may be part of a ratio of segments, such as NO/BO or A:B.

    Parts are capital letters, their products and ratios, and the exponent -1 of a divisor.
    """
    if isinstance(part, Num):
        return bool(part.value == -1)
    if isinstance(part, Mul) and any(isinstance(factor, Num) for factor in part.factors):
        return False  # In -AB = 5 the label would be AB, whose value is -5.
    return isinstance(part, (Mul, Pow, Ratio)) or (isinstance(part, Sym) and part.name[0].isupper())
