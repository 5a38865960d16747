r"""Rewrites phrases of English and Chinese that are one value, as a whole answer, as formulas.

    3 hours and 20 minutes    3h20min        3 hours 20 minutes
    a dozen    half a million                12   500000
    either 2 or -5                           2 or -5
    all real numbers except 2 and 3          \mathbb{R} \setminus \{2, 3\}
    2 root 3    the cube root of 5           2\sqrt{3}   \sqrt[3]{5}
    half a litre    5 over 8                 0.5 litre   \frac{5}{8}
    between 1 and 3, inclusive               [1, 3]
    yes, it is                               yes
    one hundred and ten                      one hundred ten
    not 10 but 20                            20

Not covered: such phrases inside of a sentence.

Ratios, fractions and bounds in words, as a whole answer.

    3 to 2    five to four    2 is to 1       3:2   5:4   2:1
    7 out of 12    1 in 6                     \frac{7}{12}   \frac{1}{6}
    three fourths    two and a half           \frac{3}{4}   2\frac{1}{2}
    x is at least 3    大于3                   t \ge 3   t > 3, whatever the letter
    all nonnegative real numbers              t \ge 0

Not covered: such words inside of a sentence.

Answers to the parts of a question: `(1) 5; (2) 7`, `(a) 5 (b) 7`, `i) 2 ii) 9`, `Part A: 12 Part B: 15`.

Each becomes a labelled item, `part 1: 5; part 2: 7`, so that their order counts. Not covered: parts that do not begin
with the first.

Chinese numbers and phrases in the spelling of formulas.

    百分之二十五    三分之一       2根号5    负七    三点一四    2的3次方    1比2     25\%   \frac{1}{3}   2\sqrt{5} ...
    一万二千        三十元         第七                                             12000   30元   7
    x除以7余3       一半        三又二分之一                       x \equiv 3 \pmod{7}   \frac{1}{2}   3\frac{1}{2}
    2小时30分       3个半      每小时60千米   方程无解             2小时30分钟   3.5个   60千米/小时   无解

A numeral that stands alone is read where nothing but a measure word follows: 三角形 is a triangle. Not covered:
numerals inside of sentences.
"""

from __future__ import annotations

import re

from truegold.verifiers.math.measures import MULTIPLIERS, UNITS, unit_of
from truegold.verifiers.math.vocabulary import ANY_OF, BOUNDS, WORDS
from truegold.verifiers.written_numbers import (
    BELOW_HUNDRED,
    CHINESE_DIGITS,
    CHINESE_SCALES,
    ORDINALS,
    PARTS,
    TENS,
    chinese_integer,
    chinese_places,
    number_in_words,
)

_MARK_LETTERS = r"[1-9]|[A-Ea-e]|i{1,3}|iv|v"
_WRAPPED_MARK = re.compile(
    rf"\\(?:text|textbf|mathrm)\s*\{{\s*((?:[Pp]art\s+)?\(?(?:{_MARK_LETTERS})[):]{{1,2}})\s*\}}"
)
_FIRST = re.compile(r"(?:\\(?:text|textbf|mathrm)\s*\{\s*)?(?:\(?[1ai]\)|[Pp]art\s+\(?[A1ai])")
_MARK = re.compile(rf"(?:\b[Pp]art\s+\(?({_MARK_LETTERS})[):.]{{1,2}}|(?<![\w^_])\(?({_MARK_LETTERS})\)[:.]?)\s*")
_SEQUENCES = (tuple("123456789"), tuple("abcde"), ("i", "ii", "iii", "iv", "v"))

