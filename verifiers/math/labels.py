"""What stands in front of a value: `x_1 = 5`, `f(x) = x^2`, `S(n) = ...`, `|AB| = 3`, `(x, y) = (8, -2)`."""

from __future__ import annotations

from collections.abc import Iterable

from truegold.verifiers.math.tree import Call, Chain, Group, Mul, Node, Num, Pow, Ratio, Sym, symbols, walk

COORDINATES = frozenset({"x", "y", "z"})
"""Labels that make a value the equation of a line: x=5 is not y=5."""

ANY_LABEL = "?"
"""What `labelled` returns for a label that is no name."""


def label_of(node: Node) -> str | None:
    """Return the name in front of `x_1 = 5`; for `f(2) = 5` the name with its argument."""
    if isinstance(node, Chain) and node.operators[0] == "=":
        first = node.parts[0]
        if isinstance(first, Sym):
            return first.name
        if isinstance(first, Call) and first.applied:
            values = [str(arg.value) for arg in first.args if isinstance(arg, Num)]
            return f"{first.name}({','.join(values)})" if values else first.name
    return None


def labelled(node: Node) -> tuple[str | None, Node | None]:
    """Return the name and the value of `x = 5`; a bare value has no name, and an equation has neither."""
    if not isinstance(node, Chain):
        return None, node
    if node.operators == ("to",) and isinstance(node.parts[0], (Sym, Ratio)):
        # x \\mapsto x + 1 is a function whose name nobody needs.
        return ANY_LABEL, node.parts[1]
    if node.operators[0] != "=":
        return None, None
    first, rest = node.parts[0], node.parts[1:]
    label = label_of(node)
    if label is None and (_is_label(first) or is_tuple_of_names(first, rest[0])):
        label = ANY_LABEL
    if label is None or label in symbols_of(rest):
        return None, None
    return label, rest[0] if len(rest) == 1 else Chain(rest, node.operators[1:])


def is_tuple_of_names(first: Node, value: Node) -> bool:
    """Tell whether the two sides are those of `(x, y) = (8, -2)`."""
    return (
        isinstance(first, Group)
        and isinstance(value, Group)
        and len(first.elements) == len(value.elements)
        and all(isinstance(element, Sym) for element in first.elements)
        and not symbols(first) & symbols(value)
    )


def argument_of(node: Chain) -> str | None:
    """Return the variable of `f(x) = ...`."""
    first = node.parts[0]
    if isinstance(first, Call) and len(first.args) == 1 and isinstance(first.args[0], Sym):
        return first.args[0].name
    return None


def symbols_of(nodes: Iterable[Node]) -> frozenset[str]:
    """Return the names of the free variables of several trees."""
    return frozenset().union(*map(symbols, nodes))


def _is_label(node: Node) -> bool:  # noqa: PLR0911, one for each kind of label
    """Tell whether the node stands for a single value: S(n), W(x), AB, |AB|, \\cos A, f^{-1}(x)."""
    if isinstance(node, Call):
        if node.name == "abs" and isinstance(node.args[0], Sym) and node.args[0].name in COORDINATES:
            # |x| = 3 is an equation for x, and |a| = 3 the length of a vector.
            return False
        return bool(symbols(node)) and all(isinstance(arg, (Sym, Mul)) for arg in node.args)
    if isinstance(node, Mul) and len(node.factors) == 2 and isinstance(node.factors[0], Pow):
        base = node.factors[0].base
        return isinstance(base, Sym) and base.name in "fghFGH" and isinstance(node.factors[1], Sym)
    if isinstance(node, Mul) and len(node.factors) == 2 and isinstance(node.factors[1], Group):
        # \\Phi(x, y) names a function of two variables.
        name, names = node.factors
        return isinstance(name, Sym) and isinstance(names, Group) and all(isinstance(e, Sym) for e in names.elements)
    if isinstance(node, (Mul, Ratio)):
        return bool(symbols(node)) and all(map(_is_part_of_segments, walk(node)))
    if isinstance(node, Pow):
        return isinstance(node.base, Sym) and isinstance(node.exponent, Sym) and node.exponent.name == "*"
    return isinstance(node, Sym)


def _is_part_of_segments(part: Node) -> bool:
    """Tell whether the node may be part of NO/BO or A:B: a capital letter, or -1 in the exponent of a divisor."""
    if isinstance(part, Num):
        return bool(part.value == -1)
    return isinstance(part, (Mul, Pow, Ratio)) or (isinstance(part, Sym) and part.name[0].isupper())
