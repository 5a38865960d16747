"""What counts as the same answer where mathematics alone does not say: one option for each such question.

They are set for a row through `verifier_args`, as in {"units": "strict"}, or as keywords of `equivalent`.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any, Literal

from truegold.verifiers.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Policy:
    """The defaults are what most data sets of mathematics mean."""

    rounding: bool = True
    """Gold is a decimal of two or more places: an exact answer, or a decimal with at least two places more, matches
    when it rounds to gold (or is cut to it, if exact). An integer, a fraction or a radical as gold wants exactly its
    value; a decimal with one place does so too, unless it has three digits or more."""
    decimals: int | None = None
    """Numbers need to agree to so many decimal places only."""
    tolerance: float | None = None
    """Numbers may differ by this relative error."""
    answer_digits: int | None = None
    """Gold is exact: a decimal answer with at least so many significant digits, all right, is accepted too."""
    units: Literal["convert", "strict", "ignore"] = "convert"
    """convert: a unit that one side leaves out is understood, a wrong one is wrong, a convertible one is converted
    (5 cm is 50 mm). strict: where gold has a unit, the answer needs one. ignore: numbers alone count."""
    percent: Literal["value", "either"] = "value"
    """value: 50% is 0.5, so a bare gold of 50 is not 50%; gold with a percent sign may be answered without it.
    either: N% also matches N."""
    degrees: Literal["convert", "strict"] = "convert"
    """convert: 30 degrees is pi/6. strict: degrees match degrees only."""
    order: Literal["auto", "ordered", "unordered"] = "auto"
    """auto: bare lists and sets are unordered, tuples, vectors and matrices are ordered."""
    constant: Literal["required", "optional"] = "required"
    """Whether the answer must have the + C that gold has."""
    parameters: Literal["rename", "strict"] = "rename"
    """rename: k\\pi with integer k is n\\pi with integer n."""
    base: Literal["optional", "required", "value"] = "optional"
    """Gold is 2516_8. optional: so is 2516. required: the subscript must be there. value: so is 1358."""
    log: Literal["either", "natural", "ten"] = "either"
    """The base of a `log` without one. either: the other side decides, so that log 2 is ln 2 and log_{10} 2."""
    mixed: Literal["sum", "product"] = "sum"
    """Whether 2\\frac13 is 7/3 or 2/3. With a blank and a slash, 2 1/3 is 7/3 in either case."""
    options: tuple[str, ...] = ()
    """The texts of the choices, where gold is the letter of one: the text answers as well as the letter."""

    def changed(self) -> dict[str, Any]:
        """The options that differ from their defaults."""
        return {field.name: value for field in fields(self) if (value := getattr(self, field.name)) != field.default}


DEFAULT = Policy()


def policy_of(arguments: Mapping[str, Any]) -> Policy:
    """The policy that `arguments` describe. Raises ConfigError, which names every mistake."""
    if not arguments:
        return DEFAULT
    values = {key: tuple(value) if isinstance(value, list) else value for key, value in arguments.items()}
    try:
        return _checked(tuple(sorted(values.items())))
    except TypeError as error:  # a value that cannot be hashed is none of those that are allowed
        raise ConfigError(f"math verifier: {error}.") from error


@lru_cache(maxsize=256)
def _checked(items: tuple[tuple[str, Any], ...]) -> Policy:
    known = {field.name: field.type for field in fields(Policy)}
    mistakes = []
    for key, value in items:
        if key not in known:
            close = difflib.get_close_matches(key, known, n=1)
            mistakes.append(f"there is no option {key!r}" + (f" (did you mean {close[0]!r}?)" if close else ""))
        elif (allowed := _ALLOWED[key])[0] is not None and not allowed[0](value):
            mistakes.append(f"{key} is {value!r}, expected {allowed[1]}")
    if mistakes:
        raise ConfigError(f"math verifier: {'; '.join(mistakes)}.", f"Its options are {', '.join(known)}.")
    return Policy(**dict(items))


def _whole(value: object) -> bool:
    return value is None or (isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= 100)


def _one_of(*choices: str) -> tuple[Any, str]:
    return (lambda value: value in choices), f"one of {', '.join(choices)}"


_ALLOWED: dict[str, tuple[Any, str]] = {
    "rounding": (lambda value: isinstance(value, bool), "true or false"),
    "decimals": (_whole, "a whole number of at most 100"),
    "tolerance": (
        lambda value: (
            value is None or (isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < 1)
        ),
        "a number from 0 to below 1",
    ),
    "answer_digits": (_whole, "a whole number of at most 100"),
    "units": _one_of("convert", "strict", "ignore"),
    "percent": _one_of("value", "either"),
    "degrees": _one_of("convert", "strict"),
    "order": _one_of("auto", "ordered", "unordered"),
    "constant": _one_of("required", "optional"),
    "parameters": _one_of("rename", "strict"),
    "base": _one_of("optional", "required", "value"),
    "log": _one_of("either", "natural", "ten"),
    "mixed": _one_of("sum", "product"),
    "options": (
        lambda value: isinstance(value, tuple) and len(value) <= 26 and all(isinstance(text, str) for text in value),
        "a list of at most 26 texts",
    ),
}
