"""What a problem's text says about how answers are judged, in English or Chinese.

    "If there are several answers, print any of them."          several_answers
    "You can print each letter in any case."                    any_case
    "Print the indices in any order."                           any_order
    "... if its absolute error does not exceed 10^{-4}."        tolerance 1e-4
    "This is an interactive problem."                           interactive
    "Tags: constructive algorithms", "construct a tree"         constructs
    "如果有多组解，输出任意一组即可。"                                several_answers

The text is searched for fixed phrases, sentence by sentence. Where it says which of several answers to give ("print the
lexicographically smallest"), only one is right. Texts that leave it to the reader, such as "print a spanning tree", are
not covered; there the outputs tell (`agreement`). `constructs` alone says little: it serves problems whose worked
solution fails.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

MAX_CHARS = 200_000
"""The part of a problem's text that is read."""

MAX_SENTENCE = 600
"""The part of a sentence that is read. Stops patterns with gaps from taking long on text without full stops."""

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])|\n\s*\n")
_NEGATED = re.compile(r"(?:\bnot|n't|\bnever|\bwithout|\bcannot)\W+(?:\w+\W+){0,2}$")
_PRINT = r"(?:print|output|return|report|give|provide|find|write|produce|submit)"
_SEVERAL = r"(?:multiple|several|many|more than one|numerous|various|two or more|different)"
_ARBITRARY = r"(?:any\b|one of (?:them|these|those)|either\b|an arbitrary|arbitrary|arbitrarily)"
_ANY_OF = r"any(?: one)? of (?:them|these|those)"
_VALID = r"(?:valid|correct|possible|suitable|optimal|acceptable|feasible|appropriate|such|legal|right)"
_ANSWER = r"(?:answers?|solutions?|outputs?|results?|ways?|sequences?|permutations?|options?|one|ones|representations?)"
_ACCEPTED = r"(?:accepted|acceptable|considered (?:as )?correct|correct|fine|ok\b|okay|allowed|counted|sufficient)"
_IS = r"(?:will be|is|are|would be|can be|may be)"
_EXTRA = (
    r"(?:extra|additional|other|more|debug|further|leading|trailing|spaces?|lines?|text|number of|error|message|order)"
)

_NOUN = (
    r"(?:permutations?|sequences?|arrays?|strings?|matri(?:x|ces)|(?:sub)?trees?|graphs?|grids?|sets?|subsets?|paths?|pairs?"
    r"|triples?|arrangements?|assignments?|colou?rings?|orderings?|partitions?|configurations?|solutions?|answers?|way|one)"
)
_VALID_OR_NOUN = rf"(?:{_VALID} (?:\w+ ){{0,2}}{_NOUN}|permutation|array|sequence|matrix|arrangement|solution|answer)"
_WORDS = r"(?:(?!number|count|length|sum|size|cost|value)\w+ ){0,2}"
_NOT_EACH = "".join(
    rf"(?<!\b{word} )"
    for word in ("if", "for", "that", "in", "from", "to", "of", "whether", "than", "by", "at", "without")
)
"""Matches where none of these words stands before `any`: after them it means "each" or "one at all"."""

_UNRANKED = r"(?![^.]{0,100}(?:lexicographic|smallest|largest|minim|maxim|earliest|shortest|the one |leftmost))"
"""Matches where no words follow that say which of the answers is right."""

