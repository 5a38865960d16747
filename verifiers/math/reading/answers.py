r"""Normal text to the tree of one answer: lists, and items that are mathematics, a quantity, or words.

    x=1\text{ or }x=2            BareList of two relations, joined by "or"
    p=5,q=2;p=7,q=2              BareList of two BareList
    k\pi, k\in\mathbb{Z}         Family: one value for each integer k (`conditions`)
    The area is 54 cm^2          54 cm^2 (`wording`, `quantities`)

Raises Unreadable for what is none of these, and TooLarge where a budget is met.
"""

from __future__ import annotations

import re

from gmpy2 import mpq

from truegold.verifiers.math.labels import label_of
from truegold.verifiers.math.reading.conditions import (
    conclusion,
    integers_in,
    integers_of,
    is_condition,
    without_conditions,
    without_remark,
)
from truegold.verifiers.math.reading.grammar import Reader
from truegold.verifiers.math.reading.lexer import lex
from truegold.verifiers.math.reading.notation import USUAL, Notation
from truegold.verifiers.math.reading.quantities import as_measure, letter_units, read_quantity
from truegold.verifiers.math.reading.tokens import Token, nesting, split_at
from truegold.verifiers.math.reading.wording import text_of, value_named, value_said
from truegold.verifiers.math.refusals import TooLarge, Unreadable
from truegold.verifiers.math.tree import BareList, Family, Node, Num

MAX_ITEMS = 100
"""Of one list. Stops an answer that lists every number there is."""

_SIMPLE = re.compile(r"(-?)(?:(\d{1,60})(?:\.(\d{1,60}))?|\\[dt]?frac\{(\d{1,60})\}\{(\d{1,60})\})", re.ASCII)
_SEPARATING = frozenset({"sep", "gap", "row"})
_WORDED = frozenset({"word", "money"})
_IDLE_COMMANDS = frozenset({"therefore", "because", "checkmark", "blacksquare"})


def read(text: str, notation: Notation = USUAL) -> Node:
    """The tree of normal `text`."""
    simple = _SIMPLE.fullmatch(text)
    if simple is not None:
        return _simple(simple)
    return read_tokens(lex(text, group_digits=notation.group_digits), notation)


def _simple(match: re.Match[str]) -> Node:
    """The commonest answers without a detour: 7, -0.5, \\frac{3}{4}."""
    sign, whole, places, above, below = match.groups()
    minus = -1 if sign else 1
    if whole is None:
        if not int(below):
            raise Unreadable("a division by zero")
        return Num(mpq(minus * int(above), int(below)))
    if places is None:
        return Num(mpq(minus * int(whole)))
    return Num(mpq(minus * int(whole + places), 10 ** len(places)), len(places))


def read_tokens(tokens: list[Token], notation: Notation = USUAL, depth: int = 0) -> Node:
    if not tokens:
        raise Unreadable("nothing")
    kinds = {token[0] for token in tokens}
    parameters: set[str] = set()
    if "rel" in kinds:
        tokens, remark = without_remark(conclusion(tokens))
        parameters |= integers_in(remark)
    if "word" in kinds or "cmd" in kinds:
        tokens, declared = without_conditions(tokens)
        parameters |= declared
    conditions: list[Node] = []
    if kinds.isdisjoint(_SEPARATING):
        node = _item(tokens, notation, depth)
    else:
        groups = split_at(tokens, ";")
        if len(groups) > 1 and any(len(split_at(group, ",")) > 1 for group in groups):
            node = BareList(tuple(_list(group, parameters, conditions, notation, depth) for group in groups), ";")
        else:
            node = _list(tokens, parameters, conditions, notation, depth)
    return Family(node, frozenset(parameters), tuple(conditions)) if parameters or conditions else node


