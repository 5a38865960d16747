r"""Compares expressions with arbitrary constants: antiderivatives, and general solutions of differential equations.

    \frac12\sin^2 x + C        -\frac14\cos 2x + C       they differ by a constant
    \ln|x| + C                 \ln(C|2x|)                \ln C is as arbitrary as C
    Ce^{2x}                    e^{2x+C}
    C_1e^x + C_2e^{-x}         A\cosh x + B\sinh x       the same combinations

x^2+2x and (x+1)^2 are different, because neither has an arbitrary constant. In combinations, the constants must be
numbered (C_1, c_2), because C alone may be a capacitance. Not covered: equations that are not solved for the unknown,
and constants in denominators.
"""

from __future__ import annotations

import re
from functools import partial

from gmpy2 import mpq

from truegold.verifiers.math import tree
from truegold.verifiers.math.comparison.arrays import rank
from truegold.verifiers.math.comparison.measured import real_value
from truegold.verifiers.math.exact import rational, unit_interval
from truegold.verifiers.math.identity import same_value

ARBITRARY = re.compile(r"[CKABDck](?:_\d)?")
"""Possible names of arbitrary constants: C, C_1, A, k."""
UNMISTAKABLE = re.compile(r"[CK](?:_\d)?|c_\d")
"""Usual names of arbitrary constants, which at least one side must use. A and B may be given by the problem."""
_MULTIPLIED = re.compile(r"[ABCDK](?:_\d)?|[ck]_\d")
"""Names of constants that are factors. c and k as factors are usually given by the problem."""
_LATER = re.compile(r"[A-Za-z]_[2-9]")
"""The second and later constants: C_2."""
_ADDED = re.compile(r"[CcKk](?:_\d)?")
"""Names of constants that are added."""
_NUMBERED = re.compile(r"[CcK]_\d")
"""Numbered constants: C_1."""
_VARIABLES = frozenset({"x", "y", "z", "t", "u", "v", "w", "s", "r", "theta", "phi", "n"})
"""Letters of variables of integration. Other letters are given by the problem."""
MAX_CONSTANTS = 3
"""Maximum number of arbitrary constants in a combination."""
_HALF = mpq(1, 2)
_LITTLE = mpq(1, 1 << 150)
"""Numbers below this size count as zero, because they are rounding errors."""


def arbitrary_names(names: frozenset[str]) -> set[str]:
    """Return the names that may be arbitrary constants: C, and C_2 next to C_1, but not C_2 alone."""
    return {
        name
        for name in names
        if ARBITRARY.fullmatch(name)
        and (not _LATER.fullmatch(name) or not names.isdisjoint((name[:2] + "1", name[:2] + "0")))
    }


def may_be_arbitrary(node: tree.Node, names: frozenset[str], other_names: frozenset[str]) -> bool:
    r"""Tell whether the letters `names` of a node may be arbitrary constants, such as the C of Ce^{2x}.

    RC, \frac12Cv^2, kx, Q/C     no: the C or k is given by the problem
    Ce^{-kt}                     yes: a function of t shows a general solution
    """
    if isinstance(node, (tree.BareList, tree.Group)):
        return all(
            may_be_arbitrary(element, names & tree.symbols(element), other_names)
            for element in node.elements
            if not names.isdisjoint(tree.symbols(element))
        )
    value = _value(node)
    if value is None and isinstance(node, tree.Chain) and node.operators == ("=",):
        value = tree.Add(node.parts)
    if value is None or not all(_MULTIPLIED.fullmatch(name) for name in names):
        return False
    others = tree.symbols(value) - arbitrary_names(tree.symbols(value))
    are_plain = all(map(UNMISTAKABLE.fullmatch, names))
    if not all(_is_multiple_of(value, name) for name in names):
        are_added = all(_count(value, name) == 1 and _is_added(value, name) for name in names)
        is_plain = are_plain and all(map(UNMISTAKABLE.fullmatch, other_names))
        return bool(others) and others <= _VARIABLES and are_added and is_plain
    if others <= _VARIABLES:
        return bool(others)
    return are_plain and any(
        not tree.symbols(part if isinstance(part, tree.FunctionCall) else part.exponent).isdisjoint(_VARIABLES)
        for part in tree.walk(value)
        if isinstance(part, (tree.FunctionCall, tree.Pow))
    )


def _is_added(node: tree.Node, name: str) -> bool:
    """Tell whether a letter is a term of a sum, as in \\tan(x + C)."""
    sums = (part for part in tree.walk(node) if isinstance(part, tree.Add))
    return any(isinstance(term, tree.Sym) and term.name == name for part in sums for term in part.terms)


