"""Parses the operators of an expression, with one method for each level of precedence: `x + 2y^3 = 5` has four levels.

A comparison spends most of its time here. Each level looks at the kind of the next token once, and returns immediately
if it is not an operator.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ClassVar, TypeAlias

from truegold.verifiers.math.measures import PERCENT
from truegold.verifiers.math.policy import TooLarge, UnreadableAnswer, charge
from truegold.verifiers.math.reading import ellipses
from truegold.verifiers.math.reading.lexemes import Lexeme, Notation
from truegold.verifiers.math.reading.lexer import MAX_DEPTH
from truegold.verifiers.math.tree import (
    MAX_SHOWN_CHARS,
    MINUS_ONE,
    VECTOR_MARK,
    Add,
    Chain,
    Const,
    FunctionCall,
    Group,
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
    is_dots,
    negated,
    product_of,
    show,
    symbols,
    walk,
)

ReadAnswer: TypeAlias = Callable[[list[Lexeme], Notation, int], Node]
"""Takes tokens, a notation and the depth of nesting, and returns the tree of an answer, which may be a list."""

_STEPS_A_TOKEN = 4
"""Cost of a token, in steps of the verdict's budget (`policy`)."""

END = Lexeme("stop", "", False)
"""The token after the last one."""
_PADDING = (END,) * 5
"""Tokens after the last one. They let the grammar look ahead without checking for the end."""

_OPERAND_STARTS = frozenset({"num", "name", "const", "func", "cmd", "accent", "open", "brace", "big", "begin"})
"""Kinds of tokens that begin an operand."""
_ITEM_ENDS = frozenset({"sep", "close", "unbrace", "stop", "cell", "row"})
"""Kinds of tokens after the last token of an item."""
_SET_OPERATORS = frozenset({"cup", "cap", "minus"})
_DERIVED = frozenset("fghyuFGHY")
"""Letters of functions, whose exponent in brackets is the order of a derivative: y^{(3)}."""
_ORDERS = frozenset("1234")
"""Orders of derivatives that are written as primes."""
_LOGIC_LEVELS = ("and", "xor", "or")
"""Connectives of statements, the one that binds most tightly first."""
_LIKENESSES = frozenset({"sim", "cong"})
"""Relations that may mean `\\approx`."""
_ARRAY_TYPES = frozenset({Group, Matrix})
_SIGNS = frozenset("+-±∓")
_ORDINALS = frozenset({"st", "nd", "rd", "th"})
"""The endings of `1st` and `20th`."""


