r"""The grammar of one expression, for school and contest mathematics.

    relation < union, difference < sum, ± < product, quotient, side by side < sign < power, !, %, ° < atom

Where notation is ambiguous, the reading is fixed here: `2\frac13` is a mixed number, `1/2x` is (1/2)x (both as the
notation says), `\sin 2x` takes the product and `\sin(x)y` does not, `f(x)` is an application for the letters f, g, h
and a product otherwise, `x1` is x with a subscript. What is no expression raises Unreadable, what is nested too deeply
TooLarge. Not covered: lists without brackets, and words (`answers`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ClassVar

from truegold.verifiers.math.reading.grammar.atoms import read_name, read_number, read_numeral, subscript_name
from truegold.verifiers.math.reading.grammar.brackets import read_bars, read_braces, read_brackets
from truegold.verifiers.math.reading.grammar.commands import read_command
from truegold.verifiers.math.reading.grammar.environments import read_environment
from truegold.verifiers.math.reading.grammar.functions import read_big_operator, read_function
from truegold.verifiers.math.reading.grammar.levels import Grammar
from truegold.verifiers.math.reading.tokens import Token
from truegold.verifiers.math.refusals import Unreadable
from truegold.verifiers.math.tree import Const, Node, Num, Sym

__all__ = ["ExpressionReader"]


def _read_opening(reader: Grammar, token: Token) -> Node:
    """Read what stands in brackets, or the numeral `(101)_2`."""
    inner = read_brackets(reader, token.text)
    if isinstance(inner, Num) and inner.value.denominator == 1 and reader.next_is("op", "_"):
        return read_numeral(reader, Token("num", str(inner.value), False))
    return inner


def _read_group(reader: Grammar, _: Token) -> Node:
    """Read what stands in braces, or a variable that is dressed before its subscript: `\\mathbf{u}_{1}`."""
    inner = read_braces(reader)
    if isinstance(inner, Sym) and "_" not in inner.name and reader.take_if("op", "_"):
        return Sym(f"{inner.name}_{subscript_name(reader.read_script())}")
    return inner


def _read_one_letter(reader: Grammar, token: Token) -> Node:
    if len(token.text) == 1 and token.text.isascii():
        return read_name(reader, token)
    raise Unreadable(f"no operand at {token.text!r}")


class ExpressionReader(Grammar):
    """Reads the expression that its tokens are."""

    __slots__ = ()
    atoms: ClassVar[Mapping[str, Callable[[Grammar, Token], Node]]] = {
        "num": read_number,
        "name": read_name,
        "const": lambda _, token: Const(token.text),
        "func": lambda reader, token: read_function(reader, token.text),
        "cmd": lambda reader, token: read_command(reader, token.text),
        "open": _read_opening,
        "brace": _read_group,
        "bar": lambda reader, token: read_bars(reader, token.text),
        "big": lambda reader, token: read_big_operator(reader, token.text),
        "begin": lambda reader, token: read_environment(reader, token.text),
        "word": _read_one_letter,
    }