def _is_multiple_of(node: tree.Node, name: str) -> bool:
    """Tell whether a letter is a factor of a node or of one term, without a number as another factor."""
    if isinstance(node, tree.Sym):
        return node.name == name
    if not isinstance(node, (tree.Add, tree.Mul)):
        return False
    parts = node.terms if isinstance(node, tree.Add) else node.factors
    holding = [part for part in parts if name in tree.symbols(part)]
    if isinstance(node, tree.Mul) and any(rational(part) not in (None, 1, -1) for part in parts):
        return False
    return len(holding) == 1 and _is_multiple_of(holding[0], name)


def same_but_constants(gold: tree.Node, answer: tree.Node, *, optional: bool = False) -> bool:
    """Tell whether two sides are the same except for their arbitrary constants.

    optional: the answer may omit the `+ C` of gold.
    """
    gold_value, answer_value = _value(gold), _value(answer)
    if gold_value is None or answer_value is None:
        return False
    if (name := added_constant(gold_value)) is not None and not UNMISTAKABLE.fullmatch(name):
        return _same_antiderivatives(gold_value, name, answer_value, optional)
    gold_value, answer_value = _with_bare_constants(gold_value), _with_bare_constants(answer_value)
    if (name := added_constant(gold_value)) is not None:
        if not UNMISTAKABLE.fullmatch(name) and not _may_be_integral(tree.substituted(gold_value, {name: tree.ZERO})):
            return False  # In x^2+bx-c the c is given, and its sign matters.
        return _same_antiderivatives(gold_value, name, answer_value, optional)
    return _same_combinations(gold_value, answer_value)


def _value(node: tree.Node) -> tree.Node | None:
    value = tree.labelled(node)[1] if isinstance(node, tree.Chain) else node
    return value if isinstance(value, tree.VALUES) else None


def added_constant(node: tree.Node) -> str | None:
    """Return the C of x^2 + C, or None if no constant is added."""
    if not isinstance(node, tree.Add):
        return None
    names = [term.name for term in node.terms if isinstance(term, tree.Sym) and _ADDED.fullmatch(term.name)]
    return names[0] if len(names) == 1 and _count(node, names[0]) == 1 else None


def _count(node: tree.Node, name: str) -> int:
    return sum(isinstance(part, tree.Sym) and part.name == name for part in tree.walk(node))


def _same_antiderivatives(gold: tree.Node, gold_name: str, answer: tree.Node, optional: bool) -> bool:
    """Tell whether two antiderivatives differ by a constant: their difference must not depend on the variables."""
    answer_name = added_constant(answer)
    if answer_name is None and not optional:
        return False
    answer_rest = answer if answer_name is None else tree.substituted(answer, {answer_name: tree.ZERO})
    gold_rest = tree.substituted(gold, {gold_name: tree.ZERO})
    if answer_name is not None and answer_name != gold_name and answer_name in tree.symbols(gold_rest):
        return False
    variables = tree.symbols(gold_rest) & _VARIABLES
    if not variables or not tree.symbols(answer_rest) <= tree.symbols(gold_rest):
        return False
    if not UNMISTAKABLE.fullmatch(gold_name) and not all(map(_may_be_integral, (gold_rest, answer_rest))):
        return same_value(gold_rest, answer_rest).same is True
    difference = tree.Add((gold_rest, tree.Mul((tree.MINUS_ONE, answer_rest))))
    return same_value(difference, tree.renamed(difference, {name: f"{name}°" for name in variables})).same is True


def _may_be_integral(node: tree.Node) -> bool:
    """Tell whether an added c or k is a constant of integration. In x^2+bx+c and (x-h)^2+k it is a parameter."""
    has_function = any(isinstance(part, tree.FunctionCall) and tree.symbols(part) for part in tree.walk(node))
    return (
        has_function
        and len(tree.symbols(node)) == 1
        and isinstance(node, tree.Add)
        and not any(map(rational, node.terms))
    )


def _with_bare_constants(node: tree.Node) -> tree.Node:
    """Return the tree with bare constants: C for 2C and \\ln C in sums, C + \\ln u for \\ln(Cu), Ce^u for e^{u+C}."""
    for name in filter(ARBITRARY.fullmatch, tree.symbols(node)):
        if _count(node, name) == 1:
            node = tree.mapped(node, partial(_with_bare_constant, constant=tree.Sym(name)))
    return node


