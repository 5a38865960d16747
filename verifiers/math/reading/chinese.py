r"""Chinese numbers and phrases in the spelling of formulas.

    百分之二十五    三分之一       2根号5    负七    三点一四    2的3次方    1比2     25\%   \frac{1}{3}   2\sqrt{5} ...
    一万二千        三十元         第七                                             12000   30元   7
    x除以7余3       一半        三又二分之一                       x \equiv 3 \pmod{7}   \frac{1}{2}   3\frac{1}{2}
    2小时30分       3个半      每小时60千米   方程无解             2小时30分钟   3.5个   60千米/小时   无解

A numeral that stands alone is read where nothing but a measure word follows: 三角形 is a triangle. Not covered:
numerals inside of sentences.
"""

from __future__ import annotations

import re

from truegold.verifiers.math.measures import UNITS
from truegold.verifiers.written_numbers import CHINESE_DIGITS, CHINESE_SCALES, chinese_integer, chinese_places

_DIGITS = "".join(CHINESE_DIGITS)
_NUMERAL_CHARS = "".join((*CHINESE_DIGITS, *CHINESE_SCALES))

_N = rf"[{_NUMERAL_CHARS}\d.]{{1,30}}(?:点[{_NUMERAL_CHARS}]{{1,20}})?"
_ROOTED = rf"(?:{_N})?\s?(?:倍)?(?:的)?根号(?:下)?\s?(?:{_N})|{_N}|π|\\pi|[A-Za-z]"
_MEASURE_CHARS = (
    "个只本名人块张条件台辆支枝朵棵头匹套双对组次种位间层页颗粒瓶杯盒箱袋筐桶根把面艘架座所家班排行列户份道题盏片滴圈步岁天"
    "周日月年倍项段节幅副顶栋幢株串束堆群捆批碗盘壶罐包元角分米克吨升度斤里亩斗尺寸秒时平立毫厘千公两"
)
_MEASURE = rf"(?:[{_MEASURE_CHARS}][一-鿿]{{0,5}})?"
_ALONE = re.compile(rf"(?:(?:一共|总共|大约|等于|共有|共|约|是|为|有|第)\s?)?(负)?({_N})({_MEASURE})")
_UNIT_NUMERALS = frozenset(word for word in UNITS if word[0] in _NUMERAL_CHARS)

_REMAINDER = re.compile(rf"([A-Za-z])?\s*除以\s*({_N})\s*[，,]?\s*余(?:数[是为]?)?\s*({_N})")
_PERCENT = re.compile(rf"百分之\s?({_N})")
_FRACTION = re.compile(rf"({_N})分之\s?({_ROOTED})")
_ROOT = re.compile(rf"({_N})?\s?(?:倍)?(?:的)?(立方根|三次根号|根号)(?:下)?\s?({_N}|[A-Za-z])")
_POWER = re.compile(rf"({_N}|[A-Za-z])的(?:({_N})次(?:方|幂)|(平方|立方)(?![根米厘分千毫]))")
_RATIO = re.compile(rf"({_N})\s?比\s?({_N})(?:\s?比\s?({_N}))?")
_MINUS = re.compile(rf"负\s?(?={_N})")
_DECIMAL = re.compile(rf"([{_NUMERAL_CHARS}]{{1,20}})点([{_NUMERAL_CHARS}]{{1,20}})(?![分钟时])")
_MIXED = re.compile(rf"({_N})又\s?(?:({_N})分之({_N})|(\d{{1,9}})/(\d{{1,9}}))")
_AND_HALF = re.compile(rf"({_N})([个千公斤小时米天年月吨升元]{{1,3}})半")
_TENTHS = re.compile(rf"([{_DIGITS}\d])[成折]([{_DIGITS}\d])?")
_HALF_OF = re.compile(rf"({_N})个半(?=小时|钟头|月|星期)")
_MINUTES = re.compile(r"(?<=小时)(\s?\d{1,2}\s?)分(?!钟)")
_PER = re.compile(rf"每(小时|分钟|秒钟|秒|天|分|时)(?:行驶|行|走|跑|飞行|飞)?\s?({_N})\s?([一-鿿]{{1,3}}|[a-z]{{1,3}})")
_PER_UNIT = re.compile(r"(?<=[一-鿿a-z])\s?/\s?(时|分)$")
_WHOLE_UNITS = {"时": "小时", "分": "分钟", "秒钟": "秒"}
_NO_SOLUTION = re.compile(r"(?:原|该|此|这个)?(?:方程|方程组|不等式|不等式组)无(?:实数)?解")
_HALF = re.compile(r"一半|二分之一")
_MAY_HOLD = re.compile(rf"[{_NUMERAL_CHARS}分根负比余的半每时又成折下]|无.*解")


