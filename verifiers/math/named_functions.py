r"""Named functions of numbers: Bessel functions, polylogarithms, exponential integrals and the like.

    \mathrm{Li}_2(1/2)  ->  \namedpolylog(2,1/2)      a name of several letters is a function before a number
    J_0(1)              ->  \namedbesselj(0,1)        one letter with a subscript, if gold uses it as a function
    I_0(1-e^{-2})       ->  not changed: a product, such as an intensity times a bracket

`with_named_functions` rewrites the text for the reader, and mpmath computes the values. A letter is a function if gold
applies it to a whole number, or applies it twice, and never writes it without brackets (`letters_used`).

Not covered: functions of variables, letters without a subscript, and elliptic integrals, whose argument may be the
modulus or the parameter.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from gmpy2 import mpfr

if TYPE_CHECKING:
    from mpmath import mpf

MAX_ARGUMENT, MAX_ORDER = 20, 12
"""The largest argument and the largest order that are computed. Stops series of thousands of terms."""
MAX_APPLICATIONS = 12
"""Maximum number of function applications that are rewritten in a text."""
MAX_TERMS = 400
"""Maximum number of terms in a series. The series of the largest argument has about 150 terms."""
_EXTRA_BITS = 40
"""Bits beyond the requested precision."""

_NAMES = {
    "Li": "polylog", "Ei": "ei", "li": "li", "Si": "si", "Ci": "ci", "Shi": "shi", "shi": "shi", "Chi": "chi",
    "chi": "chi", "Ai": "airyai", "Bi": "airybi", "erfi": "erfi",
}  # fmt: skip
"""Maps a name of several letters to mpmath's name of the function."""
_LETTERS = {
    "J": "besselj", "Y": "bessely", "I": "besseli", "K": "besselk", "E": "expint", "W": "lambertw", "\\psi": "psi",
}  # fmt: skip
"""Maps a letter with a subscript to mpmath's name of the function."""
_ORDERED = frozenset({"polylog", "besselj", "bessely", "besseli", "besselk", "expint", "lambertw", "psi"})
"""Functions that have an order and an argument."""
PREFIX = "named"
"""The start of a function's name in rewritten texts and in trees."""
NAMED = frozenset(f"{PREFIX}{name}" for name in (*_NAMES.values(), *_LETTERS.values()))
"""The names of the functions of this module in trees."""
_WRAP = r"\\(?:operatorname\*?|mathrm|text|textrm|mathsf|mathit|mathbf)\s{0,2}\{\s{0,2}"
_ORDER = r"(?:_\s?\{?(?P<order>-?\d{1,2}(?:/\d)?)\}?)?"
_OPENING = r"\s{0,2}(?:\\left\s?)?\("
_WORD = re.compile(
    rf"(?:{_WRAP}(?P<wrapped>{'|'.join(_NAMES)})\s{{0,2}}\}}|(?<![A-Za-z\\])(?P<bare>{'|'.join(_NAMES)}))"
    rf"\s{{0,2}}{_ORDER}{_OPENING}"
)
"""The start of \\mathrm{Li}_2(, with the order as a group."""
_LETTER = re.compile(
    rf"(?:{_WRAP}(?P<wrapped>[JYIKEW])\s{{0,2}}\}}|(?<![A-Za-z\\])(?P<bare>[JYIKEW])|(?P<greek>\\psi))\s{{0,2}}"
    rf"(?:_\s?\{{?(?P<order>-?\d{{1,2}}(?:/\d)?)\}}?|\^\s?\{{\((?P<derivative>\d)\)\}})(?P<opening>{_OPENING})?"
)
"""The start of J_0( or \\psi^{(1)}(, with the order as a group."""
_NUMERIC_COMMAND = re.compile(
    r"\\(?:pi|[dt]?frac|sqrt|ln|cdot|times|left|right)(?![A-Za-z])|(?<![A-Za-z])e(?![A-Za-z])"
)
"""Commands, and the letter e, that may be part of a number."""
_WHOLE = re.compile(r"\s*-?\d+(?:\.\d+)?\s*(?:\\right\s?)?")
"""A plain number in brackets, with the `\\right` before the closing bracket."""


def letters_used(gold: str) -> frozenset[str]:
    """Return the letters with subscripts that a gold uses as functions."""
    if "=" in gold or not ("_" in gold or "\\psi" in gold) or "(" not in gold:
        return frozenset()
    applied: list[tuple[str, str]] = []
    has_whole = False
    for match in _LETTER.finditer(gold):
        inside = _argument(gold, match.end()) if match["opening"] else None
        if inside is None or gold[match.end() + len(inside) + 1 :].lstrip().startswith("^"):
            return frozenset()
        applied.append((_letter_of(match), match["order"] or match["derivative"]))
        has_whole |= _WHOLE.fullmatch(inside) is not None or match["derivative"] is not None
    is_used = 0 < len(applied) <= MAX_APPLICATIONS and (has_whole or len(set(applied)) > 1)
    return frozenset(letter for letter, _ in applied) if is_used else frozenset()


