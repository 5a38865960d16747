"""Rules about the quantities of a story: one that is needed and missing, one that cannot be a fraction.

Some rows and their findings:

    "Tom has some apples. He buys 9 more. How many apples does he have now?"                 missing_quantity
    "A ticket costs 2 yuan. How many tickets can Ann buy for 9 yuan?"  gold "4.5"            fractional_count
    "Tom had some apples. He gave away 5 and has 7 left. How many had he at first?"          nothing: that is asked
"""

from __future__ import annotations

import re

from truegold.pipeline.flag.rules.detector import Finding, detector
from truegold.pipeline.tables.rows import Row
from truegold.pipeline.text.numbers import read_number
from truegold.pipeline.text.prose import ending, sentences, without_formulas

_MEASURED = (
    r"(?:more\s+)?(?:(?:full|whole|total|square|cubic|sq|cu|fluid|metric|percentage|additional|extra|other|different)\s+)*"
    r"(?:hours?|minutes?|mins?|seconds?|days?|weeks?|months?|years?|decades?|miles?|kilomet(?:er|re)s?|kms?"
    r"|(?:centi|milli|deci)?met(?:er|re)s?|cm|mm|m|feet|foot|inch(?:es)?|yards?|dollars?|cents?|yuan|euros?|pesos?"
    r"|pounds?|lbs?|ounces?|oz|(?:kilo|milli)?grams?|kgs?|g|tons?|tonnes?|(?:milli)?lit(?:er|re)s?|ml|gallons?|cups?"
    r"|quarts?|pints?|(?:table|tea)spoons?|tbsp|tsp|percent(?:age)?|%|degrees?|times|units?|acres?|hectares?|points?"
    r"|dozens?|calories|(?:mega|giga|kilo)?bytes?|[mgk]b|radians?|moles?|volts?|amps?|watts?|joules?|knots|servings?"
    r"|scoops?|sheets?|portions?|stacks?|blocks?|laps?|pieces?|parts?|thousands?|(?:m|b)illions?|one|[mk]ph|light)"
)
_HOW_MANY = re.compile(rf"\bhow\s+many\s+(?!{_MEASURED}\b)(?P<noun>[a-z]+(?:\s+[a-z]+)?)", re.IGNORECASE)
_HOW_MANY_CHINESE = re.compile(
    r"(?:多少|几)(?P<noun>个(?!小时|月|百分|单位|星期|世纪)|[张人只本头匹条支辆盒箱棵朵枝把台架艘套件双])"
)
_RATE = re.compile(
    r"\b(?:average|mean|per|each|every|rate|ratio|expected|approximately|about|an\s+hour|a\s+(?:day|week|month|minute))\b"
    r"|平均|每|约|倍",
    re.IGNORECASE,
)
_HAS_FRACTIONS = re.compile(r"\d\.\d+(?!\d|\s*\\?%)|\d\s*/\s*\d|\\[dt]?frac|\bhalf\b|\bquarters?\b|分之|半")
"""Where a prompt speaks of parts of things, a part of a thing is a sensible answer."""


_NAMES_UNIT = re.compile(r"\\text\s*\{|\d\s*[a-z]{2,}")


@detector("fractional_count", version="2")
def fractional_count(row: Row) -> list[Finding]:
    """The question counts things that come whole, and gold is not whole."""
    gold = read_number(row["gold"])
    # Whatever gold names a unit of can be measured, and comes in parts.
    if (
        gold is None
        or gold.is_whole
        or gold.percent
        or _NAMES_UNIT.search(row["gold"] or "")
        or _HAS_FRACTIONS.search(row["prompt"])
    ):
        return []
    for sentence in reversed(sentences(without_formulas(row["prompt"]))):
        if not sentence.endswith(("?", "？")):
            continue
        match = _HOW_MANY.search(sentence) or _HOW_MANY_CHINESE.search(sentence)
        if match and not _RATE.search(sentence):
            return [Finding("fractional_count", evidence={"counts": match["noun"], "gold": row["gold"]})]
    return []


