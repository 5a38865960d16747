r"""Reads days and times of day from normalised texts.

    June 20   20th of June   March 3, 2021   2021-03-03   3/23/2021   6月20日   Tuesday   星期二
    4:30 p.m.   16:30   4 o'clock   noon   下午4点30分

A month or a weekday alone is a day, too. `4:30` alone may also be a ratio; the other side of the comparison decides.
`3/4/2021`, which may be in March or April, is a text: only the same numbers in the same order answer it.
"""

from __future__ import annotations

import re

from truegold.verifiers.math.tree import Day, Text, TimeOfDay
from truegold.verifiers.math.vocabulary import HALVES_OF_CLOCK, HALVES_OF_DAY, MONTHS, WEEKDAYS
from truegold.verifiers.written_numbers import chinese_integer

_MONTH_NUMBERS = {name: i for i, name in enumerate(MONTHS, 1)} | {name[:3]: i for i, name in enumerate(MONTHS, 1)}
_MONTH_NUMBERS["sept"] = 9
_WEEKDAY_NUMBERS = {name: i for i, name in enumerate(WEEKDAYS)} | {name[:3]: i for i, name in enumerate(WEEKDAYS)}
_WEEKDAY_NUMBERS |= {"tues": 1, "wednes": 2, "thur": 3, "thurs": 3}
_HAN_WEEKDAYS = {c: i for i, c in enumerate("一二三四五六日")} | {"天": 6} | {str(i + 1): i for i in range(6)}
"""Maps the last character of a Chinese weekday to its number, 0 for Monday."""
_DATE_WRAPPING = re.compile(r"\\(?:text|mathrm|textrm|mbox)\s*\{|[{}~]|\\[ ,;:!]|\\(?=[ ,])")
"""Typesetting around a date, which becomes a blank."""
_SHORT = "|".join(sorted((*_MONTH_NUMBERS,), key=len, reverse=True))
_DAYS = "|".join(sorted((*_WEEKDAY_NUMBERS,), key=len, reverse=True))
_ENGLISH = re.compile(
    rf"(?:on |in )?(?:({_DAYS})\.?)?,? ?"
    rf"(?:({_SHORT})\.?(?: (?:the )?(\d{{1,2}})(?:\^? ?(?:st|nd|rd|th))?)?|"
    rf"(?:the )?(\d{{1,2}})(?:\^? ?(?:st|nd|rd|th))?(?: day)?(?: of)? ({_SHORT})\.?)?(?:,? (\d{{4}}))?"
)
"""Matches `Tuesday, March 3rd, 2021`, `20th of June`, `June`."""
_ISO = re.compile(r"(\d{4})-(\d{2})-(\d{2})")
_NUMERIC = re.compile(
    r"(?:((?:1[5-9]|20)\d\d)([-/])(\d{1,2})\2(\d{1,2})|(\d{1,2})([-/.])(\d{1,2})\6((?:1[5-9]|20)\d\d))"
)
"""Matches `2021/3/4`, `3/4/2021`, `04.03.2021`."""
MONTHS_OF_YEAR = 12
_HAN_NUMBER = r"(?:\d{1,2}|[一二三四五六七八九十]{1,3})"
_HAN_DATE = re.compile(
    rf"(?:(\d{{4}}|[零〇一二三四五六七八九]{{4}})年)?(?:({_HAN_NUMBER})月)?(?:({_HAN_NUMBER})[日号])?\s?(?:[(（]?(?:星期|周|礼拜)([一二三四五六日天\d])[)）]?)?"
)
"""Matches `2021年6月20日 星期日` and parts of it."""
_HAN_MARK = re.compile(r"月.{1,3}[日号]|年.{1,3}月|星期.|周[一二三四五六日]|礼拜.")
"""A quick test for a Chinese date."""
_SHORT_NAMES = [name[:3] for name in (*MONTHS, *WEEKDAYS)]
_MAY_NAME = re.compile(rf"\d{{4}}-\d\d-\d\d|[月期周拜]|\b(?:{'|'.join(_SHORT_NAMES)})", re.IGNORECASE)
"""A quick test: every text that names a day matches."""
_BEGINNINGS = frozenset({*_SHORT_NAMES, "on ", "in ", "the"})
"""The first three letters of English days."""
MAX_DATE_CHARS = 60
"""Maximum length of a text that names a day, in characters."""
_TEXT = r"\\(?:text|mathrm|textrm|mbox)\s*\{"
_CLOCK_WRAPPING = re.compile(rf"{_TEXT}|[{{}}~]|\\[ ,;:!]")
"""Typesetting around a time of day, which becomes a blank."""
_CLOCK = re.compile(
    r"(?:(?:at|exactly|approximately|about)\s+)?(\d{1,2})\s*(?::\s*(\d{2}))?\s*(?::\s*(\d{2}))?"
    r"\s*(?:hours|hrs|h|o'clock|o' clock)?"
    r"\s*([ap]\.?\s?m\.?|in the (?:morning|afternoon|evening)|at night|noon|midnight)?\s*\.?",
    re.IGNORECASE,
)
"""Matches `4:30 p.m.`, `16:30`, `4 o'clock`, `10 in the morning`."""
_CLOCK_MARK = re.compile(r":|[ap]\.?\s?m\.?|o'\s?clock|in the|at night|noon|midnight", re.IGNORECASE)
"""A mark that shows a time of day, which a bare number lacks."""
_HAN_CLOCK = re.compile(
    r"(凌晨|早上|早晨|上午|中午|下午|傍晚|晚上|夜里)?\s*(\d{1,2}|[零一二三四五六七八九十]{1,3})\s*"
    r"(?::\s*(\d{2})|[时点]\s*(?:(\d{1,2}|[零一二三四五六七八九十]{1,3}|半)\s*分?)?(?:钟|整)?)"
)
"""Matches `下午4点30分`, `十点半`."""
_NAMED_TIMES = {"noon": 12 * 60, "midnight": 0, "正午": 12 * 60, "中午": 12 * 60, "午夜": 0}
"""Maps the name of a time to its minutes after midnight."""
_TIME_LIKE = re.compile(r"[:时点午]|[ap]\.?\s?m|clock|noon|midnight", re.IGNORECASE)
"""A quick test: every text that names a time of day matches."""
MAX_CLOCK_CHARS = 60
"""Maximum length of a text that names a time of day, in characters."""


