r"""Rewrites the last sentences of a response, so that the value in them is found. (`affirms` finds a yes or no.)

    Response                                                            Result
    Nike had assets of $16,525 million in 2019.                         Nike had assets of $16,525 million in X.
                                                                        (the problem has 2019)
    The ratio is 1.73. This is calculated by dividing 26 by 15.         The ratio is 1.73.
    The ratio is 26/15. This is found to be 1.73.                       unchanged: the last sentence has a result
    There are three objects left on the table.                          There are 3 objects left on the table.
    还剩四分之三。                                         还剩 3/4。
    Crimson is not the minimum.                                         no
                                                                        (the problem is "Is Crimson the minimum?")

A number of the problem is found only in the same spelling: `two thousand` does not match 2,000.
"""

from __future__ import annotations

import re
from fractions import Fraction

from truegold.verifiers.extract.stated_values import ANY_OF, has_value
from truegold.verifiers.written_numbers import (
    CHINESE_DIGITS,
    CHINESE_SCALES,
    PYTHON_RUN,
    chinese_decimal,
    number_in_words,
)

MAX_PROBLEM_CHARS = 20_000
"""Maximum number of characters at the start or the end of a problem that are searched.

Also the maximum length of a response that is read as yes or no."""
MAX_TAIL_CHARS = 2_000
"""Maximum number of characters at the end of a response or a problem that are read."""
MAX_EXPLANATIONS = 4
"""Maximum number of explaining sentences that are removed."""

_NUMERAL = re.compile(r"\d+(?:,\d{3})*(?:\.\d+)?")
_COUNT = re.compile(
    rf"(\b(?:{ANY_OF['counting_verbs']})\s(?:(?:{ANY_OF['counting_adverbs']})\s)?)({PYTHON_RUN})\s([a-z]+)",
    re.IGNORECASE,
)
"""A number word between a verb and a noun: `are | three | objects`."""
_RUN = re.compile(PYTHON_RUN, re.IGNORECASE)
_PLANS = re.compile(ANY_OF["plan_nouns"])
"""Nouns for parts of the solution itself, such as `steps`. A count of these parts is not an answer."""
_CHINESE = rf"[{''.join((*CHINESE_DIGITS, *CHINESE_SCALES))}点]{{1,20}}"
_CHINESE_PARTS = re.compile(rf"(负?)(?:({_CHINESE})又)?({_CHINESE})分之({_CHINESE}|\d{{1,20}}(?:\.\d{{1,20}})?)")
"""A Chinese fraction or percentage: 四分之三, 二又二分之一, 百分之五十, 百分之37."""
_CHINESE_TOTAL = re.compile(
    r"((?:^|[，,。；;：:])\s?(?:(?:所以|因此|因而|故|即|综上|那么|则)[，,]?)?[他她它我们两三四人全班校小组队大家]{0,6}"
    r"(?:[一总]?共计?|[合总]计))([有是为]?)"
    rf"((?:(?!千[克米瓦卡赫伏帕焦])[{''.join((*CHINESE_DIGITS, *CHINESE_SCALES))}点]){{1,20}})"
    r"(?=[^\W\d_不少多几余来比倍成左右到和与或加减乘除至的说吗呢，]{0,6}[。.！!]?$)"
)
"""A Chinese total in the last clause: 共七十二个, 所以他们一共有七十二个苹果。"""
_CHINESE_ABOUT = re.compile("[一二两三四五六七八九]{2}")
"""Two digits without a scale, as in 七八个 (seven or eight) and 三四十."""
MAX_STATEMENT_CHARS = 400
"""Maximum length in characters of a sentence that is compared with the question."""
_AUXILIARIES = "is|are|was|were|does|do|did|can|has|have|had|will"
_ASKED = re.compile(rf"(?:^|[.!?:：]\s*|\n\s*)({_AUXILIARIES})\s([^?\n]{{3,400}})\?", re.IGNORECASE)
"""A question that asks for yes or no: its auxiliary and the words after it."""
_ASKING = re.compile(rf"\W*(?:{_AUXILIARIES})\b", re.IGNORECASE)
_DENIED_VERB = re.compile(rf"\b({_AUXILIARIES})(?:\snot\b|n['’]t\b)", re.IGNORECASE)
"""An auxiliary with a negation: `is not`."""
_LEAD = re.compile(r"(?:(?:so|thus|hence|therefore|overall|in conclusion|consequently)\b[,\s]*)?", re.IGNORECASE)
_BECAUSE = re.compile(r",?\s(?:because|since|according to|based on|given)\b|,\s(?:as|which)\b", re.IGNORECASE)
_SECOND_THOUGHT = re.compile(
    r"\b(?:but|however|wait|actually|although|though|if|suppose|assume|imagine|maybe|perhaps|unclear|not sure)\b",
    re.IGNORECASE,
)
"""Words of a response that is not a plain answer: `but`, `maybe`."""
_IDLE = frozenset(("the", "a", "an", "this", "that", "is", "are", "does", "do", "there"))
"""Words that are not compared with the question."""
_WORD = re.compile(r"\w+(?:['’-]\w+)*")
_EXPLANATION = re.compile(rf"(?:{ANY_OF['explanations']})(?!.*(?:=|\bto be\b|≈))", re.IGNORECASE | re.DOTALL)
"""The beginning of a sentence that explains the value before it."""
_LAST_SENTENCE = re.compile(r"(?:^|(?<=[.!?]\s)|(?<=\n))(?:[^.!?\n]|[.](?=\d)){1,300}[.!?*]{0,3}$")
_QUESTION = re.compile(r"[^.?!\n]{1,400}\?")
_COMPARED = re.compile(
    rf"(?<![\d.,])({_NUMERAL.pattern})(?:\s[a-z]+){{0,2}}?\s(?:more|less|fewer|[a-z]{{2,9}}er)\b(?:\s[a-z]+){{0,2}}?\sthan\b"
    rf"|比[^，。\d]{{1,12}}?[多少大小高低长短重轻贵快慢]了?({_NUMERAL.pattern})",
    re.IGNORECASE,
)
"""A difference: `24 more apples than`, 比原来多24."""
_ASKS_COMPARISON = re.compile(
    r"\b(?:than|more|less|fewer|differ\w*|exceed\w*|increas\w*|decreas\w*|chang\w*|extra|additional|gain\w*|ris\w+|rose"
    r"|drop\w*|gr[eo]w\w*|sav\w+|lo(?:st|se)|profit|\w{2,8}er)\b|比|差|[多少]多少|[多少]几|增|减",
    re.IGNORECASE,
)
"""A question for a difference."""
_LETTERS = re.compile(r"[^\W\d_]+(?:'t)?")
_STEM_CHARS = 4
"""Number of letters at the start of a word that are compared, so that `buys` matches `buying`."""
_IDLE_IN_ANSWERS = frozenset(
    "the a an is are was were there he she it they so thus hence therefore of in to we get have has be".split()
)
"""Words that may stand in an answer without occurring in the question."""
_SENTENCE_START = re.compile(r"[.!?][*_)\"']{0,3}\s+(?=[A-Z])|\n")


