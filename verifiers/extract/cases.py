r"""Recognises an answer that holds only in one case, so the response does not commit to it.

    If n is even, the answer is 5. If n is odd, the answer is 6.  -> two answers on two conditions: none is chosen
    If n is even, it is 5. Otherwise, it is 6.                    -> the same, without announcements
    If n is even, the answer is 5. If n is odd, it is 5 too.      -> 5 in both cases
    If x = 3, the answer is 5.                                    -> none, unless problem or response says x = 3
    If Tom has 3 apples and buys 2, the answer is 5.              -> 5: the condition repeats the problem
    If 2x = 10, then x = 5.      So if x = 3, the answer is 5.    -> 5: a conclusion

A condition stands at the beginning of its sentence, or after the value. Not covered: cases that only words tell
apart (`if she keeps one, she has 6`). A solution adds up its steps, and states what it assumes, in such words.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from truegold.verifiers.extract.denials import PATTERNS
from truegold.verifiers.extract.stated_values import ANY_OF

MAX_CASE_CHARS = 2_000
"""Maximum number of characters at the end of a response that are searched for cases."""

CASE_MARKS = (
    "if ", "If ", "when", "When", " case", "Case ", "Then ", "then ", "or even", "or odd", "nless ", "ssuming", "uppos",
    "rovided", "Should ", "therwise", "lse ", " si ", "Si ", "inon", " se ", "Se ", "enn ", "onst ", "alls ", "сли ",
    "наче", "eśli ", "若", "当", "當", "时", "如果", "要是", "假", "倘", "只要", "情况", "那么", "则", "否",
    "もし", "만약",
)  # fmt: skip
"""A quick test: a line that holds in one case contains one of these marks."""

_CONDITIONS = "|".join(PATTERNS["conditions"])
_OTHERWISE = (
    r"otherwise|else|if not|sinon|si no|sonst|altrimenti|senão|anders|inaczej|иначе|aksi|否则|否則|(?:如果|若|要是)不"
)
_END = r"(?:(?<![A-Za-z])|(?![A-Za-z]))"
"""The end of a word in Latin letters; a Chinese word ends anywhere."""
_SENTENCES = re.compile(r"[.!?;]\s+|\n+|[。！？；]|,\s+(?=(?:and|or|but)\s+if\b)")
_OPENING = re.compile(
    rf"[\W_]*(?P<concludes>(?:so|thus|hence|therefore|then),?\s+)?(?:(?:and|but|or|however|now|also),?\s+)?"
    rf"(?:(?P<otherwise>(?:{_OTHERWISE}){_END})"
    rf"|(?:{_CONDITIONS}|suppos(?:e|ing)|should|(?:in )?case \d|[如要]是|假[设如定]|倘若|只要"
    rf"|第[一二三]种?情况|情况[一二三\d]|(?=[A-Za-z]\s?[是为=<>≤≥][^，。]{{1,12}}时)){_END}(?P<condition>[^,，:：]*))",
    re.IGNORECASE,
)
"""The beginning of a sentence that holds in one case: `if n is even`, `otherwise`."""
_TRAILING = re.compile(rf"[\s(（]+(?:{_CONDITIONS}){_END}(?P<condition>.*)", re.IGNORECASE)
"""A condition after a value: `5 if n is even`."""
_CONSEQUENCE = re.compile(r"[\W_]*(?:then\b|那么|则)", re.IGNORECASE)
_SUPPOSED = re.compile(r"[\W_]*(?:suppos(?:e|ing)|assum(?:e|ing)|(?:in )?case \d|假[设如定]|情况)", re.IGNORECASE)
_ANNOUNCES = re.compile(
    rf"\banswers?\b|boxed|答案|选|正确|错误|\b(?:true|false|correct)\b|{ANY_OF['answer_words']}", re.IGNORECASE
)
_VALUE = re.compile(
    r"\\[dt]?frac\{[^{}]{1,40}\}\{[^{}]{1,40}\}|[-−]?\d[\d.,/]{0,40}(?<![.,])|(?<![A-Za-z])[A-J](?![A-Za-z'’])"
    r"|\b(?:true|false|(?:in)?correct|(?:yes|no)(?=\W*$))\b|不?正确|错误"
)
_SO = re.compile(r"\b(?:so|thus|hence|therefore)\b|所以|因此|故", re.IGNORECASE)
_DISMISSED = re.compile(
    r"\b(?:no solutions?|impossible|contradict\w*|undefined)\b|无解|矛盾|不可能|舍去", re.IGNORECASE
)
"""Words for a case without an answer."""
_COMPARISON = re.compile(r"(?<![A-Za-z])[A-Za-z]\s?[<>=≤≥≠]\s?[-−]?\d[\d.]*")
_OF_VARIABLE = r"\$?(?<![A-Za-z])[A-Za-z](?![A-Za-z])\$?\s?"
_RELATION = (
    r"(?:(?:=|<|>|≤|≥|≠|\\[gln]eq?t?)\s?[-−]?(?:\d[\d.]*|[A-Za-z](?![A-Za-z]))"
    r"|(?:is|be|are)\s(?:not\s)?(?:an?\s)?(?:even|odd|positive|negative|zero|prime|composite|divisible|[-−]?\d+)\b.*"
    r"|[是为](?:[奇偶正负质素合整]数|[-−]?\d+))"
)
_VARIES = re.compile(_OF_VARIABLE + _RELATION, re.IGNORECASE)
"""A condition on a variable: `n is even`, `x > 0`."""
_ASSUMED = re.compile(rf"\s*{_OF_VARIABLE}{_RELATION}[$\s时]*", re.IGNORECASE)
"""A condition that only gives a variable its value, `x = 3`. An equation such as `2x = 10` does not match."""
_TOKEN = re.compile(r"\d+(?:\.\d+)?|(?<![A-Za-z])(?:[A-Za-z]|[A-Za-z]{3,})(?![A-Za-z])|[奇偶正负质素合整]数")
_COPULAS = frozenset({"are", "not", "neq", "leq", "geq"})


class _Sentence(NamedTuple):
    """A sentence, the value at its end, and the condition of this value."""

    text: str
    value: str | None
    announces: bool
    condition: str | None
    """None for a sentence without a condition."""
    is_otherwise: bool = False
    concludes: bool = False


def is_open_case(tail: str, answer: str, problem: str | None) -> bool:
    """Return whether the answer of a text holds in one of several cases, or under a condition that is not known."""
    texts = [text for text in _SENTENCES.split(tail) if text.strip()] or [tail]
    stating = [index for index, text in enumerate(texts) if answer in text]
    announcing = [index for index in stating if _ANNOUNCES.search(texts[index])]
    index = (announcing or stating or [len(texts) - 1])[-1]
    case = _sentence(texts, index)
    if case.condition is None or case.value is None or _is_concluded(texts, index, case.value):
        return False
    for other in (_sentence(texts, i) for i in (*range(index - 1, -1, -1), *range(index + 1, len(texts)))):
        if other.value is None or not _are_parallel(case, other):
            continue
        if other.condition is None:
            break
        return other.value != case.value
    if not problem or case.concludes or any(_sentence(texts, i).condition is None for i in stating):
        return False
    return _is_assumed(case, f"{problem} {' '.join(texts[:index])}")


def _is_concluded(texts: list[str], index: int, value: str) -> bool:
    """Return whether a later sentence gives the value of a case without a condition: `Here n = 4, so 5.`"""
    last = _sentence(texts, len(texts) - 1)
    return index < len(texts) - 1 and last.condition is None and last.value == value and bool(_SO.search(last.text))


def _sentence(texts: list[str], index: int) -> _Sentence:
    """Return a sentence, together with the supposition before it: `Suppose n is even. | Then the answer is 5.`"""
    text = texts[index]
    if index and _CONSEQUENCE.match(text) and _SUPPOSED.match(texts[index - 1]):
        text = f"{texts[index - 1].rstrip('.。 ')}, {text.lstrip()}"
    announces, opening = _ANNOUNCES.search(text) is not None, _OPENING.match(text)
    if opening is not None:
        is_otherwise, concludes = opening["otherwise"] is not None, opening["concludes"] is not None
        return _Sentence(text, _last_value(text), announces, opening["condition"] or "", is_otherwise, concludes)
    trailing = _TRAILING.search(text)
    if trailing is not None and (value := _last_value(text[: trailing.start()])) is not None:
        return _Sentence(text, value, announces, trailing["condition"], concludes=True)
    return _Sentence(text, _last_value(text), announces, None)


def _last_value(text: str) -> str | None:
    values = _VALUE.findall(_COMPARISON.sub("", text) if _DISMISSED.search(text) else text)
    return values[-1].casefold() if values else None


def _are_parallel(case: _Sentence, other: _Sentence) -> bool:
    """Return whether two sentences are alternatives (`if n is even, 5`, `if n is odd, 6`). Steps are not."""
    if other.condition is None:
        return other.announces
    if (case.announces and other.announces) or case.is_otherwise or other.is_otherwise:
        return True
    return all(_VARIES.search(sentence.condition or "") for sentence in (case, other))


def _is_assumed(case: _Sentence, known: str) -> bool:
    """Return whether a condition gives a variable a value that neither the problem nor the response mentions."""
    condition = case.condition or ""
    if _ASSUMED.fullmatch(condition) is None or case.value in _VALUE.findall(condition):
        return False
    tokens = frozenset(token.casefold() for token in _TOKEN.findall(condition)) - _COPULAS
    return not tokens <= frozenset(token.casefold() for token in _TOKEN.findall(known))
