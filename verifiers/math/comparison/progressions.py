r"""Compares periodic solutions, which have one value for each integer. These pairs are the same:

    \frac{\pi}{4}+k\pi                     \frac{5\pi}{4}+n\pi, n \in \mathbb{Z}
    \frac{\pi}{2}+k\pi                     \pm\frac{\pi}{2}+2k\pi
    \frac{\pi}{6}+2k\pi, \frac{5\pi}{6}+2k\pi     k\pi+(-1)^k\frac{\pi}{6}
    \{n\pi : n \in \mathbb{Z}\}            x = n\pi

Each side is reduced to its values within one period. Gold must declare that its letter is an integer, or give an
unknown a multiple of pi (`x = n\pi`): `(n-2)\pi` alone may be a sum of angles. Not covered: natural numbers, and
several letters.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import NamedTuple

from gmpy2 import mpq

from truegold.verifiers.math import tree
from truegold.verifiers.math.comparison.measured import real_value
from truegold.verifiers.math.comparison.signs import sign_readings
from truegold.verifiers.math.reading.wording import integers_of_node

INTEGER_LETTERS = frozenset("klmnj")
"""Letters that may be integers without a declaration."""
_UNKNOWNS = frozenset({"x", "y", "z", "t", "theta", "alpha", "phi", "beta", "u"})
MAX_PARTS = 12
"""Maximum number of expressions on one side."""
MAX_VALUES = 64
"""Maximum number of values within one period. Stops steps whose common multiple is large."""
_MAX_DENOMINATOR = 1_000
"""The largest denominator of the ratio of two steps."""
_GRAIN = 1 << 150
"""The number of parts into which a period is divided. Values in the same part are equal."""


class _Repeating(NamedTuple):
    """An expression that has a value for each integer."""

    value: tree.Node
    declared: frozenset[str]
    """The letters that are declared to be integers."""
    label: str | None
    """The unknown of the solutions. x = 2k, y = 3k are solutions for different unknowns."""


class _Progression(NamedTuple):
    """The numbers start, start + step, start + 2 step, ... in both directions."""

    start: mpq
    step: mpq


def same_progressions(gold: tree.Node, answer: tree.Node) -> bool:
    """Tell whether two sides have the same values if their letters run through all integers."""
    gold_parts, answer_parts = list(_parts(gold)), list(_parts(answer))
    labels = {part.label for part in gold_parts}, {part.label for part in answer_parts}
    are_few = max(len(gold_parts), len(answer_parts)) <= MAX_PARTS
    if not are_few or not all(len(names) == 1 for names in labels) or len(labels[0] | labels[1] | {None}) > 2:
        return False
    sides = [_progressions(part) for part in gold_parts], [_progressions(part) for part in answer_parts]
    if not all(map(_says_integers, gold_parts)) or not all(map(all, sides)):
        return False
    first = sides[0][0][0].step
    ratios = [_fraction(part[0].step / first) for side in sides for part in side]
    period = Fraction(math.lcm(*(r.numerator for r in ratios)), math.gcd(*(r.denominator for r in ratios)))
    if any(r == 0 or period / r > MAX_VALUES for r in ratios):
        return False
    gold_values, answer_values = (_within(side, first * mpq(period.numerator, period.denominator)) for side in sides)
    return gold_values == answer_values


def _parts(node: tree.Node, declared: frozenset[str] = frozenset(), label: str | None = None) -> Iterator[_Repeating]:
    """Yield each expression of a side. For an element that is not a value, yield 0, which is never a progression."""
    inner: tuple[tree.Node, ...] = ()
    if isinstance(node, tree.Family) and tree.NATURALS_ONLY not in node.parameters and not node.conditions:
        inner, declared = (node.body,), declared | node.parameters
    elif isinstance(node, tree.SetOf) and tree.NATURALS_ONLY not in (letters := integers_of_node(node.condition)):
        inner, declared = (node.element,), declared | letters
    elif isinstance(node, tree.Chain):
        name, value = (None, node.parts[1]) if node.operators == ("in",) else tree.labelled(node)
        inner, label = (value,) if value is not None else (), name or label
    elif isinstance(node, tree.BareList) or (isinstance(node, tree.Group) and node.opening == "{"):
        inner = node.elements
    elif isinstance(node, tree.SetOps) and node.operator == "cup":
        inner = node.parts
    elif isinstance(node, tree.VALUES):
        (first, *_) = sign_readings(node) or [node]
        for value in first.elements if isinstance(first, tree.BareList) else (first,):
            yield _Repeating(value, declared, label)
        return
    for part in inner:
        yield from _parts(part, declared, label)
    if not inner:
        yield _Repeating(tree.ZERO, declared, label)


def _says_integers(part: _Repeating) -> bool:
    """Tell whether the letter of gold must be an integer."""
    if tree.symbols(part.value) & part.declared:
        return True
    has_angle = any(_is_angle(node) for node in tree.walk(part.value))
    if part.label in _UNKNOWNS or not has_angle:
        return has_angle
    # k\\pi may be an area, but \\pi/4 + k\\pi must be an angle.
    start, step = next(iter(_progressions(part)), _Progression(mpq(0), mpq(0)))
    return (
        tree.symbols(part.value) == {"k"}
        and bool(step)
        and abs(2 * start / step - round(2 * start / step)) * _GRAIN > 1
    )


def _is_angle(node: tree.Node) -> bool:
    return (isinstance(node, tree.Const) and node.name == "pi") or (
        isinstance(node, tree.FunctionCall) and node.name == "degree"
    )


def _progressions(part: _Repeating) -> list[_Progression]:
    """Return two arithmetic progressions, of the values at even and at odd integers, or [] for other values."""
    letters = tree.symbols(part.value)
    if len(letters) != 1 or not letters <= (part.declared or INTEGER_LETTERS):
        return []
    (letter,) = letters
    nodes = (tree.substituted(part.value, {letter: tree.Num(mpq(integer))}) for integer in range(6))
    values = [value for node in nodes if (value := real_value(node)) is not None]
    if len(values) < 6:
        return []
    step = values[2] - values[0]
    grows_evenly = all(abs(values[i + 2] - values[i] - step) * _GRAIN < abs(step) for i in (1, 2, 3))
    return [_Progression(values[0], abs(step)), _Progression(values[1], abs(step))] if step and grows_evenly else []


def _fraction(ratio: mpq) -> Fraction:
    """Return the ratio of two steps as a fraction, or 0 if it is not a fraction with a small denominator."""
    near = Fraction(int(ratio.numerator), int(ratio.denominator)).limit_denominator(_MAX_DENOMINATOR)
    return near if abs(mpq(near.numerator, near.denominator) - ratio) * _GRAIN < ratio else Fraction(0)


def _within(side: list[list[_Progression]], period: mpq) -> set[int]:
    """Return the values within one period, as whole multiples of the period divided by `_GRAIN`."""
    return {
        round((p.start + turn * p.step) / period * _GRAIN) % _GRAIN
        for part in side
        for p in part
        for turn in range(round(period / p.step))
    }
