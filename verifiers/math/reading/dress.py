r"""Typesetting that says nothing: colours, invisible boxes, tags, lost braces.

    \color{red}{5}   {\color{blue}5}   \textcolor{red}{5}   \bbox[yellow]{5}       5
    1\phantom{0}2   \hspace{2em}12   12 \tag{3}   \cancel{7}12                     12
    \sqrt{3    \frac{1}{2}}                                                        \sqrt{3}   \frac{1}{2}

Every command is read once from left to right. Not covered: a lost brace in the middle, since its place is not known.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable

_HIDDEN = frozenset({
    "phantom", "hphantom", "vphantom", "hspace", "vspace", "tag", "label", "cancel", "bcancel", "xcancel", "sout",
    "hskip", "cline", "rule",
})  # fmt: skip
"""Commands whose argument is not part of the answer."""

_HIDDEN_ARGUMENTS = {
    "color": 1, "textcolor": 1, "colorbox": 1, "fcolorbox": 2, "enclose": 1, "bbox": 0, "stackrel": 1, "definecolor": 3,
    "style": 1, "class": 1, "cssId": 1, "href": 1, "raisebox": 1, "scalebox": 1, "mathchoice": 0,
}  # fmt: skip
"""How many arguments before the shown one say only how it looks."""

_SHAPES = frozenset(
    {"large", "Large", "LARGE", "huge", "Huge", "small", "tiny", "bf", "rm", "it", "sf", "tt", "bfseries"}
)


def _by_first_letter(names: Iterable[str]) -> str:
    """Return a pattern of names that is quick to fail: at most commands it looks at one letter."""
    tails: dict[str, list[str]] = defaultdict(list)
    for name in sorted(names, key=len, reverse=True):
        tails[name[0]].append(name[1:])
    return "|".join(f"{letter}(?:{'|'.join(rest)})" for letter, rest in tails.items())


_DRESSED = re.compile(rf"\\({_by_first_letter(_HIDDEN | _HIDDEN_ARGUMENTS.keys() | _SHAPES)})(?![A-Za-z])\*?\s*")
_BRACKET = re.compile(r"\s*\[[^\[\]{}]{0,40}\]")
_GROUP = re.compile(r"\s*\{")


_LOST_DEGREE = re.compile(r"(?<=\d)\s*\^\s*$")
"""What is left of `60^\\circ` where a program took the command away."""
_EMPTY_TEXT = re.compile(r"\\text\{[\s.,;]*\}")
_LOST_BACKSLASH = re.compile(r"(?<![\\A-Za-z])([dt]?frac)(?=\{)")
_NUMBER_MACRO = re.compile(r"\\(?:num|(SI|qty))\{([^{}]{1,60})\}(?:(?<=\})\{\\?([^{}]{1,30})\})?")
"""Numbers and quantities of the package siunitx."""
_LONE_BAR = re.compile(r"\\left\s*\|\s*\\right\s*\.|\\left\s*\.\s*\\right\s*\|")
_ESCAPED = re.compile(r"\\u(00[A-Fa-f][0-9A-Fa-f]|2[0-9A-Fa-f]{3}|0[34][0-9A-Fa-f]{2})")
_ORDINAL = re.compile(r"(?<=\d)\s*\^\s*\{?\s*(?:\\(?:text|mathrm|rm|textrm)\s*\{?\s*)?(?:st|nd|rd|th)\b\s*\}{0,2}")


def without_dress(text: str) -> str:
    """Return the text without commands that only say how it looks."""
    if "^" in text and ("th" in text or "nd" in text or "st" in text or "rd" in text):
        text = _ORDINAL.sub("", text)
    if text.endswith("^"):
        text = _LOST_DEGREE.sub("", text)
    if "\\text{" in text:
        text = _EMPTY_TEXT.sub("", text)
    if "[]" in text:
        text = text.replace("\\sqrt[]", "\\sqrt")
    if "frac{" in text and _LOST_BACKSLASH.search(text) is not None:
        text = _LOST_BACKSLASH.sub(r"\\\1", text)
    if "\\num{" in text or "\\SI{" in text or "\\qty{" in text:
        text = _NUMBER_MACRO.sub(_without_macro, text)
    if "right" in text:
        text = _LONE_BAR.sub(r"\\mid ", text)
    match = _DRESSED.search(text)
    if match is None:
        return text
    kept: list[str] = []
    position = 0
    while match is not None:
        kept.append(text[position : match.start()])
        name, position = match.group(1), match.end()
        if name in _SHAPES:
            kept.append(" ")
        elif bracket := _BRACKET.match(text, position):
            position = bracket.end()
        for _ in range(1 if name in _HIDDEN else _HIDDEN_ARGUMENTS.get(name, 0)):
            position = _end_of_group(text, position)
        match = _DRESSED.search(text, position)
    return "".join((*kept, text[position:]))


def _without_macro(match: re.Match[str]) -> str:
    if match[3] is None:
        return match[2]
    return rf"{match[2]}\text{{ {match[3]}}}" if match[1] else f"{match[2]}{{{match[3]}}}"


def with_escapes_decoded(text: str) -> str:
    """Return `45°` for what JSON calls `45\\u00B0`."""
    return _ESCAPED.sub(lambda match: chr(int(match[1], 16)), text)


def _end_of_group(text: str, position: int) -> int:
    """Return where the group in braces at `position` ends; `position` itself where none stands there."""
    opening = _GROUP.match(text, position)
    if opening is None:
        return position
    depth = 0
    for index in range(opening.end() - 1, len(text)):
        depth += (text[index] == "{") - (text[index] == "}")
        if depth == 0:
            return index + 1
    return len(text)
