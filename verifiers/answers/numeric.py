r"""Compares one number with one number, exactly or within a tolerance.

    Gold       Answer                            `info`               Verdict
    0.5        1/2, \frac{1}{2}, 50%, 5e-1, .5                        match: values are exact fractions
    1234.5     1,234.5, 1{,}234.5, $1,234.50                          match
    3.14159    3.14                              {"decimals": 2}      match: at most 0.005 apart
    9.81       9.8                               {"rel_tol": 0.01}    match: at most 1 % of gold apart
    5          5 or 6, 5 ± 1, {5, 6}                                  hedged: score 0
    5          five, x+1, 5 km                                        unread: score 0

The answer is the one that the response commits to (`extract`). It may begin with `x =` or `≈`, and dollar signs are
ignored, since they may delimit a formula. `info["unit"]` lists units, which are ignored next to the number: with
`"unit": ["km", "kilometres"]` the answer `5 km` is 5. A percent sign divides by 100, unless it is listed as a unit:
with `"unit": "%"` the answer `50%` is 50.

Not covered, but read by the verifier `math`: conversion of units, arithmetic (`2^3`, `\sqrt{4}`, `10-3`), decimal
commas (`3,5`), and digits grouped by blanks (`1 234`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from truegold.verifiers.extract import committed_answer, ends_with_value
from truegold.verifiers.options import AnswerVerifier, integer_option, number_option, text_option, texts_option
from truegold.verifiers.verdict import Reason, Verdict
from truegold.verifiers.written_numbers import DECIMAL, plain_number

MAX_NUMBER_CHARS = 1_000
"""Maximum length of a text that is read as a number, in characters. A million digits would take minutes to convert."""

MAX_DECIMALS = 100
MAX_UNITS = 20
MAX_UNIT_CHARS = 40

_FULL_WIDTH = {chr(0xFF01 + i): chr(0x21 + i) for i in range(94)}
"""Full-width characters and their ASCII equivalents: `１` -> `1`."""
_CHARACTERS = str.maketrans({**_FULL_WIDTH, **dict.fromkeys("−﹣‐‑–", "-"), "×": r"\times ", "。": "."})
_GROUPING = re.compile(r"(?<=\d)(?:\{,\}|\\[,!]|[\u2009\u202f])(?=\d{3}(?!\d))")
r"""A separator of thousands: `{,}`, `\,`, a thin space."""
_TEXT = re.compile(r"\\(?:text|textbf|textrm|mathrm|mathbf|mbox)\s{0,3}\{([^{}]*)\}")
_MARKUP = re.compile(r"\$|\\[()\[\],;:! ]|\\(?:left|right|displaystyle)(?![A-Za-z])|[*`]")
_FRACTION = re.compile(r"\\[dtc]frac(?![A-Za-z])")
_LEAD = re.compile(
    r"[A-Za-z]\s{0,3}(?:=|\\approx\s)\s{0,3}|(?:\\approx(?![A-Za-z])|≈|~|about\s|approximately\s)\s{0,3}"
)
"""The beginning of an answer before its number: `x =`, `≈`, "about"."""

_UNSIGNED = re.compile(DECIMAL)
_CONNECTIVE = re.compile(r"\b(?:or|and|to)\b|[,;/~±]|\\pm|[或和、]|\d\s{0,3}-\s{0,3}\d")
"""A sign between several numbers: "or", a comma, `±`."""
_PERCENT = re.compile(r"\s{0,3}(?:\\?%|percent|per cent)\s{0,3}", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class NumericVerifier(AnswerVerifier):
    """Compares one number with gold, exactly or within a tolerance.

    Settings in `info`: `abs_tol`, `rel_tol` (relative to gold), `decimals` and `unit`. If several tolerances are set,
    the widest counts. Without a tolerance the numbers must be equal.
    """

    options: ClassVar[tuple[str, ...]] = ("abs_tol", "rel_tol", "decimals", "unit")

    name: str = "numeric"
    version: str = "5"

    def _judge(self, response: str, gold: str | None, info: Mapping[str, Any]) -> Verdict:
        units = _read_units(info)
        absolute, relative = number_option(info, "abs_tol"), number_option(info, "rel_tol")
        decimals = integer_option(info, "decimals", 0, MAX_DECIMALS)
        if gold is None or not gold.strip():
            return Verdict(None, Reason.GOLD_MISSING)
        if (gold_value := read_number(gold, units)) is None:
            return Verdict(None, Reason.GOLD_UNPARSED, evidence={"gold": gold[:MAX_NUMBER_CHARS]})
        if (answer := committed_answer(response)) is None:
            return Verdict(0.0, Reason.UNREAD if ends_with_value(response) else Reason.NO_ANSWER)
        value = read_number(answer.text, units)
        shown = answer.text[:MAX_NUMBER_CHARS]
        if value is None:
            unread = Reason.UNREAD if ends_with_value(response) else Reason.NO_ANSWER
            return Verdict(
                0.0,
                Reason.HEDGED if _names_several(shown) else unread,
                shown,
                {"gold": _shorten(gold_value), "form": answer.form},
            )
        match = abs(gold_value - value) <= _tolerance(gold_value, absolute, relative, decimals)
        evidence = {"gold": _shorten(gold_value), "answer": _shorten(value), "form": answer.form}
        return Verdict(float(match), Reason.MATCH if match else Reason.MISMATCH, shown, evidence)

    def gold_response(self, gold: str, solution: str | None) -> str | None:
        """Return gold in a box."""
        return f"\\boxed{{{gold}}}"


def _tolerance(gold: Fraction, absolute: float | None, relative: float | None, decimals: int | None) -> Fraction:
    """Return the largest allowed difference from gold; 0 without a tolerance."""
    # str() makes 0.1 exactly 1/10, not the nearest binary fraction.
    room = max(Fraction(str(absolute or 0)), Fraction(str(relative or 0)) * abs(gold))
    return room if decimals is None else max(room, Fraction(1, 2 * 10**decimals))


def _read_units(info: Mapping[str, Any]) -> list[str]:
    if isinstance(info.get("unit"), str):
        return [text_option(info, "unit", MAX_UNIT_CHARS) or ""]
    return texts_option(info, "unit", (), MAX_UNITS, MAX_UNIT_CHARS)


def read_number(written: str, units: list[str]) -> Fraction | None:
    """Return the number in a text, or None if the text is not one number. One of `units` may precede or follow it."""
    if len(written) > MAX_NUMBER_CHARS:
        return None
    plain = _drop_unit(_plain(written), [_plain(unit) for unit in units])
    if (percent := _PERCENT.search(plain)) is not None and percent.end() == len(plain):
        plain = plain[: percent.start()]
    value = plain_number(plain.strip())
    return value if value is None or percent is None else value / 100


def _plain(text: str) -> str:
    """Return the text without delimiters, spaces, text commands, final punctuation and a beginning such as `x =`."""
    text = _GROUPING.sub("", text[:MAX_NUMBER_CHARS].translate(_CHARACTERS))
    text = _TEXT.sub(r" \1 ", text)
    text = _FRACTION.sub(r"\\frac", _MARKUP.sub(" ", text.replace(r"\$", "$")))
    text = " ".join(text.split()).rstrip(".,; ")
    while len(text) > 1 and text[0] == "{" and text[-1] == "}" and "{" not in text[1:-1]:
        text = text[1:-1].strip()
    lead = _LEAD.match(text)
    return text[lead.end() :] if lead else text


def _names_several(text: str) -> bool:
    plain = _plain(text)
    return len(_UNSIGNED.findall(plain)) > 1 and _CONNECTIVE.search(plain) is not None


def _drop_unit(text: str, units: list[str]) -> str:
    for unit in sorted(units, key=len, reverse=True):
        if not unit:
            continue
        for bare in (text.removesuffix(unit), text.removesuffix(f"{{{unit}}}"), text.removeprefix(unit)):
            if bare != text:
                return bare.strip(" {}\\") if unit == "%" else bare.strip()
    return text


def _shorten(value: Fraction) -> str:
    """Return the number as a text of at most 40 characters, for the evidence."""
    shown = str(value)
    return shown if len(shown) <= MAX_UNIT_CHARS else f"{shown[:MAX_UNIT_CHARS]}…"
