"""The operators, from relations down to powers: a precedence climber, one method for each level.

This is the hottest code of a comparison. Each level looks at the kind of the next token once, and returns at once
where it is no operator.
"""

from __future__ import annotations

from collections.abc import Callable

from truegold.verifiers.math.measures import PERCENT
from truegold.verifiers.math.reading.grammar.atoms import named, number, numeral
from truegold.verifiers.math.reading.grammar.big import big_operator
from truegold.verifiers.math.reading.grammar.brackets import between_bars, braces, brackets
from truegold.verifiers.math.reading.grammar.commands import command
from truegold.verifiers.math.reading.grammar.cursor import END, Grammar
from truegold.verifiers.math.reading.grammar.environments import environment
from truegold.verifiers.math.reading.grammar.functions import function
from truegold.verifiers.math.reading.tokens import MAX_DEPTH, Token
from truegold.verifiers.math.refusals import TooLarge, Unreadable
from truegold.verifiers.math.tree import (
    MINUS_ONE,
    Add,
    Call,
    Chain,
    Const,
    Group,
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
    negated,
    product_of,
)

_OPERAND_STARTS = frozenset({"num", "name", "const", "func", "cmd", "open", "brace", "big", "begin"})
_ITEM_ENDS = frozenset({"sep", "close", "unbrace", "stop", "cell", "row"})
_SET_OPERATORS = frozenset({"cup", "cap", "minus"})
_SIGNS = frozenset("+-±∓")
_ORDINALS = frozenset({"st", "nd", "rd", "th"})


