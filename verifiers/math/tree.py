r"""The typed tree that every answer is read into.

Expressions stand for one value:

    Num 3/4        Const pi        Sym x        Add, Mul, Pow        Call sin(x), root(x, 3), binom(n, k)
    Big \sum_{k=1}^{n} k           Sign ±       Measure 5 cm

Shapes hold several: BareList, Group (anything in brackets: a tuple, an interval or a set, which the other side
decides), Matrix, Chain (relations), SetOps, SetOf (set-builder), Ratio, Residues, BaseN, Clock, Day, Named (a constant
set, the empty set, a truth value), Text (words).

Nobody changes a node once it is built, and nodes compare by identity, so that trees can be shared and remembered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from gmpy2 import mpq

from truegold.verifiers.math.measures import Unit


class Node:
    """A node of the tree."""

    __slots__: tuple[str, ...] = ()


@dataclass(slots=True, eq=False)
class Num(Node):
    """An exact rational."""

    value: mpq
    decimals: int | None = None
    """How many digits stood behind the point; None where the number was written without one."""


@dataclass(slots=True, eq=False)
class Const(Node):
    """A constant: pi, e, i, phi or inf."""

    name: str


@dataclass(slots=True, eq=False)
class Sym(Node):
    """A variable, with its subscript: `x`, `x_1`, `\\alpha`."""

    name: str


@dataclass(slots=True, eq=False)
class Add(Node):
    """A sum; a difference has a term with the factor -1."""

    terms: tuple[Node, ...]


@dataclass(slots=True, eq=False)
class Mul(Node):
    """A product; a quotient has a factor with the exponent -1."""

    factors: tuple[Node, ...]


@dataclass(slots=True, eq=False)
class Pow(Node):
    """A power; a square root has the exponent 1/2."""

    base: Node
    exponent: Node


@dataclass(slots=True, eq=False)
class Call(Node):
    """A function of its arguments: a known one (`sin`, `root`, `binom`, `abs`) or an unknown one (`f`)."""

    name: str
    args: tuple[Node, ...]
    applied: bool = False
    """The function is unknown."""


@dataclass(slots=True, eq=False)
class Big(Node):
    """A sum, product, integral or limit: `kind` is sum, prod, int or lim."""

    kind: str
    variable: str
    low: Node | None
    high: Node | None
    """The bounds; an indefinite integral has none, a limit only a low one."""
    body: Node


@dataclass(slots=True, eq=False)
class Sign(Node):
    """The factor that stands for ±."""

    flipped: bool = False
    """The factor stands for ∓."""


@dataclass(slots=True, eq=False)
class Measure(Node):
    """A value with its unit; `%` is the unit `percent`."""

    value: Node
    unit: Unit


@dataclass(slots=True, eq=False)
class BareList(Node):
    """A list without brackets."""

    elements: tuple[Node, ...]
    joined: str = ","
    """The connective between the last two: `,`, `;`, `or`, `and`."""


@dataclass(slots=True, eq=False)
class Group(Node):
    """Elements in brackets, which are kept as written: `]0,1[` is an open interval, and `{` begins a set."""

    opening: str
    closing: str
    elements: tuple[Node, ...]


@dataclass(slots=True, eq=False)
class Matrix(Node):
    """The rows of a matrix, or of a determinant."""

    rows: tuple[tuple[Node, ...], ...]
    bars: bool = False
    """The matrix stands between vertical bars, so it is a determinant."""


@dataclass(slots=True, eq=False)
class Chain(Node):
    """Relations in a row, `a < b <= c`; there is one more part than operators."""

    parts: tuple[Node, ...]
    operators: tuple[str, ...]


@dataclass(slots=True, eq=False)
class SetOps(Node):
    """Sets joined by one of `cup`, `cap`, `minus`."""

    operator: str
    parts: tuple[Node, ...]


@dataclass(slots=True, eq=False)
class SetOf(Node):
    """A set-builder: `{element | condition}`."""

    element: Node
    condition: Node


@dataclass(slots=True, eq=False)
class Ratio(Node):
    """A ratio of two or more parts: `2:3:4`."""

    parts: tuple[Node, ...]
    clock: Clock | None = None
    """The time of day that `4:30` may be instead."""


@dataclass(slots=True, eq=False)
class BaseN(Node):
    """A numeral with its base: `101_2`."""

    digits: str
    base: int


@dataclass(slots=True, eq=False)
class Clock(Node):
    """A time of day."""

    minutes: int
    """Minutes after midnight."""
    half: str
    """The half of the day, `am` or `pm`; `24` where the hour says it, and nothing where it is left open."""


@dataclass(slots=True, eq=False)
class Day(Node):
    """A day or a month of the calendar; what is not said is None."""

    year: int | None
    month: int | None
    day: int | None
    weekday: int | None
    """From 0, a Monday, to 6."""


@dataclass(slots=True, eq=False)
class Residues(Node):
    """All integers that leave one of some remainders: `x \\equiv 1, 5 \\pmod 6`."""

    label: str
    """The letter that the congruence is about; empty for `4 \\pmod 7`."""
    remainders: tuple[Node, ...]
    modulus: Node


@dataclass(slots=True, eq=False)
class Named(Node):
    """A value with a name: empty, reals, integers, rationals, naturals, complexes, true or false."""

    name: str


@dataclass(slots=True, eq=False)
class Family(Node):
    """An answer with what it says of its letters: `k\\pi, k \\in \\mathbb{Z}`, `x^2, x > 0`."""

    body: Node
    parameters: frozenset[str] = frozenset()
    """Letters that stand for any integer."""
    conditions: tuple[Node, ...] = ()


@dataclass(slots=True, eq=False)
class Text(Node):
    """Words that are no mathematics, in lower case."""

    words: tuple[str, ...]


VALUES = (Num, Const, Sym, Add, Mul, Pow, Call, Big, Sign)
"""The nodes of an expression that stands for one value."""

VALUE_TYPES: frozenset[type[Node]] = frozenset(VALUES)


@dataclass(frozen=True, slots=True)
class Facts:
    """What one walk over a tree finds out."""

    symbols: frozenset[str]
    """The free variables."""
    sign_count: int
    """How often ± or ∓ stands in the tree."""
    unknown_functions: frozenset[str]
    has_bare_log: bool
    """A `log` stands in the tree without its base."""
    has_infinity: bool
    has_array: bool
    """A matrix or something in brackets stands in the tree."""


_CHILDREN: dict[type[Node], Callable[[Any], tuple[Node, ...]]] = {
    Add: lambda node: node.terms,
    Mul: lambda node: node.factors,
    Pow: lambda node: (node.base, node.exponent),
    Call: lambda node: node.args,
    Big: lambda node: tuple(part for part in (node.low, node.high, node.body) if part is not None),
    Measure: lambda node: (node.value,),
    BareList: lambda node: node.elements,
    Group: lambda node: node.elements,
    Matrix: lambda node: tuple(cell for row in node.rows for cell in row),
    Chain: lambda node: node.parts,
    SetOps: lambda node: node.parts,
    Ratio: lambda node: node.parts,
    Residues: lambda node: (*node.remainders, node.modulus),
    SetOf: lambda node: (node.element, node.condition),
    Family: lambda node: (node.body,),
}

_NO_NAMES: frozenset[str] = frozenset()
CACHED_FACTS = 1_024
"""So many nodes are remembered, with all that hangs below them."""

_NOTED_TYPES = frozenset({Sym, Call, Sign, Const, Big, Matrix, Group})


def may_have_parts(node: Node) -> bool:
    """Tell whether a node of this type holds others."""
    return type(node) in _CHILDREN


def walk(node: Node) -> Iterator[Node]:
    """Yield every node of the tree, `node` first, without recursion."""
    waiting: list[Node] = [node]
    while waiting:
        top = waiting.pop()
        yield top
        below = _CHILDREN.get(type(top))
        if below is not None:
            waiting.extend(below(top))


@lru_cache(maxsize=CACHED_FACTS)
def facts(node: Node) -> Facts:
    """Return what one walk over the tree finds out; the cache may keep it by the node itself, which never changes."""
    names: set[str] = set()
    bound_names: set[str] = set()
    unknown_functions: set[str] = set()
    sign_count = 0
    has_bare_log = has_infinity = has_array = False
    waiting: list[Node] = [node]
    while waiting:
        part = waiting.pop()
        kind = type(part)
        if kind is Num:
            continue
        if isinstance(part, Mul):
            waiting.extend(part.factors)
            continue
        below = _CHILDREN.get(kind)
        if below is not None:
            waiting.extend(below(part))
        if kind not in _NOTED_TYPES:
            continue
        if isinstance(part, Sym):
            names.add(part.name)
        elif isinstance(part, Call):
            if part.applied:
                unknown_functions.add(part.name)
            has_bare_log |= part.name == "log" and len(part.args) == 1
        elif isinstance(part, Sign):
            sign_count += 1
        elif isinstance(part, Const):
            has_infinity |= part.name == "inf"
        elif kind is Matrix or kind is Group:
            has_array = True
        elif isinstance(part, Big):
            bound_names.add(part.variable)
    free_names = frozenset(names - bound_names)
    return Facts(free_names, sign_count, frozenset(unknown_functions), has_bare_log, has_infinity, has_array)


def symbols(node: Node) -> frozenset[str]:
    """Return the names of the free variables."""
    return _NO_NAMES if type(node) is Num else facts(node).symbols


ZERO, PLUS_ONE, MINUS_ONE, HALF = (Num(mpq(value)) for value in ("0", "1", "-1", "1/2"))
INFINITY = Const("inf")


def product_of(factors: list[Node]) -> Node:
    """Return the product; of one factor, the factor itself."""
    return factors[0] if len(factors) == 1 else Mul(tuple(factors))


def negated(node: Node) -> Node:
    """Return the opposite of a value or a quantity."""
    if isinstance(node, Num):
        return Num(-node.value, node.decimals)
    if isinstance(node, Measure):
        return Measure(negated(node.value), node.unit)
    return Mul((MINUS_ONE, node))
