r"""Compares products whose factors do not commute, by putting random matrices for the letters.

    A^{-1}B^{-1}    (BA)^{-1}       the same
    P^{-1}AP        PAP^{-1}        different
    AB - BA         -(BA - AB)      the same
    |0\rangle|1\rangle              not |1\rangle|0\rangle

Capital letters are matrices where an inverse, a transpose or the problem says so; operators (`\hat{A}`) and kets always
do not commute. Other letters are numbers.
"""

from __future__ import annotations

from typing import TypeAlias

import gmpy2
from gmpy2 import mpz

from truegold.verifiers.math.exact import PRIME, point_for, rational
from truegold.verifiers.math.policy import charge
from truegold.verifiers.math.tree import HAT, Add, Mul, Node, Num, Pow, Sym, symbols, walk

_SIZE = 2
_MATRIX_STEPS = 20
_MAX_POWER = 20
_DIMENSIONS = frozenset("MLT")
"""MLT^{-2} is a force, and its letters commute."""
_Matrix: TypeAlias = tuple[mpz, mpz, mpz, mpz]
_IDENTITY: _Matrix = (mpz(1), mpz(0), mpz(0), mpz(1))


class _NoMatrixError(Exception):
    """The expression is more than sums, products, whole powers and transposes, or is not defined."""


def same_in_matrices(gold: Node, answer: Node, *, all_capitals: bool) -> bool | None:
    """Compare two expressions with matrices in them; None where there are none, or too much else.

    `all_capitals` tells that the problem speaks of matrices, so that all capital letters are some.
    """
    names = symbols(gold) | symbols(answer)
    matrices = {name for name in names if HAT in name or name[0] in "|⟨"}
    capitals = {name for name in names if name[0].isupper() and len(name.rstrip("'_0123456789")) == 1}
    if len(matrices | capitals) > 1 and (all_capitals or _show_matrices(gold) or _show_matrices(answer)):
        matrices |= capitals
    if len(matrices) < _SIZE:
        return None
    try:
        return _value(gold, matrices, names) == _value(answer, matrices, names)
    except (_NoMatrixError, ZeroDivisionError):
        return None


def _show_matrices(node: Node) -> bool:
    """Tell whether a capital letter has the exponent -1 or T beside another one."""
    marked: set[str] = set()
    for part in walk(node):
        if isinstance(part, Pow) and isinstance(part.base, Sym) and part.base.name[0].isupper():
            exponent = part.exponent
            is_inverse = isinstance(exponent, Num) and exponent.value == -1
            if is_inverse or (isinstance(exponent, Sym) and exponent.name == "T"):
                marked.add(part.base.name)
    return bool(marked) and not _DIMENSIONS & marked


def _value(node: Node, matrices: set[str], names: frozenset[str]) -> _Matrix:  # noqa: PLR0911, one for each shape
    charge(_MATRIX_STEPS)
    if isinstance(node, Sym):
        if node.name == "I":
            return _IDENTITY
        if node.name in matrices:
            entries = point_for(frozenset(f"{node.name}{i}" for i in range(4)), 0)
            return tuple(entries[f"{node.name}{i}"] for i in range(4))
        return _scaled(point_for(names, 0)[node.name])
    if isinstance(node, Add):
        columns = zip(*(_value(term, matrices, names) for term in node.terms), strict=True)
        return tuple(sum(column) % PRIME for column in columns)
    if isinstance(node, Mul):
        product = _IDENTITY
        for factor in node.factors:
            product = _times(product, _value(factor, matrices, names))
        return product
    if isinstance(node, Pow):
        base = _value(node.base, matrices, names)
        if isinstance(node.exponent, Sym) and node.exponent.name == "T":
            return base[0], base[2], base[1], base[3]
        return _power(base, node.exponent)
    if (value := rational(node)) is None:
        raise _NoMatrixError
    return _scaled(value.numerator * gmpy2.invert(value.denominator, PRIME) % PRIME)


def _scaled(value: mpz) -> _Matrix:
    return value, mpz(0), mpz(0), value


def _times(a: _Matrix, b: _Matrix) -> _Matrix:
    return (
        (a[0] * b[0] + a[1] * b[2]) % PRIME, (a[0] * b[1] + a[1] * b[3]) % PRIME,
        (a[2] * b[0] + a[3] * b[2]) % PRIME, (a[2] * b[1] + a[3] * b[3]) % PRIME,
    )  # fmt: skip


def _power(base: _Matrix, exponent: Node) -> _Matrix:
    power = rational(exponent)
    if power is None or power.denominator != 1 or abs(power) > _MAX_POWER:
        raise _NoMatrixError
    if power < 0:
        scale = gmpy2.invert(base[0] * base[3] - base[1] * base[2], PRIME)
        base = base[3] * scale % PRIME, -base[1] * scale % PRIME, -base[2] * scale % PRIME, base[0] * scale % PRIME
    product = _IDENTITY
    for _ in range(abs(int(power))):
        product = _times(product, base)
    return product
