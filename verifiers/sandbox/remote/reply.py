"""What a service replied: its HTTP status first, then the fields of its JSON.

    200 {"status": "Success", ...}                  Reply({"status": "Success", ...}, address)
    429, Retry-After: 7                             Trouble: the request is repeated after 7 s
    400 {"message": "language is required"}         Refused: repeating it would change nothing
    200 <html>...</html>                            Trouble: no JSON, so this is another service

    Reply({"run_result": {"return_code": 0}}, "http://localhost:8080").part("run_result").whole_number("return_code")  0
    Reply({"run_result": {"return_code": 0}}, "http://localhost:8080").part("run_result").text("status")   SandboxError

The error says `http://localhost:8080: no text run_result.status in the reply`: what is missing or of another type is
the service's fault. Every message is one line and names the address.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, NoReturn

from truegold.verifiers.sandbox.execution import SandboxError

if TYPE_CHECKING:
    import httpx

SHOWN_CHARS = 200
"""What an error shows of a text from outside. Stops a page of HTML, or a program's output, from filling a report."""

MAX_NUMBER = 1e300
TOO_MANY_REQUESTS = 429


class Refused(SandboxError):
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
class Reply:
    """An object of a reply, whose fields are read by type. Every reader raises SandboxError where the type is wrong."""

    value: object
    """The decoded JSON, which ought to be an object."""
    address: str
    """The address that replied, as errors name it."""
    path: str = ""
    """Where in the reply the object stands, with a dot at its end: `run_result.`."""

    def part(self, key: str) -> Reply:
        """Return the object under a key; it has to be there."""
        return self.part_or_none(key) or self._fail("object", key)

    def part_or_none(self, key: str) -> Reply | None:
        """Return the object under a key."""
        fields = self._get(key, Mapping, "object")
        return None if fields is None else Reply(fields, self.address, f"{self.path}{key}.")

    def text(self, key: str) -> str:
        """Return the text under a key; it has to be there."""
        text = self.text_or_none(key)
        return text if text is not None else self._fail("text", key)

    def text_or_none(self, key: str) -> str | None:
        """Return the text under a key."""
        text: str | None = self._get(key, str, "text")
        return text

    def whole_number(self, key: str) -> int:
        """Return the whole number under a key; it has to be there."""
        count: int | None = self._get(key, int, "whole number")
        return count if count is not None else self._fail("whole number", key)

    def number_or_none(self, key: str) -> float | None:
        """Return the number under a key."""
        measured = self._get(key, int | float, "number")
        # Python's integers know no bounds, and a float does.
        if measured is not None and not abs(measured) < MAX_NUMBER:
            self._fail("number", key)
        return None if measured is None else float(measured)

    def _get(self, key: str, kind: Any, kind_name: str) -> Any:
        """Return the value under a key; None where there is none."""
        if not isinstance(self.value, Mapping):
            raise SandboxError(f"{self.address}: the reply is a JSON {type(self.value).__name__}, not an object")
        value = self.value.get(key)
        if value is None or (isinstance(value, kind) and not isinstance(value, bool)):
            return value
        return self._fail(kind_name, key)

    def _fail(self, kind: str, key: str) -> NoReturn:
        raise SandboxError(f"{self.address}: no {kind} {self.path}{key} in the reply")


def read_reply(response: httpx.Response, body: bytes, address: str) -> Reply:
    """Return what a reply holds, by its status. Raises Trouble or Refused where it holds no JSON value."""
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
        raise Refused(f"{address}: {_refusal(response, body)}")
    try:
        return Reply(json.loads(body), address)
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
    message = (fields.get("message") or fields.get("detail")) if isinstance(fields, dict) else None
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
