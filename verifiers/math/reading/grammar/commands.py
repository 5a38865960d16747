"""Commands with arguments: fractions, roots, binomials, sets of numbers, angles."""

from __future__ import annotations

from truegold.verifiers.math.reading.grammar.atoms import argument, flat
from truegold.verifiers.math.reading.grammar.cursor import END, Grammar
from truegold.verifiers.math.refusals import Unreadable
from truegold.verifiers.math.tree import HALF, MINUS_ONE, Call, Mul, Named, Node, Pow, Sym

NUMBER_SETS = {"R": "reals", "Z": "integers", "N": "naturals", "Q": "rationals", "C": "complexes"}


def command(reader: Grammar, name: str) -> Node:
    if name == "frac":
        above, below = argument(reader), argument(reader)
        return Mul((above, Pow(below, MINUS_ONE)))
    if name == "sqrt":
        return _root(reader)
    if name == "usqrt":
        return Pow(reader.atom(), HALF)
    if name == "binom":
        return Call("binom", (argument(reader), argument(reader)))
    return _symbol(reader, name)


def _symbol(reader: Grammar, name: str) -> Node:
    if name == "mathbb":
        return _number_set(reader)
    if name in ("emptyset", "varnothing"):
        return Named("empty")
    if name in ("angle", "triangle"):
        return Sym(f"{name} {flat(reader.product())}")
    if name in ("mod", "bmod", "pmod"):
        raise Unreadable("a modulus outside of a congruence")
    raise Unreadable(f"\\{name}")


def _root(reader: Grammar) -> Node:
    if reader.took("open", "["):
        degree = reader.sum()
        reader.expect("close", "]")
        return Call("root", (argument(reader), degree))
    return Pow(argument(reader, split_digits=False), HALF)


def _number_set(reader: Grammar) -> Node:
    """`\\mathbb{R}`, with its marks: `\\mathbb{Z}^+`."""
    braced = reader.took("brace")
    name = NUMBER_SETS.get(reader.take().text)
    if braced:
        reader.expect("unbrace")
    if name is None:
        raise Unreadable("an unknown set of numbers")
    marks: list[str] = []
    while reader.took("op", "_") or reader.took("op", "^"):
        marks.append(_mark(reader))
    return Named(_marked(name, marks))


def _mark(reader: Grammar) -> str:
    """The text of one token, or of a group."""
    if not reader.took("brace"):
        return reader.take().text
    text = ""
    while not reader.took("unbrace"):
        if reader.peek() is END:
            raise Unreadable("a group that is not closed")
        text += reader.take().text
    return text


def _marked(name: str, marks: list[str]) -> str:
    mark = "".join(marks)
    if name in ("integers", "reals", "rationals") and mark in ("+", ">0", "*+", "+*"):
        return f"positive {name}"
    if name == "naturals":
        return "positive integers" if mark in ("+", "*", ">0", "1") else "naturals"
    return " ".join([name, *marks])
