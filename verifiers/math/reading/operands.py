r"""Parses the operands of an expression: numbers, names, commands, letters with accents, brackets, functions with their
arguments or bounds, and LaTeX environments such as matrices and `cases`.

`grammar` parses the operators between operands. They bind in this order, the weakest first:

    relation < union, difference < sum, ± < product, quotient, side by side < sign < power, !, %, ° < atom

Ambiguous notation is read as follows. `2\frac13` is a mixed number. `1/2x` is (1/2)x. `\sin 2x` is the sine of 2x, and
`\sin(x)y` a product. `f(x)` is an application for the letters f, g, h and a product otherwise. `x1` is x with a
subscript. Raises UnreadableAnswer for a text that is not an expression, and TooLarge if it is nested too deeply. Lists
without brackets and words are read in `answers`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import ClassVar

from gmpy2 import mpq

from truegold.verifiers.math import tree
from truegold.verifiers.math.named_functions import NAMED
from truegold.verifiers.math.policy import UnreadableAnswer, charge
from truegold.verifiers.math.reading.grammar import END, Grammar, without_group
from truegold.verifiers.math.reading.lexemes import Lexeme, Notation, split_at
from truegold.verifiers.math.vocabulary import INVERSES, LINE_ENVIRONMENTS, MATRIX_ENVIRONMENTS

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


_MAX_ARGUMENTS = 100
"""Maximum number of arguments of `max`, `gcd` and the like."""
_ARITIES = {
    **dict.fromkeys(("beta", "binom", "comb", "perm"), (2, 2)),
    **dict.fromkeys(("diag", "gcd", "lcm", "max", "min"), (1, _MAX_ARGUMENTS)),
    "log": (1, 2),
    **dict.fromkeys(NAMED, (1, 2)),
}
"""Maps a function to its smallest and largest number of arguments. Other functions take exactly one argument."""
_NO_ARGUMENT = frozenset({"op", "logic", "rel", "sep", "gap", "row", "cell", "close", "unbrace", "end", "stop"})
"""Kinds of tokens that do not begin an argument."""
_CLOSING_OF_CALL = {"(": ")", "[": "]"}
"""Maps the opening bracket of arguments to the closing one."""


def read_function(reader: Grammar, name: str) -> tree.Node:
    """Read a function after its name: exponent, base and arguments."""
    exponent: tree.Node | None = None
    base: tree.Node | None = None
    for _ in range(2):
        if reader.take_if("op", "^"):
            exponent = reader.read_script()
        elif reader.take_if("op", "_"):
            base = reader.read_script()
    if name in ("max", "min") and reader.next_is("rel"):
        return tree.Sym(name)
    if isinstance(exponent, tree.Num) and exponent.value == -1 and name in INVERSES:
        name, exponent = INVERSES[name], None
    call = _apply(name, base, _read_function_arguments(reader))
    return call if exponent is None else tree.Pow(call, exponent)


def _apply(name: str, base: tree.Node | None, args: tuple[tree.Node, ...]) -> tree.Node:  # noqa: PLR0911, one for each function
    """Return a function of its arguments. Some functions become powers or products."""
    fewest, most = _ARITIES.get(name, (1, 1))
    if not fewest <= len(args) <= most:
        raise UnreadableAnswer(f"{name} with {len(args)} arguments")
    if len(args) == 1 and isinstance(args[0], tree.Group) and args[0].opening == "{":
        # The braces of \\max\\{1, 2\\} and \\exp\\{x\\} are brackets.
        args = args[0].elements if name in ("max", "min") or len(args[0].elements) == 1 else args
    if name == "sinc":
        return tree.Mul((tree.FunctionCall("sin", args), tree.Pow(args[0], tree.MINUS_ONE)))
    if name == "sqrt":
        return tree.Pow(args[0], tree.HALF)
    if name == "exp":
        return tree.Pow(tree.Const("e"), args[0])
    if name == "cis":
        return tree.Pow(tree.Const("e"), tree.product_of([tree.Const("i"), args[0]]))
    if name == "cbrt":
        return tree.FunctionCall("root", (args[0], tree.Num(mpq(3))))
    if name == "lg":
        return tree.FunctionCall("log", (args[0], tree.Num(mpq(10))))
    if name == "log" and base is not None:
        return tree.FunctionCall("log", (args[0], base))
    return tree.FunctionCall("binom" if name == "comb" else name, args)


def _read_function_arguments(reader: Grammar) -> tuple[tree.Node, ...]:
    """Read arguments in brackets, or the factors after a function without brackets."""
    token = reader.peek()
    if token.kind == "open" and token.text in _CLOSING_OF_CALL:
        reader.take()
        return read_arguments(reader, _CLOSING_OF_CALL[token.text])
    if reader.take_if("brace"):
        inner = read_braces(reader)
        return inner.elements if isinstance(inner, tree.BareList) else (inner,)
    if token.kind in _NO_ARGUMENT and not (token.kind == "op" and token.text in "+-±"):
        raise UnreadableAnswer("a function without an argument")
    factors = [reader.read_signed()]
    while reader.operand_follows() and reader.peek().kind not in ("func", "bar"):
        if reader.next_is("open") and not isinstance(factors[-1], (tree.Num, tree.Const)):
            break
        if tree.symbols_of(factors) and reader.peek().text == "e" and reader.peek(1).text == "^":
            # The e^{-t} of \\sin\\frac{x}{L} e^{-t} is not part of the argument.
            break
        factors.append(reader.read_power())
    return (tree.product_of(factors),)


def read_big_operator(reader: Grammar, kind: str) -> tree.Node:
    """Read a sum, product, limit or integral after its sign: bounds, variable and body."""
    low = high = None
    variable = ""
    for _ in range(2):
        if reader.take_if("op", "_"):
            low = reader.read_script()
            if isinstance(low, tree.Chain) and low.operators[0] in ("=", "to") and isinstance(low.parts[0], tree.Sym):
                variable, low = low.parts[0].name, low.parts[1]
        elif reader.take_if("op", "^"):
            high = reader.read_script()
    if kind == "int":
        return _read_integral(reader, low, high)
    if not variable or kind not in ("sum", "prod", "lim"):
        raise UnreadableAnswer(f"a {kind} whose variable is not given")
    return tree.Big(kind, variable, low, high, reader.read_product())


def _read_integral(reader: Grammar, low: tree.Node | None, high: tree.Node | None) -> tree.Node:
    """Read the body of an integral, up to the first `dx` (with any variable) outside of all brackets."""
    depth, start, index = 0, reader.position, reader.position
    while (token := reader.tokens[index]) is not END:
        depth += (token.kind in ("open", "brace")) - (token.kind in ("close", "unbrace"))
        if depth < 0:
            break
        variable = reader.tokens[index + 1]
        if depth == 0 and token.kind == variable.kind == "name" and token.text == "d":
            body = reader.read_separately(reader.tokens[start:index], reader.depth) if index > start else tree.PLUS_ONE
            reader.position = index + 2
            return tree.Big("int", variable.text, low, high, body)
        index += 1
    raise UnreadableAnswer("an integral without its differential")


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


APPLIED = frozenset("fghFGH")
"""Letters that are functions before a bracket: f(x)."""
NAMED_FUNCTIONS = frozenset({"Gamma", "zeta", "phi", "sigma", "tau"})
"""Greek letters that are functions before a bracket, unless the other side uses them as variables."""
_GIVING = frozenset({"=", "~", "sim", "cong", "propto"})
"""Relations that define a function: `W(x) = x^2`."""
_LEAST_ARGUMENT = _LEAST_TOTAL = 3
"""`_LEAST_ARGUMENT` is the smallest n for which \\phi(n) is a function, and `_LEAST_TOTAL` the smallest n for which
C_n^k is a binomial coefficient next to other letters."""
_OF_VACUUM = frozenset({"epsilon", "mu"})
"""Letters with a zero for the subscript o: \\epsilon_o is \\epsilon_0."""
_COUNTS = {"C_": "binom", "A_": "perm", "P_": "perm"}
"""The functions that C_5^2, A_5^2 and P_5^2 stand for."""
_MAX_SUBSCRIPT_DIGITS = 2
"""Maximum number of digits in a subscript without a `_`, as in `x12`."""
_NUMBER_SETS = {"R": "reals", "Z": "integers", "N": "naturals", "Q": "rationals", "C": "complexes"}
"""Maps the letter of `\\mathbb` to the name of its set."""
_CONDITIONAL = frozenset("PEpf")
"""Letters of probabilities and densities, whose brackets may hold a condition: P(A|B)."""
_COMPLEX = frozenset("zw")
"""Letters of complex numbers. A bar over them is a conjugate, if no other letter has a bar."""
_OF_UNITS = frozenset({tree.HAT, tree.VECTOR_MARK})
"""Marks of the unit vectors i, j and k."""
_OF_FIELDS = {"gradient": "∇", "divergence": "∇·", "curl": "∇×", "laplacian": "∇²"}
"""Operators on fields. An operator and its operand are read as one name, because factors must not be exchanged."""
_CORNERS = 3
"""The number of points of an angle and of a triangle."""
__all__ = ["ExpressionReader"]


def read_number(reader: Grammar, token: Lexeme) -> tree.Node:
    """Read a number, and the fraction of a mixed number or the base that may follow it."""
    if reader.next_is("op", "_"):
        return read_numeral(reader, token)
    if token.decimals is None and token.text.isdigit() and (part := _read_fraction_part(reader)) is not None:
        return tree.Num(token.value + part)
    return tree.Num(token.value, token.decimals, token.last_power)


def read_numeral(reader: Grammar, token: Lexeme) -> tree.Node:
    """Read the base after the digits in `token`: the 2 of 101_2."""
    reader.take()
    base = reader.read_script()
    whole = isinstance(base, tree.Num) and base.value.denominator == 1 and token.decimals is None
    if not whole or not isinstance(base, tree.Num) or not 2 <= base.value <= 36:
        raise UnreadableAnswer("a number with a subscript that is not a base")
    return tree.BaseN(token.text, int(base.value))


def read_argument(reader: Grammar, *, split_digits: bool = True) -> tree.Node:
    """Read a command's argument: a group in braces, or one character.

    split_digits: of several digits, read only the first, as LaTeX does in `\\frac12`.
    """
    token = reader.peek()
    if token.kind != "num":
        return reader.read_atom()
    if split_digits and len(token.text) > 1 and token.text.isdigit():
        rest = token.text[1:]
        reader.tokens[reader.position] = Lexeme("num", rest, False, mpq(int(rest)))
        return tree.Num(mpq(int(token.text[0])))
    reader.take()
    return tree.Num(token.value, token.decimals, token.last_power)


def _read_fraction_part(reader: Grammar) -> mpq | None:
    """Read the fraction of a mixed number, or return None if none follows.

    The fraction is ` 1/2`, or `\\frac12` if the notation has mixed numbers.
    """
    if reader.next_is("cmd", "frac"):
        return _read_fraction_command(reader) if reader.notation.mixed_numbers else None
    if reader.next_is("num") and reader.peek().spaced and reader.peek(1).text == "/" and reader.peek(2).kind == "num":
        above, below = reader.peek().value, reader.peek(2).value
        if reader.peek(3).text != "^" and 0 < above < below and above.denominator == 1 == below.denominator:
            reader.position += 3
            return above / below
    return None


def _read_fraction_command(reader: Grammar) -> mpq | None:
    """Return the fraction of a mixed number `2\\frac13`, or None if the command is another factor."""
    start, tokens = reader.position, reader.tokens
    charge(len(tokens) // 50)
    # Reading `\frac12` splits a token. With a copy of the tokens, this can be undone.
    reader.tokens = tokens.copy()
    reader.take()
    above, below = read_argument(reader), read_argument(reader)
    # With an exponent after it, 2\frac12^3 is a product.
    raised = reader.next_is("op", "^")
    if isinstance(above, tree.Num) and isinstance(below, tree.Num) and 0 < above.value < below.value and not raised:
        return above.value / below.value
    reader.tokens, reader.position = tokens, start
    return None


def read_name(reader: Grammar, token: Lexeme) -> tree.Node:
    """Read a variable, a constant of one letter, or an application."""
    name = token.text
    if reader.tokens[reader.position][0] in ("op", "num"):
        name = _read_name_with_marks(reader, token)
    if name in ("e", "i"):
        return tree.Const(name)
    if name[:2] in _COUNTS and name[2:].isdigit() and reader.next_is("op", "^"):
        start = reader.position
        reader.take()
        chosen = reader.read_script()
        if isinstance(chosen, tree.Num) and _may_count(reader, int(name[2:]), chosen.value):
            return tree.FunctionCall(_COUNTS[name[:2]], (tree.Num(mpq(int(name[2:]))), chosen))
        reader.position = start
    if name in NAMED_FUNCTIONS and _applies_to_number(reader, name):
        reader.take()
        return tree.FunctionCall(name, read_arguments(reader, ")"), applied=True)
    if reader.next_is("open", "(") and name in _CONDITIONAL and (condition := read_given(reader)) is not None:
        return tree.Sym(f"{name}({condition})")
    if reader.next_is("open", "(") and not reader.peek().spaced and (name[0] in APPLIED or _defines_function(reader)):
        reader.take()
        return tree.FunctionCall(name, read_arguments(reader, ")"), applied=True)
    return tree.Sym(name)


def _may_count(reader: Grammar, total: int, chosen: mpq) -> bool:
    """Tell whether C_5^2 is a binomial coefficient. C_1^3 is a power, and so is C_2^2 next to other letters."""
    if not 0 <= chosen <= total or chosen.denominator != 1:
        return False
    names = {token.text for token in reader.tokens if token.kind == "name"}
    return total >= _LEAST_TOTAL or names <= {"C", "A", "P"}


def _read_name_with_marks(reader: Grammar, token: Lexeme) -> str:
    """Return a name with its primes and subscript."""
    name = token.text + _read_primes(reader)
    following = reader.peek()
    if reader.take_if("op", "_"):
        subscript = _read_worded_subscript(reader) or subscript_name(reader.read_script())
        name += "_0" if subscript == "o" and name in _OF_VACUUM else f"_{subscript}"
    elif token.kind == "name" and following.kind == "num" and not following.spaced and _is_subscript(following.text):
        name += f"_{reader.take().text}"
    return name + _read_primes(reader)


def _read_worded_subscript(reader: Grammar) -> str | None:
    """Return the subscript of x_{\\text{max}} and x_{min}, or None if it is not a word."""
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


def _applies_to_number(reader: Grammar, name: str) -> bool:
    """Tell whether a Greek letter is a function here.

    Gamma and zeta are functions before any bracket. phi, sigma and tau are functions only before a whole number from 3
    on: \\phi(1) may be a density, and \\sigma(x) a product.
    """
    if not reader.next_is("open", "("):
        return False
    inner, closing = reader.peek(1), reader.peek(2)
    is_whole = inner.kind == "num" and inner.text.isdigit() and inner.value >= _LEAST_ARGUMENT
    return name in ("Gamma", "zeta") or (is_whole and closing[:2] == ("close", ")"))


def _defines_function(reader: Grammar) -> bool:
    """Tell whether `(x) =` follows, so that the equation defines W(x)."""
    inner, closing, relation = reader.peek(1), reader.peek(2), reader.peek(3)
    is_given = relation.kind == "rel" and relation.text in _GIVING
    return is_given and inner.kind in ("name", "num") and closing.kind == "close"


def subscript_name(node: tree.Node) -> str:
    """Return a subscript as text. Raises UnreadableAnswer for one that cannot be part of a name."""
    if isinstance(node, tree.Num):
        return str(node.value)
    if isinstance(node, (tree.Sym, tree.Const)):
        return node.name
    if isinstance(node, tree.Mul):
        return "".join(map(subscript_name, node.factors))
    if isinstance(node, tree.Add):
        return "+".join(sorted(map(subscript_name, node.terms)))
    if isinstance(node, (tree.BareList, tree.Group)):
        return ",".join(map(subscript_name, node.elements))
    raise UnreadableAnswer("a subscript that is not a name")


def read_command(reader: Grammar, name: str) -> tree.Node:
    """Read the operand that begins with a command. Raises UnreadableAnswer for an unknown command."""
    if name == "frac":
        above, below = without_group(read_argument(reader)), without_group(read_argument(reader))
        return _derivative(reader, above, below) or tree.Mul((above, tree.Pow(below, tree.MINUS_ONE)))
    if name == "sqrt":
        return _read_root(reader)
    if name == "usqrt":
        return tree.Pow(reader.read_atom(), tree.HALF)
    if name == "binom":
        return tree.FunctionCall("binom", (read_argument(reader), read_argument(reader)))
    return _read_symbol(reader, name)


def _read_operator(reader: Grammar, name: str) -> tree.Sym:
    """Read a nabla with its operand, or a partial derivative, as one name."""
    if name in _OF_FIELDS:
        return tree.Sym(f"{_OF_FIELDS[name]}{_opaque(reader.read_atom())}")
    derived, variable, order = (_opaque(read_argument(reader)) for _ in range(3))
    return tree.Sym(f"∂{order}{derived}/∂{variable}")


def _opaque(node: tree.Node) -> str:
    """Return the operand of an operator as text, without vector marks."""
    return tree.show(node).replace(tree.VECTOR_MARK, "")


def _derivative(reader: Grammar, above: tree.Node, below: tree.Node) -> tree.Sym | None:
    r"""Return a derivative as a name, or None for other fractions.

    \frac{dy}{dx} is y', \frac{d^2}{dx^2}y is y'', and \frac{dN}{dt} is dN/dt, which must not be read as N/t.
    """
    sides = (side.factors if isinstance(side, tree.Mul) else (side,) for side in (above, below))
    (mark, *derived), (divisor, *variables) = sides
    order = tree.show(mark).removeprefix("d")
    if tree.show(divisor) != "d" or not variables or len(derived) > 1 or (order and tree.show(mark)[:3] != "d^("):
        return None
    if not derived and reader.operand_follows():
        derived = [reader.read_atom()]
    elif not derived or not isinstance(derived[0], (tree.Sym, tree.FunctionCall)):
        return None
    name, variable = _opaque(derived[0]), "".join(map(tree.show, variables))
    primes = {("", "x"): "'", ("^(2)", "x^(2)"): "''"}.get((order, variable))
    is_letter = len(name) == 1 and name.isalpha()
    return tree.Sym(f"{name}{primes}" if primes and is_letter else f"d{order}{name}/d{variable}")


def _read_symbol(reader: Grammar, name: str) -> tree.Node:
    """Read a command that stands for a set, an operator, dots or a geometric figure."""
    if name == "mathbb":
        return _read_number_set(reader)
    if name in _OF_FIELDS or name == "partialof":
        return _read_operator(reader, name)
    if name in ("cdots", "ldots", "dots"):
        return tree.Sym(tree.DOTS)
    if name in ("emptyset", "varnothing"):
        return tree.Named("empty")
    if name in ("angle", "triangle"):
        points = subscript_name(reader.read_product())
        if name == "triangle" and not any(token.kind == "rel" for token in reader.tokens):
            points = "".join(sorted(points))
        return tree.Sym(_angle(points) if name == "angle" else f"triangle {points}")
    if name in ("mod", "bmod", "pmod"):
        raise UnreadableAnswer("a modulus outside of a congruence")
    raise UnreadableAnswer(f"the unknown command \\{name}")


def read_accent(reader: Grammar, mark: str) -> tree.Node:
    r"""Read an operand with a mark over it: \vec{AB} and \bar x are names, \bar z and \overline{3-2i} are conjugates.

    The mark is ignored for a unit vector \hat{\imath}, a segment \overline{AB} and a residue \bar{3}.
    """
    inner = read_argument(reader, split_digits=False)
    is_unit = isinstance(inner, (tree.Const, tree.Sym)) and inner.name in ("i", "j", "k") and mark in _OF_UNITS
    if is_unit or (isinstance(inner, tree.Num) and not (mark == tree.VECTOR_MARK and inner.value == 0)):
        return inner
    letters = inner.factors if isinstance(inner, tree.Mul) else ()
    names = "".join(letter.name for letter in letters if isinstance(letter, tree.Sym))
    if mark == tree.BAR:
        barred = _barred_letters(reader.tokens)
        are_complex = all(name[0] in _COMPLEX for name in (*tree.symbols(inner), *barred)) and tree.symbols(inner)
        if are_complex or any(isinstance(part, tree.Const) and part.name == "i" for part in tree.walk(inner)):
            return tree.FunctionCall("conj", (_with_subscript(reader, inner),))
        if names.isupper() and len(names) >= len(letters) > 1 and not barred:
            return inner
    if mark == tree.HAT and len(letters) == _CORNERS and len(names) == _CORNERS:
        return tree.Sym(_angle(names))
    return _read_accented(reader, inner, mark)


def _barred_letters(tokens: list[Lexeme]) -> set[str]:
    """Return the letters that have a bar of their own. If there are any, \\overline{AB} is not a segment."""
    letters = set()
    for index, token in enumerate(tokens):
        if token.kind == "accent" and token.text == tree.BAR:
            is_braced = tokens[index + 1].kind == "brace" and tokens[index + 3].kind == "unbrace"
            letter = tokens[index + 2 if is_braced else index + 1]
            letters |= {letter.text} if letter.kind == "name" else set()
    return letters


def _with_subscript(reader: Grammar, inner: tree.Node) -> tree.Node:
    is_name = isinstance(inner, tree.Sym) or (isinstance(inner, tree.Const) and inner.name in tree.LETTER_CONSTANTS)
    if isinstance(inner, (tree.Sym, tree.Const)) and is_name and "_" not in inner.name and reader.take_if("op", "_"):
        return tree.Sym(f"{inner.name}_{subscript_name(reader.read_script())}")
    return inner


def _read_accented(reader: Grammar, inner: tree.Node, mark: str) -> tree.Node:
    """Return the operand with its mark as a name, and read its subscript, primes and arguments."""
    if not isinstance(inner, tree.VALUES):
        return tree.SetOps("not", (inner,)) if mark == tree.BAR else inner
    name = inner.name if isinstance(inner, (tree.Sym, tree.Const)) else tree.show(inner).replace("*", "")
    stem, underscore, subscript = name.partition("_") if isinstance(inner, tree.Sym) else (name, "", "")
    if reader.take_if("op", "_"):
        underscore, subscript = "_", _read_worded_subscript(reader) or subscript_name(reader.read_script())
    name = f"{stem}{mark}{underscore}{subscript}{_read_primes(reader)}"
    if reader.next_is("open", "(") and not reader.peek().spaced and stem in APPLIED:
        reader.take()
        return tree.FunctionCall(name, read_arguments(reader, ")"), applied=True)
    return tree.Sym(name)


def _angle(points: str) -> str:
    """Return the name of an angle, which is the same for ABC and CBA."""
    reads_back = len(points) == _CORNERS and points[0] > points[-1]
    return f"angle {points[::-1] if reads_back else points}"


def _read_root(reader: Grammar) -> tree.Node:
    if reader.take_if("open", "["):
        degree = reader.read_sum()
        reader.expect("close", "]")
        return tree.FunctionCall("root", (read_argument(reader), degree))
    return tree.Pow(read_argument(reader, split_digits=False), tree.HALF)


def _read_number_set(reader: Grammar) -> tree.Node:
    """Read a set of numbers with its marks: `\\mathbb{R}`, `\\mathbb{Z}^+`."""
    braced = reader.take_if("brace")
    name = _NUMBER_SETS.get(reader.take().text)
    if braced:
        reader.expect("unbrace")
    if name is None:
        raise UnreadableAnswer("an unknown set of numbers")
    marks: list[str] = []
    while reader.take_if("op", "_") or reader.take_if("op", "^"):
        marks.append(_read_mark(reader))
    return tree.Named(_name_with_marks(name, marks))


def _read_mark(reader: Grammar) -> str:
    """Read one token or a group as text."""
    if not reader.take_if("brace"):
        return reader.take().text
    text = ""
    while not reader.take_if("unbrace"):
        if reader.peek() is END:
            raise UnreadableAnswer("a group that is not closed")
        text += reader.take().text
    return text


def _name_with_marks(name: str, marks: list[str]) -> str:
    mark = "".join(marks)
    if name in ("integers", "reals", "rationals") and mark in ("+", ">0", "*+", "+*"):
        return f"positive {name}"
    if name == "naturals":
        return "positive integers" if mark in ("+", "*", ">0", "1") else "naturals"
    return " ".join([name, *marks])


def _read_opening(reader: Grammar, token: Lexeme) -> tree.Node:
    """Read an operand in brackets, or the numeral `(101)_2`."""
    inner = read_brackets(reader, token.text)
    if isinstance(inner, tree.Num) and inner.value.denominator == 1 and reader.next_is("op", "_"):
        return read_numeral(reader, Lexeme("num", str(inner.value), False))
    if isinstance(inner, tree.Sym) and "∘" in inner.name and reader.next_is("open", "("):
        node = _read_opening(reader, reader.take())
        for name in reversed(inner.name.split("∘")):
            node = tree.FunctionCall(name, (node,), applied=True)
        return node
    return inner


def _read_group(reader: Grammar, _: Lexeme) -> tree.Node:
    """Read an operand in braces, or a variable in braces with a subscript: `\\mathbf{u}_{1}`."""
    return _with_subscript(reader, read_braces(reader))


def _read_one_letter(reader: Grammar, token: Lexeme) -> tree.Node:
    if len(token.text) == 1 and token.text.isascii():
        return read_name(reader, token)
    raise UnreadableAnswer(f"expected an operand, found {token.text!r}")


class ExpressionReader(Grammar):
    """Reads tokens as one expression."""

    __slots__ = ()
    atoms: ClassVar[Mapping[str, Callable[[Grammar, Lexeme], tree.Node]]] = {
        "num": read_number,
        "name": read_name,
        "const": lambda _, token: tree.Const(token.text),
        "func": lambda reader, token: read_function(reader, token.text),
        "cmd": lambda reader, token: read_command(reader, token.text),
        "accent": lambda reader, token: read_accent(reader, token.text),
        "open": _read_opening,
        "brace": _read_group,
        "bar": lambda reader, token: read_bars(reader, token.text),
        "big": lambda reader, token: read_big_operator(reader, token.text),
        "begin": lambda reader, token: read_environment(reader, token.text),
        "word": _read_one_letter,
    }
