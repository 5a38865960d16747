r"""Sentences that name a value and do not answer with it.

    The answer isn't 5.                                       denied
    答えは5ではない。                                           denied
    So 15 is incorrect.                                       denied
    Thus the probability is less than 7.                      denied: a bound; `at least 7` may answer
    There isn't enough information to find f(0).              withheld
    I tried 7 methods and none worked.                        withheld
    The answer is 12 if n is even, and 13 if n is odd.        withheld
    The answer is not 5 but 7.                                7 in the place of 5
    So 5 students did not pass.                               (nothing of these: the words deny something else)

A denial stands right beside the value: `is not 5`, `5 is wrong`. Not covered: denials at a distance, in languages that
are not listed, and doubt without a word for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import islice

from truegold.verifiers.extract.values import has_value

MAX_NUMBERS = 8
"""Numbers of a line that are looked at."""

_NOT = r"(?:\bnot|n['’]t|\bnever|\bcannot)"
_MARKUP = r"[\s$\\(\[*_]{0,6}"
"""What may stand between a word and a formula."""


def _any_of(alternatives: Iterable[str], behind: str = "") -> re.Pattern[str]:
    """Return a pattern that finds one of several."""
    return re.compile(rf"(?:{'|'.join(alternatives)}){behind}", re.IGNORECASE | re.DOTALL)


_DENIED_BEFORE = _any_of(
    (
        rf"{_NOT}(?: (?:possibly|really|actually|simply|just))?"
        r"(?: (?:be|been|have been|equal(?:s| to)?|be equal to|the answer))?",
        r"\bfail(?:s|ed)? to (?:be|equal)|\bfar from|\brul(?:es|ed|ing) out|\bexclud(?:es|ed|ing)|\bdiffers from"
        r"|\bdifferent from",
        r"\bwrong to (?:say|answer|claim)|δεν (?:είναι|ισούται με)",
        r"\b(?:incorrect|wrong|not)\W{0,3}:",
        r"\bno (?:es|son|era|puede ser|vale)|\bnão (?:é|pode ser|vale)|\bnon (?:è|può essere|vale)",
        r"\b(?:n['’]est|ne vaut|ne fait|ne peut)(?: pas)(?: (?:valoir|être|égaler))?|\bnicht|\bniet|\binte|\bikke",
        r"\bне(?: (?:равн[аоы]?|равен|может быть(?: равн[аоы]?| равен)?))?|\bnie(?: (?:jest|wynosi))?",
        r"\bkhông(?: phải)?(?: là)?|\bbukan",
        r"不(?:是|等[于於]|可能(?:是|为|為)?|会是|會是|能是|为|為|应该?是)|并非|並非|绝非|排除",
    ),
    behind=rf"{_MARKUP}$",
)
"""What denies the value that follows it at once."""

_UNIT = r"(?:\s?[^\W\d_]{1,12})?"
_DENIED_BEHIND = _any_of(
    (
        r"^\W{0,4}(?:is|was)(?:n['’]t| not)? (?:wrong|incorrect|false|impossible|excluded|invalid|rejected"
        r"|extraneous|ruled out)\b",
        r"^\W{0,4}(?:is|was)(?:n['’]t| not) (?:the (?:right |correct )?answer|right|correct|possible|valid"
        r"|a solution)\b",
        r"^\W{0,4}(?:(?:does|do|did|can|could|will|would)(?: ?not|n['’]t)|fails to) (?:work|be (?:right|correct"
        r"|the answer))\b",
        r"^[\s$*]{0,4}(?:cannot|fails\b|leads? to a contradiction)",
        rf"^{_UNIT},? (?:keine Lösung|ist falsch|est faux|n['’]est pas|не подходит|неверно)|^{_UNIT} (?:değil|नहीं)",
        r"^[^，。\d（(]{0,4}(?:不(?:对|對|正确|正確|可能|成立|符合)|是错|是錯|被排除)",
        r"^[^、。\d（(]{0,4}(?:ではな[いかく]|ではありません|じゃない|にはなりません|は間違|は誤り|は違|は正しくな|とは(?:言え|なら)な)",
        r"^[^,.\d（(]{0,4}?\s?(?:이|가|은|는)?\s?(?:아니|아닙|틀[렸린리])",
    )
)
"""What denies the value that stands before it."""

_EMBEDDING = _any_of(
    (
        r"\b(?:I|we) (?:do not|don['’]t|cannot|can['’]t|never|would not|wouldn['’]t) (?:think|believe|say|claim)\b",
        r"\bI doubt\b|\bthere(?: is|['’]s) no way\b",
        r"\bit(?: is|['’]s) (?:false|not true|not the case|impossible|unlikely) that\b",
        r"\b(?:students?|people|someone|somebody|one|calculator)\b[^.,;]{0,20}\b(?:would|might) (?:answer|say"
        r"|think|guess)\b",
        r"\banswer key says\b|\b(?:nobody|no one) (?:would|could) (?:answer|say)\b",
    )
)
"""What denies the clause that follows it, or puts it into another mouth."""

_BOUND = _any_of(
    (
        r"\b(?:is|are|was|were|be|has|have|needs?|takes?) (?:strictly |much )?"
        r"(?:somewhere )?(?:less than|greater than|more than|fewer than|larger than|smaller than|below|above|over"
        r"|under)"
        r"|\b(?:it|that|which|total|sum|answer) exceeds",
        r"\bstrictement (?:inférieure?|supérieure?)s? à|\bes (?:menor|mayor) que|\bé (?:menor|maior) que"
        r"|\bist (?:kleiner|größer) als",
        r"(?<!不)(?:小于|大于|少于|多于|小於|大於|少於|多於)",
    ),
    behind=rf"{_MARKUP}$",
)
_NO_BOUND = re.compile(r"(?:\b(?:no|not|never|cannot)|n['’]t) (?:be )?(?:\w+ )?than\W*$", re.IGNORECASE)

_WITHHELD = _any_of(
    (
        r"(?:\bnot |n['’]t |\bin)(?:enough|sufficient) (?:information|data|details|context)",
        r"^\W*no idea\b|\bstill have no answer\b|\bI (?:got|am|was) stuck\b"
        r"|\bI(?:['’]m| am) (?:not sure|unsure|unable to)\b",
        r"\bI (?:cannot|can['’]t|can not|could not|couldn['’]t) (?:answer|solve|find|finish|determine|compute"
        r"|complete)\b",
        r"\b(?:problem|question|statement|text)\b[^.,;]{0,20}\b(?:does|did)(?: not|n['’]t) (?:say|state|specify"
        r"|provide|give|tell)\b",
        r"\bcannot be (?:determined|solved|answered|found|computed|calculated)\b|\bimpossible to (?:determine|say"
        r"|tell|know)\b",
        r"\bnone (?:of [^.,]{1,60} )?(?:work(?:s|ed)?|leads? anywhere|succeed(?:s|ed)?)\W*$|\bwithout success\W*$",
        r"^\W*if\b[^.]*\bhad\b[^.]*\bwould have been\b",
        r"^\W*(?:maybe|perhaps|possibly|so far)\b|\bnothing follows\b|\bmust be a (?:misprint|mistake|typo)\b",
        r"\binsufficient to\b|\bran out of (?:time|space)\b|\bthere is no solution (?:with|for)\b",
        r"\bno hay suficiente|\bno se puede (?:determinar|calcular|resolver)|\bnicht (?:berechn|bestimm|lös)en\b",
        r"\bimpossible de (?:déterminer|calculer)|невозможно (?:определить|найти|вычислить)|недостаточно (?:данных"
        r"|информации)",
        r"无法(?:求|确定|计算|得出|判断|解)|無法(?:求|確定|計算)|(?:信息|条件|條件)不足|(?:没有|没)得到答案",
        r"(?:条件|情報)が?(?:足りな|不足)|求められ(?:ない|ませ)|[分わ]か(?:りません|らない)",
        r"(?:정보|조건)[가이]? ?(?:부족|충분하지)|구할 수 없|알 수 없|모르겠",
    )
)
"""What says that there is no answer."""

_CONDITIONAL = re.compile(
    r"\d\S{0,3} if\b[^.]*\d[^.]*\b(?:if|otherwise)\b|\b(?:answer|result|value) depends on\b", re.IGNORECASE
)
_RESIGNED = re.compile(
    r"\bI(?: have|['’]ve)? (?:do not know|don['’]t know|give up|gave up|given up|no idea|no clue)\b|我(?:放弃|不知道)",
    re.IGNORECASE,
)
"""A value behind one of these is a guess."""
_VALUE_BEHIND = re.compile(r"[,;:，；：—]|\b(?:yet|but)\b")

_DIGITS = rf"{_MARKUP}[-+−]?\d[\d.,/]{{0,20}}{_MARKUP}"
_DENIAL = rf"(?:{_NOT}|\bno (?:es|son)|\bnão(?: é)?|\bnon(?: è)?|\bnicht|\bpas|\bне|不是|并非|並非)"
_INSTEAD = r"(?:but(?: rather)?|rather,?|it is|it['’]s|sino|sondern|mais|mas?|e sim|а|而是)\s?,?\s?(?:it is|it['’]s)?"
_CONTRAST = re.compile(
    rf"{_DENIAL}\s?{_DIGITS}\s?[,;，；]?\s?{_INSTEAD}\s?(?P<instead>{_DIGITS}[^\s\d,，]{{0,12}})[\s.。!$]*$"
    rf"|{_DIGITS}[^\s\d、]{{0,3}}?(?:ではなく(?:て)?|じゃなくて|(?:가|이) 아니라)[、,]?\s?"
    rf"(?P<eastern>{_DIGITS}(?!.{{0,8}}(?:ない|ません|아니|아닙)).{{0,12}}?)$",
    re.IGNORECASE,
)
_TURNED_DOWN = re.compile(
    r"\s?,?\s(?:(?:and|but) not|rather than|instead of)\s(?=[$\\(*]{0,4}[-\d√])|[，,]?而(?:不是|非)"
)
_BEFORE_BOX = re.compile(rf"\b(?:is|are|was|be|equals?)(?: not|n['’]t)(?: equal to)?{_MARKUP}$|不是{_MARKUP}$")
_FIGURES = re.compile(r"(?<![\d.,])[-−]?\d")
_UP_TO_FIGURES = re.compile(r".*(?:\d[%)\]]{0,2}|[$}])", re.DOTALL)
_CLAUSE_BREAK = re.compile(r"[,;，；]|\b(?:but|yet)\b")


def contrasted(sentence: str) -> str | None:
    """Return the value that a sentence puts in the place of one that it denies: `not 5 but 7` -> `7`; else None."""
    match = _CONTRAST.search(sentence)
    return (match["instead"] or match["eastern"]).strip() if match is not None else None


def preferred(sentence: str) -> str:
    """Return a sentence without the value that it turns down: `15 rather than 14` -> `15`."""
    match = _TURNED_DOWN.search(sentence)
    return sentence[: match.start()] if match is not None and match.start() else sentence


def is_withheld(sentence: str) -> bool:
    """Return whether a sentence says that it has no answer; `r is not given, yet the ratio is 5` has one."""
    if _RESIGNED.search(sentence):
        return True
    return any(not _gives_value(sentence[match.end() :]) for match in _WITHHELD.finditer(sentence))


def _gives_value(rest: str) -> bool:
    clause = _VALUE_BEHIND.search(rest)
    return clause is not None and has_value(rest[clause.end() :])


def is_conditional(sentence: str) -> bool:
    """Return whether a sentence gives one value on a condition and another otherwise."""
    return _CONDITIONAL.search(sentence) is not None


def is_attributed(lead: str) -> bool:
    """Return whether the words before a value say that another holds it, or that it is not believed."""
    return _EMBEDDING.search(_CLAUSE_BREAK.split(lead)[-1]) is not None


def is_denied(sentence: str, value: str, *, first: bool = False) -> bool:
    """Return whether the words beside a value deny it, or make it a mere bound.

    first: whether its first occurrence counts, as behind an announcement, or its last one.
    """
    # Words behind the figures may have been taken for a unit: `4 does`.
    figures = _UP_TO_FIGURES.match(value)
    value = figures[0] if figures else value
    starts = _occurrences(sentence, value)
    if not starts:
        return False
    start = starts[0] if first else starts[-1]
    before, after = sentence[:start], sentence[start + len(value) :]
    if _BOUND.search(before):
        return _NO_BOUND.search(before) is None
    is_refused = _DENIED_BEFORE.search(before) or _DENIED_BEHIND.search(after)
    return is_refused is not None or is_attributed(before)


def denies_a_number(text: str) -> bool:
    """Return whether a number in a text is denied by the words right before it."""
    figures = islice(_FIGURES.finditer(text), MAX_NUMBERS)
    return any(_DENIED_BEFORE.search(text[: match.start()]) for match in figures)


def is_link_denied(link: str) -> bool:
    """Return whether the words that announce an answer end with a denial: `la respuesta no es`."""
    return _DENIED_BEFORE.search(link) is not None


def is_box_denied(before: str) -> bool:
    r"""Return whether a box is denied by the words right before it: `the answer is not \boxed{7}`."""
    return _BEFORE_BOX.search(before) is not None


def _occurrences(sentence: str, value: str) -> list[int]:
    """Return where a value stands that is no part of a longer number."""
    pattern = re.escape(value)
    if value[:1].isdigit():
        pattern = rf"(?<![\d−-])(?<!\d[.,]){pattern}"
    if value[-1:].isdigit():
        pattern = rf"{pattern}(?![.,]?\d)"
    return [match.start() for match in re.finditer(pattern, sentence)]
