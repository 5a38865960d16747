"""Compares the output of a program with the expected output.

    checker_of("tokens")("1 2\\n3\\n", "1 2 3")                  None: accepted
    checker_of("tokens")("1 2 3", "1 2 4")                      token 3: expected '3', got '4'
    checker_of("tokens")("0.5", "0.50000001")                   None
    checker_of({"type": "tokens", "unordered": "lines"})("a b\\nc", "c\\na b")   None

The types of checkers:

    tokens           Splits both texts at white space and compares the tokens in order. If the expected token has a
                     decimal point or an exponent, numbers are compared, within `abs_tol` (1e-6; less for small numbers:
                     0.00000050 is not 0.0) or `rel_tol` (1e-9, the error of printing a float). Other tokens, such as
                     integers, must be the same text, apart from a plus sign, the sign of zero and `.000`.
    floats           Like `tokens`, but also accepts 3.0000001 where the integer 3 is expected. `tokens` with `abs_tol`
                     or `rel_tol` does this too.
    lines            Compares lines, without blanks at their ends and without blank lines at the end of the output.
    exact            Compares the whole texts, apart from `\\r\\n` and one newline at the end.
    case_insensitive, unordered_lines, unordered_tokens    Short names for `tokens` with one option.

Options of `tokens` and `floats`: `abs_tol`, `rel_tol`, `case_sensitive` (default true), and `unordered`: `lines` (lines
in any order), `tokens` (all tokens in any order) or `tokens_in_line` (the tokens of each line in any order). `lines`
has the option `case_sensitive`. A checker that is a program (`protocols/stdio.py`) is only validated here.

0101 and 101 differ, since 0101 may be a code. Not covered: unordered output with numbers so close to each other that
rounding changes their order. Examples of numbers:

    same_number("0.5", ".5000001", Tolerance(1e-6, 1e-6))     True
    same_number("5", "5.1", Tolerance(1, 1))                  False: an integer was expected
    same_integer("5", "5.000")                                True
    same_integer("-0", "0"), same_integer("+7", "7")          True

Other digits than those of ASCII, `inf`, `nan` and numbers that overflow a float (`1e400`) are compared as texts.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice, zip_longest

from truegold.verifiers.code import outcomes
from truegold.verifiers.code.outcomes import BadSuite
from truegold.verifiers.sandbox.inside.wire.value_types import Json
from truegold.verifiers.sandbox.toolchains import language_name

Checker = Callable[[str, str], str | None]
"""Compares the expected and the actual output. Returns None if they agree, else the first difference in one line."""

MAX_REASON_CHARS, MAX_TOKEN_SHOWN = 200, 60
"""MAX_REASON_CHARS limits the line that describes a difference, and MAX_TOKEN_SHOWN each token in this line."""

MAX_CHECKER_CHARS = 2**20
UNORDERED = ("lines", "tokens", "tokens_in_line")
"""Values of the option `unordered`."""

ABSOLUTE_TOLERANCE, RELATIVE_TOLERANCE = 1e-6, 1e-9
"""Default tolerances. The tests or the problem's text may widen them. The relative tolerance covers only the error of
printing: with 1e-6, 1234568.89 would pass for 1234567.89."""

_SMALL_SHARE, _NOISE, _NOISE_OF_ZERO = 1e-3, 1e-12, 1e-9
"""The absolute tolerance of a small number is `_SMALL_SHARE` times the number, but at least `_NOISE`. That of 0 is
`_NOISE_OF_ZERO`, the rounding error of a sum whose terms cancel."""

_PRESETS: Mapping[str, Mapping[str, Json]] = {
    **{kind: {} for kind in ("tokens", "floats", "lines", "exact", "program")},
    "case_insensitive": {"case_sensitive": False},
    "unordered_lines": {"unordered": "lines"},
    "unordered_tokens": {"unordered": "tokens"},
}
"""The options that each type of checker implies."""
_TOKEN_OPTIONS = frozenset({"abs_tol", "rel_tol", "case_sensitive", "unordered"})
_OPTIONS: Mapping[str, frozenset[str]] = {
    "lines": frozenset({"case_sensitive"}),
    "exact": frozenset(),
    "program": frozenset({"code", "language", "files", "full_points"}),
}


def checker_of(spec: str | Mapping[str, Json]) -> Checker:
    """Return the checker for a type or an object. Raises `BadSuite` for an invalid one, and for a program."""
    kind, options = read_spec(spec, "checker")
    if kind == "program":
        raise BadSuite("checker is a program, but the name or the options of a built-in checker are needed here")
    if kind == "exact":
        return _compare_text
    case_sensitive = options.get("case_sensitive", True)
    if kind == "lines":
        return partial(_compare_lines, case_sensitive)
    absolute, relative = options.get("abs_tol"), options.get("rel_tol", RELATIVE_TOLERANCE)
    stated = options.get("rel_tol", 0.0) if "abs_tol" in options or "rel_tol" in options else None
    tolerance = Tolerance(absolute, relative, of_whole=relative if kind == "floats" else stated)
    return _TokenChecker(tolerance, case_sensitive, options.get("unordered"))


def with_allowed_error(spec: str | Mapping[str, Json], error: float, is_relative: bool) -> str | Mapping[str, Json]:
    """Return a checker of tokens with the error that a problem's text allows.

    A checker with a tolerance of its own, or one that does not compare tokens, is returned unchanged.
    """
    kind, options = read_spec(spec, "checker")
    if kind not in ("tokens", "floats") or "abs_tol" in options or "rel_tol" in options:
        return spec
    return {"type": kind, **options, **tolerance_options(error, is_relative)}


def tolerance_options(error: float, is_relative: bool) -> dict[str, float]:
    """Return the options `abs_tol` and `rel_tol` for an allowed error, if they are wider than the defaults."""
    options = {"abs_tol": error} if error >= ABSOLUTE_TOLERANCE else {}
    if is_relative and error > RELATIVE_TOLERANCE:
        options["rel_tol"] = error
    return options


def read_spec(spec: object, field: str) -> tuple[str, dict[str, Json]]:
    """Return the type and the options of a checker. Raises `BadSuite`. field: the name of `spec` in errors."""
    kind, options = outcomes.checker_options(spec, field, _PRESETS, "tokens")
    known = _OPTIONS.get(kind, _TOKEN_OPTIONS)
    for key, value in options.items():
        if key not in known:
            names = ", ".join(sorted(known)) or "none"
            raise BadSuite(f"{field}.{str(key)[:60]} is not an option of {kind}; there are {names}")
        _check_option(key, value, f"{field}.{key}")
    if kind == "program" and "code" not in options:
        raise BadSuite(f"{field}.code is missing")
    return kind, options


def _check_option(key: str, value: Json, field: str) -> None:
    match key:
        case "case_sensitive":
            outcomes.require_switch(value, field)
        case "unordered":
            outcomes.require(value is None or value in UNORDERED, field, f"one of {', '.join(UNORDERED)}", value)
        case "code":
            fits = isinstance(value, str) and 0 < len(value) <= MAX_CHECKER_CHARS
            outcomes.require(fits, field, f"a program of at most {MAX_CHECKER_CHARS} characters", value)
        case "files":
            outcomes.require_files(value, field)
        case "full_points":
            outcomes.require_tolerance(value, field)
            outcomes.require(value > 0, field, "a number above 0", value)
        case "language":
            fits = isinstance(value, str) and language_name(value) != ""
            outcomes.require(fits, field, "the name of a programming language", value)
        case _:
            outcomes.require_tolerance(value, field)


@dataclass(frozen=True, slots=True)
class _TokenChecker:
    tolerance: Tolerance
    case_sensitive: bool
    unordered: str | None
    """One of UNORDERED, or None if the order of the tokens matters."""

    def __call__(self, expected: str, got: str) -> str | None:
        if expected == got:
            return None
        if not self.case_sensitive:
            expected, got = expected.casefold(), got.casefold()
        if self.unordered is None:
            difference = first_difference(tokens(expected), tokens(got), self._same_token)
            return None if difference is None else _describe_difference("token", *difference)
        # The output may have megabytes. One piece more than expected is enough to see a difference.
        if self.unordered == "tokens":
            expected_tokens = expected.split()
            return self._compare_units("token", expected_tokens, got.split(None, len(expected_tokens)))
        expected_lines = [line.split() for line in nonblank_lines(expected)]
        max_tokens = max(map(len, expected_lines), default=0)
        got_lines = islice(nonblank_lines(got), len(expected_lines) + 1)
        return self._compare_units("line", expected_lines, [line.split(None, max_tokens) for line in got_lines])

    def _compare_units(self, unit: str, expected: list[Json], got: list[Json]) -> str | None:
        """Compare tokens, or lines of tokens, after sorting those that may come in any order."""
        if len(got) != len(expected):
            return f"expected {len(expected)} {unit}s, got {'more' if len(got) > len(expected) else len(got)}"
        in_line = self.unordered == "tokens_in_line"
        for units in (*expected, *got) if in_line else (expected, got):
            of_tokens = in_line or unit == "token"
            units.sort(key=_sort_key if of_tokens else lambda line: [_sort_key(token) for token in line])
        note = "" if in_line else ", when sorted"
        are_equal: Callable[[Json, Json], bool] = self._same_token if unit == "token" else self._same_line
        for index, (expected_unit, got_unit) in enumerate(zip(expected, got, strict=True)):
            if not are_equal(expected_unit, got_unit):
                return _describe_difference(unit, index, expected_unit, got_unit, note)
        return None

    def _same_line(self, expected: list[str], got: list[str]) -> bool:
        return len(expected) == len(got) and all(map(self._same_token, expected, got))

    def _same_token(self, expected: str, got: str) -> bool:
        return expected == got or same_integer(expected, got) or same_number(expected, got, self.tolerance)


def _sort_key(token: str) -> tuple[int, float, str]:
    """Return a key that sorts numbers by value, before texts."""
    return (0, float(token), token) if NUMBER_PATTERN.fullmatch(token) else (1, 0.0, token)


def _compare_lines(case_sensitive: bool, expected: str, got: str) -> str | None:
    if not case_sensitive:
        expected, got = expected.casefold(), got.casefold()
    difference = first_difference(lines(expected), lines(got), lambda expected_line, got_line: False)
    return None if difference is None else _describe_difference("line", *difference)


def _compare_text(expected: str, got: str) -> str | None:
    expected, got = (text.replace("\r\n", "\n").removesuffix("\n") for text in (expected, got))
    if expected == got:
        return None
    start = next(index for index, (first, second) in enumerate(zip_longest(expected, got)) if first != second)
    expected, got = expected[start : start + 20], got[start : start + 20]
    return _describe_difference("character", start, expected or None, got or None)


def _describe_difference(unit: str, index: int, expected: Json, got: Json, note: str = "") -> str:
    return f"{unit} {index + 1}{note}: expected {_shown_unit(expected)}, got {_shown_unit(got)}"[:MAX_REASON_CHARS]


def _shown_unit(unit: str | list[str] | None) -> str:
    if unit is None:
        return "the end of the output"
    text = " ".join(unit[:MAX_TOKEN_SHOWN]) if isinstance(unit, list) else unit
    shown_text = repr(text[:MAX_TOKEN_SHOWN])
    return f"{shown_text}... ({len(text)} characters)" if len(text) > MAX_TOKEN_SHOWN else shown_text


CHUNK_CHARS = 2**20
"""Number of characters that are split at a time, since lists of tokens take many times the memory of the text."""

_SPACE = re.compile(r"\s")
_NO_SPACE = re.compile(r"\S")


def tokens(text: str) -> Iterator[list[str]]:
    """Yield the words of a text in chunks."""
    start = 0
    while start < len(text):
        space = _SPACE.search(text, start + CHUNK_CHARS)
        end = space.start() if space else len(text)
        yield text[start:end].split()
        start = end


def lines(text: str) -> Iterator[list[str]]:
    """Yield the lines of a text in chunks, without blanks at their ends and without blank lines at the end."""
    end, start = len(text.rstrip()), 0
    while start < end:
        newline = text.find("\n", start + CHUNK_CHARS, end)
        stop = end if newline < 0 else newline
        yield [line.rstrip() for line in text[start:stop].split("\n")]
        start = stop + 1


def nonblank_lines(text: str) -> Iterator[str]:
    """Yield the lines that are not blank."""
    start = 0
    # Searching for the next character skips a million blank lines at once.
    while (character := _NO_SPACE.search(text, start)) is not None:
        begin = text.rfind("\n", start, character.start()) + 1 or start
        newline = text.find("\n", character.start())
        start = len(text) if newline < 0 else newline + 1
        yield text[begin:start].removesuffix("\n")


def first_difference(
    expected: Iterator[list[str]], got: Iterator[list[str]], are_equal: Callable[[str, str], bool]
) -> tuple[int, str | None, str | None] | None:
    """Return the index of the first difference and both tokens or lines there, or None if there is no difference.

    A token or line is None if that side has ended.
    """
    pairs = zip_longest(chain.from_iterable(expected), chain.from_iterable(got))
    for index, (expected_unit, got_unit) in enumerate(pairs):
        if expected_unit != got_unit and (None in (expected_unit, got_unit) or not are_equal(expected_unit, got_unit)):
            return index, expected_unit, got_unit
    return None


MAX_NUMBER_CHARS = 1_000
"""Maximum length of a token that is read as a number, in characters."""

_BOUNDED = rf"(?=.{{1,{MAX_NUMBER_CHARS}}}\Z)"
NUMBER_PATTERN = re.compile(_BOUNDED + r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,5})?")
"""A decimal number."""
_WHOLE_DECIMAL = re.compile(_BOUNDED + r"[+-]?[0-9]+\.0+")
"""An integer written with decimals: `5.000`."""


_IS_CODE = re.compile(r"[+-]?0[0-9]")
"""The beginning of an integer with a leading zero, such as the code 0101."""


@dataclass(frozen=True, slots=True)
class Tolerance:
    """The allowed difference of two numbers."""

    absolute: float | None
    """The absolute tolerance, or None for a tolerance that depends on the expected number (`absolute_error`)."""
    relative: float
    of_whole: float | None = None
    """The relative tolerance if an integer is expected and the program wrote a float: 3 and 3.0000001. If it is None,
    such tokens are not compared as numbers."""


def same_number(expected: str, got: str, tolerance: Tolerance) -> bool:
    """Return whether two tokens are numbers that agree within the tolerance."""
    relative = tolerance.relative if _is_float(expected) else tolerance.of_whole
    is_compared = _is_float(expected) or (_is_float(got) and not _IS_CODE.match(expected))
    if (
        relative is None
        or not is_compared
        or not (NUMBER_PATTERN.fullmatch(expected) and NUMBER_PATTERN.fullmatch(got))
    ):
        return False
    expected_number, got_number = float(expected), float(got)
    if not (math.isfinite(expected_number) and math.isfinite(got_number)):
        return False
    absolute = tolerance.absolute
    if absolute is None:
        decimals = expected.partition(".")[2]
        printing = 0.5 * 10.0 ** -len(decimals) if len(decimals) > 1 and decimals.isdecimal() else 0.0
        absolute = max(absolute_error(expected_number), min(printing, ABSOLUTE_TOLERANCE))
    return abs(expected_number - got_number) <= max(absolute, relative * abs(expected_number))


def absolute_error(expected: float) -> float:
    """Return the default absolute tolerance for an expected number: 5.0 -> 1e-6, 0.0001 -> 1e-7, 0.0 -> 1e-9."""
    return min(ABSOLUTE_TOLERANCE, max(_SMALL_SHARE * abs(expected), _NOISE if expected else _NOISE_OF_ZERO))


def same_integer(expected: str, got: str) -> bool:
    """Return whether two integers are equal apart from a plus sign, the sign of zero, or zeros after a point."""
    if _WHOLE_DECIMAL.fullmatch(got) and expected.lstrip("+-").isdecimal():
        got = got.partition(".")[0]
        if expected == got:
            return expected.isascii()
    if expected[:1] not in ("+", "-") and got[:1] not in ("+", "-"):
        return False
    expected, got = _without_plus(expected), _without_plus(got)
    digits = expected.lstrip("-")
    return expected == got and digits.isascii() and digits.isdecimal()


def _without_plus(text: str) -> str:
    text = text.removeprefix("+")
    return "0" if text == "-0" else text


def _is_float(text: str) -> bool:
    return any(mark in text for mark in ".eE")
