"""Rules about a question that cannot be answered from what its text gives, seen without a model.

Some prompts and their findings:

    "She slept 2 hours less for the next two days. How many hours did she sleep?"        dangling_reference
    "Terry eats 2 yogurts a day. How much does he spend on yogurt over 30 days?"         money_without_amount
    "Gretchen has 110 coins. How many gold coins does Gretchen have?"                    too_few_quantities
    "If each pack costs 81 dollars, how much will it cost to buy -33 packs?"             negative_count
    "Each pack costs 107 dollars. There is a discount of 106 dollars on each pack."      no_question

They see what a word or a number can show, and most missing premises show in neither. All but `no_question` read English
only.
"""

from __future__ import annotations

import re

from truegold.pipeline.flag.rules.calculation import calculations
from truegold.pipeline.flag.rules.detector import Finding, detector
from truegold.pipeline.flag.rules.prose import CHINESE, FORMULA, PUZZLE, excerpt, sentences, without_formulas
from truegold.pipeline.rows import Row

_ASKED = re.compile(r"\bhow\s+(?:many|much)\b", re.IGNORECASE)

# A pronoun that opens a story, or "the next", "the rest", "the other", points at something that was cut away.
_OPENS_WITH_POINTER = re.compile(
    r"(?:(?:(?:on|for|in|over|during|after|by)\s+)?(?:the\s+)?(?:next|following|remaining|rest|other|second)\b"
    r"(?!\s+(?:to\b|question|problem|figure|table|statement|equation|expression))"
    r"|(?:he|she|his|her|hers|they|their)\b(?!\w))",
    re.IGNORECASE,
)
_CATAPHOR = re.compile(r",|\bwhen\b|\bas\b", re.IGNORECASE)
"""A pronoun may point forward: "On his way home, Tom ..."."""


@detector("dangling_reference", version="1")
def dangling_reference(row: Row) -> list[Finding]:
    """The text opens with a pronoun, or with "the next ...", that has nothing to point at."""
    prompt = row["prompt"].strip()
    parts = sentences(without_formulas(prompt))
    if row["domain"] != "math" or not parts or not _ASKED.search(prompt):
        return []
    match = _OPENS_WITH_POINTER.match(parts[0])
    if match is None or _CATAPHOR.search(parts[0][: match.end() + 60]) or re.search(r"[“\"]", parts[0]):
        return []
    return [Finding("dangling_reference", 0.7, {"opens": parts[0][:80]}, blocks=False)]


_MONEY_ASKED = re.compile(
    r"\bhow\s+much\b(?:\s+(?:more\s+)?money|\s+in\s+(?:dollars|total))?[^.?]{0,60}?"
    r"\b(?:cost|costs|pay|pays|paid|spend|spends|spent|earn|earns|earned|charge|charged|owe|owes)\b"
    r"|\bhow\s+(?:much\s+money|many\s+(?:dollars|cents|euros|pounds\s+sterling|yuan|pesos))\b",
    re.IGNORECASE,
)
_MONEY = re.compile(
    r"[$£€¥￥₹]|\b(?:dollars?|cents?|euros?|pounds?|yuan|pesos?|rupees?|bucks?|pennies|penny|nickels?|dimes?|quarters?"
    r"|coins?|bills?|usd|c|k|price|rent|wage|salary|free)\b|¢",
    re.IGNORECASE,
)
_NOT_MONEY = re.compile(r"\bhow\s+much\s+(?:time|water|food|weight|longer|energy|effort|attention)\b", re.IGNORECASE)


@detector("money_without_amount", version="1")
def money_without_amount(row: Row) -> list[Finding]:
    """The question asks for an amount of money, and no amount of money is given anywhere."""
    parts = sentences(row["prompt"])
    asking = [part for part in parts if _MONEY_ASKED.search(part) and not _NOT_MONEY.search(part)]
    # Any word of money counts as an amount: a number may belong to it.
    if row["domain"] != "math" or not asking or _MONEY.search(_MONEY_ASKED.sub(" ", row["prompt"])):
        return []
    return [Finding("money_without_amount", 0.8, {"asks": excerpt(asking[-1])})]


