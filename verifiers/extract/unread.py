r"""Tells responses with an unread answer from responses without an answer.

    Response                                               `ends_with_value`
    We add them up. Together seventy-two dollars it is.    True
    <respuesta>72</respuesta>                              True
    I am sorry, I cannot work that out.                    False
    There is not enough information to find f(0).          False: the response says that there is no answer

    Gold    Response                                       `names_gold`
    72      ... Together seventy-two dollars it is.        True
    7       ... Together seventy-two dollars it is.        False
    C       ... 综上，选项为 C 项。                           True

These functions do not change the score: an unread answer scores 0, as a wrong answer does. Counts of their results show
whether a verifier misses a form of answers. A gold of one digit often ends a response by chance. `unread_tally`
therefore also counts responses that end with the gold of another row.
"""

from __future__ import annotations

import re
from fractions import Fraction

from truegold.verifiers.extract.committed import final_part, last_line
from truegold.verifiers.extract.denials import is_refused, is_withheld
from truegold.verifiers.extract.stated_values import has_value
from truegold.verifiers.written_numbers import PYTHON_RUN, chinese_integer, plain_number, read_run

GUESSED = ("first_line", "last_line", "conclusion")
"""Forms of answers that no words or marks announce."""
END_CHARS = 600
"""Number of characters at the end of a response that are searched for an answer."""
MAX_GOLD_CHARS = 200
"""Maximum length in characters of a gold that is searched for."""
SHORT_CHARS = 3
"""A gold of up to this many letters and digits has to stand in the response as a whole word."""

_RUN = re.compile(PYTHON_RUN, re.IGNORECASE)
_DIGITS = re.compile(r"\\frac\{\d{1,20}\}\{\d{1,20}\}|(?<![\d.])\d[\d,]{0,40}(?:\.\d{1,40})?(?:/\d{1,20})?")
_CHINESE_NUMERAL = re.compile(r"[零〇一二两三四五六七八九十百千万亿]{2,20}")
_TYPESETTING = re.compile(r"\\(?:text|mathrm|mathbf|left|right|displaystyle|[dt]?frac)(?![A-Za-z])|[\s$\\{}()*_`~,]")
_COMMAND = re.compile(r"\\[A-Za-z]{2,20}")
_BETWEEN = re.compile(r",(?!\d{3}(?!\d))|[;、]|\b(?:and|or)\b")
"""Separators between the values of a gold; `1,250` is one value."""
_BRACKETS = "$.() []{}\\"
_MARKS = "$.。*_` ()"


def ends_with_value(response: str, problem: str | None = None) -> bool:
    """Tell whether a response ends with a number, in digits or words, or with a formula.

    Values that the problem has too do not count, since a base model often goes on with the question.
    """
    end = final_part(response)[-END_CHARS:]
    if not end or is_withheld(last_line(end)) or is_refused(last_line(end)):
        return False
    if problem is None:
        return has_value(end) or bool(_numbers_in_words(end))
    return bool(_numbers(end) - _numbers(problem)) or bool({*_COMMAND.findall(end)} - {*_COMMAND.findall(problem)})


def names_gold(response: str, gold: str | None, problem: str | None = None) -> bool:
    """Tell whether a response ends with gold: with its number, or else with its letters and digits.

    All values of a gold have to be there. A gold that the problem names too gives False.
    """
    if gold is None or not (bare := gold.strip(_MARKS)) or len(bare) > MAX_GOLD_CHARS:
        return False
    parts = several_values(bare) or [bare]
    end = final_part(response)[-END_CHARS:]
    if is_refused(last_line(end)):
        return False
    return all(_holds(end, part) and not (problem is not None and _holds(problem, part)) for part in parts)


def several_values(gold: str) -> list[str]:
    """Return the values of a gold that commas, semicolons, `and` or `or` separate; an empty list for one value."""
    parts = [part.strip(_BRACKETS) for part in _BETWEEN.split(gold)]
    return parts if len(parts) > 1 and all(parts) else []


def _holds(end: str, gold: str) -> bool:
    """Tell whether the end of a text has the number of gold, or its letters and digits."""
    if (value := plain_number(gold.strip("{}"))) is not None:
        return abs(value) in _numbers(end)
    if len(key := _key(gold)) > SHORT_CHARS:
        return key in _key(end)
    return bool(key) and re.search(rf"(?<![A-Za-z0-9]){re.escape(gold)}(?![A-Za-z0-9])", end) is not None


def _numbers(text: str) -> set[Fraction]:
    """Return the absolute values of all numbers in a text: in digits, English words and Chinese numerals."""
    written = {plain_number(match.replace("\\d", "\\").rstrip(",")) for match in _DIGITS.findall(text)}
    eastern = {chinese_integer(match) for match in _CHINESE_NUMERAL.findall(text)}
    return {Fraction(value) for value in written | eastern if value is not None} | _numbers_in_words(text)


def _numbers_in_words(text: str) -> set[Fraction]:
    """Return the numbers in English words, without ordinals and without `one`, which is mostly a pronoun."""
    readings = [reading for match in _RUN.findall(text) for reading in read_run(match.lower())]
    return {value for value, is_ordinal in readings if not is_ordinal and value != 1}


def _key(text: str) -> str:
    """Return the letters, digits and signs of a text, without blanks, brackets and commands that only typeset."""
    return _TYPESETTING.sub("", text).casefold()
