r"""Tokens to one expression: a precedence climber over the grammar of school and contest mathematics.

    relation < union, difference < sum, ± < product, quotient, side by side < sign < power, !, %, ° < atom

Where notation is ambiguous, the reading is fixed here: `2\frac13` is a mixed number, `1/2x` is (1/2)x unless `tight`,
`\sin 2x` takes the product and `\sin(x)y` does not, `f(x)` is an application for the letters of `APPLIED` and a product
otherwise, `x1` is x with a subscript. What is no expression raises `Unreadable`.
"""

from __future__ import annotations

from gmpy2 import mpq

from truegold.verifiers.math.lexer import MAX_DEPTH, Token, TooLarge, Unreadable
from truegold.verifiers.math.measures import PERCENT
from truegold.verifiers.math.names import LINES, MATRICES
from truegold.verifiers.math.tree import (
    Add,
    BaseN,
    Big,
    Call,
    Chain,
    Const,
    Group,
    Items,
    Matrix,
    Measure,
    Mul,
    Named,
    Node,
    Num,
    Pow,
    Ratio,
    SetOf,
    SetOps,
    Sign,
    Sym,
    Text,
)

APPLIED = frozenset("fghFGH")
MINUS_ONE = Num(mpq(-1))
HALF = Num(mpq(1, 2))
END = Token("stop", "", False)
_PADDING = (END,) * 5
"""So that looking ahead needs no bound."""
NUMBER_SETS = {"R": "reals", "Z": "integers", "N": "naturals", "Q": "rationals", "C": "complexes"}

_OPERAND_STARTS = frozenset({"num", "name", "const", "func", "cmd", "open", "brace", "big", "begin"})
_ITEM_ENDS = frozenset({"sep", "close", "unbrace", "stop", "cell", "row"})
_CLOSED = {"(": "()", "[": "[]", "{": "{}", "<": "<>"}
_NO_ARGUMENT = frozenset({"op", "rel", "sep", "gap", "row", "cell", "close", "unbrace", "end", "stop"})
_INVERSES = {"sin": "arcsin", "cos": "arccos", "tan": "arctan", "cot": "arccot", "sec": "arcsec", "csc": "arccsc",
             "sinh": "arcsinh", "cosh": "arccosh", "tanh": "arctanh"}  # fmt: skip