_DIGITS = re.compile(r"\d[\d,]*(?:\.\d+)?")
_COUNT_WORD = re.compile(
    r"\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen|fifteen|sixteen|seventeen"
    r"|eighteen|nineteen|twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety|hundred|thousand|million|dozens?|half|halves"
    r"|halved|thirds?|fourths?|fifths?|sixths?|sevenths?|eighths?|ninths?|tenths?|quarters?|quartered|twice|thrice|double[sd]?"
    r"|doubling|triple[sd]?|tripling|quadruple[sd]?|quintuple[sd]?|once|first|second|pairs?|couples?|both|each|every|equally"
    r"|per|twins?|triplets?|percent|even|odd|consecutive|digits?|prime|square|cube|circle|triangle|rectangle|weeks?|months?|years?"
    r"|days?|hours?|minutes?|daily|weekly|monthly|yearly|annual(?:ly)?|inch(?:es)?|feet|foot|yards?|alphabet|dice?|cards?|deck|leap"
    r"|factors?|multiples?|divisors?|sides?|states?|letters?|coins?|nickels?|dimes?|penn(?:y|ies)|january|february|march|april"
    r"|may|june|july|august|september|october|november|december|century|decade|fortnight|whole|remaining|rest)\b",
    re.IGNORECASE,
)


@detector("too_few_quantities", version="1")
def too_few_quantities(row: Row) -> list[Finding]:
    """A story has one number or none, and asks for another number: there is nothing to compute with."""
    prompt = row["prompt"]
    if row["domain"] != "math" or CHINESE.search(prompt):
        return []
    prose = without_formulas(prompt)
    parts = sentences(prose)
    asking = [part for part in parts if _ASKED.search(part)]
    if not asking or FORMULA in prose or len(parts) < 2:
        return []
    if len(_DIGITS.findall(prompt)) > 1 or _COUNT_WORD.search(prompt):
        return []
    return [Finding("too_few_quantities", 0.75, {"numbers": _DIGITS.findall(prompt), "asks": excerpt(asking[-1])})]


_NEGATIVE_COUNT = re.compile(
    r"(?<![\d)\]}=+*/%])\s[-−]\d+(?:\.\d+)?\s+(?!degrees?\b|°|points?\b|feet\b|meters?\b|and\b|to\b|or\b|is\b|in\b|as\b|from\b"
    r"|on\b|have\b|are\b|c\b|f\b|celsius|fahrenheit|times\b|units?\b|percent)(?P<noun>[a-z]{3,})",
    re.IGNORECASE,
)
_COUNT_FOLLOWS = re.compile(
    r"\b(?:has|had|have|buys?|bought|sells?|sold|gets?|got|gives?|gave|eats?|ate|needs?|found|made|makes?|with|are|were|costs?|lost"
    r"|saw|picked|planted|read|took|takes|of|for|by|only|another|added|removed|ordered|received|collected|earns?|earned|spent)\s*$",
    re.IGNORECASE,
)


@detector("negative_count", version="1")
def negative_count(row: Row) -> list[Finding]:
    """A story counts a negative number of things that come whole."""
    prompt = row["prompt"]
    if row["domain"] != "math" or not _ASKED.search(prompt):
        return []
    for match in _NEGATIVE_COUNT.finditer(without_formulas(prompt)):
        before = match.string[: match.start()]
        if _COUNT_FOLLOWS.search(before[-40:]):
            return [Finding("negative_count", 0.8, {"says": match[0].strip()})]
    return []


