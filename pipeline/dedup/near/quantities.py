r"""Reads the quantities of a problem, however they are written: digits, words, fractions, percentages, in Chinese.

    "1,250"  -> 1250      "twenty-five" -> 25       "3/4"      -> 3/4      "two thirds" -> 2/3
    "40%"    -> 40        "two dozen"   -> 24       "twice"    -> 2        "三分之二"    -> 2/3
    "5th"    -> 5 (weak)  "four five"   -> 4 and 5  "一"       -> 1 (weak) "百分之二十"  -> 20

Each quantity has a weight in (0, 1]: how sure it is that the problem depends on it. "one" is mostly a pronoun, "first"
and "twice" may be written otherwise in other words, a number in digits is hardly ever an accident. The unit is not
read: a rewording is free to say "$5" or "5 dollars". A percentage is read as its number, because rewordings keep the
percent, but 50% as a half and 25% as a quarter.
"""

from __future__ import annotations

import re
from fractions import Fraction

MAX_DIGITS = 40
"""Longer digit strings are compared as text: they are data such as encoded messages, not quantities."""
NOTHING_READ = 10**15
"""Stands for the last word's value before the first word: every value is smaller."""

UNITS = {
    word: value
    for value, word in enumerate(
        "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen"
        " seventeen eighteen nineteen".split()
    )
}
TENS = {
    word: 10 * value for value, word in enumerate("twenty thirty forty fifty sixty seventy eighty ninety".split(), 2)
}
SCALES = {"dozen": 12, "hundred": 100, "thousand": 1000, "million": 10**6, "billion": 10**9, "trillion": 10**12}
PARTS = {
    **{"half": 2, "halves": 2, "third": 3, "thirds": 3, "quarter": 4, "quarters": 4, "fourths": 4, "fifths": 5},
    **{"sixths": 6, "sevenths": 7, "eighths": 8, "ninths": 9, "tenths": 10, "hundredths": 100},
}
ORDINAL_PARTS = {"fourth": 4, "fifth": 5, "sixth": 6, "seventh": 7, "eighth": 8, "ninth": 9, "tenth": 10}
"""These are parts after "one", else positions in a list."""
MULTIPLES = {"twice": 2, "double": 2, "doubled": 2, "doubles": 2, "doubling": 2, "thrice": 3, "triple": 3}
MULTIPLES |= {"tripled": 3, "triples": 3, "tripling": 3, "quadruple": 4, "quadrupled": 4, "quadruples": 4}
COMMON_PERCENTAGES = {Fraction(25): Fraction(1, 4), Fraction(50): Fraction(1, 2), Fraction(75): Fraction(3, 4)}
"""Percentages that rewordings often write as a fraction."""
CHINESE_DIGITS = {char: value for value, char in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2}
CHINESE_SCALES = {"十": 10, "百": 100, "千": 1000, "万": 10**4, "亿": 10**8}

NUMBER_WORDS = (*UNITS, *TENS, *SCALES, *PARTS, *ORDINAL_PARTS, *MULTIPLES)

DIGITS_WEIGHT = 1.0
WORD_WEIGHT = 0.9
PART_WEIGHT = 0.5
MULTIPLE_WEIGHT = 0.4
ORDINAL_WEIGHT = 0.2
ONE_WEIGHT = 0.15
"""Only in these weights does the way matter in which a number is written; the head of the module says why."""
SPELLING_MARGIN = 0.16
"""The weights of one number in digits and in words differ by less, also those of "1" and "one"."""

Quantity = tuple[str, float]
"""The value as a canonical text (`"2/3"`, `"25"`) and its weight."""

_DIGITS = re.compile(
    r"(?:(?P<whole>\d+)\s+(?=\d+/))?(?P<top>\d[\d,]*(?:\.\d+)?|\.\d+)(?:/(?P<bottom>\d+))?(?P<ordinal>st|nd|rd|th)?"
    r"\s*(?P<percent>\\?%|％|percent)?\s*(?P<scale>dozen|hundred|thousand|million|billion|trillion)?"
    r"(?P<chinese>[十百千万亿]*)"
)


