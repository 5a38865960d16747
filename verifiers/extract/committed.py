r"""Finds the answer that a response commits to: `committed_answer` tries its forms from the strongest to the weakest.

The forms are, from the strongest: boxes (`boxes`), tags, announcements, an answer alone, and the conclusion of the last
line. Each form is looked for in every part of a response that may hold its answer (`response_parts`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import islice

from truegold.verifiers.extract.boxes import CLOSING_MARKS, boxed, content_key
from truegold.verifiers.extract.closings import repeated_values, without_closings, without_ornaments
from truegold.verifiers.extract.denials import (
    is_denied,
    is_doubted,
    is_negated_later,
    is_refused,
    preferred,
    without_struck,
)
from truegold.verifiers.extract.objects import answer_at_end, answer_in_box
from truegold.verifiers.extract.response_parts import EMPHASIS, answering_parts, last_line
from truegold.verifiers.extract.restated import (
    restatement,
    with_chinese_parts,
    with_counts,
    without_explanations,
    without_given_numbers,
)
from truegold.verifiers.extract.stated_values import (
    ANY_OF,
    CURRENCY,
    MARKS,
    MAX_PLAIN_WORDS,
    has_value,
    is_expression,
    may_deny,
    only_announces,
)
from truegold.verifiers.extract.statements import (
    after_a,
    announced,
    conclusion,
    is_withdrawn,
    last_expression,
    narrow,
    retraction,
)

MIN_LOOP_CHARS = 15
"""A shorter text is not checked for answers that repeat in a loop."""
MAX_OPTION_CHARS = 40
"""Only up to this length of an answer can a letter in it name an option."""
_OR_VALUE = re.compile(
    r"[$*)\] ]{0,4}\bor (?:maybe |perhaps )?"
    r"\$?(-?(?:\d[\d.,/]{0,40}|\\frac\{[^{}]{1,40}\}\{[^{}]{1,40}\}))(?<![.,])\$?\.?\s{0,3}(?:\n|$)"
)
r"""The second of two values after a box: `\boxed{6} or 13.`"""
MAX_BARE_CHARS = 200
"""The longest response that may itself be the answer. Stops prose being taken for an expression."""
MAX_BARE_WORDS = 1
"""A response with more words is prose: `5 apples` is an answer, `I think it is 5` is not."""
MAX_TRIED = 8
"""Announcements that are read, counted from the end. Stops hundreds of announcements without an answer."""
_LATER_ANSWER = re.compile(ANY_OF["later_answers"], re.MULTILINE)
"""An announcement that replaces a box before it: `Answer:` or `####` at the beginning of a line."""
_JOINED = re.compile(r"\b(?:and|or)\b|[,和或]")
"""A sign of several values in one answer."""
_PAIRS = (("'", "'"), ('"', '"'), ("“", "”"), ("‘", "’"), ("«", "»"), ("「", "」"), ("[[", "]]"), ("<<", ">>"))
"""Quotes and brackets that may enclose an answer."""
_WRAPS = frozenset("'\"“‘«「[<→⇒➜➡👉")
"""First characters of an answer that is enclosed or begins with an arrow."""
_NESTED = re.compile(r"[,\[\]'\"“”‘’«»「」<>]")
"""Characters that may not be inside such an enclosure."""
MAX_HASHES = 16
"""Occurrences of `####` that are examined, counted from the end. Stops a response that consists of them."""
_HASHES = re.compile(r"####(?!#)[ \t]{0,8}(\S.{0,400})")
_SHORT_SENTENCE = re.compile(
    r"(?i:this|that|it|we|so|thus|hence|therefore|donc|also|luego|entonces)\b|[^\W\d_]+ [^\W\d_]+:"
    rf"|(?!(?:See|Use|Add|Let|Read|Note|Check|Take)\b)[A-Z][a-z]+ (?:[a-z]+s|had|got|paid|made|spent) {CURRENCY}\d"
)
"""A short sentence with a value: `This gives 8`, `Tim needs $85`, `Total cost: $8`."""
_EXPLAINED = re.compile(rf"([^\n]{{1,80}})\n\s{{0,4}}[*_#]{{0,6}}(?:{ANY_OF['explaining']})(?![^\W\d_])", re.IGNORECASE)
"""An answer in the first line with the heading of an explanation below it."""
_LIST_NUMBER = re.compile(r"(?:\d{1,2}[.):]\s|[^\W\d_]+ \d{1,2}(?:\W|$))")
"""The beginning of a numbered heading: `2. Area`, `Step 2`."""
_FIGURES = re.compile(r"\d[\d,]{0,40}(?:\.\d{1,40})?(?:/\d{1,20})?")
MAX_VALUE_WORDS = 3
"""Words of an answer after `####` that is not on the last line."""
MAX_TAIL_CHARS = 4_000
"""Characters below such an answer that are searched for another value."""
_PLAIN_NUMBER = re.compile(r"[-+−]?[$￥¥€£]?\d[\d,]{0,40}(?:\.\d{1,40})?%?\.?")
_JSON_MARKS = ('":', "':", '" :')
"""A quick test: each JSON object contains one of these marks."""
MAX_TABLE_CHARS = 4_000
_NAMED = (
    r"(?:(?:the|my|final|correct)[_ -]?){0,2}"
    rf"(?:answer|ans|result|solution|output|response|final|{ANY_OF['answer_words']})"
)
"""Names of an answer: `final_answer`, `result`, `respuesta`."""
_IS_ANSWER = re.compile(rf"[*_\s]*(?:{_NAMED}|(?:grand )?total|sum|最?终?答案|合计|总计)[*_:：\s]*", re.IGNORECASE)
"""A name that marks the answer, as a tag or as the head of a table's row or column: `answer`, `Total`."""
_RULER = re.compile(r"\|?[\s:|-]*")
"""The line between the head and the rows of a table."""
MAX_TAG_CHARS = 40
_PART_LINE = re.compile(r"[ \t*]*\(?([1-9]|[A-Ea-e]|i{1,3}|iv|v)[).][*:]*[ \t]+(\S.{0,80})")
"""The line of one part of an answer: `(a) 900`, `**1.** 900`."""
_PART_NAMES = (list("123456789"), list("abcde"), ["i", "ii", "iii", "iv", "v"])
"""Possible numberings of the parts of an answer."""
MAX_PART_LINES_CHARS = 1_000
"""Characters at the end of a text that are searched for numbered parts."""


