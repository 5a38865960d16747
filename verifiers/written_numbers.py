r"""Reads numbers written in digits, in English words or in Chinese numerals, as exact fractions.

    plain_number("1,234.5")   2469/2     plain_number("-3/4")   -3/4    plain_number(r"2\frac{1}{3}")     7/3
    plain_number("5e-3")      1/200      plain_number("2 1/2")   5/2    plain_number("3 \\times 10^8")    300000000

    read_run("three thousand, two hundred and five")  3205   read_run("two and a half")        5/2
    read_run("twenty-five percent")                   1/4    read_run("four five")             4 and 5
    read_run("half a dozen")                          6      read_run("third")                 3, an ordinal

    chinese_integer("一万二千零三十四")   12034          chinese_integer("二〇二一")   2021
    chinese_decimal("三点五")            7/2

`RUN` is a regular expression for a run of English number words, written for polars; `PYTHON_RUN` is the same for `re`.
Not covered: text around a number (units, formulas, sentences), and decimal commas.
"""

from __future__ import annotations

import re
import tomllib
from fractions import Fraction
from importlib.resources import files

MAX_EXPONENT = 3_000
"""Largest exponent of ten that is read: `1e999999999` would be a gigabyte of digits."""

_WORDS = tomllib.loads(files(__package__).joinpath("number_words.toml").read_text(encoding="utf-8"))
UNITS: dict[str, int] = dict(zip(_WORDS["units"].split(), range(20), strict=True))
"""Words of the numbers 0 to 19."""
TENS: dict[str, int] = dict(zip(_WORDS["tens"].split(), range(20, 100, 10), strict=True))
"""Words of the tens: twenty to ninety."""
BELOW_HUNDRED = UNITS | TENS
"""Words that form the numbers below 100."""
SCALES: dict[str, int] = _WORDS["scales"]
"""Words that multiply the number before them: "dozen" is 12, "million" 1,000,000."""
ORDINALS: dict[str, int] = dict(zip(_WORDS["ordinals"].split(), range(3, 21), strict=True)) | _WORDS["round_ordinals"]
"""Maps ordinals to numbers. "third" is 1/3 after "a" or "one" and before "of", else the position 3."""
PARTS = {"half": 2, "halves": 2, "quarter": 4, "quarters": 4, **{f"{word}s": value for word, value in ORDINALS.items()}}
"""Maps words for parts to their divisors: "halves" is 2."""
MULTIPLES = {word: int(value) for value, words in _WORDS["multiples"].items() for word in words.split()}
"""Words for multiples: "twice" is 2, "triple" is 3."""
LAST_OF_ORDINAL = {"first": 1, "second": 2}
"""Words that are read only at the end of an ordinal, as in "twenty-first"."""
_ROMAN = re.compile(r"(?=[MDCLXVI]{2})M{0,3}(CM|CD|D?C{0,3})(XC|XL|L?X{0,3})(IX|IV|V?I{0,3})")
_ROMAN_DIGITS = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100, "D": 500, "M": 1000}
COMMON_PERCENTAGES = {Fraction(25): Fraction(1, 4), Fraction(50): Fraction(1, 2), Fraction(75): Fraction(3, 4)}
"""Maps percentages to the fractions that reworded problems often write instead."""
CHINESE_DIGITS: dict[str, int] = _WORDS["chinese_digits"]
CHINESE_SCALES: dict[str, int] = _WORDS["chinese_scales"]

NUMBER_WORDS = (*UNITS, *TENS, *SCALES, *PARTS, *ORDINALS, *MULTIPLES)
"""All English words that a run may consist of, apart from "and", "a" and "point"."""

