r"""Defines the tree of an answer: `x + 1/2` is an Add of Sym x and Num 1/2.

Expressions stand for one value:

    Num 3/4        Const pi        Sym x        Add, Mul, Pow        FunctionCall sin(x), root(x, 3), binom(n, k)
    Big \sum_{k=1}^{n} k           Sign ±       Measure 5 cm

Other nodes do not stand for one value:

    BareList 1, 2        Group (1, 2), [1, 2], {1, 2}     Matrix           Ratio 2:3           SetOps A \cup B
    Chain 1 < x <= 2     SetOf {x | x > 0}                Family k\pi      Residues 3 mod 7    BaseN 101_2
    Named reals, true    TimeOfDay 4:30                   Day June 20      Text `blue whale`

The Group (1, 2) may be a point or an interval: the other side decides. Nodes are immutable and compare by identity, so
trees can be shared and cached.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from operator import attrgetter
from typing import Any

from gmpy2 import mpq

from truegold.verifiers.math.measures import DEGREE, Unit
from truegold.verifiers.math.policy import charge

_NO_NAMES: frozenset[str] = frozenset()
CACHED_FACTS = 1_024
"""The number of nodes whose facts are cached. The cache keeps their whole subtrees in memory."""
COORDINATES = frozenset({"x", "y", "z"})
"""Labels that may not be ignored: the lines x=5 and y=5 differ."""
LETTER_CONSTANTS = frozenset({"e", "i"})
"""Constants that may also be variables."""
NATURALS_ONLY = "naturals"
"""A parameter of this name marks a `Family` whose letters are natural numbers, or only some integers."""
BAR, DOT, HAT, VECTOR_MARK = "\u0304", "\u0307", "\u0302", "\u20d7"
"""Combining marks after a letter in a name: bar, dot, hat, arrow."""
ARROWS = frozenset({"=>", "to", "<=>"})
"""Relations between statements."""
DOTS = "…"
"""The name of an ellipsis."""
ANY_LABEL = "?"
"""The label that `labelled` returns if the left side is an expression, as in `|AB| = 5`."""
MAX_SHOWN_CHARS = 200
_DERIVATIVE = re.compile(r"[d∂](?:\d|\^\(\d\))?(.+)/[d∂](.+)")
"""The name of a derivative: dN/dt."""


class Node:
    """A node of the tree."""

    __slots__: tuple[str, ...] = ()


@dataclass(slots=True, eq=False)
class Num(Node):
    """An exact rational."""

    value: mpq
    decimals: int | None = None
    """The number of digits after the point, or None if the number was written without a point."""
    last_power: int | None = None
    """The power of ten of the last digit: 22 for `5.99e24`. None for numbers without an exponent."""


@dataclass(slots=True, eq=False)
class Const(Node):
    """A constant: pi, e, i, phi or inf."""

    name: str


@dataclass(slots=True, eq=False)
class Sym(Node):
    """A variable with its subscript and marks: `x`, `x_1`, `alpha`."""

    name: str


@dataclass(slots=True, eq=False)
class Add(Node):
    """A sum. A difference has a term with the factor -1."""

    terms: tuple[Node, ...]


@dataclass(slots=True, eq=False)
class Mul(Node):
    """A product. A quotient has a factor with the exponent -1."""

    factors: tuple[Node, ...]


@dataclass(slots=True, eq=False)
class Pow(Node):
    """A power. A square root has the exponent 1/2."""

    base: Node
    exponent: Node


@dataclass(slots=True, eq=False)
class FunctionCall(Node):
    """A function of its arguments: a known one (`sin`, `root`, `binom`, `abs`) or an unknown one (`f`)."""

    name: str
    args: tuple[Node, ...]
    applied: bool = False
    """Whether the function is unknown."""


@dataclass(slots=True, eq=False)
class Big(Node):
    """A sum, product, integral or limit: `kind` is sum, prod, int or lim."""

    kind: str
    variable: str
    low: Node | None
    high: Node | None
    """The upper bound. An indefinite integral has no bounds, and a limit only has `low`."""
    body: Node


@dataclass(slots=True, eq=False)
class Sign(Node):
    """The factor ±."""

    flipped: bool = False
    """Whether the factor is ∓."""


@dataclass(slots=True, eq=False)
class Measure(Node):
    """A value with its unit. `%` is the unit `percent`."""

    value: Node
    unit: Unit


@dataclass(slots=True, eq=False)
class BareList(Node):
    """A list without brackets."""

    elements: tuple[Node, ...]
    joined: str = ","
    """The connective between the last two items: `,`, `;`, `or`, `and`."""


@dataclass(slots=True, eq=False)
class Group(Node):
    """Elements in brackets: a tuple, a set, or an interval such as `[0, 1)` and `]0, 1[`."""

    opening: str
    closing: str
    elements: tuple[Node, ...]


@dataclass(slots=True, eq=False)
class Matrix(Node):
    """The rows of a matrix, or of a determinant."""

    rows: tuple[tuple[Node, ...], ...]
    bars: bool = False
    """Whether the matrix is between vertical bars, and so a determinant."""


@dataclass(slots=True, eq=False)
class Chain(Node):
    """Relations in a row, such as `a < b <= c`. There is one more part than operators."""

    parts: tuple[Node, ...]
    operators: tuple[str, ...]


@dataclass(slots=True, eq=False)
class SetOps(Node):
    """Sets joined by `cup`, `cap` or `minus`, or statements joined by `and`, `or` or `xor`. `not` has one part."""

    operator: str
    parts: tuple[Node, ...]


@dataclass(slots=True, eq=False)
class SetOf(Node):
    """A set by its condition: `{element | condition}`."""

    element: Node
    condition: Node


@dataclass(slots=True, eq=False)
class Ratio(Node):
    """A ratio of two or more parts: `2:3:4`."""

    parts: tuple[Node, ...]
    clock: TimeOfDay | None = None
    """The time of day that `4:30` may be instead."""


@dataclass(slots=True, eq=False)
class BaseN(Node):
    """A numeral with its base: `101_2`."""

    digits: str
    base: int


@dataclass(slots=True, eq=False)
class TimeOfDay(Node):
    """A time of day."""

    minutes: int
    """Minutes after midnight."""
    half: str
    """The half of the day, `am` or `pm`. It is `24` if the hour shows the half, and empty if the half is unknown."""


@dataclass(slots=True, eq=False)
class Day(Node):
    """A day or a month of the calendar. Missing parts are None."""

    year: int | None
    month: int | None
    day: int | None
    weekday: int | None
    """The day of the week: 0 for Monday, 6 for Sunday."""


@dataclass(slots=True, eq=False)
class Residues(Node):
    """A congruence, such as `x \\equiv 1, 5 \\pmod 6`: all integers with one of these remainders."""

    label: str
    """The letter before `\\equiv`. Empty for `4 \\pmod 7`."""
    remainders: tuple[Node, ...]
    modulus: Node


@dataclass(slots=True, eq=False)
class Named(Node):
    """A named set or truth value: empty, reals, integers, rationals, naturals, complexes, true, false."""

    name: str


@dataclass(slots=True, eq=False)
class Family(Node):
    """An answer with conditions on its letters: `k\\pi, k \\in \\mathbb{Z}`, `x^2, x > 0`."""

    body: Node
    parameters: frozenset[str] = frozenset()
    """Letters that stand for all integers."""
    conditions: tuple[Node, ...] = ()


@dataclass(slots=True, eq=False)
class Text(Node):
    """Words that are not mathematics, in lower case."""

    words: tuple[str, ...]


VALUES = (Num, Const, Sym, Add, Mul, Pow, FunctionCall, Big, Sign)
"""Types of nodes that stand for one value."""

VALUE_TYPES: frozenset[type[Node]] = frozenset(VALUES)


@dataclass(frozen=True, slots=True)
class Facts:
    """Properties of a tree, which are collected in one walk."""

    symbols: frozenset[str]
    """The free variables."""
    sign_count: int
    """The number of ± and ∓ in the tree."""
    unknown_functions: frozenset[str]
    has_bare_log: bool
    """Whether the tree has a `log` without a base."""
    has_infinity: bool
    has_letter_constant: bool
    """Whether the tree has one of `LETTER_CONSTANTS`."""
    has_array: bool
    """Whether the tree has a matrix or a group in brackets."""


_TUPLE_FIELDS: dict[type[Node], str] = {
    Add: "terms", Mul: "factors", FunctionCall: "args", BareList: "elements", Group: "elements", Chain: "parts",
    SetOps: "parts", Ratio: "parts",
}  # fmt: skip
"""Maps a type of nodes to its field with a tuple of children."""
_CHILDREN: dict[type[Node], Callable[[Any], tuple[Node, ...]]] = {
    **{kind: attrgetter(field) for kind, field in _TUPLE_FIELDS.items()},
    Pow: attrgetter("base", "exponent"),
    SetOf: attrgetter("element", "condition"),
    Measure: lambda node: (node.value,),
    Family: lambda node: (node.body,),
    Big: lambda node: tuple(part for part in (node.low, node.high, node.body) if part is not None),
    Matrix: lambda node: tuple(cell for row in node.rows for cell in row),
    Residues: lambda node: (*node.remainders, node.modulus),
}
"""Maps a type of nodes to a function that returns the children of a node."""


_NOTED_TYPES = frozenset({Sym, FunctionCall, Sign, Const, Big, Matrix, Group})
"""Types of nodes that `facts` looks at."""


def may_have_parts(node: Node) -> bool:
    """Tell whether nodes of this type can have children."""
    return type(node) in _CHILDREN


def walk(node: Node) -> Iterator[Node]:
    """Yield every node of the tree, `node` first, without recursion."""
    waiting: list[Node] = [node]
    while waiting:
        top = waiting.pop()
        yield top
        if (below := _CHILDREN.get(type(top))) is not None:
            waiting.extend(below(top))


@lru_cache(maxsize=CACHED_FACTS)
def facts(node: Node) -> Facts:
    """Return facts about a tree. They are cached by node, because nodes never change."""
    names: set[str] = set()
    bound_names: set[str] = set()
    unknown_functions: set[str] = set()
    sign_count = 0
    has_bare_log = has_infinity = has_letter_constant = has_array = False
    waiting: list[Node] = [node]
    while waiting:
        part = waiting.pop()
        if (kind := type(part)) is Num:
            continue
        if isinstance(part, Mul):
            waiting.extend(part.factors)
            continue
        if (below := _CHILDREN.get(kind)) is not None:
            waiting.extend(below(part))
        if kind not in _NOTED_TYPES:
            continue
        if isinstance(part, Sym):
            names.add(part.name)
        elif isinstance(part, FunctionCall):
            if part.applied:
                unknown_functions.add(part.name)
            has_bare_log |= part.name == "log" and len(part.args) == 1
        elif isinstance(part, Sign):
            sign_count += 1
        elif isinstance(part, Const):
            has_infinity |= part.name == "inf"
            has_letter_constant |= part.name in LETTER_CONSTANTS
        elif kind is Matrix or kind is Group:
            has_array = True
        elif isinstance(part, Big):
            bound_names.add(part.variable)
    free_names = frozenset(names - bound_names)
    return Facts(
        symbols=free_names,
        sign_count=sign_count,
        unknown_functions=frozenset(unknown_functions),
        has_bare_log=has_bare_log,
        has_infinity=has_infinity,
        has_letter_constant=has_letter_constant,
        has_array=has_array,
    )


def symbols(node: Node) -> frozenset[str]:
    """Return the names of the free variables."""
    return _NO_NAMES if type(node) is Num else facts(node).symbols


ZERO, PLUS_ONE, MINUS_ONE, HALF = (Num(mpq(value)) for value in ("0", "1", "-1", "1/2"))
INFINITY = Const("inf")


def is_dots(node: Node) -> bool:
    """Tell whether a node is the dots of 1 + 2 + ... + n."""
    return isinstance(node, Sym) and node.name == DOTS


def product_of(factors: list[Node]) -> Node:
    """Return the product of the factors, or the factor itself if there is only one."""
    return factors[0] if len(factors) == 1 else Mul(tuple(factors))


def negated(node: Node) -> Node:
    """Return the opposite of a value or a quantity."""
    if isinstance(node, Num):
        return Num(-node.value, node.decimals, node.last_power)
    if isinstance(node, Measure):
        return Measure(negated(node.value), node.unit)
    return Mul((MINUS_ONE, node))


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


def symbols_of(nodes: Iterable[Node]) -> frozenset[str]:
    """Return the names of the free variables of several trees."""
    return frozenset().union(*map(symbols, nodes))


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


def renamed(node: Node, names: Mapping[str, str]) -> Node:
    """Return the tree with other names for some of its variables."""
    return substituted(node, {old: Sym(new) for old, new in names.items()})


def substituted(node: Node, values: Mapping[str, Node]) -> Node:
    """Return the tree with variables replaced by `values`, except the bound variable of a sum or an integral."""
    if isinstance(node, Sym):
        return values.get(node.name, node)
    if isinstance(node, Big):
        values = {name: value for name, value in values.items() if name != node.variable}
    return _rebuilt(node, lambda part: substituted(part, values))


def mapped(node: Node, change: Callable[[Node], Node]) -> Node:
    """Return the tree with `change` applied to every node, from the leaves up."""
    return change(_rebuilt(node, lambda part: mapped(part, change)))


def with_log_base_ten(node: Node) -> Node:
    """Return the tree with ten as the base of every `log` that has none."""

    def based(part: Node) -> Node:
        if isinstance(part, FunctionCall) and part.name == "log" and len(part.args) == 1:
            return FunctionCall("log", (part.args[0], Num(mpq(10))))
        return part

    return mapped(node, based)


def _rebuilt(node: Node, change: Callable[[Node], Node]) -> Node:
    """Return a copy of the node with `change` applied to each of its parts, or the node itself if it has no parts."""

    def changed(field: Any) -> Any:
        if isinstance(field, tuple):
            return tuple(map(changed, field))
        return change(field) if isinstance(field, Node) else field

    charge(2)
    if not may_have_parts(node):
        return node
    return type(node)(*(changed(getattr(node, name)) for name in type(node).__slots__))


@lru_cache(maxsize=CACHED_FACTS)
def show(node: Node) -> str:
    """Return the tree as text of at most MAX_SHOWN_CHARS characters."""
    text = _show(node)
    return text if len(text) <= MAX_SHOWN_CHARS else f"{text[: MAX_SHOWN_CHARS - 3]}..."


def _show(node: Node) -> str:
    return _SHOWN[type(node)](node)


def _show_all(nodes: tuple[Node, ...], mark: str = ", ") -> str:
    return mark.join(map(_show, nodes))


def _show_big(node: Big) -> str:
    bounds = ", ".join("" if bound is None else _show(bound) for bound in (node.low, node.high))
    return f"{node.kind}({_show(node.body)}, {node.variable}, {bounds})"


def _show_chain(node: Chain) -> str:
    words = [_show(node.parts[0])]
    for operator, part in zip(node.operators, node.parts[1:], strict=True):
        words += (operator, _show(part))
    return " ".join(words)


def _show_product(factors: tuple[Node, ...]) -> str:
    """Show a*b/c rather than a*b*c^(-1)."""
    text = ""
    for factor in factors:
        if isinstance(factor, Pow) and isinstance(factor.exponent, Num) and factor.exponent.value == -1:
            text += f"/{_show_operand(factor.base)}" if text else f"1/{_show_operand(factor.base)}"
        else:
            text += f"*{_show_operand(factor)}" if text else _show_operand(factor)
    return text


def _show_clock(node: TimeOfDay) -> str:
    if node.half in ("am", "pm"):
        return f"{node.minutes // 60 % 12 or 12}:{node.minutes % 60:02} {node.half}"
    return f"{node.minutes // 60}:{node.minutes % 60:02}"


def _show_operand(node: Node) -> str:
    return f"({_show(node)})" if isinstance(node, Mul) else _show(node)


def _show_number(value: object) -> str:
    text = str(value)
    return text if len(text) <= MAX_SHOWN_CHARS else f"{text[:20]}...({len(text)} characters)"


_SHOWN: dict[type[Node], Callable[[Any], str]] = {
    Num: lambda node: _show_number(node.value),
    Const: lambda node: node.name,
    Sym: lambda node: node.name,
    Named: lambda node: node.name,
    Add: lambda node: f"({_show_all(node.terms, ' + ')})",
    Mul: lambda node: _show_product(node.factors),
    Pow: lambda node: f"{_show(node.base)}^({_show(node.exponent)})",
    FunctionCall: lambda node: f"{node.name}({_show_all(node.args)})",
    Big: _show_big,
    Sign: lambda node: "∓" if node.flipped else "±",
    Measure: lambda node: f"{_show(node.value)} {node.unit}",
    BareList: lambda node: _show_all(node.elements, f"{node.joined} " if node.joined in ",;" else f" {node.joined} "),
    Group: lambda node: f"{node.opening}{_show_all(node.elements)}{node.closing}",
    Matrix: lambda node: f"[{'; '.join(map(_show_all, node.rows))}]",
    Chain: _show_chain,
    SetOps: lambda node: f"({'not ' * (node.operator == 'not')}{_show_all(node.parts, f' {node.operator} ')})",
    SetOf: lambda node: f"{{{_show(node.element)} | {_show(node.condition)}}}",
    Ratio: lambda node: _show_all(node.parts, ":"),
    BaseN: lambda node: f"{node.digits} base {node.base}",
    Residues: lambda node: f"{node.label or '?'} = {_show_all(node.remainders)} mod {_show(node.modulus)}",
    TimeOfDay: _show_clock,
    Day: lambda node: "-".join(str(part or "?") for part in (node.year, node.month, node.day, node.weekday)),
    Family: lambda node: f"{_show(node.body)} for integers {', '.join(sorted(node.parameters))}",
    Text: lambda node: " ".join(node.words),
}
"""Maps a type of nodes to a function that shows a node."""


def as_measure(node: Node) -> Node:
    """Return 30 degrees as a Measure for `30^\\circ`. Other nodes are returned unchanged."""
    if (kind := type(node)) is not FunctionCall and kind is not Mul:
        return node
    if isinstance(node, FunctionCall) and node.name == "degree":
        return Measure(node.args[0], DEGREE)
    if isinstance(node, Mul) and len(node.factors) == 2:
        first, second = node.factors
        if isinstance(first, Num) and isinstance(second, FunctionCall) and second.name == "degree":
            return Measure(scaled(second.args[0], first.value), DEGREE)
    return node


def scaled(value: Node, factor: mpq) -> Node:
    """Return a multiple of a value."""
    if isinstance(value, Num):
        # The precision of a decimal is lost by scaling.
        return Num(value.value * factor, value.decimals if abs(factor) == 1 else None)
    return value if factor == 1 else Mul((Num(factor), value))