def _with_bare_constant(part: tree.Node, constant: tree.Sym) -> tree.Node:
    """Return one node with the constant bare, as `_with_bare_constants` describes."""
    if isinstance(part, tree.Add):
        terms = tuple(constant if _is_of_constant(term, constant.name) else term for term in part.terms)
        return tree.Add(terms)
    if isinstance(part, tree.FunctionCall) and part.name == "ln":
        inside = part.args[0]
        if isinstance(inside, tree.FunctionCall) and inside.name == "abs" and isinstance(inside.args[0], tree.Mul):
            inside = tree.Mul(tuple(tree.FunctionCall("abs", (factor,)) for factor in inside.args[0].factors))
        if isinstance(inside, tree.Mul) and (rest := _without(inside.factors, constant.name)) is not None:
            return tree.Add((constant, tree.FunctionCall("ln", (tree.product_of(rest),))))
    if (
        isinstance(part, tree.Pow)
        and isinstance(part.base, tree.Const)
        and part.base.name == "e"
        and isinstance(part.exponent, tree.Add)
    ):
        rest = _without(part.exponent.terms, constant.name)
        if rest is not None:
            return tree.Mul((constant, tree.Pow(part.base, rest[0] if len(rest) == 1 else tree.Add(tuple(rest)))))
    return part


def _without(parts: tuple[tree.Node, ...], name: str) -> list[tree.Node] | None:
    """Return the parts without the constant and its multiples, or None if not exactly one part is removed."""
    rest = [part for part in parts if not _is_of_constant(part, name)]
    return rest if 0 < len(rest) == len(parts) - 1 else None


def _is_of_constant(node: tree.Node, name: str) -> bool:
    """Tell whether a node is C, |C|, \\ln C, or one of these times a number."""
    if isinstance(node, tree.Sym):
        return node.name == name
    if isinstance(node, tree.FunctionCall) and node.name in ("ln", "abs") and len(node.args) == 1:
        return _is_of_constant(node.args[0], name)
    if isinstance(node, tree.Mul):
        rest = [factor for factor in node.factors if not _is_of_constant(factor, name)]
        return len(rest) == len(node.factors) - 1 and all(rational(factor) for factor in rest)
    return False


def _same_combinations(gold: tree.Node, answer: tree.Node) -> bool:
    """Tell whether both sides are linear combinations whose functions span the same space."""
    gold_names = sorted(name for name in tree.symbols(gold) if UNMISTAKABLE.fullmatch(name))
    others = tree.symbols(gold) - set(gold_names)
    answer_names = sorted(tree.symbols(answer) - others)
    count = len(gold_names)
    is_family = 0 < count == len(answer_names) <= MAX_CONSTANTS and all(map(ARBITRARY.fullmatch, answer_names))
    if not is_family or len(others & _VARIABLES) != 1 or not others <= tree.symbols(answer):
        return False
    if count == 1:
        if not may_be_arbitrary(gold, frozenset(gold_names), frozenset(answer_names)):
            return False
        return same_value(gold, tree.renamed(answer, {answer_names[0]: gold_names[0]})).same is True
    are_numbered = all(map(_NUMBERED.fullmatch, gold_names)) or all(map(_NUMBERED.fullmatch, answer_names))
    if not are_numbered or not any(isinstance(part, (tree.Pow, tree.FunctionCall)) for part in tree.walk(gold)):
        return False
    rows = [_row(gold, gold_names, others, i) + _row(answer, answer_names, others, i) for i in range(count + 3)]
    values = [[value for value in row if value is not None] for row in rows]
    if any(len(row) < 2 * (count + 2) for row in values):
        return False
    gold_part, answer_part = [row[:count] for row in values], [row[count + 2 : -2] for row in values]
    alone = [[row[count] - row[-2]] for row in values]
    # The last number of each row is 0 if a side is linear in its constants.
    is_linear = all(abs(row[count + 1]) < _LITTLE and abs(row[-1]) < _LITTLE for row in values)
    together = [[*g, *a, *rest] for g, a, rest in zip(gold_part, answer_part, alone, strict=True)]
    return is_linear and rank(gold_part) == rank(answer_part) == rank(together) == count


def _row(node: tree.Node, names: list[str], others: frozenset[str], index: int) -> list[mpq | None]:
    """Return the values of a linear combination at one point: the coefficient of each constant, and the rest.

    The last number is the deviation of the node from this combination.
    """
    point = {name: tree.Num(mpq(unit_interval(name, index if name in _VARIABLES else 0)) + _HALF) for name in others}

    def value(constants: dict[str, int]) -> mpq | None:
        filled = {name: tree.Num(mpq(constants.get(name, 0))) for name in names}
        return real_value(tree.substituted(node, {**point, **filled}))

    alone, total = value({}), value({name: i + 2 for i, name in enumerate(names)})
    multiples = [value({name: 1}) for name in names]
    if alone is None or total is None:
        return []
    parts = [None if part is None else part - alone for part in multiples]
    rest = sum(((i + 2) * part for i, part in enumerate(parts) if part is not None), alone) - total
    return [*parts, alone, rest]
