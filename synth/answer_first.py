"""Finds answers that an output states before it derives them, which shows that they came from the context.

"The answer is 16, because 12+9=21 and 21-5=16."     stated before the first step
"16. First add 12 and 9 ..."                         a number that the problem does not mention
"12+9=21, 21-5=16. The answer is 16."                no: derived first
"The answer is 16."                                  no: nothing is derived

"Not 26: 12+9=21, 21-5=16."                          the failed attempt's answer, denied
"12+9+5=26. No, that is not 26: ..."                 no: it derived 26 itself
"""

from __future__ import annotations

import re

from truegold.synth.concepts import OPERATION, normal

NEAR = 30
"""Maximum number of characters between words such as "the answer is" and the answer."""
_STATEMENT = re.compile(
    r"\banswer\b[^.\n]{0,20}?(?:is|:|=|be)|\bresult\b[^.\n]{0,12}?(?:is|:|=)|\\boxed"
    r"|\b(?:comes? (?:out )?(?:to|at)|arrive at|amounts? to|(?:has|have|ought) to (?:be|equal)"
    r"|(?:must|should|will) (?:be|equal))"
    r"|答案(?:是|为|:|：)?|结果(?:是|为|应)|因此是|应该?(?:等于|得到?|是|为)|得到"
)
"""Words that state an answer: "the answer is", "the result:", "it comes out to", "it must be", "答案是"."""
_NUMERAL = re.compile(r"(?<![a-z\d.])-?\d[\d,]*(?:\.\d+)?(?![a-z\d]|\.\d)")
"""A number in a text: -3, 1,200 and 0.5, but neither the 2 of x2 nor the 1.5 of 1.5.2."""
_DERIVES = re.compile(r"\bbecause\b|\bsince\b|\bas\b|\bstep\b|\bfirst\b|\bso\b|因为|由于|首先|步")
"""Words of a derivation without operations: "because all of them are even"."""
_DENIED_BEFORE = re.compile(
    r"(?:\b(?:not|never|isn't|wasn't|can't|couldn't|cannot|instead|rather|other|unlike|no longer)"
    r"(?: (?:be|of|than|just|simply|merely|only|equal|to|exactly|the|an?|at|as|get|gives?|\w+ing))*"
    r"|不(?:是|等于|应该?是|能是|可能是|会是|止|只是?|能只?)[算到得写停在为是]*|而非|并非|别只?[算到得写停]+)[\s$(\\]*$"
)
"""Words that deny the number after them: "not just 26", "rather than the 26", "不能只算到26"."""
_DENIED_BEHIND = re.compile(
    r"[)$%°]*(?: [a-z/]+){0,3}?,? (?:"
    r"(?:is|are|was|were|would be|would have been|seems?|looks?|comes out) (?:\w+ ){0,2}?"
    r"(?:wrong|incorrect|false|not|too|off|mistaken|impossible|premature)"
    r"|would (?:only |just )?(?:be|have been|hold|mean)"
    r"|(?:\w+ )?(?:ignores?|forgets?|misses|overlooks?|omits|neglects|leaves? out|does not|doesn't|cannot|can't|fails)"
    r")\b"
    r"|[\u3400-\u9fff]{0,5}?(?:不对|不正确|有误|错|多算|少算|漏|没[有算减加扣考包]|忘|太[多少大小])"
)
"""Words that deny the number before them: "26 is too many", "26 would be right if", "26多算了"."""
_DERIVED = re.compile(
    r"(?:[=≈→]|\b(?:is|are|gets?|got|gives?|makes?|leaves?|equals?|to|has|have|be)|[得到于为是剩有共])[\s$(\\]*$"
)
"""Words and signs before a number that is derived."""
_NEW_SENTENCE = re.compile(r"(?:^|[.!?;:\n。！？；：,，>])\s*$")
"""The beginning of a text, or a sign that ends a sentence or a clause."""
_WORD_BEHIND = re.compile(r"(?: ?[%°]?,? [a-z]{2,}| ?[\u3400-\u9fff])(?! ?[-+*/=×÷])")
"""A word right after a number, unless an operation follows the word."""
MIN_DIGITS = 2
"""Minimum number of digits of an answer that opens a sentence. A shorter number may be a count or number an item."""


def states_answer_first(output: str, problem: str, extracted: str | None) -> bool:
    """Return whether the answer stands before the first step of its derivation.

    extracted: the answer as read by the verifier. A bare number counts only if the problem does not contain it.
    """
    answer = _plain(extracted)
    if not answer or "\n" in answer:
        return False
    text = normal(output)
    start = _position(text, answer)
    if start is None:
        return False
    before, after = text[:start], text[start + len(answer) :]
    is_stated = any(match.end() <= start and start - match.end() <= NEAR for match in _STATEMENT.finditer(before))
    if not OPERATION.search(after) and not (is_stated and _DERIVES.search(after)):
        return False
    before = _STATEMENT.sub(" ", before)
    if OPERATION.search(before):
        return False
    if is_stated:
        return True
    # A number before all steps that was not mentioned yet.
    return bool(_NUMERAL.fullmatch(answer)) and _position(normal(problem), answer) is None and answer not in "0 1 2"


def find_denial(output: str, problem: str, failed: str | None, extracted: str | None) -> str | None:
    """Return the words by which an output denies the failed attempt's answer or opens with it, or None.

    An output denies nothing if it derives this number itself, or if the problem contains the number. Only numbers
    count, because an output that goes through options, words or formulas denies some of them anyway.

    failed, extracted: the answers of the attempt and of the output, as read by the verifier.
    """
    answer = _plain(failed)
    if not _NUMERAL.fullmatch(answer) or answer == _plain(extracted) or _position(normal(problem), answer) is not None:
        return None
    text = normal(output)
    start = _position(text, answer)
    if start is None:
        return None
    before, behind = text[:start], text[start + len(answer) :]
    if match := _DENIED_BEFORE.search(before):
        return f"{match[0]}{answer}"
    if _DERIVED.search(before):
        return None
    if match := _DENIED_BEHIND.match(behind):
        return f"{answer}{match[0]}"
    # A derivation begins with numbers of the problem, and not with a new one.
    digits = sum(map(str.isdigit, answer))
    is_first = digits >= MIN_DIGITS and not OPERATION.search(before) and _NEW_SENTENCE.search(before)
    match = _WORD_BEHIND.match(behind)
    return f"{answer}{match[0]}" if is_first and match else None


def _plain(answer: str | None) -> str:
    return normal(answer or "").strip().strip("$").strip()


def _position(text: str, answer: str) -> int | None:
    """Return the position of an answer in a text, or None: 8 for 12 in "112 and 12", since 112 is another number."""
    if _NUMERAL.fullmatch(answer):
        plain = answer.replace(",", "")
        return next((match.start() for match in _NUMERAL.finditer(text) if match[0].replace(",", "") == plain), None)
    start = text.find(answer)
    return None if start < 0 else start
