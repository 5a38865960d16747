"""An HTTP client that limits the size and time of replies, and whose errors tell whether a retry may help.

    await endpoint.call("POST", "/chat/completions", body)  ->  b'{"choices": ...}', or an error:

        Failure    timeout, HTTP 429 or 503: a retry may succeed
        Refusal    HTTP 400 or 401: a retry will not succeed
        Unsound    the reply is too long, or cannot be decompressed

The API key comes from the environment and is sent in one header. Some servers repeat the key in their errors, so it is
removed from all replies.
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
"""The maximum number of bytes of a reply. A longer reply is rejected."""
CONNECT_S = 10.0
"""The timeout for a connection, in seconds."""
RETRY_STATUSES = (408, 425, 429)
"""The HTTP statuses, in addition to 5xx, after which a retry may succeed."""
QUOTED_CHARS = 200
"""A message quotes at most this number of characters of a value in a reply."""
EXCERPT_BYTES = 80
"""A message quotes at most this number of bytes of a reply that is not a JSON object."""


class Unsound(Exception):
    """The server sent a faulty reply, and should not be trusted. The message names the fault."""


class Refusal(Unsound):
    """The server refused a request, and will refuse it again."""

    def __init__(self, reason: str, status: int) -> None:
        super().__init__(reason)
        self.status = status
        """The HTTP status."""


class Failure(Exception):
    """A request failed, but may succeed later or on another server."""

    def __init__(self, reason: str, *, overload: bool = False, wait_s: float = 0.0) -> None:
        super().__init__(reason)
        self.overload = overload
        """Whether the server reported too many requests."""
        self.wait_s = wait_s
        """The pause in seconds that the server asks for before a retry; 0.0 if it asks for none."""
        self.begun: Completion | None = None
        """The part of the completion that arrived before the failure, if any."""


class Endpoint:
    """An HTTP client for the address `url`."""

    def __init__(self, url: str, key: str | None, timeout_s: float) -> None:
        """Make a client that sends `key`, if given, as bearer token."""
        self.url = url.rstrip("/")
        self._key, self._timeout_s = key, timeout_s
        self._idle: list[httpx.AsyncClient] = []
        """Clients without a pending request. Each has one connection. A client with many connections checks all of them
        before each request."""

    async def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        limit_s: float | None = None,
        take_part: Callable[[bytes], None] = lambda _: None,
    ) -> bytes:
        """Return the body of the server's reply.

        Each part of a successful reply is passed to `take_part` as it arrives. Raises Failure if a retry may succeed,
        Refusal for other error statuses such as 404, and Unsound for a reply that is too long or cannot be unpacked.
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
    """Return the SSL context with the trusted certificates. It is cached, because loading them is slow."""
    return httpx.create_ssl_context()


def read_key(variable: str | None) -> str | None:
    """Return the key in an environment variable, or None if `variable` is None or not set.

    Raises ConfigError if the key cannot be sent in a header. The message does not show the key.
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
    """Return the JSON object of a reply. Raises Unsound if the reply is not a JSON object, or reports an error."""
    try:
        reply = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise Unsound(f"its reply is not JSON: {content[:EXCERPT_BYTES]!r}") from error
    if not isinstance(reply, dict):
        raise Unsound(f"its reply is not an object: {content[:EXCERPT_BYTES]!r}")
    if reply.get("error") is not None or reply.get("object") == "error":
        raise Unsound(f"it reports an error as a success: {json.dumps(reply.get('error', reply))[:QUOTED_CHARS]}")
    return reply


def quoted(value: object) -> str:
    """Return the beginning of a server's value, quoted for messages and reports."""
    return repr(value)[:QUOTED_CHARS]


def _seconds(header: str | None) -> float:
    """Return the seconds of a Retry-After header, or 0 if the header is missing or has a date."""
    return float(header) if header and header.isascii() and header.isdecimal() else 0.0


def _excerpt(content: bytes | bytearray) -> str:
    text = " ".join(content.decode("utf-8", "replace").split())
    return f": {text[:200]}" if text else ""
