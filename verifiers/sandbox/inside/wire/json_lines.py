"""Reads and writes encoded values as lines of JSON: fast to write, strict to read.

    are_plain([1, "x", [2.5, None], {"k": True}])       True: JSON represents these values exactly
    are_plain([(1, 2)]), are_plain([math.nan])           False, False: they need a tag

A job writes lines to two descriptors: its results to a file, and its messages to a partner. A message is a list whose
first item names the kind of message. Partners take turns: after a message, the sender waits for the answer, which may
be a request in return. Anything else that arrives raises an exception.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Collection
from itertools import accumulate
from typing import NoReturn

from .encoding import MAX_DEPTH, all_fit
from .foreign_values import Json, Undecodable

MAX_LINE = 64 * 2**20
"""Maximum number of bytes of one line. Stops a line that fills the memory of its reader."""

MAX_BRACKETS = 900
"""Maximum depth of nested brackets: more than twice the depth that encoders write. Stops `[[[[...`."""

SAFE_RECURSION = 3000
"""The highest recursion limit with which Python's reader reports deep nesting. With a higher limit it could crash."""

MAX_DIGITS = 4300
"""Maximum number of digits of an integer, since reading takes quadratic time. It is Python's own limit, which a program
may have lifted in its process."""

_NUMBERS = {int, float}
_FLAT = {*_NUMBERS, bool, type(None), str}
"""Types of JSON values without parts."""
_JSON = {*_FLAT, list, dict}
_DATA = {*_JSON, tuple}
"""Types of JSON values, and tuples."""
_TOKENS = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[\[{]|[\]}]', re.DOTALL)
"""A text or a bracket."""


def _no_form(value: object) -> NoReturn:
    raise TypeError(f"{type(value).__name__} is not JSON: encode it first")


def _few_digits(digits: str) -> int:
    if len(digits) > MAX_DIGITS:
        raise Undecodable(f"an integer of {len(digits)} digits")
    return int(digits)


def _refuse(constant: str) -> NoReturn:
    raise Undecodable(f"{constant} is not JSON")


# These are the core of Python's `dumps` and `loads`, which make a dozen more function calls for every line.
_JSON_TEXTS = json.encoder.c_make_encoder(  # type: ignore[attr-defined]
    None, _no_form, json.encoder.encode_basestring_ascii, None, ":", ",", False, False, False
)
_SCAN = json.JSONDecoder(parse_constant=_refuse).scan_once  # type: ignore[attr-defined]
_SCAN_DIGITS = json.JSONDecoder(parse_constant=_refuse, parse_int=_few_digits).scan_once  # type: ignore[attr-defined]


def to_json(data: Json) -> bytes:
    """Return data as one line of ASCII, without the line end."""
    return "".join(_JSON_TEXTS(data, 0)).encode("ascii")


def from_json(line: bytes, limit: int = MAX_LINE) -> Json:
    """Return the data of one line.

    Raises `Undecodable` for more than `limit` bytes, for deep nesting, and for text that is not strict JSON in ASCII.
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
    tokens = (token.group()[0] for token in _TOKENS.finditer(line))
    depths = accumulate((first in b"[{") - (first in b"]}") for first in tokens)
    return any(depth > MAX_BRACKETS for depth in depths)


def are_plain(values: Collection[object], tuples: bool = False, depth: int = 0) -> bool:
    """Return whether JSON represents each value exactly, with all values inside it. tuples: whether tuples count."""
    kinds = set(map(type, values))
    if depth > MAX_DEPTH or not kinds <= (_DATA if tuples else _JSON):
        return False
    if not kinds.isdisjoint(_NUMBERS):
        numbers = values if kinds <= _NUMBERS else [value for value in values if type(value) in _NUMBERS]
        if not all_fit(numbers, float in kinds):
            return False
    return kinds <= _FLAT or all(_is_plain(value, tuples, depth + 1) for value in values if type(value) not in _FLAT)


def _is_plain(value: Json, tuples: bool, depth: int) -> bool:
    if type(value) is not dict:
        return are_plain(value, tuples, depth)
    return "$" not in value and set(map(type, value)) <= {str} and are_plain(value.values(), tuples, depth)


RESULT, PARTNER = 3, 4
"""Descriptors of a job in addition to the standard three: one for its results and one for its partner."""

MAX_RECEIVED = 512 * 2**20
"""Maximum number of bytes that are received over a whole run. Stops a partner that sends megabytes for ever."""

_CHUNK = 2**16


class PartnerGone(Exception):
    """The partner's process has ended."""


class PartnerLine:
    """The connection to the partner's process."""

    def __init__(self) -> None:
        self._received = 0

    def send(self, message: Json) -> None:
        """Send one message. Raises `PartnerGone`."""
        try:
            write_all(PARTNER, to_json(message) + b"\n")
        except OSError as error:
            raise PartnerGone(str(error)) from error

    def receive(self) -> list[Json]:
        """Return the next message. Raises `PartnerGone`, and `Undecodable` for a line that is not a message."""
        message = from_json(self._receive_line())
        if type(message) is not list or not message or type(message[0]) is not str:
            raise Undecodable("not a message")
        return message

    def _receive_line(self) -> bytes:
        parts: list[bytes] = []
        size = 0
        while True:
            try:
                part = os.read(PARTNER, _CHUNK)
            except OSError as error:
                raise PartnerGone(str(error)) from error
            if not part:
                raise PartnerGone("the line is closed")
            size += len(part)
            self._received += len(part)
            if size > MAX_LINE or self._received > MAX_RECEIVED:
                raise Undecodable("it sends too much")
            parts.append(part)
            end = part.find(b"\n")
            if end == len(part) - 1:
                return b"".join(parts)
            if end >= 0:
                raise Undecodable("two messages at once")


def write_result(message: Json) -> None:
    """Write data as one line to the results of this job."""
    write_result_line(to_json(message))


def write_result_line(line: bytes) -> None:
    """Write one line, which is JSON already, to the results of this job."""
    write_all(RESULT, line + b"\n")


def write_all(descriptor: int, data: bytes | memoryview) -> None:
    """Write all data to a descriptor."""
    while data:
        data = data[os.write(descriptor, data) :]