def without_given_numbers(text: str, problem: str) -> str | None:
    """Return the end of a text with X for each number of the problem, or None if it has no such number."""
    numerals = set(_NUMERAL.findall(problem[:MAX_PROBLEM_CHARS]))
    tail = text[-MAX_TAIL_CHARS:]
    masked = _NUMERAL.sub(lambda match: "X" if match[0] in numerals else match[0], tail)
    return None if masked == tail else masked


def with_counts(text: str, problem: str | None) -> str | None:
    """Return the last line with its number word in digits: `There are three objects` -> `There are 3 objects`.

    The word has to be the only number word and to count a noun of the problem. Otherwise, return None.
    """
    line = text[-MAX_TAIL_CHARS:].rstrip().rpartition("\n")[2]
    if _SECOND_THOUGHT.search(line) is not None:
        return None
    numbers = [run for run in _RUN.findall(line) if run.casefold() != "one"]
    if len(numbers) != 1 or (count := _COUNT.search(line)) is None or count[2] != numbers[0]:
        return None
    value, noun = number_in_words(count[2].casefold()), count[3].casefold()
    is_asked = noun.rstrip("s") in problem.casefold() if problem else not _PLANS.fullmatch(noun)
    if value is None or value.denominator != 1 or not is_asked:
        return None
    return f"{line[: count.start(2)]}{value}{line[count.end(2) :]}"


def with_chinese_numbers(text: str) -> str | None:
    """Return the last line with Chinese fractions, percentages and totals in digits. None if it has none of these."""
    line = text[-MAX_TAIL_CHARS:].rstrip().rpartition("\n")[2]
    digits = _CHINESE_TOTAL.sub(_total_in_digits, _CHINESE_PARTS.sub(_in_digits, line))
    return None if digits == line else digits


def _in_digits(match: re.Match[str]) -> str:
    """Return a Chinese fraction in digits: 3/4 for 四分之三, 50% for 百分之五十."""
    sign, whole, below, above = match.groups()
    counted = above if above[0].isdecimal() and above.isascii() else chinese_decimal(above)
    if below == "百":
        return match[0] if counted is None or whole else f" {'-' * bool(sign)}{float(counted):.12g}%"
    divisor, added = chinese_decimal(below), chinese_decimal(whole or "零")
    if counted is None or not divisor or added is None:
        return match[0]
    value = added + Fraction(counted) / divisor
    return f" {'-' * bool(sign)}{value.numerator}/{value.denominator}"


