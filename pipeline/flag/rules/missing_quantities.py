"""Finds story problems without a number that the question needs.

Some prompts, and the reasons for the flag `missing_quantity`:

    "Tom has some apples. He buys 9 more. How many apples does he have now?"           "some" is not a number
    "Tom had some apples. He gave away 5 and has 7 left. How many had he at first?"    no flag: "some" is asked for
    "Tom baked more than 26 cakes and sold 20. How many has he left?"                  "more than 26" is a bound
    "Tom needs more than 26 cakes. How many more must he bake?"                        no flag: the bound is meant
    "Each pile had several coins. How many coins are in 6 piles?"                      "several" is not a number
    "Ann has twice as many pens as Bob, who has half as many as Cy. How many has Ann?" only shares
    "Ann works 8 hours a day, 5 days a week. How much does she earn a week?"           no amount of money
    "Ed had more pens than Dan. Dan lost 3. How many more pens has Ed?"                "more" without a number
    "Ann reads English for 2 hours and Chinese for 3. How long does she read French?"  French is only in the question

The flag `foreign_question` is for a question that has no word in common with the story, or is about another text:

    "Tom baked 12 cakes and ate 3 of them. How many wrappers did Danny find?"
    "See question 30 for the passage. Which house has a garden?"

The detectors know only words, and no facts of the world (how many legs, how fast). In Chinese they find "some", bounds
and money. They do not find questions of another story.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from truegold.pipeline.flag.rules.detector import PATTERNS, Finding, any_of, detector
from truegold.pipeline.tables.rows import Row
from truegold.pipeline.text.prose import CHINESE, FORMULA, ending, points_elsewhere, sentences, without_formulas
from truegold.verifiers.extract.listed_options import find_options


class _Story(NamedTuple):
    """A problem that asks for one quantity."""

    before: str
    """The text before the question."""
    facts: str
    """The text without its question."""
    asked: str
    """The question, beginning with "how many"."""

    @property
    def text(self) -> str:
        return f"{self.facts} {self.asked}"


# The phrase of a vague count ("a few animals") must end at one of these words. In "a few dangerous animals" the noun
# comes later, so the phrase is skipped.
_STOP = rf"(?=\s*[.,;]|\s+{any_of('after_vague_counts')}\b)"
_VAGUE_COUNT = re.compile(
    rf"\b{any_of('vague_counts')}(?!\s+of\b)(?:(?:\s+more)?(?:{_STOP}|(?=\s+{any_of('moving_verbs')}\b))"
    rf"|\s+(?:more\s+)?(?!more\b|days|hours|minutes|weeks|months|years|times?)(?P<noun>[a-z]+){_STOP})",
    re.IGNORECASE,
)
"""A count without a number: "some marbles.", "buys some more.". In "some of", it is a part and does not match."""
_LOSS_EXPLAINED = re.compile(
    rf"(?:\d|\b{any_of('plain_numbers')}\b).*\b(?:missing|gone|lost|stolen|sold|disappear\w*)\b.*\b(?:after|when|since)\b[^\d,]*$",
    re.IGNORECASE,
)
"""Text before a vague count that already gives the number: "12 are missing after he borrows" before "some"."""
_FOR_SO_MANY = re.compile(
    rf"\s+for\s+(?:his|her|their|its|my|our|your|the)\s+(?:\d|{any_of('plain_numbers')}\b)", re.IGNORECASE
)
"""Text after a vague count that gives the number: "for her 2 friends" means one for each friend."""
_STATE_ASKED = re.compile(rf"\bhow\s+(?:many|much)\b.*\b{any_of('states')}\b", re.IGNORECASE | re.DOTALL)
"""A question about a state after the events: "how many are left"."""
_THERE = re.compile(r"\bthere\s+(?:is|are|was|were|live|lived|hang|hung|stand|stood)\s+$", re.IGNORECASE)
_TOTAL_ASKED = re.compile(
    r"\b(?:total|altogether|in\s+all|combined|how\s+many\s+(?:\w+\s+)?(?:people|children|animals|persons|pupils|students"
    r"|creatures|fruits?|vehicles)\b.*|how\s+many\s+\w+\s+are\s+(?:there\s+)?in\s+(?:the|a)\b)",
    re.IGNORECASE,
)
"""A question for a total, which includes every count of the story."""
# With these words, the vague quantity may be asked for or can be computed. Then nothing is found.
_CLOSERS = re.compile(rf"\b{any_of('closers')}\b|[%$]", re.IGNORECASE)
_NUMBER_WORD = re.compile(rf"\d|\b{any_of('plain_numbers')}\b", re.IGNORECASE)
_VAGUE_CHINESE = re.compile(
    r"(?:有|买|来|吃|送|拿|给|走|加|放|借|摘|用|卖)[了来走出去给入进]*(?:一些|若干|几(?:[个只本张支颗条块])?(?![年天月小分岁点次第倍何]))"
)
_STATE_ASKED_CHINESE = re.compile(r"(?:现在|还剩|剩下|一共有|总共有|最后|还有)[^。！]*(?:多少|几)")
_CLOSERS_CHINESE = re.compile(
    r"还剩|剩下|剩余|现在|一共|共|总|平均|倍|分之|[%％]|比|相等|同样|每|正好|如果|原来|原有|一半"
)

# Signs other than vague counts, in stories without formulas and variables.
_QUESTION = re.compile(
    r"(?:\b(?:and|then|so),?\s)?(?:\bat\s+(?:least|most)\s)?\bhow\s+(?:many|much|far|long|old|tall|big|heavy)\b[^?]*(?:\?|$)",
    re.IGNORECASE,
)
_SENTENCE_WITHIN = re.compile(r"(?<!\bMrs)(?<!\bMr)(?<!\bMs)(?<!\bDr)\.\s+[A-Z]")
"""A sentence after a "how many" that does not ask: "She asked how many came. What is the mean?"."""
_VARIABLE = re.compile(r"(?<![\w'’.-])[b-hj-z](?![\w'’.-])")
"""A variable: one letter for a number."""
_AMOUNT = rf"(?:\$\s?)?(?:\d[\d,]*(?:\.\d+)?|{any_of('plain_numbers')})"
_BOUND = re.compile(
    rf"(?:\b(?P<by>(?:{_AMOUNT}|half|one|a|an)(?:\s+(?!and\b|but\b)[a-z]+){{0,2}})\s+)?"
    rf"(?<!\bno\s)(?<!\bnot\s)\b(?:more\s+than|less\s+than|fewer\s+than|at\s+least|at\s+most)\s+(?!1\b){_AMOUNT}"
    r"(?!\s*(?:%|times|percent|/|as\b|or\b|of\b)|[\d.,]*\d)",
    re.IGNORECASE,
)
"""A bound: "more than 26". "5 more than 26" is a sum and does not match."""
_RANGE = re.compile(
    rf"(?<!from\s)(?<!between\s)(?<![\w:.])(?:\$\s?)?\d+(?:\.\d+)?\s+to\s+(?:\$\s?)?\d+(?:\.\d+)?\s+(?!{any_of('after_a_ratio')}\b)[a-z]{{3,}}",
    re.IGNORECASE,
)
"""A range: "6 to 8 songs"."""
_RULE = re.compile(rf"\b{any_of('rule_words')}\b", re.IGNORECASE)
"""Words of rules and conditions. A bound may belong to such a rule."""
_BOUND_ASKED = re.compile(rf"\b{any_of('bounds_asked')}\b", re.IGNORECASE)
_VAGUE_EACH = re.compile(
    r"\b(?:each|every)\s+[a-z]+\s[^.,?!]{0,40}?\b(?:has|had|have|having|holds?|contain(?:s|ed|ing)?|gets?|got)\s+"
    r"(?:several|some|many|a\s+few)\s+[a-z]+",
    re.IGNORECASE,
)
"""A vague number for each: "each pile had several coins"."""
_VAGUE_PRICE = re.compile(
    r"\b(?:several|(?<!how\s)(?<!as\s)(?<!so\s)(?<!too\s)many)\s+(?:[a-z]+\s+){1,5}?(?:(?:that|which)\s+)?(?:for|at|costs?)\s*\$\s?\d[\d.]*\s+(?:each|apiece|per)\b"
    r"|\$\s?\d[\d.]*\s+(?:each|apiece)\s+(?:from|for|to)\s+(?:several|many|some)\b",
    re.IGNORECASE,
)
"""A price of uncounted things: "many paintings at $40 each"."""
# "dozens of eggs". "5 dozens" and "two and one-half dozens" do not match.
_VAGUE_MANY = re.compile(
    r"(?<![\d,])(?<!\d\s)(?<!\bsome\s)(?<!\b(?:two|six|ten)\s)(?<!\b(?:four|five|nine)\s)(?<!\b(?:three|seven|eight)\s)(?<!\bseveral\s)(?<!half\s)\b(?:dozens|hundreds|thousands)\s+(?:of\s+)?(?!years\b|digit)[a-z]{3,}",
    re.IGNORECASE,
)
_PART_TAKEN = re.compile(
    r"\b(?:some|part|several|most|a\s+few)\s+of\s+(?:it|them|that|those|these|the\s+[a-z]+|(?:his|her|their|its)\s+[a-z]+)\b",
    re.IGNORECASE,
)
"""An unknown part that is taken away: "some of them"."""
_INTENDS = re.compile(r"\b(?:always|decided?|wants?|wanted|plan(?:s|ned)?|would|likes?)\b", re.IGNORECASE)
_LEFT_ASKED = re.compile(r"\b(?:left|remain\w*)\b", re.IGNORECASE)
_VAGUE_MEASURE = re.compile(
    rf"(?<!how\s)(?<!so\s)(?<!as\s)(?<!after\s)(?<!that\s)(?<!over\s)\b(?:(?<!for\s)(?:several|some|many)\s+{any_of('vaguely_measured')}|for\s+(?:several|many)\s+(?:hours|minutes))\b(?!\s+(?:later|ago))",
    re.IGNORECASE,
)
_TIME_UNITS = frozenset("seconds minutes hours days weeks months years".split())
_CLOCK_OR_REST = re.compile(r"\b(?:left|now|remain\w*|still|rest)\b|\d\s?[ap]\.?m\b", re.IGNORECASE)
"""Words that determine the measure: the rest, or a time of day."""
# A vague span in the question: "for many years?".
_VAGUE_SPAN = re.compile(
    r"\b(?:for|in|after|during|over)\s+(?:several|many|a\s+few|some)\s+(?:seconds|hours|minutes|days|weeks|months|years)\b",
    re.IGNORECASE,
)
_SHARE = re.compile(
    rf"\b(?:\w+|\d[\d.,]*)\s+times\s+(?:as|more|fewer|less|the|that|what|[a-z]+er)\b|\b{any_of('fraction_words')}\b|\d+/\d+(?:ths?)?|\d[\d.]*\s*(?:%|percent)|\bratio\s+of\s+\d+\s*(?::|to)\s*\d+",
    re.IGNORECASE,
)
"""A number that is only relative: "three times", "a quarter", "40%"."""
_PART_OF_A_UNIT = re.compile(
    rf"\b(?:\d+/\d+|{any_of('fraction_words')})\s+(?:(?:of\s+)?an?\s+)?(?!times\b){any_of('measured_things')}\b"
    r"|\d/\d+\s+(?!times\b|less\b|this\b)[a-z]{3,}s\b",
    re.IGNORECASE,
)
"""A fraction that is an amount: "19/6 kg", "3/10 of a mile", "13/11 rows"."""
_ABSOLUTE = re.compile(rf"\d|\b{any_of('absolute_numbers')}\b|[$£€]", re.IGNORECASE)
_SHARE_ASKED = re.compile(r"\bhow\s+many\s+times\b|\bpercent|\bfraction\b|\bratio\b|\bproportion\b", re.IGNORECASE)
_ONE_THING = re.compile(
    r"\b(?:gives?|gave|eats?|ate|has|had|buys?|bought|drinks?|drank|makes?|made|takes?|took|gets?|got)\s+[^.]{0,20}?\ban?\s+(?!third|quarter|half|fourth|fifth)[a-z]",
    re.IGNORECASE,
)
_MONEY_ASKED = re.compile(
    r"\bhow\s+much\s+(?:more\s+)?(?:money\b|(?:does|did|will|do|would|is|was|has)\b[^?]{0,60}\b(?:pay|cost|spend|spent|earn|earned|owe|make)\b)",
    re.IGNORECASE,
)
_MONEY = re.compile(rf"[$£€¥]|\b{any_of('money_words')}\b", re.IGNORECASE)
_BARE_AMOUNT = re.compile(
    rf"\b{any_of('paying_words')}\b[^.?]{{0,25}}?(?<![\d.,])\d[\d.,]*\b(?!\s*(?:%|percent|/|[a-z]))|\bin\s+[a-z]+\s*\?",
    re.IGNORECASE,
)
"""An amount of money without its sign: "your order amounted to 450". Also a question for another unit: "in
silvers?"."""
_TIME_ASKED = re.compile(
    r"\bhow\s+(?:long\b[^?]{0,40}\btake|many\s+(?:more\s+|total\s+)?(?:seconds|hours|minutes|days|weeks|months))\b",
    re.IGNORECASE,
)
_TIME = re.compile(rf"\d:\d\d|\b{any_of('time_words')}\b", re.IGNORECASE)
_MORE_BY_NOTHING = re.compile(
    rf"(?<!\d\s)(?<!\d)\b{any_of('comparing_verbs')}\s+"
    r"(?:(?:more|less|fewer)\s+(?:[a-z]+\s+){0,3}?|(?:tall|heavi|long|short|old|young|fast|slow|cheap)er\s+)"
    rf"than\s+(?!\d|\$|{any_of('after_than')}\b)(?P<other>[^.?!]*)",
    re.IGNORECASE,
)
"""A comparison without its number: "had more marbles than Doug"."""
_BY_AMOUNT = re.compile(r"\bby\b|\bhalf\b|\btimes\b", re.IGNORECASE)

