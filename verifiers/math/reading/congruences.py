r"""Parses congruences: `x \equiv 3 \pmod 7`, `3 mod 7`, `x \equiv 1, 5 \pmod 6`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeAlias

from truegold.verifiers.math.reading.lexemes import NESTING, Lexeme, split_at
from truegold.verifiers.math.tree import MINUS_ONE, PLUS_ONE, BareList, Node, Residues, Sign, facts, mapped

MODULUS_MARKS = frozenset({"mod", "Mod", "bmod", "pmod", "modulo", "modulus"})
"""Words and commands before a modulus."""
_BRACKETS = frozenset({"open", "close", "brace", "unbrace"})


ReadExpression: TypeAlias = Callable[[list[Lexeme]], Node]
"""Reads tokens as one expression."""


def read_congruences(tokens: list[Lexeme], read_expression: ReadExpression) -> Node | None:
    """Return the tree of an answer that consists of congruences, or None for other answers."""
    nodes: list[Node] = []
    start = 0
    joined = ","
    for index, token in enumerate(tokens):
        if token.text not in MODULUS_MARKS or index < start:
            continue
        end = _end_of_modulus(tokens, index)
        if (node := _read_one(tokens[start:index], tokens[index + 1 : end], read_expression)) is None:
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


def _end_of_modulus(tokens: list[Lexeme], index: int) -> int:
    """Return the end of the modulus after the `mod` at `index`, including the closing bracket of `(mod 7)`."""
    depth, end = 0, index + 1
    while end < len(tokens):
        if depth == 0 and tokens[end].kind in ("sep", "gap"):
            break
        depth += NESTING.get(tokens[end][0], 0)
        end += 1
    return end


def _read_one(before: list[Lexeme], behind: list[Lexeme], read_expression: ReadExpression) -> Residues | None:
    """Read one congruence from the tokens before its `mod` (`x \\equiv 3 (`) and the tokens after it (`7 )`)."""
    while before and before[-1].kind in ("open", "brace", "gap"):
        before = before[:-1]
    modulus = [token for token in behind if token.kind not in _BRACKETS]
    label = ""
    relations = [i for i, token in enumerate(before) if token.kind == "rel"]
    if relations:
        head, relation = before[: relations[0]], before[relations[0]].text
        if len(relations) > 1 or relation not in ("==", "=") or [token.kind for token in head] != ["name"]:
            return None
        label, before = head[0].text, before[relations[0] + 1 :]
    parts = [part for chunk in split_at(before, ",") for part in split_at(chunk, "or")]
    parts = [smaller for part in parts for smaller in split_at(part, "and")]
    if not parts or not modulus:
        return None
    remainders = tuple(value for part in parts for value in _both_signs(read_expression(part)))
    return Residues(label, remainders, read_expression(modulus))


def _both_signs(node: Node) -> list[Node]:
    r"""Return 1 and -1 for `\pm 1`, and any other value alone."""
    if facts(node).sign_count != 1:
        return [node]
    return [mapped(node, partial(_with_sign, sign)) for sign in (PLUS_ONE, MINUS_ONE)]


def _with_sign(sign: Node, part: Node) -> Node:
    return sign if isinstance(part, Sign) else part
