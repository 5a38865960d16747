r"""Environments: matrices, and the lines of a list or of one long formula."""

from __future__ import annotations

from truegold.verifiers.math.reading.grammar.cursor import END, Grammar
from truegold.verifiers.math.reading.names import LINES, MATRICES
from truegold.verifiers.math.reading.notation import Notation
from truegold.verifiers.math.reading.tokens import Token
from truegold.verifiers.math.refusals import Unreadable
from truegold.verifiers.math.tree import Matrix, Node, Text


def environment(reader: Grammar, name: str) -> Node:
    """What stands behind `\\begin{name}`, with its end."""
    start, depth = reader.position, 1
    while depth:
        token = reader.take()
        if token is END:
            raise Unreadable(f"\\begin{{{name}}} is never ended")
        depth += (token.kind == "begin") - (token.kind == "end")
    inside = reader.tokens[start : reader.position - 1]
    if name in LINES and name not in ("cases", "dcases"):
        return _joined(reader, inside, ("cell", "row"))
    if name not in MATRICES and name not in LINES:
        raise Unreadable(f"the environment {name}")
    if name == "array" and inside and inside[0].kind == "brace":  # the columns
        closing = next((i for i, token in enumerate(inside) if token.kind == "unbrace"), -1)
        inside = inside[closing + 1 :]
    return _matrix(reader, inside, name)


def _matrix(reader: Grammar, inside: list[Token], name: str) -> Node:
    rows, scattered = _rows(inside)
    lone = any(len(row) == 1 and all(token.kind == "op" for token in row[0]) for row in rows)
    if name in ("matrix", "array") and (scattered or lone):  # one formula, broken up by whatever wrote it
        return _joined(reader, inside, ("row", "cell", "gap"))
    if not rows:
        raise Unreadable("an empty matrix")
    cells = tuple(tuple(_cell(reader, cell) for cell in row) for row in rows)
    return Matrix(cells, bars=name in ("vmatrix", "Vmatrix"))


def _rows(inside: list[Token]) -> tuple[list[list[list[Token]]], bool]:
    """The rows that are not empty, and whether a row ends within a group."""
    rows: list[list[list[Token]]] = [[[]]]
    depth = 0
    scattered = False
    for token in inside:
        depth += (token.kind in ("brace", "begin")) - (token.kind in ("unbrace", "end"))
        if token.kind == "row" and depth == 0:
            rows.append([[]])
        elif token.kind == "cell" and depth == 0:
            rows[-1].append([])
        else:
            scattered |= token.kind == "row"
            if token.kind != "gap":
                rows[-1][-1].append(token)
    return [row for row in rows if any(row)], scattered


def _cell(reader: Grammar, tokens: list[Token]) -> Node:
    if all(token.kind == "word" for token in tokens):
        return Text(tuple(token.text.lower() for token in tokens))
    return reader.apart(tokens[:-1] if tokens[-1].kind == "sep" else tokens, reader.depth + 1)


def _joined(reader: Grammar, tokens: list[Token], without: tuple[str, ...]) -> Node:
    # A list may hold an environment, and an environment lines of a list: the one true circle among these modules.
    from truegold.verifiers.math.reading.answers import read_tokens

    notation = Notation(tight=reader.notation.tight, mixed=reader.notation.mixed)
    return read_tokens([token for token in tokens if token.kind not in without], notation, reader.depth)