MIN_TOLD_WORDS = 12
"""The minimum number of words before the question. Fewer words may share none with the question by chance."""
_COUNTED = re.compile(r"\bhow\s+many\s+(?:more\s+|fewer\s+|total\s+)?(?P<noun>[a-z]+)", re.IGNORECASE)
_ASKED_ANYWHERE = frozenset(PATTERNS["asked_anywhere"])
STEM = 4
"""Words are compared by this number of first letters, so that "baked" and "bakes" are equal."""
_ENDINGS = ("ies", "ing", "ed", "es", "s")

# Chinese.
_BOUND_CHINESE = re.compile(
    r"(?:有|了|是|重|长|高|剩下?|卖出|用去)(?:大约)?(?:超过|多于|少于|不到|不足|至少|最多|不少于|不多于)\s*\d[\d.]*(?!\s*(?:[%％倍]|以|的))"
)
_RULE_CHINESE = re.compile(
    r"如果|若|每满|打折|优惠|收费|规定|部分|要求|需要|需|应|可以|能|凡|才|最大|最小|余|除|倍|原计划"
)
_BOUND_ASKED_CHINESE = re.compile(r"至少|最多|最少|最大|最小|可能|应|够|能|需")
_MONEY_ASKED_CHINESE = re.compile(r"多少(?:元|块|角|分)?钱|多少[元角]")
_MONEY_CHINESE = re.compile(
    r"\d\s*[元角分块]|[元角¥￥]|人民币|[一二三四五六七八九十百千万两]块|价|钱.{0,6}\d|\d.{0,6}钱"
)


