"""Reads the replies of a service that runs programs: by their HTTP status first, then by the fields of their JSON.

    200 {"status": "Success", ...}                  that object
    429, Retry-After: 7                             Trouble: the request is repeated after 7 s
    400 {"message": "language is required"}         Trouble: repeating it would change nothing
    200 <html>...</html>                            Trouble: no JSON, so this is another service

    reply = {"run_result": {"return_code": 0}}
    read_field(reply, "run_result.return_code", int)      0
    read_field(reply, "run_result.status", str)           Trouble: no text run_result.status in the reply

What is missing or of another type is the service's fault. Every message is one line.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    # It is imported where a request is made: it takes a tenth of a second.
    import httpx

Field = TypeVar("Field", dict[str, object], str, int, float)

SHOWN_CHARS = 200
"""What an error shows of a text from outside. Stops a page of HTML, or a program's output, from filling a report."""

MAX_NUMBER = 1e300
"""A larger number counts as infinite, which no field may be."""

TOO_MANY_REQUESTS = 429

_KIND_NAMES: Mapping[type, str] = {dict: "object", str: "text", int: "whole number", float: "number"}


class Trouble(Exception):
    """One attempt failed.

    repeatable: whether another attempt may help. service_fails: whether that is a failure of the service as such, which
    the breaker counts; otherwise it may be due to this one program.
    """

    def __init__(
        self, message: str, *, repeatable: bool = False, service_fails: bool = True, retry_after_s: float = 0.0
    ) -> None:
        super().__init__(message)
        self.repeatable = repeatable
        self.service_fails = service_fails
        self.retry_after_s = retry_after_s


def read_reply(response: httpx.Response, body: bytes) -> dict[str, object]:
    """Return the object that a reply holds, by its status. Raises Trouble where it holds none."""
    status = response.status_code
    if response.is_redirect:
        scheme, mark, rest = response.headers.get("location", "").rpartition("://")
        raise Trouble(f"redirects to {one_line(scheme + mark + rest.rpartition('@')[2])}; give the final address")
    text = body[: SHOWN_CHARS * 4].decode("utf-8", "replace")
    if status >= 400:
        wait = response.headers.get("retry-after", "").strip()
        passes = status == TOO_MANY_REQUESTS or status >= 500
        raise Trouble(
            f"status {status} {response.reason_phrase}: {one_line(text)}",
            repeatable=passes,
            service_fails=passes,
            retry_after_s=float(wait) if wait.isdecimal() else 0.0,
        )
    try:
        reply = json.loads(body)
    except (ValueError, RecursionError):
        raise Trouble(f"the reply is no JSON, it begins {one_line(text)!r}") from None
    if not isinstance(reply, dict):
        raise Trouble(f"the reply is a JSON {type(reply).__name__}, not an object")
    return reply


def read_field(reply: Mapping[str, object], path: str, kind: type[Field], default: Field | None = None) -> Field:
    """Return the value under a path: a dict, a text, an int or a float. Raises Trouble where it is of another type.

    default: what stands for a value that is missing.
    """
    parent, _, key = path.rpartition(".")
    value = (read_field(reply, parent, dict) if parent else reply).get(key)
    value = default if value is None else value
    if kind is float and isinstance(value, int) and abs(value) < MAX_NUMBER:
        value = float(value)
    is_infinite = isinstance(value, float) and not abs(value) < MAX_NUMBER
    if not isinstance(value, kind) or isinstance(value, bool) or is_infinite:
        raise Trouble(f"no {_KIND_NAMES[kind]} {path} in the reply")
    return value


def one_line(text: str) -> str:
    """Return the beginning of a text from outside, on one line."""
    return " ".join(text[: SHOWN_CHARS * 4].split())[:SHOWN_CHARS]