@dataclass(frozen=True, slots=True)
class Committed:
    """The answer that a response commits to."""

    text: str
    """The answer as the response writes it."""
    form: str
    """The form of the answer: `boxed`, `answer_tag`, `hashes`, `phrase`, `a_line`, `json`, `whole_response`,
    `first_line`, `last_line` or `conclusion`."""


def committed_answer(response: str, *, several: int = 0, problem: str | None = None) -> Committed | None:
    """Return the answer that `response` commits to, or None.

    problem: the text of the problem. Its numbers are then not taken for the answer.
    several: the number of values of gold, if it has several. Boxes that stand together are then read as one list, and
    so are exactly this many boxes anywhere in the response.
    """
    parts = answering_parts(response)
    for part in parts:
        if committed := _declared(part, several):
            repeated = repeated_values(part, committed.text) if several < 2 and len(part) > MIN_LOOP_CHARS else None
            return Committed(" or ".join(repeated), committed.form) if repeated else committed
    for part in parts:
        if boxed(part, several=several) is None and (committed := _unannounced(part, several, problem)) is not None:
            return committed
    return None


def _unannounced(part: str, several: int, problem: str | None) -> Committed | None:
    """Return the conclusion of a text that announces nothing, as it stands before courtesies and explanations."""
    if committed := _answered_first(part, problem) or _at_end(without_explanations(part), problem):
        return committed
    shorter = without_closings(part)
    if len(shorter) == len(part.rstrip()):
        return None
    return _declared(shorter, several) or _at_end(without_explanations(shorter), problem)


def _answered_first(part: str, problem: str | None) -> Committed | None:
    """Return a first line that is one value, unless the explanation below it ends with another value."""
    match = _EXPLAINED.match(part.lstrip())
    if match is None or not has_value(match[1]) or not is_expression(match[1], MAX_PLAIN_WORDS):
        return None
    last = _at_end(part, problem)
    is_same = last is None or _JOINED.search(last.text) or content_key(last.text).endswith(content_key(match[1]))
    return _committed(match[1], "first_line") if is_same else None


def _at_end(part: str, problem: str | None) -> Committed | None:
    """Return the value that the last line states as a sentence, or else the last line if it is one expression."""
    expression, stated = last_expression(part), None
    if expression is None or _SHORT_SENTENCE.match(expression):
        # `This gives 8` passes for an expression, but is a short sentence.
        stated = conclusion(part)
        if stated is None and problem:
            stated = restatement(part, problem)
        masked = without_given_numbers(part, problem) if stated is None and problem else None
        if masked is not None:
            stated = conclusion(masked)
        if stated is None and expression is None and (counted := with_counts(masked or part, problem)) is not None:
            stated = conclusion(counted)
    if stated is expression is None and "分之" in part and (digits := with_chinese_parts(part)) is not None:
        return _at_end(digits, problem)
    return _committed(stated, "conclusion") or _committed(expression, "last_line")