class Cursor:
    """A position in a list of tokens."""

    __slots__ = ("bars", "depth", "in_brackets", "in_set", "notation", "position", "read_answer", "tokens")

    def __init__(self, tokens: list[Lexeme], notation: Notation, depth: int, read_answer: ReadAnswer) -> None:
        charge(_STEPS_A_TOKEN * len(tokens))
        self.tokens = [*tokens, *_PADDING]
        self.position = 0
        self.notation = notation
        self.depth = depth
        self.read_answer = read_answer
        self.bars = 0
        """The number of open bars. If one is open, the next bar closes it."""
        self.in_brackets = 0
        """The number of open brackets."""
        self.in_set = False
        """Whether the element of a set is being read. The next colon then ends the element: {x : x > 0}."""

    def peek(self, ahead: int = 0) -> Lexeme:
        """Return the next token, or the token that is `ahead` tokens further on."""
        return self.tokens[self.position + ahead]

    def take(self) -> Lexeme:
        """Return the next token and advance. After the last token, return `END` each time."""
        if (token := self.tokens[self.position]) is not END:
            self.position += 1
        return token

    def next_is(self, kind: str, text: str | None = None) -> bool:
        """Tell whether the next token is of this kind and text."""
        token = self.tokens[self.position]
        return token[0] == kind and (text is None or token[1] == text)

    def take_if(self, kind: str, text: str | None = None) -> bool:
        """Take the next token if it is of this kind and text, and return whether it was taken."""
        token = self.tokens[self.position]
        if token[0] != kind or (text is not None and token[1] != text):
            return False
        self.position += 1
        return True

    def expect(self, kind: str, text: str | None = None) -> None:
        """Take the next token. Raises UnreadableAnswer if it is not of this kind and text."""
        if not self.take_if(kind, text):
            raise UnreadableAnswer(f"expected {text or kind}, found {self.peek().text or self.peek().kind!r}")

    def enter(self) -> None:
        """Add one to the depth of nesting. The caller subtracts it again. Raises TooLarge."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise TooLarge(f"nested more than {MAX_DEPTH} deep")


class Grammar(Cursor):
    """The levels of the grammar, one method for each. All methods raise UnreadableAnswer and TooLarge.

    An atom is a number, a name, a command or a group in brackets. The functions in `atoms`, which read atoms, get the
    grammar as their first argument, because brackets may contain relations.
    """

    __slots__ = ()
    atoms: ClassVar[Mapping[str, Callable[[Grammar, Lexeme], Node]]]
    """Maps the kind of an atom's first token to the function that reads it."""

    def read_whole(self) -> Node:
        """Read all tokens as one relation, set or expression. Raises UnreadableAnswer and TooLarge."""
        node = self.read_relation()
        if self.peek() is not END:
            raise UnreadableAnswer(f"unexpected {self.peek().text or self.peek().kind!r}")
        return node

    def read_separately(self, tokens: list[Lexeme], depth: int) -> Node:
        """Read a different list of tokens as one relation."""
        return type(self)(tokens, self.notation, depth, self.read_answer).read_whole()

    def read_relation(self) -> Node:
        """Read sets or expressions with relations between them."""
        if (lone := self._read_lone_number()) is not None:
            return lone
        first = self._read_formula()
        if self.tokens[self.position][0] != "rel":
            return first
        parts, operators = [first], []
        while self.next_is("rel"):
            operators.append(self.take().text)
            parts.append(self._read_formula())
        return chain_of(parts, operators)

    def _read_formula(self) -> Node:
        """Read statements joined by `and`, `xor` or `or`, of which `and` binds most tightly."""
        first = self._read_statement()
        if self.tokens[self.position][0] != "logic":
            return first
        parts, operators = [first], []
        while self.next_is("logic"):
            operators.append(self.take().text)
            parts.append(self._read_statement())
        for level in _LOGIC_LEVELS:
            while level in operators:
                index = operators.index(level)
                parts[index : index + 2] = [SetOps(level, (parts[index], parts[index + 1]))]
                del operators[index]
        if operators:
            raise UnreadableAnswer("a negation after a statement")
        return parts[0]

    def _read_statement(self) -> Node:
        if not self.take_if("logic", "not"):
            return self.read_set_expression()
        self.enter()
        negated_statement = SetOps("not", (self._read_statement(),))
        self.depth -= 1
        return negated_statement

    def _read_lone_number(self) -> Num | None:
        """Read a number that is the whole item, without going through all levels. Most items are numbers."""
        position, minus = self.position, False
        token = self.tokens[position]
        if token[0] == "op" and token[1] == "-":
            position, minus = position + 1, True
            token = self.tokens[position]
        if token[0] != "num" or self.tokens[position + 1][0] not in _ITEM_ENDS:
            return None
        self.position = position + 1
        return Num(-token.value if minus else token.value, token.decimals, token.last_power)

    def read_set_expression(self) -> Node:
        """Read sums with operators of sets between them: unions, intersections, differences."""
        left = self.read_sum()
        depth = self.depth
        while self.tokens[self.position][0] == "op" and self.peek().text in _SET_OPERATORS:
            self.enter()
            operator = self.take().text
            parts = [left, self.read_sum()]
            while operator != "minus" and self.take_if("op", operator):
                parts.append(self.read_sum())
            left = SetOps(operator, tuple(parts))
        self.depth = depth
        return left

    def read_sum(self) -> Node:
        """Read products with signs between them. A set minus a set is a difference of sets."""
        first = self.read_product()
        if self.tokens[self.position][0] != "op":
            return first
        terms = [first]
        while self.next_is("op") and self.peek().text in _SIGNS:
            sign = self.take().text
            term = self.read_product()
            if sign == "-" and len(terms) == 1 and _is_set(terms[0]) and _is_set(term):
                terms = [SetOps("minus", (terms[0], term))]
            else:
                terms.append(_with_sign(sign, term))
        if any(map(is_dots, terms)):
            return ellipses.worked_out(terms, is_sum=True)
        total = terms[0] if len(terms) == 1 else Add(tuple(terms))
        return self._read_below(total) if self.next_is("op") else total

    def _read_below(self, above: Node) -> Node:
        """Read the part below `\\over` or `\\choose`. The part above is everything before it in the group."""
        if self.take_if("op", "over"):
            self.enter()
            node: Node = Mul((above, Pow(self.read_sum(), MINUS_ONE)))
        elif self.take_if("op", "choose"):
            self.enter()
            node = FunctionCall("binom", (above, self.read_sum()))
        else:
            return above
        self.depth -= 1
        return node

    def read_product(self) -> Node:
        """Read factors, side by side or with operators between them. Outside of brackets, colons make a ratio."""
        factors = [self.read_signed()]
        ratio: list[Node] = []
        while True:
            token = self.tokens[self.position]
            if token[0] == "op":
                mark = token[1]
                if mark == "*":
                    self.position += 1
                    factor = self.read_signed()
                    factors[-1:] = (
                        _scalar_product(factors[-1], factor) if type(factor) in _ARRAY_TYPES else (factors[-1], factor)
                    )
                elif mark == "×":
                    self.position += 1
                    factors[-1:] = cross_product(factors[-1], self._read_crossed())
                elif mark == ":" and self.in_set:
                    break
                elif mark == "/" or (mark == ":" and self.in_brackets):
                    self.position += 1
                    factors.append(Pow(without_group(self._read_divisor(mark)), MINUS_ONE))
                elif mark == ":":
                    self.position += 1
                    ratio.append(product_of(factors))
                    factors = [self.read_signed()]
                else:
                    break
            elif self.operand_follows():
                if token[0] == "num" and self.tokens[self.position - 1][0] == "num":
                    raise UnreadableAnswer("two numbers side by side")
                factors.append(self.read_power())
            else:
                break
        if len(factors) > 1 and Group in map(type, factors):
            factors = list(map(without_group, factors))
        product = product_of(factors) if len(factors) == 1 else _product_with_dots(factors)
        return Ratio((*ratio, product)) if ratio else product

    def _read_crossed(self) -> Node:
        """Read the right side of a cross product: the 3b of 2a x 3b."""
        factors = [self.read_signed()]
        while not _is_vector(factors[-1]) and self.operand_follows():
            factors.append(self.read_power())
        return product_of(factors)

    def _read_divisor(self, mark: str) -> Node:
        factors = [self.read_signed()]
        if self.notation.tight_products and mark == "/":
            while self.operand_follows():
                factors.append(self.read_power())
        return product_of(factors)

    def operand_follows(self) -> bool:
        """Tell whether an operand may begin here. A bar begins an operand if no bar is open."""
        kind = self.tokens[self.position][0]
        return kind in _OPERAND_STARTS or (kind == "bar" and self.bars == 0)

    def read_signed(self) -> Node:
        """Read a power with its signs."""
        token = self.tokens[self.position]
        if token[0] != "op" or token[1] not in _SIGNS:
            return self.read_power()
        self.position += 1
        self.enter()
        operand = self.read_signed()
        self.depth -= 1
        return _with_sign(token[1], operand)

    def read_power(self) -> Node:
        """Read an atom with its exponents and the marks after it."""
        base = self.read_atom()
        if self.tokens[self.position][0] != "op":
            return base
        depth = self.depth
        while isinstance(base, Sym) and self.next_is("op", "∘") and self.peek(1).kind == "name":
            # The composition f \\circ g. (After the \\circ of 30^\\circ there is no name.)
            self.position += 1
            following = self.read_atom()
            base = Sym(f"{base.name}∘{following.name}") if isinstance(following, Sym) else product_of([base, following])
        base = self._read_marks(base)
        while self._take_power():
            self.enter()
            base = self._read_marks(self._read_exponent(base))
        self.depth = depth
        return base

    def _take_power(self) -> bool:
        """Take `^`, or the `**` of programs, and return whether it was taken."""
        if self.take_if("op", "^"):
            return True
        if self.next_is("op", "*") and self.peek(1).text == "*" and not self.peek(1).spaced:
            self.position += 2
            return True
        return False

    def _read_exponent(self, base: Node) -> Node:
        """Read the exponent after `^`, and return the power."""
        if self.next_is("num") and self.peek(1)[:2] == ("op", "_") and isinstance(base, Sym):
            # v^2_0 is v_0^2: its 2_0 is not a number with a base.
            power = self.take()
            self.take()
            digit = self.take()
            if digit.kind not in ("num", "name") or "_" in base.name:
                raise UnreadableAnswer("a subscript that is not a name")
            return Pow(Sym(f"{base.name}_{digit.text}"), Num(power.value))
        if (special := self._read_special_exponent(base)) is not None:
            return special
        self.enter()
        exponent = self.read_script()
        # 9^9^9 binds to the right.
        if self.take_if("op", "^"):
            exponent = self._read_exponent(exponent)
        self.depth -= 1
        if type(base) is Group and any(type(part) is FunctionCall for part in walk(base)):
            # The base of [2\\cosh x]^N has idle brackets.
            base = base.elements[0] if len(base.elements) == 1 else base
        return Pow(without_group(base), exponent)

    def _read_special_exponent(self, base: Node) -> Node | None:  # noqa: PLR0911, one for each form
        """Read a mark in place of an exponent: 30^\\circ, f^{\\prime}, 20^{th}, f^*. Return None for an exponent."""
        braced = self.next_is("brace")
        inner = self.peek(1) if braced else self.peek()
        if braced and inner.kind == "open" and isinstance(base, Sym):
            is_order = base.name in _DERIVED or "_" in base.name or base.name[0].isupper() or len(base.name) > 1
            return self._read_derivative(base) if is_order else None
        is_transpose = inner.text == "T" and isinstance(base, Sym) and len(base.name) == 1 and base.name.isupper()
        if braced and inner.text == "'" and isinstance(base, Sym):
            return self._read_primes_in_braces(base)
        if (braced and self.peek(2).kind != "unbrace") or not (inner.kind in ("op", "word") or is_transpose):
            return None
        past = self.position + (3 if braced else 1)
        if inner.kind == "op" and inner.text == "∘":
            self.position = past
            return FunctionCall("degree", (base,))
        if inner.text == "†" and isinstance(base, Sym):
            self.position = past
            return Sym(f"{base.name}†")
        if is_transpose and isinstance(base, Sym):
            self.position = past
            return Sym(f"{base.name}^T")
        if inner.kind == "op" and inner.text in "+-" and isinstance(base, (Sym, Const)):
            return self._read_charge(base.name, inner.text, past)
        if inner.kind == "op" and (inner.text == "'" or (inner.text == "*" and not braced)) and isinstance(base, Sym):
            self.position = past
            return Sym(f"{base.name}{inner.text}")
        if inner.kind == "word" and inner.text in _ORDINALS and braced:
            self.position = past
            return base
        return None

    def _read_charge(self, name: str, sign: str, past: int) -> Sym | None:
        """Read the charge of e^+ or \\pi^-. Return None if the item goes on, as in e^+2, where the + is a sign."""
        if self.tokens[past][0] not in _ITEM_ENDS:
            return None
        self.position = past
        return Sym(f"{name}^{sign}")

    def _read_primes_in_braces(self, base: Sym) -> Sym | None:
        r"""Read the exponent of y^{\prime\prime}."""
        count = 1
        while self.peek(1 + count).text == "'":
            count += 1
        if self.peek(1 + count).kind != "unbrace":
            return None
        self.position += count + 2
        return Sym(base.name + "'" * count)

    def _read_derivative(self, base: Sym) -> Sym | None:
        """Read an order in brackets: y^{(3)} is y''', while f^{(n)} and E_0^{(1)} are names."""
        order, closing, end = self.peek(2), self.peek(3), self.peek(4)
        if order.kind not in ("num", "name") or closing.kind != "close" or end.kind != "unbrace":
            return None
        self.position += 5
        is_derived = order.text in _ORDERS and base.name in _DERIVED
        primes = "'" * int(order.text) if is_derived else f"^({order.text})"
        index = f"_{show(self.read_script())}" if "_" not in base.name and self.take_if("op", "_") else ""
        return Sym(f"{base.name}{index}{primes}")

    def read_script(self) -> Node:
        """Read an exponent or a subscript after ^ or _: a group in braces, or one atom with its sign."""
        token = self.tokens[self.position]
        if token[0] == "op" and token[1] in _SIGNS:
            self.position += 1
            self.enter()
            operand = self.read_script()
            self.depth -= 1
            return _with_sign(token[1], operand)
        return self.read_atom()

    def _read_marks(self, node: Node) -> Node:
        """Read the marks after an operand: `!`, `!!`, `%`, `°`. Each adds to the depth, which `read_power` resets."""
        while True:
            token = self.tokens[self.position]
            if token[0] != "op":
                return node
            if token[1] == "!":
                self.position += 1
                self.enter()
                node = FunctionCall("factorial2" if self.take_if("op", "!") else "factorial", (node,))
            elif token[1] == "%":
                self.position += 1
                self.enter()
                node = Measure(node, PERCENT)
            elif token[1] in ("°", "∘"):
                self.position += 1
                self.enter()
                node = FunctionCall("degree", (node,))
            else:
                return node

    def read_atom(self) -> Node:
        """Read a number, a name, a command or a group in brackets."""
        # This repeats `enter` rather than calling it, because every number and name passes here.
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise TooLarge(f"nested more than {MAX_DEPTH} deep")
        token = self.take()
        if (read := self.atoms.get(token[0])) is None:
            raise UnreadableAnswer(f"expected an operand, found {token.text or token.kind!r}")
        node = read(self, token)
        self.depth -= 1
        return node