def _total_in_digits(match: re.Match[str]) -> str:
    """Return a Chinese total in digits, after a verb: 一共有72个 for 一共七十二个."""
    value = chinese_decimal(match[3])
    return (
        match[0]
        if value is None or _CHINESE_ABOUT.search(match[3].partition("点")[0])
        else f"{match[1]}{match[2] or '有'}{float(value):.12g}"
    )


def affirms(problem: str, response: str) -> bool | None:
    """Return True if a response repeats the question as a statement (yes), and False if it denies the statement (no).

    Only the first and the last sentence are read. Return None if neither repeats the question, or if they contradict
    each other. The words have to keep their order: "A is greater than B" does not answer "Is B greater than A?".
    """
    questions = dict.fromkeys(_ASKED.findall(problem[-MAX_TAIL_CHARS:]))
    if len(questions) != 1 or len(response) > MAX_PROBLEM_CHARS or _SECOND_THOUGHT.search(response):
        return None
    ((auxiliary, asked),) = questions
    sentences = [line for line in _SENTENCE_START.split(response.strip()) if line.strip()]
    key = _words(asked, auxiliary)
    verdicts = {_says(key, sentence, auxiliary) for sentence in (*sentences[:1], *sentences[-1:])} - {None}
    return verdicts.pop() if len(verdicts) == 1 and "not" not in key else None


def _says(key: list[str], sentence: str, auxiliary: str) -> bool | None:
    """Return whether a sentence affirms (True) or negates (False) the question with the words `key`, or None."""
    if "?" in sentence or len(sentence) > MAX_STATEMENT_CHARS or _ASKING.match(sentence):
        return None
    sentence = _LEAD.sub("", _BECAUSE.split(sentence.strip(), maxsplit=1)[0])
    denials = len(_DENIED_VERB.findall(sentence))
    words = _words(_DENIED_VERB.sub(r" \1 ", sentence), auxiliary)
    return denials == 0 if words == key and denials <= 1 else None


def _words(text: str, auxiliary: str) -> list[str]:
    """Return the words of a sentence in lower case, without auxiliaries, articles and plural endings."""
    idle = _IDLE | {auxiliary.casefold()}
    return [word.rstrip("es") or word for word in _WORD.findall(text.casefold()) if word not in idle]


def restatement(text: str, problem: str) -> str | None:
    """Return the only number of the last sentence if all its other words occur in the question, or None.

    "How many of them can't he buy?"      He can't buy 5 of them.      5
    """
    sentence = _LAST_SENTENCE.search(text[-MAX_TAIL_CHARS:].rstrip())
    question = _QUESTION.findall(problem[-MAX_PROBLEM_CHARS:])
    if sentence is None or not question or len(numerals := _NUMERAL.findall(sentence[0])) != 1:
        return None
    asked = set(_LETTERS.findall(question[-1].casefold().replace("’", "'")))
    stems = {word[:_STEM_CHARS] for word in asked if len(word) >= _STEM_CHARS}
    words = set(_LETTERS.findall(sentence[0].casefold().replace("’", "'"))) - asked - _IDLE_IN_ANSWERS
    is_same = all(len(word) >= _STEM_CHARS and word[:_STEM_CHARS] in stems for word in words)
    return numerals[0] if is_same and "?" not in sentence[0] else None


def repeats_comparison(text: str, value: str, problem: str) -> bool:
    """Return whether the last sentence only repeats a difference that the problem states and does not ask for.

    "... got 24 more. How many apples has it now?"      There are 24 more than before.      True
    """
    problem = problem[-MAX_PROBLEM_CHARS:].replace("？", "?")
    stated, questions = _NUMERAL.search(value), _QUESTION.findall(problem)
    if stated is None or not questions or _ASKS_COMPARISON.search(questions[-1]) is not None:
        return False
    line = text[-MAX_TAIL_CHARS:].rstrip().rpartition("\n")[2]
    compared = {numeral for match in _COMPARED.findall(line) for numeral in match}
    return stated[0] in compared.intersection(_NUMERAL.findall(problem))


def without_explanations(text: str) -> str:
    """Return a text without the sentences at its end that explain how the value before them was found."""
    text = text.rstrip()
    for _ in range(MAX_EXPLANATIONS):
        starts = [match.end() for match in _SENTENCE_START.finditer(text, max(0, len(text) - MAX_TAIL_CHARS))]
        if not starts or _EXPLANATION.match(text, starts[-1]) is None or not has_value(text[: starts[-1]]):
            break
        text = text[: starts[-1]].rstrip()
    return text
