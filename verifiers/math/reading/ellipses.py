r"""Computes sums and products with dots whose terms follow an obvious rule.

    1 + 2 + \cdots + n               ->  the sum of k from 1 to n
    1 + 2 + 4 + \cdots + 2^n         ->  the sum of 2^k from 0 to n
    1 \cdot 2 \cdots n               ->  the product of k from 1 to n
    1 + 2 + 3 + \cdots + 100         ->  5050: an arithmetic progression
    1 + 2 + 4 + \cdots + 1024        ->  2047: a geometric progression with at least three terms before the dots
    1 + \frac12 + \frac14 + \cdots   ->  2: an infinite geometric series

The last term may have a letter, as in 2^n. Its values at 0, 1, 2 and so on must then be the first terms 1, 2, 4. (The
values may also begin at 1 or 2.) Other sums with dots raise UnreadableAnswer. Lists with dots are not changed.
"""

from __future__ import annotations

import itertools

from gmpy2 import mpq

from truegold.verifiers.math import tree
from truegold.verifiers.math.exact import rational
from truegold.verifiers.math.identity import same_value
from truegold.verifiers.math.policy import UnreadableAnswer

_STARTS = (1, 0, 2)
"""Values of the index for the first term, in the order in which they are tried."""
_MAX_TERMS = 200
"""Maximum number of terms in a product or a geometric progression."""


def worked_out(parts: list[tree.Node], *, is_sum: bool) -> tree.Node:
    """Return the sum or the product of parts, one of which is dots. Raises UnreadableAnswer if no rule fits."""
    dots = next(index for index, part in enumerate(parts) if tree.is_dots(part))
    first, last = parts[:dots], parts[dots + 1 :]
    if len(first) < 2 or len(last) > 1 or any(map(tree.is_dots, last)):
        raise UnreadableAnswer("dots whose terms follow no obvious rule")
    node = _by_last_term(first, last[0], is_sum) if last and tree.symbols(last[0]) else None
    if node is None:
        values = [value for part in first if (value := rational(part)) is not None]
        end = rational(last[0]) if last else None
        if len(values) == len(first) and (end is not None or (is_sum and not last)):
            node = _of_numbers(values, end, is_sum)
    if node is None:
        raise UnreadableAnswer("dots whose terms follow no obvious rule")
    return node


def _by_last_term(first: list[tree.Node], last: tree.Node, is_sum: bool) -> tree.Node | None:
    """Return the sum or product of the values of `last`, or None if `first` are not its first values."""
    for letter in sorted(tree.symbols(last) - tree.symbols_of(first)):
        for start in _STARTS:
            terms = [tree.substituted(last, {letter: tree.Num(mpq(start + i))}) for i in range(len(first))]
            if all(same_value(term, part).same for term, part in zip(terms, first, strict=True)):
                index = f"{letter}{tree.DOTS}"
                body = tree.substituted(last, {letter: tree.Sym(index)})
                kind = "sum" if is_sum else "prod"
                return tree.Big(kind, index, tree.Num(mpq(start)), tree.Sym(letter), body)
    return None


def _of_numbers(first: list[mpq], end: mpq | None, is_sum: bool) -> tree.Node | None:
    """Return the sum or product of a progression of numbers, or None if they are not a progression."""
    step, ratio = first[1] - first[0], first[1] / first[0] if first[0] else mpq(0)
    steps_evenly = step and all(b - a == step for a, b in itertools.pairwise(first))
    has_ratio = len(first) > 2 and ratio not in (0, 1) and all(b == a * ratio for a, b in itertools.pairwise(first))
    if end is None:
        return tree.Num(first[0] / (1 - ratio)) if has_ratio and abs(ratio) < 1 else None
    count = (end - first[0]) / step + 1 if steps_evenly else mpq(0)
    if is_sum and count.denominator == 1 and count > len(first):
        return tree.Num((first[0] + end) * count / 2)
    terms = [first[0]]
    while (steps_evenly or has_ratio) and terms[-1] != end and len(terms) < _MAX_TERMS:
        terms.append(terms[-1] + step if steps_evenly else terms[-1] * ratio)
    if terms[-1] != end or len(terms) <= len(first):
        return None
    numbers = tuple(map(tree.Num, terms))
    return tree.Add(numbers) if is_sum else tree.Mul(numbers)