_ASKS = re.compile(
    r"[?？]|_{2,}|\b(?:how|what|which|who|whose|when|where|why|whether)\b|多少|几|求|吗|何|什么", re.IGNORECASE
)
MIN_STORY_WORDS = 8
"""A shorter text is a title or an expression, and tells no story."""
_INSTRUCTS = re.compile(
    r"(?:(?:please|then|now|also|so|and|hence|next)\s+,?\s*)*(?:find|compute|calculate|determine|evaluate|solve|simplify|express|write"
    r"|give|list|name|round|convert|estimate|prove|show|state|answer|complete|choose|fill|count|work\s+out|figure|tell|help|use)\b"
    r"|.*[,;:]\s*(?:then\s+)?(?:find|compute|calculate|determine|evaluate|solve|express|prove|show|estimate|list)\b",
    re.IGNORECASE | re.DOTALL,
)
_TELLS = re.compile(
    r"(?:the|an?|he|she|it|they|there|his|her|their|this|that|these|those|if|in|on|at|after|then|each|every|[A-Z][a-z]+"
    r"|\d+)\b.*\b(?:is|are|was|were|has|have|had|can|will|costs?|gets?|[a-z]+(?:ed|es|s)|bought|sold|gave|ate|made|found|took|got"
    r"|put|went|left|came)\b",
    re.IGNORECASE | re.DOTALL,
)


@detector("no_question", version="1")
def no_question(row: Row) -> list[Finding]:
    """The sentences tell a story and ask nothing."""
    prompt = row["prompt"].strip()
    if row["domain"] != "math" or _ASKS.search(prompt):
        return []
    prose = without_formulas(prompt)
    parts = sentences(prose)
    if FORMULA in prose or not prose.endswith((".", "!", "。")) or prose.endswith(".."):
        return []
    if len(prose.split()) < MIN_STORY_WORDS:
        return []
    if any(_INSTRUCTS.match(part) for part in parts) or not _TELLS.match(parts[-1]):
        return []
    return [Finding("no_question", 0.85, {"ends": excerpt(prompt, 80)})]


_CONTENT = re.compile(r"[a-z]{4,}")
# Such words stand in questions of all kinds, and say nothing about what the question is about.
_GENERIC = frozenset(
    "many much more less than have does were will would left then they them there their that this what when each"
    " every total altogether together combined both full whole after before does make made need needs cost costs"
    " spend spent earn earned money dollars hours minutes days weeks months years time with from into over under"
    " same number amount average take takes took long still remain remaining gave give given bought sold people"
    " person items things pieces percent calculate find sum also only other been could should about your some must"
    " pay paid first last next week month year day hour minute all per difference older younger taller longer"
    " bigger fewer most least times half twice old tall high wide deep fast".split()
)
MIN_OFF_TOPIC = 2
"""This many content words of a question, none of them in the story, show that it belongs to another one."""


@detector("question_off_topic", version="1")
def question_off_topic(row: Row) -> list[Finding]:
    """The question asks about somebody or something that the story never mentions."""
    prompt = row["prompt"]
    if row["domain"] != "math" or CHINESE.search(prompt) or PUZZLE.search(prompt):
        return []
    # A worked solution computed the answer from the story, or else `number_from_nowhere` reports that it did not.
    if row["solution"] and calculations(row["solution"]):
        return []
    parts = sentences(without_formulas(prompt))
    asking = [part for part in parts if _ASKED.search(part)]
    if len(asking) != 1 or len(parts) < 2:
        return []
    question = asking[0]
    story = " ".join(part for part in parts if part is not question)
    asked = question[_ASKED.search(question).start() :]  # type: ignore[union-attr]
    # What stands before "how many" may add to the story, as in "If he eats 2, how many are left?".
    if any(mark in question[: len(question) - len(asked)] for mark in ",;") or re.search(r"\d", question):
        return []
    stems = {_stem(word) for word in _CONTENT.findall(story.lower())}
    words = [word for word in _CONTENT.findall(asked.lower()) if word not in _GENERIC]
    missing = [word for word in words if _stem(word) not in stems]
    if len(words) >= MIN_OFF_TOPIC and len(missing) == len(words):
        return [Finding("question_off_topic", 0.6, {"unheard_of": missing[:5]}, blocks=False)]
    return []


def _stem(word: str) -> str:
    return word[:4]
