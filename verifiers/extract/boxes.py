r"""Boxes of a response, read as one answer.

Boxes that stand together form one answer (`boxed`):

    \boxed{7} ... wait, no. \boxed{5}                                  5
    \boxed{840} ... **Final Answer** \boxed{840}                       840
    It is \boxed{5} or \boxed{6}.                                      5 or 6: for one gold answer this is a hedge
    \boxed{2}, \quad \boxed{\frac{3 \pm i}{2}}                         2, \frac{3 \pm i}{2}
    there are \boxed{10} boots and \boxed{20} hats                     10 and 20: two values, and no hint which one
    ... \boxed{10} boots and \boxed{20} hats.\n10                      10: the last line chooses one of them
    the line is \boxed{y=2x}, so the slope is \boxed{2}                2: the last one follows from the other
    it is not \boxed{5} but \boxed{6}                                 6

A box may be `\boxed`, `\fbox` or `\framebox`, with braces or with one number or letter (`\boxed 5`). Empty boxes are
ignored. Not covered: boxes inside code.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import islice, pairwise
from typing import NamedTuple

from truegold.verifiers.extract.clauses import disowns
from truegold.verifiers.extract.denials import is_bound, is_doubted
from truegold.verifiers.extract.response_parts import MAX_SCANNED_CHARS
from truegold.verifiers.extract.stated_values import PATTERNS, may_deny

MAX_BOXES = 16
"""Boxes that are read, counted from the end. Stops thousands of boxes that are opened and never closed."""
MAX_BOX_TOKENS = 1_000
"""A box with more braces and commands is not an answer. Stops boxes with hundreds of thousands of braces."""
MAX_DENIAL_CHARS = 160
"""Characters before and after a box that are searched for words that deny it."""
MAX_TOUCHING_CHARS = 2
"""Up to this many characters around a box, such as `$.`, hold no word that could deny it."""
_UNEQUAL = ("\\neq", "\\ne", "\\not=", "\\not =", "≠")
r"""Signs before a box that deny it: `x \neq`."""
_SENTENCE_ENDS = ("\n", ". ", "? ", "! ", "。")
CLOSING_MARKS = "$*)]\\"
"""Marks that may close the formula or the emphasis around a box."""
_SUMMARY = re.compile(
    r"^[#*\s]{0,8}(?:final|summary|conclusions?|answers?|results?)\b[^\n]{0,40}$", re.IGNORECASE | re.MULTILINE
)
"""A heading above the answers to all parts: `### Final Answers`."""
_CORRECTED = re.compile(
    r"\b(?:wait|hmm|oops|no|or|actually|sorry|scratch|correction|mistaken?|wrong|incorrect|errors?|instead|maybe|perhaps)\b"
    r"|不对|错|更正|等等|或",
    re.IGNORECASE,
)
"""Words between two boxes by which the second replaces the first: `wait, no`."""
_POSSIBLY = re.compile(r"[^.\n]{0,60}\b(?:may|might|could|maybe|perhaps|possibly)\b[^.\n]{0,30}", re.IGNORECASE)
"""Words between two boxes that leave both possible: `but it may be`."""
MAX_GAP_CHARS = 200
"""Boxes that are further apart are not joined to one answer."""
_NAMES = ("\\boxed", "\\fbox", "\\framebox")
_OPENING = re.compile(
    r"\\(?:boxed|fbox|framebox)\s{0,3}"
    r"(?:(\{)|([-+]?\d[\d,]{0,40}(?:\.\d{1,40})?|(?<=\s)[A-Za-z](?![A-Za-z])))"
)
"""The opening of a box: with a brace, or with one number or letter."""
_BRACE = re.compile(r"\\.|[{}]", re.DOTALL)
_WHOLLY_BOXED = re.compile(r"\\(?:boxed|fbox|framebox)\s{0,3}\{([^{}]*(?:\{[^{}]*\}[^{}]*)*)\}")
"""A box around the whole content of another box."""
_MARKUP = re.compile(
    r"\\(?:(?:quad|qquad|text|mathrm|textbf|mbox)(?![A-Za-z])|[\[\](),;:! \n\\])"
    r"|\n[ \t]*(?:[-•]|\d{1,2}[.)])\s|[$&~{}*_`]"
)
"""Marks that typeset the text between two boxes without changing its meaning."""
_LABEL = re.compile(r"(?<![\w\\])[A-Za-zα-ωΑ-Ω](?:_?\w{1,2})?\s{0,2}=\s{0,2}(?=$|[\\$])")
r"""The label before a box: `y =` in `x = \boxed{1}, y = \boxed{2}`."""
_CONNECTIVES = {
    **dict.fromkeys([",", ";", "，", "、", "；", "|"], ","),
    **dict.fromkeys(["or", "and/or", "/", "ou", "oder", "или", "或", "或者"], "or"),
    **dict.fromkeys(["and", "et", "und", "и", "和", "及", "与"], "and"),
}
"""The kind of connection (`,`, `or`, `and`) for each sign or word between two boxes."""
_GAP_PART = re.compile(r"[或和与及]者?|[^\W\d_或和与及]+(?:/or)?|[,;，、；/|]")
"""A word or a sign between two boxes."""
_SENTENCE_END = re.compile(r"[.?!:](?=\s)|[。！？：=≈→]|\\(?:approx|[Rr]ightarrow|implies|to|therefore)(?![A-Za-z])|\n")
_CONSEQUENCE = frozenset(PATTERNS["consequence_words"])
"""Words between two boxes by which the second follows from the first: `so`."""


class Boxed(NamedTuple):
    """The answer that the boxes of a text commit to."""

    text: str | None
    """The answer, or None if every box is empty or cut off."""
    end: int
    """The position where the last box ends."""
    cut_off: bool
    """Whether the last box is opened and never closed."""


class _Box(NamedTuple):
    start: int
    end: int
    text: str


def boxed(text: str, *, several: int) -> Boxed | None:
    """Return the answer in the boxes of `text`, or None if it has no box.

    several: the number of values of gold, or 0 if gold is one value.
    """
    openings = _openings(text) if "box" in text else []
    if not openings:
        return None
    closed = [_read_box(text, opening) for opening in openings]
    boxes: list[_Box] = []
    other = ""
    for box in closed:
        if box is None or not box.text or (boxes and box.end <= boxes[-1].end):
            continue
        if not _is_doubted(text, box):
            boxes.append(box)
            other = ""
        elif boxes and _POSSIBLY.fullmatch(text, boxes[-1].end, box.start):
            other = f" or {box.text}"
    if not boxes:
        return Boxed(None, 0, closed[-1] is None)
    return Boxed(_join_contents(text, boxes, several) + other, boxes[-1].end, closed[-1] is None)


def _openings(text: str) -> list[re.Match[str]]:
    """Return the matches at which the last boxes open. The search runs backwards and stops after MAX_BOXES."""
    openings: list[re.Match[str]] = []
    names = [name for name in _NAMES if name in text]
    end = len(text)
    for _ in range(MAX_BOXES):
        end = max((text.rfind(name, 0, end) for name in names), default=-1)
        if end == -1:
            break
        if opening := _OPENING.match(text, end):
            openings.append(opening)
    return openings[::-1]


def _read_box(text: str, opening: re.Match[str]) -> _Box | None:
    if opening[1] is None:
        return _Box(opening.start(), opening.end(), opening[2])
    end = text.find("}", opening.end())
    if end != -1 and "{" not in (content := text[opening.end() : end]) and "\\" not in content:
        return _Box(opening.start(), end + 1, content.strip())
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


def _is_doubted(text: str, box: _Box) -> bool:
    """Tell whether the sentence around a box denies or doubts it."""
    if text.startswith("~~", box.end) and text.endswith("~~", 0, box.start):
        return True
    before = text[max(0, box.start - MAX_DENIAL_CHARS) : box.start]
    start = max(map(before.rfind, _SENTENCE_ENDS)) + 1
    after = text[box.end : box.end + MAX_DENIAL_CHARS].partition("\n")[0]
    before, after = before[start:], after.lstrip(CLOSING_MARKS)
    if len(before) + len(after) <= MAX_TOUCHING_CHARS:
        return False
    if before.rstrip(" $").endswith(_UNEQUAL):
        return True
    if not may_deny(f"{before} {after}"):
        return disowns(before, after)
    return is_doubted(before, after) or ("answer" in before and is_bound(before))


def _join_contents(text: str, boxes: list[_Box], several: int) -> str:
    """Return the contents of the last box, joined with those of the boxes that stand together with it."""
    if len(boxes) == 1 and several < 2:
        return boxes[0].text
    contents = [boxes[-1].text]
    connectives: list[str] = []
    for before, after in zip(boxes[-2::-1], boxes[:0:-1], strict=True):
        if (connective := _connective(text[before.end : after.start], several)) is None:
            break
        contents.insert(0, before.text)
        connectives.insert(0, connective)
    distinct = {content_key(content): content for content in contents}
    if several > len(distinct) and (parts := _parts_of_answer(text, boxes, several)) is not None:
        return _as_list(parts)
    if len(distinct) == 1:
        return contents[-1]
    if several:
        return _as_list(distinct.values())
    if repeated := distinct.get(content_key(text[boxes[-1].end :].rpartition("\n")[2])):
        return repeated
    joined = contents[0]
    for connective, content in zip(connectives, contents[1:], strict=True):
        joined += f", {content}" if connective == "," else f" {connective} {content}"
    return joined


def _as_list(contents: Iterable[str]) -> str:
    """Return the contents of several boxes as one list, separated by semicolons if one of them has a comma."""
    parts = [content.rstrip(" .") for content in contents]
    return ("; " if any("," in part for part in parts) else ", ").join(parts)


def _parts_of_answer(text: str, boxes: list[_Box], count: int) -> list[str] | None:
    """Return the contents of the text's boxes, or of its summary's, if exactly `count` of them differ; else None."""
    summary = max((match.end() for match in _SUMMARY.finditer(text[:MAX_SCANNED_CHARS])), default=0)
    for start in (0, summary):
        parts = {content_key(box.text): box for box in boxes if box.start >= start}
        gaps = [text[before.end : after.start] for before, after in pairwise(parts.values())]
        if len(parts) == count and not any(map(_CORRECTED.search, gaps)):
            return [box.text for box in parts.values()]
    return None


def content_key(content: str) -> str:
    """Return the contents of a box without blanks, dollars and full stops, so that equal contents compare equal."""
    return "".join(content.split()).strip("$*.")


def _connective(gap: str, several: int) -> str | None:
    """Return the word that joins two boxes, or None if they do not stand together."""
    if len(gap) > MAX_GAP_CHARS:
        return None
    plain = _MARKUP.sub(" ", _LABEL.sub("", gap)).strip().casefold()
    parts = _GAP_PART.findall(plain)
    connectives = [_CONNECTIVES[part] for part in parts if part in _CONNECTIVES]
    if len(connectives) == len(parts) and not _SENTENCE_END.search(plain):
        return _strongest(connectives) or ","
    if _SENTENCE_END.search(plain.rstrip(":")) or "\n" in gap.strip() or not _CONSEQUENCE.isdisjoint(parts):
        return None
    # A comma with other words joins two boxes only if gold has several values.
    return _strongest(connectives) if several or connectives[-1:] != [","] else None


def _strongest(connectives: list[str]) -> str | None:
    return next((word for word in ("or", "and", ",") if word in connectives), None)
