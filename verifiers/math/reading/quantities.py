"""Tokens to a quantity: a value with its unit, an amount of money, a time of day, a number in words.

    5 cm^2        5 miles per hour        5 feet 6 inches        60^\\circ 42'        $3 million        4:30 p.m.
    12元          5 apples (a label)      twenty-one

Not covered: a value that words only speak of (`wording`).
"""

from __future__ import annotations

from gmpy2 import mpq

from truegold.verifiers.math.measures import DEGREE, MULTIPLIERS, Unit, unit_of
from truegold.verifiers.math.reading.grammar import Reader
from truegold.verifiers.math.reading.names import NUMBER_WORDS
from truegold.verifiers.math.reading.notation import USUAL, Notation
from truegold.verifiers.math.reading.tokens import Token
from truegold.verifiers.math.reading.units import spelled_unit
from truegold.verifiers.math.refusals import Unreadable
from truegold.verifiers.math.tree import VALUES, Call, Clock, Measure, Mul, Node, Num


def read_quantity(tokens: list[Token], notation: Notation = USUAL, depth: int = 0) -> Node | None:
    """The quantity that `tokens` are as a whole, or None."""
    clock = _clock(tokens)
    if clock is not None:
        return clock
    sign, amount = (-1, tokens[1:]) if tokens[0].text == "-" else (1, tokens)
    if amount and amount[0].kind == "money":
        value = _money(amount, notation, depth)
        return None if value is None else Measure(_scaled(value.value, mpq(sign)), value.unit)
    start = next((i for i, token in enumerate(tokens) if token.kind in ("word", "money")), len(tokens))
    if start == 0:
        number = words_to_number([t.text for t in tokens if t.kind == "word"]) if _only_words(tokens) else None
        return Num(mpq(number)) if number is not None else None
    if start == len(tokens):
        return _degrees_and_minutes(tokens)
    return _compound(tokens, start, notation, depth)


def letter_units(tokens: list[Token], notation: Notation = USUAL) -> Measure | None:
    """The other reading of `5m`, in which the letters at the end are a unit."""
    end = len(tokens)
    start = end
    while start > 0 and (
        tokens[start - 1].kind in ("name", "brace", "unbrace")
        or tokens[start - 1].text in ("^", "/")
        or (tokens[start - 1].kind == "num" and start > 1 and (tokens[start - 2].text in ("^", "{")))
    ):
        start -= 1
    if start in (0, end) or tokens[start].kind != "name":
        return None
    words = [t if t.kind != "name" else Token("word", t.text, t.spaced) for t in tokens[start:]]
    unit = spelled_unit(words, labels=False)
    if unit is None:
        return None
    try:
        return Measure(Reader(tokens[:start], notation).whole(), unit)
    except Unreadable:
        return None


def as_measure(node: Node) -> Node:
    """`30^\\circ` standing alone is 30 degrees rather than a number."""
    if isinstance(node, Call) and node.name == "degree":
        return Measure(node.args[0], DEGREE)
    if isinstance(node, Mul) and len(node.factors) == 2:
        first, second = node.factors
        if isinstance(first, Num) and isinstance(second, Call) and second.name == "degree":
            return Measure(_scaled(second.args[0], first.value), DEGREE)
    return node


def words_to_number(words: list[str]) -> int | None:
    """`one hundred twenty one` is 121."""
    total = current = 0
    seen = False
    for word in words:
        lower = word.lower()
        if lower in NUMBER_WORDS:
            current += NUMBER_WORDS[lower]
            seen = True
        elif lower in MULTIPLIERS and seen:
            if lower == "hundred":
                current *= 100
            else:
                total += current * MULTIPLIERS[lower]
                current = 0
        elif lower != "and":
            return None
    return total + current if seen else None


def _only_words(tokens: list[Token]) -> bool:
    return all(token.kind == "word" or (token.kind == "op" and token.text == "-") for token in tokens)


