r"""Reads numbers as they are written: in digits, in English words and in Chinese numerals, each to its exact value.

    plain_number("1,234.5")   2469/2     plain_number("-3/4")   -3/4    plain_number(r"2\frac{1}{3}")     7/3
    plain_number("5e-3")      1/200      plain_number("2 1/2")   5/2    plain_number("3 \\times 10^8")    300000000

    read_run("three thousand, two hundred and five")  3205   read_run("two and a half")        5/2
    read_run("twenty-five percent")                   1/4    read_run("four five")             4 and 5
    read_run("half a dozen")                          6      read_run("third")                 3, an ordinal

    chinese_integer("一万二千零三十四")   12034          chinese_integer("二〇二一")   2021
    chinese_decimal("三点五")            7/2

`RUN` is a regular expression for runs of English number words, which polars (Rust) and Python both take. Not covered:
text around a number (units, formulas, sentences), and decimal commas.
"""

from __future__ import annotations

import re
import tomllib
from fractions import Fraction
from importlib.resources import files

MAX_EXPONENT = 3_000
"""Powers of ten beyond this are not read. Stops `1e999999999`, which is a gigabyte of digits."""

_WORDS = tomllib.loads(files(__package__).joinpath("number_words.toml").read_text(encoding="utf-8"))
UNITS: dict[str, int] = dict(zip(_WORDS["units"].split(), range(20), strict=True))
TENS: dict[str, int] = dict(zip(_WORDS["tens"].split(), range(20, 100, 10), strict=True))
BELOW_HUNDRED = UNITS | TENS
"""The words that a number below 100 is made of."""
SCALES: dict[str, int] = _WORDS["scales"]
ORDINALS: dict[str, int] = dict(zip(_WORDS["ordinals"].split(), range(3, 21), strict=True)) | _WORDS["round_ordinals"]
"""Words that are parts after a number, after "a" and before "of", and else positions in a list."""
PARTS = {"half": 2, "halves": 2, "quarter": 4, "quarters": 4, **{f"{word}s": value for word, value in ORDINALS.items()}}
"""Words that are parts wherever they stand."""
MULTIPLES = {word: int(value) for value, words in _WORDS["multiples"].items() for word in words.split()}
LAST_OF_ORDINAL = {"first": 1, "second": 2}
"""Words that end an ordinal after a ten, as in "twenty-first"; alone they are left as words."""
_ROMAN = re.compile(r"(?=[MDCLXVI]{2})M{0,3}(CM|CD|D?C{0,3})(XC|XL|L?X{0,3})(IX|IV|V?I{0,3})")
_ROMAN_DIGITS = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100, "D": 500, "M": 1000}
COMMON_PERCENTAGES = {Fraction(25): Fraction(1, 4), Fraction(50): Fraction(1, 2), Fraction(75): Fraction(3, 4)}
"""Percentages that rewordings often write as a fraction."""
CHINESE_DIGITS: dict[str, int] = _WORDS["chinese_digits"]
CHINESE_SCALES: dict[str, int] = _WORDS["chinese_scales"]

NUMBER_WORDS = (*UNITS, *TENS, *SCALES, *PARTS, *ORDINALS, *MULTIPLES)

_BOUNDARY = r"(?-u:\b)"
_PERCENT = re.compile(r"\s?(?:\\?%|％|per\s?cent)$")
_WORD = re.compile(r"[a-z]+|,")
Reading = tuple[Fraction, bool]
"""A value, and whether it is an ordinal."""
DECIMAL = r"(?:(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d*)?|\.\d+)"
"""Digits without a sign, with or without commas and a point."""
_SIGNED = rf"[+-]?\s{{0,3}}{DECIMAL}"
_BRACED = rf"\{{\s{{0,3}}({_SIGNED})\s{{0,3}}\}}"
_MIXED = re.compile(r"(\d+)(?:\s{1,3}(\d+)/(\d+)|\s{0,3}\\frac\{(\d+)\}\{(\d+)\})")
_QUOTIENT = re.compile(
    rf"\\frac\s{{0,3}}{_BRACED}\s{{0,3}}{_BRACED}|\\frac\s{{0,3}}(\d)\s{{0,3}}(\d)|({DECIMAL})\s{{0,3}}/\s{{0,3}}({_SIGNED})"
)
_SCIENTIFIC = re.compile(
    rf"({DECIMAL})(?:[eE]([+-]?\d+)|\s{{0,3}}(?:\\times|\\cdot|\*|x)\s{{0,3}}10\s{{0,3}}\^\s{{0,3}}\{{?([+-]?\d+)\}}?)"
)
_DECIMAL = re.compile(DECIMAL)


