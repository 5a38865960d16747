"""What a problem's text says about how answers are judged, in English or Chinese.

    "If there are several answers, print any of them."          several_answers
    "You can print each letter in any case."                    any_case
    "Print the indices in any order."                           any_order
    "... if its absolute error does not exceed 10^{-4}."        tolerance 1e-4
    "This is an interactive problem."                           interactive
    "Tags: constructive algorithms", "construct a tree"         constructs
    "如果有多组解，输出任意一组即可。"                                several_answers

Read by fixed phrases, sentence by sentence. Where a text says which of several answers is wanted ("print the
lexicographically smallest"), only one is right. Not covered: texts that leave it to the reader, such as "print a
spanning tree"; there the outputs tell (`agreement`). `constructs` alone says little: it is for problems whose worked
solution fails.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

MAX_CHARS = 200_000
"""What is read of a problem's text."""

MAX_SENTENCE = 600
"""What is read of a sentence. Stops patterns with gaps from taking long on text without full stops."""

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])|\n\s*\n")
_NOT = re.compile(r"(?:\bnot|n't|\bnever|\bwithout|\bcannot)\W+(?:\w+\W+){0,2}$")
_TELL = r"(?:print|output|return|report|give|provide|find|write|produce|submit)"
_SEVERAL = r"(?:multiple|several|many|more than one|numerous|various|two or more|different)"
_ONE = r"(?:any\b|one of (?:them|these|those)|either\b|an arbitrary|arbitrary|arbitrarily)"
_ANY_OF = r"any(?: one)? of (?:them|these|those)"
_GOOD = r"(?:valid|correct|possible|suitable|optimal|acceptable|feasible|appropriate|such|legal|right)"
_THING = r"(?:answers?|solutions?|outputs?|results?|ways?|sequences?|permutations?|options?|one|ones|representations?)"
_PASSES = r"(?:accepted|acceptable|considered (?:as )?correct|correct|fine|ok\b|okay|allowed|counted|sufficient)"
_IS = r"(?:will be|is|are|would be|can be|may be)"
_EXTRA = (
    r"(?:extra|additional|other|more|debug|further|leading|trailing|spaces?|lines?|text|number of|error|message|order)"
)

_NOUN = (
    r"(?:permutations?|sequences?|arrays?|strings?|matri(?:x|ces)|(?:sub)?trees?|graphs?|grids?|sets?|subsets?|paths?|pairs?"
    r"|triples?|arrangements?|assignments?|colou?rings?|orderings?|partitions?|configurations?|solutions?|answers?|way|one)"
)
_GOOD_OR_NOUN = rf"(?:{_GOOD} (?:\w+ ){{0,2}}{_NOUN}|permutation|array|sequence|matrix|arrangement|solution|answer)"
_WORDS = r"(?:(?!number|count|length|sum|size|cost|value)\w+ ){0,2}"
_FREE = "".join(
    rf"(?<!\b{word} )"
    for word in ("if", "for", "that", "in", "from", "to", "of", "whether", "than", "by", "at", "without")
)
"""Words before `any` that make it mean each or one at all."""

_FREELY = r"(?![^.]{0,100}(?:lexicographic|smallest|largest|minim|maxim|earliest|shortest|the one |leftmost))"
"""Not followed by which one of them is wanted."""