def _money(tokens: list[Token], notation: Notation, depth: int) -> Measure | None:
    unit = unit_of(tokens[0].text)
    rest = tokens[1:]
    if unit is None or not rest:
        return None
    end = next((i for i, token in enumerate(rest) if token.kind == "word"), len(rest))
    try:
        value = Reader(rest[:end], notation, depth).whole()
    except Unreadable:
        return None
    words = rest[end:]
    value, words = _multiplied(value, words)
    if words and spelled_unit(words) is None:
        return None
    return Measure(value, unit) if isinstance(value, VALUES) else None


def _compound(tokens: list[Token], start: int, notation: Notation, depth: int) -> Node | None:
    """One value with its unit, or several that add up."""
    value = _value(tokens[:start], notation, depth)
    if value is None:
        return None
    numbers = (i for i in range(start, len(tokens)) if tokens[i].kind == "num" and tokens[i - 1].text != "^")
    end = next(numbers, len(tokens))
    value, words = _multiplied(value, tokens[start:end])
    unit = spelled_unit(words) if words else None
    if end < len(tokens):
        if unit is None or isinstance(value, Measure):
            return None
        return _added(value, unit, read_quantity(tokens[end:], notation, depth))
    if not words:
        return value
    if isinstance(value, Measure):  # 50% of the people
        return value if unit is not None and unit.is_label else None
    return None if unit is None else Measure(value, unit)


def _value(tokens: list[Token], notation: Notation, depth: int) -> Node | None:
    try:
        value = as_measure(Reader(tokens, notation, depth).whole())
    except Unreadable:
        return None
    return value if isinstance(value, (*VALUES, Measure)) else None


def _added(value: Node, unit: Unit, rest: Node | None) -> Measure | None:
    """5 feet 6 inches"""
    if not (isinstance(value, Num) and isinstance(rest, Measure) and isinstance(rest.value, Num)):
        return None
    if rest.unit.dimension != unit.dimension or unit.is_label:
        return None
    return Measure(Num(value.value + rest.value.value * rest.unit.factor / unit.factor), unit)


def _multiplied(value: Node, words: list[Token]) -> tuple[Node, list[Token]]:
    """`3 million dollars`, `2万元`: the value times its multiplier, and the words that are left."""
    while words:
        text = words[0].text
        factor = MULTIPLIERS.get(text) or MULTIPLIERS.get(text.lower())
        if factor is None and text[0] in MULTIPLIERS and unit_of(text) is None:
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


def _clock(tokens: list[Token]) -> Clock | None:
    """4:30 p.m., 9 a.m."""
    words = "".join(t.text for t in tokens if t.kind in ("word", "name"))
    half = {"am": "am", "pm": "pm"}.get(words.lower())
    if half is None or not tokens or tokens[0].kind != "num":
        return None
    numbers = [t for t in tokens if t.kind == "num"]
    colon = len(tokens) > 1 and tokens[1].text == ":"
    if len(numbers) != 1 + colon or any(not t.text.isdigit() or len(t.text) > 2 for t in numbers):
        return None
    hour, minute = int(numbers[0].text), int(numbers[1].text) if colon else 0
    if not (1 <= hour <= 12 and minute < 60):
        return None
    return Clock((hour % 12 + 12 * (half == "pm")) * 60 + minute, half)


def _degrees_and_minutes(tokens: list[Token]) -> Measure | None:
    """60^\\circ 42' 30''"""
    flat = [t for t in tokens if t.kind not in ("brace", "unbrace")]
    if len(flat) < 5 or flat[0].kind != "num" or flat[1].text != "^" or flat[2].text != "∘" or flat[3].kind != "num":
        return None
    if flat[4].text != "'":
        return None
    degrees, minutes = flat[0].value, flat[3].value
    assert degrees is not None and minutes is not None
    value = degrees + minutes / 60
    rest = flat[5:]
    if rest:
        if len(rest) != 3 or rest[0].kind != "num" or rest[1].text != "'" or rest[2].text != "'":
            return None
        assert rest[0].value is not None
        value += rest[0].value / 3600
    return Measure(Num(value), DEGREE)
