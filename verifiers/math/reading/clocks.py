r"""Times of day: `4:30 p.m.`, `16:30`, `4 o'clock`, noon, 下午4点30分.

`4:30` without a half of the day is a time wherever it stands alone and the other side is no ratio: the comparison
decides. Not covered: spans of time (`4 h 30 min` is a quantity).
"""

from __future__ import annotations

import re

from truegold.verifiers.math.tree import Clock
from truegold.verifiers.written_numbers import chinese_integer

_TEXT = r"\\(?:text|mathrm|textrm|mbox)\s*\{"
_HALVES = {
    "am": "am", "pm": "pm", "inthemorning": "am", "intheafternoon": "pm", "intheevening": "pm", "atnight": "pm",
    "noon": "noon", "midnight": "midnight",
}  # fmt: skip
_WRAPPING = re.compile(rf"{_TEXT}|[{{}}~]|\\[ ,;:!]")
_CLOCK = re.compile(
    r"(?:(?:at|exactly|approximately|about)\s+)?(\d{1,2})\s*(?::\s*(\d{2}))?\s*(?::\s*(\d{2}))?"
    r"\s*(?:hours|hrs|h|o'clock|o' clock)?"
    r"\s*([ap]\.?\s?m\.?|in the (?:morning|afternoon|evening)|at night|noon|midnight)?\s*\.?",
    re.IGNORECASE,
)
_MARK = re.compile(r":|[ap]\.?\s?m\.?|o'\s?clock|in the|at night|noon|midnight", re.IGNORECASE)
_HAN = re.compile(
    r"(凌晨|早上|早晨|上午|中午|下午|傍晚|晚上|夜里)?\s*(\d{1,2}|[零一二三四五六七八九十]{1,3})\s*"
    r"(?::\s*(\d{2})|[时点]\s*(?:(\d{1,2}|[零一二三四五六七八九十]{1,3}|半)\s*分?)?(?:钟|整)?)"
)
_HAN_HALVES = {
    "凌晨": "am",
    "早上": "am",
    "早晨": "am",
    "上午": "am",
    "中午": "pm",
    "下午": "pm",
    "傍晚": "pm",
    "晚上": "pm",
}
_NAMED = {"noon": 12 * 60, "midnight": 0, "正午": 12 * 60, "中午": 12 * 60, "午夜": 0}

_TIME_LIKE = re.compile(r"[:时点午]|[ap]\.?\s?m|clock|noon|midnight", re.IGNORECASE)
MAX_CLOCK_CHARS = 60
"""Longer texts are no time of day."""


def read_clock_text(text: str) -> Clock | None:
    """Return the time of day that a normal text is as a whole."""
    if len(text) > MAX_CLOCK_CHARS or _TIME_LIKE.search(text) is None:
        return None
    text = " ".join(_WRAPPING.sub(" ", text.replace("\\colon", ":")).split()).replace(" :", ":").replace(": ", ":")
    named = _NAMED.get(text.lower())
    if named is not None:
        return Clock(named, "24")
    if (han := _HAN.fullmatch(text)) is not None and (han[1] or han[3] is None):
        return _read_han(han)
    match = _CLOCK.fullmatch(text)
    if match is None or _MARK.search(text) is None:
        return None
    hour, minute = int(match[1]), int(match[2] or 0)
    half = _HALVES.get("".join(c for c in (match[4] or "").lower() if c.isalpha()), "")
    if int(match[3] or 0) != 0:
        return None
    return _clock(hour, minute, half, written_with_zero=match[1].startswith("0"))


def _read_han(match: re.Match[str]) -> Clock | None:
    half = _HAN_HALVES.get(match[1] or "", "")
    hour = _number_of(match[2])
    minute = 30 if match[4] == "半" else _number_of(match[3] or match[4] or "0")
    if hour is None or minute is None:
        return None
    if match[1] == "中午" and hour == 11:
        half = "am"
    if hour > 12 and half == "pm":
        half = ""
    return _clock(hour, minute, half, written_with_zero=False)


def _number_of(text: str) -> int | None:
    return int(text) if text.isdigit() else chinese_integer(text)


def _clock(hour: int, minute: int, half: str, *, written_with_zero: bool) -> Clock | None:
    if minute > 59 or hour > 24 or (hour == 24 and minute):
        return None
    if half in ("noon", "midnight"):
        minutes = 12 * 60 if half == "noon" else 0
        return Clock(minutes, "24") if (hour, minute) == (12, 0) else None
    if half:
        if not 1 <= hour <= 12:
            return Clock(hour % 24 * 60 + minute, "24") if hour > 12 and half == "pm" else None
        return Clock((hour % 12 + 12 * (half == "pm")) * 60 + minute, half)
    # Only the hours from 1 to 12 leave open which half of the day is meant.
    open_half = 1 <= hour <= 12 and not written_with_zero
    return Clock(hour % 24 * 60 + minute, "" if open_half else "24")
