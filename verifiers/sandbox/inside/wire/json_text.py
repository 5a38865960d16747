"""Encoded values as text: one line of JSON, written fast and read strictly."""

from __future__ import annotations

import json
import re
import sys
from typing import Any, NoReturn

from .encoding import Json
from .stand_ins import Undecodable

MAX_LINE = 64 * 2**20
"""Bytes of one line. Stops a line that fills the memory of its reader."""

MAX_BRACKETS = 900
"""How deep brackets may nest; what an encoder writes nests less than half as deep. Stops `[[[[...`."""

SAFE_RECURSION = 3000
"""Up to this recursion limit Python's reader raises in time; under a higher one deep nesting would crash it."""

MAX_DIGITS = 4300
"""Python's own limit on the digits of an integer, for processes that have lifted it: reading them is quadratic."""

_TOKENS = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[\[{]|[\]}]', re.DOTALL)


def _no_form(value: object) -> NoReturn:
    raise TypeError(f"{type(value).__name__} has no form in JSON: it has to be encoded first")


def _few_digits(digits: str) -> int:
    if len(digits) > MAX_DIGITS:
        raise Undecodable(f"an integer of {len(digits)} digits")
    return int(digits)


def _refuse(constant: str) -> NoReturn:
    raise Undecodable(f"{constant} is not JSON")


# Python's own `dumps` and `loads` do the same with a dozen more function calls for every line.
_JSON_TEXTS = json.encoder.c_make_encoder(  # type: ignore[attr-defined]
    None, _no_form, json.encoder.encode_basestring_ascii, None, ":", ",", False, False, False
)
_SCAN = json.JSONDecoder(parse_constant=_refuse).scan_once  # type: ignore[attr-defined]
_SCAN_DIGITS = json.JSONDecoder(parse_constant=_refuse, parse_int=_few_digits).scan_once  # type: ignore[attr-defined]


def to_json(data: Json) -> bytes:
    """Return one line of ASCII, without its end."""
    return "".join(_JSON_TEXTS(data, 0)).encode("ascii")


def from_json(line: bytes, limit: int = MAX_LINE) -> Any:
    """Return the data of one line.

    Raises `Undecodable` for a line of more than `limit` bytes, for what is nested too deeply, and for what is not
    strict JSON in ASCII: NaN, a second value behind the first.
    """
    if len(line) > limit:
        raise Undecodable(f"{len(line)} bytes, the limit is {limit}")
    if sys.getrecursionlimit() > SAFE_RECURSION and _too_deep(line):
        raise Undecodable("nested too deeply")
    try:
        text = line.decode("ascii")
        data, end = (_SCAN if 0 < sys.get_int_max_str_digits() <= MAX_DIGITS else _SCAN_DIGITS)(text, 0)
    except Undecodable:
        raise
    except (ValueError, RecursionError, StopIteration) as error:
        raise Undecodable(f"not JSON: {str(error)[:200]}") from error
    if end != len(text) and text[end:].strip(" \r\n"):
        raise Undecodable("something follows the value")
    return data


def _too_deep(line: bytes) -> bool:
    if line.count(b"[") + line.count(b"{") <= MAX_BRACKETS:
        return False
    depth = 0
    for token in _TOKENS.finditer(line):
        first = token.group()[0]
        if first in b"[{":
            depth += 1
        elif first in b"]}":
            depth -= 1
        if depth > MAX_BRACKETS:
            return True
    return False
