r"""Parses a normalised answer into a tree: a list, or one item that is mathematics, a quantity, or words.

    x=1\text{ or }x=2            BareList of two relations, joined by "or"
    p=5,q=2;p=7,q=2              BareList of two BareLists
    k\pi, k\in\mathbb{Z}         Family: one value for each integer k (`wording`)
    The area is 54 cm^2          54 cm^2 (`wording`, `quantities`)

Other texts raise UnreadableAnswer, and texts beyond a limit raise TooLarge. The module `other_readings` has less usual
readings of the same texts.

Congruences such as `x \equiv 3 \pmod 7`, `3 mod 7` and `x \equiv 1, 5 \pmod 6` are read here too.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Literal, NamedTuple, TypeAlias

from gmpy2 import mpq

from truegold.verifiers.extract import committed_answer
from truegold.verifiers.math.measures import BARE_UNITS, unit_of
from truegold.verifiers.math.policy import CACHED_READINGS, TooLarge, UnreadableAnswer, charge, remembered
from truegold.verifiers.math.reading.chemistry import has_protons
from truegold.verifiers.math.reading.days_and_times import may_name_day, read_clock_text, read_date
from truegold.verifiers.math.reading.grammar import chain_of
from truegold.verifiers.math.reading.lexemes import (
    NESTING,
    USUAL,
    Lexeme,
    Notation,
    kind_of,
    nesting,
    split_at,
    text_of,
)
from truegold.verifiers.math.reading.lexer import lex
from truegold.verifiers.math.reading.normal import normal_text
from truegold.verifiers.math.reading.operands import ExpressionReader
from truegold.verifiers.math.reading.quantities import read_letter_units, read_quantity, spelled_out
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
    MINUS_ONE,
    PLUS_ONE,
    BareList,
    BaseN,
    Chain,
    Family,
    Group,
    Measure,
    Node,
    Num,
    Ratio,
    Residues,
    Sign,
    Sym,
    as_measure,
    facts,
    label_of,
    mapped,
)

MODULUS_MARKS = frozenset({"mod", "Mod", "bmod", "pmod", "modulo", "modulus"})
"""Words and commands before a modulus."""
_BRACKETS = frozenset({"open", "close", "brace", "unbrace"})


ReadExpression: TypeAlias = Callable[[list[Lexeme]], Node]
"""Reads tokens as one expression."""


def read_congruences(tokens: list[Lexeme], read_expression: ReadExpression) -> Node | None:
    """Return the tree of an answer that consists of congruences, or None for other answers."""
    nodes: list[Node] = []
    start = 0
    joined = ","
    for index, token in enumerate(tokens):
        if token.text not in MODULUS_MARKS or index < start:
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
    """Return the end of the modulus after the `mod` at `index`, including the closing bracket of `(mod 7)`."""
    depth, end = 0, index + 1
    while end < len(tokens):
        if depth == 0 and tokens[end].kind in ("sep", "gap"):
            break
        depth += NESTING.get(tokens[end][0], 0)
        end += 1
    return end


def _read_one(before: list[Lexeme], behind: list[Lexeme], read_expression: ReadExpression) -> Residues | None:
    """Read one congruence from the tokens before its `mod` (`x \\equiv 3 (`) and the tokens after it (`7 )`)."""
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
    r"""Return 1 and -1 for `\pm 1`, and any other value alone."""
    if facts(node).sign_count != 1:
        return [node]
    return [mapped(node, partial(_with_sign, sign)) for sign in (PLUS_ONE, MINUS_ONE)]


def _with_sign(sign: Node, part: Node) -> Node:
    return sign if isinstance(part, Sign) else part


_SIMPLE = re.compile(
    r"(-?)(?:(\d{1,200})(?:\.(\d{1,60})|/(\d{1,60}))?|\\[dt]?frac\{(-?\d{1,60})\}\{(\d{1,60})\}"
    r"|([1-9]\d{0,2}(?:(?:,|\{,\}|,\\!|\\,)\d{3}){1,20}))",
    re.ASCII,
)
r"""A plain number: -3, 2.5, 3/4, \frac{3}{4}, 1,234."""
REMEMBERED_TEXTS = 4_096
"""The number of texts for which `simple_number` caches its result. Most texts are tried twice as a number: first by
the verifier, then by `read`."""
MAX_ITEMS = 100
"""Maximum number of items in a list. Stops an answer that lists every possible number."""
MAX_NAME = 5
"""The name of an index, the n of `n = 1, 2, ...`, must have fewer tokens and fewer characters than this."""
MAX_PRODUCT = 3
"""Maximum number of letters in a product within a formula. Longer runs of letters are words."""
MAX_LABEL_TOKENS = 12
"""Maximum number of tokens before the `=` of a quantity."""
_NUMERAL = re.compile(r"\(?((?=[A-F]*\d)[0-9A-Fa-f]{1,60})\)?_\s*\{?\s*(\d{2})\s*\}?", re.ASCII)
"""A numeral of a base from 10 on: `1A_{16}`. It has a digit, because `A_{12}` is a letter with a subscript."""
_PREFIXED = re.compile(r"0([bxoBXO])([0-9A-Fa-f]{1,60})", re.ASCII)
"""A numeral with the prefix of programs: `0x1A`."""
_BASES = {"b": 2, "o": 8, "x": 16}
_SEPARATING = frozenset({"sep", "gap", "row"})
"""Kinds of tokens that separate items."""
_SCRIPTS = frozenset("^_")
"""The marks of superscripts and subscripts."""
_SYMBOL = re.compile(r"[A-Z][a-z]?(?:_[\d/]{1,5})?|[np]")
"""A symbol after the mass number of a nuclide: an element, n, p, or the term of a state (`P_{3/2}`)."""
_DOTS = frozenset({"dots", "ldots", "cdots"})
_FORMULA_KINDS = frozenset({"func", "cmd", "op", "accent"})
"""Kinds of tokens that show a formula."""
_WORDED = frozenset({"word", "money"})
"""Kinds of tokens that are not mathematics."""
_CONNECTIVES = frozenset({"and", "or"})
"""Connectives of items, which may also join statements."""
_IDLE_RELATIONS = frozenset({"~", "=", "sim", "cong"})
"""Relations without a meaning at the start of an item."""
_GIVING = frozenset({"=", "~", "sim", "cong"})
"""Relations between a label and its value."""
_IDLE_COMMANDS = frozenset({"therefore", "because", "checkmark", "blacksquare"})
"""Commands without a meaning at the start of an item."""
_NOTATIONS: dict[MixedNumbers, Notation] = {"sum": Notation(), "product": Notation(mixed_numbers=False)}
_STATED = re.compile(r"####.*|(['\"`])(?!.*\1.).*\1|[^\n]*(?:</s>|<\|[a-z_]{1,20}\|>|[^\x00-\x7f])", re.DOTALL)
"""A gold with remains of a response: `#### 5`, `'5'`, `5<|im_end|>`, `5 ∎`."""
_PREDICATE = re.compile(r"\bis ([A-Za-z]{2,20}(?: [A-Za-z]{2,20}){0,2})$")
"""The predicate of a sentence about a formula: the `odd` of `The function $f(x+1)-1$ is odd`."""


@lru_cache(maxsize=REMEMBERED_TEXTS)
def simple_number(text: str) -> Num | None:
    """Return the number of a normalised text that is a plain number. Return None for 1/0 and for other texts."""
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


class Unread(NamedTuple):
    """The reason why a text has no tree."""

    too_large: bool
    """Whether the text exceeds a limit. If not, it is not an answer that the reader knows."""
    why: str


MixedNumbers: TypeAlias = Literal["sum", "product"]


@remembered(CACHED_READINGS)
def read_text(text: str, mixed: MixedNumbers) -> Node | Unread:
    """Return the tree of a normalised text, or the reason why it has none."""
    try:
        return read(text, _NOTATIONS[mixed])
    except TooLarge as error:
        return Unread(True, str(error))
    except UnreadableAnswer as error:
        return Unread(False, str(error))


@remembered(CACHED_READINGS)
def read_gold(text: str, mixed: MixedNumbers) -> Node | Unread:
    """Return the tree of a normalised gold, or the reason why it has none.

    If the whole gold cannot be read, a part is read: the box of a solution, the answer in a response (`_STATED`), or
    the predicate of a sentence (`_PREDICATE`).
    """
    first_reading = reading = read_text(text, mixed)
    is_stated = isinstance(reading, Unread) and ("\\boxed" in text or _STATED.fullmatch(text) is not None)
    if is_stated and (committed := committed_answer(text, several=1)) is not None:
        reading = read_text(normal_text(committed.text), mixed)
    if isinstance(reading, Unread) and (predicate := _PREDICATE.search(text)) is not None:
        reading = read_text(predicate.group(1), mixed)
    return first_reading if isinstance(reading, Unread) else reading


def read(text: str, notation: Notation = USUAL) -> Node:
    """Return the tree of a normalised text. Raises UnreadableAnswer and TooLarge."""
    charge(1 + len(text) // 10)
    if (simple := simple_number(text)) is not None:
        return simple
    special: Node | None = read_date(text) if may_name_day(text) else None
    if special is None and ("_" in text or text[:1] == "0"):
        special = _read_numeral(text)
    if special is not None:
        return special
    return _read_tokens(lex(text, group_digits=notation.group_digits), notation, 0)


def _read_numeral(text: str) -> BaseN | None:
    """Read a numeral with letters among its digits, `1A_{16}`, or with the prefix of programs, `0x1A`."""
    if (prefixed := _PREFIXED.fullmatch(text)) is not None:
        base, digits = _BASES[prefixed[1].lower()], prefixed[2].upper()
        return BaseN(digits, base) if all(int(digit, 36) < base for digit in digits) else None
    if (match := _NUMERAL.fullmatch(text)) is None:
        return None
    digits, base = match.group(1).upper(), int(match.group(2))
    return BaseN(digits, base) if all(int(digit, 36) < base for digit in digits) else None


def _read_tokens(tokens: list[Lexeme], notation: Notation, depth: int) -> Node:
    """Return the tree of an answer that is nested `depth` levels deep in another answer."""
    return _AnswerReader(notation, depth).read(tokens)


class _AnswerReader:
    """Parses one answer and collects the conditions on its letters."""

    __slots__ = ("conditions", "depth", "notation", "parameters")

    def __init__(self, notation: Notation, depth: int) -> None:
        self.notation = notation
        self.depth = depth
        self.parameters: set[str] = set()
        self.conditions: list[Node] = []

    def read(self, tokens: list[Lexeme]) -> Node:
        if not tokens:
            raise UnreadableAnswer("an empty text")
        charge(3 * len(tokens))
        kinds = set(map(kind_of, tokens))
        has_modulus = ("cmd" in kinds or "word" in kinds) and not MODULUS_MARKS.isdisjoint(map(text_of, tokens))
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
        """Return `x=2` for the derivation `6x=12 \\implies x=2`. Other implications are returned unchanged."""
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
        """Read one of several lists, with the conditions on it alone."""
        before, self.conditions = self.conditions, []
        node = self._read_list(tokens)
        node = Family(node, frozenset(), tuple(self.conditions)) if self.conditions else node
        self.conditions = before
        return node

    def _read_list(self, tokens: list[Lexeme]) -> Node:
        """Read the items of one list, and collect the items that are conditions."""
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
        r"""Return the items before a range such as `n = 1, 2, 3, \dots`, or all items if there is no range.

        The range becomes the condition `n >= 1`. The range of all integers, `0, \pm 1, \dots`, adds no condition.
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
                # In `n, l = 0, 1, 2, ...` the range holds for l and for n.
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
        """Add the condition of a range: `n >= 1` for 1, 2, 3, and the tuple (n, 1, 3) for 1, 3, 5."""
        if not any(token.text in "±∓" for value in values for token in value):
            first, second = map(self._read_expression, values)
            is_even = isinstance(first, Num) and isinstance(second, Num) and second.value - first.value == 1
            self.conditions.append(
                Chain((Sym(name), first), (">=",)) if is_even else Group("(", ")", (Sym(name), first, second))
            )

    def _read_item(self, tokens: list[Lexeme]) -> Node:  # noqa: PLR0911, one for each form
        """Read one item as mathematics if possible, else as a quantity, else as words."""
        if len(tokens) > 1 and tokens[0].kind == "rel" and tokens[0].text in _IDLE_RELATIONS:
            # The relation has no left side, as in `\\approx 1.47 km`.
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
        """Read a quantity whose unit may be taken for a letter: `5 N`, or `F = 5 N`."""
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
            # The left side may be a quantity: 5 kg = 5000 g.
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
        """Read a value that words state, or else the words themselves."""
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
        """Read an item without the `=` or `\\therefore` before it, or `2 3 5` as three numbers."""
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
    r"""Move a unit out of a numerator: return the tokens of \frac{13.6}{n^2} eV for \frac{13.6 eV}{n^2}.

    Return the tokens unchanged if the item is a sum, or goes on after the fraction.
    """
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
    r"""Return a nuclide or a term as one name: ^{14}C for ^{14}_6\text{C}, and ^2P_{3/2}.

    The element implies the 6 protons. A wrong number, as in ^{14}_7C, stays in the name.
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
    r"""Tell whether a premise without a relation is a statement such as `p \land q`, rather than words or a value."""
    return all(token.kind in ("name", "logic", "open", "close", "brace", "unbrace", "sep") for token in premise)


def _with_letters_apart(tokens: list[Lexeme]) -> list[Lexeme] | None:
    """Return the tokens with the `at` of `e^{at}` as two letters, or None if there are other words or no formula."""
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
    """Return each value with the conditions on it: `0, r < a, 1/r, r > a` has two values with a condition each."""
    pieces: list[Node] = []
    for index, node in enumerate(nodes):
        held = tuple(condition for piece, condition in conditions if piece == index)
        pieces.append(Family(node, frozenset(), held) if held else node)
    return pieces


def _regrouped(nodes: list[Node], joined: str) -> Node:
    """Return the nodes as a list, or as a list of lists if labels repeat: p=5, q=2, p=7, q=2 are two pairs."""
    labels = [label_of(node) for node in nodes]
    if None not in labels:
        size = len(set(labels))
        if 1 < size < len(labels) and labels == labels[:size] * (len(labels) // size):
            pairs = [BareList(tuple(nodes[i : i + size])) for i in range(0, len(nodes), size)]
            return BareList(tuple(pairs), joined)
    return BareList(tuple(nodes), joined)


def _split_items(tokens: list[Lexeme]) -> tuple[list[list[Lexeme]], str]:
    """Split the tokens at commas, connectives and wide blanks outside of all brackets.

    Return the items, and the word or comma that joins the last two: `or`, `and` or `,`.
    """
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
        # A wide blank before a relation separates nothing.
        if part and merged and part[0].kind == "rel":
            merged[-1].extend(part)
        elif part:
            merged.append(part)
    return merged, joined
