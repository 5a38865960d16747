"""Finds impossible quantities: negative counts, fractions of whole things, and divisions by zero.

Some rows and their findings:

    "A ticket costs 2 yuan. How many tickets can Ann buy for 9 yuan?"  gold "4.5"            fractional_count
    "If each pack costs 81 dollars, how much will it cost to buy -33 packs?"                 negative_count
    "Cars move at -7.5 miles per hour."                                                      negative_count
    "It was -7.5 degrees."                                                                   no finding
    "Of 300 students 45.5 students own cats."                                                impossible_quantity
    "On average 45.5 students own cats."                                                     no finding
    "17 students were put into 0 groups."  "It is 120% off."  "at 12:75 pm"                  impossible_quantity

`negative_count` reads only English. In Chinese, `impossible_quantity` finds fractions of people such as "3.5个人".
"""

from __future__ import annotations

import re
from fractions import Fraction

from truegold.pipeline.flag.rules.detector import Finding, any_of, detector
from truegold.pipeline.tables.rows import Row
from truegold.pipeline.text.prose import sentences, without_formulas
from truegold.pipeline.text.quantities import read_number

# fractional_count
_MEASURED = rf"(?:more\s+)?(?:{any_of('measured_kinds')}\s+)*{any_of('measured_things')}"
"""Things that may be fractions: "miles", "more cups"."""
_HOW_MANY = re.compile(rf"\bhow\s+many\s+(?!{_MEASURED}\b)(?P<noun>[a-z]+(?:\s+[a-z]+)?)", re.IGNORECASE)
_HOW_MANY_CHINESE = re.compile(
    r"(?:多少|几)(?P<noun>个(?!小时|月|百分|单位|星期|世纪)|[张人只本头匹条支辆盒箱棵朵枝把台架艘套件双])"
)
_RATE = re.compile(rf"\b{any_of('rate_words')}\b|平均|每|约|倍", re.IGNORECASE)
_HAS_FRACTIONS = re.compile(r"\d\.\d+(?!\d|\s*\\?%)|\d\s*/\s*\d|\\[dt]?frac|\bhalf\b|\bquarters?\b|分之|半")
"""Fractions in a prompt. If a prompt has one, a fraction may be a sensible answer."""

_NAMES_UNIT = re.compile(r"\\text\s*\{|\d\s*[a-z]{2,}")
r"""A gold with a unit: "2.5 kg", "2.5\text{ kg}"."""

# negative_count
_COUNT_ASKED = re.compile(r"\bhow\s+(?:many|much)\b", re.IGNORECASE)
_NEGATIVE_COUNT = re.compile(
    rf"(?:^|(?<=[.?!])\s|(?<=[a-z])\s)[-−]\d[\d,]*(?:\.\d+)?\s+(?:more\s+|of\s+(?=his|her|the))?(?!{any_of('never_counted')})"
    r"(?P<noun>[a-z]{2,})",
    re.IGNORECASE,
)
"""A negative number of things, after a word: "buys -33 packs", "-36 campers went". The difference "5 -3 packs" does not
match."""
_MAY_BE_NEGATIVE = re.compile(rf"\b{any_of('signed_measures')}\b|°", re.IGNORECASE)
"""Measures that may be negative in a story, such as temperatures."""

_NEGATIVE_MEASURE = re.compile(
    r"(?:(?<=\s)|(?<=^)|(?<=\s\$))[-−]\d[\d,]*(?:\.\d+)?(?:\$?\s+"
    rf"(?:(?:{any_of('never_negative')})\b(?:\s+(?P<old>old))?|times\s+as\b)|\s?\\?%\s+of\b)",
    re.IGNORECASE,
)
"""A negative length, weight, age, number of people or percentage: "-12 cm", "-5% of"."""