_BOUNDARY = r"(?-u:\b)"
"""A word boundary of ASCII, as Rust writes it."""
_PERCENT = re.compile(r"\s?(?:\\?%|％|per\s?cent)$")
_WORD = re.compile(r"[a-z]+|,")
Reading = tuple[Fraction, bool]
"""A value, and whether it is an ordinal."""
DECIMAL = r"(?:(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d*)?|\.\d+)"
"""Digits without a sign, with or without commas and a point."""
_SIGNED = rf"[+-]?\s{{0,3}}{DECIMAL}"
_BRACED = rf"\{{\s{{0,3}}({_SIGNED})\s{{0,3}}\}}"
"""A number in braces, as an argument of a LaTeX command."""
_MIXED = re.compile(r"(\d+)(?:\s{1,3}(\d+)/(\d+)|\s{0,3}\\frac\{(\d+)\}\{(\d+)\})")
r"""A mixed number: `2 1/2`, `2\frac{1}{2}`."""
_QUOTIENT = re.compile(
    rf"\\frac\s{{0,3}}{_BRACED}\s{{0,3}}{_BRACED}|\\frac\s{{0,3}}(\d)\s{{0,3}}(\d)|({DECIMAL})\s{{0,3}}/\s{{0,3}}({_SIGNED})"
)
r"""A fraction: `\frac{1}{2}`, `\frac12`, `1/2`."""
_SCIENTIFIC = re.compile(
    rf"({DECIMAL})(?:[eE]([+-]?\d+)|\s{{0,3}}(?:\\times|\\cdot|\*|x)\s{{0,3}}10\s{{0,3}}\^\s{{0,3}}\{{?([+-]?\d+)\}}?)"
)
r"""Scientific notation: `5e-3`, `3 \times 10^8`."""
_DECIMAL = re.compile(DECIMAL)


def roman_number(text: str) -> int | None:
    """Return the value of a Roman number of two letters or more, XIV or xiv -> 14; None for any other text."""
    text = text.upper() if text.islower() else text
    if _ROMAN.fullmatch(text) is None:
        return None
    values = [_ROMAN_DIGITS[letter] for letter in text]
    return sum(-a if a < b else a for a, b in zip(values, [*values[1:], 0], strict=True))


def _any_of(words: object) -> str:
    return "|".join(sorted(map(str, words), key=len, reverse=True))  # type: ignore[call-overload]


_ELEMENT = (
    rf"(?:(?:{_any_of(TENS)})-(?:{_any_of(LAST_OF_ORDINAL)})|(?:{_any_of(ORDINALS)})\sof|(?:{_any_of(NUMBER_WORDS)}))"
)
RUN = (
    rf"{_BOUNDARY}(?:an?\s(?:{_any_of((*SCALES, *PARTS, *ORDINALS))})|{_ELEMENT})"
    rf"(?:(?:,?\s|-)(?:and\s|point\s)?(?:an?\s)?{_ELEMENT})*{_BOUNDARY}(?:\s?(?:\\?%|％|per\s?cent{_BOUNDARY}))?"
)
"""A run of number words, as a pattern of Rust (polars)."""
PYTHON_RUN = RUN.replace(_BOUNDARY, r"\b")
"""`RUN` as a pattern of Python."""
RUN_WITH_SPACE = (
    rf"{_BOUNDARY}an?\s(?:{_any_of((*SCALES, *PARTS, *ORDINALS))}){_BOUNDARY}|(?:{_any_of(ORDINALS)})\sof{_BOUNDARY}"
    rf"|{_BOUNDARY}(?:{_any_of(NUMBER_WORDS)})(?:,?\s|-)(?:and\s|point\s)?(?:an?\s)?(?:{_any_of(NUMBER_WORDS)}){_BOUNDARY}"
    rf"|{_BOUNDARY}(?:{_any_of(NUMBER_WORDS)})\s(?:\\?%|％|per\s?cent)"
)
"""A fast test for runs of several words. The pattern is simpler than `RUN`, and may match a part of a run."""


def read_run(text: str) -> list[Reading]:
    """Return the numbers in a match of `RUN`, which must be in lower case."""
    bare = _PERCENT.sub("", text)
    numbers = _Words(_WORD.findall(bare)).read()
    if bare != text and numbers:
        value, is_ordinal = numbers[-1]
        numbers[-1] = COMMON_PERCENTAGES.get(value, value), is_ordinal
    return numbers


def number_in_words(text: str) -> Fraction | None:
    """Return the number of a run, or None if the run has several, as in "four five" or "nineteen eighty-four"."""
    numbers = read_run(text)
    return numbers[0][0] if len(numbers) == 1 else None


