r"""Congruences as a whole answer: `x \equiv 3 \pmod 7`, `3 (mod 7)`, `x \equiv 1, 5 \pmod 6`, `x \equiv \pm 1 \pmod 8`.

Several of them, joined by commas or connectives, are a list. Not covered: congruences of expressions.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeAlias

from truegold.verifiers.math.reading.tokens import Token, nesting, split_at, text_of
from truegold.verifiers.math.substitute import mapped
from truegold.verifiers.math.tree import MINUS_ONE, PLUS_ONE, BareList, Node, Residues, Sign, facts

ReadExpression: TypeAlias = Callable[[list[Token]], Node]
_MARKS = frozenset({"mod", "Mod", "bmod", "pmod", "modulo", "modulus"})
_BRACKETS = frozenset({"open", "close", "brace", "unbrace"})


def hold_congruences(tokens: list[Token]) -> bool:
    """Tell whether `mod` stands among the tokens."""
    return not _MARKS.isdisjoint(map(text_of, tokens))


def read_congruences(tokens: list[Token], read_expression: ReadExpression) -> Node | None:
    """Return what the congruences of an answer say; None where the tokens are more than congruences."""
    nodes: list[Node] = []
    start = 0
    joined = ","
    for index, token in enumerate(tokens):
        if token.text not in _MARKS or index < start:
            continue
        end = _end_of_modulus(tokens, index)
        node = _read_one(tokens[start:index], tokens[index + 1 : end], read_expression)
        if node is None:
            return None
        nodes.append(node)
        start = end
        if start < len(tokens):
            if tokens[start].kind not in ("sep", "gap"):
                return None
            joined = tokens[start].text or ","
            while start < len(tokens) and tokens[start].kind in ("sep", "gap"):
                joined = tokens[start].text or joined
                start += 1
    if not nodes or start < len(tokens):
        return None
    return nodes[0] if len(nodes) == 1 else BareList(tuple(nodes), joined)


def _end_of_modulus(tokens: list[Token], index: int) -> int:
    """Return where the modulus behind the mark at `index` ends, with the bracket that the mark stands in."""
    depth, end = 0, index + 1
    while end < len(tokens):
        if depth == 0 and tokens[end].kind in ("sep", "gap"):
            break
        depth += nesting(tokens[end])
        end += 1
    return end


def _read_one(before: list[Token], behind: list[Token], read_expression: ReadExpression) -> Residues | None:
    """Read `x \\equiv 3 (` and `7 )`."""
    while before and before[-1].kind in ("open", "brace", "gap"):
        before = before[:-1]
    modulus = [token for token in behind if token.kind not in _BRACKETS]
    label = ""
    relations = [i for i, token in enumerate(before) if token.kind == "rel"]
    if relations:
        head = before[: relations[0]]
        if (
            len(relations) > 1
            or before[relations[0]].text not in ("==", "=")
            or len(head) != 1
            or head[0].kind != "name"
        ):
            return None
        label, before = head[0].text, before[relations[0] + 1 :]
    parts = [part for chunk in split_at(before, ",") for part in split_at(chunk, "or")]
    parts = [smaller for part in parts for smaller in split_at(part, "and")]
    if not parts or not modulus:
        return None
    remainders = tuple(value for part in parts for value in _both_signs(read_expression(part)))
    return Residues(label, remainders, read_expression(modulus))


def _both_signs(node: Node) -> list[Node]:
    r"""Return 1 and -1 for `\pm 1`."""
    if facts(node).sign_count != 1:
        return [node]
    return [mapped(node, partial(_with_sign, sign)) for sign in (PLUS_ONE, MINUS_ONE)]


def _with_sign(sign: Node, part: Node) -> Node:
    return sign if isinstance(part, Sign) else part
