"""Asks a service over HTTP: JSON there, JSON back, or a `SandboxError` of one line that names the service.

    Service("http://localhost:8080").post("/run_code", {"code": "print(1)"}, 95, fault_of)
        ServiceReply({"status": ...}, ...)

A request is repeated, with growing and jittered pauses, after refused connections, statuses 429 (not before its
Retry-After) and 5xx, and replies in which the caller sees a fault of the service. It is not repeated after a time-out,
since the service is still at work on the first request and a second one would add to its load, nor after other statuses
of 4xx (`RequestRefused`), redirects, and replies that are not JSON.

A circuit breaker leaves a service alone that fails several times in a row:

    closed     every call goes through; one success forgets the failures
    open       after 8 failures in a row: calls fail at once, so that a batch of rows does not wait for each of them
    half open  30 seconds later one call goes through and decides: closed again, or open for another 30 seconds

The number of requests in flight is bounded on this side, where waiting costs nothing: services start all that they are
sent, or queue it without a bound, and a request's time runs meanwhile.

A `Service` is a value: it pickles, and what it holds open (connections, breaker) is made in each process anew, in a
forked one too. The environment's proxy settings are honoured.

A reply is read by its HTTP status first, then by the fields of its JSON:

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
import os
import random
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, NoReturn, TypeVar
from urllib.parse import urlsplit

from truegold.verifiers.sandbox.errors import ConfigError
from truegold.verifiers.sandbox.execution import SandboxError

if TYPE_CHECKING:
    # Functions import it at its use: it takes a tenth of a second that verifiers without a service need not pay.
    import httpx

IN_FLIGHT = 16
"""Requests at one time, of one process. More of them time out while they wait for the service's cores."""

ATTEMPTS = 4
BACKOFF_S = 0.5
"""The first pause between two attempts; each further one is twice as long."""

MAX_PAUSE_S = 60.0
"""A service that asks for a longer pause has failed. Stops a Retry-After of a day from stopping a run for a day."""

CONNECT_S = 10.0

MAX_REPLY_BYTES = 64 * 2**20
"""A longer reply is not read. Stops a service without a bound on output from filling this process's memory."""

FAILURES_TO_OPEN = 8
"""The breaker opens after so many failed calls in a row, each after all its attempts. With fewer, the few programs that
bring a service down would close it to all others."""

COOL_DOWN_S = 30.0


def _jitter() -> float:  # A clock is pickled, which takes a function with a name.
    return random.uniform(0.75, 1.25)


@dataclass(frozen=True, slots=True)
class RetryClock:
    """Time as the retries and the breaker see it."""

    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    jitter: Callable[[], float] = _jitter
    """Draws the factor that spreads pauses."""


REAL_CLOCK = RetryClock()


@dataclass(frozen=True, slots=True)
class Service:
    """A service at an address. Raises ConfigError where that is no http(s) address."""

    url: str = field(repr=False)
    """Where it is, with credentials if it wants any."""
    in_flight: int = IN_FLIGHT
    clock: RetryClock = field(default=REAL_CLOCK, repr=False)

    def __post_init__(self) -> None:
        try:
            parts = urlsplit(self.url)
            fits = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
        except ValueError:
            fits = False
        if not fits:
            raise ConfigError(
                f"{self.url.partition('@')[2] or self.url!r} is no address of a service.", "http(s)://HOST:PORT is."
            )

    @property
    def address(self) -> str:
        """The address as messages show it, without credentials and query."""
        parts = urlsplit(self.url)
        port = f":{parts.port}" if parts.port else ""
        host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
        return f"{parts.scheme}://{host}{port}{parts.path.rstrip('/')}"

    def post(
        self, path: str, body: Mapping[str, object], timeout_s: float, fault_of: Callable[[ServiceReply], str | None]
    ) -> ServiceReply:
        """Return the reply to `body`.

        timeout_s bounds all of it, from sending to the last byte. fault_of says what is wrong with the service itself,
        by what it replied, or None.
        """
        content = json.dumps(body).encode()
        connection = _connection(self)
        with connection.slots:
            connection.breaker.enter()
            for attempt in range(ATTEMPTS):
                try:
                    reply = self._attempt(connection.client, path, content, timeout_s)
                    if (fault := fault_of(reply)) is not None:
                        raise Trouble(f"{reply.address}: {fault}", repeatable=True, service_fails=False)
                    connection.breaker.count_success()
                    return reply
                except RequestRefused:
                    connection.breaker.count_success()
                    raise
                except SandboxError as error:
                    connection.breaker.count_failure(str(error))
                    raise
                except Trouble as trouble:
                    pause_s = self._pause_s(trouble, attempt)
                    if pause_s is None:
                        if trouble.service_fails:
                            connection.breaker.count_failure(str(trouble))
                        raise SandboxError(str(trouble)) from trouble.__cause__
                self.clock.sleep(pause_s)
            raise AssertionError("the last attempt returns or raises")

    def _pause_s(self, trouble: Trouble, attempt: int) -> float | None:
        """Return how long to wait before the next attempt; None where there is none."""
        if not trouble.repeatable or attempt == ATTEMPTS - 1 or trouble.retry_after_s > MAX_PAUSE_S:
            return None
        return trouble.retry_after_s + BACKOFF_S * (1 << attempt) * self.clock.jitter()

    def _attempt(self, client: httpx.Client, path: str, content: bytes, timeout_s: float) -> ServiceReply:
        import httpx

        address = f"{self.address}{path}"
        timeout = httpx.Timeout(timeout_s, connect=CONNECT_S)
        headers = {"Content-Type": "application/json", "Accept-Encoding": "identity"}
        try:
            url = httpx.URL(self.url)
            url = url.copy_with(path=url.path.rstrip("/") + path)
            with client.stream("POST", url, content=content, headers=headers, timeout=timeout) as response:
                body = _read_body(response, address, timeout_s)
        except (httpx.ConnectTimeout, httpx.PoolTimeout) as error:
            raise Trouble(f"{address}: no connection within {CONNECT_S:.0f} s", repeatable=True) from error
        except httpx.TimeoutException as error:
            message = f"{address}: no reply within {timeout_s:.0f} s; it may be overloaded"
            raise Trouble(message, repeatable=False) from error
        except httpx.TransportError as error:
            raise Trouble(f"{address}: {one_line(str(error)) or type(error).__name__}", repeatable=True) from error
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise Trouble(f"{address}: {one_line(str(error))}", repeatable=False) from error
        return read_reply(response, body, address)


