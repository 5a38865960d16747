r"""From normal text to the tree of one answer: lists, and items that are mathematics, a quantity, or words.

    x=1\text{ or }x=2            BareList of two relations, joined by "or"
    p=5,q=2;p=7,q=2              BareList of two BareLists
    k\pi, k\in\mathbb{Z}         Family: one value for each integer k (`conditions`)
    The area is 54 cm^2          54 cm^2 (`wording`, `quantities`)

What is none of these raises Unreadable, and what meets a budget TooLarge.
"""

from __future__ import annotations

import re

from truegold.verifiers.math.budget import charge
from truegold.verifiers.math.labels import label_of
from truegold.verifiers.math.reading.clocks import read_clock_text
from truegold.verifiers.math.reading.conditions import (
    conclusion,
    declared_integers,
    integers_in,
    is_condition,
    without_conditions,
    without_remark,
    worded_integers,
)
from truegold.verifiers.math.reading.congruences import hold_congruences, read_congruences
from truegold.verifiers.math.reading.dates import may_name_day, read_day
from truegold.verifiers.math.reading.grammar import ExpressionReader
from truegold.verifiers.math.reading.labelled import read_labelled
from truegold.verifiers.math.reading.lexer import lex
from truegold.verifiers.math.reading.notation import USUAL, Notation
from truegold.verifiers.math.reading.quantities import as_measure, read_letter_units, read_quantity, spelled_out
from truegold.verifiers.math.reading.simple import simple_number
from truegold.verifiers.math.reading.tokens import NESTING, Token, kind_of, split_at, text_of
from truegold.verifiers.math.reading.wording import named_value, stated_value, words_of
from truegold.verifiers.math.refusals import TooLarge, Unreadable
from truegold.verifiers.math.tree import BareList, BaseN, Chain, Family, Node, Ratio

MAX_ITEMS = 100
"""The longest list. Stops an answer that lists every number there is."""

MAX_LETTERS_OF_PRODUCT = 3
"""A longer run of letters among formulas is a word."""

MAX_LABEL_TOKENS = 12
"""What stands before the `=` of a quantity is no longer."""

_NUMERAL = re.compile(r"\(?((?=[A-F]*\d)[0-9A-Fa-f]{1,60})\)?_\s*\{?\s*(\d{2})\s*\}?", re.ASCII)
"""A numeral of a base from 10 on. It holds a digit, since `A_{12}` is a letter with a subscript."""
_SEPARATING = frozenset({"sep", "gap", "row"})
_WORDED = frozenset({"word", "money"})
_IDLE_COMMANDS = frozenset({"therefore", "because", "checkmark", "blacksquare"})


