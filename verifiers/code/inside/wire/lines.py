"""The line between two partners: one message at a time, each a line of JSON, a list whose first item says what it is.

Strictly in turns: who has sent a message waits for the answer, which may be a message that asks something back.
Whatever does not keep to that raises.
"""

from __future__ import annotations

import os
from typing import Any

from .encoding import Json
from .json_text import MAX_LINE, from_json, to_json
from .stand_ins import Undecodable

RESULT, PEER = 3, 4
"""Descriptors of a job besides the standard three: where its results go, and the line to its partner."""

MAX_RECEIVED = 512 * 2**20
"""Bytes over a whole run. Stops a partner that answers with megabytes for ever."""

_CHUNK = 2**16


class Closed(Exception):
    """The partner is gone."""


class Wire:
    def __init__(self) -> None:
        self._received = 0

    def send(self, message: Json) -> None:
        left = to_json(message) + b"\n"
        try:
            while left:
                left = left[os.write(PEER, left) :]
        except OSError as error:
            raise Closed(str(error)) from error

    def receive(self) -> list[Any]:
        """The next message. Raises `Closed`, and `Undecodable` for what is not one."""
        line = self._line()
        message = from_json(line)
        if type(message) is not list or not message or type(message[0]) is not str:
            raise Undecodable("not a message")
        return message

    def _line(self) -> bytes:
        parts: list[bytes] = []
        size = 0
        while True:
            try:
                part = os.read(PEER, _CHUNK)
            except OSError as error:
                raise Closed(str(error)) from error
            if not part:
                raise Closed("the line is closed")
            size += len(part)
            self._received += len(part)
            if size > MAX_LINE or self._received > MAX_RECEIVED:
                raise Undecodable("it sends more than can be")
            parts.append(part)
            end = part.find(b"\n")
            if end == len(part) - 1:
                return b"".join(parts)
            if end >= 0:
                raise Undecodable("two messages at once")


def write(message: Any) -> None:
    write_line(to_json(message))


def write_line(line: bytes) -> None:
    left = line + b"\n"
    while left:
        left = left[os.write(RESULT, left) :]
