"""Environments: matrices, and the lines of a list or of one long formula."""

from __future__ import annotations

from truegold.verifiers.math.reading.grammar.cursor import END
from truegold.verifiers.math.reading.grammar.levels import Grammar
from truegold.verifiers.math.reading.names import LINE_ENVIRONMENTS, MATRIX_ENVIRONMENTS
from truegold.verifiers.math.reading.notation import Notation
from truegold.verifiers.math.reading.tokens import Token
from truegold.verifiers.math.refusals import Unreadable
from truegold.verifiers.math.tree import BareList, Chain, Matrix, Node, Text


def read_environment(reader: Grammar, name: str) -> Node:
    """Read what stands behind `\\begin{name}`, with its end."""
    start, depth = reader.position, 1
    while depth:
        token = reader.take()
        if token is END:
            raise Unreadable(f"\\begin{{{name}}} is never ended")
        depth += (token.kind == "begin") - (token.kind == "end")
    inside = reader.tokens[start : reader.position - 1]
    if name in LINE_ENVIRONMENTS and name not in ("cases", "dcases"):
        return _read_lines(reader, inside, ("cell", "row"))
    if name not in MATRIX_ENVIRONMENTS and name not in LINE_ENVIRONMENTS:
        raise Unreadable(f"the environment {name}")
    return _read_matrix(reader, inside, name)


def _read_matrix(reader: Grammar, inside: list[Token], name: str) -> Node:
    rows, scattered = _split_rows(inside)
    lone_operator = any(len(row) == 1 and all(token.kind == "op" for token in row[0]) for row in rows)
    if name in ("matrix", "array", "tabular") and (scattered or lone_operator):
        # Whatever wrote this broke up one formula.
        return _read_lines(reader, inside, ("row", "cell", "gap"))
    if not rows:
        raise Unreadable("an empty matrix")
    cells = tuple(tuple(_read_cell(reader, cell) for cell in row) for row in rows)
    if name in ("cases", "dcases") and all(len(row) == 1 and isinstance(row[0], Chain) for row in cells):
        return BareList(tuple(row[0] for row in cells))
    return Matrix(cells, bars=name in ("vmatrix", "Vmatrix"))


def _split_rows(inside: list[Token]) -> tuple[list[list[list[Token]]], bool]:
    """Return the rows that are not empty, and whether a row ends within a group."""
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


def _read_cell(reader: Grammar, tokens: list[Token]) -> Node:
    if all(token.kind == "word" for token in tokens):
        return Text(tuple(token.text.lower() for token in tokens))
    return reader.read_separately(tokens[:-1] if tokens[-1].kind == "sep" else tokens, reader.depth + 1)


def _read_lines(reader: Grammar, tokens: list[Token], breaks: tuple[str, ...]) -> Node:
    """Read lines as one answer, without the tokens that break it up."""
    usual = Notation(tight_products=reader.notation.tight_products, mixed_numbers=reader.notation.mixed_numbers)
    return reader.read_answer([token for token in tokens if token.kind not in breaks], usual, reader.depth)
