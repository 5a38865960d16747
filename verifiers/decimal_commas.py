r"""Reads numbers with decimal commas, and recognises columns of golds that use decimal commas.

with_points("2,25")          "2.25"         with_points("1.234,50 €")    "1234.50 €"
with_points("1.234")         "1234"         with_points("2{,}25")        "2.25"
with_points("2,5; 3,75")     "2.5; 3.75"    with_points("1, 2 und 3")    unchanged, as are (2,5) and 1,2,3

comma_use(["3,5", "12,25", "7", "0,5"], "de")    "decimal"
comma_use(["1,234", "2,500", "7,125"], "de")     "unclear": 1234 or 1.234
comma_use(["2,3", "-1,4", "5", "0,7"], "en")     "unclear": decimals or lists
comma_use(["1,234", "2,500", "7,125"], "en")     None: thousands, as in all English texts
comma_use(["1.250", "2.500", "870"], "de")       "unclear": 1250 or 1.25; "decimal" if the problems use decimal commas
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Literal

COMMA_LANGUAGES = frozenset(
    "af bg br bs ca cs da de el eo es et eu fi fo fr gl hr hu hy id is it ka kk ky lb lt lv mk nb nl nn no oc pl pt ro "
    "ru sk sl sq sr sv tr uk uz vi wa".split()
)
"""Languages whose writers put a comma before decimals."""
MIN_SIGNS = 3
"""Minimum number of golds with a decimal comma in a column that uses decimal commas."""

_SPACE = r"(?:[. \u00a0\u202f\u2009'’]|\\,|\{\.\})"
"""A separator of thousands: `1.234`, `1 234`, `1'234`."""
_START, _END = r"(?<![\w.,])", r"(?!\d|[.,]\d)"
_WITH_COMMA = re.compile(rf"{_START}(\d{{1,3}}(?:{_SPACE}\d{{3}})+|\d+)(?:,|\{{,\}})(\d+){_END}")
"""A number with a decimal comma: `2,25`, `1.234,50`."""
_NUMERAL = re.compile(rf"{_WITH_COMMA.pattern}|{_START}([1-9]\d{{0,2}}(?:\.\d{{3}})+){_END}")
"""A number with a decimal comma, or one with points before thousands: `1.234`."""
_PAIR = re.compile(r"[(\[]\s*-?\d+,\d+\s*[)\]]")
"""A pair of integers: `(2,5)`."""
_THOUSANDS = re.compile(r"[1-9]\d{0,2},\d{3}")
"""A number with two readings, such as `1,234`, which is 1234 in English and 1.234 with a decimal comma."""
_RUN = re.compile(r"\d+(?:[.,]\d+){2,}")
"""Digits with two or more points or commas between them: `1.234,5,6`."""
_GROUP = re.compile(r"(?<!\d)[1-9]\d{0,2}[.,]\d{3}(?!\d)")
_ONE_NUMBER = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d{1,3}(?:\.\d{3})+(?:,\d+)?|\d{1,3}(?:,\d{2})+,\d{3}")
"""A number with signs of thousands: `1,234.5`, `1.234,5`, and `1,00,000` as in India."""
_POINT = re.compile(r"(?<![\d.])(?:0\.\d+|\d+\.(?!\d{3}(?!\d))\d+)(?![\d,.])")
"""A number with a decimal point that cannot separate thousands: `0.125`, `2.5`."""
_OTHERWISE = re.compile(rf"\d,\s|,\d+,\d|,\d{{3}}\.\d|{_POINT.pattern}")
"""A sign that a column does not use decimal commas: a list, or a decimal point."""


def with_points(text: str) -> str:
    """Return the text with its decimal commas replaced by points, and without separators of thousands."""
    if "," not in text and "." not in text:
        return text
    pairs = [match.span() for match in _PAIR.finditer(text)]

    def rewrite(match: re.Match[str]) -> str:
        if any(start < match.start() < end for start, end in pairs):
            return match[0]
        return match[3].replace(".", "") if match[3] else f"{re.sub(_SPACE, '', match[1])}.{match[2]}"

    return _NUMERAL.sub(rewrite, text)


def comma_setting(verifier_args: str) -> str | None:
    """Return the setting `comma` of a row with decimal commas, or None for other rows.

    "decimal": responses and gold have decimal commas. "answers": only responses have them; gold has points.
    """
    if '"comma"' not in verifier_args:
        return None
    setting: str | None = json.loads(verifier_args).get("comma")
    return setting if setting in ("decimal", "answers") else None


def fix_with_points(gold: str, verifier_args: str) -> str:
    """Return a corrected gold with a decimal point (4,60 -> 4.60) if only the row's answers have decimal commas."""
    has_comma = _WITH_COMMA.search(gold) is not None and comma_setting(verifier_args) == "answers"
    return with_points(gold) if has_comma else gold


CommaUse = Literal["decimal", "unclear"]


def may_be_otherwise(gold: str) -> bool:
    """Say whether a gold has a number whose value depends on the decimal sign, such as 2,25 or 1.250."""
    return _NUMERAL.search(gold) is not None


def mixes_signs(gold: str) -> bool:
    """Say whether a gold may be one number or a list of numbers with thousands: 1.234,5,6."""
    runs = [match[0] for match in _RUN.finditer(gold)]
    return any("," in run and _GROUP.search(run) and not _ONE_NUMBER.fullmatch(run) for run in runs)


def comma_use(golds: Sequence[str], language: str, problems: Sequence[str] = ()) -> CommaUse | None:
    """Say whether the golds of a column use decimal commas, given the language of their problems.

    "decimal": several golds have a comma that cannot separate thousands, such as 2,25. Golds such as 1.250 suffice if
    the problems use decimal commas too. "unclear": the golds may be read either way, and a person has to decide.
    None: the golds do not use decimal commas. A single list (1, 2) or decimal point (2.5) is enough for this.
    """
    numbers = [match[0] for gold in golds if (match := _WITH_COMMA.search(gold)) and not _PAIR.search(gold)]
    decimal = [text for text in numbers if not _THOUSANDS.fullmatch(text)]
    has_commas = language in COMMA_LANGUAGES
    grouped = [gold for gold in golds if (match := _NUMERAL.search(gold)) and match[3]]
    if any(map(_OTHERWISE.search, golds)):
        return None
    if len(numbers) < MIN_SIGNS:
        if not has_commas or len(numbers) + len(grouped) < MIN_SIGNS:
            return None
        points = sum(_POINT.search(text) is not None for text in problems)
        return "decimal" if sum(map(may_be_otherwise, problems)) >= max(MIN_SIGNS, points + 1) else "unclear"
    if len(decimal) < MIN_SIGNS:
        return "unclear" if has_commas else None
    return "decimal" if has_commas else "unclear"