def chain_of(parts: list[Node], operators: list[str]) -> Chain:
    r"""Return a chain of relations. If a part has no letters, `\sim` and `\cong` mean `\approx`."""
    if not _LIKENESSES.isdisjoint(operators) and any(type(part) is Num or not symbols(part) for part in parts):
        operators = ["~" if operator in _LIKENESSES else operator for operator in operators]
    return Chain(tuple(parts), tuple(operators))


def without_group(node: Node) -> Node:
    r"""Return the sum in square brackets or braces, such as a + b(c + d) in 2[a + b(c + d)]. Other nodes are unchanged.

    [n/2] may be the whole part of n/2. A sum of numbers needs a function, as in \frac12[\ln 2 - 1], but not 2[3.5 + 1].
    """
    if type(node) is Group and len(node.elements) == 1 and node.opening in "[{" and type(node.elements[0]) is Add:
        is_sum = symbols(node) or (node.opening == "[" and any(type(part) is FunctionCall for part in walk(node)))
        return node.elements[0] if is_sum else node
    return node


def cross_product(left: Node, right: Node) -> list[Node]:
    r"""Return the factors of a cross product, with its vectors in alphabetical order.

    \vec b \times \vec a is -1 times \vec a \times \vec b. If a side is a number, both sides are ordinary factors.
    """
    if _are_arrays(left, right):
        return [FunctionCall("cross", (left, right))]
    if not (_is_vector(left) and _is_vector(right)):
        return [left, right]
    factors = [factor for side in (left, right) for factor in (side.factors if isinstance(side, Mul) else (side,))]
    vectors = [factor for factor in factors if _is_vector(factor)]
    scalars = [factor for factor in factors if not _is_vector(factor)]
    names = [f"({show(vector)})" if "×" in show(vector) else show(vector) for vector in vectors]
    if len(vectors) != len((left, right)) or sum(map(len, names)) > MAX_SHOWN_CHARS:
        raise UnreadableAnswer("a long product of vectors")
    cross = Sym("×".join(sorted(names)))
    return [*scalars, cross] if names <= sorted(names) else [MINUS_ONE, *scalars, cross]