def _declared(part: str, several: int) -> Committed | None:
    """Return the answer in a box, a tag or an announcement, or a bare answer."""
    boxes = boxed(part, several=several)
    tag = part.rfind("<answer>")
    if tag != -1 and (boxes is None or boxes.end < part.find("</answer>", tag) or boxes.end <= tag):
        inside = part[tag + len("<answer>") :].partition("</answer>")[0]
        if committed := _in_tag(inside, several):
            return committed
    if boxes is None:
        structured = _in_json(part) or _in_last_tag(part, several) or _committed(in_table(part), "last_line")
        structured = structured or (_committed(_in_numbered_lines(part, several), "last_line") if several > 1 else None)
        return structured or _announced(part) or _bare(part)
    if boxes.text is not None:
        return _in_boxes(part, boxes.text, boxes.end)
    return None if boxes.cut_off else _announced(part)


def _in_boxes(part: str, answer: str, end: int) -> Committed | None:
    """Return the answer in the boxes, unless the text after their `end` takes it back or announces another one."""
    if ":" in answer and (stated := answer_in_box(answer)) is not None:
        if not stated:
            return None
        answer = stated
    if "nswer" in answer and (announced_inside := _announced(answer)) is not None:
        return announced_inside
    behind = part[end:]
    if not behind.strip(CLOSING_MARKS + " ."):
        return _committed(answer, "boxed")
    if (taken_back := retraction(behind.partition("\n\n")[0], answer)) or is_withdrawn(behind, answer):
        return _committed(taken_back, "phrase")
    is_denied_later = answer in behind and is_negated_later(behind, answer)
    both = f"{answer} or {other[1]}" if (other := _OR_VALUE.match(behind)) else answer
    return _after_box(part, end) or (None if is_denied_later else _committed(both, "boxed"))


def _in_json(part: str) -> Committed | None:
    """Return the answer of the JSON objects at the end of a response, in a fence or before courtesies too."""
    if not any(map(part.__contains__, _JSON_MARKS)) or (stated := answer_at_end(part)) is None:
        return None
    behind = stated.behind.strip("` \t\r\n]")
    is_last = not behind or without_closings(f".\n{behind}") == "."
    return _committed(stated.text, "json") if is_last else None


def _in_numbered_lines(part: str, several: int) -> str | None:
    """Return the last lines if they number as many parts as gold has values.

    The lines stand alone or below an announcement (`The values that fail are:` is not one):

    The answers are:
    (a) 900
    (b) 1800
    """
    lines = [line for line in part[-MAX_PART_LINES_CHARS:].splitlines() if line.strip()]
    marked = [match for line in lines[-several:] if (match := _PART_LINE.fullmatch(line)) is not None]
    if len(marked) != several or [match[1].lower() for match in marked] not in [n[:several] for n in _PART_NAMES]:
        return None
    if len(lines) > several and _announced(f"{lines[-several - 1]} 1") is None:
        return None
    return "\n".join(f"({match[1]}) {match[2]}" for match in marked)


def _in_last_tag(part: str, several: int) -> Committed | None:
    """Return the answer in a tag that ends the response, in any language: `<respuesta>72</respuesta>`."""
    text = part.rstrip()
    closing = text.rfind("</", -MAX_TAG_CHARS) if text.endswith(">") else -1
    name = text[closing + 2 : -1].strip()
    start = text.rfind(f"<{name}>", 0, closing) if closing != -1 and name else -1
    if start == -1 or (start and text[start - 1] != "\n"):
        return None
    inside = text[start + len(name) + 2 : closing]
    if _IS_ANSWER.fullmatch(name):
        return _in_tag(inside, several)
    return _committed(last_expression(inside), "last_line") if len(inside) <= MAX_BARE_CHARS else None


def in_table(text: str) -> str | None:
    """Return the answer in the last row of a table: the cell whose row or column is named as the answer."""
    if not (tail := text.rstrip()).endswith("|"):
        return None
    rows = [
        _cells(line) for line in tail[-MAX_TABLE_CHARS:].rpartition("\n\n")[2].split("\n") if not _RULER.fullmatch(line)
    ] or [[]]
    last, head = rows[-1], rows[0]
    if len(last) == 2 and _IS_ANSWER.fullmatch(last[0]):
        return narrow(last[1])
    named = [cell for name, cell in zip(head, last, strict=False) if _IS_ANSWER.fullmatch(name)]
    if any(is_doubted("", f" is {cell}") for cell in last):
        return None
    return narrow(named[0]) if len(rows) == 2 and len(named) == 1 else None


def _cells(row: str) -> list[str]:
    return [cell.strip(MARKS) for cell in row.strip().strip("|").split("|")]


def _taken_back(announcement: str, narrowed: str | None) -> str | None:
    """Return the value by which an announcement replaces its first value: the 6 of `Answer: 5? No: 6`."""
    end = announcement.find(narrowed) + len(narrowed) if narrowed and narrowed in announcement else 0
    return retraction(announcement[end:], narrowed) if end else None