def _list(tokens: list[Token], parameters: set[str], conditions: list[Node], notation: Notation, depth: int) -> Node:
    """One list; what it says of its letters goes to `parameters` and `conditions`."""
    slices, joined = _items(tokens)
    if len(slices) > MAX_ITEMS:
        raise TooLarge(f"a list of {len(slices)}, the limit is {MAX_ITEMS}")
    if not slices:
        raise Unreadable("nothing but separators")
    nodes: list[Node] = []
    for part in slices:
        node = _item(part, notation, depth)
        declared = integers_of(node)
        if declared and len(slices) > 1:
            parameters |= declared
        elif joined == "," and nodes and is_condition(node) and not is_condition(nodes[0]):
            conditions.append(node)
        else:
            nodes.append(node)
    return nodes[0] if len(nodes) == 1 else _regrouped(nodes, joined)


def _regrouped(nodes: list[Node], joined: str) -> Node:
    """p=5, q=2, p=7, q=2 are two pairs."""
    labels = [label_of(node) for node in nodes]
    if None not in labels:
        size = len(set(labels))
        if 1 < size < len(labels) and labels == labels[:size] * (len(labels) // size):
            pairs = [BareList(tuple(nodes[i : i + size])) for i in range(0, len(nodes), size)]
            return BareList(tuple(pairs), joined)
    return BareList(tuple(nodes), joined)


def _items(tokens: list[Token]) -> tuple[list[list[Token]], str]:
    """Cut at commas, connectives and wide gaps outside of all brackets; and how the last items are joined."""
    parts: list[list[Token]] = [[]]
    joined = ","
    depth = 0
    for token in tokens:
        depth += nesting(token)
        if depth > 0 or token.kind not in _SEPARATING:
            parts[-1].append(token)
        elif token.kind != "gap" or not (parts[-1] and parts[-1][-1].kind in ("rel", "op")):
            if token.text in ("or", "and") and joined != "or":
                joined = token.text
            parts.append([])
    merged: list[list[Token]] = []
    for part in parts:
        if part and merged and part[0].kind == "rel":  # a gap before a relation separates nothing
            merged[-1].extend(part)
        elif part:
            merged.append(part)
    return merged, joined


def _item(tokens: list[Token], notation: Notation, depth: int) -> Node:
    """One item: mathematics if it can be read as such, else a quantity, else what its words say."""
    if notation.letter_units and (measure := letter_units(tokens, notation)) is not None:
        return measure
    worded = not _WORDED.isdisjoint([token[0] for token in tokens])
    if not worded or all(len(t.text) == 1 and t.text.isascii() for t in tokens if t.kind == "word"):
        try:
            return as_measure(Reader(tokens, notation, depth).whole())
        except Unreadable:
            quantity = read_quantity(tokens, notation, depth)
            if quantity is not None:
                return quantity
            if not worded:
                return _repaired(tokens, notation, depth)
    named = value_named(tokens)
    if named is not None:
        return named
    quantity = read_quantity(tokens, notation, depth)
    return quantity if quantity is not None else _said(tokens, notation, depth)


def _said(tokens: list[Token], notation: Notation, depth: int) -> Node:
    said = value_said(tokens)
    if said is not None:
        node = _item(said.tokens, notation, depth)
        if not isinstance(node, said.unless):
            return node
    return text_of(tokens)


def _repaired(tokens: list[Token], notation: Notation, depth: int) -> Node:
    """A leading `=` or mark of a conclusion; numbers with blanks between them."""
    first = tokens[0]
    idle = (first.kind == "rel" and first.text in ("=", "~")) or (first.kind == "cmd" and first.text in _IDLE_COMMANDS)
    if idle and len(tokens) > 1:
        return _item(tokens[1:], notation, depth)
    if all(token.kind == "num" or token.text == "-" for token in tokens):  # 2 3 5
        starts = [i for i, token in enumerate(tokens) if i == 0 or _begins_number(tokens, i, token)]
        parts = [tokens[start:end] for start, end in zip(starts, [*starts[1:], len(tokens)], strict=True)]
        if len(parts) > 1 and all(part[-1].kind == "num" and len(part) <= 2 for part in parts):
            return BareList(tuple(Reader(part).whole() for part in parts))
    return as_measure(Reader(tokens, notation, depth).whole())


def _begins_number(tokens: list[Token], index: int, token: Token) -> bool:
    return token.spaced and (token.kind == "num" or index + 1 < len(tokens))