def _story(prompt: str) -> _Story | None:
    """Return the story and its question, or None unless the prompt has exactly one question for a quantity."""
    text = without_formulas(prompt)
    questions = list(_QUESTION.finditer(text))
    if len(questions) != 1 or FORMULA in text or _SENTENCE_WITHIN.search(questions[0][0]) or _VARIABLE.search(text):
        return None
    start, end = questions[0].span()
    return _Story(text[:start], f"{text[:start]} {text[end:]}", questions[0][0])


def _asks_openly(row: Row) -> bool:
    """Return True if a prompt is mathematics without options."""
    return row["domain"] == "math" and row.get("verifier") != "choice" and find_options(row["prompt"]) is None


@detector("missing_quantity", version="5")
def missing_quantity(row: Row) -> list[Finding]:
    """Find a question that depends on a number which the prompt does not give."""
    prompt = row["prompt"]
    if not _asks_openly(row):
        return []
    signs = _chinese_signs(prompt) if CHINESE.search(prompt) else _signs(prompt)
    missing = next(((why, says) for why, says in signs if says is not None), None)
    if missing is None:
        return []
    return [Finding("missing_quantity", evidence={"why": missing[0], "says": ending(missing[1])})]


Sign = tuple[str, str | None]
"""The reason why a number is missing, and the words that show it, or None."""


