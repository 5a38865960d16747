r"""Rewrites Chinese numbers and phrases as formulas and quantities.

    一万二千    三点一四    负七            -> 12000   3.14   -7
    三十元      第七                        -> 30元   7
    三分之一    一半    三又二分之一        -> \frac{1}{3}   \frac{1}{2}   3\frac{1}{2}
    百分之二十五    八折                    -> 25\%   80\%
    2根号5      2的3次方    1比2            -> 2\sqrt{5}   2^{3}   1:2
    x除以7余3                               -> x \equiv 3 \pmod{7}
    3个半小时   2小时30分   每小时60千米    -> 3.5小时   2小时30分钟   60千米/小时
    零下5度     方程无解                    -> -5度   无解

A numeral may be followed only by a unit or a measure word: 三维 is not changed. Not covered: numerals within sentences.
"""

from __future__ import annotations

import re

from truegold.verifiers.math.measures import HAN_UNITS
from truegold.verifiers.math.vocabulary import WORDS
from truegold.verifiers.written_numbers import CHINESE_DIGITS, CHINESE_SCALES, chinese_integer, chinese_places

_DIGIT_SIGNS = "".join(CHINESE_DIGITS)
"""The characters of digits: 一, 二, 三."""
_NUMERAL_SIGNS = "".join((*CHINESE_DIGITS, *CHINESE_SCALES))
"""The characters of numerals: digits, 十, 百, 万."""
_NUMERAL = rf"[{_NUMERAL_SIGNS}\d.]{{1,30}}(?:点[{_NUMERAL_SIGNS}]{{1,20}})?"
"""Matches `三十二`, `三点五`, `32`, `3.5`."""
_MAY_HOLD_PHRASE = re.compile(rf"[{_NUMERAL_SIGNS}分根负比余的半每时又成折下]|无.*解")
"""A quick test: only texts that match are rewritten."""

_REMAINDER = re.compile(rf"([A-Za-z])?\s*除以\s*({_NUMERAL})\s*[，,]?\s*余(?:数[是为]?)?\s*({_NUMERAL})")
"""Matches `x除以7余3`, `除以7，余数是3`."""
_TENTHS = re.compile(rf"([{_DIGIT_SIGNS}\d])[成折]([{_DIGIT_SIGNS}\d])?")
"""Matches `三成` (30%), `八折` (80%) and `八成五` (85%)."""
_COUNT_AND_HALF = re.compile(rf"({_NUMERAL})个半(?=小时|钟头|月|星期)")
"""Matches `3个半` in `3个半小时`."""
_UNITS_AND_HALF = re.compile(rf"({_NUMERAL})([个千公斤小时米天年月吨升元]{{1,3}})半")
"""Matches `3元半`, `2小时半`."""
_MINUTES = re.compile(r"(?<=小时)(\s?\d{1,2}\s?)分(?!钟)")
"""The 30分 of 2小时30分."""
_SPEED = re.compile(
    rf"每(小时|分钟|秒钟|秒|天|分|时)(?:行驶|行|走|跑|飞行|飞)?\s?({_NUMERAL})\s?([一-鿿]{{1,3}}|[a-z]{{1,3}})"
)
"""Matches `每小时行驶60千米`, `每秒5m`."""
_SHORT_DIVISOR = re.compile(r"(?<=[一-鿿a-z])\s?/\s?(时|分)$")
"""The /时 of 60千米/时."""
_LONG_TIME_UNITS = {"时": "小时", "分": "分钟", "秒钟": "秒"}
"""Maps a unit of time in a speed to its usual name."""
_NO_SOLUTION = re.compile(r"(?:原|该|此|这个)?(?:方程|方程组|不等式|不等式组)无(?:实数)?解")
"""Matches `原方程无解`, `不等式组无解`."""

