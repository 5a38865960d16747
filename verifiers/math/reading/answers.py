r"""Parses a normalised answer into a tree: a list, or one item that is mathematics, a quantity, or words.

    x=1\text{ or }x=2            BareList of two relations, joined by "or"
    p=5,q=2;p=7,q=2              BareList of two BareLists
    k\pi, k\in\mathbb{Z}         Family: one value for each integer k (`wording`)
    The area is 54 cm^2          54 cm^2 (`wording`, `quantities`)

Raises UnreadableAnswer for other texts, and TooLarge beyond a limit.

Ambiguous notation has less usual readings. They are tried if the usual one does not match (`other_readings`):

    1,234      a list of two, where the other side is a list
    1,5        one and a half, where the other side is one number
    5m         five metres, where the other side knows no m
    1/2x       1/(2x)
    2e+3       twice e and three, where the other side has an e
    0.1(6)     a repeating decimal
    12C5       a binomial coefficient, and C(12, 5), where the other side is a value
    h(a+b)     a product, where the other side uses h as a variable
    log 2      to the base ten, as well as natural
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from itertools import starmap
from string import ascii_letters
from typing import Literal, NamedTuple, TypeAlias

from gmpy2 import mpq

from truegold.verifiers.extract import committed_answer
from truegold.verifiers.math.exact import rational
from truegold.verifiers.math.measures import BARE_UNITS, TIME, unit_of
from truegold.verifiers.math.policy import CACHED_READINGS, Policy, TooLarge, UnreadableAnswer, charge, remembered
from truegold.verifiers.math.reading.chemistry import has_protons
from truegold.verifiers.math.reading.grammar import chain_of
from truegold.verifiers.math.reading.lexer import (
    NESTING,
    USUAL,
    Lexeme,
    Notation,
    kind_of,
    lex,
    nesting,
    split_at,
    text_of,
    with_bold_vectors,
)
from truegold.verifiers.math.reading.normal import normal_text
from truegold.verifiers.math.reading.notation import with_calls_as_counts
from truegold.verifiers.math.reading.operands import ExpressionReader
from truegold.verifiers.math.reading.quantities import (
    may_name_day,
    read_clock_text,
    read_day,
    read_letter_units,
    read_quantity,
    spelled_out,
)
from truegold.verifiers.math.reading.wording import (
    conclusion,
    integers_of_condition,
    integers_of_item,
    integers_of_node,
    is_condition,
    is_solved,
    named_value,
    read_labelled,
    stated_value,
    without_conditions,
    without_remark,
    words_of,
)
from truegold.verifiers.math.tree import (
    ARROWS,
    BAR,
    DOT,
    HAT,
    MINUS_ONE,
    PLUS_ONE,
    VALUES,
    VECTOR_MARK,
    Add,
    BareList,
    BaseN,
    Big,
    Chain,
    Const,
    Family,
    FunctionCall,
    Group,
    Matrix,
    Measure,
    Mul,
    Node,
    Num,
    Pow,
    Ratio,
    Residues,
    SetOps,
    Sign,
    Sym,
    TimeOfDay,
    as_measure,
    derivative_of,
    facts,
    label_of,
    mapped,
    may_have_parts,
    substituted,
    symbols,
    walk,
    with_log_base_ten,
)

_SIMPLE = re.compile(
    r"(-?)(?:(\d{1,200})(?:\.(\d{1,60})|/(\d{1,60}))?|\\[dt]?frac\{(-?\d{1,60})\}\{(\d{1,60})\}"
    r"|([1-9]\d{0,2}(?:(?:,|\{,\}|,\\!|\\,)\d{3}){1,20}))",
    re.ASCII,
)

REMEMBERED_TEXTS = 4_096
"""Texts that are remembered: the ladder asks for a number before the reader does."""

_MODULUS_MARKS = frozenset({"mod", "Mod", "bmod", "pmod", "modulo", "modulus"})
_BRACKETS = frozenset({"open", "close", "brace", "unbrace"})
MAX_ITEMS = 100
"""The longest list. Stops an answer that lists every number there is."""
MAX_NAME = 5
"""The name of an index, `n_{x}`, is shorter."""
MAX_PRODUCT = 3
"""A longer run of letters among formulas is a word."""
MAX_LABEL_TOKENS = 12
"""The most tokens before the `=` of a quantity."""
_NUMERAL = re.compile(r"\(?((?=[A-F]*\d)[0-9A-Fa-f]{1,60})\)?_\s*\{?\s*(\d{2})\s*\}?", re.ASCII)
"""A numeral of a base from 10 on. It holds a digit, since `A_{12}` is a letter with a subscript."""
_PREFIXED = re.compile(r"0([bxoBXO])([0-9A-Fa-f]{1,60})", re.ASCII)
_BASES = {"b": 2, "o": 8, "x": 16}
_SEPARATING = frozenset({"sep", "gap", "row"})
_STEM = re.compile(r"[_'].*")
_SIGNED = frozenset(
    {"x", "y", "z", "t", "s", "u", "q", "Q", "n", "theta", "phi", "psi", "chi", "alpha", "beta", "delta"}
)
"""Coordinates, times, charges, angles and numbers, which may be negative."""
_SCRIPTS = frozenset("^_")
_SYMBOL = re.compile(r"[A-Z][a-z]?(?:_[\d/]{1,5})?|[np]")
"""An element, or the term of a state of an atom."""
_DOTS = frozenset({"dots", "ldots", "cdots"})
_FORMULA_KINDS = frozenset({"func", "cmd", "op", "accent"})
_WORDED = frozenset({"word", "money"})
_CONNECTIVES = frozenset({"and", "or"})
_POINTS = re.compile(rf"([A-Z][_\d']{{0,4}})([A-Z][_\d']{{0,4}}){VECTOR_MARK}")
_IDLE_RELATIONS = frozenset({"~", "=", "sim", "cong"})
_GIVING = frozenset({"=", "~", "sim", "cong"})
"""Relations between a label and its value."""
_IDLE_COMMANDS = frozenset({"therefore", "because", "checkmark", "blacksquare"})
_NOTATIONS: dict[MixedNumbers, Notation] = {"sum": Notation(), "product": Notation(mixed_numbers=False)}
_STATED = re.compile(r"####.*|(['\"`])(?!.*\1.).*\1|[^\n]*(?:</s>|<\|[a-z_]{1,20}\|>|[^\x00-\x7f])", re.DOTALL)
"""Golds with remains of a response: `#### 5`, `'5'`, `5<|im_end|>`, `5 ∎`."""
_PREDICATE = re.compile(r"\bis ([A-Za-z]{2,20}(?: [A-Za-z]{2,20}){0,2})$")
"""The words of a sentence that says something of a formula: `odd` of `The function $f(x+1)-1$ is odd`."""
_DECIMAL_COMMA = re.compile(r"([+-]?)(\d{1,3}(?: \d{3}){1,3}|\d{1,9}),(\d{1,9})(?![\d,])")
_SLASH_NEIGHBOUR = re.compile(r"/\s*\(?[\dA-Za-z\\]")
_SCIENTIFIC = re.compile(r"(\d)e([+-])")
_REPEATING_BLOCK = re.compile(r"(-?\d{0,20}\.\d{0,20})\((\d{1,20})\)")
_AXIS = "([xyzrnts]|theta|phi|rho)"
_UNIT_VECTOR = re.compile(rf"e[{HAT}{VECTOR_MARK}]?_{_AXIS}|{_AXIS}{HAT}")
_MARKED_LETTER = re.compile(r"\\(?:w?i?d?e?hat|vec|mathbf|boldsymbol|bm|bf)(?![A-Za-z])")
_OF_AXES = {"x": "i", "y": "j", "z": "k"}
_LOST_CARET = re.compile(r"(?<![\d.])([1-9](?:\.\d{1,20})?\s?(?:\\times|\\cdot|[x*])\s?10)\s?-\s?(\d{1,2})(?!\d)")
"""1.6 x 10-19, a power whose exponent sign was lost in a copy."""
_MINUTES_AND_SECONDS = re.compile(r"(\d{1,4})'\s?(?:(\d{1,2}(?:\.\d{1,6})?)'')?")
_DOTS_OF_TIME = {"t": DOT, "t^(2)": "\u0308"}
_HARMONIC = re.compile(r"H_(\d{1,3}|[nmkN])")
_LETTERS_APART = re.compile(r"[\d)}](?:\s|~|\\[,;: ]|\u2009)+\\?[A-Za-z]")
"""The blank of `5 T`, which may be a unit; `5T` is a product, unless the other side has a unit."""
_USUAL_UNIT = re.compile(r"(?<![A-Za-z\\])(?:[mgshLlNJWVA]|[A-Za-z]{2,3})(?:\^?\W?\d\W?)?$|/")
"""The unit at the end of `5m` and `5mW`. The c of `5c` alone is not a unit."""
_MAY_HOLD_UNIT = re.compile(
    rf"(?<![A-Za-z\\])(?:[A-Za-z]{{2}}|[{''.join(filter(unit_of, ascii_letters))}](?![A-Za-z]))|[^\x00-\x7f]"
    r"|\\(?!(?:[dt]?frac|sqrt|left|right|cdot|times|pi|infty|cup|cap|in|ln|log|sin|cos|tan)(?![A-Za-z]))[A-Za-z]"
)
"""Signs of a possible unit: a letter that may be one, several letters, other commands. Texts with a unit have one."""
_GROUPING = re.compile(r"\d,\d{3}(?!\d)")


@lru_cache(maxsize=REMEMBERED_TEXTS)
def simple_number(text: str) -> Num | None:
    """Return the number that a normal text is as a whole; None for all other texts and for a division by zero."""
    if (match := _SIMPLE.fullmatch(text)) is None:
        return None
    sign, whole, decimals, divisor, above, below, grouped = match.groups()
    if grouped is not None:
        whole = "".join(filter(str.isdigit, grouped))
    if decimals is not None:
        value = mpq(int(whole + decimals), 10 ** len(decimals))
        return Num(-value if sign else value, len(decimals))
    numerator, denominator = int(whole or above), int(divisor or below or 1)
    if denominator == 0:
        return None
    return Num(mpq(-numerator if sign else numerator, denominator))


ReadExpression: TypeAlias = Callable[[list[Lexeme]], Node]


def read_congruences(tokens: list[Lexeme], read_expression: ReadExpression) -> Node | None:
    """Return the node of an answer that consists of congruences, else None."""
    nodes: list[Node] = []
    start = 0
    joined = ","
    for index, token in enumerate(tokens):
        if token.text not in _MODULUS_MARKS or index < start:
            continue
        end = _end_of_modulus(tokens, index)
        if (node := _read_one(tokens[start:index], tokens[index + 1 : end], read_expression)) is None:
            return None
        nodes.append(node)
        start = end
        if start < len(tokens):
            if tokens[start].kind not in ("sep", "gap"):
                return None
            joined = tokens[start].text or ","
            while start < len(tokens) and tokens[start].kind in ("sep", "gap"):
                joined = tokens[start].text or joined
                start += 1
    if not nodes or start < len(tokens):
        return None
    return nodes[0] if len(nodes) == 1 else BareList(tuple(nodes), joined)


def _end_of_modulus(tokens: list[Lexeme], index: int) -> int:
    """Return the end of the modulus after the mark at `index`, including the bracket around the mark."""
    depth, end = 0, index + 1
    while end < len(tokens):
        if depth == 0 and tokens[end].kind in ("sep", "gap"):
            break
        depth += NESTING.get(tokens[end][0], 0)
        end += 1
    return end


def _read_one(before: list[Lexeme], behind: list[Lexeme], read_expression: ReadExpression) -> Residues | None:
    """Read `x \\equiv 3 (` and `7 )`."""
    while before and before[-1].kind in ("open", "brace", "gap"):
        before = before[:-1]
    modulus = [token for token in behind if token.kind not in _BRACKETS]
    label = ""
    relations = [i for i, token in enumerate(before) if token.kind == "rel"]
    if relations:
        head, relation = before[: relations[0]], before[relations[0]].text
        if len(relations) > 1 or relation not in ("==", "=") or [token.kind for token in head] != ["name"]:
            return None
        label, before = head[0].text, before[relations[0] + 1 :]
    parts = [part for chunk in split_at(before, ",") for part in split_at(chunk, "or")]
    parts = [smaller for part in parts for smaller in split_at(part, "and")]
    if not parts or not modulus:
        return None
    remainders = tuple(value for part in parts for value in _both_signs(read_expression(part)))
    return Residues(label, remainders, read_expression(modulus))


def _both_signs(node: Node) -> list[Node]:
    r"""Return 1 and -1 for `\pm 1`."""
    if facts(node).sign_count != 1:
        return [node]
    return [mapped(node, partial(_with_sign, sign)) for sign in (PLUS_ONE, MINUS_ONE)]


def _with_sign(sign: Node, part: Node) -> Node:
    return sign if isinstance(part, Sign) else part


class Unread(NamedTuple):
    """Why a text has no tree."""

    too_large: bool
    """The text is beyond a budget; else it is not an answer that the reader knows."""
    why: str


MixedNumbers: TypeAlias = Literal["sum", "product"]


@remembered(CACHED_READINGS)
def read_text(text: str, mixed: MixedNumbers) -> Node | Unread:
    """Return the tree of a normal text."""
    try:
        return read(text, _NOTATIONS[mixed])
    except TooLarge as error:
        return Unread(True, str(error))
    except UnreadableAnswer as error:
        return Unread(False, str(error))


@remembered(CACHED_READINGS)
def read_gold(text: str, mixed: MixedNumbers) -> Node | Unread:
    """Return the tree of a normalised gold. If it is a worked solution, its box is read, and if it is a sentence, the
    value that it states."""
    first_reading = reading = read_text(text, mixed)
    is_stated = isinstance(reading, Unread) and ("\\boxed" in text or _STATED.fullmatch(text) is not None)
    if is_stated and (committed := committed_answer(text, several=1)) is not None:
        reading = read_text(normal_text(committed.text), mixed)
    if isinstance(reading, Unread) and (predicate := _PREDICATE.search(text)) is not None:
        reading = read_text(predicate.group(1), mixed)
    return first_reading if isinstance(reading, Unread) else reading


def read(text: str, notation: Notation = USUAL) -> Node:
    """Return the tree of a normal text."""
    charge(1 + len(text) // 10)
    if (simple := simple_number(text)) is not None:
        return simple
    special: Node | None = read_day(text) if may_name_day(text) else None
    if special is None and ("_" in text or text[:1] == "0"):
        special = _read_numeral(text)
    if special is not None:
        return special
    return _read_tokens(lex(text, group_digits=notation.group_digits), notation, 0)


def _read_numeral(text: str) -> BaseN | None:
    """Read a numeral whose digits are letters too, `1A_{16}`, and one with the prefix of programs, `0x1A`."""
    if (prefixed := _PREFIXED.fullmatch(text)) is not None:
        base, digits = _BASES[prefixed[1].lower()], prefixed[2].upper()
        return BaseN(digits, base) if all(int(digit, 36) < base for digit in digits) else None
    if (match := _NUMERAL.fullmatch(text)) is None:
        return None
    digits, base = match.group(1).upper(), int(match.group(2))
    return BaseN(digits, base) if all(int(digit, 36) < base for digit in digits) else None


def _read_tokens(tokens: list[Lexeme], notation: Notation, depth: int) -> Node:
    """Return the tree of an answer that is nested `depth` levels inside another one."""
    return _AnswerReader(notation, depth).read(tokens)


class _AnswerReader:
    """Parses one answer, and collects the conditions on its letters."""

    __slots__ = ("conditions", "depth", "notation", "parameters")

    def __init__(self, notation: Notation, depth: int) -> None:
        self.notation = notation
        self.depth = depth
        self.parameters: set[str] = set()
        self.conditions: list[Node] = []

    def read(self, tokens: list[Lexeme]) -> Node:
        if not tokens:
            raise UnreadableAnswer("nothing")
        charge(3 * len(tokens))
        kinds = set(map(kind_of, tokens))
        has_modulus = ("cmd" in kinds or "word" in kinds) and not _MODULUS_MARKS.isdisjoint(map(text_of, tokens))
        if has_modulus and (congruences := read_congruences(tokens, self._read_expression)) is not None:
            return congruences
        is_element = len(tokens) > 2 and tokens[1][:2] == ("word", "in") and tokens[0].kind == "name"
        if is_element and tokens[2].kind in ("open", "cmd"):
            tokens = [tokens[0], Lexeme("rel", "in", True), *tokens[2:]]
        if "logic" in kinds and not _are_statements(tokens):
            tokens = [token._replace(kind="sep") if token.text in _CONNECTIVES else token for token in tokens]
            kinds.add("sep")
        if "rel" in kinds:
            tokens, remark = without_remark(self._conclusion(tokens))
            self.parameters |= integers_of_condition(remark)
        if "word" in kinds or "cmd" in kinds:
            tokens, letters = without_conditions(tokens)
            self.parameters |= letters
            kinds = set(map(kind_of, tokens))
        node = self._read_item(tokens) if kinds.isdisjoint(_SEPARATING) else self._read_lists(tokens)
        if self.parameters or self.conditions:
            return Family(node, frozenset(self.parameters), tuple(self.conditions))
        return node

    def _conclusion(self, tokens: list[Lexeme]) -> list[Lexeme]:
        """Return the end of a derivation: `x=2` for `6x=12 \\implies x=2`. Other implications are returned
        unchanged."""
        premise, behind = conclusion(tokens)
        if not premise or "rel" not in map(kind_of, premise):
            return tokens if premise and _may_be_statement(premise) else behind
        try:
            node = self._read_item(behind) if _SEPARATING.isdisjoint(map(kind_of, behind)) else None
        except UnreadableAnswer:
            node = None
        return behind if node is None or is_solved(node, premise) else tokens

    def _read_lists(self, tokens: list[Lexeme]) -> Node:
        """Read one list, or several with semicolons between them."""
        groups = split_at(tokens, ";") if ";" in map(text_of, tokens) else ()
        if len(groups) > 1 and any(len(split_at(group, ",")) > 1 for group in groups):
            return BareList(tuple(map(self._read_group, groups)), ";")
        return self._read_list(tokens)

    def _read_group(self, tokens: list[Lexeme]) -> Node:
        """Read one of several lists, with its own conditions."""
        before, self.conditions = self.conditions, []
        node = self._read_list(tokens)
        node = Family(node, frozenset(), tuple(self.conditions)) if self.conditions else node
        self.conditions = before
        return node

    def _read_list(self, tokens: list[Lexeme]) -> Node:
        slices, joined = _split_items(tokens)
        if len(slices) > MAX_ITEMS:
            raise TooLarge(f"a list of {len(slices)}, the limit is {MAX_ITEMS}")
        if not slices:
            raise UnreadableAnswer("nothing but separators")
        nodes: list[Node] = []
        conditions: list[tuple[int, Node]] = []
        slices = self._without_range(slices)
        if (labelled := read_labelled(slices, self._read_item)) is not None:
            return _regrouped(labelled, joined)
        for part in slices:
            if len(slices) > 1 and (worded := integers_of_item(part)):
                self.parameters |= worded
                continue
            node = self._read_item(part)
            if (letters := integers_of_node(node)) and len(slices) > 1:
                self.parameters |= letters
            elif joined == "," and nodes and is_condition(node) and not is_condition(nodes[0]):
                conditions.append((len(nodes) - 1, node))
            else:
                nodes.append(node)
        if not nodes:
            raise UnreadableAnswer("nothing but conditions")
        if all(index == len(nodes) - 1 for index, _ in conditions):
            self.conditions.extend(node for _, node in conditions)
        else:
            nodes = _with_own_conditions(nodes, conditions)
        return nodes[0] if len(nodes) == 1 else _regrouped(nodes, joined)

    def _without_range(self, slices: list[list[Lexeme]]) -> list[list[Lexeme]]:
        r"""Return the items before `n = 1, 2, 3, \dots`, which says of n what `n >= 1` does, or else all of them.

        That n is any integer, `0, \pm 1, \dots`, is understood.
        """
        if len(slices) > 1 and slices[-1][0].kind == "open" and slices[-1][-1].kind == "close":
            inside = split_at(slices[-1][1:-1], ",")
            shorter = self._without_range([*slices[:-1], *inside])
            return shorter if len(shorter) < len(slices) else slices
        while len(slices) > 1 and len(slices[-1]) == 1 and slices[-1][0].text in _DOTS:
            start = max((i for i, part in enumerate(slices) if "=" in map(text_of, part)), default=0)
            equals = [*map(text_of, slices[start])].index("=") if start else 0
            name = "".join(map(text_of, slices[start][:equals]))
            while start > 1 and slices[start - 1][0].kind == "name" and len(slices[start - 1]) < MAX_NAME:
                # n, l = 0, 1, 2, ...
                slices, start = [*slices[: start - 1], *slices[start:]], start - 1
            values = [slices[start][equals + 1 :], *slices[start + 1 : -1]]
            before = "".join(token.text for part in slices[:start] for token in part)
            is_range = start and name in before and len(name) < MAX_NAME and len(values) > 1
            if not is_range or any(not 0 < len(value) < 3 or value[-1].kind != "num" for value in values):
                break
            self._add_range(name, values[:2])
            slices = slices[:start]
        return slices

    def _add_range(self, name: str, values: list[list[Lexeme]]) -> None:
        if not any(token.text in "±∓" for value in values for token in value):
            first, second = map(self._read_expression, values)
            is_even = isinstance(first, Num) and isinstance(second, Num) and second.value - first.value == 1
            self.conditions.append(
                Chain((Sym(name), first), (">=",)) if is_even else Group("(", ")", (Sym(name), first, second))
            )

    def _read_item(self, tokens: list[Lexeme]) -> Node:  # noqa: PLR0911, one for each form
        """Read one item as mathematics if possible, else as a quantity, else as words."""
        if len(tokens) > 1 and tokens[0].kind == "rel" and tokens[0].text in _IDLE_RELATIONS:
            # An idle sign, as in `\\approx 1.47 km`.
            tokens = tokens[1:]
        charge(3 * len(tokens))
        if tokens[0].text in _SCRIPTS and (nuclide := _nuclide(tokens)) is not None:
            return nuclide
        if self.notation.letter_units and (measure := self._read_letter_units(tokens)) is not None:
            return measure
        has_words = not _WORDED.isdisjoint(map(kind_of, tokens))
        if has_words and tokens[-1].kind == "unbrace":
            tokens = _with_unit_behind(tokens)
        quantity = read_quantity(tokens, self._read_expression) if has_words and tokens[0].kind == "num" else None
        if isinstance(quantity, Measure) and not quantity.unit.is_label:
            return quantity
        if (
            not has_words
            or "begin" in map(kind_of, tokens)
            or all(len(t.text) == 1 and t.text.isascii() for t in tokens if t.kind == "word")
        ):
            try:
                node = as_measure(self._read_expression(tokens))
                if isinstance(node, Ratio):
                    # 4:30 may be a time of day instead.
                    return Ratio(node.parts, read_clock_text(spelled_out(tokens)))
                return node
            except UnreadableAnswer:
                if (quantity := read_quantity(tokens, self._read_expression)) is not None:
                    return quantity
                if not has_words:
                    return self._read_repaired(tokens)
        if (named := named_value(tokens)) is not None:
            return named
        if (quantity := read_quantity(tokens, self._read_expression)) is not None:
            return quantity
        equation = self._read_labelled_quantity(tokens)
        return equation if equation is not None else self._read_wording(tokens)

    def _read_letter_units(self, tokens: list[Lexeme]) -> Node | None:
        """Read `5 N` and `F = 5 N`."""
        if (measure := read_letter_units(tokens, self._read_expression)) is not None:
            return measure
        is_equation = any(token[:2] == ("rel", "=") for token in tokens)
        labelled = self._read_labelled_quantity(tokens) if is_equation else None
        return labelled if isinstance(labelled, Chain) and isinstance(labelled.parts[1], Measure) else None

    def _read_labelled_quantity(self, tokens: list[Lexeme]) -> Node | None:
        r"""Read `v_0 = 20 m/s`, `v_0 \approx 20 m/s`, and `60 mph ~ 26.8 m/s`."""
        equals = next((i for i, token in enumerate(tokens) if token.kind == "rel"), 0)
        if not equals or tokens[equals].text not in _GIVING or equals > MAX_LABEL_TOKENS:
            return None
        label: Node | None
        try:
            label = self._read_expression(tokens[:equals])
        except UnreadableAnswer:
            # 5 kg = 5000 g
            label = read_quantity(tokens[:equals], self._read_expression) if tokens[0].kind == "num" else None
        if label is None:
            return None
        behind = tokens[equals + 1 :]
        quantity = read_quantity(behind, self._read_expression) if behind else None
        if quantity is None and self.notation.letter_units and len(behind) > 1:
            quantity = read_letter_units(behind, self._read_expression)
        return chain_of([label, quantity], [tokens[equals].text]) if quantity is not None else None

    def _read_expression(self, tokens: list[Lexeme]) -> Node:
        return ExpressionReader(tokens, self.notation, self.depth, _read_tokens).read_whole()

    def _read_wording(self, tokens: list[Lexeme]) -> Node:
        if (stated := stated_value(tokens)) is not None:
            part, no_values = stated
            node = self._read_item(part)
            if not isinstance(node, no_values):
                return node
        if (letters := _with_letters_apart(tokens)) is not None:
            try:
                return as_measure(self._read_expression(letters))
            except UnreadableAnswer:
                pass
        return words_of(tokens)

    def _read_repaired(self, tokens: list[Lexeme]) -> Node:
        """Read the tokens after a superfluous `=` or mark of a conclusion, and `2 3 5` as three numbers."""
        first = tokens[0]
        is_idle = first.text in _IDLE_RELATIONS if first.kind == "rel" else first.text in _IDLE_COMMANDS
        if is_idle and first.kind in ("rel", "cmd") and len(tokens) > 1:
            return self._read_item(tokens[1:])
        if all(token.kind == "num" or token.text == "-" for token in tokens):
            starts = [i for i, token in enumerate(tokens) if i == 0 or _begins_number(tokens, i, token)]
            parts = [tokens[start:end] for start, end in zip(starts, [*starts[1:], len(tokens)], strict=True)]
            if len(parts) > 1 and all(part[-1].kind == "num" and len(part) <= 2 for part in parts):
                return BareList(tuple(map(self._read_expression, parts)))
        return as_measure(self._read_expression(tokens))


def _with_unit_behind(tokens: list[Lexeme]) -> list[Lexeme]:
    r"""Return \\frac{13.6}{n^2} eV for \\frac{13.6 eV}{n^2} at the end of an item that is one product."""
    words = [index for index, token in enumerate(tokens) if token.kind == "word"]
    word = words[0] if len(words) == 1 and tokens[words[0] - 1].kind == "num" else 0
    opening, depth = word, 0
    while opening > 0 and depth < 1:
        opening -= 1
        depth += nesting(tokens[opening])
    behind = tokens[word + 1 : word + 3]
    is_above = opening > 0 and tokens[opening - 1].text == "frac" and [t.kind for t in behind] == ["unbrace", "brace"]
    if not is_above or unit_of(tokens[word].text) is None:
        return tokens
    depth = 0
    for index, token in enumerate(tokens):
        depth += nesting(token)
        is_sum = token.kind == "op" and token.text in "+-±" and index and tokens[index - 1].kind != "rel"
        if depth == 0 and (
            is_sum or (token.kind == "unbrace" and word < index < len(tokens) - 1 and index != word + 1)
        ):
            return tokens
    return [*tokens[:word], *tokens[word + 1 :], tokens[word]._replace(spaced=True)]


def _nuclide(tokens: list[Lexeme]) -> Sym | None:
    r"""Return ^{14}C for ^{14}_6\text{C}: the element says how many protons it has; and the term ^2P_{3/2}.

    Another number of protons, as in ^{14}_7C, stays: there is no such nuclide.
    """
    scripts: dict[str, str] = {}
    texts = [token.text for token in tokens if token.kind not in ("brace", "unbrace")]
    while len(texts) > 2 and texts[0] in _SCRIPTS and texts[1].isdigit():
        scripts[texts[0]] = texts[1]
        texts = texts[2:]
    symbol = "".join(texts)
    if "^" not in scripts or _SYMBOL.fullmatch(symbol) is None:
        return None
    protons = "" if has_protons(symbol, scripts.get("_")) else f"_{scripts.get('_', '')}"
    return Sym(f"^{scripts['^']}{protons}{symbol}")


def _are_statements(tokens: list[Lexeme]) -> bool:
    r"""Tell whether `\lor` joins statements, as in p \lor q. In x = 1 \lor x = 2 and 1 \lor 2 it joins values."""
    return not any(token.kind == "num" or (token.kind == "rel" and token.text not in ARROWS) for token in tokens)


def _may_be_statement(premise: list[Lexeme]) -> bool:
    r"""Tell whether a premise without a relation is a statement such as `p \land q`, and not words or a value."""
    return all(token.kind in ("name", "logic", "open", "close", "brace", "unbrace", "sep") for token in premise)


def _with_letters_apart(tokens: list[Lexeme]) -> list[Lexeme] | None:
    """Return the `at` of `e^{at}` as a product of two letters, or None if there are other words, or no formula."""
    if not any(token.kind in _FORMULA_KINDS for token in tokens):
        return None
    letters: list[Lexeme] = []
    for token in tokens:
        is_close = not token.spaced or (token.text in BARE_UNITS and (not letters or letters[-1].kind in ("rel", "op")))
        if token.kind not in _WORDED:
            letters.append(token)
        elif token.kind == "word" and is_close and len(token.text) <= MAX_PRODUCT and token.text.isascii():
            letters.extend(Lexeme("name", letter, False) for letter in token.text)
        else:
            return None
    return letters


def _begins_number(tokens: list[Lexeme], index: int, token: Lexeme) -> bool:
    return token.spaced and (token.kind == "num" or index + 1 < len(tokens))


def _with_own_conditions(nodes: list[Node], conditions: list[tuple[int, Node]]) -> list[Node]:
    """Return values with their own conditions: 0 and 1/r of `0, r < a, 1/r, r > a`."""
    pieces: list[Node] = []
    for index, node in enumerate(nodes):
        held = tuple(condition for piece, condition in conditions if piece == index)
        pieces.append(Family(node, frozenset(), held) if held else node)
    return pieces


def _regrouped(nodes: list[Node], joined: str) -> Node:
    """Return a list with repeated labels as a list of lists: p=5, q=2, p=7, q=2 become two pairs."""
    labels = [label_of(node) for node in nodes]
    if None not in labels:
        size = len(set(labels))
        if 1 < size < len(labels) and labels == labels[:size] * (len(labels) // size):
            pairs = [BareList(tuple(nodes[i : i + size])) for i in range(0, len(nodes), size)]
            return BareList(tuple(pairs), joined)
    return BareList(tuple(nodes), joined)


def _split_items(tokens: list[Lexeme]) -> tuple[list[list[Lexeme]], str]:
    """Cut at commas, connectives and wide gaps outside of all brackets; return how the last items are joined, too."""
    parts: list[list[Lexeme]] = [[]]
    joined = ","
    depth = 0
    for token in tokens:
        depth += NESTING.get(token[0], 0)
        if depth > 0 or token[0] not in _SEPARATING:
            parts[-1].append(token)
        elif token.kind != "gap" or not (parts[-1] and parts[-1][-1].kind in ("rel", "op")):
            if token.text in ("or", "and") and joined != "or":
                joined = token.text
            parts.append([])
    merged: list[list[Lexeme]] = []
    for part in parts:
        # A gap before a relation separates nothing.
        if part and merged and part[0].kind == "rel":
            merged[-1].extend(part)
        elif part:
            merged.append(part)
    return merged, joined


def other_readings(
    gold: Node, answer: Node, gold_text: str, answer_text: str, policy: Policy
) -> Iterator[tuple[Node, Node]]:
    """Yield pairs of trees of gold and answer, with another reading of one side."""
    if type(gold) is Num and type(answer) is Num:
        return
    mixed_numbers = policy.mixed == "sum"
    for tree in _other_trees(answer_text, answer, gold, mixed_numbers):
        yield gold, tree
    for tree in _other_trees(gold_text, gold, answer, mixed_numbers):
        yield tree, answer
    gold_facts, answer_facts = facts(gold), facts(answer)
    may_share = "-" in gold_text or "-" in answer_text or _has_unit(gold) or _has_unit(answer)
    if gold_facts.symbols != answer_facts.symbols or (gold_facts.symbols and may_share):
        yield from _readings_in_units((gold, gold_text), (answer, answer_text), policy)
    if policy.log == "either" and (gold_facts.has_bare_log or answer_facts.has_bare_log):
        yield with_log_base_ten(gold), with_log_base_ten(answer)
    named = _with_names_spelled_out(gold, answer_facts.symbols), _with_names_spelled_out(answer, gold_facts.symbols)
    if named != (gold, answer):
        yield named
    yield from _readings_of_marks((gold, gold_text), (answer, answer_text))
    if policy.signs == "positive":
        unsigned = {name for name in gold_facts.symbols | answer_facts.symbols if _STEM.sub("", name) not in _SIGNED}
        unsigned -= _letters_of_sizes(gold) | _letters_of_sizes(answer)
        yield _with_positive(gold, unsigned), _with_positive(answer, unsigned)
    marks = _may_mark_complement(gold_text) + _may_mark_complement(answer_text)
    if marks == 2 or (marks and SetOps in (type(gold), type(answer))):
        yield _with_complements(gold), _with_complements(answer)
    functions = gold_facts.unknown_functions | answer_facts.unknown_functions
    if functions & (gold_facts.symbols | answer_facts.symbols):
        yield _with_products(gold), _with_products(answer)


def _readings_of_marks(gold: tuple[Node, str], answer: tuple[Node, str]) -> Iterator[tuple[Node, Node]]:
    """Yield readings of brackets as whole parts, and of letters with marks as vectors."""
    (gold_tree, gold_text), (answer_tree, answer_text) = gold, answer
    if "floor" in gold_text + answer_text and ("[" in gold_text or "[" in answer_text):
        yield mapped(gold_tree, _as_whole_part), mapped(answer_tree, _as_whole_part)
    names = symbols(gold_tree) | symbols(answer_tree)
    if any(map(_UNIT_VECTOR.fullmatch, names)) and all(starmap(_may_be_vector, (gold, answer))):
        yield mapped(gold_tree, _as_unit_vector), mapped(answer_tree, _as_unit_vector)
    if any(VECTOR_MARK in name for name in names):
        yield _with_points(gold_tree), _with_points(answer_tree)
        for tree in _try_reading(with_bold_vectors(answer_text), USUAL):
            yield gold_tree, tree
        for tree in _try_reading(with_bold_vectors(gold_text), USUAL):
            yield tree, answer_tree


def _with_names_spelled_out(node: Node, other_names: frozenset[str]) -> Node:
    r"""Return h/2\pi for \hbar, l for \ell, 1 + 1/2 + ... + 1/n for H_n, where the other side has no such letter."""
    names = symbols(node)
    values: dict[str, Node] = {}
    if "hbar" in names and "h" in other_names and "hbar" not in other_names:
        values["hbar"] = Mul((Sym("h"), Pow(Mul((Num(mpq(2)), Const("pi"))), MINUS_ONE)))
    if "ell" in names and "l" in other_names and "l" not in names and "ell" not in other_names:
        values["ell"] = Sym("l")
    for name in names:
        pair = derivative_of(Sym(name)) if "/d" in name else None
        if pair is not None and (dotted := f"{pair[0]}{_DOTS_OF_TIME.get(pair[1])}") in other_names:
            values[name] = Sym(dotted)
        if (index := _HARMONIC.fullmatch(name)) is not None and not any(map(_HARMONIC.match, other_names)):
            last = Num(mpq(int(index[1]))) if index[1].isdigit() else Sym(index[1])
            values[name] = Big("sum", "k_", PLUS_ONE, last, Pow(Sym("k_"), MINUS_ONE))
    return substituted(node, values) if values and isinstance(node, (*VALUES, Chain)) else node


def _with_positive(node: Node, names: set[str]) -> Node:
    """Return the tree with |m| for each letter m of the names, except where it is a label."""
    if isinstance(node, BareList):
        return BareList(tuple(_with_positive(part, names) for part in node.elements), node.joined)
    if isinstance(node, Chain):
        first, *rest = node.parts[0], *(_with_positive(part, names) for part in node.parts[1:])
        is_power = isinstance(first, Pow) and isinstance(first.base, Sym) and first.base.name in names
        if is_power and isinstance(first, Pow) and len(rest) == 1 and rational(first.exponent):
            # \\omega^2 = k/m
            return Chain((first.base, Pow(rest[0], Pow(first.exponent, MINUS_ONE))), node.operators)
        return Chain((first, *rest), node.operators)
    sizes: dict[str, Node] = {name: FunctionCall("abs", (Sym(name),)) for name in names}
    return substituted(node, sizes) if isinstance(node, VALUES) else node


def _letters_of_sizes(node: Node) -> frozenset[str]:
    """Return the letters of |q|, which would say nothing of a positive q."""
    sizes = [part for part in walk(node) if isinstance(part, FunctionCall) and part.name == "abs"]
    return frozenset().union(*map(symbols, sizes))


def _other_trees(text: str, tree: Node, other_side: Node, mixed_numbers: bool) -> Iterator[Node]:
    if _GROUPING.search(text) and isinstance(other_side, (BareList, Group, Chain)):
        yield from _try_reading(text, Notation(mixed_numbers=mixed_numbers, group_digits=False))
    is_pair = isinstance(tree, BareList) and len(tree.elements) == 2
    is_beside_value = is_pair and isinstance(other_side, (*VALUES, Measure)) and not symbols(other_side)
    if is_beside_value and (match := _DECIMAL_COMMA.match(text)) is not None:
        sign, whole, decimals = match.groups()
        with_point = f"{sign}{whole.replace(' ', '')}.{decimals}{text[match.end() :]}"
        yield from _try_reading(with_point, Notation(mixed_numbers=mixed_numbers))
    if isinstance(other_side, TimeOfDay) and (clock := read_clock_text(text)) is not None:
        yield clock
    is_span = isinstance(other_side, Measure) and other_side.unit.dimension == TIME
    if is_span and (span := _MINUTES_AND_SECONDS.fullmatch(text)) is not None:
        yield from _try_reading(f"{span[1]} minutes {span[2] or 0} seconds", Notation())
    if "10" in text and "-" in text and (lost := _LOST_CARET.sub(r"\1^{-\2}", text)) != text:
        yield from _try_reading(lost, Notation(mixed_numbers=mixed_numbers, letter_units=_has_unit(other_side)))
    may_count = "C" in text or "P" in text or "B(" in text or "B}" in text
    if may_count and isinstance(other_side, VALUES) and (counted := with_calls_as_counts(text)) != text:
        yield from _try_reading(counted, Notation(mixed_numbers=mixed_numbers))
    may_add = "e" in text and _SCIENTIFIC.search(text) is not None
    if may_add and any(isinstance(part, Const) and part.name == "e" for part in walk(other_side)):
        yield from _try_reading(_SCIENTIFIC.sub(r"\1 e \2", text), Notation(mixed_numbers=mixed_numbers))
    if text.endswith(")") and (repeating := _REPEATING_BLOCK.fullmatch(text)) is not None:
        yield from _try_reading(rf"{repeating[1]}\overline{{{repeating[2]}}}", Notation(mixed_numbers=mixed_numbers))
    if "/" in text and _SLASH_NEIGHBOUR.search(text):
        yield from _try_reading(text, Notation(mixed_numbers=mixed_numbers, tight_products=True))


def _readings_in_units(gold: tuple[Node, str], answer: tuple[Node, str], policy: Policy) -> Iterator[tuple[Node, Node]]:
    """Yield readings with letters as units: `5 N` against `5 kg m/s^2`, but not a gold of `5T` against 5."""
    (gold_tree, gold_text), (answer_tree, answer_text) = gold, answer
    notation = Notation(mixed_numbers=policy.mixed == "sum", letter_units=True)
    answers = _in_letter_units(answer_text, answer_tree, notation)
    may_be_gold = _has_unit(answer_tree) or policy.letters == "units" or _LETTERS_APART.search(gold_text) is not None
    is_gold_read = policy.letters != "variables" and (may_be_gold or answers)
    golds = _in_letter_units(gold_text, gold_tree, notation) if is_gold_read else []
    for other_answer in answers:
        is_usual = _LETTERS_APART.search(answer_text) or (_USUAL_UNIT.search(answer_text) and not symbols(other_answer))
        if _has_unit(gold_tree) or is_usual:
            yield gold_tree, other_answer
        yield from ((other_gold, other_answer) for other_gold in golds)
    if may_be_gold:
        # `(9+a) t` is a product.
        yield from ((other, answer_tree) for other in golds if _has_unit(answer_tree) or not symbols(other))


def _in_letter_units(text: str, tree: Node, notation: Notation) -> list[Node]:
    readings = _try_reading(text, notation) if _MAY_HOLD_UNIT.search(text) is not None else (tree,)
    return list(filter(_has_unit, readings))


def _has_unit(node: Node) -> bool:
    return any(isinstance(part, Measure) and not part.unit.is_label for part in walk(node))


def _try_reading(text: str, notation: Notation) -> Iterator[Node]:
    try:
        yield read(text, notation)
    except (UnreadableAnswer, TooLarge):
        return


def _may_mark_complement(text: str) -> bool:
    return "^c" in text or "^{c" in text or "'" in text or "prime" in text or "\\overline" in text or "\\bar" in text


def _with_complements(node: Node) -> Node:
    r"""Return the complement of A for A^c, A' and \overline{A}."""

    def complement(part: Node) -> Node:
        if isinstance(part, Sym) and len(part.name) > 1 and part.name[0].isupper():
            return SetOps("not", (Sym(part.name[0]),)) if part.name[1:] in ("'", BAR) else part
        if isinstance(part, Pow) and isinstance(part.exponent, Sym) and part.exponent.name in ("c", "C"):
            return SetOps("not", (part.base,))
        return part

    return mapped(node, complement) if may_have_parts(node) else complement(node)


