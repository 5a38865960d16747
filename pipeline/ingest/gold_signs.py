r"""Finds signs that the gold of a row was extracted wrongly, by comparing it with the row's solution or prompt.

    residue_of("184.4", "x=184.4")                            "x": the solution has only this besides the gold
    is_cut("151", "5,400 x 28 = 151,200.")                    True
    is_first_number("32", "32 + 57 = 89, and 180 - 89 = 91")  True
    lost_parts("x = 4", "Solve ...", "So x = 4 and y = 3.")   True
    told_behind_question("... How many? Control: 84.", "84")  "Control: 84."

A sign in one row may be chance. `source_facts` decides whether too many rows of a source show it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction

from truegold.pipeline.text.prose import UNKNOWN, asks, language_of, sentences, without_formulas
from truegold.pipeline.text.quantities import read_number
from truegold.verifiers.extract.listed_options import find_options, worded_options
from truegold.verifiers.math.measures import unit_of

MAX_RESIDUE = 60
"""Maximum number of characters around a gold, such as `x=`. A longer text may derive the gold."""
MAX_GOLD = 200
END_CHARS = 80
"""The number of characters at the end of a solution that may have the answer."""
NEAR_END = 40
LAST_NUMBERS = 2
"""The number of last numbers that may be the answer. In "which makes 38 in 6 years", both may be."""

_FIGURE = re.compile(r"(?<![\w.])[-−]?\d+(?:,\d{3})*(?:\.\d+)?(?:\s?/\s?\d+)?")
"""A number or a fraction: `-1,200.5`, `3/4`."""
_FINAL = re.compile(rf"\([^()]{{1,40}}\)|\[[^\[\]]{{1,40}}\]|{_FIGURE.pattern}")
"""A possible answer at the end of a solution: a number, a fraction, a point, an interval."""
_CONCLUDES = re.compile(r"\banswer\b|####|\\boxed|答", re.IGNORECASE)
_BREAKS = ",，/:;.|"
"""Characters at which a faulty extraction stops."""
_UNIT_GOLD = re.compile(
    r"[-−]?\d[\d,.]*(?:/\d+)?\s*(?P<unit>(?:[^\W\d_]|[°%$€£¥\\])[^\d]{0,20}(?:\^?\d)?)|[$€£¥]\s*\d[\d,.]*"
)
"""A gold with a unit: `12 cm`, `$5`."""
_BARE_GOLD = re.compile(r"[-−]?\d[\d,]*(?:\.\d+)?")
_UNIT_NAMED = re.compile(
    r"\bhow\s+many\b|\bin\s+(?!all\b|total\b)[a-z°]+(?:\s+per\s+\w+)?\s*[?,.)]|\bpercent|\bwhat\s+number\b"
    r"|多少|几|\bratio\b|\bprobability\b|\b(?:number|value|measure)\s+of\s+[a-z]+s\b",
    re.IGNORECASE,
)
"""Words of questions that name the unit of the answer, or ask for a number without a unit."""
_AMOUNT = re.compile(r"(?<![\d.])\d[\d.,]*\s?([A-Za-zµμΩ°]{1,12})|[$€£¥]\s?\d|\d\s?°|\bangle\b", re.IGNORECASE)
"""A number that may have a unit: `5 km`, `$3`."""
_PART = re.compile(
    r"(?P<bracket>\([a1i]\))|(?P<index>[a-zA-Z])_?\{?[1₁]\}?\s*[=:]|(?P<letter>[a-zA-Z])\s*="
    r"|(?P<word>[A-Za-z]{3,})\b\s*[:=(]?\s*-?[\d(]"
)
"""The start of a gold that names its question: `(a)`, `x_1 =`, `y =`, `width: 5`."""
_SECOND = {"(a)": "(b)", "(1)": "(2)", "(i)": "(ii)"}
"""The label of a first part -> the label of the second part."""
_SEVERAL = re.compile(r",|，|;|；|\band\b|\bor\b|\n|和|或")
"""Separators between several answers."""


def residue_of(gold: str, solution: str) -> str | None:
    """Return the text around the gold in a solution that only restates it: "x=" for the solution "x=7" of gold 7.

    Other solutions give None, because a longer solution, or one with other numbers, may derive the gold.
    """
    if not gold or not solution or len(solution) > MAX_RESIDUE + len(gold):
        return None
    rest = re.sub(rf"(?<!\d){re.escape(gold)}(?!\.?\d)", " ", solution, count=1)
    if rest == solution:
        # "x=184.40" only restates the gold 184.4. "x=135/3" shows a calculation of the gold 45.
        numbers = _FIGURE.findall(solution)
        if len(numbers) != 1 or "/" in numbers[0] or _value(numbers[0]) is None or _value(numbers[0]) != _value(gold):
            return None
        rest = solution.replace(numbers[0], " ", 1)
    if any(char.isdigit() for char in rest):
        return None
    return " ".join(re.sub(r"[\W_]+", " ", rest.lower()).split())


def is_cut(gold: str, solution: str) -> bool:
    """Return True if the solution ends with a longer answer that begins with the gold: a number, fraction or point."""
    tokens = _FINAL.findall(solution[-END_CHARS:])
    short = gold.replace(" ", "")
    last = tokens[-1].replace(" ", "").rstrip(".") if tokens else ""
    if not short or len(last) <= len(short) or not last.startswith(short):
        return False
    if (value := read_number(gold)) is not None and value == read_number(last):
        return False
    return last[len(short)] in _BREAKS or short[0] in "(["


def is_first_number(gold: str, solution: str) -> bool:
    """Return True if the gold is the first number of a solution that ends with another number."""
    numbers = [_value(text) for text in _FIGURE.findall(solution)]
    value = read_number(gold)
    if value is None or len(numbers) < 3 or numbers[0] != value.value or numbers[-1] == value.value:
        return False
    ending = solution[-NEAR_END:]
    return _CONCLUDES.search(ending) is not None or value.value not in map(_value, _FIGURE.findall(ending))


def _value(text: str) -> Fraction | None:
    parsed = read_number(text.replace("−", "-"))
    return None if parsed is None else parsed.value


def ends_with(solution: str, gold: str) -> bool:
    """Return True if the solution ends with the gold: as one of its last numbers, or as a text near its end."""
    if not solution or not gold or len(gold) > MAX_GOLD:
        return False
    if (parsed := read_number(gold)) is None:
        return len(gold) > 2 and gold in solution[-END_CHARS - len(gold) :]
    return parsed.value in map(_value, _FIGURE.findall(solution[-END_CHARS:])[-LAST_NUMBERS:])


def told_behind_question(prompt: str, gold: str) -> str | None:
    """Return the sentences after the question if they contain the gold, else None."""
    if not gold or len(gold) > MAX_GOLD or gold not in prompt or find_options(prompt) is not None:
        return None
    if worded_options(prompt, gold) is not None:
        return None
    parts = sentences(without_formulas(prompt))
    asked = max((index for index, text in enumerate(parts) if asks(text)), default=-1)
    marked = max((index for index, text in enumerate(parts) if text.endswith(("?", "？"))), default=asked)
    tail = " ".join(parts[min(asked, marked) + 1 :] if marked >= 0 else ())
    return tail if re.search(rf"(?<![\w.]){re.escape(gold)}(?!\w|[.,]\d)", tail) else None


def unit_or_none(gold: str, prompt: str) -> str | None:
    """Return a gold with a unit, or "" for a bare number. None for other golds, or if the question names the unit."""
    if len(gold) > END_CHARS or any(map(_UNIT_NAMED.search, filter(asks, sentences(without_formulas(prompt))))):
        return None
    if _BARE_GOLD.fullmatch(gold):
        return ""
    return gold if _UNIT_GOLD.fullmatch(gold) else None


def has_measured_quantity(prompt: str) -> bool:
    """Return True if a problem has an amount with a unit."""
    return any(not match[1] or unit_of(match[1]) is not None for match in _AMOUNT.finditer(prompt))


def lost_parts(gold: str, prompt: str, solution: str) -> bool:
    """Return True if the gold answers one of two parts, such as only `x = 4` of the solution `x = 4 and y = 3`.

    The gold begins with the name of its part (`_PART`), and the prompt or the solution has a second part.
    """
    match = _PART.match(gold)
    if match is None or _SEVERAL.search(re.sub(r"\([^()]*\)", "", gold)):
        return False
    if match["bracket"]:
        return _SECOND[match["bracket"]] in prompt and _SECOND[match["bracket"]] not in gold
    if match["index"]:
        return re.search(r"\b(?:both|all|two|roots|solutions|zeros)\b", prompt) is not None
    if match["letter"]:
        other = rf"{re.escape(gold)}\s*(?:,|and|;|\n)\s*(?:\$\s*)?(?!{match['letter']}\b)[a-zA-Z]\s*="
        return re.search(other, solution) is not None
    beside = rf"\b{match['word']}\b[^.?]{{0,40}}?(?:,|\band\b)\s*(?:the\s+|its\s+)?[a-z]{{3,}}"
    return re.search(beside, prompt, re.IGNORECASE) is not None


def language_of_golds(golds: Sequence[str], languages: Counter[str]) -> str | None:
    """Return the language of the golds, or None. No prompt may have this language, and both halves of the golds must
    agree on it."""
    languages_of_halves = {language_of(" ".join(golds[start::2])) for start in (0, 1)}
    (language, *others) = languages_of_halves
    return None if others or language == UNKNOWN or language in languages else language
