r"""Days: `June 20`, `20th of June`, `March 3, 2021`, `2021-03-03`, `6月20日`, `Tuesday`, 星期二.

A month or a weekday alone is a day too. Not covered: `3/4/2021`, which is March or April.
"""

from __future__ import annotations

import re

from truegold.verifiers.math.tree import Day
from truegold.verifiers.written_numbers import chinese_integer

_MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
    "december",
)  # fmt: skip
_MONTH_NUMBERS = {name: i for i, name in enumerate(_MONTHS, 1)} | {name[:3]: i for i, name in enumerate(_MONTHS, 1)}
_MONTH_NUMBERS["sept"] = 9
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_WEEKDAY_NUMBERS = {name: i for i, name in enumerate(_WEEKDAYS)} | {name[:3]: i for i, name in enumerate(_WEEKDAYS)}
_WEEKDAY_NUMBERS |= {"tues": 1, "wednes": 2, "thur": 3, "thurs": 3}
_HAN_WEEKDAYS = {c: i for i, c in enumerate("一二三四五六日")} | {"天": 6} | {str(i + 1): i for i in range(6)}

_WRAPPING = re.compile(r"\\(?:text|mathrm|textrm|mbox)\s*\{|[{}~]|\\[ ,;:!]|\\(?=[ ,])")
_SHORT = "|".join(sorted((*_MONTH_NUMBERS,), key=len, reverse=True))
_DAYS = "|".join(sorted((*_WEEKDAY_NUMBERS,), key=len, reverse=True))
_ENGLISH = re.compile(
    rf"(?:on |in )?(?:({_DAYS})\.?)?,? ?"
    rf"(?:({_SHORT})\.?(?: (?:the )?(\d{{1,2}})(?:\^? ?(?:st|nd|rd|th))?)?|"
    rf"(?:the )?(\d{{1,2}})(?:\^? ?(?:st|nd|rd|th))?(?: day)?(?: of)? ({_SHORT})\.?)?(?:,? (\d{{4}}))?"
)
_ISO = re.compile(r"(\d{4})-(\d{2})-(\d{2})")
_HAN_NUMBER = r"(?:\d{1,2}|[一二三四五六七八九十]{1,3})"
_HAN = re.compile(
    rf"(?:(\d{{4}}|[零〇一二三四五六七八九]{{4}})年)?(?:({_HAN_NUMBER})月)?(?:({_HAN_NUMBER})[日号])?\s?(?:[(（]?(?:星期|周|礼拜)([一二三四五六日天\d])[)）]?)?"
)
_HAN_MARK = re.compile(r"月.{1,3}[日号]|年.{1,3}月|星期.|周[一二三四五六日]|礼拜.")
_MAY_NAME = re.compile(
    rf"\d{{4}}-\d\d-\d\d|[月期周拜]|\b(?:{'|'.join(name[:3] for name in (*_MONTHS, *_WEEKDAYS))})", re.IGNORECASE
)
_BEGINNINGS = frozenset({name[:3] for name in (*_MONTHS, *_WEEKDAYS)} | {"on ", "in ", "the"})
MAX_DATE_CHARS = 60
"""Longer texts are no day."""


def may_name_day(text: str) -> bool:
    """Tell by its first letters whether a text is worth a closer look."""
    if not text.isascii() or text.startswith(("\\text", "\\mathrm", "\\mbox")):
        return True
    if text[:1].isdigit():
        return " " in text or text.count("-") == 2
    return text[:3].lower() in _BEGINNINGS


def read_day(text: str) -> Day | None:
    """Return the day that a normal text names as a whole."""
    if len(text) > MAX_DATE_CHARS or _MAY_NAME.search(text) is None:
        return None
    text = " ".join(_WRAPPING.sub(" ", text).split()).lower().replace(" ,", ",")
    if (iso := _ISO.fullmatch(text)) is not None:
        return _day(int(iso[1]), int(iso[2]), int(iso[3]), None)
    if _HAN_MARK.search(text) is not None and (han := _HAN.fullmatch(text)) is not None:
        year, month, day = (_number_of(part) for part in han.group(1, 2, 3))
        return _day(year, month, day, _HAN_WEEKDAYS.get(han[4] or ""))
    match = _ENGLISH.fullmatch(text)
    if match is None or not (match[1] or match[2] or match[5]):
        return None
    month = _MONTH_NUMBERS.get(match[2] or match[5] or "")
    day_digits = match[3] or match[4]
    weekday = _WEEKDAY_NUMBERS[match[1]] if match[1] else None
    return _day(int(match[6]) if match[6] else None, month, int(day_digits) if day_digits else None, weekday)


def _number_of(text: str | None) -> int | None:
    if text is None:
        return None
    return int(text) if text.isdigit() else chinese_integer(text)


def _day(year: int | None, month: int | None, day: int | None, weekday: int | None) -> Day | None:
    if (month is not None and not 1 <= month <= 12) or (day is not None and not 1 <= day <= 31):
        return None
    return Day(year, month, day, weekday)
