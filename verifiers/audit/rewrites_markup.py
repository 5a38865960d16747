"""Rewrites of what surrounds an answer: delimiters, punctuation, boxes, blanks, digits of other scripts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction

from truegold.verifiers.audit.forms import (
    Collection,
    Form,
    Interval,
    Irrational,
    Matrix,
    Number,
    Pair,
    PlusMinus,
    Sum,
    Union,
)
from truegold.verifiers.audit.spelling import scalar
from truegold.verifiers.audit.variants import REWRITES

_rule = REWRITES.rule
_MATHS = (Number, Irrational, Sum, Pair, Interval, Union, Collection, PlusMinus, Matrix)
_SEPARATOR = re.compile(r",(?!\\!|\})\s*")
_FULL_WIDTH = str.maketrans({**{str(n): chr(0xFF10 + n) for n in range(10)}, "-": "－", ".": "．"})
_ARABIC = str.maketrans({str(n): chr(0x660 + n) for n in range(10)})


@_rule("dollars", ("973", "$973$"), *_MATHS)
def dollars(form: Form) -> Iterator[str]:
    """Dollar signs around it."""
    yield f"${form.text}$"


@_rule("display dollars", ("973", "$$973$$"), Number, Irrational, Sum)
def display_dollars(form: Form) -> Iterator[str]:
    """The delimiters of displayed mathematics around it."""
    yield f"$${form.text}$$"
    yield f"\\[{form.text}\\]"


@_rule("inline delimiters", ("973", "\\(973\\)"), *_MATHS)
def inline_delimiters(form: Form) -> Iterator[str]:
    """LaTeX's inline delimiters around it."""
    yield f"\\({form.text}\\)"


@_rule("trailing period", ("3224", "3224."), *_MATHS)
def trailing_period(form: Form) -> Iterator[str]:
    """The full stop of the sentence it ended."""
    yield f"{form.text}."


@_rule("boxed again", ("5", "\\boxed{5}"), *_MATHS)
def boxed_again(form: Form) -> Iterator[str]:
    """A box of its own, inside whatever box the response has."""
    yield f"\\boxed{{{form.text}}}"


@_rule("in text", ("128", "\\text{128}"), Number)
def in_text(form: Number) -> Iterator[str]:
    """A number set as text."""
    if form.style in {"integer", "decimal"} and re.fullmatch(r"[\d.-]+", form.text):
        yield f"\\text{{{form.text}}}"


@_rule("bold", ("128", "\\mathbf{128}"), Number, Irrational)
def bold(form: Number | Irrational) -> Iterator[str]:
    """Set in bold face."""
    yield f"\\mathbf{{{form.text}}}"


@_rule("display style", ("\\frac{1}{2}", "\\displaystyle \\frac{1}{2}"), Number, Irrational, Sum)
def display_style(form: Form) -> Iterator[str]:
    """A style command before it."""
    if "frac" in form.text or "sqrt" in form.text:
        yield f"\\displaystyle {form.text}"


@_rule("wide blanks", ("x^2+1", "x^2 + 1"), Sum, PlusMinus)
def wide_blanks(form: Form) -> Iterator[str]:
    """Blanks around the signs."""
    yield re.sub(r"(?<=[\w}])\s*([+-])\s*", r" \1 ", form.text)


@_rule("no blanks", ("x^2 + 1", "x^2+1"), *_MATHS)
def no_blanks(form: Form) -> Iterator[str]:
    """No blanks at all, except after a command."""
    yield re.sub(r"(\\[a-zA-Z]+)?\s+", lambda match: f"{match[1]} " if match[1] else "", form.text)


@_rule("thin blanks", ("(4,10)", "(4,\\,10)"), Pair, Interval, Collection)
def thin_blanks(form: Form) -> Iterator[str]:
    """A LaTeX blank after each comma."""
    for blank in ("\\,", "\\ ", "~", "\\quad "):
        yield _SEPARATOR.sub(lambda _, blank=blank: f",{blank}", form.text)  # type: ignore[misc]


@_rule("left/right", ("(4,10)", "\\left(4,10\\right)"), Pair, Interval)
def left_right(form: Pair | Interval) -> Iterator[str]:
    """Growing brackets."""
    if form.text[0] in "([":
        yield f"\\left{form.text[:-1]}\\right{form.text[-1]}"


@_rule("no left/right", ("\\left(4,10\\right)", "(4,10)"), Pair, Interval, Union, Collection)
def no_left_right(form: Form) -> Iterator[str]:
    """Growing brackets made plain."""
    yield re.sub(r"\\left(?=[(\[\\])|\\right(?=[)\]\\])", "", form.text)


@_rule("unicode minus", ("-5", "−5"), Number, Irrational, Sum, Pair, Interval, Collection)
def unicode_minus(form: Form) -> Iterator[str]:
    """The typographic minus sign."""
    yield form.text.replace("-", "−")


@_rule("unicode sqrt/pi", ("25 \\pi", "25 π"), Irrational, Sum)
def unicode_symbols(form: Irrational | Sum) -> Iterator[str]:
    """π and √ as characters."""
    text = re.sub(r"\\sqrt(?:\{(\d+)\}|(\d))", lambda match: f"√{match[1] or match[2]}", form.text)
    if "frac" not in text:
        yield text.replace("\\pi", "π")
        yield re.sub(r"√(\d+)", r"√(\1)", text).replace("\\pi", "π")


@_rule("unicode fraction", ("\\frac{1}{2}", "½"), Number)
def unicode_fraction(form: Number) -> Iterator[str]:
    """A fraction that has a character of its own."""
    characters = {(1, 2): "½", (1, 3): "⅓", (2, 3): "⅔", (1, 4): "¼", (3, 4): "¾", (1, 5): "⅕", (1, 8): "⅛"}
    if form.value in (known := {Fraction(*key): sign for key, sign in characters.items()}):
        yield known[form.value]


@_rule("full-width digits", ("-123", "－１２３"), Number)
def full_width_digits(form: Number) -> Iterator[str]:
    """The digits of East Asian typography."""
    if form.style in {"integer", "decimal"} and re.fullmatch(r"[\d.-]+", form.text):
        yield form.text.translate(_FULL_WIDTH)


@_rule("arabic-indic digits", ("123", "١٢٣"), Number)
def arabic_digits(form: Number) -> Iterator[str]:
    """The digits of Arabic script."""
    if form.style == "integer" and form.text.isdigit():
        yield form.text.translate(_ARABIC)


@_rule("chinese punctuation", ("(1,2)", "（1，2）"), Pair, Collection)
def chinese_punctuation(form: Pair | Collection) -> Iterator[str]:
    """Full-width commas and parentheses."""
    inner = "，".join(scalar(item) for item in form.items)
    if isinstance(form, Pair):
        yield f"（{inner}）"
    else:
        yield f"{{{inner}}}" if form.kind == "set" and "\\" not in inner else inner
