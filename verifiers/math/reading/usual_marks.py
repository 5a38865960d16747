r"""Marks in and behind numbers that other countries, or other authors, write otherwise.

    12.345,67   1.000.000   2{,}75         12345.67   1000000   2.75
    1'234'567   ,5                         1234567   0.5
    98 degrees Fahrenheit                  98 fahrenheit
    20^\circ\text{C}                       20\text{ celsius}
    \frac{1}{3} (approximately 0.333)      \frac{1}{3} \approx 0.333
    (1, 2                                  (1, 2), where the text is one bracket that was never closed
    (-oo, 1) U (2, oo)                     (-oo, 1) \cup (2, oo)
    x \ne 1, x \ne 2                       \mathbb{R} \setminus \{1, 2\}
    x | 1 < x < 4                          \{x \mid 1 < x < 4\}
    3\mathrm{i}   7'4"                     3i   7'4''
    1 +/- 2   x \in \mathbf{R}   25 sq. cm  1 \pm 2   x \in \mathbb{R}   25 square cm
    9 \frac{\text{m}}{\text{s}^2}          9 \text{m}/\text{s}^2

Not covered: `3,5` and `1,234`, which may be a list and a number with thousands (`alternatives`).
"""

from __future__ import annotations

import re

_THOUSANDS_AND_COMMA = re.compile(r"^([+-]?\d{1,3}(?:\.\d{3})+),(\d{1,9})(?![\d,])")
"""At the start of the text only: in brackets the comma separates."""
_THOUSANDS = re.compile(r"^([+-]?\d{1,3}(?:\.\d{3}){2,})(?![\d.])")
_APOSTROPHES = re.compile(r"[+-]?\d{1,3}(?:'\d{3})+(?:\.\d+)?", re.ASCII)
_LEADING_COMMA = re.compile(r"^,(?=\d{1,9}$)")
_DEGREES_OF_SCALE = re.compile(r"\bdegrees?\s+(?=(?:celsius|fahrenheit|kelvin)\b)", re.IGNORECASE)
_BRACED_COMMA = re.compile(r"(?<![\d},])(\d{1,9})\{,\}(\d{1,2}|\d{4,9})(?!\d|\{,\})")
_TEMPERATURE = re.compile(r"\^\s*\{?\s*\\circ\s*\}?\s*(?:\\(?:text|mathrm)\s*\{\s*([CF])\s*\}|([CF])(?![A-Za-z]))")
_SCALES = {"C": r"\text{ celsius}", "F": r"\text{ fahrenheit}"}
MAX_APPROXIMATION_CHARS = 120
"""So much of the end is searched for an approximation."""

_APPROXIMATION = re.compile(
    r"(?<=[\w})])\s*[,;]?\s*(?:\\q?quad\s*)?(?:\\text\s*\{\s*)?\(?\s*(?:or\s+)?(?:approximately|approx\.?|about)\s*\}?\s*"
    r"(-?\d[\d,]{0,20}(?:\.\d{1,40})?)\s*(?:\\text\s*\{\s*)?\)?\s*\}?$"
)


_REPEATED = re.compile(r"(\d{0,20}\.\d{0,6}?)(\d{2,6})(\2{1,10})(\d{0,5})(?:\.\.\.|\\[lc]?dots)")


def _repeating(match: re.Match[str]) -> str:
    """Return 0.\\overline{63} for 0.636363...; what follows the last whole block has to begin one."""
    head, block, _, tail = match.groups()
    return rf"{head}\overline{{{block}}}" if block.startswith(tail) and len(set(block)) > 1 else match[0]


