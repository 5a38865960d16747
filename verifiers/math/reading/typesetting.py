r"""Removes typesetting without meaning, such as colours and tags, and repairs braces and matrices.

    \color{red}{5}   {\color{blue}5}   \textcolor{red}{5}   \bbox[yellow]{5}    -> 5
    1\phantom{0}2   \hspace{2em}12   12 \tag{3}   \cancel{7}12                  -> 12
    \sqrt{3    \frac{1}{2}}                                                     -> \sqrt{3}   \frac{1}{2}

The text is read once from left to right. Not covered: a brace that was lost in the middle, because its place is
unknown.

These spellings of matrices become LaTeX environments:

    \begin{pmatrix} 1 & 2 \ 3 & 4 \end{pmatrix}     a backslash of each row was lost
    \begin{pmatrix} 1 & 2 \\[4pt] 3 & 4 \end{pmatrix}
    \pmatrix{1 & 2 \cr 3 & 4}     [1 2; 3 4]     Matrix([[1, 2], [3, 4]])
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator

from truegold.verifiers.math.vocabulary import HIDDEN_ARGUMENTS, WORDS

MAX_LOST_BRACES = 3
"""Maximum number of lost braces that are repaired. A text with more is not LaTeX."""

_BRACE = re.compile(r"\\.|([{}])", re.DOTALL)
"""A brace, as the group of the pattern, or an escaped character."""

MAX_MATRIX_CHARS = 1_000
"""Maximum length of a text that is searched for matrices, in characters."""
_ROW_GAP = re.compile(r"\\\\\s*\[\s*-?[\d.]{1,6}\s*(?:pt|em|ex|cm|mm|in)\s*\]")
r"""The end of a row with a gap: \\[4pt]."""
_BODY = re.compile(r"(\\begin\{[a-zA-Z]{0,6}matrix\})((?:[^\\]|\\(?!end|\\)){1,800})(\\end)")
r"""A matrix in which no row ends with \\."""
_LOST_ROW = re.compile(r"\\(?=[\s\d-])")
"""The end of a row that has lost one of its backslashes."""
_PLAIN_TEX = re.compile(r"\\([pbvBV]?)matrix\s*\{([^{}]{1,400}(?:\{[^{}]*\}[^{}]{0,400}){0,40})\}")
r"""Matches `\pmatrix{1 & 2 \cr 3 & 4}`."""
_SEMICOLONS = re.compile(r"\[\s*(-?[\d./]+(?:\s+-?[\d./]+)*(?:\s*;\s*-?[\d./]+(?:\s+-?[\d./]+)*)+)\s*\]")
"""Matches `[1 2; 3 4]`."""
_CONSTRUCTOR = re.compile(r"(?:np\.|sp\.|sympy\.)?(?:Matrix|array|matrix)\s*\((\[.*\])\)", re.DOTALL)
"""Matches `Matrix([[1, 2], [3, 4]])`."""
_HIDDEN, _SHAPES = WORDS["hidden"], WORDS["shapes"]
"""`_HIDDEN` commands have an argument that is not part of the answer. `_SHAPES` commands only change the font."""
_BRACKET = re.compile(r"\s*\[[^\[\]{}]{0,40}\]")
"""An optional argument in square brackets."""
_GROUP = re.compile(r"\s*\{")
_LOST_DEGREE = re.compile(r"(?<=\d)\s*\^\s*$")
"""The `^` of `60^\\circ` whose command was lost."""
_EMPTY_TEXT = re.compile(r"\\text\{[\s.,;]*\}")
"""A text command without words."""
_LOST_BACKSLASH = re.compile(r"(?<![\\A-Za-z])([dt]?frac)(?=\{)")
"""A `frac` that lost its backslash: `frac{1}{2}`."""
_NUMBER_MACRO = re.compile(
    r"\\(?:(si|unit)|num|SI|qty)\s*(?:\[[^\]]{0,60}\])?\{([^{}]{1,60})\}(?:\s*\{([^{}]{1,80})\})?"
)
"""A number, unit or quantity of the package siunitx: `\\SI{5}{\\metre}`. (The `\\qty` of the package physics has one
argument.)"""
_BRACKET_MACRO = re.compile(r"\\(ket|bra|braket)\s*\{([^{}]{1,60}(?:\{[^{}]{0,30}\}[^{}]{0,60}){0,4})\}")
"""Matches `\\ket{0}`, `\\bra{0}`, `\\braket{0}`."""
_BRACKETS_OF_STATES = {
    "ket": r"\left|{}\right\rangle ", "bra": r"\left\langle {}\right|", "braket": r"\left\langle {}\right\rangle ",
}  # fmt: skip
"""Maps a macro of the package physics to its formula."""
_MACROS_OF_UNITS = ("\\num", "\\SI", "\\si", "\\qty", "\\unit", "\\rm", "\\ce")
"""A quick test for macros of units and of chemistry."""
_PREFIX_COMMAND = re.compile(r"\\(kilo|milli|micro|nano|pico|centi|deci|mega|giga|tera|hecto|femto)\s*\\")
r"""The \kilo of \kilo\metre."""
_UNIT_COMMAND = re.compile(r"\\(?!(?:Omega|mu|AA)(?![a-z]))")
r"""The backslash of \metre, but not that of \Omega."""
_ROMAN = re.compile(r"\{\s*\\rm(?![A-Za-z])\s*|\\rm\s*\{")
r"""Matches the beginning of `{\rm m}` and `\rm{m}`."""
_CHEMISTRY = re.compile(r"\\ce\s*\{((?:[^{}]|\{[^{}]{0,20}\}){1,200})\}")
r"""A formula of the package mhchem: `\ce{2H2 + O2 -> 2H2O}`."""
_COUNT_OF_ATOMS = re.compile(r"(?<=[A-Za-z)\]])(\d{1,3})")
_CHARGE = re.compile(r"\^(\d?[+-])")
_LONE_BAR = re.compile(r"\\left\s*\|\s*\\right\s*\.|\\left\s*\.\s*\\right\s*\|")
r"""A single bar: `\left| \right.`."""
_ESCAPED = re.compile(r"\\u(00[A-Fa-f][0-9A-Fa-f]|2[0-9A-Fa-f]{3}|0[34][0-9A-Fa-f]{2})")
r"""An escaped character of JSON: `\u00B0`."""
_ORDINAL = re.compile(r"(?<=\d)\s*\^\s*\{?\s*(?:\\(?:text|mathrm|rm|textrm)\s*\{?\s*)?(?:st|nd|rd|th)\b\s*\}{0,2}")
r"""The ending of 20^{\text{th}}."""


def braces(text: str, start: int = 0) -> Iterator[tuple[int, str]]:
    """Yield the index and the character of each brace from `start` on, except escaped braces (`\\{`)."""
    for match in _BRACE.finditer(text, start):
        if match[1] is not None:
            yield match.start(), match[1]


def matching_brace(text: str, opening: int) -> int:
    """Return the index of the brace that closes the one at `opening`, or -1."""
    depth = 0
    for index, brace in braces(text, opening):
        depth += 1 if brace == "{" else -1
        if depth == 0:
            return index
    return -1


def with_balanced_braces(text: str) -> str:
    """Return the text with balanced braces. Superfluous braces are removed, and missing ones are added at the end."""
    if text.count("{") == text.count("}"):
        return text
    depth = lost = start = 0
    kept: list[str] = []
    for index, brace in braces(text):
        depth += 1 if brace == "{" else -1
        if depth < 0:
            kept.append(text[start:index])
            start, depth, lost = index + 1, 0, lost + 1
    if not (depth or lost) or depth + lost > MAX_LOST_BRACES:
        return text
    return "".join((*kept, text[start:], "}" * depth))


def with_matrix_environments(text: str) -> str:
    """Return the text with its matrices as LaTeX environments."""
    if len(text) > MAX_MATRIX_CHARS or not ("atrix" in text or "\\\\" in text or ";" in text or text.endswith(")")):
        return text
    if "\\\\" in text:
        text = _ROW_GAP.sub(r"\\\\", text)
    elif "matrix}" in text:
        text = _BODY.sub(lambda m: m[1] + _LOST_ROW.sub(r"\\\\", m[2]) + m[3], text)
    if "matrix{" in text or "matrix {" in text:
        text = _PLAIN_TEX.sub(_from_plain_tex, text)
    if ";" in text and (rows := _SEMICOLONS.fullmatch(text)) is not None:
        body = r" \\ ".join(" & ".join(row.split()) for row in rows[1].split(";"))
        return rf"\begin{{bmatrix}} {body} \end{{bmatrix}}"
    constructed = _CONSTRUCTOR.fullmatch(text) if text.endswith("])") else None
    return constructed[1] if constructed is not None else text


def _from_plain_tex(match: re.Match[str]) -> str:
    body = match[2].replace("\\cr", r" \\ ")
    return rf"\begin{{{match[1]}matrix}} {body} \end{{{match[1]}matrix}}"


def _by_first_letter(names: Iterable[str]) -> str:
    """Return a pattern that matches names. It groups them by first letter, so most other commands fail at once."""
    tails: dict[str, list[str]] = defaultdict(list)
    for name in sorted(names, key=len, reverse=True):
        tails[name[0]].append(name[1:])
    return "|".join(f"{letter}(?:{'|'.join(rest)})" for letter, rest in tails.items())


_DRESSED = re.compile(rf"\\({_by_first_letter(_HIDDEN | HIDDEN_ARGUMENTS.keys() | _SHAPES)})(?![A-Za-z])\*?\s*")
"""A command that only changes the appearance, or whose argument is not part of the answer."""


def _without_chemistry(match: re.Match[str]) -> str:
    """Return the formula of a `\\ce` of mhchem as plain LaTeX: counts become subscripts, charges become exponents."""
    formula = _CHARGE.sub(r"^{\1}", _COUNT_OF_ATOMS.sub(r"_{\1}", match[1]))
    return formula.replace("<=>", r"\rightleftharpoons ").replace("->", r"\to ")


def without_dress(text: str) -> str:
    """Return the text without commands that only change its appearance."""
    if "^" in text and ("th" in text or "nd" in text or "st" in text or "rd" in text):
        text = _ORDINAL.sub("", text)
    if text.endswith("^"):
        text = _LOST_DEGREE.sub("", text)
    if "\\text{" in text:
        text = _EMPTY_TEXT.sub("", text)
    if "{}" in text or "[]" in text or "\\ket" in text or "\\bra" in text:
        text = _without_idle_groups(text)
    if "frac{" in text and _LOST_BACKSLASH.search(text) is not None:
        text = _LOST_BACKSLASH.sub(r"\\\1", text)
    if any(macro in text for macro in _MACROS_OF_UNITS):
        text = _NUMBER_MACRO.sub(_without_macro, _ROMAN.sub(r"\\mathrm{", text))
        text = _CHEMISTRY.sub(_without_chemistry, text)
    if "right" in text:
        text = _LONE_BAR.sub(r"\\mid ", text)
    if (match := _DRESSED.search(text)) is None:
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
        for _ in range(1 if name in _HIDDEN else HIDDEN_ARGUMENTS.get(name, 0)):
            position = _end_of_group(text, position)
        match = _DRESSED.search(text, position)
    return "".join((*kept, text[position:]))


def _without_idle_groups(text: str) -> str:
    r"""Return the text with ^{14}C for {}^{14}C, \sqrt2 for \sqrt[]2, and \left|0\right\rangle for \ket{0}."""
    text = text.replace("{}^", "^").replace("{}_", "_").replace("\\sqrt[]", "\\sqrt")
    return _BRACKET_MACRO.sub(lambda match: _BRACKETS_OF_STATES[match[1]].format(match[2]), text)


def _without_macro(match: re.Match[str]) -> str:
    digits, unit = ("", match[2]) if match[1] else (match[2], match[3] or "")
    if not unit or (match[1] and match[3]):
        return digits or match[0]
    unit = _PREFIX_COMMAND.sub(r"\\\1", unit).replace("degreeCelsius", "celsius")
    return rf"{digits}\text{{ {_UNIT_COMMAND.sub(' ', unit)}}}"


def with_escapes_decoded(text: str) -> str:
    """Return the text with JSON's escapes decoded: `45°` for `45\\u00B0`."""
    return _ESCAPED.sub(lambda match: chr(int(match[1], 16)), text)


def _end_of_group(text: str, position: int) -> int:
    """Return the end of the group in braces at `position`, or `position` if there is no group."""
    if (opening := _GROUP.match(text, position)) is None:
        return position
    depth = 0
    for index in range(opening.end() - 1, len(text)):
        depth += (text[index] == "{") - (text[index] == "}")
        if depth == 0:
            return index + 1
    return len(text)
