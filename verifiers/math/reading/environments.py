"""Parses LaTeX environments: matrices, `cases`, and lines such as `aligned`."""

from __future__ import annotations

from truegold.verifiers.math import tree
from truegold.verifiers.math.policy import UnreadableAnswer
from truegold.verifiers.math.reading.grammar import END, Grammar
from truegold.verifiers.math.reading.lexemes import Lexeme, Notation, split_at
from truegold.verifiers.math.vocabulary import LINE_ENVIRONMENTS, MATRIX_ENVIRONMENTS

_BOUNDING = frozenset({"<", ">", "<=", ">="})
"""Relations of a condition in `cases`."""
_IF = frozenset({"if", "when", "for", "where"})
"""Words before a condition."""
_OTHERWISE = frozenset({"otherwise", "else", "elsewhere"})
"""Words in place of the last condition."""
_NO_ITEM = frozenset({"op", "rel", "sep", "stop"})
"""Kinds of tokens at the start of a line that continues the line above."""


def read_environment(reader: Grammar, name: str) -> tree.Node:
    """Read an environment after `\\begin{name}`, including its `\\end`."""
    start, depth = reader.position, 1
    while depth:
        if (token := reader.take()) is END:
            raise UnreadableAnswer(f"\\begin{{{name}}} has no \\end")
        depth += (token.kind == "begin") - (token.kind == "end")
    inside = reader.tokens[start : reader.position - 1]
    if name in LINE_ENVIRONMENTS and name not in ("cases", "dcases"):
        return _read_lines(reader, inside, ("cell", "row"))
    if name not in MATRIX_ENVIRONMENTS and name not in LINE_ENVIRONMENTS:
        raise UnreadableAnswer(f"the unknown environment {name}")
    return _read_matrix(reader, inside, name)


def _read_matrix(reader: Grammar, inside: list[Lexeme], name: str) -> tree.Node:
    """Read a matrix, the pieces of `cases`, or one formula that is spread over cells."""
    rows, scattered = _split_rows(inside)
    lone_operator = any(len(row) == 1 and all(token.kind == "op" for token in row[0]) for row in rows)
    if name in ("matrix", "array", "tabular") and (scattered or lone_operator):
        # A program has spread one formula over several cells.
        return _read_lines(reader, inside, ("row", "cell", "gap"))
    if not rows:
        raise UnreadableAnswer("an empty matrix")
    if name in ("cases", "dcases", "rcases"):
        rows = list(map(_with_condition_apart, rows))
    cells = tuple(tuple(_read_cell(reader, cell) for cell in row) for row in rows)
    if name in ("cases", "dcases") and all(len(row) == 1 and isinstance(row[0], tree.Chain) for row in cells):
        return tree.BareList(tuple(row[0] for row in cells))
    return tree.Matrix(cells, bars=name in ("vmatrix", "Vmatrix"))


def _with_condition_apart(row: list[list[Lexeme]]) -> list[list[Lexeme]]:
    """Return the row `x, \\text{if } x > 0` of `cases` as the two cells `x` and `x > 0`."""
    if len(row) == 1 and len(parts := split_at(row[0], ",")) == 2 and any(t.text in _BOUNDING for t in parts[1]):
        row = parts
    if len(row) == 2 and len(row[1]) > 1 and row[1][0].kind == "word" and row[1][0].text.lower() in _IF:
        row = [row[0], row[1][1:]]
    return row


def _split_rows(inside: list[Lexeme]) -> tuple[list[list[list[Lexeme]]], bool]:
    """Return the cells of each row that is not empty, and whether a row ends within a group."""
    rows: list[list[list[Lexeme]]] = [[[]]]
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


def _read_cell(reader: Grammar, tokens: list[Lexeme]) -> tree.Node:
    tokens = tokens[:-1] if len(tokens) > 1 and tokens[-1].kind == "sep" else tokens
    if len(tokens) == 1 and tokens[0].text.lower() in _OTHERWISE:
        return tree.Text(("otherwise",))
    if all(token.kind == "word" for token in tokens):
        return tree.Text(tuple(token.text.lower() for token in tokens))
    return reader.read_separately(tokens, reader.depth + 1)


def _read_lines(reader: Grammar, tokens: list[Lexeme], breaks: tuple[str, ...]) -> tree.Node:
    """Read lines as one answer, where several equations are a list. `breaks` are the kinds of tokens to leave out."""
    usual = Notation(tight_products=reader.notation.tight_products, mixed_numbers=reader.notation.mixed_numbers)
    kept: list[Lexeme] = []
    for index, token in enumerate(tokens):
        if token.kind not in breaks:
            kept.append(token)
            continue
        following = next((part for part in tokens[index:] if part.kind not in breaks), END)
        is_line = token.kind == "row" and "gap" not in breaks and following.kind not in _NO_ITEM
        if is_line and "rel" in {part.kind for part in kept}:
            kept = kept[:-1] if kept[-1].text in (".", ",") else kept
            kept.append(Lexeme("sep", ",", False))
    kept = kept[:-1] if kept and kept[-1].text == "." else kept
    return reader.read_answer(kept, usual, reader.depth)
