r"""Congruences: `x \equiv 3 \pmod 7` is `x \equiv -4 \pmod 7` and `7k+3`, and answers a gold of 3."""

from __future__ import annotations

from gmpy2 import mpq

from truegold.verifiers.math.evaluation.exact import rational
from truegold.verifiers.math.labels import labelled
from truegold.verifiers.math.outcome import OPEN, OTHER_STRUCTURE, Outcome
from truegold.verifiers.math.substitute import substituted
from truegold.verifiers.math.tree import VALUES, BareList, Chain, Node, Num, Residues, symbols

_CLASSES = tuple[int, frozenset[int]]
"""A modulus and the remainders."""


def with_residues_joined(node: Node) -> Node:
    """Return one node for several congruences of one letter and one modulus."""
    if not isinstance(node, BareList) or not all(isinstance(element, Residues) for element in node.elements):
        return node
    parts = [element for element in node.elements if isinstance(element, Residues)]
    moduli = {rational(part.modulus) for part in parts}
    if len(moduli) > 1 or None in moduli or len({part.label for part in parts}) > 1:
        return node
    return Residues(parts[0].label, tuple(r for part in parts for r in part.remainders), parts[0].modulus)


def same_residues(gold: Node, answer: Node) -> Outcome:
    """Compare two sides of which at least one is a congruence."""
    gold_classes, answer_classes = _classes(gold), _classes(answer)
    if gold_classes is not None and answer_classes is not None:
        return Outcome(gold_classes == answer_classes, "structure")
    if isinstance(gold, Residues) and gold_classes is None:
        return OPEN
    congruence, other = (gold, answer) if isinstance(gold, Residues) else (answer, gold)
    value = rational(other) if isinstance(other, VALUES) else None
    if not isinstance(congruence, Residues) or value is None or len(congruence.remainders) != 1:
        return OTHER_STRUCTURE
    written, modulus = rational(congruence.remainders[0]), rational(congruence.modulus)
    if written is None or not modulus:
        return OPEN
    if value not in (written, written % modulus):
        return OTHER_STRUCTURE
    # A bare 3 says less than x = 3 mod 7; a congruence says enough where gold is its remainder.
    return OPEN if congruence is gold and gold.label else Outcome(True, "exact")


def _classes(node: Node) -> _CLASSES | None:
    """Return the modulus and the remainders of a congruence, or of `7k+3`."""
    if isinstance(node, Residues):
        modulus = _whole(node.modulus)
        remainders = [_whole(part) for part in node.remainders]
        if not modulus or None in remainders:
            return None
        return abs(modulus), frozenset(part % abs(modulus) for part in remainders if part is not None)
    value = labelled(node)[1] if isinstance(node, Chain) else node
    elements = value.elements if isinstance(value, BareList) else (value,)
    classes = [_class_of_expression(element) for element in elements]
    if None in classes:
        return None
    moduli = {pair[0] for pair in classes if pair is not None}
    return (moduli.pop(), frozenset(pair[1] for pair in classes if pair)) if len(moduli) == 1 else None


def _class_of_expression(node: Node | None) -> tuple[int, int] | None:
    """Return 7 and 3 for 7k+3."""
    if not isinstance(node, VALUES) or len(symbols(node)) != 1:
        return None
    name = next(iter(symbols(node)))
    values = [_whole(substituted(node, {name: Num(mpq(point))})) for point in (0, 1, 2, 5)]
    if None in values:
        return None
    start, *rest = (value for value in values if value is not None)
    slope = rest[0] - start
    if not slope or [value - start for value in rest] != [slope, 2 * slope, 5 * slope]:
        return None
    return abs(slope), start % abs(slope)


def _whole(node: Node) -> int | None:
    value = rational(node)
    return int(value) if value is not None and value.denominator == 1 else None
