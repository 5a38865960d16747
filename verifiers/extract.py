r"""What answer does a response commit to?

Looked for in this order, in the text after the last `</think>`:

    \boxed{x}, \fbox{x}         the last one; one that was cut off before its brace closed says nothing
    #### x                      on the last line, or anywhere if x is a plain number
    the (final) answer is x     the last such phrase; also `Answer: x`, `Final Answer:` with x on the next line,
                                答案是 x, 答案为 x, 答案：x
    A: x                        on the last line
    x                           where the whole response is one short expression, number or word

Otherwise the response commits to nothing. Not covered: picking the last number out of prose, which rewards a response
for mentioning the answer. Every pattern is linear in the length of the text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

MAX_SCANNED_CHARS = 400_000
"""Only the end of a longer response is read. Stops megabytes of output made to stall the reward computation."""

MAX_PHRASE_LINES = 200
"""How many last lines are searched for a phrase. Stops a response of a million lines `Answer:`."""

MAX_LINE_CHARS = 2_000
"""A longer line is no statement of an answer. Stops the phrase patterns being run over megabyte-long lines."""

MAX_BARE_CHARS = 200
"""A whole response of at most this length may itself be the answer. Stops prose being taken for an expression."""

MAX_BARE_WORDS = 1
"""More words than this and a bare line is prose: `5 apples` is an answer, `I think it is 5` is not."""

_BOX_TOKENS = re.compile(r"\\(?:boxed|fbox)\s{0,3}\{|\\.|[{}]", re.DOTALL)
_HASHES = re.compile(r"^####(?!#)[ \t]*(.+)$", re.MULTILINE)
_PLAIN_NUMBER = re.compile(r"[-+−]?[$￥¥€£]?\d[\d,]{0,40}(?:\.\d{1,40})?%?\.?")
_PHRASE = re.compile(
    r"\b(?:final[ \t]{1,3})?answer(?:[ \t]{0,3}[*_]{1,3})?[ \t]{0,3}(?:\bis\b[ \t]{0,3}[:：]?|[:：=])"
    r"|答案(?:是|为|為|[:：])[:：]?",
    re.IGNORECASE,
)
_LAST_LINE_A = re.compile(r"\**A\**[ \t]{0,3}[:：]\**[ \t]{0,3}(\S.*)")
_SENTENCE_END = re.compile(r"[.?](?=\s|$)|。")  # not `!`: it may be a factorial
_COMMAND = re.compile(r"\\[A-Za-z]{1,30}")
_TEXT_COMMAND = re.compile(r"\\(?:text|mathrm|textbf|mbox)\b")
_WORD = re.compile(r"[^\W\d_]{3,}")
_EMPHASIS = "*_` \t"


@dataclass(frozen=True, slots=True)
class Committed:
    """The answer as it stood in the response, and by which of the forms above it was found."""

    text: str
    form: str


class _Boxes(NamedTuple):
    last: str | None
    """The content of the last complete box."""
    cut_off: bool
    """Whether another one was opened after it and never closed."""


def committed_answer(response: str) -> Committed | None:
    """The answer that `response` commits to, or None."""
    text = final_part(response)
    boxes = _boxes(text)
    if boxes.last is not None:
        content = boxes.last.strip()
        return Committed(content, "boxed") if content else None
    if boxes.cut_off:  # the sentence around it would yield half an answer
        return None
    return _after_hashes(text) or _after_phrase(text) or _after_a(text) or _bare(text)


def final_part(response: str) -> str:
    """What stands after the thinking, stripped, and no more than the last MAX_SCANNED_CHARS of it."""
    return response[-MAX_SCANNED_CHARS:].rpartition("</think>")[2].strip()


def last_line(text: str) -> str:
    """The last line that is not blank, without emphasis around it."""
    return text.rstrip().rpartition("\n")[2].strip(_EMPHASIS)


def _boxes(text: str) -> _Boxes:
    """One pass over the braces: cost does not grow with the nesting, as matching each box on its own would."""
    open_braces: list[int | None] = []  # where the content of a box begins, None for any other brace
    last: tuple[int, int] | None = None
    for token in _BOX_TOKENS.finditer(text):
        mark = token.group()
        if mark == "{":
            open_braces.append(None)
        elif mark == "}":
            start = open_braces.pop() if open_braces else None
            if start is not None:
                last = (start, token.start())
        elif mark.endswith("{") and len(mark) > 2:
            open_braces.append(token.end())
    starts = [start for start in open_braces if start is not None]
    cut_off = bool(starts) and (last is None or starts[-1] > last[1])
    return _Boxes(text[last[0] : last[1]] if last else None, cut_off)


def _after_hashes(text: str) -> Committed | None:
    match = None
    for match in _HASHES.finditer(text):  # noqa: B007 - the last one is wanted
        pass
    if match is None:
        return None
    answer = match.group(1).strip(_EMPHASIS)
    is_last = not text[match.end() :].strip()
    # `#### Step 2` further up is a heading.
    return _found(answer, "hashes") if is_last or _PLAIN_NUMBER.fullmatch(answer) else None


def _after_phrase(text: str) -> Committed | None:
    lines = [line.strip() for line in text.splitlines()[-MAX_PHRASE_LINES:]]
    lines = [line for line in lines if line]
    for index in range(len(lines) - 1, -1, -1):
        line = lines[index]
        if len(line) > MAX_LINE_CHARS or not (matches := list(_PHRASE.finditer(line))):
            continue
        answer = line[matches[-1].end() :].strip(_EMPHASIS)
        if not answer and index + 1 < len(lines):
            answer = lines[index + 1]
        found = _found(_first_sentence(answer), "phrase") if len(answer) <= MAX_LINE_CHARS else None
        if found is not None:
            return found
    # `**Final Answer**` as a heading has no colon.
    if len(lines) >= 2 and lines[-2].strip("*_#: \t").casefold() in {"answer", "final answer"}:
        return _found(_first_sentence(lines[-1]), "phrase")
    return None


def _after_a(text: str) -> Committed | None:
    match = _LAST_LINE_A.fullmatch(last_line(text)[:MAX_LINE_CHARS])
    return _found(_first_sentence(match.group(1)), "a_line") if match else None


def _bare(text: str) -> Committed | None:
    if len(text) > MAX_BARE_CHARS or "\n" in text.strip():
        return None
    words = _WORD.findall(_COMMAND.sub(" ", _TEXT_COMMAND.sub(" ", text)))
    return _found(text, "whole_response") if len(words) <= MAX_BARE_WORDS else None


def _first_sentence(text: str) -> str:
    """`5. I hope that helps` is 5, and `$3.5$` stays whole; a full stop inside maths ends nothing."""
    for end in _SENTENCE_END.finditer(text):
        before = text[: end.start()]
        if before.count("$") % 2 == 0 and before.count("{") <= before.count("}"):
            return before
    return text


def _found(answer: str, form: str) -> Committed | None:
    answer = answer.strip(_EMPHASIS + "\n\r")
    return Committed(answer, form) if answer else None
