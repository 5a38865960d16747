"""Reads the replies of a service that runs programs: by their HTTP status first, then by the fields of their JSON.

    200 {"status": "Success", ...}                  ServiceReply({"status": "Success", ...}, address)
    429, Retry-After: 7                             Trouble: the request is repeated after 7 s
    400 {"message": "language is required"}         RequestRefused: repeating it would change nothing
    200 <html>...</html>                            Trouble: no JSON, so this is another service

    reply = ServiceReply({"run_result": {"return_code": 0}}, "http://localhost:8080")
    reply.part("run_result").field("return_code", int)      0
    reply.part("run_result").field("status", str)           SandboxError

The error says `http://localhost:8080: no text run_result.status in the reply`: what is missing or of another type is
the service's fault. Every message is one line and names the address.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, NoReturn, TypeVar

from truegold.verifiers.sandbox.execution import SandboxError

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


class RequestRefused(SandboxError):
    """The service did not accept the request: repeating it would change nothing."""


class Trouble(Exception):
    """One attempt failed.

    repeatable: whether another attempt may help. service_fails: whether that is a failure of the service as such, which
    the breaker counts; otherwise it may be due to this one program.
    """

    def __init__(
        self, message: str, *, repeatable: bool, service_fails: bool = True, retry_after_s: float = 0.0
    ) -> None:
        super().__init__(message)
        self.repeatable = repeatable
        self.service_fails = service_fails
        self.retry_after_s = retry_after_s


@dataclass(frozen=True, slots=True)
class ServiceReply:
    """An object of a reply, whose fields are read by type. Every reader raises SandboxError where the type is wrong."""

    value: object
    """The decoded JSON, which ought to be an object."""
    address: str
    """The address that replied, as errors name it."""
    path: str = ""
    """Where in the reply the object stands, with a dot at its end: `run_result.`."""

    def part(self, key: str) -> ServiceReply:
        """Return the object under a key; it has to be there."""
        return ServiceReply(self.field(key, dict), self.address, f"{self.path}{key}.")

    def field(self, key: str, kind: type[Field]) -> Field:
        """Return the value under a key: a dict, a text, an int or a float; it has to be there."""
        value = self.field_or_none(key, kind)
        return self._fail(key, kind) if value is None else value

    def field_or_none(self, key: str, kind: type[Field]) -> Field | None:
        """Return the value under a key; None where there is none."""
        if not isinstance(self.value, dict):
            raise SandboxError(f"{self.address}: the reply is a JSON {type(self.value).__name__}, not an object")
        value = self.value.get(key)
        if kind is float and isinstance(value, int) and not isinstance(value, bool):
            # Python's integers know no bounds, and a float does.
            value = float(value) if abs(value) < MAX_NUMBER else math.inf
        fits = isinstance(value, kind) and not isinstance(value, bool)
        if value is not None and (not fits or (kind is float and not abs(value) < MAX_NUMBER)):
            self._fail(key, kind)
        return value

    def _fail(self, key: str, kind: type) -> NoReturn:
        raise SandboxError(f"{self.address}: no {_KIND_NAMES[kind]} {self.path}{key} in the reply")


def read_reply(response: httpx.Response, body: bytes, address: str) -> ServiceReply:
    """Return what a reply holds, by its status. Raises Trouble or RequestRefused where it holds no JSON value."""
    status = response.status_code
    if response.is_redirect:
        target = response.headers.get("location", "")
        scheme, _, rest = target.rpartition("://")
        shown = f"{scheme}://{rest.rpartition('@')[2]}" if scheme else target
        raise Trouble(f"{address}: redirects to {one_line(shown)}; give the final address", repeatable=False)
    if status == TOO_MANY_REQUESTS or status >= 500:
        wait_s = _retry_after_s(response.headers.get("retry-after", ""))
        raise Trouble(f"{address}: {_refusal(response, body)}", repeatable=True, retry_after_s=wait_s)
    if status >= 400:
        raise RequestRefused(f"{address}: {_refusal(response, body)}")
    try:
        return ServiceReply(json.loads(body), address)
    except (ValueError, RecursionError):
        shown = one_line(body[:1000].decode("utf-8", "replace"))
        raise Trouble(f"{address}: the reply is no JSON, it begins {shown!r}", repeatable=False) from None


def one_line(text: str) -> str:
    """Return the beginning of a text from outside, on one line."""
    return " ".join(text[: SHOWN_CHARS * 4].split())[:SHOWN_CHARS]


def _refusal(response: httpx.Response, body: bytes) -> str:
    """Return a refusal in one line: the status and, where the body gives one, the message."""
    status = f"status {response.status_code} {response.reason_phrase}".strip()
    try:
        fields = json.loads(body)
    except (ValueError, RecursionError):
        fields = None
    message = (
        (fields.get("message") or fields.get("detail") or fields.get("error")) if isinstance(fields, dict) else None
    )
    if not message:
        return status
    return f"{status}: {one_line(message if isinstance(message, str) else json.dumps(message))}"


def _retry_after_s(header: str) -> float:
    """Return the pause that a Retry-After header asks for, as seconds or a date; 0 where it cannot be read."""
    if header.strip().isdecimal():
        return float(header)
    try:
        return max(0.0, parsedate_to_datetime(header).timestamp() - time.time())
    except (ValueError, OverflowError):
        return 0.0
