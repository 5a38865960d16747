"""Rules about quantities: one that is missing, and one that cannot be negative or a fraction.

Some rows and their findings:

    "Tom has some apples. He buys 9 more. How many apples does he have now?"                 missing_quantity
    "Tom had some apples. He gave away 5 and has 7 left. How many had he at first?"          nothing: that is asked
    "A ticket costs 2 yuan. How many tickets can Ann buy for 9 yuan?"  gold "4.5"            fractional_count
    "If each pack costs 81 dollars, how much will it cost to buy -33 packs?"                 negative_count

`negative_count` reads English only.
"""

from __future__ import annotations

import re

from truegold.pipeline.flag.rules.detector import Finding, any_of, detector
from truegold.pipeline.tables.rows import Row
from truegold.pipeline.text.prose import ending, sentences, without_formulas
from truegold.pipeline.text.quantities import read_number

# fractional_count
_MEASURED = rf"(?:more\s+)?(?:{any_of('measured_kinds')}\s+)*{any_of('measured_things')}"
"""What comes in parts: "miles", "more cups"."""
_HOW_MANY = re.compile(rf"\bhow\s+many\s+(?!{_MEASURED}\b)(?P<noun>[a-z]+(?:\s+[a-z]+)?)", re.IGNORECASE)
_HOW_MANY_CHINESE = re.compile(
    r"(?:多少|几)(?P<noun>个(?!小时|月|百分|单位|星期|世纪)|[张人只本头匹条支辆盒箱棵朵枝把台架艘套件双])"
)
_RATE = re.compile(rf"\b{any_of('rate_words')}\b|平均|每|约|倍", re.IGNORECASE)
_HAS_FRACTIONS = re.compile(r"\d\.\d+(?!\d|\s*\\?%)|\d\s*/\s*\d|\\[dt]?frac|\bhalf\b|\bquarters?\b|分之|半")
"""Where a prompt speaks of parts of things, a part of a thing is a sensible answer."""

_NAMES_UNIT = re.compile(r"\\text\s*\{|\d\s*[a-z]{2,}")
r"""A gold with a unit: "2.5 kg", "2.5\text{ kg}"."""

# missing_quantity
# A stop ends the phrase of a vague count or of its noun: "a few dangerous animals" has its noun further on, and is
# left alone.
_STOP = rf"(?=\s*[.,;]|\s+{any_of('after_vague_counts')}\b)"
_VAGUE_COUNT = re.compile(
    rf"\b{any_of('vague_counts')}(?!\s+of\b)(?:(?:\s+more)?(?:{_STOP}|(?=\s+{any_of('moving_verbs')}\b))"
    rf"|\s+(?:more\s+)?(?!more\b|days|hours|minutes|weeks|months|years|times?)(?P<noun>[a-z]+){_STOP})",
    re.IGNORECASE,
)
"""A count without a number: "some of" is a part, "some marbles." and "buys some more." are counts."""
_STATE_ASKED = re.compile(rf"\bhow\s+(?:many|much)\b.*\b{any_of('states')}\b", re.IGNORECASE | re.DOTALL)
_TOTAL_ASKED = re.compile(
    r"\b(?:total|altogether|in\s+all|combined|how\s+many\s+(?:\w+\s+)?(?:people|children|animals|persons|pupils|students"
    r"|creatures|fruits?|vehicles)\b.*|how\s+many\s+\w+\s+are\s+(?:there\s+)?in\s+(?:the|a)\b)",
    re.IGNORECASE,
)
"""A total is asked for, to which every count of the story belongs."""
# With any of these words the vague quantity may be what is asked, or may be worked out, and the rule keeps silent.
_CLOSERS = re.compile(rf"\b{any_of('closers')}\b|[%$]", re.IGNORECASE)
_NUMBER_WORD = re.compile(rf"\d|\b{any_of('plain_numbers')}\b", re.IGNORECASE)
_VAGUE_CHINESE = re.compile(
    r"(?:有|买|来|吃|送|拿|给|走|加|放|借|摘|用|卖)[了来走出去给入进]*(?:一些|若干|几(?:[个只本张支颗条块])?(?![年天月小分岁点次第倍何]))"
)
_STATE_ASKED_CHINESE = re.compile(r"(?:现在|还剩|剩下|一共有|总共有|最后|还有)[^。！]*(?:多少|几)")
_CLOSERS_CHINESE = re.compile(
    r"还剩|剩下|剩余|现在|一共|共|总|平均|倍|分之|[%％]|比|相等|同样|每|正好|如果|原来|原有|一半"
)

# negative_count
_COUNT_ASKED = re.compile(r"\bhow\s+(?:many|much)\b", re.IGNORECASE)
_NEGATIVE_COUNT = re.compile(
    rf"(?:^|(?<=[.?!])\s|(?<=[a-z])\s)[-−]\d[\d,]*(?:\.\d+)?\s+(?:more\s+|of\s+(?=his|her|the))?(?!{any_of('never_counted')})"
    r"(?P<noun>[a-z]{2,})",
    re.IGNORECASE,
)
"""A negative number of things behind a word: "buys -33 packs", "-36 campers went"; not "5 -3 packs", a difference."""
_MAY_BE_NEGATIVE = re.compile(rf"\b{any_of('signed_measures')}\b|°", re.IGNORECASE)
"""A story of these has numbers below zero."""


@detector("fractional_count", version="2")
def fractional_count(row: Row) -> list[Finding]:
    """The question counts things that come whole, and gold is not whole."""
    gold = read_number(row["gold"])
    # A gold with a unit is a measure, and comes in parts.
    if (
        gold is None
        or gold.value.denominator == 1
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


@detector("missing_quantity", version="3")
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
    if (
        not (_STATE_ASKED.search(question) or _TOTAL_ASKED.search(question))
        or _NUMBER_WORD.search(question)
        or _CLOSERS.search(story)
    ):
        return None
    asked = {word.rstrip("s") for word in re.findall(r"[a-z]+", question.lower())}
    is_total = _TOTAL_ASKED.search(question) is not None
    for match in _VAGUE_COUNT.finditer(story):
        beside = re.split(r"[.\n]", story[: match.start()])[-1]
        is_part = is_total and _NUMBER_WORD.search(beside) is not None
        if match["noun"] is None or match["noun"].lower().rstrip("s") in asked or is_part:
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


@detector("negative_count", version="2")
def negative_count(row: Row) -> list[Finding]:
    """A story counts a negative number of things that come whole."""
    prompt = row["prompt"]
    if row["domain"] != "math" or not _COUNT_ASKED.search(prompt) or _MAY_BE_NEGATIVE.search(prompt):
        return []
    match = _NEGATIVE_COUNT.search(without_formulas(prompt))
    return [] if match is None else [Finding("negative_count", evidence={"says": match[0].strip()})]
