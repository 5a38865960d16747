"""From tokens to a quantity: a value with its unit, an amount of money, a time of day, a number in words.

    5 cm^2        5 miles per hour        5 feet 6 inches        60^\\circ 42'        $3 million        4:30 p.m.
    12元          5 apples (a label)      twenty-one

Not covered: a value that words only speak of (`wording`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from gmpy2 import mpq

from truegold.verifiers.math.measures import DEGREE, INCH, MULTIPLIERS, Unit, unit_of
from truegold.verifiers.math.reading.clocks import read_clock_text
from truegold.verifiers.math.reading.dates import read_day
from truegold.verifiers.math.reading.tokens import Token
from truegold.verifiers.math.reading.units import spelled_unit
from truegold.verifiers.math.refusals import Unreadable
from truegold.verifiers.math.tree import VALUES, Call, Measure, Mul, Node, Num, Sym
from truegold.verifiers.written_numbers import BELOW_HUNDRED, read_run

MAX_ADDED_TOKENS = 30
"""Quantities that add up, as 5 feet 6 inches do, are not longer. Stops thousands, each read within the one before."""

_CARDINAL_WORDS = frozenset({*BELOW_HUNDRED, *MULTIPLIERS, "and"})

ReadExpression: TypeAlias = Callable[[list[Token]], Node]
"""Reads tokens as one expression. Raises Unreadable and TooLarge."""


def read_quantity(tokens: list[Token], read_expression: ReadExpression) -> Node | None:
    """Return the quantity that `tokens` are as a whole, or None."""
    text = spelled_out(tokens)
    special = read_clock_text(text) or read_day(text)
    if special is not None:
        return special
    sign, amount = (-1, tokens[1:]) if tokens[0].text == "-" else (1, tokens)
    if amount and amount[0].kind == "money":
        value = _read_money(amount, read_expression)
        return None if value is None else Measure(_scaled(value.value, mpq(sign)), value.unit)
    start = next((i for i in range(len(tokens)) if _begins_unit(tokens, i)), len(tokens))
    if start == 0:
        return _read_count_in_words(tokens)
    if start < len(tokens) and tokens[start - 1].text == "/" and (letters := _start_of_letters(tokens, start)) > 0:
        start = letters
    if start == len(tokens):
        return _read_degrees_and_minutes(tokens) or _read_feet_and_inches(tokens)
    return _read_with_units(tokens, start, read_expression)


def read_letter_units(tokens: list[Token], read_expression: ReadExpression) -> Measure | None:
    """Return the other reading of `5m`, in which the letters at the end are a unit."""
    end = len(tokens)
    start = _start_of_letters(tokens, end)
    if start in (0, end) or tokens[start].kind != "name":
        return None
    words = [t if t.kind != "name" else Token("word", t.text, t.spaced) for t in tokens[start:]]
    unit = spelled_unit(words, labels=False)
    if unit is None:
        return None
    try:
        return Measure(read_expression(tokens[:start]), unit)
    except Unreadable:
        return None


def _start_of_letters(tokens: list[Token], end: int) -> int:
    """Return where the letters before `end` begin that may be units with their exponents: `m s^{-2}`, `N/`."""
    start = end
    while start > 0 and (
        tokens[start - 1].kind in ("name", "brace", "unbrace")
        or tokens[start - 1].text in ("^", "/")
        or (tokens[start - 1].text == "*" and start > 1 and tokens[start - 2].kind == "name")
        or (tokens[start - 1].text == "-" and start > 1 and tokens[start - 2].text in ("^", "{"))
        or (tokens[start - 1].kind == "num" and start > 1 and tokens[start - 2].text in ("^", "{", "-"))
    ):
        start -= 1
    return start


def as_measure(node: Node) -> Node:
    """Return `30^\\circ` as 30 degrees, which it is where it stands alone; other nodes stay as they are."""
    kind = type(node)
    if kind is not Call and kind is not Mul:
        return node
    if isinstance(node, Call) and node.name == "degree":
        return Measure(node.args[0], DEGREE)
    if isinstance(node, Mul) and len(node.factors) == 2:
        first, second = node.factors
        if isinstance(first, Num) and isinstance(second, Call) and second.name == "degree":
            return Measure(_scaled(second.args[0], first.value), DEGREE)
    return node


def _read_count_in_words(tokens: list[Token]) -> Node | None:
    """Read `twenty-one`, and `five apples`."""
    end = next((i for i, t in enumerate(tokens) if t.text.lower() not in BELOW_HUNDRED and t.text != "-"), len(tokens))
    count = _read_number_in_words(tokens)
    if count is not None:
        return Num(mpq(count))
    count = _read_number_in_words(tokens[:end]) if end else None
    # `One of them` and `three quarters` count nothing.
    unit = spelled_unit(tokens[end:]) if count is not None and tokens[end].kind == "word" else None
    if count is None or unit is None or (unit.is_label and not unit.label):
        return None
    return Measure(Num(mpq(count)), unit)


def _read_number_in_words(tokens: list[Token]) -> int | None:
    """Return 121 for `one hundred twenty-one`."""
    words = [token.text.lower() for token in tokens if token.text != "-"]
    if not BELOW_HUNDRED.keys() & words or not all(word in _CARDINAL_WORDS for word in words):
        return None
    return int(sum(value for value, _ in read_run(" ".join(words))))


def _read_money(tokens: list[Token], read_expression: ReadExpression) -> Measure | None:
    unit = unit_of(tokens[0].text)
    rest = tokens[1:]
    if unit is None or not rest:
        return None
    end = next((i for i, token in enumerate(rest) if token.kind == "word"), len(rest))
    try:
        value = read_expression(rest[:end])
    except Unreadable:
        return None
    words = rest[end:]
    value, words = _with_multipliers(value, words)
    if words and spelled_unit(words) is None:
        return None
    return Measure(value, unit) if isinstance(value, VALUES) else None


def _read_with_units(tokens: list[Token], start: int, read_expression: ReadExpression) -> Node | None:
    """Read a value with its unit, or several that add up."""
    value = _read_value(tokens[:start], read_expression)
    if value is None:
        return None
    end = next(
        (i for i in range(start, len(tokens)) if tokens[i].kind == "num" and not _in_exponent(tokens, i)), len(tokens)
    )
    value, words = _with_multipliers(value, tokens[start:end])
    unit = spelled_unit(words) if words else None
    if end < len(tokens):
        if unit is None or isinstance(value, Measure) or len(tokens) - end > MAX_ADDED_TOKENS:
            return None
        return _added(value, unit, read_quantity(tokens[end:], read_expression))
    return _with_unit(value, unit) if words else value


def _with_unit(value: Node, unit: Unit | None) -> Node | None:
    if isinstance(value, Measure):
        # The label of `50% of the people` changes nothing.
        return value if unit is not None and unit.is_label else None
    # `A good guess` is no quantity of guesses.
    is_sentence = isinstance(value, Sym) and unit is not None and unit.is_label and bool(unit.label)
    return None if unit is None or is_sentence else Measure(value, unit)


def _in_exponent(tokens: list[Token], index: int) -> bool:
    """Tell whether the numeral at `index` is the 2 of `^2` or the 1 of `^{-1}`."""
    before = index - 1 - (tokens[index - 1].text == "-")
    return tokens[before].text == "^" or (tokens[before].kind == "brace" and tokens[before - 1].text == "^")


def _read_value(tokens: list[Token], read_expression: ReadExpression) -> Node | None:
    try:
        value = as_measure(read_expression(tokens))
    except Unreadable:
        return None
    return value if isinstance(value, (*VALUES, Measure)) else None


def _added(value: Node, unit: Unit, rest: Node | None) -> Measure | None:
    """Return 5 feet 6 inches in feet."""
    if not (isinstance(value, Num) and isinstance(rest, Measure) and isinstance(rest.value, Num)):
        return None
    if rest.unit.dimension != unit.dimension or unit.is_label:
        return None
    return Measure(Num(value.value + rest.value.value * rest.unit.factor / unit.factor), unit)


def _with_multipliers(value: Node, words: list[Token]) -> tuple[Node, list[Token]]:
    """Return the value times its multipliers (`3 million dollars`, `2万元`), and the words that are left."""
    while words:
        text = words[0].text
        factor = MULTIPLIERS.get(text) or MULTIPLIERS.get(text.lower())
        if factor is None and text[:1] in MULTIPLIERS and unit_of(text) is None:
            factor = MULTIPLIERS[text[0]]
            words = [words[0]._replace(text=text[1:]), *words[1:]]
        elif factor is not None:
            words = words[1:]
        if factor is None:
            break
        value = _scaled(value, mpq(factor))
    return value, words


def _scaled(value: Node, factor: mpq) -> Node:
    if isinstance(value, Num):
        # The precision of a scaled decimal is not the one that was written.
        return Num(value.value * factor, value.decimals if abs(factor) == 1 else None)
    return value if factor == 1 else Mul((Num(factor), value))


def spelled_out(tokens: list[Token]) -> str:
    """Return the text of tokens, with blanks where they had some."""
    return "".join(f" {token.text}" if token.spaced else token.text for token in tokens).strip()


def _begins_unit(tokens: list[Token], index: int) -> bool:
    """Tell whether a word begins here; `min` behind a number is a unit and no function."""
    token = tokens[index]
    if token.kind == "func":
        is_last = index + 1 == len(tokens) or tokens[index + 1].kind not in ("open", "brace", "num", "name")
        return index > 0 and is_last and unit_of(token.text) is not None
    return token.kind in ("word", "money")


def _read_feet_and_inches(tokens: list[Token]) -> Measure | None:
    """Read `5'6''` and `2.5''`."""
    numbers = [token.value for token in tokens if token.kind == "num"]
    marks = "".join("n" if token.kind == "num" else token.text for token in tokens)
    inches = {"n'n''": lambda: numbers[0] * 12 + numbers[1], "n''": lambda: numbers[0], "n'": lambda: numbers[0] * 12}
    total = inches.get(marks)
    return None if total is None else Measure(Num(total()), INCH)


def _read_degrees_and_minutes(tokens: list[Token]) -> Measure | None:
    """Read `60^\\circ 42' 30''`, also with primes in exponents."""
    flat = [t for t in tokens if t.kind not in ("brace", "unbrace")]
    sign = -1 if flat and flat[0].text == "-" else 1
    numbers = [token.value for token in flat if token.kind == "num"]
    marks = "".join("n" if token.kind == "num" else token.text for token in flat[sign < 0 :]).replace("^", "")
    if marks not in ("n∘n'", "n∘n'n''", "n∘n''"):
        return None
    parts = (numbers[0], 0, numbers[1]) if marks == "n∘n''" else (*numbers, 0)
    return Measure(Num(sign * (parts[0] + mpq(parts[1]) / 60 + mpq(parts[2]) / 3600)), DEGREE)
