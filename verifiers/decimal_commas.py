r"""Reads numbers with decimal commas, and tells whether a column of golds has them.

with_points("2,25")          "2.25"         with_points("1.234,50 €")    "1234.50 €"
with_points("1.234")         "1234"         with_points("2{,}25")        "2.25"
with_points("2,5; 3,75")     "2.5; 3.75"    with_points("1, 2 und 3")    as it is, and so are (2,5) and 1,2,3

comma_use(["3,5", "12,25", "7", "0,5"], "de")    "decimal"
comma_use(["1,234", "2,500", "7,125"], "de")     "unclear": 1234, or a bit more than 1
comma_use(["2,3", "-1,4", "5", "0,7"], "en")     "unclear": decimals or lists
comma_use(["1,234", "2,500", "7,125"], "en")     None: thousands, as in all English texts
comma_use(["1.250", "2.500", "870"], "de")       "unclear": 1250, or 1.25; "decimal" where problems are written so
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
"""The fewest golds with decimals after a comma that make a column of them."""

_SPACE = r"(?:[. \u00a0\u202f\u2009'’]|\\,|\{\.\})"
_START, _END = r"(?<![\w.,])", r"(?!\d|[.,]\d)"
_WITH_COMMA = re.compile(rf"{_START}(\d{{1,3}}(?:{_SPACE}\d{{3}})+|\d+)(?:,|\{{,\}})(\d+){_END}")
_NUMERAL = re.compile(rf"{_WITH_COMMA.pattern}|{_START}([1-9]\d{{0,2}}(?:\.\d{{3}})+){_END}")
_PAIR = re.compile(r"[(\[]\s*-?\d+,\d+\s*[)\]]")
_THOUSANDS = re.compile(r"[1-9]\d{0,2},\d{3}")
"""1234 in English, and a number below 1000 elsewhere."""
_POINT = re.compile(r"(?<![\d.])(?:0\.\d+|\d+\.(?!\d{3}(?!\d))\d+)(?![\d,.])")
_OTHERWISE = re.compile(rf"\d,\s|,\d+,\d|,\d{{3}}\.\d|{_POINT.pattern}")
"""A list, and decimals after a point."""


def with_points(text: str) -> str:
    """Return a text in which numbers with decimal commas have points, and no marks of thousands."""
    if "," not in text and "." not in text:
        return text
    pairs = [match.span() for match in _PAIR.finditer(text)]

    def rewrite(match: re.Match[str]) -> str:
        if any(start < match.start() < end for start, end in pairs):
            return match[0]
        return match[3].replace(".", "") if match[3] else f"{re.sub(_SPACE, '', match[1])}.{match[2]}"

    return _NUMERAL.sub(rewrite, text)


def comma_setting(verifier_args: str) -> str | None:
    """Return the setting `comma` of a row whose texts have decimal commas: "decimal", or "answers" where its gold has
    points. None for other rows."""
    if '"comma"' not in verifier_args:
        return None
    setting: str | None = json.loads(verifier_args).get("comma")
    return setting if setting in ("decimal", "answers") else None


def fix_with_points(gold: str, verifier_args: str) -> str:
    """Return a gold that replaces one with points: 4,60 is 4.60 where answers have decimal commas."""
    has_comma = _WITH_COMMA.search(gold) is not None and comma_setting(verifier_args) == "answers"
    return with_points(gold) if has_comma else gold


CommaUse = Literal["decimal", "unclear"]


def may_be_otherwise(gold: str) -> bool:
    """Say whether a gold has a number that is another one where commas stand before decimals: 2,25 and 1.250."""
    return _NUMERAL.search(gold) is not None


def comma_use(golds: Sequence[str], language: str, problems: Sequence[str] = ()) -> CommaUse | None:
    """Say how the golds of a column use commas, where their problems are in this language; None if that is plain.

    "decimal" where several golds have decimals after a comma that cannot be thousands, or points before thousands as
    their problems have them, and none says otherwise by a list or by a point before decimals. "unclear" where that
    could be, and a person has to say.
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
