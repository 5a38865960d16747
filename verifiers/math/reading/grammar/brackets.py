r"""Brackets, braces and bars.

(2, 3)  [0, 1)  \langle 1, 2 \rangle  \{1, 2\}      Group, with the brackets as written
\{x \mid x > 0\}                                    SetOf
(a+b)  {a+b}                                        the expression inside
|x|  \lfloor x \rfloor                              Call
"""

from __future__ import annotations

from truegold.verifiers.math.reading.grammar.levels import Grammar
from truegold.verifiers.math.refusals import Unreadable
from truegold.verifiers.math.tree import BareList, Call, Group, Matrix, Named, Node, SetOf, SetOps

_CLOSING = {"(": ")", "[": "]", "]": "[", "{": "}", "<": ">"}


def read_brackets(reader: Grammar, opening: str) -> Node:
    """Read what stands behind an opening bracket, with the closing one."""
    if opening in ("floor", "ceil"):
        inner = reader.read_sum()
        reader.expect("close", opening)
        return Call(opening, (inner,))
    reader.in_brackets += 1
    bars, reader.bars = reader.bars, 0
    in_set, reader.in_set = reader.in_set, opening == "{"
    if opening == "{":
        # A bar inside of braces separates an element from its condition.
        reader.bars = 1
    node = _read_inside(reader, opening)
    reader.bars, reader.in_set = bars, in_set
    reader.in_brackets -= 1
    return node


def _read_inside(reader: Grammar, opening: str) -> Node:
    if reader.take_if("close"):
        return Named("empty") if opening == "{" else Group(opening, _CLOSING[opening], ())
    elements = [reader.read_relation()]
    if opening == "{" and (reader.take_if("bar") or reader.take_if("op", ":")):
        reader.bars, reader.in_set = 0, False
        condition = _read_condition(reader)
        reader.expect("close")
        return SetOf(elements[0], condition)
    while reader.take_if("sep") or reader.take_if("gap"):
        while reader.take_if("sep"):
            pass
        elements.append(reader.read_relation())
    if not reader.next_is("close"):
        raise Unreadable(f"a bracket that is not closed at {reader.peek().text or reader.peek().kind!r}")
    closing = reader.take().text
    # The lexer writes `\}` as a closing `{`.
    closing = "}" if closing == "{" else closing
    if len(elements) == 1 and ((opening == "(" and closing == ")") or isinstance(elements[0], Matrix)):
        return elements[0]
    return Group(opening, closing, tuple(elements))


def _read_condition(reader: Grammar) -> Node:
    parts = [reader.read_relation()]
    joined = "cap"
    while reader.next_is("sep") or reader.next_is("gap"):
        joined = "cup" if reader.take().text == "or" else joined
        while reader.next_is("sep"):
            joined = "cup" if reader.take().text == "or" else joined
        parts.append(reader.read_relation())
    return parts[0] if len(parts) == 1 else SetOps(joined, tuple(parts))


def read_braces(reader: Grammar) -> Node:
    """Read what stands behind `{`, with the closing brace: a group of LaTeX, or a set written without `\\`."""
    bars, reader.bars = reader.bars, 0
    if reader.next_is("unbrace"):
        raise Unreadable("an empty group")
    elements = [reader.read_relation()]
    while reader.take_if("sep"):
        elements.append(reader.read_relation())
    reader.expect("unbrace")
    reader.bars = bars
    return elements[0] if len(elements) == 1 else BareList(tuple(elements))


def read_bars(reader: Grammar, mark: str) -> Node:
    """Read an absolute value or a determinant, with the closing bar."""
    reader.bars += 1
    inner = reader.read_sum()
    reader.expect("bar", mark)
    reader.bars -= 1
    return Matrix(inner.rows, bars=True) if isinstance(inner, Matrix) else Call("abs", (inner,))
