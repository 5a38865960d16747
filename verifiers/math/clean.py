r"""One spelling for what is typeset in many: the first step for gold and answer alike.

    $\dfrac{1}{2}$.        \frac{1}{2}
    \boxed{５０\,\%}        50 %
    5\text{ cm}^2          5 cm^2, with a mark before `cm` that says it was set as text

Nothing here knows about values: `0.50` and `0.5` stay different. Not covered: macros, environments, markup other than
Markdown emphasis.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

TEXT_MARK = "\ue000"
"""Stands where a text command opened, so that the `m` of 5\\text{m} can be told from a variable."""
DOLLAR = "\ue001"
"""An amount's dollar sign, once the dollar signs around formulas are gone."""
THIN = "\u2009"
"""Any of TeX's and Unicode's small spaces: the ones that group digits."""

_MINUS = dict.fromkeys("−﹣‐‑‒–", "-")
_FULL_WIDTH = {chr(0xFF01 + i): chr(0x21 + i) for i in range(94)}
_SYMBOLS = {
    "\u3000": " ",
    "\u00a0": THIN,
    "\u202f": THIN,
    "￥": "¥",
    "。": ".",
    "×": r"\times ",
    "·": r"\cdot ",
    "⋅": r"\cdot ",
    "±": r"\pm ",
    "π": r"\pi ",
    "∞": r"\infty ",
    "≤": r"\le ",
    "≥": r"\ge ",
    "≠": r"\ne ",
    "≈": r"\approx ",
    "∪": r"\cup ",
    "∩": r"\cap ",
    "∈": r"\in ",
    "∅": r"\emptyset ",
    "°": r"^\circ ",
    "²": "^{2}",
    "³": "^{3}",
    "½": r"\frac{1}{2}",
    "⅓": r"\frac{1}{3}",
    "⅔": r"\frac{2}{3}",
    "¼": r"\frac{1}{4}",
    "¾": r"\frac{3}{4}",
    "⁄": "/",
    **dict.fromkeys("\u200b\u200c\u200d\u2060\ufeff", ""),
}
_CHARACTERS = str.maketrans({**_FULL_WIDTH, **_MINUS, **_SYMBOLS})

_DELIMITERS = re.compile(r"\\[()\[\]]|\$\$")
_DROPPED = re.compile(
    r"\\(?:left|right)(?![A-Za-z])\.?|\\(?:[bB]igg?[lr]?|displaystyle|textstyle|limits)(?![A-Za-z])|\\!"
)
_SMALL_SPACE = re.compile(r"\\[,:; ]|\\thinspace(?![A-Za-z])|~")
_WIDE_SPACE = re.compile(r"\\q?quad(?![A-Za-z])|\s+")
_TEXT = re.compile(r"\\(?:text|textrm|textnormal|mathrm|mbox|rm)(?![A-Za-z])\s*(?:\{([^{}]*)\})?")
_FACE = re.compile(r"\\(?:textbf|textit|mathbf|mathit|boldsymbol|bf)(?![A-Za-z])\s*(?:\{([^{}]*)\})?")
_FRACTION = re.compile(r"\\[dtc]frac(?![A-Za-z])")
_SHORT_FRACTION = re.compile(r"\\frac\s*(?:(\d)|\{([^{}]*)\})\s*(?:(\d)|\{([^{}]*)\})")
_DEGREE = re.compile(r"\^\s*(?:\{\s*\\circ\s*\}|\\circ(?![A-Za-z]))|\\degree(?![A-Za-z])")
_SYNONYMS = [
    (re.compile(r"\\leq(?:slant)?(?![A-Za-z])"), r"\\le "),
    (re.compile(r"\\geq(?:slant)?(?![A-Za-z])"), r"\\ge "),
    (re.compile(r"\\neq(?![A-Za-z])"), r"\\ne "),
    (re.compile(r"\\lt(?![A-Za-z])"), "<"),
    (re.compile(r"\\gt(?![A-Za-z])"), ">"),
]
_ENDING = re.compile(r"(?:\\[,;:! ]|\s|(?<!\\right)[.,;])+$")
_BOX = re.compile(r"\\(?:boxed|fbox)\s*\{(.*)\}", re.DOTALL)
_IDLE_BLANK = re.compile(r"(?<![0-9A-Za-z])\s+|\s+(?![0-9A-Za-z])")
_BRACED_CHARACTER = re.compile(r"(?<=[\^_])\{(\w)\}")


@dataclass(frozen=True, slots=True)
class Cleaned:
    """One answer in three spellings, each for one reader."""

    latex: str
    """Still LaTeX, without what surrounds a formula: for the symbolic rung."""
    text: str
    """One spelling, marks in place: for the readers of numbers, units and lists."""
    key: str
    """Blanks and marks gone: two answers with the same key are the same text."""


def clean(answer: str) -> Cleaned:
    latex = _unwrap(answer.translate(_CHARACTERS))
    text = _DROPPED.sub("", latex)
    text = _SMALL_SPACE.sub(THIN, text.replace("{,}", ",").replace(r"\%", "%").replace(r"\ ", THIN))
    text = _TEXT.sub(lambda m: f"{TEXT_MARK}{m.group(1) or ''}", text)
    text = _FACE.sub(lambda m: m.group(1) or "", text)
    text = _DEGREE.sub("°", text)
    text = _SHORT_FRACTION.sub(_long_fraction, _FRACTION.sub(r"\\frac", text))
    for pattern, synonym in _SYNONYMS:
        text = pattern.sub(synonym, text)
    text = _strip(_WIDE_SPACE.sub(lambda m: THIN if m.group() == THIN else " ", text))
    key = _IDLE_BLANK.sub("", text.replace(TEXT_MARK, " ").strip())
    return Cleaned(latex.replace(DOLLAR, ""), text, _BRACED_CHARACTER.sub(r"\1", key))


def unmarked(text: str) -> str:
    """Cleaned text as LaTeX that a reader without our marks understands."""
    return (
        text.replace(TEXT_MARK, " ").replace(DOLLAR, "").replace(THIN, " ").replace("°", r"^\circ ").replace("%", r"\%")
    )


def _unwrap(text: str) -> str:
    """Take off what only says "here is a formula", and keep the dollar sign of an amount."""
    text = _strip(text.replace(r"\$", DOLLAR))
    if text.startswith("**") and text.endswith("**"):
        text = _strip(text.strip("*"))
    text = _DELIMITERS.sub(" ", text)
    text = text.replace("$", " " if text.count("$") % 2 == 0 else DOLLAR)
    text = _strip(text)
    box = _BOX.fullmatch(text)
    return _strip(box.group(1)) if box else text


def _strip(text: str) -> str:
    """Take off blanks, and the punctuation that ends a sentence."""
    return _ENDING.sub("", text).strip()


def _long_fraction(match: re.Match[str]) -> str:
    above = match.group(1) or match.group(2) or ""
    below = match.group(3) or match.group(4) or ""
    return f"\\frac{{{above.strip()}}}{{{below.strip()}}}"