_MIXED_NUMBER = re.compile(rf"({_NUMERAL})又\s?(?:({_NUMERAL})分之({_NUMERAL})|(\d{{1,9}})/(\d{{1,9}}))")
"""Matches `三又二分之一`, `3又1/2`."""
_PERCENT = re.compile(rf"百分之\s?({_NUMERAL})")
"""Matches `百分之二十五`."""
_ROOT_OR_NUMERAL = rf"(?:{_NUMERAL})?\s?(?:倍)?(?:的)?根号(?:下)?\s?(?:{_NUMERAL})|{_NUMERAL}|π|\\pi|[A-Za-z]"
_FRACTION = re.compile(rf"({_NUMERAL})分之\s?({_ROOT_OR_NUMERAL})")
"""Matches `三分之一`, `2分之根号3`, `4分之π`. The divisor comes first."""
_HALF = re.compile(r"一半|二分之一")
_ROOT = re.compile(rf"({_NUMERAL})?\s?(?:倍)?(?:的)?(立方根|三次根号|根号)(?:下)?\s?({_NUMERAL}|[A-Za-z])")
"""Matches `2根号5`, `3倍的根号下2`, `三次根号7`."""
_POWER = re.compile(rf"({_NUMERAL}|[A-Za-z])的(?:({_NUMERAL})次(?:方|幂)|(平方|立方)(?![根米厘分千毫]))")
"""Matches `2的3次方`, `x的平方`. The units 平方米 and the roots 平方根 do not match."""
_RATIO = re.compile(rf"({_NUMERAL})\s?比\s?({_NUMERAL})(?:\s?比\s?({_NUMERAL}))?")
"""Matches `1比2`, `1比2比3`."""
_CLOCK = re.compile(rf"[{_NUMERAL_SIGNS}\d]{{1,3}}点(?:[{_NUMERAL_SIGNS}\d]{{1,3}}分|半|整)")
"""A time of day such as `三点十分`, which is not 3.10."""
_DECIMAL = re.compile(rf"([{_NUMERAL_SIGNS}]{{1,20}})点([{_NUMERAL_SIGNS}]{{1,20}})(?![分钟时])")
"""Matches `三点一四`. The 三点十 of 下午三点十分 does not match, because it is a time of day."""
_MINUS = re.compile(rf"负\s?(?={_NUMERAL})")
"""The 负 of 负七."""

_MEASURE_WORD = rf"(?:[{''.join(sorted(WORDS['chinese_measures']))}][一-鿿]{{0,5}})?"
_LONE_NUMERAL = re.compile(rf"(?:(?:一共|总共|大约|等于|共有|共|约|是|为|有|第)\s?)?(负)?({_NUMERAL})({_MEASURE_WORD})")
"""Matches `一共三十元`, `第七`, `负五度`."""
_UNITS_OF_NUMERAL_SIGNS = frozenset(word for word in HAN_UNITS if word[0] in _NUMERAL_SIGNS)
"""Units that begin like a numeral: the 千 of 千米 also means a thousand."""


def with_chinese_numbers(text: str) -> str:
    """Return the text with its Chinese numbers and phrases as formulas."""
    if _MAY_HOLD_PHRASE.search(text) is None or ("点" in text and _CLOCK.fullmatch(text) is not None):
        return text
    if "余" in text:
        text = _REMAINDER.sub(lambda m: rf"{m[1] or 'x'} \equiv {_arabic(m[3])} \pmod{{{_arabic(m[2])}}}", text)
    if text.startswith("零下"):
        text = f"-{text[2:]}"
    if "成" in text or "折" in text:
        text = _TENTHS.sub(_percentage, text) if _TENTHS.fullmatch(text) else text
    else:
        text = _with_durations_and_speeds(text)
        text = "无解" if "解" in text and _NO_SOLUTION.fullmatch(text) else text
    text = _with_fractions(text)
    text = _with_roots_or_arabic(text)
    if "的" in text:
        text = _POWER.sub(_power, text)
    if "比" in text:
        text = _RATIO.sub(lambda m: ":".join(_arabic(part) for part in m.groups() if part), text)
    if "点" in text:
        text = _DECIMAL.sub(lambda m: _arabic(m[0]), text)
    if (alone := _LONE_NUMERAL.fullmatch(text)) is not None:
        return ("-" if alone[1] else "") + _with_measure_word(alone[2], alone[3])
    return _MINUS.sub("-", text)