def _signs(prompt: str) -> Iterator[Sign]:
    yield "no number", _vague_count(prompt)
    if (story := _story(prompt)) is None:
        return
    for why, look in _LOOKS.items():
        yield why, look(story)


def _vague_count(prompt: str) -> str | None:
    """Return a vague quantity that the question depends on, in a story of adding and taking away."""
    parts = sentences(without_formulas(prompt))
    questions = [part for part in parts if re.search(r"\bhow\s+(?:many|much)\b", part, re.IGNORECASE)]
    if len(questions) != 1 or not _NUMBER_WORD.search(prompt):
        return None
    question = questions[0]
    story = " ".join(part for part in parts if part is not question)
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
        if _LOSS_EXPLAINED.search(beside) or _FOR_SO_MANY.match(story, match.end()) or _is_parted(story, match):
            continue
        if match["noun"] is None or match["noun"].lower().rstrip("s") in asked or is_part:
            return match[0]
    return None


def _is_parted(story: str, match: re.Match[str]) -> bool:
    """Return True if the numbers after "there are some foxes" count all foxes in parts, and no foxes come or go."""
    if match["noun"] is None or not _THERE.search(story, 0, match.start()):
        return False
    counted = rf"(?:\d|\b{any_of('plain_numbers')})\s+{match['noun']}\b(?!\s+{any_of('moving_verbs')}\b)"
    return len(re.findall(counted, story[match.end() :], re.IGNORECASE)) > 1