class _Words:
    """Reads a list of words from the first to the last."""

    def __init__(self, words: list[str]) -> None:
        self._words = words
        self._position = 0

    def _word(self, ahead: int = 0) -> str:
        position = self._position + ahead
        return self._words[position] if 0 <= position < len(self._words) else ""

    def read(self) -> list[Reading]:
        numbers: list[Reading] = []
        while self._position < len(self._words):
            word = self._word()
            start = self._position
            if word in BELOW_HUNDRED or word in SCALES:
                numbers.append(self._read_number())
            elif word in PARTS or word in ORDINALS:
                numbers.append(self._read_part())
            elif word in MULTIPLES:
                numbers.append((Fraction(MULTIPLES[word]), False))
            # Skip a word between numbers ("and", "a", "of"), unless words have been read above.
            self._position = max(self._position, start + 1)
        return numbers

    def _read_number(self) -> Reading:
        value = Fraction(self._read_cardinal())
        word = self._word()
        if word == "point" and self._word(1) in BELOW_HUNDRED:
            self._position += 1
            return value + self._read_decimals(), False
        is_ten = value % 100 >= 20 and value % 10 == 0
        if word in LAST_OF_ORDINAL and is_ten:
            self._position += 1
            return value + LAST_OF_ORDINAL[word], True
        if word in ORDINALS and ORDINALS[word] < 10 and is_ten and self._word(1) != "of":
            self._position += 1
            return value + ORDINALS[word], True
        if (part := self._part(value == 1)) is not None:
            self._position += 1
            return value / part, False
        return value + self._read_fraction_after_and(), False

    def _part(self, is_one: bool) -> int | None:
        """Return the divisor if the next word is a part ("thirds" -> 3), else None. is_one: the number before is 1."""
        word = self._word()
        if word in ORDINALS and (is_one or self._word(1) == "of"):
            return ORDINALS[word]
        return PARTS.get(word) if word not in ("half", "quarter") or is_one else None

    def _read_fraction_after_and(self) -> Fraction:
        """Read the fraction of a mixed number ("and a half", "and three quarters"); return 0 if none follows."""
        start = self._position
        if self._word() != "and":
            return Fraction(0)
        self._position += 1
        if self._word() in ("a", "an") or self._word() in PARTS:
            top = Fraction(1)
            self._position += self._word() in ("a", "an")
        elif self._word() in UNITS:
            top = Fraction(self._read_cardinal())
        else:
            top = Fraction(0)
        part = self._part(top == 1) if top else None
        if part is None:
            self._position = start
            return Fraction(0)
        self._position += 1
        return top / part

    def _read_decimals(self) -> Fraction:
        """Read the decimals after "point", as digits ("two five") or as a number ("twenty-five")."""
        digits = ""
        while self._word() in BELOW_HUNDRED:
            word = self._word()
            if word in UNITS and UNITS[word] < 10:
                digits += str(UNITS[word])
                self._position += 1
            else:
                digits += str(self._read_cardinal())
        return Fraction(int(digits), 10 ** len(digits))

    def _read_cardinal(self) -> int:
        """Read the words of one whole number: all of "two hundred five", but only the first word of "four five"."""
        total, group = 0, -1
        smallest_scale = 10**15
        while True:
            word = self._word()
            if word in ("and", ",") and self._goes_on_after(total, group):
                self._position += 1
                word = self._word()
            value = BELOW_HUNDRED.get(word, -1)
            if value >= 0 and (group < 0 or (group and value < _room_below(group))):
                group = value if group < 0 else group + value
            elif word in SCALES and SCALES[word] < 100:
                self._position += 1
                return total + max(group, 1) * SCALES[word] if group != 0 else total
            elif word == "hundred" and group < 100:
                group = (group if group > 0 else 1) * 100
            elif SCALES.get(word, 0) >= 1000 and SCALES[word] < smallest_scale and (group > 0 or not total):
                smallest_scale = SCALES[word]
                total, group = total + max(group, 1) * smallest_scale, -1
            else:
                return total + max(group, 0)
            self._position += 1

    def _goes_on_after(self, total: int, group: int) -> bool:
        """Return whether the number goes on after "and" or a comma, which must follow "hundred" or a larger scale."""
        following = self._word(1)
        is_number = following in BELOW_HUNDRED
        ends_with_hundred = group > 0 and group % 100 == 0 and self._word() == "and"
        ends_with_scale = group < 0 and total > 0
        # "two hundred and one half" is 200 and a fraction.
        is_fraction = self._word(2) in PARTS or self._word(2) in ORDINALS
        return is_number and (ends_with_hundred or ends_with_scale) and not is_fraction

    def _read_part(self) -> Reading:
        word, before, after = self._word(), self._word(-1), self._word(1)
        if word in PARTS:
            self._position += 1
            if word == "half" and after in ("a", "an") and self._word(1) in SCALES:
                self._position += 2
                return Fraction(SCALES[self._word(-1)], 2), False
            return Fraction(1, PARTS[word]), False
        if before in ("a", "an") or after == "of":
            return Fraction(1, ORDINALS[word]), False
        return Fraction(ORDINALS[word]), True


