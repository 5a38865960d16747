r"""Numbers and names.

3 \frac12, 3 1/2     7/2, a mixed number          101_2       a numeral of base 2
x_1, x1, x'          one variable each            f(x), W(x)  the application of a function
C_{10}^{3}           a binomial                   e, i        constants
"""

from __future__ import annotations

from gmpy2 import mpq

from truegold.verifiers.math.budget import charge
from truegold.verifiers.math.reading.grammar.levels import Grammar
from truegold.verifiers.math.reading.tokens import Token
from truegold.verifiers.math.refusals import Unreadable
from truegold.verifiers.math.tree import Add, BareList, BaseN, Call, Const, Group, Mul, Node, Num, Sym

APPLIED = frozenset("fghFGH")
"""Letters that are functions where a bracket follows."""

_COUNTS = {"C_": "binom", "A_": "perm", "P_": "perm"}
_MAX_SUBSCRIPT_DIGITS = 2


def read_number(reader: Grammar, token: Token) -> Node:
    """Read what may stand behind a number: the fraction of a mixed number, or a base."""
    if reader.next_is("op", "_"):
        return read_numeral(reader, token)
    if token.decimals is None and token.text.isdigit():
        part = _read_fraction_part(reader)
        if part is not None:
            return Num(token.value + part)
    return Num(token.value, token.decimals)


def read_numeral(reader: Grammar, token: Token) -> Node:
    """Read the base behind the digits in `token`."""
    reader.take()
    base = reader.read_script()
    whole = isinstance(base, Num) and base.value.denominator == 1 and token.decimals is None
    if not whole or not isinstance(base, Num) or not 2 <= base.value <= 36:
        raise Unreadable("a number with a subscript that is no base")
    return BaseN(token.text, int(base.value))


def read_argument(reader: Grammar, *, split_digits: bool = True) -> Node:
    """Read a command's argument: a group in braces, or one character; without `split_digits`, also a whole number."""
    token = reader.peek()
    if token.kind != "num":
        return reader.read_atom()
    if split_digits and len(token.text) > 1 and token.text.isdigit():
        rest = token.text[1:]
        reader.tokens[reader.position] = Token("num", rest, False, mpq(int(rest)))
        return Num(mpq(int(token.text[0])))
    reader.take()
    return Num(token.value, token.decimals)


def _read_fraction_part(reader: Grammar) -> mpq | None:
    """Read the fraction of a mixed number where one follows: `\\frac12` if the notation says so, or ` 1/2`."""
    if reader.next_is("cmd", "frac"):
        return _read_fraction_command(reader) if reader.notation.mixed_numbers else None
    if reader.next_is("num") and reader.peek().spaced and reader.peek(1).text == "/" and reader.peek(2).kind == "num":
        above, below = reader.peek().value, reader.peek(2).value
        if reader.peek(3).text != "^" and 0 < above < below and above.denominator == 1 == below.denominator:
            reader.position += 3
            return above / below
    return None


def _read_fraction_command(reader: Grammar) -> mpq | None:
    start, tokens = reader.position, reader.tokens
    charge(len(tokens) // 50)
    # Reading `\frac12` splits a token, which may have to be undone.
    reader.tokens = tokens.copy()
    reader.take()
    above, below = read_argument(reader), read_argument(reader)
    # With an exponent behind it, 2\frac12^3 is a product.
    raised = reader.next_is("op", "^")
    if isinstance(above, Num) and isinstance(below, Num) and 0 < above.value < below.value and not raised:
        return above.value / below.value
    reader.tokens, reader.position = tokens, start
    return None


def read_name(reader: Grammar, token: Token) -> Node:
    """Read a variable, a constant of one letter, or an application."""
    name = token.text
    if reader.tokens[reader.position][0] in ("op", "num"):
        name = _read_name_with_marks(reader, token)
    if name in ("e", "i"):
        return Const(name)
    if name[:2] in _COUNTS and name[2:].isdigit() and reader.next_is("op", "^"):
        start = reader.position
        reader.take()
        chosen = reader.read_script()
        if isinstance(chosen, Num):
            return Call(_COUNTS[name[:2]], (Num(mpq(int(name[2:]))), chosen))
        reader.position = start
    if reader.next_is("open", "(") and not reader.peek().spaced and (name[0] in APPLIED or _defines_function(reader)):
        reader.take()
        return Call(name, read_arguments(reader, ")"), applied=True)
    return Sym(name)


def _read_name_with_marks(reader: Grammar, token: Token) -> str:
    """Read the primes and the subscript of a name; return all of it."""
    name = token.text + _read_primes(reader)
    following = reader.peek()
    if reader.take_if("op", "_"):
        name += f"_{_read_worded_subscript(reader) or subscript_name(reader.read_script())}"
    elif token.kind == "name" and following.kind == "num" and not following.spaced and _is_subscript(following.text):
        name += f"_{reader.take().text}"
    return name + _read_primes(reader)


def _read_worded_subscript(reader: Grammar) -> str | None:
    """Read the subscript of x_{\\text{max}} and x_{min}; None where it is no word."""
    braced = reader.next_is("brace")
    word = reader.peek(1) if braced else reader.peek()
    if word.kind not in ("func", "word") or (braced and reader.peek(2).kind != "unbrace"):
        return None
    reader.position += 3 if braced else 1
    return word.text


def _is_subscript(digits: str) -> bool:
    return digits.isdigit() and len(digits) <= _MAX_SUBSCRIPT_DIGITS


def _read_primes(reader: Grammar) -> str:
    marks = ""
    while reader.take_if("op", "'"):
        marks += "'"
    return marks


def _defines_function(reader: Grammar) -> bool:
    """Tell whether `(x) =` follows; then W(x) is what the equation defines."""
    inner, closing, relation = reader.peek(1), reader.peek(2), reader.peek(3)
    return inner.kind in ("name", "num") and closing.kind == "close" and relation[:2] == ("rel", "=")


def read_arguments(reader: Grammar, closing: str) -> tuple[Node, ...]:
    """Read what stands between the brackets of an application."""
    reader.in_brackets += 1
    bars, reader.bars = reader.bars, 0
    args = [reader.read_relation()]
    while reader.take_if("sep", ",") or reader.take_if("sep", ";"):
        args.append(reader.read_relation())
    reader.expect("close", closing)
    reader.bars = bars
    reader.in_brackets -= 1
    return tuple(args)


def subscript_name(node: Node) -> str:
    """Return a subscript as text. Raises Unreadable."""
    if isinstance(node, Num):
        return str(node.value)
    if isinstance(node, (Sym, Const)):
        return node.name
    if isinstance(node, Mul):
        return "".join(map(subscript_name, node.factors))
    if isinstance(node, Add):
        return "+".join(map(subscript_name, node.terms))
    if isinstance(node, (BareList, Group)):
        return ",".join(map(subscript_name, node.elements))
    raise Unreadable("a subscript that is no name")