class Reader:
    """Reads expressions off a list of tokens, from `position` on."""

    def __init__(self, tokens: list[Token], *, tight: bool = False, depth: int = 0) -> None:
        self.tokens = [*tokens, *_PADDING]
        self.position = 0
        self.tight = tight
        self.depth = depth
        self.bars = 0
        self.in_brackets = 0

    # -- tokens

    def peek(self, ahead: int = 0) -> Token:
        return self.tokens[self.position + ahead]

    def take(self) -> Token:
        token = self.tokens[self.position]
        if token is not END:
            self.position += 1
        return token

    def at(self, kind: str, text: str | None = None) -> bool:
        token = self.tokens[self.position]
        return token[0] == kind and (text is None or token[1] == text)

    def expect(self, kind: str, text: str | None = None) -> None:
        if not self.at(kind, text):
            raise Unreadable(f"expected {text or kind}, found {self.peek().text or self.peek().kind!r}")
        self.position += 1

    def enter(self) -> None:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise TooLarge(f"nested more than {MAX_DEPTH} deep")

    # -- levels

    def whole(self) -> Node:
        """One relation, set or expression that takes up all tokens."""
        node = self.relation()
        if self.peek() is not END:
            raise Unreadable(f"cannot read on at {self.peek().text or self.peek().kind!r}")
        return node

    def relation(self) -> Node:
        number = self._lone_number()
        if number is not None:
            return number
        parts = [self.set_expression()]
        operators: list[str] = []
        while self.at("rel"):
            operators.append(self.take().text)
            parts.append(self.set_expression())
        return Chain(tuple(parts), tuple(operators)) if operators else parts[0]

    def _lone_number(self) -> Num | None:
        """A number that is a whole item, without the way down through all levels: most items are."""
        at, minus = self.position, False
        token = self.tokens[at]
        if token[0] == "op" and token[1] == "-":
            at, minus = at + 1, True
            token = self.tokens[at]
        if token[0] != "num" or self.tokens[at + 1][0] not in _ITEM_ENDS:
            return None
        self.position = at + 1
        assert token.value is not None
        return Num(-token.value if minus else token.value, token.decimals)

    def set_expression(self) -> Node:
        left = self.sum()
        while self.at("op") and self.peek().text in ("cup", "cap", "minus"):
            operator = self.take().text
            parts = [left, self.sum()]
            while operator != "minus" and self.at("op", operator):
                self.take()
                parts.append(self.sum())
            left = SetOps(operator, tuple(parts))
        return left

    def sum(self) -> Node:
        terms = [self.product()]
        while self.at("op") and self.peek().text in "+-±∓":
            sign = self.take().text
            if (
                sign == "-"
                and isinstance(terms[-1], (Group, SetOps, SetOf, Named))
                and len(terms) == 1
                and _is_set(terms[0])
            ):
                right = self.product()
                terms = [SetOps("minus", (terms[0], right))] if _is_set(right) else [terms[0], negated(right)]
                continue
            term = self.product()
            terms.append(term if sign == "+" else negated(term) if sign == "-" else Mul((Sign(sign == "∓"), term)))
        return terms[0] if len(terms) == 1 else Add(tuple(terms))

    def product(self) -> Node:
        factors = [self.signed()]
        ratio: list[Node] = []
        while True:
            token = self.peek()
            if token.kind == "op" and token.text == "*":
                self.take()
                factors.append(self.signed())
            elif token.kind == "op" and (token.text == "/" or (token.text == ":" and self.in_brackets)):
                self.take()
                below = self.signed()
                if self.tight and token.text == "/":
                    below = self._with_neighbours(below)
                factors.append(Pow(below, MINUS_ONE))
            elif token.kind == "op" and token.text == ":":
                self.take()
                ratio.append(_product(factors))
                factors = [self.signed()]
            elif self.at_operand():
                if token.kind == "num" and self.tokens[self.position - 1].kind == "num":
                    raise Unreadable("two numbers side by side")
                factors.append(self.power())
            else:
                break
        return Ratio((*ratio, _product(factors))) if ratio else _product(factors)

    def _with_neighbours(self, first: Node) -> Node:
        factors = [first]
        while self.at_operand():
            factors.append(self.power())
        return _product(factors)

    def at_operand(self) -> bool:
        token = self.peek()
        if token.kind == "bar":
            return self.bars == 0
        return token.kind in _OPERAND_STARTS

    def signed(self) -> Node:
        token = self.peek()
        if token.kind == "op" and token.text in ("-", "+", "±", "∓"):
            self.take()
            self.enter()
            operand = self.signed()
            self.depth -= 1
            if token.text == "+":
                return operand
            return negated(operand) if token.text == "-" else Mul((Sign(token.text == "∓"), operand))
        return self.power()

    def power(self) -> Node:
        base = self.postfix(self.atom())
        while self.at("op") and (
            self.peek().text == "^"
            or (self.peek().text == "*" and self.peek(1).text == "*" and not self.peek(1).spaced)
        ):
            if self.take().text == "*":
                self.take()
            base = self.postfix(self._raised(base))
        return base

    def _raised(self, base: Node) -> Node:
        special = self._special_exponent(base)
        if special is not None:
            return special
        self.enter()
        exponent = self.script()
        if self.at("op", "^"):  # 9^9^9, which binds to the right
            self.take()
            exponent = self._raised(exponent)
        self.depth -= 1
        return Pow(base, exponent)

    def _special_exponent(self, base: Node) -> Node | None:
        """Exponents that are no exponents: 30^\\circ, f^{\\prime}, 20^{th}."""
        braced = self.at("brace")
        inner = self.peek(1) if braced else self.peek()
        closes = not braced or self.peek(2).kind == "unbrace"
        if inner.kind == "op" and inner.text in ("∘", "'") and closes:
            self.position += 3 if braced else 1
            if inner.text == "∘":
                return Call("degree", (base,))
            return Sym(f"{base.name}'") if isinstance(base, Sym) else base
        if braced and closes and inner.kind == "word" and inner.text in ("st", "nd", "rd", "th"):
            self.position += 3
            return base
        if not braced and inner.kind == "op" and inner.text == "*":  # f^*
            self.position += 1
            return Sym(f"{base.name}*") if isinstance(base, Sym) else base
        return None

    def script(self) -> Node:
        """What stands after ^ or _: a group in braces, or one atom with its sign."""
        if self.at("op") and self.peek().text in "+-±∓":
            sign = self.take().text
            operand = self.script()
            return operand if sign == "+" else negated(operand) if sign == "-" else Mul((Sign(sign == "∓"), operand))
        return self.atom()

    def postfix(self, node: Node) -> Node:
        while True:
            token = self.peek()
            if token.kind != "op":
                return node
            if token.text == "!":
                self.take()
                double = self.at("op", "!")
                if double:
                    self.take()
                node = Call("factorial2" if double else "factorial", (node,))
            elif token.text == "%":
                self.take()
                node = Measure(node, PERCENT)
            elif token.text in ("°", "∘"):
                self.take()
                node = Call("degree", (node,))
            else:
                return node

    # -- atoms

    def atom(self) -> Node:
        self.enter()
        try:
            return self._atom(self.take())
        finally:
            self.depth -= 1

    def _atom(self, token: Token) -> Node:  # noqa: PLR0911
        kind = token.kind
        if kind == "num":
            return self._number(token)
        if kind == "name":
            return self._name(token)
        if kind == "const":
            return Const(token.text)
        if kind == "func":
            return self._function(token.text)
        if kind == "cmd":
            return self._command(token.text)
        if kind == "open":
            inner = self._brackets(token.text)
            if isinstance(inner, Num) and self.at("op", "_") and inner.value.denominator == 1:  # (101)_2
                return self._base_n(Token("num", str(inner.value), False))
            return inner
        if kind == "brace":
            return self._braces()
        if kind == "bar":
            return self._between_bars(token.text)
        if kind == "big":
            return self._big(token.text)
        if kind == "begin":
            return self._environment(token.text)
        if kind == "word" and len(token.text) == 1 and token.text.isascii():
            return self._name(token)
        raise Unreadable(f"no operand at {token.text or kind!r}")

    def _number(self, token: Token) -> Node:
        assert token.value is not None
        number = Num(token.value, token.decimals)
        if self.at("op", "_"):
            return self._base_n(token)
        if token.decimals is None and token.text.isdigit():
            part = self._fraction_part()
            if part is not None:
                return Num(token.value + part)
        return number

    def _base_n(self, token: Token) -> Node:
        self.take()
        base = self.script()
        if (
            not isinstance(base, Num)
            or base.value.denominator != 1
            or not 2 <= base.value <= 36
            or token.decimals is not None
        ):
            raise Unreadable("a number with a subscript that is no base")
        return BaseN(token.text, int(base.value))

    def _fraction_part(self) -> mpq | None:
        """The fraction of a mixed number, where one follows: `\\frac12`, or ` 1/2` after a blank."""
        start, tokens = self.position, self.tokens
        if self.at("cmd", "frac"):
            self.tokens = tokens.copy()  # reading `\\frac12` splits a token
            self.take()
            fraction = self._fraction_literal()
            if fraction is not None and not self.at("op", "^"):
                return fraction
            self.tokens = tokens
        elif (
            self.at("num")
            and self.peek().spaced
            and self.peek(1).text == "/"
            and self.peek(2).kind == "num"
            and self.peek(3).text != "^"
        ):
            above, below = self.peek().value, self.peek(2).value
            assert above is not None and below is not None
            if 0 < above < below and above.denominator == 1 == below.denominator:
                self.position += 3
                return above / below
        self.position = start
        return None

    def _fraction_literal(self) -> mpq | None:
        above, below = self._argument(), self._argument()
        if isinstance(above, Num) and isinstance(below, Num) and 0 < above.value < below.value:
            return above.value / below.value
        return None

    def _name(self, token: Token) -> Node:
        name = token.text
        while self.at("op", "'"):
            self.take()
            name += "'"
        if self.at("op", "_"):
            self.take()
            name += f"_{_flat(self.script())}"
        elif (
            self.at("num")
            and not self.peek().spaced
            and self.peek().text.isdigit()
            and len(self.peek().text) <= 2
            and token.kind == "name"
        ):
            name += f"_{self.take().text}"
        while self.at("op", "'"):
            self.take()
            name += "'"
        if name in ("e", "i"):
            return Const(name)
        if name[:2] in ("C_", "A_", "P_") and name[2:].isdigit() and self.at("op", "^"):  # C_{10}^{3}
            start = self.position
            self.take()
            chosen = self.script()
            if isinstance(chosen, Num):
                return Call("binom" if name[0] == "C" else "perm", (Num(mpq(int(name[2:]))), chosen))
            self.position = start
        if self.at("open", "(") and not self.peek().spaced and (name[0] in APPLIED or self._is_defined()):
            self.take()
            return Call(name, self._arguments(")"), applied=True)
        return Sym(name)

    def _is_defined(self) -> bool:
        """Does `(x) =` follow? Then W(x) is what the equation defines."""
        return (
            self.peek(1).kind in ("name", "num")
            and self.peek(2).kind == "close"
            and self.peek(3).kind == "rel"
            and self.peek(3).text == "="
        )

    def _arguments(self, closing: str) -> tuple[Node, ...]:
        self.in_brackets += 1
        bars, self.bars = self.bars, 0
        items = [self.relation()]
        while self.at("sep") and self.peek().text in ",;":
            self.take()
            items.append(self.relation())
        self.expect("close", closing)
        self.bars = bars
        self.in_brackets -= 1
        return tuple(items)

    def _function(self, name: str) -> Node:
        exponent: Node | None = None
        base: Node | None = None
        for _ in range(2):
            if self.at("op", "^"):
                self.take()
                exponent = self.script()
            elif self.at("op", "_"):
                self.take()
                base = self.script()
        if isinstance(exponent, Num) and exponent.value == -1 or _is_minus_one(exponent):
            name, exponent = _INVERSES.get(name, name), None if name in _INVERSES else exponent
        call = self._call(name, base)
        return Pow(call, exponent) if exponent is not None else call

    def _call(self, name: str, base: Node | None) -> Node:
        args = self._function_arguments()
        if name == "sqrt":
            return Pow(args[0], HALF)
        if name == "exp":
            return Pow(Const("e"), args[0])
        if name == "cbrt":
            return Call("root", (args[0], Num(mpq(3))))
        if name == "lg":
            return Call("log", (args[0], Num(mpq(10))))
        if name == "log" and base is not None:
            return Call("log", (args[0], base))
        if name == "comb":
            name = "binom"
        return Call(name, args)

    def _function_arguments(self) -> tuple[Node, ...]:
        if self.at("open", "(") or self.at("open", "["):
            opening = self.take().text
            return self._arguments(_CLOSED[opening][1])
        if self.at("brace"):
            inner = self._braces()
            return inner.items if isinstance(inner, Items) else (inner,)
        if self.peek().kind in _NO_ARGUMENT and not (self.at("op") and self.peek().text in "+-±"):
            raise Unreadable("a function without an argument")
        factors = [self.signed()]
        while self.at_operand() and not self.at("func"):
            if self.at("open") and not isinstance(factors[-1], (Num, Const)):
                break
            if self.at("bar"):
                break
            factors.append(self.power())
        return (_product(factors),)

    def _command(self, name: str) -> Node:
        if name == "frac":
            above, below = self._argument(), self._argument()
            return Mul((above, Pow(below, MINUS_ONE)))
        if name == "sqrt":
            return self._root()
        if name == "usqrt":
            return Pow(self.atom(), HALF)
        if name == "binom":
            return Call("binom", (self._argument(), self._argument()))
        if name == "mathbb":
            return self._number_set()
        if name in ("emptyset", "varnothing"):
            return Named("empty")
        if name in ("mod", "bmod", "pmod"):
            raise Unreadable("a modulus outside of a congruence")
        if name in ("angle", "triangle"):
            return Sym(f"{name} {_flat(self.product())}")
        raise Unreadable(f"\\{name}")

    def _root(self) -> Node:
        if self.at("open", "["):
            self.take()
            degree = self.sum()
            self.expect("close", "]")
            return Call("root", (self._argument(), degree))
        return Pow(self._argument(split_digits=False), HALF)

    def _argument(self, *, split_digits: bool = True) -> Node:
        """A command's argument: a group in braces, or one character."""
        token = self.peek()
        if split_digits and token.kind == "num" and token.text.isdigit() and len(token.text) > 1:
            rest = token.text[1:]
            self.tokens[self.position] = Token("num", rest, False, mpq(int(rest)))
            return Num(mpq(int(token.text[0])))
        if token.kind == "num":
            self.take()
            assert token.value is not None
            return Num(token.value, token.decimals)
        return self.atom()

    def _number_set(self) -> Node:
        braced = self.at("brace")
        if braced:
            self.take()
        name = NUMBER_SETS.get(self.take().text)
        if braced:
            self.expect("unbrace")
        if name is None:
            raise Unreadable("an unknown set of numbers")
        while self.at("op") and self.peek().text in "_^":
            self.take()
            name += f" {_flat_tokens(self)}"
        return Named(_plain_set(name))

    def _brackets(self, opening: str) -> Node:
        if opening in ("floor", "ceil"):
            inner = self.sum()
            self.expect("close", opening)
            return Call(opening, (inner,))
        self.in_brackets += 1
        bars, self.bars = self.bars, 0
        if opening == "{":
            self.bars = 1  # a bar inside separates the element from its condition
        node = self._inside(opening)
        self.bars = bars
        self.in_brackets -= 1
        return node

    def _inside(self, opening: str) -> Node:
        if self.at("close"):
            self.take()
            return Named("empty") if opening == "{" else Group(opening, _CLOSED[opening][1], ())
        items = [self.relation()]
        if opening == "{" and (self.at("bar") or self.at("op", ":")):
            self.take()
            self.bars = 0
            condition = self._condition()
            self.expect("close")
            return SetOf(items[0], condition)
        while self.at("sep") or self.at("gap"):
            self.take()
            while self.at("sep"):
                self.take()
            items.append(self.relation())
        if not self.at("close"):
            raise Unreadable(f"a bracket that is not closed at {self.peek().text or self.peek().kind!r}")
        closing = self.take().text
        closing = "}" if closing == "{" else ">" if closing == ">" else closing
        if len(items) == 1 and (opening == "(" and closing == ")" or isinstance(items[0], Matrix)):
            return items[0]
        return Group(opening, closing, tuple(items))

    def _condition(self) -> Node:
        parts = [self.relation()]
        joined = "and"
        while self.at("sep") or self.at("gap"):
            if self.take().text == "or":
                joined = "or"
            while self.at("sep"):
                joined = "or" if self.take().text == "or" else joined
            parts.append(self.relation())
        if len(parts) == 1:
            return parts[0]
        return SetOps("cup" if joined == "or" else "cap", tuple(parts))

    def _braces(self) -> Node:
        bars, self.bars = self.bars, 0
        if self.at("unbrace"):
            raise Unreadable("an empty group")
        items = [self.relation()]
        while self.at("sep"):
            self.take()
            items.append(self.relation())
        self.expect("unbrace")
        self.bars = bars
        return items[0] if len(items) == 1 else Items(tuple(items))

    def _between_bars(self, mark: str) -> Node:
        self.bars += 1
        inner = self.sum()
        self.expect("bar", mark)
        self.bars -= 1
        if isinstance(inner, Matrix):
            return Matrix(inner.rows, bars=True)
        return Call("abs", (inner,))

    def _big(self, kind: str) -> Node:
        low = high = None
        variable = ""
        for _ in range(2):
            if self.at("op", "_"):
                self.take()
                bound = self.script()
                if isinstance(bound, Chain) and bound.operators[0] in ("=", "to") and isinstance(bound.parts[0], Sym):
                    variable, low = bound.parts[0].name, bound.parts[1]
                else:
                    low = bound
            elif self.at("op", "^"):
                self.take()
                high = self.script()
        if kind == "int":
            return self._integral(low, high)
        if not variable or kind not in ("sum", "prod", "lim"):
            raise Unreadable(f"a {kind} whose variable is not given")
        return Big(kind, variable, low, high, self.product())

    def _integral(self, low: Node | None, high: Node | None) -> Node:
        depth, index = 0, self.position
        while self.tokens[index] is not END:
            token = self.tokens[index]
            depth += (token.kind in ("open", "brace")) - (token.kind in ("close", "unbrace"))
            if depth < 0:
                break
            if depth == 0 and token.kind == "name" and token.text == "d":
                variable = self.tokens[index + 1]
                if variable.kind == "name":
                    inner = Reader(self.tokens[self.position : index], tight=self.tight, depth=self.depth)
                    body = inner.whole() if index > self.position else Num(mpq(1))
                    self.position = index + 2
                    return Big("int", variable.text, low, high, body)
            index += 1
        raise Unreadable("an integral without its differential")

    # -- environments

    def _environment(self, name: str) -> Node:
        start, depth = self.position, 1
        while depth:
            token = self.take()
            if token is END:
                raise Unreadable(f"\\begin{{{name}}} is never ended")
            depth += (token.kind == "begin") - (token.kind == "end")
        inside = self.tokens[start : self.position - 1]
        if name in LINES and name not in ("cases", "dcases"):
            inside = [t for t in inside if t.kind not in ("cell", "row")]
            return self._joined(inside)
        if name not in MATRICES and name not in LINES:
            raise Unreadable(f"the environment {name}")
        if name == "array" and inside and inside[0].kind == "brace":
            closing = next((i for i, t in enumerate(inside) if t.kind == "unbrace"), None)
            inside = inside[closing + 1 :] if closing is not None else inside
        return self._matrix(inside, bars=name in ("vmatrix", "Vmatrix"), loose=name in ("matrix", "array"))

    def _matrix(self, inside: list[Token], bars: bool, loose: bool) -> Node:
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
                scattered |= token.kind == "row" and loose
                if token.kind != "gap":
                    rows[-1][-1].append(token)
        rows = [row for row in rows if any(row)]
        lone = any(len(row) == 1 and all(t.kind == "op" for t in row[0]) for row in rows)
        if loose and (scattered or lone):  # one formula, broken up by whatever wrote it
            flat = [t for t in inside if t.kind not in ("row", "cell", "gap")]
            return self._joined(flat)
        if not rows:
            raise Unreadable("an empty matrix")
        return Matrix(tuple(tuple(self._cell(cell) for cell in row) for row in rows), bars=bars)

    def _joined(self, tokens: list[Token]) -> Node:
        from truegold.verifiers.math.answers import Notation, read_tokens

        return read_tokens(tokens, Notation(tight=self.tight), self.depth)

    def _cell(self, tokens: list[Token]) -> Node:
        if not tokens:
            return Text(())
        if all(token.kind == "word" for token in tokens):
            return Text(tuple(token.text.lower() for token in tokens))
        tokens = [t for t in tokens if not (t.kind == "sep" and t is tokens[-1])]
        return Reader(tokens, tight=self.tight, depth=self.depth + 1).whole()