def _with_points(node: Node) -> Node:
    """Read the vector AB as B - A."""

    def as_difference(part: Node) -> Node:
        ends = _POINTS.fullmatch(part.name) if isinstance(part, Sym) else None
        if ends is None:
            return part
        return Add((Sym(f"{ends[2]}{VECTOR_MARK}"), Mul((MINUS_ONE, Sym(f"{ends[1]}{VECTOR_MARK}")))))

    return mapped(node, as_difference) if may_have_parts(node) else as_difference(node)


def _as_whole_part(part: Node) -> Node:
    """Return the whole part of n/2 for [n/2]."""
    is_lone = isinstance(part, Group) and (part.opening, part.closing, len(part.elements)) == ("[", "]", 1)
    return FunctionCall("floor", part.elements) if is_lone and isinstance(part, Group) else part


def _may_be_vector(node: Node, text: str) -> bool:
    r"""Tell whether a side may be a vector: a tuple, or a sum with marked letters. `-gk` and the operators \\hat x
    \\hat p are not."""
    if isinstance(node, (Group, Matrix)):
        return True
    products = [part.factors for part in walk(node) if isinstance(part, Mul)]
    marked = [[factor for factor in factors if _is_marked(factor)] for factors in products]
    return _MARKED_LETTER.search(text) is not None and all(len(letters) < 2 for letters in marked)


def _is_marked(node: Node) -> bool:
    return isinstance(node, Sym) and (HAT in node.name or _UNIT_VECTOR.fullmatch(node.name) is not None)


def _as_unit_vector(part: Node) -> Node:
    r"""Return a unit vector in its usual notation: i, j, k for \hat x, \mathbf{e}_y, \hat{e}_z, and \hat r for
    \mathbf{e}_r."""
    if not isinstance(part, Sym) or (match := _UNIT_VECTOR.fullmatch(part.name)) is None:
        return part
    axis = match[1] or match[2]
    name = _OF_AXES.get(axis, f"{axis}{HAT}")
    return Const(name) if name == "i" else Sym(name)


def _with_products(node: Node) -> Node:
    """Read h(a+b) as a product."""

    def as_product(part: Node) -> Node:
        if isinstance(part, FunctionCall) and part.applied and len(part.args) == 1:
            return Mul((Sym(part.name), part.args[0]))
        return part

    return mapped(node, as_product)
