r"""Compares solutions that repeat: one value for each integer.

    \frac{\pi}{4}+k\pi                     \frac{5\pi}{4}+n\pi, n \in \mathbb{Z}
    \frac{\pi}{2}+k\pi                     \pm\frac{\pi}{2}+2k\pi
    \frac{\pi}{6}+2k\pi, \frac{5\pi}{6}+2k\pi     k\pi+(-1)^k\frac{\pi}{6}
    \{n\pi : n \in \mathbb{Z}\}            x = n\pi

Each side becomes its values within one period. Gold has to say that its letter is any integer, or be an equation of an
unknown with a multiple of pi: `(n-2)\pi` alone is the sum of some angles. Not covered: natural numbers, whose first one
counts, and several letters.
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
_UNKNOWNS = frozenset({"x", "y", "z", "t", "theta", "alpha", "phi", "beta", "u"})
MAX_PARTS = 12
"""The most repeating values of one side."""
MAX_VALUES = 64
"""The most values within one period. Stops steps that have only a tiny common part."""
_MAX_DENOMINATOR = 1_000
_GRAIN = 1 << 150
"""Two values are the same within a period where they agree to this many parts of it."""


class _Repeating(NamedTuple):
    """A value for each integer, and whether the text says that it is one."""

    value: tree.Node
    declared: frozenset[str]
    label: str | None
    """The unknown that the progression is for: x = 2k, y = 3k are not two values of one unknown."""


class _Progression(NamedTuple):
    start: mpq
    step: mpq


def same_progressions(gold: tree.Node, answer: tree.Node) -> bool:
    """Tell whether two sides are the same numbers for all integers that their letters stand for."""
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
    """Yield the values that are listed; 0, which never repeats, for an element that is not a value."""
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
    """Tell whether gold's letter is surely any integer."""
    if tree.symbols(part.value) & part.declared:
        return True
    has_angle = any(_is_angle(node) for node in tree.walk(part.value))
    if part.label in _UNKNOWNS or not has_angle:
        return has_angle
    # k\\pi may be an area; \\pi/4 + k\\pi may not.
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
    """Return the values for even integers and those for odd ones; nothing where they do not grow evenly."""
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
    """Return the ratio of two steps, or 0 where they have no common multiple that is near."""
    near = Fraction(int(ratio.numerator), int(ratio.denominator)).limit_denominator(_MAX_DENOMINATOR)
    return near if abs(mpq(near.numerator, near.denominator) - ratio) * _GRAIN < ratio else Fraction(0)


def _within(side: list[list[_Progression]], period: mpq) -> set[int]:
    """Return the values between 0 and one period, in grains."""
    return {
        round((p.start + turn * p.step) / period * _GRAIN) % _GRAIN
        for part in side
        for p in part
        for turn in range(round(period / p.step))
    }
