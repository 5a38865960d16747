"""From tokens to the unit that they spell: `cm^2`, `miles per hour`, `square feet`, `kg/m^3`, `apples` (a label).

A word that might change the value (`not`, `more`, `or`) is never taken for a unit.
"""

from __future__ import annotations

from truegold.verifiers.math.measures import LABEL, LETTER_UNITS, Unit, label_unit, multiply_units, raise_unit, unit_of
from truegold.verifiers.math.reading.tokens import Token

MAX_LABEL_WORDS = 6
MAX_LABEL_LETTERS = 24
"""Longer labels are sentences, which may say anything."""

MAX_STUCK_LETTERS = 12
"""A noun that follows its number without a blank is not longer: `1251Ihopeitiscorrect` is not 1251 of anything."""

MEANING_WORDS = frozenset({
    "not", "no", "never", "wrong", "incorrect", "false", "or", "and", "but", "except", "less", "more", "fewer",
    "greater", "plus", "minus", "times", "to", "mod", "modulo", "divided", "if", "than", "half", "quarter", "base",
    "unless", "without", "neither", "nor", "maybe", "perhaps", "either", "between", "at", "least", "most",
})  # fmt: skip
"""Words that may change what the number before them means."""

_PREFIXES = {"square": 2, "sq": 2, "cubic": 3, "cu": 3}
_SUFFIXES = {"squared": 2, "cubed": 3}
_GENERIC = frozenset({"unit", "units"})
_SPELLING = frozenset({"word", "name", "money", "func"})
_JOINING = frozenset({"/", "*", ".", "-"})


def spelled_unit(tokens: list[Token], *, labels: bool = True) -> Unit | None:
    """Return the unit that `tokens` spell, with `labels` also that of nouns; None where they may be something else."""
    unit: Unit | None = None
    sign = prefix = 1
    label_words = index = 0
    while index < len(tokens):
        token = tokens[index]
        lower = token.text.lower()
        longest = MAX_LABEL_LETTERS if token.spaced or index else MAX_STUCK_LETTERS
        index += 1
        if token.kind in ("open", "close") or (token.kind == "op" and token.text in _JOINING):
            sign = -1 if token.text == "/" else sign
        elif token.kind not in _SPELLING or (token.kind == "name" and not labels):
            return None
        elif lower == "per":
            sign = -1
        elif lower == "in" and not _is_inch(tokens, index, unit):
            continue
        elif lower in _PREFIXES:
            prefix = _PREFIXES[lower]
        elif lower in MEANING_WORDS or len(lower) > longest:
            return None
        else:
            known = _known_unit(token, labels)
            label_words += known is None
            exponent, index = _read_exponent(tokens, index)
            raised = raise_unit(known or label_unit(token.text), sign * prefix * exponent)
            if raised is None:
                return None
            unit = raised if unit is None else multiply_units(unit, raised)
            sign = prefix = 1
    return None if label_words > MAX_LABEL_WORDS or (label_words and not labels) else unit


def _is_inch(tokens: list[Token], index: int, unit: Unit | None) -> bool:
    """Tell whether the `in` before `index` is a unit: `5 in`, but not `5 apples in total`."""
    follows_word = index < len(tokens) and tokens[index].kind in ("word", "name", "num")
    return not follows_word and (unit is None or not unit.is_label)


def _known_unit(token: Token, labels: bool) -> Unit | None:
    """Return the unit of one word; a letter in a formula is one only if it is common (m, but not x)."""
    if token.text.lower() in _GENERIC:
        return LABEL
    if labels and token.kind == "name" and len(token.text) == 1 and token.text not in LETTER_UNITS:
        return None
    return unit_of(token.text)


def _read_exponent(tokens: list[Token], index: int) -> tuple[int, int]:
    """Return the power behind a unit (`^2`, `^{-1}`, `squared`), and where to read on."""
    if index < len(tokens) and tokens[index].text == "^":
        braced = index + 1 < len(tokens) and tokens[index + 1].kind == "brace"
        position = index + 1 + braced
        minus = position < len(tokens) and tokens[position].text == "-"
        position += minus
        digits = tokens[position].text if position < len(tokens) and tokens[position].kind == "num" else ""
        if digits.isdigit() and len(digits) <= 2:
            return (-1 if minus else 1) * int(digits), position + 1 + braced
    if index < len(tokens) and tokens[index].text.lower() in _SUFFIXES:
        return _SUFFIXES[tokens[index].text.lower()], index + 1
    return 1, index
