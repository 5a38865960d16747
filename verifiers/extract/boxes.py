r"""The boxes of a response, and which of them are one commitment.

    \boxed{7} ... wait, no. \boxed{5}                                  5
    \boxed{840} ... **Final Answer** \boxed{840}                       840
    It is \boxed{5} or \boxed{6}.                                      5 or 6: for one gold answer this is a hedge
    \boxed{2}, \quad \boxed{\frac{3 \pm i}{2}}                         2, \frac{3 \pm i}{2}
    there are \boxed{10} boots and \boxed{20} hats                     10 and 20: two values, and no word which one
    ... \boxed{10} boots and \boxed{20} hats.\n10                      10: the last line takes one of them
    the line is \boxed{y=2x}, so the slope is \boxed{2}                2: it follows from the other, not beside it
    it is not \boxed{5} but \boxed{6}                                 6

A box may be `\boxed`, `\fbox` or `\framebox`, with braces or with one number or letter (`\boxed 5`). An empty box says
nothing. Not covered: boxes inside code.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import NamedTuple

from truegold.verifiers.extract.deny import is_box_denied

MAX_BOXES = 16
"""Only so many last boxes are read. Stops thousands of boxes that are opened and never closed."""

MAX_BOX_TOKENS = 1_000
"""More braces and commands than this are no answer. Stops boxes with hundreds of thousands of braces."""

MAX_DENIAL_CHARS = 40
"""What is read before a box for words that deny it."""

MAX_GAP_CHARS = 200
"""Boxes further apart are not one commitment."""

_NAMES = ("\\boxed", "\\fbox", "\\framebox")
_OPENING = re.compile(
    r"\\(?:boxed|fbox|framebox)\s{0,3}"
    r"(?:(\{)|([-+]?\d[\d,]{0,40}(?:\.\d{1,40})?|(?<=\s)[A-Za-z](?![A-Za-z])))"
)
_BRACE = re.compile(r"\\.|[{}]", re.DOTALL)
_WHOLLY_BOXED = re.compile(r"\\(?:boxed|fbox|framebox)\s{0,3}\{([^{}]*(?:\{[^{}]*\}[^{}]*)*)\}")
_MARKUP = re.compile(
    r"\\(?:(?:quad|qquad|text|mathrm|textbf|mbox)(?![A-Za-z])|[\[\](),;:! \n\\])"
    r"|\n[ \t]*(?:[-•]|\d{1,2}[.)])\s|[$&~{}*_`]"
)
_LABEL = re.compile(r"(?<![\w\\])[A-Za-zα-ωΑ-Ω](?:_?\w{1,2})?\s{0,2}=\s{0,2}(?=$|[\\$])")
_CONNECTIVES = {
    **dict.fromkeys([",", ";", "，", "、", "；", "|"], ","),
    **dict.fromkeys(["or", "and/or", "/", "ou", "oder", "или", "或", "或者"], "or"),
    **dict.fromkeys(["and", "et", "und", "и", "和", "及", "与"], "and"),
}
_PART = re.compile(r"[或和与及]者?|[^\W\d_或和与及]+(?:/or)?|[,;，、；/|]")
_SENTENCE_END = re.compile(r"[.?!:](?=\s)|[。！？：=≈→]|\\(?:approx|[Rr]ightarrow|implies|to|therefore)(?![A-Za-z])|\n")
_CONSEQUENCE = frozenset({
    "so", "thus", "therefore", "hence", "then", "which", "namely", "because", "since", "giving", "gives", "yields",
    "means", "meaning", "equals", "rounded", "approximately", "not", "no", "but", "instead", "actually", "wait",
    "所以", "因此", "即", "不",
})  # fmt: skip


class Boxed(NamedTuple):
    """What the boxes of a text commit to."""

    text: str | None
    """The answer; None where every box is empty or cut off."""
    end: int
    """Where the last box ends."""
    cut_off: bool
    """A box after it was opened and never closed."""


class _Box(NamedTuple):
    start: int
    end: int
    text: str


def boxed(text: str, *, several: bool) -> Boxed | None:
    """Return what the boxes of `text` commit to, or None where it has no box at all."""
    openings = _openings(text) if "box" in text else []
    if not openings:
        return None
    closed = [_read_box(text, opening) for opening in openings]
    boxes: list[_Box] = []
    for box in closed:
        is_new = box is not None and box.text and not (boxes and box.end <= boxes[-1].end)
        if box is not None and is_new and not is_box_denied(text[max(0, box.start - MAX_DENIAL_CHARS) : box.start]):
            boxes.append(box)
    if not boxes:
        return Boxed(None, 0, closed[-1] is None)
    return Boxed(_join_contents(text, boxes, several), boxes[-1].end, closed[-1] is None)


def _openings(text: str) -> list[re.Match[str]]:
    """Return where the last boxes open; they are looked for from the end on, so most of a long text is never read."""
    openings: list[re.Match[str]] = []
    end = len(text)
    for _ in range(MAX_BOXES):
        end = max(text.rfind(name, 0, end) for name in _NAMES)
        if end == -1:
            break
        if opening := _OPENING.match(text, end):
            openings.append(opening)
    return openings[::-1]


def _read_box(text: str, opening: re.Match[str]) -> _Box | None:
    if opening[1] is None:
        return _Box(opening.start(), opening.end(), opening[2])
    depth = 1
    for brace in islice(_BRACE.finditer(text, opening.end()), MAX_BOX_TOKENS):
        mark = brace.group()
        if mark == "{":
            depth += 1
        elif mark == "}":
            depth -= 1
            if depth == 0:
                content = text[opening.end() : brace.start()].strip()
                inner = _WHOLLY_BOXED.fullmatch(content) if content.startswith("\\") else None
                return _Box(opening.start(), brace.end(), inner[1].strip() if inner else content)
    return None


def _join_contents(text: str, boxes: list[_Box], several: bool) -> str:
    """Return the content of the last box, joined with those of the boxes that stand beside it."""
    contents = [boxes[-1].text]
    connectives: list[str] = []
    for before, after in zip(boxes[-2::-1], boxes[:0:-1], strict=True):
        connective = _connective(text[before.end : after.start], several)
        if connective is None:
            break
        contents.insert(0, before.text)
        connectives.insert(0, connective)
    distinct = {_key(content): content for content in contents}
    if len(distinct) == 1:
        return contents[-1]
    if several:
        return ", ".join(distinct.values())
    if repeated := distinct.get(_key(text[boxes[-1].end :].rpartition("\n")[2])):
        return repeated
    joined = contents[0]
    for connective, content in zip(connectives, contents[1:], strict=True):
        joined += f", {content}" if connective == "," else f" {connective} {content}"
    return joined


def _key(content: str) -> str:
    return "".join(content.split()).strip("$*.")


def _connective(gap: str, several: bool) -> str | None:
    """Return the word that puts two boxes beside each other, or None where they do not stand together."""
    if len(gap) > MAX_GAP_CHARS:
        return None
    plain = _MARKUP.sub(" ", _LABEL.sub("", gap)).strip().casefold()
    parts = _PART.findall(plain)
    connectives = [_CONNECTIVES[part] for part in parts if part in _CONNECTIVES]
    if len(connectives) == len(parts) and not _SENTENCE_END.search(plain):
        return _strongest(connectives) or ","
    if _SENTENCE_END.search(plain.rstrip(":")) or "\n" in gap.strip() or not _CONSEQUENCE.isdisjoint(parts):
        return None
    # With other words between two boxes, a comma joins them only where gold is several answers.
    return _strongest(connectives) if several or connectives[-1:] != [","] else None


def _strongest(connectives: list[str]) -> str | None:
    return next((word for word in ("or", "and", ",") if word in connectives), None)
