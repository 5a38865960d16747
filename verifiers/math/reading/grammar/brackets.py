r"""Brackets, braces and bars.

(2, 3)  [0, 1)  \langle 1, 2 \rangle  \{1, 2\}      Group, with the brackets as written
\{x \mid x > 0\}                                    SetOf
(a+b)  {a+b}                                        what is inside
|x|  \lfloor x \rfloor                              Call
"""

from __future__ import annotations

from truegold.verifiers.math.reading.grammar.cursor import Grammar
from truegold.verifiers.math.refusals import Unreadable
from truegold.verifiers.math.tree import BareList, Call, Group, Matrix, Named, Node, SetOf, SetOps

_CLOSING = {"(": ")", "[": "]", "{": "}", "<": ">"}


def brackets(reader: Grammar, opening: str) -> Node:
    """What stands behind an opening bracket, with the closing one."""
    if opening in ("floor", "ceil"):
        inner = reader.sum()
        reader.expect("close", opening)
        return Call(opening, (inner,))
    reader.in_brackets += 1
    bars, reader.bars = reader.bars, 0
    if opening == "{":
        reader.bars = 1  # a bar inside separates the element from its condition
    node = _inside(reader, opening)
    reader.bars = bars
    reader.in_brackets -= 1
    return node


def _inside(reader: Grammar, opening: str) -> Node:
    if reader.took("close"):
        return Named("empty") if opening == "{" else Group(opening, _CLOSING[opening], ())
    items = [reader.relation()]
    if opening == "{" and (reader.took("bar") or reader.took("op", ":")):
        reader.bars = 0
        condition = _condition(reader)
        reader.expect("close")
        return SetOf(items[0], condition)
    while reader.took("sep") or reader.took("gap"):
        while reader.took("sep"):
            pass
        items.append(reader.relation())
    if not reader.at("close"):
        raise Unreadable(f"a bracket that is not closed at {reader.peek().text or reader.peek().kind!r}")
    closing = reader.take().text
    closing = "}" if closing == "{" else closing  # as the lexer writes `\}`
    if len(items) == 1 and ((opening == "(" and closing == ")") or isinstance(items[0], Matrix)):
        return items[0]
    return Group(opening, closing, tuple(items))


def _condition(reader: Grammar) -> Node:
    parts = [reader.relation()]
    joined = "cap"
    while reader.at("sep") or reader.at("gap"):
        joined = "cup" if reader.take().text == "or" else joined
        while reader.at("sep"):
            joined = "cup" if reader.take().text == "or" else joined
        parts.append(reader.relation())
    return parts[0] if len(parts) == 1 else SetOps(joined, tuple(parts))


def braces(reader: Grammar) -> Node:
    """What stands behind `{`, with the closing brace: a group of LaTeX, or the set that someone wrote without `\\`."""
    bars, reader.bars = reader.bars, 0
    if reader.at("unbrace"):
        raise Unreadable("an empty group")
    items = [reader.relation()]
    while reader.took("sep"):
        items.append(reader.relation())
    reader.expect("unbrace")
    reader.bars = bars
    return items[0] if len(items) == 1 else BareList(tuple(items))


def between_bars(reader: Grammar, mark: str) -> Node:
    """An absolute value, or a determinant."""
    reader.bars += 1
    inner = reader.sum()
    reader.expect("bar", mark)
    reader.bars -= 1
    return Matrix(inner.rows, bars=True) if isinstance(inner, Matrix) else Call("abs", (inner,))