def _bound(story: _Story) -> str | None:
    """Return a bound or a range instead of a number, if an exact number is asked for."""
    if _RULE.search(story.text) or _BOUND_ASKED.search(re.sub(r"how\s+(?:many|much)\s+more", "", story.asked)):
        return None
    for sentence in sentences(story.facts):
        for match in _BOUND.finditer(sentence):
            if match["by"] is None and "%" not in sentence[: match.start()]:
                return match[0]
    return _first(_RANGE, story.facts)


def _uncounted(story: _Story) -> str | None:
    """Return words for uncounted things or an uncounted part."""
    each = None if re.search(r"\beach\b", story.asked, re.IGNORECASE) else _first(_VAGUE_EACH, story.facts)
    return (
        each
        or _first(_VAGUE_PRICE, story.facts)
        or _first(_VAGUE_MANY, story.facts)
        or _vague_measure(story)
        or _first(_VAGUE_SPAN, story.asked)
        or _part_taken(story)
    )


def _vague_measure(story: _Story) -> str | None:
    """Return a measure without a number, unless it is asked for or can be computed."""
    match = _VAGUE_MEASURE.search(story.facts)
    if match is None or _CLOCK_OR_REST.search(story.text):
        return None
    unit = match[0].split()[-1].lower()
    is_asked = unit in story.asked.lower() or (unit in _TIME_UNITS and "how long" in story.asked.lower())
    return None if is_asked else match[0]


def _part_taken(story: _Story) -> str | None:
    match = _PART_TAKEN.search(story.facts)
    if match is None or not _LEFT_ASKED.search(story.asked) or _INTENDS.search(story.facts):
        return None
    return None if _NUMBER_WORD.search(story.facts, match.end()) else match[0]


def _shares_alone(story: _Story) -> str | None:
    """Return the first share in a story without any other number, if a number of things is asked for."""
    rest = _SHARE.sub(" ", story.facts)
    match = _SHARE.search(story.facts)
    if match is None or _ABSOLUTE.search(rest) or _ABSOLUTE.search(story.asked) or _SHARE_ASKED.search(story.asked):
        return None
    return None if _ONE_THING.search(story.facts) or _PART_OF_A_UNIT.search(story.facts) else match[0]