def _room_below(group: int) -> int:
    """Return the upper bound of the word that may follow `group`: 10 after "twenty", 100 after "two hundred"."""
    if group % 100 == 0:
        return 100
    return 10 if group % 10 == 0 and group % 100 >= 20 else 0


def chinese_integer(text: str, *, positional: bool = True) -> int | None:
    """Return the value of a Chinese numeral, 一万二千零三十四 -> 12034, or None for any other text.

    positional: read digits without a scale as places, 二〇二一 -> 2021. If False, only the last one counts, 七八 -> 8.
    """
    if not text or any(char not in CHINESE_DIGITS and char not in CHINESE_SCALES for char in text):
        return None
    if positional and all(char in CHINESE_DIGITS for char in text):
        return int(chinese_places(text))
    total = section = digit = 0
    for char in text:
        if not (scale := CHINESE_SCALES.get(char, 0)):
            digit = CHINESE_DIGITS[char]
        elif scale < 10**4:
            section, digit = section + (digit or 1) * scale, 0
        else:
            counted = section + digit
            total = (total + counted) * scale if char == "亿" else total + counted * scale
            section = digit = 0
    return total + section + digit


def chinese_decimal(text: str, *, positional: bool = True) -> Fraction | None:
    """Return the value of a Chinese numeral with or without decimals, 三点五 -> 7/2, or None for any other text."""
    whole, point, decimals = text.partition("点")
    value = chinese_integer(whole, positional=positional)
    digits = chinese_places(decimals)
    if value is None or (point and len(digits) != len(decimals or " ")):
        return None
    return value + Fraction(int(digits or 0), 10 ** len(digits))


def chinese_places(text: str) -> str:
    """Return the Chinese digits of a text as Arabic digits; other characters are left out."""
    return "".join(str(CHINESE_DIGITS[char]) for char in text if char in CHINESE_DIGITS)


def plain_number(text: str) -> Fraction | None:
    r"""Return the number if the whole text is one number, else None.

    `2\frac{5}{3}` is not read, because it may be a product. A mixed number has a fraction below 1.
    """
    sign = -1 if text[:1] == "-" else 1
    body = text[1:].lstrip() if text[:1] in ("-", "+") else text
    value: Fraction | None = None
    if match := _DECIMAL.fullmatch(body):
        value = _decimal(body)
    elif match := _MIXED.fullmatch(body):
        whole, above, below = (int(part) for part in match.groups() if part is not None)
        value = whole + Fraction(above, below) if 0 < above < below else None
    elif match := _QUOTIENT.fullmatch(body):
        dividend, divisor = (_decimal(part) for part in match.groups() if part is not None)
        value = dividend / divisor if divisor else None
    elif match := _SCIENTIFIC.fullmatch(body):
        power = match[2] or match[3]
        is_short = len(power) <= len(str(MAX_EXPONENT)) + 1 and abs(int(power)) <= MAX_EXPONENT
        value = _decimal(match[1]) * Fraction(10) ** int(power) if is_short else None
    return None if value is None else sign * value


def _decimal(text: str) -> Fraction:
    return Fraction("".join(text.replace(",", "").split()).rstrip("."))
