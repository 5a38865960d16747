"""`committed_answer`: the forms of an answer, tried from the strongest to the weakest."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import islice

from truegold.verifiers.extract.announce import after_a, after_hashes, announced
from truegold.verifiers.extract.boxes import Boxed, boxed
from truegold.verifiers.extract.conclude import conclusion, last_expression
from truegold.verifiers.extract.deny import denies_a_number, is_denied
from truegold.verifiers.extract.marks import with_plain_marks
from truegold.verifiers.extract.narrow import narrow
from truegold.verifiers.extract.response import final_part, last_line, split_problems, with_plain_boxes
from truegold.verifiers.extract.retract import Retraction, is_withdrawn, retraction
from truegold.verifiers.extract.values import MARKS, has_value, is_expression

MAX_BARE_CHARS = 200
"""A whole response of at most this length may itself be the answer. Stops prose being taken for an expression."""

MAX_BARE_WORDS = 1
"""A bare line with more words is prose: `5 apples` is an answer, `I think it is 5` is not."""

MAX_TRIED = 8
"""Only so many announcements are read, from the last one on. Stops hundreds that announce nothing."""

_LATER_ANSWER = re.compile(
    r"^[*_#\s✅]{0,8}(?:(?:[Tt]he[ ])?(?:[Ff]inal[ ])?[Aa]nswer[*_]{0,3}[ ]{0,2}[:：]|ANSWER[:：]|答案[是为]?[:：])"
    r"|^####(?!#)",
    re.MULTILINE,
)


MAX_JSON_CHARS = 4_000
"""A longer object is not taken for an answer."""

_JSON_ANSWER = re.compile(r"[\"'](?:final[_ ]?)?answer[\"']\s*:", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Committed:
    """The answer that a response commits to."""

    text: str
    """The answer as it stood in the response."""
    form: str
    """How it was committed to: `boxed`, `answer_tag`, `hashes`, `phrase`, `a_line`, `json`, `whole_response`,
    `last_line` or `conclusion`."""


def committed_answer(response: str, *, several: bool = False) -> Committed | None:
    """Return the answer that `response` commits to, or None.

    With `several`, gold is more than one answer, and the boxes that stand together are its parts.
    """
    parts = split_problems(with_plain_marks(with_plain_boxes(final_part(response))))
    for part in parts:
        if committed := _declared(part, several):
            return committed
    for part in parts:
        if boxed(part, several=several) is None and (committed := _concluded(part)):
            return committed
    return None


def _declared(part: str, several: bool) -> Committed | None:
    """Read a box, a tag, an announcement or a bare answer."""
    boxes = boxed(part, several=several)
    tag = part.rfind("<answer>")
    if tag != -1 and (boxes is None or boxes.end < part.find("</answer>", tag) or boxes.end <= tag):
        inside = part[tag + len("<answer>") :].partition("</answer>")[0]
        if committed := _in_tag(inside, several):
            return committed
    if boxes is None:
        return _in_json(part) or _announced(part) or _bare(part)
    if boxes.text is not None:
        behind = part[boxes.end :]
        taken_back = retraction(behind.partition("\n\n")[0], boxes.text)
        if is_withdrawn(behind) and (taken_back is None or taken_back.answer is None):
            return None
        if taken_back is not None and taken_back.answer is not None:
            return _committed(taken_back.answer, "phrase")
        return _after_box(part, boxes) or _committed(boxes.text, "boxed")
    return None if boxes.cut_off else _announced(part)


def _in_json(part: str) -> Committed | None:
    """Read a JSON object with an answer in it that ends the response, also in a fence."""
    end = part.rstrip("` \t\r\n")
    if not end.endswith("}"):
        return None
    start = end.rfind("{")
    candidate = end[start:]
    return Committed(candidate, "json") if len(candidate) <= MAX_JSON_CHARS and _JSON_ANSWER.search(candidate) else None


def _taken_back(announcement: str, narrowed: str | None) -> Retraction | None:
    """Return what an announcement says instead of its first value."""
    end = announcement.find(narrowed) + len(narrowed) if narrowed and narrowed in announcement else 0
    return retraction(announcement[end:], narrowed) if end else None


def _in_tag(inside: str, several: bool) -> Committed | None:
    committed = _declared(inside, several)
    if committed is not None and committed.form != "whole_response":
        return committed
    return _committed(narrow(inside), "answer_tag")


def _after_box(part: str, boxes: Boxed) -> Committed | None:
    """Read an `Answer:` line or `####` after the last box; a mere mention of an answer does not count."""
    announcement_after = _LATER_ANSWER.search(part, boxes.end)
    committed = _announced(part[announcement_after.start() :]) if announcement_after else None
    if committed is None or not (has_value(committed.text) or len(committed.text) == 1):
        return None
    return committed


def _announced(part: str) -> Committed | None:
    if committed := _committed(after_hashes(part), "hashes"):
        return committed
    for answer, sentence in islice(announced(part), MAX_TRIED):
        narrowed = narrow(answer)
        taken_back = _taken_back(answer, narrowed)
        if taken_back is not None:
            return _committed(taken_back.answer, "phrase")
        is_meant = narrowed is not None and not is_denied(sentence, narrowed, first=True)
        if is_meant and (committed := _committed(narrowed, "phrase")):
            return committed
    a_line = after_a(last_line(part))
    return _committed(narrow(a_line), "a_line") if a_line else None


def _bare(part: str) -> Committed | None:
    text = part.strip()
    if len(text) > MAX_BARE_CHARS or "\n" in text or denies_a_number(text) or not is_expression(text, MAX_BARE_WORDS):
        return None
    return _committed(text, "whole_response")


def _concluded(part: str) -> Committed | None:
    return _committed(last_expression(part), "last_line") or _committed(conclusion(part), "conclusion")


def _committed(answer: str | None, form: str) -> Committed | None:
    text = (answer or "").strip(MARKS)
    return Committed(text, form) if text else None