def _product_with_dots(factors: list[Node]) -> Node:
    return ellipses.worked_out(factors, is_sum=False) if any(map(is_dots, factors)) else product_of(factors)


def _scalar_product(left: Node, right: Node) -> tuple[Node, ...]:
    return (FunctionCall("dot", (left, right)),) if _are_arrays(left, right) else (left, right)


def _are_arrays(left: Node, right: Node) -> bool:
    """Tell whether both sides are tuples, or both are columns."""
    if isinstance(left, Group) and isinstance(right, Group):
        return left.opening in "(<" and right.opening in "(<"
    columns = isinstance(left, Matrix) and isinstance(right, Matrix) and (*left.rows, *right.rows)
    return bool(columns) and all(len(row) == 1 for row in columns or ())


def _is_vector(node: Node) -> bool:
    is_vector = any(VECTOR_MARK in name or "×" in name or name in ("j", "k") for name in symbols(node))
    return is_vector or any(isinstance(part, Const) and part.name == "i" for part in walk(node))


def _with_sign(sign: str, operand: Node) -> Node:
    if sign == "+":
        return operand
    return negated(operand) if sign == "-" else Mul((Sign(sign == "∓"), operand))


def _is_set(node: Node) -> bool:
    return isinstance(node, (SetOps, SetOf, Named)) or (
        isinstance(node, Group) and (node.opening in "{[" or node.closing in "}]" or len(node.elements) == 2)
    )