_SEVERAL_ANSWERS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"\b{_SEVERAL}\b.{{0,160}}\b{_TELL}(?:ed|s|ing)? {_ONE}",
        rf"\b(?:if|when|in case|should|where)\b.{{0,60}}\b{_SEVERAL}\b.{{0,160}}\b{_ANY_OF}",
        rf"\b(?:print|output|return|report|give) (?:out )?any\b(?! {_EXTRA})",
        rf"\b(?:print|output|return|report|give) (?:an? )?arbitrary (?:\w+ )?{_THING}",
        rf"\bany (?:of the )?(?:\w+ )?{_GOOD} (?:\w+ ){{0,2}}{_IS} (?:\w+ )?{_PASSES}",
        rf"\bany (?:one )?(?:will be|would be|can be|may be) {_PASSES}",
        rf"\b(?:all|any|every|each) {_GOOD} {_THING} (?:\w+ ){{0,2}}(?:be|is|are) {_PASSES}",
        rf"\b{_ANY_OF} (?:will be|is|are|would be) (?:\w+ )?{_PASSES}",
        rf"\b{_SEVERAL} (?:\w+ )?(?:accepted|acceptable) {_THING}",
        rf"\b{_THING} (?:\w+ ){{0,2}}(?:(?:is|are|be) not (?:necessarily )?|(?:may|might|need) not be )unique\b",
        r"\byour (?:answer|output|solution) (?:may|might|can) (?:differ|be different)\b",
        rf"\b(?:print|output|return|give|report) (?:a|an|one|some) {_GOOD} {_WORDS}{_NOUN}\b{_FREELY}",
        rf"\b(?:print|output|return|report|give|construct)\b[^.;]{{0,100}}{_FREE}any (?:one )?{_GOOD_OR_NOUN}\b",
        rf"\b(?:to|please|must|should|you can) (?:find|construct|build|choose) any (?:\w+ ){{0,2}}{_NOUN}\b",
        rf"\bthere (?:may|can|might|could) (?:\w+ )?be {_SEVERAL} (?:\w+ )?(?:answers|outputs|solutions)\b{_FREELY}",
        r"\b(?:(?:do not|don't|not) (?:have|need) to|need not|not (?:necessary|required) to) (?:minimi|maximi)[sz]e",
        r"\bspecial (?:judge|checker)\b",
        r"(?:多组|多个|多种|不止一[个组种]|不唯一)[^。！？\n]{0,40}(?:任意|任一|任何|其一|其中一|均可|都可|皆可)",
        r"(?:输出|打印|返回|给出)[^。！？\n，,]{0,12}(?:任意|任一|任何)(?:一|其|解|答案|方案|合法|满足)",
        r"任意一?[个组种条](?:解|答案|方案|结果)?(?:均可|即可|都可|皆可)",
        r"答案不唯一|特判|特殊判题|\bspj\b",
    )
)
_ANY_ORDER = re.compile(
    r"\bin (?:any|arbitrary|an arbitrary|whatever|a random) (?:\w+ )?order\b"
    r"|\bany (?:special|particular|specific) order\b"
    r"|\border (?:of (?:\w+ ){1,3})?(?:does not|doesn't|do not|is not|isn't|will not) (?:matter|important|significant)"
    r"|\b(?:no|not in any) (?:particular|special|specific) order\b|\bregardless of (?:the |their )?order\b"
    r"|任意(?:的)?[顺次]序|[顺次]序(?:不限|任意|无关|不重要)|不(?:要求|考虑|限)[^。！？\n]{0,8}[顺次]序",
    re.IGNORECASE,
)
_ABOUT_OUTPUT = re.compile(
    rf"\b{_TELL}(?:ed|s|ing)?\b|\b(?:answer|result|solution) in any\b|输出|返回|打印|答案", re.IGNORECASE
)
_ANY_CASE = re.compile(
    r"\b(?:can|may|could|might|allowed to)\b.{0,30}\b(?:print|output|write|written|printed)\b.{0,120}"
    r"(?:\bin (?:any|either|arbitrary) (?:letter )?(?:case|register)\b|\bany case\b|\bcase[- ]insensitive"
    r"|\b(?:upper|lower)(?:case)? or (?:lower|upper)(?:case)?\b)|\bletters?\b.{0,40}\bin any (?:case|register)\b"
    r"|\bcase[- ]insensitive(?:ly)?\b.{0,60}\b(?:answer|output|checker|compar)"
    r"|不区分大小写|大小写(?:均可|不敏感|不限|任意)",
    re.IGNORECASE,
)
_ABOUT_ERROR = re.compile(
    r"\b(?:error|accuracy|precision|tolerance|accurate|exceeds?|differs?|within|deviation)\b|误差|精度|精确",
    re.IGNORECASE,
)
_SMALL = re.compile(
    r"\b10\s*(?:\^|\*\*|<sup>)?\s*\{?\s*[-−–]\s*\{?\s*(?P<power>\d{1,2})\b"
    r"|\b1(?:\.0)?[eE][-−–](?P<exponent>\d{1,2})\b|\b0\.(?P<zeros>0{0,12})1\b"
)
_CONSTRUCTS = re.compile(
    r"\bconstructive algorithms?\b"
    rf"|\b(?:find|construct|build|restore|recover|reconstruct|output|print) (?:a|an|some|such|the edges|the moves)"
    rf" (?:\w+ ){{0,3}}{_NOUN}\b"
    r"|\b(?:one of the|other|another|several|multiple|many) (?:\w+ )?(?:possible|correct|valid|acceptable) "
    r"(?:answers?|outputs?|solutions?)\b|\bnot the only\b|构造",
    re.IGNORECASE,
)
_INTERACTIVE = re.compile(r"\binteractive (?:problem|task|question)\b|交互(?:题|式)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Statement:
    """Each: the sentence that says it, or None. order_of_output: any_order, said of what is printed or returned."""

    several_answers: str | None = None
    any_order: str | None = None
    order_of_output: str | None = None
    any_case: str | None = None
    interactive: str | None = None
    constructs: str | None = None
    tolerance: float | None = None


def read_statement(text: str | None) -> Statement:
    found: dict[str, str] = {}
    tolerance: float | None = None
    for sentence in _sentences(text or ""):
        if "several_answers" not in found and _says_several(sentence):
            found["several_answers"] = sentence
        if _ANY_ORDER.search(sentence):
            found.setdefault("any_order", sentence)
            if _ABOUT_OUTPUT.search(sentence):
                found.setdefault("order_of_output", sentence)
        if _ANY_CASE.search(sentence):
            found.setdefault("any_case", sentence)
        if _CONSTRUCTS.search(sentence):
            found.setdefault("constructs", sentence)
        if _INTERACTIVE.search(sentence):
            found.setdefault("interactive", sentence)
        if tolerance is None and _ABOUT_ERROR.search(sentence):
            tolerance = _small_number(sentence)
    return Statement(tolerance=tolerance, **found)


def _sentences(text: str) -> Iterator[str]:
    for part in _SENTENCE_END.split(text[:MAX_CHARS]):
        sentence = " ".join(part[: 2 * MAX_SENTENCE].split())
        if sentence:
            yield sentence[:MAX_SENTENCE]


def _says_several(sentence: str) -> bool:
    for pattern in _SEVERAL_ANSWERS:
        found = pattern.search(sentence)
        if found is not None and not _NOT.search(sentence[: found.start()]):
            return True
    return False


def _small_number(sentence: str) -> float | None:
    found = _SMALL.search(sentence)
    if found is None:
        return None
    power = found["power"] or found["exponent"]
    value = 10.0 ** -int(power) if power else 10.0 ** -(len(found["zeros"]) + 1)
    return value if 1e-15 <= value <= 0.1 else None
