r"""The less usual readings of ambiguous notation, which are tried where the usual one does not match.

1,234      a list of two, where the other side is a list
1,5        one and a half, where the other side is one number
5m         five metres, where the other side knows no m
1/2x       1/(2x)
2e+3       twice e and three, where the other side has an e
0.1(6)     a repeating decimal
12C5       a binomial coefficient, and C(12, 5), where the other side is a value
h(a+b)     a product, where the other side uses h as a variable
log 2      to the base ten, as well as natural
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from truegold.verifiers.math.policy import Policy
from truegold.verifiers.math.reading.answers import read
from truegold.verifiers.math.reading.counting import with_calls_as_counts
from truegold.verifiers.math.reading.notation import Notation
from truegold.verifiers.math.refusals import TooLarge, Unreadable
from truegold.verifiers.math.substitute import mapped, with_log_base_ten
from truegold.verifiers.math.tree import (
    VALUES,
    BareList,
    Call,
    Chain,
    Const,
    Group,
    Measure,
    Mul,
    Node,
    Num,
    Sym,
    facts,
    symbols,
    walk,
)

_DECIMAL_COMMA = re.compile(r"([+-]?)(\d{1,9}),(\d{1,9})(?![\d,])")
_SLASH_NEIGHBOUR = re.compile(r"/\s*\(?[\dA-Za-z\\]")
_SCIENTIFIC = re.compile(r"(\d)e([+-])")
_REPEATING_BLOCK = re.compile(r"(-?\d{0,20}\.\d{0,20})\((\d{1,20})\)")
_GROUPING = re.compile(r"\d,\d{3}(?!\d)")


def other_readings(
    gold: Node, answer: Node, gold_text: str, answer_text: str, policy: Policy
) -> Iterator[tuple[Node, Node]]:
    """Yield pairs of trees, gold and answer, in which a side is read in another way."""
    if type(gold) is Num and type(answer) is Num:
        return
    mixed_numbers = policy.mixed == "sum"
    for tree in _other_trees(answer_text, answer, gold, mixed_numbers):
        yield gold, tree
    for tree in _other_trees(gold_text, gold, answer, mixed_numbers):
        yield tree, answer
    gold_facts, answer_facts = facts(gold), facts(answer)
    if policy.log == "either" and (gold_facts.has_bare_log or answer_facts.has_bare_log):
        yield with_log_base_ten(gold), with_log_base_ten(answer)
    functions = gold_facts.unknown_functions | answer_facts.unknown_functions
    if functions & (gold_facts.symbols | answer_facts.symbols):
        yield _with_products(gold), _with_products(answer)


def _other_trees(text: str, tree: Node, other_side: Node, mixed_numbers: bool) -> Iterator[Node]:
    if _GROUPING.search(text) and isinstance(other_side, (BareList, Group, Chain)):
        yield from _try_reading(text, Notation(mixed_numbers=mixed_numbers, group_digits=False))
    is_pair = isinstance(tree, BareList) and len(tree.elements) == 2
    if is_pair and isinstance(other_side, (*VALUES, Measure)) and not symbols(other_side):
        match = _DECIMAL_COMMA.match(text)
        if match is not None:
            sign, whole, decimals = match.groups()
            with_point = f"{sign}{whole}.{decimals}{text[match.end() :]}"
            yield from _try_reading(with_point, Notation(mixed_numbers=mixed_numbers))
    may_count = "C" in text or "P" in text
    if may_count and isinstance(other_side, VALUES) and (counted := with_calls_as_counts(text)) != text:
        yield from _try_reading(counted, Notation(mixed_numbers=mixed_numbers))
    if (
        "e" in text
        and _SCIENTIFIC.search(text)
        and any(isinstance(part, Const) and part.name == "e" for part in walk(other_side))
    ):
        yield from _try_reading(_SCIENTIFIC.sub(r"\1 e \2", text), Notation(mixed_numbers=mixed_numbers))
    if text.endswith(")") and (repeating := _REPEATING_BLOCK.fullmatch(text)) is not None:
        yield from _try_reading(rf"{repeating[1]}\overline{{{repeating[2]}}}", Notation(mixed_numbers=mixed_numbers))
    if "/" in text and _SLASH_NEIGHBOUR.search(text):
        yield from _try_reading(text, Notation(mixed_numbers=mixed_numbers, tight_products=True))
    if symbols(tree) - symbols(other_side):
        yield from _try_reading(text, Notation(mixed_numbers=mixed_numbers, letter_units=True))


def _try_reading(text: str, notation: Notation) -> Iterator[Node]:
    try:
        yield read(text, notation)
    except (Unreadable, TooLarge):
        return


def _with_products(node: Node) -> Node:
    """Read h(a+b) as a product."""

    def as_product(part: Node) -> Node:
        if isinstance(part, Call) and part.applied and len(part.args) == 1:
            return Mul((Sym(part.name), part.args[0]))
        return part

    return mapped(node, as_product)