def _read_body(response: httpx.Response, address: str, timeout_s: float) -> bytes:
    """Return the body. httpx bounds the time between two pieces; the whole of it is bounded here."""
    deadline = time.monotonic() + timeout_s
    body = bytearray()
    for piece in response.iter_bytes():
        body += piece
        if len(body) > MAX_REPLY_BYTES:
            raise Trouble(
                f"{address}: the reply is longer than {MAX_REPLY_BYTES >> 20} MiB; bound the output of its programs",
                repeatable=False,
                service_fails=False,
            )
        if time.monotonic() > deadline:
            raise Trouble(f"{address}: no whole reply within {timeout_s:.0f} s", repeatable=False)
    return bytes(body)


class Breaker:
    """The circuit breaker of one service in one process, for any number of threads."""

    def __init__(self, address: str, now: Callable[[], float]) -> None:
        self._address = address
        self._now = now
        self._lock = threading.Lock()
        self._failures = 0
        self._last_error = ""
        self._open_until = 0.0

    def enter(self) -> None:
        """Raise SandboxError while the service is left alone."""
        with self._lock:
            if self._failures < FAILURES_TO_OPEN:
                return
            wait_s = self._open_until - self._now()
            if wait_s > 0:
                raise SandboxError(
                    f"{self._address} failed {self._failures} times in a row and is not asked for another "
                    f"{wait_s:.0f} s; the last time: {self._last_error}"
                )
            # This call is the probe. Should it never report back, the next one may try after the same time.
            self._open_until = self._now() + COOL_DOWN_S

    def count_success(self) -> None:
        """Close the breaker."""
        with self._lock:
            self._failures = 0

    def count_failure(self, error: str) -> None:
        """Count a call that failed after all its attempts."""
        with self._lock:
            self._failures += 1
            self._last_error = error
            self._open_until = self._now() + COOL_DOWN_S


@dataclass(frozen=True, slots=True)
class _Connection:
    client: httpx.Client
    breaker: Breaker
    slots: threading.BoundedSemaphore


_CONNECTIONS: dict[Service, _Connection] = {}
_LOCK = threading.Lock()


def _connection(service: Service) -> _Connection:
    import httpx

    with _LOCK:
        if service not in _CONNECTIONS:
            client = httpx.Client(limits=httpx.Limits(max_connections=service.in_flight), follow_redirects=False)
            breaker = Breaker(service.address, service.clock.now)
            _CONNECTIONS[service] = _Connection(client, breaker, threading.BoundedSemaphore(service.in_flight))
        return _CONNECTIONS[service]


def _forget_connections() -> None:
    """In a forked copy of this process, sockets, and locks that other threads held, belong to the original."""
    global _LOCK  # noqa: PLW0603
    _LOCK = threading.Lock()
    _CONNECTIONS.clear()


os.register_at_fork(after_in_child=_forget_connections)


Field = TypeVar("Field", dict[str, object], str, int, float)

SHOWN_CHARS = 200
"""What an error shows of a text from outside. Stops a page of HTML, or a program's output, from filling a report."""

MAX_NUMBER = 1e300
TOO_MANY_REQUESTS = 429


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


_KIND_NAMES: Mapping[type, str] = {dict: "object", str: "text", int: "whole number", float: "number"}


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
