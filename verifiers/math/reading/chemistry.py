r"""Compares notation of chemistry. The texts of each line below are the same:

    H_2O    H2O    \mathrm{H_2O}                    a formula
    \text{Ca}^{2+}    Ca2+    Ca^2+                 an ion (SO42- may be read in two ways)
    ^{14}_6C    C-14    carbon-14                   a nuclide: the element implies the 6 protons
    [Ar] 3d^5 4s^1    [Ar]4s1 3d5                   a configuration of electrons, with its shells in any order
    sp^3    sp3                                     a hybrid
    +2    2+    +II                                 a charge
    2H_2 + O_2 \to 2H_2O    O2 + 2H2 -> 2H2O        a reaction, with the substances of a side in any order

Other texts are read as mathematics. Not covered: structural formulas, and reactions multiplied by a number.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple, TypeAlias

from truegold.verifiers.math.vocabulary import ELEMENT_NAMES, ELEMENTS, FORMULAS

MAX_FORMULA_CHARS = 80
"""Maximum length of a text that is read as a substance, in characters."""
MAX_REACTION_CHARS = 400
"""Maximum length of a text that is read as a reaction, in characters."""
REMEMBERED_KEYS = 2_048

Key: TypeAlias = tuple[object, ...]
"""A key that is the same for all spellings of a substance. Its last part is the state, or None."""


class Reaction(NamedTuple):
    """A chemical equation."""

    arrow: str
    sides: tuple[tuple[frozenset[Key], ...], ...]
    """The substances before and after the arrow. Each substance is the set of its possible readings."""


MAY_BE_CHEMISTRY = re.compile(r"[A-Z]|\d[spdf]|sp|(?<![a-z\\])[a-z]{3}|[+-]\d?\}?$|^e")
"""A quick test: every text of chemistry matches."""
_COMMAND = re.compile(r"\\(?:text|mathrm|mathbf|textrm|rm)(?![A-Za-z])\s*")
_BLANK = re.compile(r"[\s~]|\\[,;:! ]")
_STATE = re.compile(r"_?\{?\((g|l|s|aq)\)\}?$|\\(?:up|down)arrow\s*$")
"""The state of a substance: gas, liquid, solid, aqueous, or an arrow for a gas or a precipitate."""
_BODY = r"(?:[A-Z][a-z]?(?:_?\d+)?|[()\[\]](?:_?\d+)?)+"
"""The atoms of a formula and their counts."""
_FORMULA = re.compile(rf"(\d+(?:/\d+|\.\d+)?)?({_BODY}(?:(?:\\cdot|[*.])\d*{_BODY})?|e)(?:(\^?)(\d?)([+-])|\^\+(\d))?")
"""A count, a formula and a charge: `2H2O`, `SO4^2-`, `CuSO4*5H2O`. `e` is an electron."""
_SYMBOL = re.compile(r"[A-Z][a-z]?")
_LAST_DIGIT = re.compile(r"(?<![_\d])\d+$")
"""Digits at the end, which may belong to the charge."""
_FRACTION = re.compile(r"^\\[dt]?frac\{(\d)\}\{(\d)\}")
r"""The count before a substance: the \frac{1}{2} of \frac{1}{2}O_2."""
_NUCLIDE = re.compile(r"(?:\^(\d{1,3})(?:_(\d{1,3}))?|_(\d{1,3})\^(\d{1,3}))([A-Z][a-z]?)")
"""A nuclide without its braces: `^14_6C`."""
_NAMED_NUCLIDE = re.compile(r"([A-Za-z]{1,13})-(\d{1,3})")
"""Matches `C-14`, `carbon-14`."""
_SHELL = r"\d(?:s\^?[12]|p\^?[1-6]|d\^?(?:10|[1-9])|f\^?(?:1[0-4]|[1-9]))"
"""A shell and its electrons: 3d^5."""
_SHELLS = re.compile(rf"(?:\[([A-Z][a-z])\])?((?:{_SHELL})+)")
"""Matches `[Ar]3d^54s^1`."""
_HYBRIDS = frozenset({"sp", "sp2", "sp3", "sp3d", "sp3d2", "dsp2", "dsp3", "d2sp3"})
_CHARGE = re.compile(r"\^?(?:(\d)([+-])|([+-])(\d|I{2,3}|IV|VI{1,2}))")
"""Matches `2+`, `+2`, `+II`."""
_ROMAN = {numeral: str(value) for value, numeral in enumerate(("I", "II", "III", "IV", "V", "VI", "VII"), 1)}
_ARROW = re.compile(
    r"\\(?:(?:to|(?:long)?rightarrow|rightleftharpoons)(?![A-Za-z])|xrightarrow(?:\[[^\]]*\])?\{[^{}]*\})|<?--?>|<=>"
    r"|(?<![<>=!])=(?![>=])"
)
"""The arrow or equals sign of a reaction."""
_PLUS = re.compile(r"\s\+\s|(?<![\^\s{])\s?\+(?=[\dA-Z(\\])")
"""The plus between two substances. The plus of `Ca^+` does not match."""


def same_chemistry(gold: str, answer: str) -> bool | None:
    """Tell whether two normalised texts are the same chemistry.

    Return None if a side is not chemistry, or if the sides differ but may be equal as mathematics.
    """
    gold_reaction, answer_reaction = reaction(gold), reaction(answer)
    if gold_reaction is not None and answer_reaction is not None:
        pairs = zip(gold_reaction.sides, answer_reaction.sides, strict=True)
        is_same = all(_same_substances(list(side), list(other)) for side, other in pairs)
        # `I_1 = I_2 + I_3` may be an equation, whose sides may be swapped.
        return is_same or (None if "=" in (gold_reaction.arrow, answer_reaction.arrow) else False)
    if (golds := substances(gold)) and (answers := substances(answer)):
        return _same_substance(golds, answers) or None
    return None


def _same_substances(golds: list[frozenset[Key]], answers: list[frozenset[Key]]) -> bool:
    """Tell whether two sides of a reaction have the same substances, in any order."""
    if len(golds) != len(answers):
        return False
    for gold in golds:
        if (match := next((answer for answer in answers if _same_substance(gold, answer)), None)) is None:
            return False
        answers.remove(match)
    return True


def _same_substance(golds: frozenset[Key], answers: frozenset[Key]) -> bool:
    """Tell whether two substances are the same. A state that only one of them has is ignored."""
    return any(
        gold[:-1] == answer[:-1] and (gold[-1] == answer[-1] or None in (gold[-1], answer[-1]))
        for gold in golds
        for answer in answers
    )


@lru_cache(maxsize=REMEMBERED_KEYS)
def reaction(text: str) -> Reaction | None:
    """Return the reaction of a normalised text, or None if a side is not a sum of substances."""
    if "+" not in text or len(text) > MAX_REACTION_CHARS or len(arrows := _ARROW.findall(text)) != 1:
        return None
    sides = tuple(tuple(map(substances, _PLUS.split(side))) for side in _ARROW.split(text))
    return Reaction(arrows[0], sides) if all(all(side) for side in sides) else None


@lru_cache(maxsize=REMEMBERED_KEYS)
def substances(text: str) -> frozenset[Key]:
    """Return the keys of all substances that a normalised text may be, or an empty set for other texts."""
    if len(text) > MAX_FORMULA_CHARS:
        return frozenset()
    return frozenset(_readings(text))


def _readings(text: str) -> Iterator[Key]:
    """Yield the key of each substance that a text may be."""
    text = _COMMAND.sub("", _FRACTION.sub(r"\1/\2", text.strip()))
    state = _STATE.search(text)
    text = _BLANK.sub("", text[: state.start()] if state else text).replace("{", "").replace("}", "")
    stated = state[1] if state else None
    if (match := _FORMULA.fullmatch(text)) is not None:
        count, body, mark, digit, sign, behind = match.groups()
        body, plain = body.replace("_", "").replace("\\cdot", "*"), _LAST_DIGIT.search(body)
        is_closed = body.count("(") == body.count(")") and body.count("[") == body.count("]")
        if body == "e" or (is_closed and all(map(_is_symbol, _SYMBOL.findall(body)))):
            charge_of_ion = f"{digit or 1}{sign}" if sign else f"{behind}+"
            yield ("formula", count or "1", body, charge_of_ion if sign or behind else "", stated)
            if sign and not mark and plain is not None:
                # In Ca2+ and SO42- the last digit may belong to the charge.
                yield ("formula", count or "1", body[:-1], f"{body[-1]}{sign}", stated)
    if (charge := _CHARGE.fullmatch(text)) is not None:
        digit, sign = charge[1] or charge[4], charge[2] or charge[3]
        yield ("charge", f"{_ROMAN.get(digit, digit)}{sign}", stated)
    if (shells := _SHELLS.fullmatch(text)) is not None and (shells[1] or len(re.findall(_SHELL, text)) > 1):
        parts = re.findall(_SHELL, shells[2].replace("^", ""))
        yield ("shells", shells[1], frozenset(re.findall(_SHELL, "".join(parts))), stated)
    if (hybrid := text.replace("^", "")) in _HYBRIDS:
        yield ("hybrid", hybrid, stated)
    if (nuclide := _nuclide(text)) is not None:
        yield (*nuclide, stated)
    for formula in (ELEMENT_NAMES.get(text.lower()), FORMULAS.get(text.lower())):
        if formula is not None:
            yield ("formula", "1", formula, "", stated)


def _is_symbol(symbol: str) -> bool:
    """Tell whether letters are an element, or a single letter, as in the scheme A + B -> C."""
    return symbol in ELEMENTS or len(symbol) == 1


def _nuclide(text: str) -> Key | None:
    if (named := _NAMED_NUCLIDE.fullmatch(text)) is not None:
        element = named[1] if named[1] in ELEMENTS else ELEMENT_NAMES.get(named[1].lower())
        return None if element is None else ("nuclide", element, named[2])
    if (match := _NUCLIDE.fullmatch(text)) is None:
        return None
    protons = match[2] or match[3]
    return ("nuclide", match[5], match[1] or match[4]) if has_protons(match[5], protons) else None


def has_protons(symbol: str, protons: str | None) -> bool:
    """Tell whether a symbol is an element with this number of protons. None stands for a number that is not written."""
    return symbol in ELEMENTS and protons in (None, str(ELEMENTS[symbol]))
