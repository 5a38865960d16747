r"""The less usual readings of ambiguous notation, tried where the usual one does not match.

1,234      a list of two, where the other side is a list
1,5        one and a half, where the other side is one number
5m         five metres, where the other side knows no m
1/2x       1/(2x)
h(a+b)     a product, where the other side uses h as a variable
log 2      to the base ten, as well as natural
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from truegold.verifiers.math.policy import Policy
from truegold.verifiers.math.reading.answers import read
from truegold.verifiers.math.reading.notation import Notation
from truegold.verifiers.math.refusals import TooLarge, Unreadable
from truegold.verifiers.math.substitute import mapped, with_log_base_ten
from truegold.verifiers.math.tree import BareList, Call, Chain, Group, Measure, Mul, Node, Num, Sym, facts, symbols

_DECIMAL_COMMA = re.compile(r"([+-]?)(\d{1,9}),(\d{1,9})(?![\d,])")
_SLASH_NEIGHBOUR = re.compile(r"/\s*\(?[\dA-Za-z\\]")
_GROUPING = re.compile(r"\d,\d{3}(?!\d)")


def other_readings(gold: Node, answer: Node, wanted: str, offered: str, policy: Policy) -> Iterator[tuple[Node, Node]]:
    """Pairs of trees, one side read in another way."""
    mixed = policy.mixed == "sum"
    for tree in _alternatives(offered, answer, gold, mixed):
        yield gold, tree
    for tree in _alternatives(wanted, gold, answer, mixed):
        yield tree, answer
    found = facts(gold), facts(answer)
    if policy.log == "either" and (found[0].has_bare_log or found[1].has_bare_log):
        yield with_log_base_ten(gold), with_log_base_ten(answer)
    if (found[0].unknown_functions | found[1].unknown_functions) & (found[0].symbols | found[1].symbols):
        yield _multiplied(gold), _multiplied(answer)


def _alternatives(text: str, tree: Node, other: Node, mixed: bool) -> Iterator[Node]:
    if _GROUPING.search(text) and _is_list(other):
        yield from _tried(text, Notation(mixed=mixed, group_digits=False))
    if isinstance(tree, BareList) and len(tree.elements) == 2 and isinstance(other, (Num, Measure)):
        match = _DECIMAL_COMMA.match(text)
        if match is not None:
            sign, whole, places = match.groups()
            yield from _tried(f"{sign}{whole}.{places}{text[match.end() :]}", Notation(mixed=mixed))
    if "/" in text and _SLASH_NEIGHBOUR.search(text):
        yield from _tried(text, Notation(mixed=mixed, tight=True))
    if symbols(tree) - symbols(other):
        yield from _tried(text, Notation(mixed=mixed, letter_units=True))


def _tried(text: str, notation: Notation) -> Iterator[Node]:
    try:
        yield read(text, notation)
    except (Unreadable, TooLarge):
        return


def _is_list(node: Node) -> bool:
    return isinstance(node, (BareList, Group, Chain))


def _multiplied(node: Node) -> Node:
    def product(part: Node) -> Node:
        if isinstance(part, Call) and part.applied and len(part.args) == 1:
            return Mul((Sym(part.name), part.args[0]))
        return part

    return mapped(node, product)