def may_name_day(text: str) -> bool:
    """Tell by its first letters whether a text may be a day."""
    if not text.isascii() or text.startswith(("\\text", "\\mathrm", "\\mbox")):
        return True
    if text[:1].isdigit():
        return " " in text or any(text.count(sign) == len("MD") for sign in "-/.")
    return text[:3].lower() in _BEGINNINGS


def read_date(text: str) -> Day | Text | None:
    """Return the day that a normalised text names in words or figures. The unclear `3/4/2021` becomes a Text."""
    if (match := _NUMERIC.fullmatch(text)) is None:
        return read_day(text)
    if match[1]:
        return _day(int(match[1]), int(match[3]), int(match[4]), None)
    first, second, year = int(match[5]), int(match[7]), int(match[8])
    if first != second and max(first, second) <= MONTHS_OF_YEAR:
        return Text((f"{first}/{second}/{year}",))
    return _day(year, min(first, second), max(first, second), None)


def read_day(text: str) -> Day | None:
    """Return the day that a normalised text names, or None for other texts."""
    if len(text) > MAX_DATE_CHARS or _MAY_NAME.search(text) is None:
        return None
    text = " ".join(_DATE_WRAPPING.sub(" ", text).split()).lower().replace(" ,", ",")
    if (iso := _ISO.fullmatch(text)) is not None:
        return _day(int(iso[1]), int(iso[2]), int(iso[3]), None)
    if _HAN_MARK.search(text) is not None and (han := _HAN_DATE.fullmatch(text)) is not None:
        year, month, day = (_han_number(part) for part in han.group(1, 2, 3))
        return _day(year, month, day, _HAN_WEEKDAYS.get(han[4] or ""))
    if (match := _ENGLISH.fullmatch(text)) is None or not (match[1] or match[2] or match[5]):
        return None
    month = _MONTH_NUMBERS.get(match[2] or match[5] or "")
    day_digits = match[3] or match[4]
    weekday = _WEEKDAY_NUMBERS[match[1]] if match[1] else None
    return _day(int(match[6]) if match[6] else None, month, int(day_digits) if day_digits else None, weekday)


def _han_number(text: str | None) -> int | None:
    if text is None:
        return None
    return int(text) if text.isdigit() else chinese_integer(text)


def _day(year: int | None, month: int | None, day: int | None, weekday: int | None) -> Day | None:
    if (month is not None and not 1 <= month <= 12) or (day is not None and not 1 <= day <= 31):
        return None
    return Day(year, month, day, weekday)


def read_clock_text(text: str) -> TimeOfDay | None:
    """Return the time of day that a normalised text names, or None for other texts."""
    if len(text) > MAX_CLOCK_CHARS or _TIME_LIKE.search(text) is None:
        return None
    text = " ".join(_CLOCK_WRAPPING.sub(" ", text.replace("\\colon", ":")).split())
    text = text.replace(" :", ":").replace(": ", ":")
    if (named := _NAMED_TIMES.get(text.lower())) is not None:
        return TimeOfDay(named, "24")
    if (han := _HAN_CLOCK.fullmatch(text)) is not None and (han[1] or han[3] is None):
        return _read_han(han)
    if (match := _CLOCK.fullmatch(text)) is None or _CLOCK_MARK.search(text) is None:
        return None
    hour, minute = int(match[1]), int(match[2] or 0)
    half = HALVES_OF_CLOCK.get("".join(c for c in (match[4] or "").lower() if c.isalpha()), "")
    if int(match[3] or 0) != 0:
        return None
    return _clock(hour, minute, half, written_with_zero=match[1].startswith("0"))


def _read_han(match: re.Match[str]) -> TimeOfDay | None:
    """Return the time of a match of `_HAN_CLOCK`."""
    half = HALVES_OF_DAY.get(match[1] or "", "")
    hour = _han_number(match[2])
    minute = 30 if match[4] == "半" else _han_number(match[3] or match[4] or "0")
    if hour is None or minute is None:
        return None
    if match[1] == "中午" and hour == 11:
        half = "am"
    if hour > 12 and half == "pm":
        half = ""
    return _clock(hour, minute, half, written_with_zero=False)


def _clock(hour: int, minute: int, half: str, *, written_with_zero: bool) -> TimeOfDay | None:
    """Return a time of day, or None if there is no such time."""
    if minute > 59 or hour > 24 or (hour == 24 and minute):
        return None
    if half in ("noon", "midnight"):
        minutes = 12 * 60 if half == "noon" else 0
        return TimeOfDay(minutes, "24") if (hour, minute) == (12, 0) else None
    if half:
        if not 1 <= hour <= 12:
            return TimeOfDay(hour % 24 * 60 + minute, "24") if hour > 12 and half == "pm" else None
        return TimeOfDay((hour % 12 + 12 * (half == "pm")) * 60 + minute, half)
    # Only an hour from 1 to 12 may be in either half of the day.
    open_half = 1 <= hour <= 12 and not written_with_zero
    return TimeOfDay(hour % 24 * 60 + minute, "" if open_half else "24")