def digits_quantity(text: str) -> list[Quantity]:
    """Return the quantity of a token that starts with a digit; where it is too long to be one, its text counts."""
    match = _DIGITS.fullmatch(text)
    if match is None or len(text) > MAX_DIGITS:
        return [(text[:MAX_DIGITS], DIGITS_WEIGHT)]
    value = Fraction(match["top"].replace(",", ""))
    if match["bottom"]:
        if not int(match["bottom"]):
            return [(text, DIGITS_WEIGHT)]
        value /= int(match["bottom"])
    if match["whole"]:
        value += int(match["whole"])
    value *= SCALES.get(match["scale"] or "", 1)
    for char in match["chinese"] or "":
        value *= CHINESE_SCALES[char]
    if match["percent"]:
        value = COMMON_PERCENTAGES.get(value, value)
    if match["ordinal"]:
        return [(str(value), ORDINAL_WEIGHT)]
    return [(str(value), ONE_WEIGHT * 2 if value == 1 else DIGITS_WEIGHT)]


def words_quantities(text: str) -> list[Quantity]:
    """Return the quantities in a run of English number words: "two hundred and five", "three quarters"."""
    quantities: list[Quantity] = []
    total: Fraction | None = None
    thousands = Fraction(0)
    last_value = NOTHING_READ

    def finish_number() -> None:
        nonlocal total, thousands, last_value
        if total is not None:
            value = total + thousands
            quantities.append((str(value), ONE_WEIGHT if value == 1 else WORD_WEIGHT))
        total, thousands, last_value = None, Fraction(0), NOTHING_READ

    words = re.split(r"[\s-]+", text)
    for index, word in enumerate(words):
        two_before = words[max(0, index - 2) : index]
        if word in UNITS or word in TENS:
            value = UNITS.get(word, TENS.get(word, 0))
            # "twenty five" and "two hundred five" go on with one number, "four five" and "ten five" do not.
            goes_on = value < last_value and (last_value >= 100 or (last_value >= 20 and value < 10))
            if total is not None and not goes_on:
                finish_number()
            total = Fraction(value) + (total or 0)
            last_value = value if value else 1
        elif word in SCALES:
            scale = SCALES[word]
            if two_before == ["half", "a"]:
                # In "half a dozen" the half has been taken for a quantity already.
                quantities.pop()
                total = Fraction(1, 2)
            if total is None:
                total = Fraction(scale)
            elif scale >= 1000:
                thousands, total = thousands + total * scale, Fraction(0)
            else:
                total *= scale
            last_value = scale
        elif word in PARTS or (word in ORDINAL_PARTS and total is not None):
            part = PARTS.get(word) or ORDINAL_PARTS[word]
            # "Two thirds" multiplies, "three and a half" adds.
            is_mixed = total is not None and two_before == ["and", "a"]
            parts = Fraction(1) if total is None else total
            if is_mixed:
                parts = parts * part + 1
            total, last_value = None, NOTHING_READ
            quantities.append((str(parts / part), WORD_WEIGHT if is_mixed else PART_WEIGHT))
        elif word in ORDINAL_PARTS:
            finish_number()
            quantities.append((str(ORDINAL_PARTS[word]), ORDINAL_WEIGHT))
        elif word in MULTIPLES:
            finish_number()
            quantities.append((str(MULTIPLES[word]), MULTIPLE_WEIGHT))
    finish_number()
    return quantities


def chinese_quantities(text: str) -> list[Quantity]:
    """Return the quantity in a run of Chinese numerals, such as "二十五", "三分之二", "百分之二十"; "一" is weak."""
    bottom, parted, top = text.rpartition("分之")
    value = _read_chinese(top)
    if value is None:
        return []
    if parted:
        divisor = _read_chinese(bottom)
        if bottom == "百":
            return [(str(value), WORD_WEIGHT)]
        return [] if not divisor else [(str(Fraction(value, divisor)), WORD_WEIGHT)]
    return [(str(value), ONE_WEIGHT if value in (0, 1) else WORD_WEIGHT)]


def _read_chinese(text: str) -> int | None:
    if text.isascii():
        return int(text) if text.isdigit() and len(text) < MAX_DIGITS else None
    total = section = digit = 0
    for char in text:
        if char in CHINESE_DIGITS:
            digit = CHINESE_DIGITS[char]
        elif (scale := CHINESE_SCALES.get(char, 0)) >= 10**4:
            total, section, digit = (total + section + digit) * scale, 0, 0
        elif scale:
            section, digit = section + (digit or 1) * scale, 0
        else:
            return None
    return total + section + digit
