"""Tokens to a quantity: a value with its unit, an amount of money, a time of day, a number in words.

    5 cm^2        5 miles per hour        5 feet 6 inches        60^\\circ 42'        $3 million        4:30 p.m.
    12元          5 apples (a label)      twenty-one

A word that might change the value (`not`, `more`, `or`) is never taken for a unit.
"""

from __future__ import annotations

from gmpy2 import mpq

from truegold.verifiers.math.expressions import Reader
from truegold.verifiers.math.lexer import Token, Unreadable
from truegold.verifiers.math.measures import (
    DEGREE,
    LABEL,
    MULTIPLIERS,
    UNITS,
    Unit,
    is_letter_unit,
    power,
    product,
    unit_of,
)
from truegold.verifiers.math.names import NUMBER_WORDS
from truegold.verifiers.math.tree import VALUES, Call, Clock, Measure, Mul, Node, Num

MAX_LABEL_WORDS = 6
MAX_LABEL_LETTERS = 24
MAX_STUCK_LETTERS = 12
"""Of a noun that follows its number without a blank: `1251Ihopeitiscorrect` is not 1251 of anything."""

MEANING_WORDS = frozenset(
    "not no never wrong incorrect false or and but except less more fewer greater plus minus times to mod modulo "
    "divided if than half quarter base unless without neither nor maybe perhaps either between at least most".split()
)
"""Words that may change what the number before them means."""

_POWERS = {"square": 2, "sq": 2, "squared": 2, "cubic": 3, "cu": 3, "cubed": 3}
_GENERIC = frozenset({"unit", "units"})
_HALVES = {"am": "am", "a": "am", "AM": "am", "A": "am", "pm": "pm", "p": "pm", "PM": "pm", "P": "pm"}


def read_quantity(tokens: list[Token], *, tight: bool = False, depth: int = 0) -> Node | None:
    """The quantity that `tokens` are as a whole, or None."""
    clock = _clock(tokens)
    if clock is not None:
        return clock
    sign, amount = (-1, tokens[1:]) if tokens[0].text == "-" else (1, tokens)
    if amount and amount[0].kind == "money":
        value = _money(amount, tight, depth)
        return None if value is None else Measure(_scaled(value.value, mpq(sign)), value.unit)
    start = next((i for i, token in enumerate(tokens) if token.kind in ("word", "money")), len(tokens))
    if start == 0:
        number = words_to_number([t.text for t in tokens if t.kind == "word"]) if _only_words(tokens) else None
        return Num(mpq(number)) if number is not None else None
    if start == len(tokens):
        return _degrees_and_minutes(tokens)
    return _compound(tokens, start, tight, depth)


def letter_units(tokens: list[Token], *, tight: bool = False) -> Measure | None:
    """The other reading of `5m`, in which the letters at the end are a unit."""
    end = len(tokens)
    start = end
    while start > 0 and (
        tokens[start - 1].kind in ("name", "brace", "unbrace")
        or tokens[start - 1].text in ("^", "/")
        or (tokens[start - 1].kind == "num" and start > 1 and (tokens[start - 2].text in ("^", "{")))
    ):
        start -= 1
    if start == 0 or start == end or tokens[start].kind != "name":
        return None
    words = [t if t.kind != "name" else Token("word", t.text, t.spaced) for t in tokens[start:]]
    unit = _unit(words, labels=False)
    if unit is None:
        return None
    try:
        return Measure(Reader(tokens[:start], tight=tight).whole(), unit)
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


def _money(tokens: list[Token], tight: bool, depth: int) -> Measure | None:
    unit = unit_of(tokens[0].text)
    rest = tokens[1:]
    if unit is None or not rest:
        return None
    end = next((i for i, token in enumerate(rest) if token.kind == "word"), len(rest))
    try:
        value = Reader(rest[:end], tight=tight, depth=depth).whole()
    except Unreadable:
        return None
    words = rest[end:]
    value, words = _multiplied(value, words)
    if words and _unit(words) is None:
        return None
    return Measure(value, unit) if isinstance(value, VALUES) else None


def _compound(tokens: list[Token], start: int, tight: bool, depth: int) -> Node | None:
    """One value with its unit, or several that add up."""
    try:
        value = Reader(tokens[:start], tight=tight, depth=depth).whole()
    except Unreadable:
        return None
    value = as_measure(value)
    if not isinstance(value, (*VALUES, Measure)):
        return None
    end = next(
        (i for i in range(start, len(tokens)) if tokens[i].kind == "num" and tokens[i - 1].text != "^"), len(tokens)
    )
    value, words = _multiplied(value, tokens[start:end])
    if not words:
        return value if end == len(tokens) else None
    unit = _unit(words)
    if unit is None:
        return None
    if isinstance(value, Measure):
        return value if end == len(tokens) and unit.is_label else None
    if end == len(tokens):
        return Measure(value, unit)
    rest = read_quantity(tokens[end:], tight=tight, depth=depth)
    if (
        not (isinstance(rest, Measure) and isinstance(rest.value, Num) and isinstance(value, Num))
        or rest.unit.dimension != unit.dimension
        or unit.is_label
    ):
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


def _unit(tokens: list[Token], *, labels: bool = True) -> Unit | None:  # noqa: PLR0912
    """The unit that `tokens` spell; a label where they are nouns; None where they may be something else."""
    unit: Unit | None = None
    sign, prefix = 1, 1
    unknown = 0
    index = 0
    while index < len(tokens):
        token = tokens[index]
        index += 1
        if token.kind == "op" and token.text in ("/", "*", ".", "-"):
            sign = -1 if token.text == "/" else sign
            continue
        if token.kind in ("open", "close"):
            continue
        if token.kind == "name" and not labels:
            return None
        if token.kind not in ("word", "name", "money", "func"):
            return None
        word = token.text
        lower = word.lower()
        if lower == "per":
            sign = -1
            continue
        if lower in _POWERS and lower not in ("squared", "cubed"):
            prefix = _POWERS[lower]
            continue
        if lower in MEANING_WORDS or len(word) > (
            MAX_LABEL_LETTERS if token.spaced or index > 1 else MAX_STUCK_LETTERS
        ):
            return None
        found = LABEL if lower in _GENERIC else unit_of(word)
        if found is None or (len(word) == 1 and token.kind == "name" and not is_letter_unit(word) and labels):
            unknown += 1
            found = LABEL
        exponent, index = _exponent(tokens, index)
        raised = power(found, sign * prefix * exponent)
        if raised is None:
            return None
        unit = raised if unit is None else product(unit, raised)
        prefix = 1
        sign = 1
    if unknown > MAX_LABEL_WORDS or (unknown and not labels):
        return None
    return unit


def _exponent(tokens: list[Token], index: int) -> tuple[int, int]:
    if index < len(tokens) and tokens[index].text == "^":
        braced = index + 1 < len(tokens) and tokens[index + 1].kind == "brace"
        at = index + 1 + braced
        minus = at < len(tokens) and tokens[at].text == "-"
        at += minus
        if at < len(tokens) and tokens[at].kind == "num" and tokens[at].text.isdigit() and len(tokens[at].text) <= 2:
            return (-1 if minus else 1) * int(tokens[at].text), at + 1 + braced
    if index < len(tokens) and tokens[index].text.lower() in ("squared", "cubed"):
        return _POWERS[tokens[index].text.lower()], index + 1
    return 1, index


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


def is_unit_word(word: str) -> bool:
    return word in UNITS