def with_chinese_numbers(text: str) -> str:
    """Return the text with the numbers and phrases that it writes in Chinese as formulas."""
    if _MAY_HOLD.search(text) is None:
        return text
    if "余" in text:
        text = _REMAINDER.sub(lambda m: rf"{m[1] or 'x'} \equiv {_plain(m[3])} \pmod{{{_plain(m[2])}}}", text)
    text = _with_durations(text)
    if "又" in text:
        text = _MIXED.sub(_mixed, text)
    if "分之" in text:
        text = _PERCENT.sub(lambda m: rf"{_plain(m[1])}\%", text)
        text = _FRACTION.sub(lambda m: rf"\frac{{{_with_roots(m[2])}}}{{{_plain(m[1])}}}", text)
    if "一半" in text:
        text = _HALF.sub(r"\\frac{1}{2}", text)
    text = _with_roots(text)
    if "的" in text:
        text = _POWER.sub(_power, text)
    if "比" in text:
        text = _RATIO.sub(lambda m: ":".join(_plain(part) for part in m.groups() if part), text)
    if "点" in text:
        text = _DECIMAL.sub(lambda m: _plain(m[0]), text)
    alone = _ALONE.fullmatch(text)
    if alone is not None:
        return ("-" if alone[1] else "") + _with_measure(alone[2], alone[3])
    return _MINUS.sub("-", text)


def _with_durations(text: str) -> str:
    """Return the text with hours, halves and speeds as quantities."""
    if text.startswith("零下"):
        text = f"-{text[2:]}"
    if "成" in text or "折" in text:
        tenths = _TENTHS.fullmatch(text)
        return rf"{_plain(tenths[1])}{_plain(tenths[2] or '0')}\%" if tenths else text
    if "半" in text:
        text = _HALF_OF.sub(lambda m: f"{_plain(m[1])}.5", text)
        text = _AND_HALF.sub(lambda m: f"{_plain(m[1])}.5{m[2]}" if _plain(m[1]).isdecimal() else m[0], text)
    if "小时" in text:
        text = _MINUTES.sub(r"\1分钟", text)
    if "每" in text and (speed := _PER.fullmatch(text)):
        return f"{_plain(speed[2])}{speed[3]}/{_WHOLE_UNITS.get(speed[1], speed[1])}"
    if "/" in text:
        text = _PER_UNIT.sub(lambda m: f"/{_WHOLE_UNITS[m[1]]}", text)
    return "无解" if "解" in text and _NO_SOLUTION.fullmatch(text) else text


def _mixed(match: re.Match[str]) -> str:
    above, below = (match[3], match[2]) if match[2] else (match[4], match[5])
    return rf"{_plain(match[1])}\frac{{{_plain(above)}}}{{{_plain(below)}}}"


def _plain(numeral: str) -> str:
    """Return a numeral in Arabic digits; one that mixes both scripts stays as it is."""
    whole, point, decimals = numeral.partition("点")
    whole_number = chinese_integer(whole)
    if whole_number is None:
        return numeral
    if not point:
        return str(whole_number)
    return f"{whole_number}.{chinese_places(decimals)}"


def _with_roots(text: str) -> str:
    return _ROOT.sub(_root, text) if "根" in text else _plain(text)


def _root(match: re.Match[str]) -> str:
    degree = "" if match[2] == "根号" else "[3]"
    return rf"{_plain(match[1] or '')}\sqrt{degree}{{{_plain(match[3])}}}"


def _power(match: re.Match[str]) -> str:
    exponent = _plain(match[2]) if match[2] else {"平方": "2", "立方": "3"}[match[3]]
    return f"{_plain(match[1])}^{{{exponent}}}"


def _with_measure(numeral: str, measure: str) -> str:
    """Return 3千克 for 三千克, where the last sign of the numeral begins a unit."""
    for unit in _UNIT_NUMERALS:
        if (numeral + measure).endswith(unit) and len(numeral + measure) > len(unit) > len(measure):
            head = (numeral + measure)[: -len(unit)]
            return _plain(head) + unit
    return _plain(numeral) + measure
