"""Lines of JSON on a job's descriptors: its results go to a file, its messages to a partner.

A message is a list whose first item says what it is. Partners take turns: whoever has sent a message waits for the
answer, which may be a message that asks something back. Everything else that arrives raises.
"""

from __future__ import annotations

import os
from typing import Any

from .encoding import Json
from .json_text import MAX_LINE, from_json, to_json
from .stand_ins import Undecodable

RESULT, PARTNER = 3, 4
"""Descriptors of a job besides the standard three: where its results go, and the line to its partner."""

MAX_RECEIVED = 512 * 2**20
"""Bytes over a whole run. Stops a partner that answers with megabytes for ever."""

_CHUNK = 2**16


class PartnerGone(Exception):
    """The partner's process has ended."""


class PartnerLine:
    """The line to the partner's process, for messages in both directions."""

    def __init__(self) -> None:
        self._received = 0

    def send(self, message: Json) -> None:
        """Send one message. Raises `PartnerGone`."""
        try:
            write_all(PARTNER, to_json(message) + b"\n")
        except OSError as error:
            raise PartnerGone(str(error)) from error

    def receive(self) -> list[Any]:
        """Return the next message. Raises `PartnerGone`, and `Undecodable` for what is no message."""
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
                raise Undecodable("it sends more than can be")
            parts.append(part)
            end = part.find(b"\n")
            if end == len(part) - 1:
                return b"".join(parts)
            if end >= 0:
                raise Undecodable("two messages at once")


def write_result(message: Any) -> None:
    """Write one line to the results of this job."""
    write_result_line(to_json(message))


def write_result_line(line: bytes) -> None:
    """Write one line to the results of this job, which is JSON already."""
    write_all(RESULT, line + b"\n")


def write_all(descriptor: int, data: bytes | memoryview) -> None:
    """Write to a descriptor until all of it is written."""
    while data:
        data = data[os.write(descriptor, data) :]
