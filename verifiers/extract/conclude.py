r"""The answer of a response that announces none: what its last line concludes.

    ... prose ...\n**5**            a last line that is one expression                               5
    ... \[ x = 5 \]                 the same, displayed                                              x = 5
    Therefore, John has 5 apples.   the value that the last sentence states                          5 apples
    She paid 3 for 2 apples.        nothing: two values, and no word which of them is meant
    So the total is 12 and          nothing: the sentence is cut off
    Is it 5?                        nothing: a question states no value
    Output score: 1.0               nothing: it speaks to the grader
    The answer isn't 5.             nothing: a denial, see `deny`
    x = -3 fails, hence x = 8.      8: the last of its clauses that concludes
    So there is no solution.        no solution

At most one value is read, from a line that the response cannot choose, so naming several does not pay. Not covered:
lines further up, lines of code and of tables.
"""

from __future__ import annotations

import re

from truegold.verifiers.extract.deny import (
    contrasted,
    denies_a_number,
    is_conditional,
    is_denied,
    is_withheld,
    preferred,
)
from truegold.verifiers.extract.narrow import last_sentence, without_about
from truegold.verifiers.extract.response import MAX_LINE_CHARS
from truegold.verifiers.extract.retract import retraction
from truegold.verifiers.extract.values import MARKS, MAX_PLAIN_WORDS, has_value, is_expression, stated

MAX_TAIL_CHARS = 4_000
"""Only so much of the end is searched for the last line or the last displayed formula."""

MAX_DISPLAY_LINES = 12

_NOT_PROSE = re.compile(
    r"```|\||#|import |from |print\(|return |\w{1,60}\s?=\s?\w{1,60}\(|\S{0,80}(?:Error|Exception)\b"
)
_UNFINISHED = re.compile(
    r"(?:[,;:：，、；=+*/(（\[{<>^_\\-]|\b(?:and|or|the|a|an|of|to|is|are|was|with|by|for|from|in|on|at|so|if|that|we"
    r"|we can|then|which|but|as|because))$"
)
_PLAN = re.compile(
    r"(?:now,? |next,? |first,? |so,? )?(?:let['’]?s|let us|let me|we (?:need|can|will|must|have) )", re.IGNORECASE
)
_CONCLUDING_CLAUSE = re.compile(
    r".*(?:[,;]\s(?:and\s)?(?:so|hence|thus|therefore|which means|i\.e\.|that is),?\s"
    r"|[，,；;](?:(?:所以|因此|故|则|即|从而)|(?:一共|总共|共计?|合计)(?:有|是|为)?(?=\s?\d[^，,；;]*$)))(.+)$",
    re.DOTALL,
)
_REASON = re.compile(r",?\s(?:since|because)\s|，?因[为為]", re.IGNORECASE)
_NO_VALUE = re.compile(
    r"(?:\b(?:no (?:(?:real|integer|positive|such|valid|other) )?solutions?|does not exist|is undefined)"
    r"|[无無]解|不存在)[.。]?$",
    re.IGNORECASE,
)
_GRADING = re.compile(r"\b(?:score|grade|reward|rating|marks?)\b[^.]{0,20}[:=]", re.IGNORECASE)
"""Words to whoever grades the response are no answer."""


def last_expression(text: str) -> str | None:
    """Return the last line where it is one expression and no sentence."""
    line = _last_line(text)
    if line is None or "?" in line or not has_value(line) or _is_cut_off(line) or denies_a_number(line):
        return None
    return line.strip(MARKS + ".。") if is_expression(line, MAX_PLAIN_WORDS) else None


def conclusion(text: str) -> str | None:
    """Return the value that the last sentence states, or its words for there being none."""
    line = _last_line(text)
    if line is None:
        return None
    sentence = last_sentence(line)
    if sentence.endswith(("?", "？")) or _PLAN.match(sentence) or _GRADING.search(sentence) or _is_cut_off(sentence):
        return None
    if none := _NO_VALUE.search(sentence):
        return none[0]
    concluding = _CONCLUDING_CLAUSE.search(sentence)
    if concluding and has_value(concluding[1]):
        sentence = concluding[1]
    if is_withheld(sentence) or is_conditional(sentence):
        return None
    return _stated_for_good(contrasted(sentence) or preferred(sentence))


def _stated_for_good(sentence: str) -> str | None:
    """Return the value that a sentence states and does not deny or take back."""
    reason = _REASON.search(sentence)
    if reason and has_value(sentence[: reason.start()]):
        sentence = sentence[: reason.start()]
    value = stated(sentence)
    if value is None or is_denied(sentence, value):
        return None
    taken_back = retraction(sentence.rpartition(value)[2], value)
    return without_about(value) if taken_back is None else taken_back.answer


def _last_line(text: str) -> str | None:
    """Return the last line, or the displayed formula that ends with it; None for code, tables and long lines."""
    tail = text[-MAX_TAIL_CHARS:].rstrip()
    line = tail.rpartition("\n")[2].strip()
    closing = next((mark for mark in ("\\]", "$$") if line.endswith(mark)), None)
    if closing is not None:
        opening = tail.rfind("\\[" if closing == "\\]" else "$$", 0, len(tail) - 2)
        if opening != -1 and tail.count("\n", opening) <= MAX_DISPLAY_LINES and opening < len(tail) - len(line):
            line = " ".join(tail[opening:].split())
    if len(line) > MAX_LINE_CHARS or _NOT_PROSE.match(line):
        return None
    return line


def _is_cut_off(sentence: str) -> bool:
    return bool(_UNFINISHED.search(sentence.rstrip(MARKS)))
