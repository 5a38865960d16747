r"""The typed tree that every answer is read into.

Expressions stand for one value:

    Num 3/4        Const pi        Sym x        Add, Mul, Pow        Call sin(x), root(x, 3), binom(n, k)
    Big \sum_{k=1}^{n} k           Sign ±       Measure 5 cm

Shapes hold several: Items (a bare list), Group (anything in brackets: a tuple, an interval or a set, which the other
side decides), Matrix, Chain (relations), SetOps, SetOf (set-builder), Ratio, BaseN, Clock, Named (a constant set, the
empty set, a truth value), Text (words).

Nodes are immutable in use and compare by identity; `walk` visits a tree without recursion.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

from gmpy2 import mpq

from truegold.verifiers.math.measures import Unit


@dataclass(slots=True, eq=False)
class Num:
    """An exact rational. `decimals`: how many stood behind the point, None where it was written without one."""

    value: mpq
    decimals: int | None = None


@dataclass(slots=True, eq=False)
class Const:
    """pi, e, i, phi or inf."""

    name: str


@dataclass(slots=True, eq=False)
class Sym:
    """A variable, with its subscript: `x`, `x_1`, `\\alpha`."""

    name: str


@dataclass(slots=True, eq=False)
class Add:
    terms: tuple[Node, ...]


@dataclass(slots=True, eq=False)
class Mul:
    factors: tuple[Node, ...]


@dataclass(slots=True, eq=False)
class Pow:
    base: Node
    exponent: Node


@dataclass(slots=True, eq=False)
class Call:
    """A known function (`sin`, `root`, `binom`, `abs`), or an unknown one (`f`, and `applied` is true)."""

    name: str
    args: tuple[Node, ...]
    applied: bool = False


@dataclass(slots=True, eq=False)
class Big:
    """sum, prod, int or lim of `body` over `variable`; `low` and `high` may be absent (an indefinite integral)."""

    kind: str
    variable: str
    low: Node | None
    high: Node | None
    body: Node


@dataclass(slots=True, eq=False)
class Sign:
    """The factor of ± (`flipped` for ∓)."""

    flipped: bool = False


@dataclass(slots=True, eq=False)
class Measure:
    """A value with its unit; `%` is the unit `percent`."""

    value: Node
    unit: Unit


@dataclass(slots=True, eq=False)
class Items:
    """A bare list. `joined` is the connective between the last two: `,`, `or`, `and`."""

    items: tuple[Node, ...]
    joined: str = ","


@dataclass(slots=True, eq=False)
class Group:
    """Items in brackets; `[` and `]` as written, so that `]0,1[` is an open interval; `{` is a set."""

    opening: str
    closing: str
    items: tuple[Node, ...]


@dataclass(slots=True, eq=False)
class Matrix:
    rows: tuple[tuple[Node, ...], ...]
    bars: bool = False
    """Between vertical bars: a determinant."""


@dataclass(slots=True, eq=False)
class Chain:
    """`a < b <= c`: one more part than operators."""

    parts: tuple[Node, ...]
    operators: tuple[str, ...]


@dataclass(slots=True, eq=False)
class SetOps:
    """Parts joined by one of `cup`, `cap`, `minus`."""

    operator: str
    parts: tuple[Node, ...]


@dataclass(slots=True, eq=False)
class SetOf:
    """{element | condition}"""

    element: Node
    condition: Node


@dataclass(slots=True, eq=False)
class Ratio:
    parts: tuple[Node, ...]


@dataclass(slots=True, eq=False)
class BaseN:
    digits: str
    base: int


@dataclass(slots=True, eq=False)
class Clock:
    """A time of day, in minutes after midnight; `half` is am, pm or nothing."""

    minutes: int
    half: str


@dataclass(slots=True, eq=False)
class Named:
    """empty, reals, integers, rationals, naturals, complexes, true, false."""

    name: str


@dataclass(slots=True, eq=False)
class Family:
    """An answer with what is said of its letters: `k\\pi, k \\in \\mathbb{Z}`, `x^2, x > 0`."""

    body: Node
    parameters: frozenset[str] = frozenset()
    """Letters that stand for any integer."""
    conditions: tuple[Node, ...] = ()


@dataclass(slots=True, eq=False)
class Text:
    """Words that are no mathematics, normalised."""

    words: tuple[str, ...]


Node: TypeAlias = (
    Num
    | Const
    | Sym
    | Add
    | Mul
    | Pow
    | Call
    | Big
    | Sign
    | Measure
    | Items
    | Group
    | Matrix
    | Chain
    | SetOps
    | SetOf
    | Ratio
    | BaseN
    | Clock
    | Named
    | Family
    | Text
)

VALUES = (Num, Const, Sym, Add, Mul, Pow, Call, Big, Sign)
"""The nodes of an expression that stands for one value."""

VALUE_TYPES: frozenset[type[Node]] = frozenset(VALUES)


@dataclass(frozen=True, slots=True)
class Facts:
    """What one walk over a tree finds out."""

    symbols: frozenset[str]
    """The free variables."""
    signs: int
    """How often ± or ∓ stands in it."""
    applied: frozenset[str]
    """The unknown functions."""
    bare_log: bool
    """Whether a `log` stands in it without its base."""
    infinite: bool
    """Whether infinity stands in it."""


_CHILDREN: dict[type, Callable[[Any], tuple[Node, ...]]] = {
    Add: lambda node: node.terms,
    Mul: lambda node: node.factors,
    Pow: lambda node: (node.base, node.exponent),
    Call: lambda node: node.args,
    Big: lambda node: tuple(part for part in (node.low, node.high, node.body) if part is not None),
    Measure: lambda node: (node.value,),
    Items: lambda node: node.items,
    Group: lambda node: node.items,
    Matrix: lambda node: tuple(cell for row in node.rows for cell in row),
    Chain: lambda node: node.parts,
    SetOps: lambda node: node.parts,
    Ratio: lambda node: node.parts,
    SetOf: lambda node: (node.element, node.condition),
    Family: lambda node: (node.body,),
}

_TELLING = frozenset({Sym, Call, Sign, Const, Big})


def walk(node: Node) -> Iterator[Node]:
    """Every node of the tree, `node` first."""
    waiting: list[Node] = [node]
    while waiting:
        top = waiting.pop()
        yield top
        below = _CHILDREN.get(type(top))
        if below is not None:
            waiting.extend(below(top))


@lru_cache(maxsize=8_192)
def facts(node: Node) -> Facts:
    """Remembered by the node itself: trees do not change."""
    names: set[str] = set()
    bound: set[str] = set()
    applied: set[str] = set()
    signs = 0
    bare_log = infinite = False
    waiting: list[Node] = [node]
    while waiting:
        part = waiting.pop()
        kind = type(part)
        if kind is Num:
            continue
        below = _CHILDREN.get(kind)
        if below is not None:
            waiting.extend(below(part))
        if kind not in _TELLING:
            continue
        if isinstance(part, Sym):
            names.add(part.name)
        elif isinstance(part, Call):
            if part.applied:
                applied.add(part.name)
            bare_log |= part.name == "log" and len(part.args) == 1
        elif isinstance(part, Sign):
            signs += 1
        elif isinstance(part, Const):
            infinite |= part.name == "inf"
        elif isinstance(part, Big):
            bound.add(part.variable)
    return Facts(frozenset(names - bound), signs, frozenset(applied), bare_log, infinite)


def symbols(node: Node) -> frozenset[str]:
    """The names of the free variables."""
    return facts(node).symbols