# impossible_quantity
_PART_OF_ONE = re.compile(
    rf"(?:(?<![\w.,$\\-])|(?<=\s\$)|(?<=^\$)|(?<=-))\d+\.\d*[1-9]\d*\$?\s+(?:(?:different|distinct|other|more)\s+)?{any_of('whole_things')}\b|\d\.\d*[1-9]\d*\s*(?:个|名|位)?(?:人|学生|同学|孩子|工人|老师)(?!次|工|均|日|时)",
    re.IGNORECASE,
)
"""A fraction of a person or of another whole thing: "45.5 students"."""
_MEAN = re.compile(
    r"\b(?:average|mean|expected|estimated?|approximately|about|per|rate|ratio)\b|平均|约|期望", re.IGNORECASE
)
"""Words for averages and estimates. In a prompt with such a word, fractions of people are possible."""
_BROKEN_INTEGER = re.compile(
    r"\b(?:integers?|whole\s+numbers?|primes?(?:\s+numbers?)?)\s+\$?(?:\d+,\s*\d+,\s*(?:\\l?dots|\.\.\.),\s*)?\d+\.\d*[1-9]",
    re.IGNORECASE,
)
"""A number with decimals that is called an integer: "the integer 2014.5", "the integers 1, 2, ..., 2017.4"."""
_ZERO_PARTS = re.compile(
    r"\b(?:into|among)\s+(?:0|zero)\s+[a-z]+\b|(?<![-\w])(?:0|zero)\s+(?:[a-z]+\s+)?(?:in|on|to)\s+each\b"
    r"|\b(?:takes|took)\s+(?:0|zero)\s+(?:people|persons?|workers?|men)\b|平均?分成0[^\d.]|分给0[个名]",
    re.IGNORECASE,
)
"""A division by zero: "into 0 groups"."""
_PERCENT_OFF = re.compile(r"(?<![\d.])(?P<percent>\d{3,}(?:\.\d+)?)\s*\\?%\$?\s+(?:off\b|discount\b)", re.IGNORECASE)
_CLOCK = re.compile(r"(?<![\d:.])\d{1,2}:[6-9]\d\s*[ap]\.?m\b", re.IGNORECASE)
"""A time with 60 minutes or more: "12:75 pm"."""


@detector("fractional_count", version="2")
def fractional_count(row: Row) -> list[Finding]:
    """Find a question that counts whole things and has a fraction as gold."""
    gold = read_number(row["gold"])
    # A gold with a unit is a measure. It may be a fraction.
    if (
        gold is None
        or gold.value.denominator == 1
        or gold.percent
        or _NAMES_UNIT.search(row["gold"] or "")
        or _HAS_FRACTIONS.search(row["prompt"])
    ):
        return []
    for sentence in reversed(sentences(without_formulas(row["prompt"]))):
        if not sentence.endswith(("?", "？")):
            continue
        match = _HOW_MANY.search(sentence) or _HOW_MANY_CHINESE.search(sentence)
        if match and not _RATE.search(sentence):
            return [Finding("fractional_count", evidence={"counts": match["noun"], "gold": row["gold"]})]
    return []


@detector("negative_count", version="3")
def negative_count(row: Row) -> list[Finding]:
    """Find a negative count of whole things, or a negative measure, in a story."""
    prompt = row["prompt"]
    if row["domain"] != "math" or _MAY_BE_NEGATIVE.search(prompt):
        return []
    match = _NEGATIVE_COUNT.search(without_formulas(prompt)) if _COUNT_ASKED.search(prompt) else None
    match = match or _NEGATIVE_MEASURE.search(prompt)
    return [] if match is None else [Finding("negative_count", evidence={"says": match[0].strip()})]


@detector("impossible_quantity", version="1")
def impossible_quantity(row: Row) -> list[Finding]:
    """Find a fraction of a person, an integer with decimals, a division by zero, or more than 100 % off."""
    prompt = row["prompt"]
    if row["domain"] != "math":
        return []
    parts = [] if _MEAN.search(prompt) else list(_PART_OF_ONE.finditer(prompt))
    shares = [match for match in _PERCENT_OFF.finditer(prompt) if Fraction(match["percent"]) > 100]
    others = [match for pattern in (_BROKEN_INTEGER, _ZERO_PARTS, _CLOCK) if (match := pattern.search(prompt))]
    match = next(iter((*parts, *shares, *others)), None)
    return [] if match is None else [Finding("impossible_quantity", evidence={"says": match[0].strip()})]