def _product(factors: list[Node]) -> Node:
    return factors[0] if len(factors) == 1 else Mul(tuple(factors))


def negated(node: Node) -> Node:
    if isinstance(node, Num):
        return Num(-node.value, node.decimals)
    if isinstance(node, Measure):
        return Measure(negated(node.value), node.unit)
    return Mul((MINUS_ONE, node))


def _is_minus_one(node: Node | None) -> bool:
    return isinstance(node, Num) and node.value == -1


def _is_set(node: Node) -> bool:
    return isinstance(node, (SetOps, SetOf, Named)) or (
        isinstance(node, Group) and (node.opening in "{[" or node.closing in "}]" or len(node.items) == 2)
    )


def _flat(node: Node) -> str:
    """A subscript as a name."""
    if isinstance(node, Num):
        return str(node.value)
    if isinstance(node, (Sym, Const)):
        return node.name
    if isinstance(node, (Mul, Add)):
        mark = "" if isinstance(node, Mul) else "+"
        return mark.join(_flat(part) for part in (node.factors if isinstance(node, Mul) else node.terms))
    if isinstance(node, (Items, Group)):
        return ",".join(_flat(item) for item in node.items)
    raise Unreadable("a subscript that is no name")


def _flat_tokens(reader: Reader) -> str:
    if not reader.at("brace"):
        return reader.take().text
    reader.take()
    text = ""
    while not reader.at("unbrace"):
        if reader.peek() is END:
            raise Unreadable("a group that is not closed")
        text += reader.take().text
    reader.take()
    return text


def _plain_set(name: str) -> str:
    base, _, marks = name.partition(" ")
    positive = marks.replace(" ", "") in ("+", ">0", "*+", "+*")
    if positive and base in ("integers", "reals", "rationals"):
        return f"positive {base}"
    if base == "naturals":
        return "positive integers" if marks.replace(" ", "") in ("+", "*", ">0", "1") else "naturals"
    return name
