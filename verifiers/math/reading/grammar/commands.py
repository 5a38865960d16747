"""Commands with arguments: fractions, roots, binomials, sets of numbers, angles."""

from __future__ import annotations

from truegold.verifiers.math.reading.grammar.atoms import read_argument, subscript_name
from truegold.verifiers.math.reading.grammar.cursor import END
from truegold.verifiers.math.reading.grammar.levels import Grammar
from truegold.verifiers.math.refusals import Unreadable
from truegold.verifiers.math.tree import HALF, MINUS_ONE, Call, Mul, Named, Node, Pow, Sym

_NUMBER_SETS = {"R": "reals", "Z": "integers", "N": "naturals", "Q": "rationals", "C": "complexes"}


def read_command(reader: Grammar, name: str) -> Node:
    """Read what stands behind a command. Raises Unreadable for a command that is in no answer."""
    if name == "frac":
        above, below = read_argument(reader), read_argument(reader)
        return Mul((above, Pow(below, MINUS_ONE)))
    if name == "sqrt":
        return _read_root(reader)
    if name == "usqrt":
        return Pow(reader.read_atom(), HALF)
    if name == "binom":
        return Call("binom", (read_argument(reader), read_argument(reader)))
    return _read_symbol(reader, name)


def _read_symbol(reader: Grammar, name: str) -> Node:
    if name == "mathbb":
        return _read_number_set(reader)
    if name in ("emptyset", "varnothing"):
        return Named("empty")
    if name in ("angle", "triangle"):
        return Sym(f"{name} {subscript_name(reader.read_product())}")
    if name in ("mod", "bmod", "pmod"):
        raise Unreadable("a modulus outside of a congruence")
    raise Unreadable(f"\\{name}")


def _read_root(reader: Grammar) -> Node:
    if reader.take_if("open", "["):
        degree = reader.read_sum()
        reader.expect("close", "]")
        return Call("root", (read_argument(reader), degree))
    return Pow(read_argument(reader, split_digits=False), HALF)


def _read_number_set(reader: Grammar) -> Node:
    """Read a set of numbers with its marks: `\\mathbb{R}`, `\\mathbb{Z}^+`."""
    braced = reader.take_if("brace")
    name = _NUMBER_SETS.get(reader.take().text)
    if braced:
        reader.expect("unbrace")
    if name is None:
        raise Unreadable("an unknown set of numbers")
    marks: list[str] = []
    while reader.take_if("op", "_") or reader.take_if("op", "^"):
        marks.append(_read_mark(reader))
    return Named(_name_with_marks(name, marks))


def _read_mark(reader: Grammar) -> str:
    """Return the text of one token or of a group."""
    if not reader.take_if("brace"):
        return reader.take().text
    text = ""
    while not reader.take_if("unbrace"):
        if reader.peek() is END:
            raise Unreadable("a group that is not closed")
        text += reader.take().text
    return text


def _name_with_marks(name: str, marks: list[str]) -> str:
    mark = "".join(marks)
    if name in ("integers", "reals", "rationals") and mark in ("+", ">0", "*+", "+*"):
        return f"positive {name}"
    if name == "naturals":
        return "positive integers" if mark in ("+", "*", ">0", "1") else "naturals"
    return " ".join([name, *marks])
