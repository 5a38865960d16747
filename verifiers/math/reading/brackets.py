"""Parses operands in brackets, braces and bars: groups, sets, arguments, absolute values, bras and kets."""

from __future__ import annotations

import functools

from truegold.verifiers.math import tree
from truegold.verifiers.math.policy import UnreadableAnswer
from truegold.verifiers.math.reading.grammar import Grammar

_CLOSING = {"(": ")", "[": "]", "]": "[", "{": "}", "<": ">"}
"""Maps an opening bracket to the closing one."""
_MAX_KET_TOKENS = 24
"""Maximum number of tokens in a ket, and in a condition as in P(A|B)."""


def read_arguments(reader: Grammar, closing: str) -> tuple[tree.Node, ...]:
    """Read the arguments of a function after the opening bracket, including the closing one."""
    reader.in_brackets += 1
    bars, reader.bars = reader.bars, 0
    args = [reader.read_relation()]
    while reader.take_if("sep", ",") or reader.take_if("sep", ";"):
        args.append(reader.read_relation())
    reader.expect("close", closing)
    reader.bars = bars
    reader.in_brackets -= 1
    return tuple(args)


def read_brackets(reader: Grammar, opening: str) -> tree.Node:
    """Read the contents of brackets after the opening one, including the closing one."""
    if opening == "<" and (bracket := _read_ket(reader, "⟨")) is not None:
        return bracket
    if opening in ("floor", "ceil"):
        inner = reader.read_sum()
        reader.expect("close", opening)
        return tree.FunctionCall(opening, (inner,))
    reader.in_brackets += 1
    bars, reader.bars = reader.bars, 0
    in_set, reader.in_set = reader.in_set, opening == "{"
    if opening == "{":
        # In `{x | x > 0}` the bar separates an element from its condition.
        reader.bars = 1
    node = _read_inside(reader, opening)
    reader.bars, reader.in_set = bars, in_set
    reader.in_brackets -= 1
    return node


def _read_inside(reader: Grammar, opening: str) -> tree.Node:
    """Read the elements of a bracket, or the element and the condition of a set."""
    if reader.take_if("close"):
        return tree.Named("empty") if opening == "{" else tree.Group(opening, _CLOSING[opening], ())
    elements = [reader.read_relation()]
    is_continued_fraction = opening == "[" and reader.next_is("sep", ";")
    if opening == "{" and (reader.take_if("bar") or reader.take_if("op", ":")):
        reader.bars, reader.in_set = 0, False
        condition = _read_condition(reader)
        reader.expect("close")
        return tree.SetOf(elements[0], condition)
    while reader.take_if("sep") or reader.take_if("gap"):
        while reader.take_if("sep"):
            pass
        elements.append(reader.read_relation())
    if not reader.next_is("close"):
        raise UnreadableAnswer(f"a bracket that is not closed before {reader.peek().text or reader.peek().kind!r}")
    closing = reader.take().text
    # The lexer writes `\}` as a closing `{`.
    closing = "}" if closing == "{" else closing
    if is_continued_fraction and closing == "]" and len(elements) > 2 and all(map(_is_whole, elements)):
        return functools.reduce(
            lambda below, part: tree.Add((part, tree.Pow(below, tree.MINUS_ONE))), reversed(elements)
        )
    if len(elements) == 1 and ((opening == "(" and closing == ")") or isinstance(elements[0], tree.Matrix)):
        return elements[0]
    return tree.Group(opening, closing, tuple(elements))


def _is_whole(node: tree.Node) -> bool:
    return isinstance(node, tree.Num) and node.decimals is None and node.value.denominator == 1


def _read_condition(reader: Grammar) -> tree.Node:
    parts = [reader.read_relation()]
    joined = "cap"
    while reader.next_is("sep") or reader.next_is("gap"):
        joined = "cup" if reader.take().text == "or" else joined
        while reader.next_is("sep"):
            joined = "cup" if reader.take().text == "or" else joined
        parts.append(reader.read_relation())
    return parts[0] if len(parts) == 1 else tree.SetOps(joined, tuple(parts))


def read_braces(reader: Grammar) -> tree.Node:
    """Read a LaTeX group, or a set written without `\\`, after the opening brace."""
    bars, reader.bars = reader.bars, 0
    if reader.next_is("unbrace"):
        raise UnreadableAnswer("an empty group")
    elements = [reader.read_relation()]
    while reader.take_if("sep"):
        elements.append(reader.read_relation())
    reader.expect("unbrace")
    reader.bars = bars
    return elements[0] if len(elements) == 1 else tree.BareList(tuple(elements))


def read_bars(reader: Grammar, mark: str) -> tree.Node:
    """Read an absolute value, a determinant or a ket after the first bar."""
    if (ket := _read_ket(reader, "|")) is not None:
        return ket
    reader.bars += 1
    inner = reader.read_sum()
    reader.expect("bar", mark)
    reader.bars -= 1
    is_determinant = isinstance(inner, tree.Matrix) and len(inner.rows) == len(inner.rows[0]) and mark == "|"
    if isinstance(inner, tree.Matrix) and is_determinant:
        return tree.Matrix(inner.rows, bars=True)
    return tree.FunctionCall("abs", (inner,))


def _read_ket(reader: Grammar, opening: str) -> tree.Node | None:
    r"""Read the rest of |0\rangle, \langle 0| or \langle x\rangle as one name. Return None for a value or a vector."""
    text, index, bars = opening, reader.position, 0
    for token in reader.tokens[index : index + _MAX_KET_TOKENS]:
        index += 1
        is_end = token.kind == "close" and token.text == ">"
        if token.kind in ("open", "sep", "stop", "rel") or (token.kind == "close" and not is_end):
            break
        text += "⟩" if is_end else token.text
        if is_end:
            reader.position = index
            return tree.Sym(text)
        if token.kind == "bar":
            bars, end, bra = bars + 1, index, text
            if opening == "|":
                break
    if opening == "|" or not bars:
        return None
    reader.position = end
    return tree.Sym(bra)


def read_given(reader: Grammar) -> str | None:
    """Return the text in the brackets of P(A|B) and P(x>2), which is not a value. Return None for other brackets."""
    texts: list[str] = []
    has_relation = False
    for index, token in enumerate(reader.tokens[reader.position + 1 : reader.position + _MAX_KET_TOKENS]):
        if token.kind == "close":
            is_condition = texts.count("|") == 1 or (reader.tokens[reader.position - 1].text == "P" and has_relation)
            if not is_condition or token.text != ")":
                return None
            reader.position += index + 2
            return "".join(texts)
        if token.kind in ("open", "stop", "sep"):
            return None
        has_relation |= token.kind == "rel"
        texts.append(token.text)
    return None