class Reader(Grammar):
    """Reads the expression that its tokens are."""

    __slots__ = ()

    def whole(self) -> Node:
        """One relation, set or expression that takes up all tokens. Raises Unreadable, TooLarge."""
        node = self.relation()
        if self.peek() is not END:
            raise Unreadable(f"cannot read on at {self.peek().text or self.peek().kind!r}")
        return node

    def apart(self, tokens: list[Token], depth: int) -> Node:
        return Reader(tokens, self.notation, depth).whole()

    def relation(self) -> Node:
        lone = self._lone_number()
        if lone is not None:
            return lone
        first = self.set_expression()
        if self.tokens[self.position][0] != "rel":
            return first
        parts, operators = [first], []
        while self.at("rel"):
            operators.append(self.take().text)
            parts.append(self.set_expression())
        return Chain(tuple(parts), tuple(operators))

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
        depth = self.depth
        while self.tokens[self.position][0] == "op" and self.peek().text in _SET_OPERATORS:
            self.enter()
            operator = self.take().text
            parts = [left, self.sum()]
            while operator != "minus" and self.took("op", operator):
                parts.append(self.sum())
            left = SetOps(operator, tuple(parts))
        self.depth = depth
        return left

    def sum(self) -> Node:
        first = self.product()
        if self.tokens[self.position][0] != "op":
            return first
        terms = [first]
        while self.at("op") and self.peek().text in _SIGNS:
            sign = self.take().text
            term = self.product()
            if sign == "-" and len(terms) == 1 and _is_set(terms[0]) and _is_set(term):
                terms = [SetOps("minus", (terms[0], term))]
            else:
                terms.append(_with_sign(sign, term))
        return terms[0] if len(terms) == 1 else Add(tuple(terms))

    def product(self) -> Node:
        factors = [self.signed()]
        ratio: list[Node] = []
        while True:
            token = self.tokens[self.position]
            if token[0] == "op":
                mark = token[1]
                if mark == "*":
                    self.position += 1
                    factors.append(self.signed())
                elif mark == "/" or (mark == ":" and self.in_brackets):
                    self.position += 1
                    factors.append(Pow(self._divisor(mark), MINUS_ONE))
                elif mark == ":":
                    self.position += 1
                    ratio.append(product_of(factors))
                    factors = [self.signed()]
                else:
                    break
            elif self.at_operand():
                if token[0] == "num" and self.tokens[self.position - 1][0] == "num":
                    raise Unreadable("two numbers side by side")
                factors.append(self.power())
            else:
                break
        return Ratio((*ratio, product_of(factors))) if ratio else product_of(factors)

    def _divisor(self, mark: str) -> Node:
        factors = [self.signed()]
        if self.notation.tight and mark == "/":
            while self.at_operand():
                factors.append(self.power())
        return product_of(factors)

    def at_operand(self) -> bool:
        kind = self.tokens[self.position][0]
        return kind in _OPERAND_STARTS or (kind == "bar" and self.bars == 0)

    def signed(self) -> Node:
        token = self.tokens[self.position]
        if token[0] != "op" or token[1] not in _SIGNS:
            return self.power()
        self.position += 1
        self.enter()
        operand = self.signed()
        self.depth -= 1
        return _with_sign(token[1], operand)

    def power(self) -> Node:
        base = self.atom()
        if self.tokens[self.position][0] != "op":
            return base
        depth = self.depth
        base = self._postfix(base)
        while self._took_power():
            self.enter()
            base = self._postfix(self._raised(base))
        self.depth = depth
        return base

    def _took_power(self) -> bool:
        """Take `^`, or `**` as programs write it."""
        if self.took("op", "^"):
            return True
        if self.at("op", "*") and self.peek(1).text == "*" and not self.peek(1).spaced:
            self.position += 2
            return True
        return False

    def _raised(self, base: Node) -> Node:
        special = self._special_exponent(base)
        if special is not None:
            return special
        self.enter()
        exponent = self.script()
        if self.took("op", "^"):  # 9^9^9, which binds to the right
            exponent = self._raised(exponent)
        self.depth -= 1
        return Pow(base, exponent)

    def _special_exponent(self, base: Node) -> Node | None:
        """Exponents that are no exponents: 30^\\circ, f^{\\prime}, 20^{th}, f^*."""
        braced = self.at("brace")
        inner = self.peek(1) if braced else self.peek()
        if (braced and self.peek(2).kind != "unbrace") or inner.kind not in ("op", "word"):
            return None
        past = self.position + (3 if braced else 1)
        if inner.kind == "op" and inner.text == "∘":
            self.position = past
            return Call("degree", (base,))
        if inner.kind == "op" and (inner.text == "'" or (inner.text == "*" and not braced)):
            self.position = past
            return Sym(f"{base.name}{inner.text}") if isinstance(base, Sym) else base
        if inner.kind == "word" and inner.text in _ORDINALS and braced:
            self.position = past
            return base
        return None

    def script(self) -> Node:
        token = self.tokens[self.position]
        if token[0] == "op" and token[1] in _SIGNS:
            self.position += 1
            self.enter()
            operand = self.script()
            self.depth -= 1
            return _with_sign(token[1], operand)
        return self.atom()

    def _postfix(self, node: Node) -> Node:
        """Marks behind an operand; each nests it once more, which `power` takes back."""
        while True:
            token = self.tokens[self.position]
            if token[0] != "op":
                return node
            if token[1] == "!":
                self.position += 1
                self.enter()
                node = Call("factorial2" if self.took("op", "!") else "factorial", (node,))
            elif token[1] == "%":
                self.position += 1
                self.enter()
                node = Measure(node, PERCENT)
            elif token[1] in ("°", "∘"):
                self.position += 1
                self.enter()
                node = Call("degree", (node,))
            else:
                return node

    def atom(self) -> Node:
        self.depth += 1  # as `enter` does, without the call: every number and name passes here
        if self.depth > MAX_DEPTH:
            raise TooLarge(f"nested more than {MAX_DEPTH} deep")
        token = self.take()
        read = _ATOMS.get(token[0])
        if read is None:
            raise Unreadable(f"no operand at {token.text or token.kind!r}")
        node = read(self, token)
        self.depth -= 1
        return node


def _with_sign(sign: str, operand: Node) -> Node:
    if sign == "+":
        return operand
    return negated(operand) if sign == "-" else Mul((Sign(sign == "∓"), operand))


def _is_set(node: Node) -> bool:
    return isinstance(node, (SetOps, SetOf, Named)) or (
        isinstance(node, Group) and (node.opening in "{[" or node.closing in "}]" or len(node.elements) == 2)
    )


def _in_brackets(reader: Grammar, token: Token) -> Node:
    inner = brackets(reader, token.text)
    if isinstance(inner, Num) and inner.value.denominator == 1 and reader.at("op", "_"):  # (101)_2
        return numeral(reader, Token("num", str(inner.value), False))
    return inner


def _one_letter(reader: Grammar, token: Token) -> Node:
    if len(token.text) == 1 and token.text.isascii():
        return named(reader, token)
    raise Unreadable(f"no operand at {token.text!r}")


_ATOMS: dict[str, Callable[[Grammar, Token], Node]] = {
    "num": number,
    "name": named,
    "const": lambda _, token: Const(token.text),
    "func": lambda reader, token: function(reader, token.text),
    "cmd": lambda reader, token: command(reader, token.text),
    "open": _in_brackets,
    "brace": lambda reader, _: braces(reader),
    "bar": lambda reader, token: between_bars(reader, token.text),
    "big": lambda reader, token: big_operator(reader, token.text),
    "begin": lambda reader, token: environment(reader, token.text),
    "word": _one_letter,
}