def read(text: str, notation: Notation = USUAL) -> Node:
    """Return the tree of a normal text."""
    charge(1 + len(text) // 10)
    simple = simple_number(text)
    if simple is not None:
        return simple
    special: Node | None = read_day(text) if may_name_day(text) else None
    if special is None and "_" in text:
        special = _read_numeral(text)
    if special is not None:
        return special
    return _read_tokens(lex(text, group_digits=notation.group_digits), notation, 0)


def _read_numeral(text: str) -> BaseN | None:
    """Read a numeral whose digits are letters too, `1A_{16}`."""
    match = _NUMERAL.fullmatch(text)
    if match is None:
        return None
    digits, base = match.group(1).upper(), int(match.group(2))
    return BaseN(digits, base) if all(int(digit, 36) < base for digit in digits) else None


def _read_tokens(tokens: list[Token], notation: Notation, depth: int) -> Node:
    """Return the tree of an answer that stands `depth` levels inside of another one."""
    return _AnswerReader(notation, depth).read(tokens)


class _AnswerReader:
    """Reads one answer, and gathers what it says of its letters."""

    __slots__ = ("conditions", "depth", "notation", "parameters")

    def __init__(self, notation: Notation, depth: int) -> None:
        self.notation = notation
        self.depth = depth
        self.parameters: set[str] = set()
        self.conditions: list[Node] = []

    def read(self, tokens: list[Token]) -> Node:
        if not tokens:
            raise Unreadable("nothing")
        charge(3 * len(tokens))
        kinds = set(map(kind_of, tokens))
        if ("cmd" in kinds or "word" in kinds) and hold_congruences(tokens):
            congruences = read_congruences(tokens, self._read_expression)
            if congruences is not None:
                return congruences
        if len(tokens) > 2 and tokens[1][:2] == ("word", "in") and _names_set(tokens):
            tokens = [tokens[0], Token("rel", "in", True), *tokens[2:]]
        if "rel" in kinds:
            tokens, remark = without_remark(conclusion(tokens))
            self.parameters |= integers_in(remark)
        if "word" in kinds or "cmd" in kinds:
            tokens, letters = without_conditions(tokens)
            self.parameters |= letters
        node = self._read_item(tokens) if kinds.isdisjoint(_SEPARATING) else self._read_lists(tokens)
        if self.parameters or self.conditions:
            return Family(node, frozenset(self.parameters), tuple(self.conditions))
        return node

    def _read_lists(self, tokens: list[Token]) -> Node:
        """Read one list, or several with semicolons between them."""
        groups = split_at(tokens, ";") if ";" in map(text_of, tokens) else ()
        if len(groups) > 1 and any(len(split_at(group, ",")) > 1 for group in groups):
            return BareList(tuple(map(self._read_list, groups)), ";")
        return self._read_list(tokens)

    def _read_list(self, tokens: list[Token]) -> Node:
        slices, joined = _split_items(tokens)
        if len(slices) > MAX_ITEMS:
            raise TooLarge(f"a list of {len(slices)}, the limit is {MAX_ITEMS}")
        if not slices:
            raise Unreadable("nothing but separators")
        nodes: list[Node] = []
        labelled = read_labelled(slices, self._read_item)
        if labelled is not None:
            return _regrouped(labelled, joined)
        for part in slices:
            if len(slices) > 1 and (worded := worded_integers(part)):
                self.parameters |= worded
                continue
            node = self._read_item(part)
            letters = declared_integers(node)
            if letters and len(slices) > 1:
                self.parameters |= letters
            elif joined == "," and nodes and is_condition(node) and not is_condition(nodes[0]):
                self.conditions.append(node)
            else:
                nodes.append(node)
        if not nodes:
            raise Unreadable("nothing but conditions")
        return nodes[0] if len(nodes) == 1 else _regrouped(nodes, joined)

    def _read_item(self, tokens: list[Token]) -> Node:  # noqa: PLR0911, one for each form
        """Read one item: mathematics if it can be read as such, else a quantity, else what its words say."""
        if len(tokens) > 1 and tokens[0].kind == "rel" and tokens[0].text in ("~", "="):
            # An idle sign, as in `\\approx 1.47 km`.
            tokens = tokens[1:]
        charge(3 * len(tokens))
        if self.notation.letter_units and (measure := read_letter_units(tokens, self._read_expression)) is not None:
            return measure
        has_words = not _WORDED.isdisjoint(map(kind_of, tokens))
        if not has_words or all(len(t.text) == 1 and t.text.isascii() for t in tokens if t.kind == "word"):
            try:
                node = as_measure(self._read_expression(tokens))
                return _or_clock(node, tokens) if type(node) is Ratio else node
            except Unreadable:
                quantity = read_quantity(tokens, self._read_expression)
                if quantity is not None:
                    return quantity
                if not has_words:
                    return self._read_repaired(tokens)
        named = named_value(tokens)
        if named is not None:
            return named
        quantity = read_quantity(tokens, self._read_expression)
        if quantity is not None:
            return quantity
        equation = self._read_labelled_quantity(tokens)
        return equation if equation is not None else self._read_wording(tokens)

    def _read_labelled_quantity(self, tokens: list[Token]) -> Node | None:
        """Read `v_0 = 20 m/s`."""
        equals = next((i for i, token in enumerate(tokens) if token.kind == "rel"), 0)
        if not equals or tokens[equals].text != "=" or equals > MAX_LABEL_TOKENS:
            return None
        try:
            label = self._read_expression(tokens[:equals])
        except Unreadable:
            return None
        quantity = read_quantity(tokens[equals + 1 :], self._read_expression) if equals + 1 < len(tokens) else None
        return Chain((label, quantity), ("=",)) if quantity is not None else None

    def _read_expression(self, tokens: list[Token]) -> Node:
        return ExpressionReader(tokens, self.notation, self.depth, _read_tokens).read_whole()

    def _read_wording(self, tokens: list[Token]) -> Node:
        stated = stated_value(tokens)
        if stated is not None:
            node = self._read_item(stated.tokens)
            if not isinstance(node, stated.unless):
                return node
        letters = _with_letters_apart(tokens)
        if letters is not None:
            try:
                return as_measure(self._read_expression(letters))
            except Unreadable:
                pass
        return words_of(tokens)

    def _read_repaired(self, tokens: list[Token]) -> Node:
        """Read what stands behind an idle `=` or mark of a conclusion; read `2 3 5` as three numbers."""
        first = tokens[0]
        idle = (first.kind == "rel" and first.text in ("=", "~")) or (
            first.kind == "cmd" and first.text in _IDLE_COMMANDS
        )
        if idle and len(tokens) > 1:
            return self._read_item(tokens[1:])
        if all(token.kind == "num" or token.text == "-" for token in tokens):
            starts = [i for i, token in enumerate(tokens) if i == 0 or _begins_number(tokens, i, token)]
            parts = [tokens[start:end] for start, end in zip(starts, [*starts[1:], len(tokens)], strict=True)]
            if len(parts) > 1 and all(part[-1].kind == "num" and len(part) <= 2 for part in parts):
                return BareList(tuple(map(self._read_expression, parts)))
        return as_measure(self._read_expression(tokens))


def _or_clock(ratio: Ratio, tokens: list[Token]) -> Ratio:
    """Return a ratio with the time of day that it may be instead."""
    return Ratio(ratio.parts, read_clock_text(spelled_out(tokens)))


def _names_set(tokens: list[Token]) -> bool:
    """Tell whether `x in [1, 2]` is written rather than `5 in`."""
    return tokens[0].kind == "name" and tokens[2].kind in ("open", "cmd")


def _with_letters_apart(tokens: list[Token]) -> list[Token] | None:
    """Return the `at` of `e^{at}` as a product of two letters; None where there are other words, or no formula."""
    if not any(token.kind in ("func", "cmd", "op") for token in tokens):
        return None
    letters: list[Token] = []
    for token in tokens:
        if token.kind not in _WORDED:
            letters.append(token)
        elif (
            token.kind == "word"
            and not token.spaced
            and len(token.text) <= MAX_LETTERS_OF_PRODUCT
            and token.text.isascii()
        ):
            letters.extend(Token("name", letter, False) for letter in token.text)
        else:
            return None
    return letters


def _begins_number(tokens: list[Token], index: int, token: Token) -> bool:
    return token.spaced and (token.kind == "num" or index + 1 < len(tokens))


def _regrouped(nodes: list[Node], joined: str) -> Node:
    """Return a list; p=5, q=2, p=7, q=2 become two pairs."""
    labels = [label_of(node) for node in nodes]
    if None not in labels:
        size = len(set(labels))
        if 1 < size < len(labels) and labels == labels[:size] * (len(labels) // size):
            pairs = [BareList(tuple(nodes[i : i + size])) for i in range(0, len(nodes), size)]
            return BareList(tuple(pairs), joined)
    return BareList(tuple(nodes), joined)


def _split_items(tokens: list[Token]) -> tuple[list[list[Token]], str]:
    """Cut at commas, connectives and wide gaps outside of all brackets; return how the last items are joined, too."""
    parts: list[list[Token]] = [[]]
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
    merged: list[list[Token]] = []
    for part in parts:
        # A gap before a relation separates nothing.
        if part and merged and part[0].kind == "rel":
            merged[-1].extend(part)
        elif part:
            merged.append(part)
    return merged, joined