MAX_PHRASE_CHARS = 120
"""Longer texts are sentences."""
_MAY_HOLD = re.compile(ANY_OF["phrase_marks"], re.IGNORECASE)
_WRAPPED = re.compile(r"\\(?:text|mathrm|textrm|mbox)\s*\{([^{}]*)\}")
_N = r"-?\d[\d,]*(?:\.\d+)?"
_TWO_MEASURES = re.compile(rf"({_N}) ?([a-z]{{1,10}}) and ({_N}) ?([a-z]{{1,10}})", re.IGNORECASE)
_HOURS_AND_MINUTES = re.compile(r"(\d+) ?(?:h|hrs?) ?(\d+) ?(?:m|mins?)(?: ?(\d+) ?(?:s|secs?))?", re.IGNORECASE)
_SMALLER_PARTS = frozenset({"s", "dollar", "sterling", "month", "kg", "degree"})
"""The dimensions in which a second, smaller unit adds to the first; lengths of feet and inches are besides."""
_MULTIPLE = re.compile(r"(half )?(?:an?|one) (dozen|hundred|thousand|million|billion)(?: [a-z]{1,20})?", re.IGNORECASE)
_HALF_OF_UNIT = re.compile(r"half an? ([a-z]{1,12})", re.IGNORECASE)
_BETWEEN = re.compile(r"(?:x is )?between (-?\d+) and (-?\d+),? \(?inclusive\)?", re.IGNORECASE)
_OVER = re.compile(rf"({_N}) over ({_N})", re.IGNORECASE)
_EITHER = re.compile(r"\beither (?=\S{1,20} or \S{1,20}$)", re.IGNORECASE)
_EXCEPT = re.compile(
    r"(?:x (?:is |can be ))?(?:all|any|every|the) (?:real )?(?:numbers?|reals?|values?)(?: of x| x)?,?"
    r" (?:except|other than|but)(?: for| not)?(?: x ?=)? ([^a-zA-Z]{1,40}(?:(?:and|or) [^a-zA-Z]{1,20})?)",
    re.IGNORECASE,
)
_ROOT = re.compile(rf"(?:({_N}) (?:times )?)?(?:the )?(?:(square|cube) )?root (?:of )?(\d+)", re.IGNORECASE)
_AFFIRMED = re.compile(r"(yes|no)[,.;:] ?((?:[a-z']+,? ?){1,8})\.?", re.IGNORECASE)
_INSTEAD = re.compile(
    r"(?:it(?:'s| is) |es ist |es )?(?:not|nicht|no|pas) (?:es )?\S{1,20},?"
    r" (?:but|it's|it is|sondern|es ist|sino|es|mais) (\S{1,30})",
    re.IGNORECASE,
)
_HUNDRED_AND = re.compile(
    rf"\b(hundred|thousand) and (?=(?:{'|'.join(BELOW_HUNDRED)})\b)(?!\w+ (?:hundred|thousand)\b)", re.IGNORECASE
)
_OPPOSING = re.compile(r"\b(?:yes|no|not|but|however|unless|except|wrong|false|true|cannot|n't)\b|n't\b", re.IGNORECASE)
MAX_SPOKEN_CHARS = 120
"""Longer texts are sentences."""
_WORD = "|".join(sorted(BELOW_HUNDRED, key=len, reverse=True))
_COUNT = rf"(?:-?\d[\d,]*(?:\.\d+)?|(?:{'|'.join(TENS)})[- ](?:{_WORD})|{_WORD})"
_PART_NAMES = PARTS | ORDINALS
_PART = "|".join(sorted(_PART_NAMES, key=len, reverse=True))
_SPOKEN_RATIO = re.compile(
    rf"(?:(?:the |a )?ratio (?:of |is )?)?({_COUNT}) (?:is )?to ({_COUNT})(?: (?:is )?to ({_COUNT}))?", re.IGNORECASE
)
_SHARE = re.compile(rf"({_COUNT}) (?:out of|in|of) (?:every )?({_COUNT})(?: [a-z]{{1,20}})?", re.IGNORECASE)
_SPOKEN_FRACTION = re.compile(
    rf"(?:(?:({_COUNT}) and )?(an?|{_COUNT})[- ])({_PART})(?: of [a-z ]{{1,30}})?", re.IGNORECASE
)
_SPOKEN = re.compile(
    rf"\b(?:to|out of|in|of|half|halves|(?:non-?)?(?:negative|positive)|minus|quarters?|{_PART}|than|least|most)\b"
    r"|[大小多少]于|[至最][少多]|不[大小超]",
    re.IGNORECASE,
)
_NEGATIVE = re.compile(rf"(?:negative|minus) ({_COUNT})", re.IGNORECASE)
_WRAPPING = re.compile(r"\\(?:text|mathrm|textrm|mbox)\s*\{([^{}]*)\}|\\[ ,;:!](?![A-Za-z])|~")
_SIGNED_REALS = re.compile(
    r"(?:the set of )?(?:all |any )?(?:the )?(non-?negative|non-?positive|positive|negative) "
    r"(?:real numbers?|reals|real values?)(?: of [a-z])?",
    re.IGNORECASE,
)
_SIDES = {"nonnegative": r"\ge", "nonpositive": r"\le", "positive": ">", "negative": "<"}
_OF_THE_NUMBERS = re.compile(r"(?<=\d)的(?:所有|一切)?(?:实数|数)$")
_BOUND = re.compile(
    r"(?:(?:all|any) (?:real )?(?:numbers?|values?|reals|x)(?: of ([a-z]))?(?: that are| which are)?"
    r"|([a-z])(?: is| must be)?)? ?"
    rf"({'|'.join(BOUNDS)}) ?(\S.*)",
    re.IGNORECASE,
)
_DIGITS = "".join(CHINESE_DIGITS)
_NUMERAL_CHARS = "".join((*CHINESE_DIGITS, *CHINESE_SCALES))
_HAN = rf"[{_NUMERAL_CHARS}\d.]{{1,30}}(?:点[{_NUMERAL_CHARS}]{{1,20}})?"
_ROOTED = rf"(?:{_HAN})?\s?(?:倍)?(?:的)?根号(?:下)?\s?(?:{_HAN})|{_HAN}|π|\\pi|[A-Za-z]"
_MEASURE = rf"(?:[{''.join(sorted(WORDS['chinese_measures']))}][一-鿿]{{0,5}})?"
_ALONE = re.compile(rf"(?:(?:一共|总共|大约|等于|共有|共|约|是|为|有|第)\s?)?(负)?({_HAN})({_MEASURE})")
_UNIT_NUMERALS = frozenset(word for word in UNITS if word[0] in _NUMERAL_CHARS)
_REMAINDER = re.compile(rf"([A-Za-z])?\s*除以\s*({_HAN})\s*[，,]?\s*余(?:数[是为]?)?\s*({_HAN})")
_PERCENT = re.compile(rf"百分之\s?({_HAN})")
_HAN_FRACTION = re.compile(rf"({_HAN})分之\s?({_ROOTED})")
_HAN_ROOT = re.compile(rf"({_HAN})?\s?(?:倍)?(?:的)?(立方根|三次根号|根号)(?:下)?\s?({_HAN}|[A-Za-z])")
_POWER = re.compile(rf"({_HAN}|[A-Za-z])的(?:({_HAN})次(?:方|幂)|(平方|立方)(?![根米厘分千毫]))")
_HAN_RATIO = re.compile(rf"({_HAN})\s?比\s?({_HAN})(?:\s?比\s?({_HAN}))?")
_MINUS = re.compile(rf"负\s?(?={_HAN})")
_DECIMAL = re.compile(rf"([{_NUMERAL_CHARS}]{{1,20}})点([{_NUMERAL_CHARS}]{{1,20}})(?![分钟时])")
_MIXED = re.compile(rf"({_HAN})又\s?(?:({_HAN})分之({_HAN})|(\d{{1,9}})/(\d{{1,9}}))")
_AND_HALF = re.compile(rf"({_HAN})([个千公斤小时米天年月吨升元]{{1,3}})半")
_TENTHS = re.compile(rf"([{_DIGITS}\d])[成折]([{_DIGITS}\d])?")
_HALF_OF = re.compile(rf"({_HAN})个半(?=小时|钟头|月|星期)")
_MINUTES = re.compile(r"(?<=小时)(\s?\d{1,2}\s?)分(?!钟)")
_PER = re.compile(
    rf"每(小时|分钟|秒钟|秒|天|分|时)(?:行驶|行|走|跑|飞行|飞)?\s?({_HAN})\s?([一-鿿]{{1,3}}|[a-z]{{1,3}})"
)
_PER_UNIT = re.compile(r"(?<=[一-鿿a-z])\s?/\s?(时|分)$")
_WHOLE_UNITS = {"时": "小时", "分": "分钟", "秒钟": "秒"}
_NO_SOLUTION = re.compile(r"(?:原|该|此|这个)?(?:方程|方程组|不等式|不等式组)无(?:实数)?解")
_HAN_HALF = re.compile(r"一半|二分之一")
_MAY_HOLD_HAN = re.compile(rf"[{_NUMERAL_CHARS}分根负比余的半每时又成折下]|无.*解")