def _percentage(tenths: re.Match[str]) -> str:
    return rf"{_arabic(tenths[1])}{_arabic(tenths[2] or '0')}\%"


def _with_durations_and_speeds(text: str) -> str:
    """Return the text with 2小时30分 as 2小时30分钟, 3个半小时 as 3.5小时 and 每小时60千米 as 60千米/小时."""
    if "半" in text:
        text = _COUNT_AND_HALF.sub(lambda m: f"{_arabic(m[1])}.5", text)
        text = _UNITS_AND_HALF.sub(lambda m: f"{_arabic(m[1])}.5{m[2]}" if _arabic(m[1]).isdecimal() else m[0], text)
    if "小时" in text:
        text = _MINUTES.sub(r"\1分钟", text)
    if "每" in text and (speed := _SPEED.fullmatch(text)):
        return f"{_arabic(speed[2])}{speed[3]}/{_LONG_TIME_UNITS.get(speed[1], speed[1])}"
    return _SHORT_DIVISOR.sub(lambda m: f"/{_LONG_TIME_UNITS[m[1]]}", text) if "/" in text else text


def _with_fractions(text: str) -> str:
    """Return the text with mixed numbers, percentages, fractions and halves as formulas."""
    if "又" in text:
        text = _MIXED_NUMBER.sub(_mixed_number, text)
    if "分之" in text:
        text = _PERCENT.sub(lambda m: rf"{_arabic(m[1])}\%", text)
        text = _FRACTION.sub(lambda m: rf"\frac{{{_with_roots_or_arabic(m[2])}}}{{{_arabic(m[1])}}}", text)
    return _HALF.sub(r"\\frac{1}{2}", text) if "一半" in text else text


def _mixed_number(match: re.Match[str]) -> str:
    above, below = (match[3], match[2]) if match[2] else (match[4], match[5])
    return rf"{_arabic(match[1])}\frac{{{_arabic(above)}}}{{{_arabic(below)}}}"


def _arabic(numeral: str) -> str:
    """Return a Chinese numeral in Arabic digits. Other texts are returned unchanged."""
    whole, point, decimals = numeral.partition("点")
    if (whole_number := chinese_integer(whole)) is None:
        return numeral
    return str(whole_number) if not point else f"{whole_number}.{chinese_places(decimals)}"


def _with_roots_or_arabic(text: str) -> str:
    """Return the text with its roots as formulas. If it has no root but is a numeral, return it in Arabic digits."""
    return _ROOT.sub(_root, text) if "根" in text else _arabic(text)


def _root(match: re.Match[str]) -> str:
    degree = "" if match[2] == "根号" else "[3]"
    return rf"{_arabic(match[1] or '')}\sqrt{degree}{{{_arabic(match[3])}}}"


def _power(match: re.Match[str]) -> str:
    exponent = _arabic(match[2]) if match[2] else {"平方": "2", "立方": "3"}[match[3]]
    return f"{_arabic(match[1])}^{{{exponent}}}"


def _with_measure_word(numeral: str, measure_word: str) -> str:
    """Return 30元 for 三十元. Return 3千克 for 三千克, where 千 is part of the unit rather than of the numeral."""
    text = numeral + measure_word
    for unit in _UNITS_OF_NUMERAL_SIGNS:
        if text.endswith(unit) and len(text) > len(unit) > len(measure_word):
            return _arabic(text[: -len(unit)]) + unit
    return _arabic(numeral) + measure_word