_SEVERAL_ANSWERS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"\b{_SEVERAL}\b.{{0,160}}\b{_PRINT}(?:ed|s|ing)? {_ARBITRARY}",
        rf"\b(?:if|when|in case|should|where)\b.{{0,60}}\b{_SEVERAL}\b.{{0,160}}\b{_ANY_OF}",
        rf"\b(?:print|output|return|report|give) (?:out )?any\b(?! {_EXTRA})",
        rf"\b(?:print|output|return|report|give) (?:an? )?arbitrary (?:\w+ )?{_ANSWER}",
        rf"\bany (?:of the )?(?:\w+ )?{_VALID} (?:\w+ ){{0,2}}{_IS} (?:\w+ )?{_ACCEPTED}",
        rf"\bany (?:one )?(?:will be|would be|can be|may be) {_ACCEPTED}",
        rf"\b(?:all|any|every|each) {_VALID} {_ANSWER} (?:\w+ ){{0,2}}(?:be|is|are) {_ACCEPTED}",
        rf"\b{_ANY_OF} (?:will be|is|are|would be) (?:\w+ )?{_ACCEPTED}",
        rf"\b{_SEVERAL} (?:\w+ )?(?:accepted|acceptable) {_ANSWER}",
        rf"\b{_ANSWER} (?:\w+ ){{0,2}}(?:(?:is|are|be) not (?:necessarily )?|(?:may|might|need) not be )unique\b",
        r"\byour (?:answer|output|solution) (?:may|might|can) (?:differ|be different)\b",
        rf"\b(?:print|output|return|give|report) (?:a|an|one|some) {_VALID} {_WORDS}{_NOUN}\b{_UNRANKED}",
        rf"\b(?:print|output|return|report|give|construct)\b[^.;]{{0,100}}{_NOT_EACH}any (?:one )?{_VALID_OR_NOUN}\b",
        rf"\b(?:to|please|must|should|you can) (?:find|construct|build|choose) any (?:\w+ ){{0,2}}{_NOUN}\b",
        rf"\bthere (?:may|can|might|could) (?:\w+ )?be {_SEVERAL} (?:\w+ )?(?:answers|outputs|solutions)\b{_UNRANKED}",
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
    rf"\b{_PRINT}(?:ed|s|ing)?\b|\b(?:answer|result|solution) in any\b|输出|返回|打印|答案", re.IGNORECASE
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
_RELATIVE = re.compile(r"\brelative(?:ly)?\b|相对", re.IGNORECASE)
_SMALL_NUMBER = re.compile(
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
    """What a problem's text says; each text is the first sentence that says it, or None."""

    several_answers: str | None = None
    any_order: str | None = None
    order_of_output: str | None = None
    """The sentence of `any_order` where it is about what is printed or returned."""
    any_case: str | None = None
    interactive: str | None = None
    constructs: str | None = None
    tolerance: float | None = None
    """The error that an answer may have."""
    tolerance_is_relative: bool = False
    """Whether a relative error of that size will do."""


def read_statement(text: str | None) -> Statement:
    """Read a problem's text, which may be missing."""
    sentences: dict[str, str] = {}
    tolerance: float | None = None
    is_relative = False
    for sentence in _split(text or ""):
        if "several_answers" not in sentences and _allows_several(sentence):
            sentences["several_answers"] = sentence
        if _ANY_ORDER.search(sentence):
            sentences.setdefault("any_order", sentence)
            if _ABOUT_OUTPUT.search(sentence):
                sentences.setdefault("order_of_output", sentence)
        for topic, pattern in (("any_case", _ANY_CASE), ("constructs", _CONSTRUCTS), ("interactive", _INTERACTIVE)):
            if pattern.search(sentence):
                sentences.setdefault(topic, sentence)
        if tolerance is None and _ABOUT_ERROR.search(sentence):
            tolerance = _find_tolerance(sentence)
            is_relative = tolerance is not None and _RELATIVE.search(sentence) is not None
    return Statement(tolerance=tolerance, tolerance_is_relative=is_relative, **sentences)


@lru_cache(maxsize=64)
def allowed_error(text: str) -> tuple[float, bool] | None:
    """Return the error that a problem's text allows, and whether it may be relative; None where it names none."""
    statement = read_statement(text)
    return None if statement.tolerance is None else (statement.tolerance, statement.tolerance_is_relative)


def _split(text: str) -> Iterator[str]:
    for part in _SENTENCE_END.split(text[:MAX_CHARS]):
        sentence = " ".join(part[: 2 * MAX_SENTENCE].split())
        if sentence:
            yield sentence[:MAX_SENTENCE]


def _allows_several(sentence: str) -> bool:
    matches = (pattern.search(sentence) for pattern in _SEVERAL_ANSWERS)
    return any(match and not _NEGATED.search(sentence[: match.start()]) for match in matches)


def _find_tolerance(sentence: str) -> float | None:
    match = _SMALL_NUMBER.search(sentence)
    if match is None:
        return None
    power = int(match["power"] or match["exponent"] or len(match["zeros"]) + 1)
    return 10.0**-power if 1 <= power <= 15 else None