def with_numbered_parts(text: str) -> str:
    """Return the text with its numbered parts as a labelled list; any other text as it is."""
    if _FIRST.match(text) is None:
        return text
    plain = _WRAPPED_MARK.sub(r"\1", text)
    marks = list(_MARK.finditer(plain))
    if len(marks) < 2 or marks[0].start() > 0:
        return text
    names = tuple((mark[1] or mark[2]).lower() for mark in marks)
    if names not in {sequence[: len(names)] for sequence in _SEQUENCES}:
        return text
    ends = [*(mark.start() for mark in marks[1:]), len(plain)]
    answers = [plain[mark.end() : end].strip(" ;,.") for mark, end in zip(marks, ends, strict=True)]
    if not all(answers):
        return text
    return "; ".join(f"\\text{{part {part}}}: {answer}" for part, answer in enumerate(answers, 1))


def with_usual_phrases(text: str) -> str:  # noqa: PLR0911, one for each form
    """Return a whole answer in words as a formula or a quantity; any other text as it is."""
    if len(text) > MAX_PHRASE_CHARS or _MAY_HOLD.search(text) is None:
        return text
    plain = " ".join(_WRAPPED.sub(r" \1 ", text).replace("~", " ").split())
    if (timed := _HOURS_AND_MINUTES.fullmatch(plain)) is not None:
        return f"{timed[1]} hours {timed[2]} minutes" + (f" {timed[3]} seconds" if timed[3] else "")
    if (measures := _TWO_MEASURES.fullmatch(plain)) is not None and _add_up(measures[2], measures[4]):
        return f"{measures[1]} {measures[2]} {measures[3]} {measures[4]}"
    if (multiple := _MULTIPLE.fullmatch(plain)) is not None:
        value = MULTIPLIERS[multiple[2].lower()]
        return str(value // 2 if multiple[1] else value)
    if (half := _HALF_OF_UNIT.fullmatch(plain)) is not None:
        return f"0.5 {half[1]}" if unit_of(half[1]) else text
    if (between := _BETWEEN.fullmatch(plain)) is not None:
        return f"[{between[1]}, {between[2]}]"
    if (over := _OVER.fullmatch(plain)) is not None:
        return rf"\frac{{{over[1]}}}{{{over[2]}}}"
    if (excepted := _EXCEPT.fullmatch(plain)) is not None:
        values = re.sub(r"\s*,?\s*(?:and|or)\s*", ", ", excepted[1])
        return rf"\mathbb{{R}} \setminus \{{{values}\}}"
    if (root := _ROOT.fullmatch(plain)) is not None:
        degree = "[3]" if (root[2] or "").lower() == "cube" else ""
        return rf"{root[1] or ''}\sqrt{degree}{{{root[3]}}}"
    if (affirmed := _AFFIRMED.fullmatch(plain)) is not None:
        return text if _OPPOSING.search(affirmed[2]) else affirmed[1]
    if (replacement := _INSTEAD.fullmatch(plain)) is not None:
        return replacement[1]
    text = _HUNDRED_AND.sub(r"\1 ", text)
    return _EITHER.sub("", text) if "ither" in text else text


def _add_up(larger: str, smaller: str) -> bool:
    """Tell whether a second quantity adds to the first, as inches do to feet; two lengths in metres are two lengths."""
    first, second = unit_of(larger), unit_of(smaller)
    if first is None or second is None or first.dimension != second.dimension or first.factor <= second.factor:
        return False
    dimension = first.dimension[0][0] if len(first.dimension) == 1 else ""
    return dimension in _SMALLER_PARTS or (larger.lower() in ("feet", "foot", "ft") and dimension == "m")


def with_spoken_numbers(text: str) -> str:  # noqa: PLR0911, one for each form
    """Return a whole answer in words as a formula; any other text as it is."""
    is_formula = "\\" in text and not text[0].isalpha() and "\\text" not in text and "\\mathrm" not in text
    if is_formula or len(text) > MAX_SPOKEN_CHARS or _SPOKEN.search(text) is None:
        return text
    plain = " ".join(_WRAPPING.sub(r" \1 ", text).split())
    if (ratio := _SPOKEN_RATIO.fullmatch(plain)) is not None:
        return ":".join(_digits(part) for part in ratio.groups() if part)
    share = _SHARE.fullmatch(plain)
    if share is not None and not (re.search(r"\d of \d", plain) or (" of " in plain and "out of" not in plain)):
        return rf"\frac{{{_digits(share[1])}}}{{{_digits(share[2])}}}"
    if (fraction := _SPOKEN_FRACTION.fullmatch(plain)) is not None:
        return _spoken_fraction(fraction)
    if (negative := _NEGATIVE.fullmatch(plain)) is not None:
        return f"-{_digits(negative[1])}"
    if (signed := _SIGNED_REALS.fullmatch(plain)) is not None:
        return f"t {_SIDES[signed[1].lower().replace('-', '')]} 0"
    if (bound := _BOUND.fullmatch(_OF_THE_NUMBERS.sub("", plain))) is not None:
        return f"{bound[1] or bound[2] or 't'} {BOUNDS[bound[3].lower()]} {bound[4]}"
    return text


def _spoken_fraction(match: re.Match[str]) -> str:
    below = _PART_NAMES[match[3].lower()]
    above = "1" if match[2].lower() in ("a", "an") else _digits(match[2])
    whole = _digits(match[1]) if match[1] else ""
    return rf"{whole}\frac{{{above}}}{{{below}}}"


def _digits(text: str) -> str:
    """Return a number of a phrase in digits; words that are several numbers stay as they are."""
    value = number_in_words(text.lower()) if text[0].isalpha() else None
    return text if value is None else str(value)


def with_chinese_numbers(text: str) -> str:
    """Return the text with the numbers and phrases that it writes in Chinese as formulas."""
    if _MAY_HOLD_HAN.search(text) is None:
        return text
    if "余" in text:
        text = _REMAINDER.sub(lambda m: rf"{m[1] or 'x'} \equiv {_plain(m[3])} \pmod{{{_plain(m[2])}}}", text)
    text = _with_durations(text)
    if "又" in text:
        text = _MIXED.sub(_mixed, text)
    if "分之" in text:
        text = _PERCENT.sub(lambda m: rf"{_plain(m[1])}\%", text)
        text = _HAN_FRACTION.sub(lambda m: rf"\frac{{{_with_roots(m[2])}}}{{{_plain(m[1])}}}", text)
    if "一半" in text:
        text = _HAN_HALF.sub(r"\\frac{1}{2}", text)
    text = _with_roots(text)
    if "的" in text:
        text = _POWER.sub(_power, text)
    if "比" in text:
        text = _HAN_RATIO.sub(lambda m: ":".join(_plain(part) for part in m.groups() if part), text)
    if "点" in text:
        text = _DECIMAL.sub(lambda m: _plain(m[0]), text)
    if (alone := _ALONE.fullmatch(text)) is not None:
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
    if (whole_number := chinese_integer(whole)) is None:
        return numeral
    return str(whole_number) if not point else f"{whole_number}.{chinese_places(decimals)}"


def _with_roots(text: str) -> str:
    return _HAN_ROOT.sub(_han_root, text) if "根" in text else _plain(text)


def _han_root(match: re.Match[str]) -> str:
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
