r"""Parses quantities: values with their units, amounts of money, numbers in words, days and times of day.

    5 cm^2        5 miles per hour        5 feet 6 inches        60^\circ 42'        $3 million
    12元          5 apples                twenty-one             4 h 30 min          4:30 p.m. (`days_and_times`)

A *label* is a noun that is counted and is not a unit: `apples`. A word that may change the value (`not`, `more`, `or`)
is neither a unit nor a label. Not covered: values within a sentence (`wording`).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

from gmpy2 import mpq

from truegold.verifiers.currencies import DOLLARS
from truegold.verifiers.math.measures import (
    DEGREE,
    INCH,
    LABEL,
    LETTER_UNITS,
    MULTIPLIERS,
    PER_WORDS,
    PHRASE_BEGINNINGS,
    PHRASES,
    POWERS_BEFORE,
    POWERS_BEHIND,
    TIME,
    Unit,
    label_unit,
    multiply_units,
    raise_unit,
    symbols_side_by_side,
    unit_of,
    without_accents,
)
from truegold.verifiers.math.policy import UnreadableAnswer
from truegold.verifiers.math.reading.days_and_times import read_clock_text, read_date
from truegold.verifiers.math.reading.lexemes import Lexeme, kind_of, text_of
from truegold.verifiers.math.tree import VALUES, Chain, Measure, Node, Num, Sym, as_measure, scaled
from truegold.verifiers.math.vocabulary import WORDS
from truegold.verifiers.written_numbers import BELOW_HUNDRED, ORDINALS, number_in_words

MAX_LABEL_WORDS = 6
"""Maximum number of words in a label. Longer texts are sentences."""
MAX_LABEL_LETTERS = 24
"""Maximum number of letters in a word of a label."""
MAX_STUCK_LETTERS = 12
"""Maximum number of letters in a noun without a blank before it. `1251Ihopeitiscorrect` does not have a noun."""
_CHANGING_WORDS = WORDS["changing"]
"""Words that may change the meaning of the number before them."""
_ARTICLES = frozenset({"a", "an"})
"""Articles, which mean `per` after a unit: `60 miles an hour`."""
_SIGNS_OF_UNITS = {"mu": "u", "Omega": "Ω", "AA": "Å", "ell": "l"}
"""Maps a command to its sign in symbols of units."""
_DIGITS = "\0"
"""A placeholder for a number of one or two digits. Texts do not contain this character."""
_EXPONENT = re.compile(rf"\^\{{-?{_DIGITS}\}}|(?:\^|\*\*)?-?{_DIGITS}")
"""The `^{-2}` of `s^{-2}`, `^2`, `**2`, or the `2` of `m2`, with the placeholder for the digits."""
MAX_SYMBOLS_LETTERS = 6
"""Maximum number of letters of symbols side by side, such as `kgms`."""
MAX_UNIT_TOKENS = 60
"""Maximum number of tokens in a unit. On a page of single letters, a unit could begin at each letter."""
MAX_PHRASE_TOKENS = 5
"""Maximum number of tokens in a unit of several words, such as `light years`."""
_SECONDS_OF_HOUR = 3600
_OPENING_KINDS = frozenset({"open", "brace"})
_CLOSING_KINDS = frozenset({"close", "unbrace"})
_PARTS_OF_UNITS = frozenset({"name", "word", *_OPENING_KINDS, *_CLOSING_KINDS})
"""Kinds of tokens that a unit may have."""
_MARKS_OF_UNITS = frozenset({"^", "/", "*", "frac", "AA"})
"""Texts of other tokens that a unit may have."""
_GENERIC = frozenset({"unit", "units"})
"""General nouns, which count nothing in particular."""
_SPELLING = frozenset({"word", "name", "money", "func"})
"""Kinds of tokens that may spell a unit. `min` is a `func`."""
_JOINING = frozenset({"/", "*", ".", "-"})
"""Operators between units."""
MAX_ADDED_TOKENS = 30
"""Maximum number of tokens after the `5 feet` of `5 feet 6 inches`. Each added quantity is a level of nesting."""
_CARDINAL_WORDS = frozenset({*BELOW_HUNDRED, *MULTIPLIERS, "and"})
"""Words of a cardinal number: `one hundred and ten`."""


def spelled_unit(tokens: list[Lexeme], *, labels: bool = True) -> Unit | None:
    """Return the unit that consists of all `tokens`, or None if they may mean something else.

    labels: accept a noun that is not a unit as a label.
    """
    if len(tokens) > MAX_UNIT_TOKENS:
        return None
    reader = _UnitReader(_with_symbols_whole(tokens), labels)
    unit = reader.read(sign=1)
    if reader.position < len(reader.tokens) or reader.label_words > (MAX_LABEL_WORDS if labels else 0):
        return None
    return unit


def _with_symbols_whole(tokens: list[Lexeme]) -> list[Lexeme]:
    """Return the tokens with each symbol as one token: one for `mW`, and two for the `m` and `s` of `ms^{-1}`."""
    whole: list[Lexeme] = []
    index = 0
    while index < len(tokens):
        token, start = tokens[index], index
        index += 1
        if token.kind == "cmd" and token.text == "frac" and (ends := _ends_of_fraction(tokens, index)) is not None:
            above, below = tokens[index : ends[0]], tokens[ends[0] : ends[1]]
            whole += [*_with_symbols_whole(above), Lexeme("op", "/", False), *_with_symbols_whole(below)]
            index = ends[1]
            continue
        text = _SIGNS_OF_UNITS.get(token.text, token.text)
        if token.kind == "name" or len(text) == 1:
            while index < len(tokens) and _continues_symbol(token, text, tokens[index]):
                text += _SIGNS_OF_UNITS.get(tokens[index].text, tokens[index].text)
                index += 1
        if token.kind not in ("name", "word") and text == token.text:
            whole.append(token)
            continue
        is_raised = index < len(tokens) and tokens[index].text == "^"
        symbols: tuple[str, ...] = (text,)
        if text == "ms" and is_raised and "-" in map(text_of, tokens[index + 1 : index + 3]):
            # `20 ms^{-1}` means metres per second, although by the SI it is per millisecond.
            symbols = ("m", "s")
        elif (
            unit_of(text) is None
            and len(text) <= MAX_SYMBOLS_LETTERS
            and (is_raised or not (text.islower() or text.isupper()))
        ):
            symbols = symbols_side_by_side(text) or symbols
        kind = "name" if len(text) == 1 == index - start and token.kind == "name" else "word"
        whole += [Lexeme(kind, symbol, token.spaced or bool(i)) for i, symbol in enumerate(symbols)]
    return whole


def _continues_symbol(first: Lexeme, text: str, token: Lexeme) -> bool:
    """Tell whether a token continues the symbol `text`: the m of `\\mu m`, the Ω of kΩ."""
    if token.kind not in ("name", "word") or token.text == "mu":
        return False
    is_pair = token.kind == first.kind == "name" or token.text == "Omega"
    return text == "u" or (is_pair and not token.spaced)


def _ends_of_fraction(tokens: list[Lexeme], start: int) -> tuple[int, int] | None:
    """Return the ends of the two groups in braces after `\\frac`, or None if there are not two groups."""
    ends: list[int] = []
    depth = 0
    for index in range(start, len(tokens)):
        depth += (tokens[index].kind == "brace") - (tokens[index].kind == "unbrace")
        if depth == 0:
            ends.append(index + 1)
        if len(ends) == 2 or (depth == 0 and tokens[index].kind != "unbrace"):
            break
    return (ends[0], ends[1]) if len(ends) == 2 and tokens[ends[1] - 1].kind == "unbrace" else None


class _UnitReader:
    """Reads a product of units. All units after a slash or `per` are divisors: kg and K in `J/kg K`."""

    __slots__ = ("label_words", "labels", "position", "tokens")

    def __init__(self, tokens: list[Lexeme], labels: bool) -> None:
        self.tokens = tokens
        self.labels = labels
        self.position = 0
        self.label_words = 0
        """The number of words read so far that are labels."""

    def read(self, sign: int) -> Unit | None:
        """Read up to the end or a closing bracket. Return None if a token is not part of a unit."""
        unit: Unit | None = None
        prefix = 1
        while self.position < len(self.tokens):
            token = self.tokens[self.position]
            lower = without_accents(token.text.lower())
            is_measure = unit is not None and not unit.is_label
            if token.kind in _CLOSING_KINDS:
                return unit
            if token.text in _JOINING and token.kind == "op":
                sign = -1 if token.text == "/" else sign
            elif lower in PER_WORDS or (is_measure and token.text in _ARTICLES):
                sign = -1
            elif lower in POWERS_BEFORE:
                prefix = POWERS_BEFORE[lower]
            elif lower != "in" or _is_inch(self.tokens, self.position + 1, unit):
                is_aside = token.kind == "open" and token.spaced
                if (factor := self._read_factor(sign * prefix, is_measure)) is None:
                    return None
                if not (is_aside and factor == unit):
                    # `5 J (joules)` gives its unit twice.
                    unit = factor if unit is None else multiply_units(unit, factor)
                    if sign < 0 and factor.is_label:
                        unit = replace(unit, per=factor.label)
                prefix = 1
                continue
            self.position += 1
        return None if self.tokens and self.tokens[-1].text == "/" else unit

    def _read_factor(self, power: int, follows_unit: bool) -> Unit | None:
        """Read one unit or a product in brackets with its exponent, and raise it to `power`."""
        if self.tokens[self.position].kind in _OPENING_KINDS:
            self.position += 1
            factor = self.read(sign=1)
            if self.position == len(self.tokens):
                return None
            self.position += 1
        elif (phrase := self._read_phrase()) is not None:
            factor = unit_of(phrase)
        else:
            factor = self._read_word(follows_unit)
        exponent, self.position = _read_exponent(self.tokens, self.position)
        return None if factor is None else raise_unit(factor, power * exponent)

    def _read_phrase(self) -> str | None:
        """Read the longest unit of several words that begins here, such as `light years`, or return None."""
        if self.tokens[self.position].text.lower() not in PHRASE_BEGINNINGS:
            return None
        phrase, end, longest = "", self.position, None
        while end < len(self.tokens) and self.tokens[end].kind == "word" and end < self.position + MAX_PHRASE_TOKENS:
            phrase += ("_" if phrase else "") + self.tokens[end].text
            end += 1
            if (known := next((name for name in (phrase, phrase.lower()) if name in PHRASES), None)) is not None:
                longest = known, end
            end += end < len(self.tokens) and self.tokens[end].text == "-"
        if longest is None:
            return None
        self.position = longest[1]
        return longest[0]

    def _read_word(self, follows_unit: bool) -> Unit | None:
        """Read a unit such as `newton`, or else a label.

        With labels, a letter is a unit only if it is a common one: m, but not x.
        """
        token = self.tokens[self.position]
        lower = token.text.lower()
        longest = MAX_LABEL_LETTERS if token.spaced or self.position else MAX_STUCK_LETTERS
        self.position += 1
        if token.kind not in _SPELLING or lower in _CHANGING_WORDS or len(lower) > longest:
            return None
        if lower in _GENERIC:
            return LABEL
        is_variable = self.labels and token.kind == "name" and token.text not in LETTER_UNITS and not follows_unit
        if not is_variable and (unit := unit_of(token.text)) is not None:
            return unit
        self.label_words += 1
        return label_unit(token.text)


def _is_inch(tokens: list[Lexeme], index: int, unit: Unit | None) -> bool:
    """Tell whether the `in` before `index` means inches: `5 in`, but not `5 apples in total`."""
    follows_word = index < len(tokens) and tokens[index].kind in ("word", "name", "num")
    return not follows_word and (unit is None or not unit.is_label)


def _read_exponent(tokens: list[Lexeme], index: int) -> tuple[int, int]:
    """Return the exponent after a unit (`^2`, `^{-1}`, `s-1`, `squared`), and the position after it."""
    rest = tokens[index : index + 5]
    shape = "".join(_DIGITS if t.kind == "num" and t.text.isdigit() and len(t.text) <= 2 else t.text for t in rest)
    is_behind = (match := _EXPONENT.match(shape)) is not None and match[0][0] in f"{_DIGITS}-"
    if match is not None and not (is_behind and any(token.spaced for token in rest[:2])):
        digits = next(token.text for token in rest if token.kind == "num")
        return (-1 if "-" in match[0] else 1) * int(digits), index + len(match[0])
    if rest and (power := POWERS_BEHIND.get(without_accents(rest[0].text.lower()))) is not None:
        return power, index + 1
    return 1, index


ReadExpression: TypeAlias = Callable[[list[Lexeme]], Node]
"""Reads tokens as one expression. Raises UnreadableAnswer and TooLarge."""


def read_quantity(tokens: list[Lexeme], read_expression: ReadExpression) -> Node | None:
    """Return the quantity that consists of all `tokens`, or None."""
    text = spelled_out(tokens)
    special = read_clock_text(text) or read_date(text) or _read_twice_said(tokens, read_expression)
    if special is not None:
        return special
    sign, amount = (-1, tokens[1:]) if tokens[0].text == "-" else (1, tokens)
    if amount and amount[0].kind == "money":
        value = _read_money(amount, read_expression)
        return None if value is None else Measure(scaled(value.value, mpq(sign)), value.unit)
    start = next((i for i in range(len(tokens)) if _begins_unit(tokens, i)), len(tokens))
    if start == 0:
        return _read_count_in_words(tokens)
    letters = _start_of_letters(tokens, start) if start < len(tokens) else start
    if 0 < letters < start and spelled_unit(tokens[letters:], labels=False) is not None:
        # The unit began before its first word: `J/(g` before `°C`.
        start = letters
    if start == len(tokens):
        return _read_degrees_and_minutes(tokens) or _read_feet_and_inches(tokens)
    return _read_with_units(tokens, start, read_expression)


def _read_twice_said(tokens: list[Lexeme], read_expression: ReadExpression) -> Chain | None:
    """Read `25.3 km/h (7.03 m/s)` as two values that are about equal, which the comparison checks."""
    start = next((i for i, token in enumerate(tokens) if token[:2] == ("open", "(") and token.spaced), 0)
    if not start or tokens[-1].kind != "close":
        return None
    inside = tokens[start + 1 : -1]
    if inside and inside[0].text in ("=", "~", "or"):
        inside = inside[1:]
    if not inside or inside[0].kind != "num":
        return None
    parts = (tokens[:start], inside)
    sides = [read_quantity(part, read_expression) or read_letter_units(part, read_expression) for part in parts]
    measures = tuple(side for side in sides if isinstance(side, Measure) and not side.unit.is_label)
    return Chain(measures, ("~",)) if len(measures) == len(parts) else None


def read_letter_units(tokens: list[Lexeme], read_expression: ReadExpression) -> Measure | None:
    """Return the quantity whose unit is the letters at the end, as in `5m`, or None."""
    for start in range(max(1, _start_of_letters(tokens, len(tokens)), len(tokens) - MAX_UNIT_TOKENS), len(tokens)):
        token = tokens[start]
        if token.kind not in ("name", "word") and token.text not in ("frac", "AA"):
            continue
        if (unit := spelled_unit(tokens[start:], labels=False)) is None or unit.is_label:
            continue
        end = start - 1 if tokens[start - 1].text == "*" else start
        value = _read_value(tokens[:end], read_expression) if end else None
        return Measure(value, unit) if isinstance(value, VALUES) else None
    return None


def _start_of_letters(tokens: list[Lexeme], end: int) -> int:
    """Return the start of the tokens before `end` that may be a unit with its exponents: `m s^{-2}`, `N/`."""
    start = end
    while start > 0 and (
        tokens[start - 1].kind in _PARTS_OF_UNITS
        or tokens[start - 1].text in _MARKS_OF_UNITS
        or (tokens[start - 1].text == "-" and start > 1 and _in_exponent(tokens, start))
        or (tokens[start - 1].kind == "num" and _in_exponent(tokens, start - 1))
    ):
        start -= 1
    return start


def _read_count_in_words(tokens: list[Lexeme]) -> Node | None:
    """Read `twenty-one`, `third`, and `five apples`."""
    if len(tokens) == 1 and (position := ORDINALS.get(tokens[0].text.lower())) is not None:
        return Num(mpq(position))
    end = next((i for i, t in enumerate(tokens) if t.text.lower() not in BELOW_HUNDRED and t.text != "-"), len(tokens))
    if (count := _read_number_in_words(tokens)) is not None:
        return Num(mpq(count))
    count = _read_number_in_words(tokens[:end]) if end else None
    # In `one of them` and `three quarters` the words after the number are neither a unit nor a label.
    unit = spelled_unit(tokens[end:]) if count is not None and tokens[end].kind == "word" else None
    if count is None or unit is None or (unit.is_label and not unit.label):
        return None
    return Measure(Num(mpq(count)), unit)


def _read_number_in_words(tokens: list[Lexeme]) -> int | None:
    """Return 121 for `one hundred twenty-one`."""
    words = [token.text.lower() for token in tokens if token.text != "-"]
    if not BELOW_HUNDRED.keys() & words or not all(word in _CARDINAL_WORDS for word in words):
        return None
    count = number_in_words(" ".join(words))
    return None if count is None else int(count)


def _read_money(tokens: list[Lexeme], read_expression: ReadExpression) -> Measure | None:
    """Read an amount after the sign of its currency: `$3 million`, `$5 per hour`."""
    unit = unit_of(tokens[0].text)
    rest = tokens[1:]
    if unit is None or not rest:
        return None
    end = next((i for i, token in enumerate(rest) if token.kind == "word"), len(rest))
    is_divided = 0 < end < len(rest) and rest[end - 1].text == "/"
    try:
        value = read_expression(rest[: end - is_divided])
    except UnreadableAnswer:
        return None
    value, words = _with_multipliers(value, rest[end - is_divided :])
    if words and (unit := _money_with(unit, tokens[0].text, spelled_unit(words))) is None:
        return None
    return Measure(value, unit) if isinstance(value, VALUES) else None


def _money_with(money: Unit, sign: str, behind: Unit | None) -> Unit | None:
    """Return the unit of an amount with a unit after it: Canadian dollars for `$5 CAD`, dollars per hour for `$5/h`.

    `$5 per share` is plain dollars. Return None for two currencies, as in `€5 USD`.
    """
    if behind is None or not behind.is_money:
        return None if behind is None else replace(multiply_units(money, behind), per=behind.per)
    return behind if behind == money or (sign == "$" and behind.currency in DOLLARS) else None


def _read_with_units(tokens: list[Lexeme], start: int, read_expression: ReadExpression) -> Node | None:
    """Read a value with its unit, or several quantities that add up."""
    if (value := _read_value(tokens[:start], read_expression)) is None:
        return None
    numbers = (i for i in range(start, len(tokens)) if tokens[i].kind == "num" and not _in_exponent(tokens, i))
    end = next(numbers, len(tokens))
    value, words = _with_multipliers(value, tokens[start:end])
    unit = spelled_unit(words) if words else None
    if end < len(tokens):
        if unit is None or isinstance(value, Measure) or len(tokens) - end > MAX_ADDED_TOKENS:
            return None
        return _added(value, unit, read_quantity(tokens[end:], read_expression))
    return _with_unit(value, unit) if words else value


def _with_unit(value: Node, unit: Unit | None) -> Node | None:
    if isinstance(value, Measure):
        # In `50% of the people` the label is ignored.
        return value if unit is not None and unit.is_label else None
    # `A good guess` is not a quantity of guesses.
    is_sentence = isinstance(value, Sym) and unit is not None and unit.is_label and bool(unit.label)
    return None if unit is None or is_sentence else Measure(value, unit)


def _in_exponent(tokens: list[Lexeme], index: int) -> bool:
    """Tell whether the numeral at `index` is the 2 of `^2` and of `m/s2`, or the 1 of `^{-1}`."""
    if index >= len(tokens) or tokens[index].kind != "num":
        return False
    before = index - 1 - (tokens[index - 1].text == "-")
    if (
        before >= 0
        and tokens[before].kind in ("word", "name")
        and not (tokens[index].spaced or tokens[before + 1].spaced)
    ):
        # The exponents of m/s2 and s-1 have one digit.
        return len(tokens[index].text) == 1
    return tokens[before].text == "^" or (tokens[before].kind == "brace" and tokens[before - 1].text == "^")


def _read_value(tokens: list[Lexeme], read_expression: ReadExpression) -> Node | None:
    try:
        value = as_measure(read_expression(tokens))
    except UnreadableAnswer:
        return None
    return value if isinstance(value, (*VALUES, Measure)) else None


def _added(value: Node, unit: Unit, rest: Node | None) -> Measure | None:
    """Return the sum of two quantities in the unit of the first: 5 feet 6 inches are 5.5 feet."""
    if not (isinstance(value, Num) and isinstance(rest, Measure) and isinstance(rest.value, Num)):
        return None
    if unit == DEGREE and rest.unit.dimension == TIME:
        # In `5 degrees 30 minutes` the minutes are parts of a degree.
        return Measure(Num(value.value + rest.value.value * rest.unit.factor / _SECONDS_OF_HOUR), DEGREE)
    if rest.unit.dimension != unit.dimension or unit.is_label:
        return None
    return Measure(Num(value.value + rest.value.value * rest.unit.factor / unit.factor), unit)


def _with_multipliers(value: Node, words: list[Lexeme]) -> tuple[Node, list[Lexeme]]:
    """Return the value times its multipliers (`3 million dollars`, `2万元`), and the remaining words."""
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
        value = scaled(value, mpq(factor))
    return value, words


def spelled_out(tokens: list[Lexeme]) -> str:
    """Return the text of tokens, with their blanks."""
    return "".join(f" {token.text}" if token.spaced else token.text for token in tokens).strip()


def _begins_unit(tokens: list[Lexeme], index: int) -> bool:
    """Tell whether a unit may begin here. `min` after a number is a unit, not a function."""
    token = tokens[index]
    if token.kind == "func":
        is_last = index + 1 == len(tokens) or tokens[index + 1].kind not in ("open", "brace", "num", "name")
        return index > 0 and is_last and unit_of(token.text) is not None
    if token.text in ("mu", "frac") and token.kind in ("name", "cmd"):
        kinds = tuple(map(kind_of, tokens[index + 1 : index + 3]))
        return kinds == ("brace", "word") if token.text == "frac" else kinds[:1] == ("word",)
    return token.kind in ("word", "money") or (token.kind == "cmd" and token.text == "AA")


def _read_feet_and_inches(tokens: list[Lexeme]) -> Measure | None:
    """Read `5'6''` and `2.5''`."""
    numbers = [token.value for token in tokens if token.kind == "num"]
    marks = "".join("n" if token.kind == "num" else token.text for token in tokens)
    inches = {"n'n''": lambda: numbers[0] * 12 + numbers[1], "n''": lambda: numbers[0], "n'": lambda: numbers[0] * 12}
    total = inches.get(marks)
    return None if total is None else Measure(Num(total()), INCH)


def _read_degrees_and_minutes(tokens: list[Lexeme]) -> Measure | None:
    """Read `60^\\circ 42' 30''`, with primes or with `^{\\prime}`."""
    flat = [t for t in tokens if t.kind not in ("brace", "unbrace")]
    sign = -1 if flat and flat[0].text == "-" else 1
    numbers = [token.value for token in flat if token.kind == "num"]
    marks = "".join("n" if token.kind == "num" else token.text for token in flat[sign < 0 :]).replace("^", "")
    if marks not in ("n∘n'", "n∘n'n''", "n∘n''"):
        return None
    parts = (numbers[0], 0, numbers[1]) if marks == "n∘n''" else (*numbers, 0)
    return Measure(Num(sign * (parts[0] + mpq(parts[1]) / 60 + mpq(parts[2]) / 3600)), DEGREE)