def _no_money(story: _Story) -> str | None:
    """Return a question for money, if the prompt has no amount of money."""
    match = _MONEY_ASKED.search(story.asked)
    return match[0] if match and not (_MONEY.search(story.text) or _BARE_AMOUNT.search(story.text)) else None


def _no_time(story: _Story) -> str | None:
    """Return a question for a time, if the prompt has numbers but no time."""
    match = _TIME_ASKED.search(story.asked)
    if match is None or not any(map(str.isdigit, story.facts)):
        return None
    return None if _TIME.search(story.facts + story.asked.replace(match[0], " ")) else match[0]


def _more_by_nothing(story: _Story) -> str | None:
    """Return a comparison without its amount: "had more pens than Dan"."""
    if _RULE.search(story.text) or not any(map(str.isdigit, story.text)):
        return None
    for match in _MORE_BY_NOTHING.finditer(story.facts):
        if not _BY_AMOUNT.search(match["other"]):
            return match[0].removesuffix(match["other"])
    return None


def _sibling(story: _Story) -> str | None:
    """Return a thing that only the question mentions, if the story mentions others of its kind."""
    facts, asked = ({word.lower() for word in re.findall(r"[A-Za-z]+", text)} for text in story[1:])
    for kind in PATTERNS["kinds"].values():
        others, new = facts.intersection(kind), asked.intersection(kind) - facts
        if len(others) > 1 and new:
            return str(min(new))
    return None


_LOOKS: dict[str, Callable[[_Story], str | None]] = {
    "a bound": _bound,
    "no number": _uncounted,
    "shares alone": _shares_alone,
    "no amount of money": _no_money,
    "no time": _no_time,
    "more by no number": _more_by_nothing,
    "only asked for": _sibling,
}
"""Each reason why a number is missing -> the function that finds it."""


def _first(pattern: re.Pattern[str], text: str) -> str | None:
    match = pattern.search(text)
    return match[0] if match else None


def _chinese_signs(prompt: str) -> Iterator[Sign]:
    clauses = re.split(r"[，,。．！；？?]", prompt)
    asking = [clause for clause in clauses if re.search("多少|几(?!何)", clause)]
    if not asking or FORMULA in without_formulas(prompt):
        return
    facts = "，".join(clause for clause in clauses if clause not in asking)
    if _STATE_ASKED_CHINESE.search(asking[-1]) and not _CLOSERS_CHINESE.search(facts) and _NUMBER_WORD.search(facts):
        yield "no number", _first(_VAGUE_CHINESE, facts)
    if not _RULE_CHINESE.search(facts) and not _BOUND_ASKED_CHINESE.search(asking[-1]):
        yield "a bound", _first(_BOUND_CHINESE, facts)
    if (asked := _MONEY_ASKED_CHINESE.search(asking[-1])) and not _MONEY_CHINESE.search(prompt.replace(asked[0], "")):
        yield "no amount of money", asked[0]


@detector("foreign_question", version="2")
def foreign_question(row: Row) -> list[Finding]:
    """Find a question that has no word in common with its story, or is about another text."""
    if (pointer := points_elsewhere(row["prompt"])) is not None:
        return [Finding("foreign_question", evidence={"refers_to": ending(pointer)})]
    story = _story(row["prompt"]) if _asks_openly(row) else None
    counted = _COUNTED.search(story.asked) if story else None
    if story is None or counted is None or len(story.before.split()) < MIN_TOLD_WORDS or re.search(r"\d", story.asked):
        return []
    words = [word for word in re.findall(r"[A-Za-z]+", story.asked) if word.lower() not in _ASKED_ANYWHERE]
    known = {_stem(word) for word in re.findall(r"[A-Za-z]+", story.facts)}
    if counted["noun"] not in words or not any(word[0].isupper() for word in words):
        return []
    if any(_stem(word) in known for word in words):
        return []
    return [Finding("foreign_question", evidence={"asks": ending(story.asked), "new": words})]


def _stem(word: str) -> str:
    word = word.lower()
    suffix = next((suffix for suffix in _ENDINGS if word.endswith(suffix) and len(word) >= len(suffix) + 3), "")
    return word.removesuffix(suffix)[:STEM]