def _in_tag(inside: str, several: int) -> Committed | None:
    """Return the answer inside a tag: an announced one, or else the words of the tag."""
    if (committed := _declared(inside, several)) is not None and committed.form != "whole_response":
        return committed
    return None if is_refused(inside[:MAX_BARE_CHARS]) else _committed(narrow(inside), "answer_tag")


def _after_box(part: str, end: int) -> Committed | None:
    """Return the answer of an `Answer:` line or of `####` after the last box. Mere mentions do not count."""
    announcement_after = _LATER_ANSWER.search(part, end)
    committed = _announced(part[announcement_after.start() :]) if announcement_after else None
    if committed is None or not (has_value(committed.text) or len(committed.text) == 1):
        return None
    return committed


def _announced(part: str) -> Committed | None:
    """Return the announced answer of a text: after `####`, after words such as `the answer is`, or after `A:`."""
    if committed := _committed(after_hashes(part), "hashes"):
        behind = part.rpartition("####")[2].partition("\n")[2]
        return None if behind and is_withdrawn(f"\n{behind}", committed.text) else committed
    for answer, sentence in islice(announced(part), MAX_TRIED):
        narrowed = narrow(answer)
        if (taken_back := _taken_back(answer, narrowed)) is not None:
            return _committed(taken_back, "phrase")
        is_meant = narrowed is not None and not is_denied(sentence, narrowed, first=True)
        if is_meant and (committed := _committed(narrowed, "phrase")):
            start = part.rfind(answer)
            behind = part[start + max(answer.find(committed.text), 0) + len(committed.text) :]
            is_negated = committed.text in behind and is_negated_later(behind, committed.text)
            return None if is_negated or is_withdrawn(behind, committed.text) else committed
    a_line = after_a(last_line(part))
    return _committed(narrow(a_line), "a_line") if a_line else None


def _bare(part: str) -> Committed | None:
    """Return a whole response that is one short expression."""
    text = part.strip()
    if len(text) > MAX_BARE_CHARS or "\n" in text or not is_expression(text, MAX_BARE_WORDS):
        return None
    return _committed(preferred(text) if may_deny(text) else text, "whole_response")


def _committed(answer: str | None, form: str) -> Committed | None:
    """Return an answer without the marks around it; None if it is empty or denies itself (`not 5`)."""
    text = (answer or "").strip(MARKS)
    if text and (text[0] in _WRAPS or not text[-1].isascii()):
        text = _unwrapped(text)
    if "(" in text or "（" in text:
        text = without_struck(text).strip(MARKS)
    if not text or (
        not _PLAIN_NUMBER.fullmatch(text)
        and not only_announces(text)
        and (form != "conclusion" or may_deny(text))
        and is_refused(text, letters=len(text) <= MAX_OPTION_CHARS)
    ):
        return None
    return Committed(preferred(text) if "not " in text else text, form)


def _unwrapped(text: str) -> str:
    """Return a text without quotes, arrows and ornaments around it: `«8»`, `→ 8`, `[[8]]`, `8 ✅`."""
    text = without_ornaments(text.lstrip("→⇒➜➡👉\ufe0f ")).rstrip()
    for opening, closing in _PAIRS:
        inside = text[len(opening) : -len(closing)]
        if text.startswith(opening) and text.endswith(closing) and _NESTED.search(inside) is None:
            return inside.strip()
    return text


def after_hashes(text: str) -> str | None:
    """Return the answer after the last `####`.

    On the last line any text is an answer. Further up it has to be a value, with no other value below:

    #### Step 2                                   a heading
    #### 42 dollars\nThat is all.                 42 dollars
    #### 2 apples\nTogether they have 7.          a heading
    """
    start = len(text)
    for count in range(MAX_HASHES):
        start = text.rfind("####", 0, start)
        if start == -1:
            break
        before = text[start - 1 : start]
        if (match := _HASHES.match(text, start)) is None or before not in {"", "\n", " "}:
            continue
        answer = match.group(1).strip(EMPHASIS)
        if _PLAIN_NUMBER.fullmatch(answer):
            return answer
        if before != " " and (
            not (rest := text[match.end() :].strip()) or (count == 0 and _is_answer_above(answer, rest))
        ):
            return answer
    return None


def _is_answer_above(line: str, rest: str) -> bool:
    """Return whether a line after `####` is one value and nothing below it has another one."""
    if _LIST_NUMBER.match(line) or not has_value(line) or not is_expression(line, MAX_VALUE_WORDS):
        return False
    below = rest[-MAX_TAIL_CHARS:]
    figures = _FIGURES.findall(line)
    return not has_value(below) or (len(figures) == 1 and figures == _FIGURES.findall(last_line(below))[-1:])