def with_named_functions(text: str, letters: frozenset[str]) -> str:
    r"""Return the text with `\namedbesselj(0,1)` for `J_0(1)`, and so on."""
    for pattern in (_WORD, _LETTER) if letters else (_WORD,):
        for match in reversed(list(pattern.finditer(text))[:MAX_APPLICATIONS]):
            groups = match.groupdict()
            name = groups["wrapped"] or groups["bare"] or groups.get("greek") or ""
            function = _NAMES[name] if pattern is _WORD else _LETTERS[name]
            order = groups["order"] or groups.get("derivative")
            is_function = (order is not None) == (function in _ORDERED) and (pattern is _WORD or name in letters)
            inside = _argument(text, match.end()) if is_function and text[match.end() - 1] == "(" else None
            if inside is not None:
                start = f"\\{PREFIX}{function}({order}," if order is not None else f"\\{PREFIX}{function}("
                end = match.end() + len(inside)
                inside = inside.rstrip().removesuffix("\\right")
                text = f"{text[: match.start()]}{start}{inside}{text[end:]}"
    return text


def may_name_function(text: str) -> bool:
    """Tell whether a text applies a name of several letters, such as `Li`."""
    return "(" in text and ("i" in text) and _WORD.search(text) is not None


def _letter_of(match: re.Match[str]) -> str:
    return match["wrapped"] or match["bare"] or match["greek"]


def _argument(text: str, start: int) -> str | None:
    """Return the contents of the brackets that open before `start` if they are a number, or else None."""
    depth = 1
    for index in range(start, min(len(text), start + 200)):
        depth += (text[index] == "(") - (text[index] == ")")
        if depth == 0:
            inside = text[start:index]
            is_numeric = any(map(str.isdigit, inside)) or "pi" in inside or "e" in inside
            has_letters = any(map(str.isalpha, _NUMERIC_COMMAND.sub("", inside)))
            return inside if is_numeric and not has_letters and "," not in inside else None
    return None


@lru_cache(maxsize=256)
def value_of(name: str, args: tuple[mpfr, ...], bits: int) -> tuple[int, int] | None:
    """Return a value as a mantissa and a power of two, or None if it is not real or too expensive to compute."""
    *orders, last = args
    order = int(orders[0]) if orders else 0
    if (orders and orders[0] != order) or len(args) != 1 + (name.removeprefix(PREFIX) in _ORDERED):
        return None
    if name in ("namedbesseli", "namedbesselk"):
        order = abs(order)
    if abs(order) > MAX_ORDER or abs(last) > MAX_ARGUMENT:
        return None
    import mpmath

    function = _bessel_k if name == "namedbesselk" else getattr(mpmath, name.removeprefix(PREFIX))
    with mpmath.workprec(bits + _EXTRA_BITS):
        mantissa, exponent = last.as_mantissa_exp()
        argument = mpmath.ldexp(mpmath.mpf(int(mantissa)), int(exponent))
        ordered = (argument, order) if name == "namedlambertw" else (order, argument)
        try:
            value = function(*(ordered if orders else ordered[1:]))
        except (ArithmeticError, ValueError, NotImplementedError, mpmath.libmp.NoConvergence):
            return None
        if not isinstance(value, mpmath.mpf) or not mpmath.isfinite(value):
            return None
        return int(value.man) * (1 if value > 0 else -1), int(value.exp)


def _bessel_k(order: int, x: mpf) -> mpf:
    """Return K_n(x) by the series of K_0, the Wronskian and the recurrence. mpmath takes a hundred times as long."""
    import mpmath

    if x <= 0:
        raise ValueError("K of no positive number")
    with mpmath.workprec(mpmath.mp.prec + 4 * MAX_ARGUMENT):
        quarter, term, harmonic, total = x * x / 4, mpmath.mpf(1), mpmath.mpf(0), mpmath.mpf(0)
        for k in range(1, MAX_TERMS):
            term *= quarter / (k * k)
            harmonic += mpmath.mpf(1) / k
            total += term * harmonic
            if k > x and mpmath.mag(term) < -mpmath.mp.prec:
                break
        first, second = mpmath.besseli(0, x), mpmath.besseli(1, x)
        before = total - (mpmath.log(x / 2) + mpmath.euler) * first
        value = (1 / x - second * before) / first
        if order == 0:
            return before
        for n in range(1, abs(order)):
            before, value = value, before + 2 * n / x * value
        return value