_VAGUE = r"(?:some|several|a\s+few|a\s+number\s+of|an\s+unknown\s+number\s+of)"
# A stop ends the phrase of a vague count or of its noun: "a few dangerous animals" has its noun further on, and is
# left alone.
_STOP = r"(?=\s*[.,;]|\s+(?:and|in|on|at|from|for|to|of|with|out|into|off|away)\b)"
_VERB = r"(?=\s+(?:get|gets|got|fly|flew|join|joined|leave|come|came|go|went|arrive|arrived|drive|drove)\b)"
_VAGUE_COUNT = re.compile(
    rf"\b{_VAGUE}(?!\s+of\b)(?:(?:\s+more)?(?:{_STOP}|{_VERB})"
    rf"|\s+(?:more\s+)?(?!more\b|days|hours|minutes|weeks|months|years|times?)(?P<noun>[a-z]+){_STOP})",
    re.IGNORECASE,
)
_STATE_ASKED = re.compile(
    r"\bhow\s+(?:many|much)\b.*\b(?:now|left|remain|remaining|remained|altogether|in\s+total|in\s+all|total|together"
    r"|then|(?:in|at|by)\s+the\s+end|afterwards?)\b",
    re.IGNORECASE | re.DOTALL,
)
# These words close the equation from another side, or make the story more than adding and taking away. With any of
# them the vague quantity may be what is asked, or may be worked out, and the rule keeps silent.
_CLOSERS = re.compile(
    r"\b(?:now|left|remain\w*|still|total|altogether|in\s+all|ended?\s+up|twice|thrice|double\w*|tripled?|times|half"
    r"|third|quarter|as\s+many|as\s+much|than|percent|each|every|equally|ratio|average|costs?|prices?|cents?|dollars?"
    r"|same|rest|all\s+of|both|if|per|until|make|makes|enough|because)\b|[%$]",
    re.IGNORECASE,
)
_NUMBER_WORD = re.compile(
    r"\d|\b(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty|dozen)\b", re.IGNORECASE
)

_VAGUE_CHINESE = re.compile(
    r"(?:有|买|来|吃|送|拿|给|走|加|放|借|摘|用|卖)[了来走出去给入进]*(?:一些|若干|几(?:[个只本张支颗条块])?(?![年天月小分岁点次第倍何]))"
)
_STATE_ASKED_CHINESE = re.compile(r"(?:现在|还剩|剩下|一共有|总共有|最后|还有)[^。！]*(?:多少|几)")
_CLOSERS_CHINESE = re.compile(
    r"还剩|剩下|剩余|现在|一共|共|总|平均|倍|分之|[%％]|比|相等|同样|每|正好|如果|原来|原有|一半"
)


@detector("missing_quantity", version="1")
def missing_quantity(row: Row) -> list[Finding]:
    """In a plain story of adding and taking away, a number that the question needs is only "some"."""
    parts = sentences(without_formulas(row["prompt"]))
    questions = [
        part
        for part in parts
        if re.search(r"\bhow\s+(?:many|much)\b", part, re.IGNORECASE) or "多少" in part or "几" in part
    ]
    if len(questions) != 1 or not _NUMBER_WORD.search(row["prompt"]):
        return []
    story = " ".join(part for part in parts if part is not questions[0])
    vague = _vague_count(story, questions[0]) or _vague_count_chinese(row["prompt"])
    return [] if vague is None else [Finding("missing_quantity", evidence={"says": ending(vague)})]


def _vague_count(story: str, question: str) -> str | None:
    """Return the vague quantity that the question depends on, or None."""
    if not _STATE_ASKED.search(question) or _NUMBER_WORD.search(question) or _CLOSERS.search(story):
        return None
    asked = {word.rstrip("s") for word in re.findall(r"[a-z]+", question.lower())}
    for match in _VAGUE_COUNT.finditer(story):
        if match["noun"] is None or match["noun"].lower().rstrip("s") in asked:
            return match[0]
    return None


def _vague_count_chinese(prompt: str) -> str | None:
    clauses = re.split(r"[，,。．！；]", prompt)
    asking = [clause for clause in clauses if "多少" in clause or clause.rstrip().endswith(("？", "?"))]
    story = "，".join(clause for clause in clauses if clause not in asking)
    if not asking or not _STATE_ASKED_CHINESE.search(asking[-1]) or _CLOSERS_CHINESE.search(story):
        return None
    match = _VAGUE_CHINESE.search(story)
    return match[0] if match and _NUMBER_WORD.search(story) else None
