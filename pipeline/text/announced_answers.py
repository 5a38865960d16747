r"""Finds answers that a prompt gives away.

"What is 6*7?\nAnswer: 42"                      gold 42    a last line that can be removed (`drop_answer_line`)
"What is 6*7? The correct answer is $42$."      gold 42    an announced answer (`announced_answers`)
"Put your answer in \boxed{}."                  gold 42    nothing: the box is empty
"If the answer to the first part is 7, ..."     gold 42    nothing: 7 is given by the problem, and is not gold
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

MAX_ANSWER_CHARS = 200
"""The maximum number of characters of an announced answer."""

_FINAL = r"(?:final|correct|right|expected|reference|true|gold)\s+"
_NAME = rf"(?:(?:the\s+)?(?:{_FINAL})?answer|ans\.?|(?:标准|正确|参考|最终)?答案)"
_ANNOUNCED = re.compile(
    rf"(?<![A-Za-z]){_NAME}\s{{0,5}}(?:is\b\s{{0,5}}[:：]?|are\b|[:：=]|是|为)\s{{0,5}}(?P<value>[^\n]{{1,{MAX_ANSWER_CHARS}}})",
    re.IGNORECASE,
)
"""An announcement within a text: "the correct answer is 42", "答案：42"."""
_ANSWER_LINE = re.compile(
    rf"[*#_\s(（\[]{{0,6}}{_NAME}[*_]{{0,2}}\s{{0,5}}(?:is\b\s{{0,5}}[:：]?|[:：=]|是|为)[*_]{{0,2}}\s{{0,5}}(?P<value>[^\n]{{1,{MAX_ANSWER_CHARS}}})",
    re.IGNORECASE,
)
"""A line that consists of an announcement: "**Answer:** 42"."""
_HASHES = re.compile(rf"^\s{{0,5}}####\s{{0,5}}(?P<value>[^\n]{{1,{MAX_ANSWER_CHARS}}})", re.MULTILINE)
"""A line of GSM8K with the answer: "#### 42"."""
_BOX = re.compile(r"\\(?:boxed|fbox)\s{0,3}\{")
_SENTENCE_END = re.compile(r"[.。!！;；](?=\s|\Z)|[)）](?=\s|\Z)|[,，](?=\s)")
"""A character that may end an answer: the end of a sentence, a bracket, or a comma before a space."""
_WRAPPER = re.compile(r"\\(?:text|textbf|mathrm|mathbf|boxed)\s{0,3}(?=\{)|\\[()\[\],;! ]|\\(?:left|right)(?![A-Za-z])")
"""LaTeX commands around an answer."""
_GROUPING_COMMA = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
"""The comma of 1,000."""
_DROPPED = str.maketrans("", "", " \t\n$*{}")
_PLACEHOLDER = re.compile(r"[_.…?？\s-]*")
"""A box that is to be filled in: "...", "____", "?"."""


@dataclass(frozen=True, slots=True)
class AnnouncedAnswer:
    """An answer that a prompt gives away."""

    text: str
    """The whole announcement."""
    value: str
    """The announced value."""


def announced_answers(prompt: str) -> Iterator[AnnouncedAnswer]:
    """Yield the answers that the prompt announces: "the answer is ...", "Answer: ...", "#### ...", or a filled box."""
    for pattern in (_ANNOUNCED, _HASHES):
        for match in pattern.finditer(prompt):
            yield AnnouncedAnswer(match[0], match["value"])
    for match in _BOX.finditer(prompt):
        value = _braced(prompt, match.end())
        if value is not None and not _PLACEHOLDER.fullmatch(value):
            yield AnnouncedAnswer(prompt[match.start() : match.end() + len(value) + 1], value)


def gives_away(announced: AnnouncedAnswer, gold: str) -> bool:
    """Return whether the announced value is gold, alone or at the beginning of its sentence."""
    gold_key = answer_key(gold)
    if not gold_key:
        return False
    value = announced.value.strip()
    heads = [value, *(value[: end.start()] for end in _SENTENCE_END.finditer(value))]
    return any(answer_key(head) == gold_key for head in heads)


def drop_answer_line(prompt: str, gold: str | None, minimum: int) -> str:
    """Return the prompt without a last line that only announces gold, if at least `minimum` characters remain."""
    head, newline, last_line = prompt.rstrip().rpartition("\n")
    if gold is None or not newline or len(rest := head.rstrip()) < minimum:
        return prompt
    match = _ANSWER_LINE.fullmatch(last_line) or _HASHES.fullmatch(last_line)
    if match is None or not (gold_key := answer_key(gold)) or answer_key(match["value"]) != gold_key:
        return prompt
    return rest


def answer_key(text: str) -> str:
    """Return a short answer without markup, spaces, digit grouping and case. Two spellings of one answer give the same
    key."""
    text = _WRAPPER.sub("", text[: 2 * MAX_ANSWER_CHARS]).translate(_DROPPED)
    text = _GROUPING_COMMA.sub("", text).rstrip(".。,，;；!！").casefold()
    if len(text) > 2 and text[0] in "([" and text[-1] in ")]" and text[1:-1].isalnum():
        text = text[1:-1]
    whole, point, fraction = text.partition(".")
    return whole if point and whole.lstrip("-").isdigit() and fraction.strip("0") == "" else text


def _braced(text: str, start: int) -> str | None:
    """Return the text from `start`, after an open brace, to the closing brace. None if it is longer than
    MAX_ANSWER_CHARS."""
    depth = 1
    for index in range(start, min(len(text), start + MAX_ANSWER_CHARS)):
        depth += {"{": 1, "}": -1}.get(text[index], 0)
        if depth == 0:
            return text[start:index]
    return None