_INCH_MARK = re.compile(r"(\d)\s*\"$")
_UPRIGHT_CONSTANT = re.compile(r"\\mathrm\s*\{\s*([ie])\s*\}")
_VALUE = r"(-?(?:\d{1,6}(?:\.\d{1,6})?|\\frac\{\d{1,4}\}\{\d{1,4}\}))"
_UNEQUAL = re.compile(
    rf"([a-z])\s*\\neq?\s*{_VALUE}\s*(?:,|\\text\s*\{{\s*(?:and|,)\s*\}}|and)\s*(?:\1\s*\\neq?\s*)?{_VALUE}"
)
_BARE_SET = re.compile(r"([a-z])\s*(?:\||\\mid(?![A-Za-z]))\s*([^|]+)")
_RELATION = re.compile(r"[<>=]|\\(?:le|ge|ne|in)q?(?![A-Za-z])")
_UNION = re.compile(r"(?<=[)\]}])\s*(?:U|\\text\s*\{\s*U\s*\})\s*(?=[(\[{\]]|\\left|\\\{)")
_UNION_IN_WORDS = re.compile(r"(?<=[)\]])\s*(?:\\text\s*\{\s*(?:and|or)\s*\}|and|or)\s*(?=[(\[]|\\left)")
_UNBOUNDED = re.compile(r"\\infty|\binf(?:inity|ty)?\b|\boo\b")
_BOLD_SET = re.compile(r"(\\in\s*)\\(?:mathbf|boldsymbol|mathrm|bf)\s*\{\s*([RZNQC])\s*\}")
_POWERS = {"sq": "square", "cu": "cubic"}
_SHORT_UNIT = re.compile(r"\b(sq|cu)\.(?=\s*[a-z])")
_UNIT_IN_FRACTION = r"\s*\{\s*(\\(?:text|mathrm)\s*\{\s*[A-Za-z]{1,12}\s*\}(?:\s*\^\s*(?:\d|\{\s*\d\s*\}))?)\s*\}"
_FRACTION_OF_UNITS = re.compile(rf"\\[dt]?frac{_UNIT_IN_FRACTION}{_UNIT_IN_FRACTION}")


def with_usual_notation(text: str) -> str:
    """Return the text with sets, signs and units in the notation that the lexer knows."""
    if "U" in text and (")" in text or "]" in text or "}" in text):
        text = _UNION.sub(r" \\cup ", text)
    may_be_unbounded = ("inf" in text or "oo" in text) and ("nd" in text or "or" in text)
    if may_be_unbounded and (")" in text or "]" in text) and _UNBOUNDED.search(text):
        text = _UNION_IN_WORDS.sub(r" \\cup ", text)
    if "\\ne" in text and (unequal := _UNEQUAL.fullmatch(text)) is not None:
        return rf"\mathbb{{R}} \setminus \{{{unequal[2]}, {unequal[3]}\}}"
    if ("|" in text or "\\mid" in text) and (bare := _BARE_SET.fullmatch(text)) is not None:
        is_condition = re.search(rf"(?<![A-Za-z\\]){bare[1]}(?![A-Za-z])", bare[2]) and _RELATION.search(bare[2])
        return rf"\{{{bare[1]} \mid {bare[2]}\}}" if is_condition else text
    if "'" in text and _APOSTROPHES.fullmatch(text) is not None:
        return text.replace("'", "")
    if "degree" in text or "per cent" in text:
        text = _DEGREES_OF_SCALE.sub("", text).replace("per cent", "percent")
    if text.endswith('"'):
        text = _INCH_MARK.sub(r"\1''", text)
    if "\\mathrm" in text:
        text = _UPRIGHT_CONSTANT.sub(r"\1", text)
    if "/-" in text:
        text = text.replace("+/-", r" \pm ")
    if "\\in" in text:
        text = _BOLD_SET.sub(r"\1\\mathbb{\2}", text)
    if "sq." in text or "cu." in text:
        text = _SHORT_UNIT.sub(lambda m: _POWERS[m[1]], text)
    if "frac" in text and ("\\text" in text or "\\mathrm" in text):
        text = _FRACTION_OF_UNITS.sub(r"\1/\2", text)
    return text


def with_usual_marks(text: str) -> str:
    """Return the text with the marks that the lexer knows."""
    ending = text[-MAX_APPROXIMATION_CHARS:]
    if ("appro" in ending or "about" in ending) and (stated := _APPROXIMATION.search(ending)) is not None:
        text = text[: len(text) - len(ending) + stated.start()] + rf" \approx {stated[1]}"
    if "," in text and "." in text:
        text = _THOUSANDS_AND_COMMA.sub(lambda m: f"{m[1].replace('.', '')}.{m[2]}", text)
    if text[:1] == ",":
        text = _LEADING_COMMA.sub("0.", text)
    if "{,}" in text:
        text = _BRACED_COMMA.sub(r"\1.\2", text)
    if "..." in text or "dots" in text:
        text = _REPEATED.sub(_repeating, text)
    if text.count(".") > 1:
        text = _THOUSANDS.sub(lambda m: m[1].replace(".", ""), text)
    if "circ" in text:
        text = _TEMPERATURE.sub(lambda m: _SCALES[m[1] or m[2]], text)
    if text.startswith("(") and text.count("(") == text.count(")") + 1 and "]" not in text and "\\infty" not in text:
        text += ")"
    return text