def roman_number(text: str) -> int | None:
    """Return 14 for XIV and xiv; None for other texts, and for one letter."""
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
"""Runs of number words. Word boundaries are those of ASCII, as Rust writes them; `PYTHON_RUN` is the same for `re`."""
PYTHON_RUN = RUN.replace(_BOUNDARY, r"\b")
RUN_WITH_SPACE = (
    rf"{_BOUNDARY}an?\s(?:{_any_of((*SCALES, *PARTS, *ORDINALS))}){_BOUNDARY}|(?:{_any_of(ORDINALS)})\sof{_BOUNDARY}"
    rf"|{_BOUNDARY}(?:{_any_of(NUMBER_WORDS)})(?:,?\s|-)(?:and\s|point\s)?(?:an?\s)?(?:{_any_of(NUMBER_WORDS)}){_BOUNDARY}"
    rf"|{_BOUNDARY}(?:{_any_of(NUMBER_WORDS)})\s(?:\\?%|％|per\s?cent)"
)
"""The pattern of every text in which a run has whitespace in it."""


def read_run(text: str) -> list[Reading]:
    """Return the numbers of a run of English number words in lower case, as `RUN` matches them."""
    bare = _PERCENT.sub("", text)
    numbers = _Words(_WORD.findall(bare)).read()
    if bare != text and numbers:
        value, is_ordinal = numbers[-1]
        numbers[-1] = COMMON_PERCENTAGES.get(value, value), is_ordinal
    return numbers


def number_in_words(text: str) -> Fraction | None:
    """Return the number that words say; None for several, as in "four five" and "nineteen eighty-four"."""
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
            # Words between numbers ("and", "a", "of") are passed over, and so are words that have been read above.
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
        """Return the divisor of the part that comes next, after "one" or another number, or None if none does."""
        word = self._word()
        if word in ORDINALS and (is_one or self._word(1) == "of"):
            return ORDINALS[word]
        return PARTS.get(word) if word not in ("half", "quarter") or is_one else None

    def _read_fraction_after_and(self) -> Fraction:
        """Return the fraction of a mixed number ("and a half", "and three quarters"), 0 if none comes next."""
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
        """Return what comes after the point: digits ("two five"), or a number ("twenty-five")."""
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
        """Read on as long as the words are of one number: "twenty five" and "two hundred five", not "four five"."""
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
        """Whether the number goes on after "and" or a comma: it must have ended with "hundred" or a larger scale."""
        following = self._word(1)
        is_number = following in BELOW_HUNDRED
        ends_with_hundred = group > 0 and group % 100 == 0 and self._word() == "and"
        ends_with_scale = group < 0 and total > 0
        # In "two hundred and one half" the number ends before "and".
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
    """Return the number that what comes next has to be below: 10 after "twenty", 100 after "two hundred"."""
    if group % 100 == 0:
        return 100
    return 10 if group % 10 == 0 and group % 100 >= 20 else 0


def chinese_integer(text: str, *, positional: bool = True) -> int | None:
    """Return 12034 for 一万二千零三十四, None for anything else.

    positional: digits without a scale are places, 二〇二一 is 2021. Else the last one counts, 七八个 is 8.
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
    """Return 7/2 for 三点五, and the value of a numeral without 点."""
    whole, point, decimals = text.partition("点")
    value = chinese_integer(whole, positional=positional)
    digits = chinese_places(decimals)
    if value is None or (point and len(digits) != len(decimals or " ")):
        return None
    return value + Fraction(int(digits or 0), 10 ** len(digits))


def chinese_places(text: str) -> str:
    """Return the Arabic digits for the Chinese ones in a text, without its other characters."""
    return "".join(str(CHINESE_DIGITS[char]) for char in text if char in CHINESE_DIGITS)


def plain_number(text: str) -> Fraction | None:
    r"""Return the number that a text without typesetting is as a whole; None for anything else.

    `2\frac{5}{3}` is not a mixed number, but may be a product.
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
