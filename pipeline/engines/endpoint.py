"""An address that is asked over HTTP: replies of a bounded size in a bounded time, and errors that say whether another
try may help.

    await endpoint.call("POST", "/chat/completions", body)
        b'{"choices": ...}'
        Failure    no answer in time, HTTP 429 or 503: it may succeed later (in `wait_s`, where the server says so)
        Refusal    HTTP 400 or 401: it will not
        Unsound    a reply without end, or none that can be unpacked

The key comes from the environment, goes into one header, and is taken out of all that a server writes: some repeat it
in their errors.
"""

from __future__ import annotations

import asyncio
import json
import os
import ssl
from collections.abc import Callable
from functools import cache
from typing import Any

import httpx

from truegold.pipeline.engines.base import Completion
from truegold.verifiers import ConfigError

MAX_REPLY_BYTES = 2**26
"""Longer replies are refused."""
CONNECT_S = 10.0
"""How long a server may take to accept a connection."""
RETRY_STATUSES = (408, 425, 429)
"""Besides 5xx, the statuses of requests that may succeed later."""
QUOTED_CHARS = 200
"""The most characters of a server's value in a message: it may write megabytes where a word belongs."""
EXCERPT_BYTES = 80
"""The beginning of a reply that stands in a message."""


class Unsound(Exception):
    """A reply after which a server is not used any more; the message says what is wrong with it."""


class Refusal(Unsound):
    """A request that the server refuses, and will refuse again."""

    def __init__(self, reason: str, status: int) -> None:
        super().__init__(reason)
        self.status = status
        """The HTTP status."""


class Failure(Exception):
    """A request that failed, and may succeed later or elsewhere."""

    def __init__(self, reason: str, *, overload: bool = False, wait_s: float = 0.0) -> None:
        super().__init__(reason)
        self.overload = overload
        """Whether the server said that it has too many requests."""
        self.wait_s = wait_s
        """How long the server asks to be left alone."""
        self.begun: Completion | None = None
        """The beginning of the completion, where it has arrived."""


class Endpoint:
    """The address `url` and what is sent there."""

    def __init__(self, url: str, key: str | None, timeout_s: float) -> None:
        """key: the bearer's, if there is one."""
        self.url = url.rstrip("/")
        self._key, self._timeout_s = key, timeout_s
        self._idle: list[httpx.AsyncClient] = []
        """A client for each connection, those that send a request left out: one with many looks at all of them before
        each request."""

    async def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        limit_s: float | None = None,
        take_part: Callable[[bytes], None] = lambda _: None,
    ) -> bytes:
        """Return the body of the server's reply. take_part: gets each part of it as it arrives, unless it is an error.

        Raises Failure if another try may succeed, Refusal for HTTP 404 and its like, and Unsound for an endless reply.
        """
        url = path if path.startswith("http") else self.url + path
        client = self._idle.pop() if self._idle else self._make_client()
        try:
            async with asyncio.timeout(limit_s or self._timeout_s):
                async with client.stream(method, url, json=body) as response:
                    content = bytearray()
                    async for part in response.aiter_bytes():
                        content += part
                        if response.status_code < 300:
                            take_part(part)
                        if len(content) > MAX_REPLY_BYTES:
                            raise Unsound(f"its reply is longer than {MAX_REPLY_BYTES:,} bytes")
        except (TimeoutError, httpx.TimeoutException) as error:
            raise Failure("no answer in time") from error
        except httpx.DecodingError as error:
            raise Unsound(f"its reply cannot be unpacked: {error}") from error
        except httpx.TransportError as error:
            raise Failure(f"it does not answer ({str(error) or type(error).__name__})") from error
        finally:
            self._idle.append(client)
        status, content = response.status_code, self._without_key(content)
        if status >= 500 or status in RETRY_STATUSES:
            wait_s = _seconds(response.headers.get("retry-after"))
            raise Failure(f"HTTP {status}{_excerpt(content)}", overload=status in (429, 503), wait_s=wait_s)
        if status >= 300:
            raise Refusal(f"it refuses {path} with HTTP {status}{_excerpt(content)}", status)
        return bytes(content)

    async def close(self) -> None:
        """Close the connections."""
        for client in self._idle:
            await client.aclose()

    def _make_client(self) -> httpx.AsyncClient:
        timeout = httpx.Timeout(self._timeout_s, connect=min(CONNECT_S, self._timeout_s))
        headers = {"Authorization": f"Bearer {self._key}"} if self._key else {}
        return httpx.AsyncClient(headers=headers, timeout=timeout, verify=_ssl_context())

    def _without_key(self, content: bytearray) -> bytearray:
        return content.replace(self._key.encode(), b"[key]") if self._key else content


@cache
def _ssl_context() -> ssl.SSLContext:
    """Return the certificates that are trusted, which take long to load."""
    return httpx.create_ssl_context()


def read_key(variable: str | None) -> str | None:
    """Return the key in an environment variable, or None if none is named, or it is not set.

    Raises ConfigError, which does not show it, for a text that no header can carry.
    """
    key = os.environ.get(variable, "").strip() if variable else ""
    if not all("!" <= character <= "~" for character in key):
        raise ConfigError(
            f"The value of the environment variable {variable} is not a key: it holds blanks, line ends or letters "
            "beyond ASCII.",
            "Set it to the key alone.",
        )
    return key or None


def read_json(content: bytes) -> dict[str, Any]:
    """Return a reply's JSON object. Raises Unsound if it is not a JSON object, or reports an error."""
    try:
        reply = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise Unsound(f"its reply is no JSON: {content[:EXCERPT_BYTES]!r}") from error
    if not isinstance(reply, dict):
        raise Unsound(f"its reply is not an object: {content[:EXCERPT_BYTES]!r}")
    if reply.get("error") is not None or reply.get("object") == "error":
        raise Unsound(f"it reports an error as a success: {json.dumps(reply.get('error', reply))[:QUOTED_CHARS]}")
    return reply


def quoted(value: object) -> str:
    """Return the beginning of what a server wrote, as it may stand in a message and in a report."""
    return repr(value)[:QUOTED_CHARS]


def _seconds(header: str | None) -> float:
    """Return the seconds of a header Retry-After; 0 where it has none, or a date."""
    return float(header) if header and header.isascii() and header.isdecimal() else 0.0


def _excerpt(content: bytes | bytearray) -> str:
    text = " ".join(content.decode("utf-8", "replace").split())
    return f": {text[:200]}" if text else ""
