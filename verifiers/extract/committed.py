"""`committed_answer`: the forms of an answer, tried from the strongest to the weakest."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import islice

from truegold.verifiers.extract.announce import after_a, after_hashes, announced
from truegold.verifiers.extract.boxes import Boxed, boxed
from truegold.verifiers.extract.conclude import conclusion, last_expression
from truegold.verifiers.extract.narrow import narrow
from truegold.verifiers.extract.response import final_part, last_line, problems, with_plain_boxes
from truegold.verifiers.extract.values import MARKS, has_value, is_expression

MAX_BARE_CHARS = 200
"""A whole response of at most this length may itself be the answer. Stops prose being taken for an expression."""

MAX_BARE_WORDS = 1
"""More words than this and a bare line is prose: `5 apples` is an answer, `I think it is 5` is not."""

MAX_TRIED = 8
"""How many announcements are read, from the last one on. Stops hundreds that announce nothing."""

_LATER = re.compile(
    r"^[*_#\s✅]{0,8}(?:(?:[Tt]he[ ])?(?:[Ff]inal[ ])?[Aa]nswer[*_]{0,3}[ ]{0,2}[:：]|ANSWER[:：]|答案[是为]?[:：])"
    r"|^####(?!#)",
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class Committed:
    """The answer as it stood in the response, and by which form it was found: `boxed`, `answer_tag`, `hashes`,
    `phrase`, `a_line`, `whole_response`, `last_line` or `conclusion`."""

    text: str
    form: str


def committed_answer(response: str, *, several: bool = False) -> Committed | None:
    """The answer that `response` commits to, or None. With `several` gold is more than one answer: the boxes that
    stand together are its parts."""
    parts = problems(with_plain_boxes(final_part(response)))
    for part in parts:
        if found := _declared(part, several):
            return found
    for part in parts:
        if boxed(part, several=several) is None and (found := _concluded(part)):
            return found
    return None


def _declared(part: str, several: bool) -> Committed | None:
    boxes = boxed(part, several=several)
    tag = part.rfind("<answer>")
    if tag != -1 and (boxes is None or boxes.end < part.find("</answer>", tag) or boxes.end <= tag):
        inside = part[tag + len("<answer>") :].partition("</answer>")[0]
        if found := _in_tag(inside, several):
            return found
    if boxes is None:
        return _announced(part) or _bare(part)
    if boxes.text is not None:
        return _after_box(part, boxes) or _found(boxes.text, "boxed")
    return None if boxes.cut_off else _announced(part)


def _in_tag(inside: str, several: bool) -> Committed | None:
    found = _declared(inside, several)
    if found is not None and found.form != "whole_response":
        return found
    return _found(narrow(inside), "answer_tag")


def _after_box(part: str, boxes: Boxed) -> Committed | None:
    """An `Answer:` line or `####` after the last box has the last word; a mere mention of an answer has not."""
    later = _LATER.search(part, boxes.end)
    found = _announced(part[later.start() :]) if later else None
    return found if found is not None and (has_value(found.text) or len(found.text) == 1) else None


def _announced(part: str) -> Committed | None:
    if found := _found(after_hashes(part), "hashes"):
        return found
    for answer in islice(announced(part), MAX_TRIED):
        if found := _found(narrow(answer), "phrase"):
            return found
    stated = after_a(last_line(part))
    return _found(narrow(stated), "a_line") if stated else None


def _bare(part: str) -> Committed | None:
    text = part.strip()
    if len(text) > MAX_BARE_CHARS or "\n" in text or not is_expression(text, MAX_BARE_WORDS):
        return None
    return _found(text, "whole_response")


def _concluded(part: str) -> Committed | None:
    return _found(last_expression(part), "last_line") or _found(conclusion(part), "conclusion")


def _found(answer: str | None, form: str) -> Committed | None:
    text = (answer or "").strip(MARKS)
    return Committed(text, form) if text else None
